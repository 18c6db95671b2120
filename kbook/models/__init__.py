"""Models: base models, their tokenizer and training, tuning, decoding, embeddings."""

import os

# MKL's own choice of thread count halves the speed of the small matrix products of the embedded bases
os.environ.setdefault("MKL_DYNAMIC", "FALSE")
