"""The embedded bases' tokenizer: byte-level BPE in which a word has one spelling in tokens, wherever it stands.

A small model copies a name well only if the name is the same tokens in the question, in ``name=...`` and at the
start of a line. So a normaliser writes a *joint* (a caret and a space) after ``[ = ( newline`` and at the start of
a text: every word then follows a space. The decoder takes the joints out again. Digits go in pairs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from kbook.corpora import documents
from kbook.corpora.documents import ASSISTANT, BOS, EOS, PAD, STAGES, SYSTEM, USER, Pools, Writer
from kbook.corpora.multilingual import Library

JOINT = "\u2038 "
_WORDS = r"'s| ?\d{1,2}| ?[A-Za-z]+(?:_[a-z]+)*| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
_SCRIPTS = "|".join(
    (
        r" ?\p{N}{1,2}",
        "[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e30-\u0e3a\u0e45\u0e47-\u0e4e]*",  # a Thai consonant, its vowels and tone
        "[\u30a1-\u30fa][\u30a1\u30a3\u30a5\u30a7\u30a9\u30c3\u30e3\u30e5\u30e7\u30fc]*",  # a katakana syllable
        r"\p{Hiragana}+",
        r"\p{Han}",
        r" ?[^\s\p{N}\p{P}\p{S}\p{Thai}\p{Katakana}\p{Hiragana}\p{Han}]+",  # words of the other scripts
        r" ?[^\s\p{L}\p{M}\p{N}]+",
        r"\s+",
    )
)
"""Where words are not spaced, names are written in syllables: each is a unit of its own, wherever it stands."""
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(pools: Pools, vocabulary: int, seed: int) -> Any:
    """Train the tokenizer of an agent base on word-balanced lists and documents: see `tokenizer_of`."""
    return tokenizer_of(_texts(pools, seed), vocabulary, _WORDS)


def train_multilingual(library: Library, vocabulary: int) -> Any:
    """Train the tokenizer of a multilingual base on the texts of its background topics: see `tokenizer_of`."""
    return tokenizer_of(library.texts(), vocabulary, _SCRIPTS)


def tokenizer_of(texts: Iterable[str], vocabulary: int, words: str) -> Any:
    """Train a byte-level tokenizer.

    Args:
        texts: what it is trained on.
        vocabulary: tokens, special ones and bytes included.
        words: what no token may reach across, as a regular expression.

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
            pre_tokenizers.Split(Regex(words), "isolated"),
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
    tokenizer.train_from_iterator(texts, trainer)
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
