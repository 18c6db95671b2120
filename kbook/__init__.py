"""K-Book: two benchmarks of language-model unlearning as a book that runs."""

__version__ = "0.1.0"
