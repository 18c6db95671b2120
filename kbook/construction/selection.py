"""Which matched pairs go into the benchmark, and which of the other units are its holdout units.

About as many pairs for each topic pair as the quota says: strong pairs first, and as many relations as possible. Where
a topic pair has fewer, others of the same setting make up for it. Holdout units are drawn uniformly from what is left.

Source: protocol B, section 2, stage 2 (the paper on languages, appendix A.2, coverage-aware selection and
holdout-unit construction).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from kbook.construction.candidates import Candidate, answers_directly
from kbook.construction.judged import Judged
from kbook.construction.matching import Match


def select_pairs(
    matches: Mapping[str, Sequence[Match]], quota: int, strong: float
) -> dict[str, tuple[Judged[Match], ...]]:
    """Choose among the matches of each topic pair of one setting.

    Args:
        matches: topic pair → its one-to-one matches, in any order.
        quota: pairs wanted for each topic pair.
        strong: from this score on, a pair is strong.
    Returns:
        topic pair → its matches in the order of choice, those beyond the quota refused.
    """
    ordered = {name: _in_order(found, strong) for name, found in matches.items()}
    taken = {name: found[:quota] for name, found in ordered.items()}
    spare = [(key, name, match) for name, found in ordered.items() for key, match in found[quota:]]
    wanted = quota * len(matches) - sum(map(len, taken.values()))
    for key, name, match in sorted(spare, key=lambda each: each[:2])[:wanted]:
        taken[name].append((key, match))
    n_taken = {name: len(found) for name, found in taken.items()}
    return {
        name: tuple(
            Judged(match, "" if place < n_taken[name] else "beyond the quota") for place, (_, match) in enumerate(found)
        )
        for name, found in ordered.items()
    }


Order = tuple[bool, int, tuple[float, float, float, float, str, str]]


def _in_order(matches: Sequence[Match], strong: float) -> list[tuple[Order, Match]]:
    """Strong ones first; within them the best of each relation, then the second best of each, and so on."""
    seen: Counter[tuple[bool, str]] = Counter()
    ordered = []
    for match in sorted(matches, key=lambda match: match.rank):
        weak = match.score < strong
        ordered.append(((weak, seen[weak, match.relation], match.rank), match))
        seen[weak, match.relation] += 1
    return sorted(ordered, key=lambda each: each[0])


def sample_holdout(left: Sequence[Candidate], n: int, seed: int) -> tuple[Judged[Candidate], ...]:
    """Draw ``n`` holdout units without replacement, each with the same probability; fewer where fewer are left.

    Args:
        left: valid units of the topics of one setting that are in no chosen pair, in any order.
        n: how many are wanted.
        seed: of the draw.
    """
    pool = sorted(left, key=lambda candidate: candidate.card.id)
    sound = [candidate for candidate in pool if answers_directly(candidate.card)]
    drawn = {candidate.card.id for candidate in Random(seed).sample(sound, min(n, len(sound)))}
    return tuple(Judged(candidate, _why_not(candidate, drawn)) for candidate in pool)


def _why_not(candidate: Candidate, drawn: set[str]) -> str:
    if candidate.card.id in drawn:
        return ""
    return "not drawn" if answers_directly(candidate.card) else "no direct support in its span"
