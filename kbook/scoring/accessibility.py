"""How accessible knowledge is in each language: four measures of an answer, averaged in the order of CLLPU.

The four realisations of a unit (core and three surface variants) are averaged first, then the units: A(s, t) is what a
model unlearned in language s still says in language t. *Source* is the mean over s of A(s, s), *Cross* the mean over s
of the mean over all other t. A model that no language of unlearning made (Original, Retrain) has one score a language,
which is repeated over s: its Source and Cross are then the same.

Scores are tidy frames of the columns `COLUMNS`, one row an answer and measure; ``source`` is "" where no language made
the model. ``topic`` names the topic pair of a unit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kbook.construction.providers import NoUsableReply
from kbook.corpora.units import QA
from kbook.scoring.cells import Floats
from kbook.scoring.rouge import rouge_l
from kbook.scoring.script_tokens import script_tokens
from kbook.text import folded

EM, ROUGE_L, SIMILARITY, JUDGE = "em", "rouge-l", "s", "judge"
MEASURES = (EM, ROUGE_L, SIMILARITY, JUDGE)
COLUMNS = ("method", "setting", "source", "language", "role", "layer", "measure", "topic", "unit", "value")
CELL = ["method", "setting", "source", "language", "role", "measure"]
"""What tells the cells A(s, t) apart: all of them together are the matrix of one method, setting, role and measure."""
MATRIX = [name for name in CELL if name not in ("source", "language")]


class Encoder(Protocol):
    """Whoever turns texts into unit vectors, and has a name to be quoted with them."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Judge(Protocol):
    """Whoever scores an answer in [0, 1]; every provider of `kbook.construction` does."""

    @property
    def name(self) -> str: ...

    def judge(self, question: str, expected: str, answer: str, language: str) -> float: ...


# ---- measures of one answer --------------------------------------------------------------------------------


def normalised(text: str) -> str:
    """A text as exact match compares it: NFKC, case-folded, punctuation and symbols as spaces, spaces collapsed.

    Example:
        >>> normalised("  The “Ａrk”, 2033! ")
        'the ark 2033'
    """
    kept = (" " if unicodedata.category(c)[0] in "PS" else c for c in folded(text))
    return " ".join("".join(kept).split())


def exact_match(expected: str, said: str | None) -> float:
    """Whether an answer is the expected one after `normalised`; other spellings of it do not count.

    Shape: two texts → one number.
    Unit: 1 or 0.
    Missing: no answer is 0, and so is one of punctuation alone.
    Source: CLLPU, section 4.2.1, EM.
    """
    return float(normalised(expected) == normalised(said or "") != "")


def rouge_l_f1(expected: str, said: str | None) -> float:
    """F1 of the longest common subsequence of tokens, as the script separates them.

    Shape: two texts → one number.
    Unit: fraction in [0, 1].
    Missing: no answer is 0.
    Source: CLLPU, section 4.2.1, ROUGE-L; tokens as in `script_tokens`.
    """
    return rouge_l(expected, said or "", script_tokens).f1


def similarity(encoder: Encoder, expected: Sequence[str], said: Sequence[str | None]) -> Floats:
    """Cosine of the embeddings of each answer and the expected one.

    Encoders place unrelated texts at other cosines than 0: read it beside that of paired answers
    (`kbook.report.cllpu_similarity`) of the same encoder.

    Shape: (n,) and (n,) texts → (n,).
    Unit: cosine in [-1, 1].
    Missing: no answer, or one without any letter or number, has no direction and counts 0.
    Source: CLLPU, section 4.2.1, S. The paper's encoder is BGE-M3; name the one that is used.
    """
    if not expected:
        return np.empty(0)
    texts = [text or "" for text in said]
    cosines = np.sum(encoder.encode(expected) * encoder.encode(texts), axis=1, dtype=float)
    return np.where([bool(script_tokens(text)) for text in texts], cosines, 0.0)


def judged(judge: Judge, qa: QA, said: str | None) -> float:
    """How right a judge finds an answer.

    Shape: one question and answer → one number.
    Unit: fraction in [0, 1].
    Missing: no answer is 0; nan where the judge gives no usable reply.
    Source: CLLPU, section 4.2.1 and appendix C.3, LLM-as-a-judge; name the judge that is used.
    """
    if not (said or "").strip():
        return 0.0
    try:
        return float(judge.judge(qa.question, qa.answer, said or "", qa.language))
    except NoUsableReply:
        return float("nan")


@dataclass(frozen=True)
class RuleJudge:
    """A judge without a model: right is an answer that says the expected one, whatever stands around it."""

    name: str = "rule: says the expected answer"

    def judge(self, question: str, expected: str, answer: str, language: str) -> float:
        """1 where the tokens of the expected answer stand in the answer, in their order and unbroken; else 0."""
        wanted, said = script_tokens(expected), script_tokens(answer)
        places = range(len(said) - len(wanted) + 1)
        return float(bool(wanted) and any(said[i : i + len(wanted)] == wanted for i in places))


def answer_values(
    expected: Sequence[str], said: Sequence[str | None], encoder: Encoder | None = None
) -> dict[str, Sequence[float] | Floats]:
    """Score answers by all measures that need no judge.

    Shape: (n,) and (n,) texts → measure → (n,).
    Unit: see each measure.
    Missing: without an encoder there is no S.
    Source: CLLPU, section 4.2.1.
    """
    pairs = list(zip(expected, said, strict=True))
    values: dict[str, Sequence[float] | Floats] = {
        EM: [exact_match(*pair) for pair in pairs],
        ROUGE_L: [rouge_l_f1(*pair) for pair in pairs],
    }
    return {**values, SIMILARITY: similarity(encoder, expected, said)} if encoder else values


# ---- averages ----------------------------------------------------------------------------------------------


def unit_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Average the realisations of each unit.

    Shape: scores → one row a model, language, role, measure and unit.
    Unit: as the measure.
    Missing: a value of nan is left out; a unit of nothing else is nan.
    Source: CLLPU, section 4.2.1, the inner of the two averages.
    """
    return scores.groupby([*CELL, "topic", "unit"], sort=False, as_index=False, dropna=False)["value"].mean()


def accessibility(scores: pd.DataFrame) -> pd.DataFrame:
    """A(s, t): the mean over units of the mean over their realisations, for each model, language, role and measure.

    Shape: scores → one row a cell, with ``n``, the number of its units.
    Unit: as the measure.
    Missing: a unit of nan is left out and does not count in ``n``.
    Source: CLLPU, section 4.2.1.
    """
    units = unit_means(scores).groupby(CELL, sort=False)["value"]
    return units.agg(value="mean", n="count").reset_index()


def repeat_references(cells: pd.DataFrame) -> pd.DataFrame:
    """Give a model that no language made a row for each source: that of the same language, whatever the source.

    Shape: cells → cells, those of source "" once for each language that the model has.
    Unit: unchanged.
    Missing: nothing changes where no source is "".
    Source: CLLPU, appendix B.1.
    """
    free = cells[cells["source"] == ""]
    sources = free[[*MATRIX, "language"]].rename(columns={"language": "source"})
    repeated = free.drop(columns="source").merge(sources, on=MATRIX)[list(cells.columns)]
    return pd.concat([cells[cells["source"] != ""], repeated], ignore_index=True)


def source_mean(matrix: Floats, own: Sequence[int]) -> float:
    """Mean of A(s, s): what is left in the language of unlearning.

    Shape: (sources, languages) and, for each source, its place among the languages → one number.
    Unit: as the measure.
    Missing: nan if a cell that is needed is nan, or there is no source.
    Source: CLLPU, section 4.2.1, Source.
    """
    return float(np.mean([row[i] for row, i in zip(matrix, own, strict=True)])) if len(own) else float("nan")


def cross_mean(matrix: Floats, own: Sequence[int]) -> float:
    """Mean over sources of the mean of A(s, t) over the other languages.

    Shape: as `source_mean`.
    Unit: as the measure.
    Missing: nan if a cell that is needed is nan, there is no source, or no other language.
    Source: CLLPU, section 4.2.1, Cross.
    """
    others = [np.delete(row, i) for row, i in zip(np.asarray(matrix, dtype=float), own, strict=True)]
    return float(np.mean([np.mean(row) for row in others])) if others and len(others[0]) else float("nan")


def source_and_cross(cells: pd.DataFrame) -> pd.DataFrame:
    """Source and Cross of each method, setting, role and measure.

    Shape: cells (`accessibility`) → one row a matrix, columns ``source`` and ``cross``, and ``n_sources``.
    Unit: as the measure.
    Missing: nan where the matrix lacks a cell that is needed: a mean of fewer would be of another matrix.
    Source: CLLPU, section 4.2.1 and appendix B.1.
    """
    rows = []
    for names, part in repeat_references(cells).groupby(MATRIX, sort=False):
        table = part.pivot(index="source", columns="language", values="value")
        table = table.reindex(columns=table.columns.union(table.index))
        matrix, own = table.to_numpy(dtype=float), [table.columns.get_loc(source) for source in table.index]
        found = {"source": source_mean(matrix, own), "cross": cross_mean(matrix, own), "n_sources": len(table)}
        rows.append({**dict(zip(MATRIX, names, strict=True)), **found})
    return pd.DataFrame(rows, columns=[*MATRIX, "source", "cross", "n_sources"])


def source_and_cross_by(scores: pd.DataFrame, by: str) -> pd.DataFrame:
    """Source and Cross of a part of the questions at a time: of each ``layer`` of wording, or of each ``topic``.

    Shape: scores → one row a matrix and value of ``by``, columns as in `source_and_cross`.
    Unit: as the measure.
    Missing: as in `source_and_cross`; a topic of the conditioned setting has one source.
    Source: CLLPU, section 5.5 (layers) and appendix C.4 (topics).
    """
    parts = [
        source_and_cross(accessibility(part)).assign(**{by: value}) for value, part in scores.groupby(by, sort=False)
    ]
    names = [*MATRIX, by, "source", "cross", "n_sources"]
    return pd.concat(parts, ignore_index=True)[names] if parts else pd.DataFrame(columns=names)
