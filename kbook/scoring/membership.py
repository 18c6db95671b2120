"""Whether a model still tells what it was trained on: four membership attacks on the answers of core questions.

Members are the units to forget, non-members the holdout units of the same topics and language. All scores are of the
answer's tokens given the question, and all are the higher the more an answer looks like a member's. The raw area under
the ROC curve is kept: below 0.5 the order is reversed, which is no better privacy.

Example:
    >>> log_probs = [-1.0, -2.0, -3.0, -4.0, -10.0]
    >>> loss_score(log_probs), min_k_score(log_probs)
    (-4.0, -7.0)
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kbook.scoring.accessibility import COLUMNS
from kbook.scoring.cells import Floats, mean
from kbook.scoring.interfaces import MIN_K, auc, min_k

MIN_VARIANCE = 1e-6
LOSS, MIN_K_PERCENT, MIN_K_PLUS, ZLIB = "loss", "min-k", "min-k++", "zlib"
ATTACKS = (LOSS, MIN_K_PERCENT, MIN_K_PLUS, ZLIB)


def loss_score(log_probs: Sequence[float] | Floats) -> float:
    """Mean log-probability of the answer's tokens.

    Shape: (tokens,) → one number.
    Unit: nats per token, at most 0.
    Missing: nan for an answer without tokens, or with a nan.
    Source: CLLPU, appendix B.2, equation 2.
    """
    return mean(np.asarray(log_probs, dtype=float))


def min_k_score(log_probs: Sequence[float] | Floats, share: float = MIN_K) -> float:
    """Mean log-probability of the least likely tokens: max(1, ⌊share · T⌋) of them.

    Shape: (tokens,) → one number.
    Unit: nats per token, at most 0.
    Missing: nan for an answer without tokens, or with a nan.
    Source: CLLPU, appendix B.2, equations 3 and 4, K = 40.
    """
    values = np.asarray(log_probs, dtype=float)
    return float("nan") if np.isnan(values).any() else min_k(-values, share)


def min_k_plus_score(
    log_probs: Sequence[float] | Floats,
    means: Sequence[float] | Floats,
    variances: Sequence[float] | Floats,
    share: float = MIN_K,
) -> float:
    """The same mean of standardised log-probabilities: how far below what the model expects a token to cost.

    Shape: (tokens,) log-probabilities, and mean and variance of the log-probability under the whole next-token
        distribution at each → one number.
    Unit: standard deviations.
    Missing: nan for an answer without tokens, or with a nan; a variance below `MIN_VARIANCE` counts as that.
    Source: CLLPU, appendix B.2, equations 5 to 9.
    """
    spread = np.sqrt(np.maximum(np.asarray(variances, dtype=float), MIN_VARIANCE))
    return min_k_score((np.asarray(log_probs, dtype=float) - np.asarray(means, dtype=float)) / spread, share)


def zlib_score(log_probs: Sequence[float] | Floats, answer: str) -> float:
    """Minus the log-perplexity of an answer, over the size of its text when compressed.

    Shape: (tokens,) and the answer's text → one number.
    Unit: nats per token and byte, at most 0.
    Missing: nan for an answer without tokens, or with a nan.
    Source: CLLPU, appendix B.2, equations 10 and 11; zlib at its default level.
    """
    return loss_score(log_probs) / len(zlib.compress(answer.encode("utf-8")))


def attack_scores(
    log_probs: Sequence[float] | Floats,
    means: Sequence[float] | Floats,
    variances: Sequence[float] | Floats,
    answer: str,
) -> dict[str, float]:
    """The four scores of one answer, by the names of `ATTACKS`.

    Shape: as `min_k_plus_score`, and the answer's text → four numbers.
    Unit: see each score.
    Missing: see each score.
    Source: CLLPU, appendix B.2.
    """
    return {
        LOSS: loss_score(log_probs),
        MIN_K_PERCENT: min_k_score(log_probs),
        MIN_K_PLUS: min_k_plus_score(log_probs, means, variances),
        ZLIB: zlib_score(log_probs, answer),
    }


def attack_auc(members: Sequence[float] | Floats, others: Sequence[float] | Floats) -> float:
    """Raw ROC-AUC of an attack: the chance that a member outscores a non-member, ties at one half.

    Shape: (n,) and (m,) scores → one number.
    Unit: probability; 0.5 is chance.
    Missing: nan scores are left out; nan if a side is empty then.
    Source: CLLPU, appendix B.2, equation 12.
    """
    sides = (np.asarray(side, dtype=float) for side in (members, others))
    left, right = (side[~np.isnan(side)] for side in sides)
    return auc(left, right)


def attack_aucs(scores: pd.DataFrame) -> pd.DataFrame:
    """AUC of each attack in each language of unlearning: core questions to forget against those of the holdout.

    A model that no language made (``source`` "") is attacked in each of its languages.

    Shape: scores, columns `kbook.scoring.accessibility.COLUMNS`, measures of `ATTACKS` → one row a method, setting,
        source and measure, with ``auc``, ``n_members`` and ``n_others``.
    Unit: probability.
    Missing: as `attack_auc`; a source whose own language was not scored has no row.
    Source: CLLPU, appendix B.2, equations 12 and 13: their mean over sources is the reported number.
    """
    core = scores[scores["measure"].isin(ATTACKS) & (scores["layer"] == "core")]
    core = core.assign(source=core["source"].where(core["source"] != "", core["language"]))
    core = core[core["source"] == core["language"]]
    place = ["method", "setting", "source", "measure"]
    rows = []
    for names, part in core.groupby(place, sort=False):
        sides = [part.loc[part["role"] == role, "value"].dropna() for role in ("forget", "holdout")]
        found = {"auc": attack_auc(*sides), "n_members": len(sides[0]), "n_others": len(sides[1])}
        rows.append({**dict(zip(place, names, strict=True)), **found})
    return pd.DataFrame(rows, columns=[*place, "auc", "n_members", "n_others"])


def attack_frame(
    found: Sequence[tuple[str, str, str, str, dict[str, float]]], *, method: str, setting: str, source: str = ""
) -> pd.DataFrame:
    """Scores of core answers as a tidy frame.

    Shape: (n,) tuples of topic, unit, role, language and `attack_scores` → 4 n rows, columns `COLUMNS` of
        `kbook.scoring.accessibility`.
    Unit: see each score.
    Missing: nan stays nan.
    Source: CLLPU, appendix B.2.
    """
    rows = [
        (method, setting, source, language, role, "core", measure, topic, unit, value)
        for topic, unit, role, language, values in found
        for measure, value in values.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
