"""What a model says of answers that are given to it: log-probabilities of tokens, and how it spread its bets.

Everything comes back as plain numbers, from which `kbook.scoring.membership` and `kbook.scoring.reading` make scores.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from kbook.corpora.documents import Document, Segment
from kbook.models.bases import Base
from kbook.models.batching import Encoded, by_length, collate, encode
from kbook.models.likelihood import Predictions, predictions


@dataclass(frozen=True)
class Evidence:
    """One document's supervised tokens.

    Args:
        log_probs: log-probability of each token. Shape: ``(tokens,)``. Unit: nats.
        means, variances: of the log-probability of a token drawn from the model's own distribution at the same place.
            Shape: ``(tokens,)``. Unit: nats, and nats squared.
    """

    log_probs: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()


@torch.no_grad()
def answer_evidence(base: Base, documents: Sequence[Document], budget: int) -> list[Evidence]:
    """Evidence on the supervised tokens of each document, in the order of the documents; equal ones are read once.

    *Missing*: a document without supervised tokens has none. *Unit*: nats.

    Args:
        base: the model.
        documents: what is read; an end token counts where it is supervised.
        budget: padded tokens of a batch.
    """
    found: dict[Encoded, Evidence] = {}
    encoded = encode(base.tokenizer, documents)
    for group, read in _read(base, encoded, budget):
        sizes = read.chosen.sum(1).tolist()
        columns = [values.split(sizes) for values in _spread(read)]
        for document, parts in zip(group, zip(*columns, strict=True), strict=True):
            found[document] = Evidence(*(tuple(part.tolist()) for part in parts))
    return [found[document] for document in encoded]


@torch.no_grad()
def label_log_probs(base: Base, prompts: Sequence[str], labels: Sequence[str], budget: int) -> list[tuple[float, ...]]:
    """Log-probability of each label as the continuation of each prompt.

    A prompt is read once where each label is one token, else once a label.

    *Shape*: one tuple a prompt, one number a label. *Unit*: nats, summed over the tokens of a label.

    Args:
        base: the model.
        prompts: with their special tokens.
        labels: continuations, the same for all prompts.
        budget: padded tokens of a batch.
    """
    documents = [[Segment(prompt), Segment(label, supervised=True)] for prompt in prompts for label in labels]
    encoded, n = encode(base.tokenizer, documents), len(labels)
    groups = [encoded[i : i + n] for i in range(0, len(encoded), n)]
    if not all(map(_differ_in_last_token, groups)):
        evidence = answer_evidence(base, documents, budget)
        sums = [sum(each.log_probs) for each in evidence]
        return [tuple(sums[i : i + n]) for i in range(0, len(sums), n)]
    last = {group[0]: [each.ids[-1] for each in group] for group in groups}
    found: dict[Encoded, tuple[float, ...]] = {}
    for batch, read in _read(base, list(last), budget):
        for document, row in zip(batch, read.logits().log_softmax(-1), strict=True):
            found[document] = tuple(row[last[document]].tolist())
    return [found[group[0]] for group in groups]


def _differ_in_last_token(group: Sequence[Encoded]) -> bool:
    """Whether documents of one prompt have the same tokens but for one, the last, which alone is supervised."""
    heads = {each.ids[:-1] for each in group}
    return len(heads) == 1 and all(sum(map(bool, each.segment)) == 1 == bool(each.segment[-1]) for each in group)


def _read(base: Base, encoded: Sequence[Encoded], budget: int) -> Iterator[tuple[list[Encoded], Predictions]]:
    """Predictions of distinct documents in batches of like length."""
    for group in by_length(dict.fromkeys(encoded), budget, random.Random(0)) if encoded else ():
        yield group, predictions(base.model, collate(group))


def _spread(read: Predictions) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability of each target, and mean and variance of the log-probability under the whole distribution."""
    log_probs = read.logits().log_softmax(-1)
    probs = log_probs.exp()
    means = (probs * log_probs).nansum(-1)
    variances = (probs * (log_probs - means[:, None]).square()).nansum(-1)
    return log_probs.gather(-1, read.targets[:, None])[:, 0], means, variances
