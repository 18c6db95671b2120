"""Choose a method's settings: one rule for all methods, on people whom no result is reported for.

Example:
    >>> untreated = Rates(forget=0.9, retain=0.9)
    >>> tried = [Rates(0.5, 0.88), Rates(0.1, 0.60), Rates(0.4, 0.86)]
    >>> choose(untreated, tried)
    Choice(index=2, eligible=(True, False, True), fallback=False)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbook.errors import KBookError

CEILING = 0.05
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Rates:
    """Graded leak rates of the two splits.

    Unit: fractions in [0, 1].
    """

    forget: float
    retain: float


@dataclass(frozen=True)
class Choice:
    """Which candidate was chosen, which were eligible, and whether none was (`fallback`)."""

    index: int
    eligible: tuple[bool, ...]
    fallback: bool


def choose(untreated: Rates, tried: Sequence[Rates], ceiling: float = CEILING) -> Choice:
    """The eligible candidate with the lowest graded forget rate.

    Eligible is a candidate that costs at most ``ceiling`` of the untreated graded retain rate. Of equals, the one that
    changes the retain rate less is taken, then the first. Where none is eligible, the one with the highest retain
    rate is taken, and the choice says so.

    Args:
        untreated: rates without any method.
        tried: rates of the candidates, in the order of the grid.
        ceiling: largest cost in retain rate.

    Unit: fractions.
    Missing: rates are never missing; a trace that shows nothing counts as 0.
    Raises:
        KBookError: there is no candidate.
    Source: ours; the ceiling is the tolerance for Δ_sel of protocol A §3.
    """
    if not tried:
        raise KBookError("there is no candidate to choose from", "selection", "give the sweep at least one value")
    eligible = tuple(untreated.retain - rates.retain <= ceiling + _ROUNDING for rates in tried)
    if not any(eligible):
        best = max(range(len(tried)), key=lambda i: (tried[i].retain, -i))
        return Choice(best, eligible, fallback=True)
    among = [i for i, allowed in enumerate(eligible) if allowed]
    best = min(among, key=lambda i: (tried[i].forget, abs(tried[i].retain - untreated.retain), i))
    return Choice(best, eligible, fallback=False)


@dataclass(frozen=True)
class Candidate:
    """One setting of a method, tried on the fitting pools.

    Args:
        settings: what the grid changed; empty for the untreated agent.
        rates: graded rates of the people who were set aside to select by.
        record: everything that was stored of it: counts, OR(all), degeneration, facts of the fit, seconds.
    """

    settings: Mapping[str, Any]
    rates: Rates
    record: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Candidate:
        """Read it from its stored record."""
        return cls(record["settings"], Rates(record["forget"]["graded"], record["retain"]["graded"]), record)

    @property
    def label(self) -> str:
        """The changed settings in words, as in ``alpha=1, learning_rate=0.0001``."""
        return in_words(self.settings)


@dataclass(frozen=True)
class Sweep:
    """All candidates of one method beside the untreated agent, and the choice among them.

    Args:
        method: its name.
        untreated: the agent without any method, on the same people.
        candidates: in the order of the grid.
        in_profile: the profile's own values of the settings that were tried.
        runs: of the store, behind all of them.
    """

    method: str
    untreated: Candidate
    candidates: tuple[Candidate, ...]
    in_profile: Mapping[str, Any]
    runs: tuple[Any, ...] = ()

    @property
    def choice(self) -> Choice:
        return choose(self.untreated.rates, [candidate.rates for candidate in self.candidates])

    @property
    def chosen(self) -> Candidate:
        return self.candidates[self.choice.index]

    @property
    def agrees(self) -> bool:
        """Whether the profile runs the method with the settings that were chosen."""
        return dict(self.chosen.settings) == dict(self.in_profile)


def report(sweep: Sweep) -> str:
    """A sweep as lines of text: each candidate with its rates, and the chosen one marked."""
    choice, base = sweep.choice, sweep.untreated.rates
    lines = [f"{sweep.method}  (untreated: leak on forget {base.forget:.3f}, on retain {base.retain:.3f})"]
    for i, (candidate, eligible) in enumerate(zip(sweep.candidates, choice.eligible, strict=True)):
        rates = candidate.rates
        notes = ["" if eligible else "over the ceiling"]
        if i == choice.index:
            notes += ["chosen", "in the profile" if sweep.agrees else f"the profile has {in_words(sweep.in_profile)}"]
        said = "; ".join(filter(None, notes))
        lines.append(f"  {candidate.label}  forget {rates.forget:.3f}  retain {rates.retain:.3f}  {said}".rstrip())
    return "\n".join(lines)


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as a reader writes them; "untreated" where there are none."""
    return ", ".join(f"{name}={_plain(value)}" for name, value in settings.items()) or "untreated"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
