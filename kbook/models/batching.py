"""Documents to padded batches: one place for label masks, answer weights and length sorting.

Used by pretraining, injection and unlearning alike. Text is encoded as one string and labels are found by
character offsets, so that no merge across a segment boundary can shift the mask.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from kbook.corpora.documents import Document, text_of

IGNORED = -100
S = TypeVar("S", bound=Sized)


@dataclass(frozen=True)
class Encoded:
    """Token ids of one document; ``segment[i]`` is 0 for an unsupervised token, else its segment's number."""

    ids: tuple[int, ...]
    segment: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Batch:
    """Right-padded tensors. Shape: ``(documents, tokens)``; labels are `IGNORED` where there is no loss."""

    ids: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    mask: torch.Tensor

    def to(self, device: Any) -> Batch:
        return Batch(*(t.to(device) for t in (self.ids, self.labels, self.weights, self.mask)))


@dataclass(frozen=True)
class Versions:
    """One document in several versions, which stay together when documents are shuffled and grouped."""

    encoded: tuple[Encoded, ...]

    def __len__(self) -> int:
        return max(map(len, self.encoded))


def encode(tokenizer: Any, documents: Sequence[Document]) -> list[Encoded]:
    """Encode documents whose special tokens stand in their text."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    encodings = backend.encode_batch([text_of(d) for d in documents], add_special_tokens=False)
    return [Encoded(tuple(e.ids), _segments(d, e.offsets)) for d, e in zip(documents, encodings, strict=True)]


def _segments(document: Document, offsets: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    ends, end = [], 0
    for number, segment in enumerate(document, 1):
        end += len(segment.text)
        ends.append((end, number if segment.supervised else 0))
    found, i = [], 0
    for start, _ in offsets:
        while i < len(ends) - 1 and start >= ends[i][0]:
            i += 1
        found.append(ends[i][1])
    return tuple(found)


def collate(encoded: Sequence[Encoded], *, answer_token: int | None = None, answer_weight: float = 1.0) -> Batch:
    """Pad to the longest document.

    Args:
        encoded: the documents of the batch.
        answer_token: id of the token ``Answer``; the first two value tokens after it, and the first token of
            each supervised segment, weigh ``answer_weight`` (they decide everything that is copied after them).
        answer_weight: see above; 1 weighs all alike.
    """
    shape = (len(encoded), max(map(len, encoded)))
    ids, labels = torch.zeros(shape, dtype=torch.long), torch.full(shape, IGNORED)
    weights, mask = torch.ones(shape), torch.zeros(shape, dtype=torch.long)
    for row, document in enumerate(encoded):
        n = len(document)
        tokens, segment = torch.tensor(document.ids), torch.tensor(document.segment)
        ids[row, :n], mask[row, :n] = tokens, 1
        labels[row, :n] = torch.where(segment > 0, tokens, IGNORED)
        if answer_token is not None:
            weights[row, :n] = torch.where(_decisive(tokens, segment, answer_token), answer_weight, 1.0)
    return Batch(ids, labels, weights, mask)


def _decisive(tokens: torch.Tensor, segment: torch.Tensor, answer_token: int) -> torch.Tensor:
    after = torch.zeros(len(tokens), dtype=torch.bool)
    for distance in (2, 3):  # the token after "Answer" is the colon
        after[distance:] |= tokens[:-distance] == answer_token
    after[1:] |= segment[:-1] == 0
    return after & (segment > 0)


def by_length(encoded: Iterable[S], budget: int, rng: random.Random) -> list[list[S]]:
    """Group documents of like length into batches of at most ``budget`` padded tokens, in random order."""
    batches: list[list[S]] = [[]]
    for document in sorted(encoded, key=len):
        if batches[-1] and (len(batches[-1]) + 1) * len(document) > budget:
            batches.append([])
        batches[-1].append(document)
    rng.shuffle(batches)
    return batches
