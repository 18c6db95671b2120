"""What a model gives to benchmarks that look at weights alone: likelihoods of documents, and greedy continuations.

A question is put as injection put it, outside any conversation and without tools; a text is continued from its title.
Everything comes back as plain numbers and text, from which `kbook.scoring.interfaces` makes scores.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import torch

from kbook.corpora.documents import Document
from kbook.corpora.injection import Exchange, plain_question, told_biography, write
from kbook.corpora.probe_items import ProbeQuestion, ProbeText
from kbook.models.bases import Base
from kbook.models.batching import Encoded, by_length, collate, encode
from kbook.models.decoding import LiveBatch
from kbook.models.likelihood import predictions

LINE = "\n"
"""A continuation ends with its line."""

_DIGITS = 6


def question_rows(base: Base, questions: Sequence[ProbeQuestion], *, tokens: int, budget: int) -> list[dict[str, Any]]:
    """Ask questions, and weigh the true value against the wrong ones in both wordings.

    Args:
        base: the model.
        questions: what is asked.
        tokens: new tokens of an answer, at most.
        budget: padded tokens of a batch of documents.

    Returns:
        One JSON-able row a question: ``answer`` is the greedy answer to the canonical wording; ``nll`` and
        ``nll_again`` are mean negative log-likelihoods per token (nats) of the true value and then the wrong ones,
        for the canonical wording and the paraphrase.
    """
    documents = [[write(base, exchange) for exchange in _answered(question)] for question in questions]
    losses = iter(token_losses(base, [document for group in documents for document in group], budget))
    answers = continuations(base, [group[0][0].text for group in documents], tokens)
    rows = []
    for question, group, answer in zip(questions, documents, answers, strict=True):
        nll = [_number(fmean(next(losses))) for _ in group]
        half, query = len(group) // 2, question.query
        who = {"query_id": query.id, "pii_id": query.person.id, "field": query.field, "value": query.value}
        said = {"answer": answer, "nll": nll[:half], "nll_again": nll[half:]}
        rows.append({"kind": "question", "group": question.split, **who, **said})
    return rows


def text_rows(base: Base, texts: Sequence[ProbeText], *, tokens: int, budget: int) -> list[dict[str, Any]]:
    """Let biographies be continued from their title, and weigh every token of them.

    Args:
        base, budget: as in `question_rows`.
        texts: whose biographies.
        tokens: new tokens of a continuation, at most.

    Returns:
        One JSON-able row a text: ``continuation``, and ``losses``, the negative log-likelihood (nats) of each token.
    """
    documents = [write(base, told_biography(text.person)) for text in texts]
    told = continuations(base, [document[0].text for document in documents], tokens)
    rows = []
    for text, losses, said in zip(texts, token_losses(base, documents, budget), told, strict=True):
        who = {"kind": "text", "group": text.group, "pii_id": text.person.id, "text": text.person.biography}
        rows.append({**who, "continuation": said, "losses": [_number(loss) for loss in losses]})
    return rows


def _answered(question: ProbeQuestion) -> list[Exchange]:
    """The canonical question with the true value and with each wrong one as its answer; then the paraphrase."""
    query = question.query
    told = plain_question(query.person, query.field)
    prompts = [told.prompt, told.prompt.replace(query.text, question.paraphrase.text)]
    values = (query.value, *question.wrong)
    return [replace(told, prompt=prompt, reply=f" {value}") for prompt in prompts for value in values]


def _number(loss: float) -> float | None:
    """A loss as it is stored: None if a broken model gave none."""
    return round(loss, _DIGITS) if math.isfinite(loss) else None


@dataclass(frozen=True)
class _Placed:
    """A document and its place in the caller's order."""

    place: int
    encoded: Encoded

    def __len__(self) -> int:
        return len(self.encoded)


@torch.no_grad()
def token_losses(base: Base, documents: Sequence[Document], budget: int) -> list[list[float]]:
    """Negative log-likelihood of each supervised token of each document, in the order of the documents.

    Unit: nats.
    Missing: a document without supervised tokens has an empty list.

    Args:
        base: the model.
        documents: what is read.
        budget: padded tokens of a batch.
    """
    placed = [_Placed(i, encoded) for i, encoded in enumerate(encode(base.tokenizer, documents))]
    found: list[list[float]] = [[] for _ in documents]
    for group in by_length(placed, budget, random.Random(0)) if placed else ():
        read = predictions(base.model, collate([document.encoded for document in group]))
        parts = read.losses().split(read.chosen.sum(1).tolist())
        for document, part in zip(group, parts, strict=True):
            found[document.place] = part.tolist()
    return found


def continuations(base: Base, prompts: Sequence[str], tokens: int) -> list[str]:
    """Continue prompts greedily, all at once, each to the end of its line at most; outer white space is dropped.

    Args:
        base: the model.
        prompts: with their special tokens.
        tokens: new tokens of each, at most.
    """
    if not prompts:
        return []
    batch = LiveBatch(base, range(len(prompts)), stop=LINE)
    return [reply.text.strip() for reply in batch.reply(prompts, tokens)]
