"""The embedded bases' tokenizer: byte-level BPE in which a word has one spelling in tokens, wherever it stands.

A small model copies a name well only if the name is the same tokens in the question, in ``name=...`` and at the
start of a line. So a normaliser writes a *joint* (a caret and a space) after ``[ = ( newline`` and at the start of
a text: every word then follows a space. The decoder takes the joints out again. Digits go in pairs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kbook.corpora import documents
from kbook.corpora.documents import ASSISTANT, BOS, EOS, PAD, STAGES, SYSTEM, USER, Pools, Writer

JOINT = "\u2038 "
_WORDS = r"'s| ?\d{1,2}| ?[A-Za-z]+(?:_[a-z]+)*| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(pools: Pools, vocabulary: int, seed: int) -> Any:
    """Train the tokenizer on word-balanced lists and documents.

    Returns:
        A `transformers.PreTrainedTokenizerFast` with chat template, padding on the left.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(JOINT), *(normalizers.Replace(c, c + JOINT) for c in "[=(\n")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace(JOINT, "")])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, BOS, EOS, SYSTEM, USER, ASSISTANT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(pools, seed), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _texts(pools: Pools, seed: int) -> Iterator[str]:
    for word in 3 * (pools.first_names + pools.last_names):
        yield f" {word} {word}"
    for value in (*pools.occupations, *pools.addresses[:12_000], *pools.employers[:6_000]):
        yield " " + value
    for i in range(100):
        yield f" {i:02d} {i:02d} -{i:02d} {i}"
    writer = Writer(pools, random.Random(f"tokenizer/{seed}"))
    for _ in range(4_000):
        yield documents.text_of(documents.draw(STAGES["full"], writer)).replace("<|", "").replace("|>", "")
