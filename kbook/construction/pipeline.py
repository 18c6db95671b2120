"""The construction from articles to a release, every stage of it a stored run.

    built = construct(world_subjects(world), WorldProvider(world), Settings(quota=8), store=Store())
    built.release, built.funnel.steps

Interrupted at any moment, it goes on where it stopped; what was made before, by the same provider with the same
settings, is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kbook.construction.judged import Funnel
from kbook.construction.providers import Provider
from kbook.construction.stages import (
    Row,
    Settings,
    assembled,
    candidate_rows,
    family_rows,
    pair_rows,
    ready,
    translation_rows,
)
from kbook.construction.topics import Subject, check_subjects
from kbook.corpora.official_units import read_release, write_release
from kbook.corpora.units import SETTINGS, Release
from kbook.digests import Spec, digest_of
from kbook.errors import KBookError
from kbook.keys import DataKey
from kbook.store import Run, Store

PROTOCOL = "cllpu"


@dataclass(frozen=True)
class Construction:
    """A finished construction: the release, what became of everything on the way, and the runs that hold it."""

    release: Release
    funnel: Funnel
    runs: tuple[Run, ...]


def construct(
    subjects: Iterable[Subject],
    provider: Provider,
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    seed: int = 0,
) -> Construction:
    """Make a release of knowledge units out of topic pairs with their articles.

    Args:
        subjects: topic pairs.
        provider: who extracts, writes, translates and reviews.
        settings: sizes and limits.
        store: by default the project's run store.
        seed: of the draw of holdout units.
    Raises:
        KBookError: topic pairs that break a rule of stage 1; a provider that cannot be reached; nothing left at the
            end.
    """
    subjects = tuple(subjects)
    check_subjects(subjects)
    line = _Line(subjects, provider, settings or Settings(), store or Store(), seed)
    return line.run()


@dataclass(frozen=True)
class _Line:
    subjects: tuple[Subject, ...]
    provider: Provider
    settings: Settings
    store: Store
    seed: int

    def run(self) -> Construction:
        provider, settings = self.provider, self.settings
        start = self._spec("candidates", None)
        candidates = self._rows("candidates", start, self.subjects, lambda s: candidate_rows(s, provider, settings))
        found = candidates.rows()

        spec = self._spec("pairs", start)
        pairs = self._rows("pairs", spec, [found], lambda rows: pair_rows(rows, settings, self.seed))

        spec = self._spec("questions", spec)
        parts = self._by_topic_pair([row for row in pairs.rows() if not row["reason"]])
        questions = self._rows("questions", spec, parts, lambda rows: family_rows(rows, provider, settings))

        spec = self._spec("translations", spec)
        batches = self._by_topic_pair(ready(questions.rows()))
        translations = self._rows(
            "translations", spec, batches, lambda rows: translation_rows(rows, provider, settings)
        )
        return self._finish(spec, (candidates, pairs, questions, translations))

    def _by_topic_pair(self, rows: Sequence[Row]) -> list[list[Row]]:
        return [[row for row in rows if row["topic_pair"] == subject.id] for subject in self.subjects]

    def _finish(self, spec: Spec, runs: tuple[Run, ...]) -> Construction:
        """Write the release as files in the official format, and read it back."""
        rows = [row for run in runs for row in run.rows()]
        stages = {name: [row for row in rows if row["stage"] == name] for name in ("questions", "translations")}
        pairs, last = assembled(self.subjects, stages["questions"], stages["translations"], self.settings)
        if not pairs:
            remedy = "Look at the reasons in the rows of its runs, and at the settings"
            raise KBookError("nothing is left at the end of the construction", str(runs[0].path.parent), remedy)
        made = Release(pairs, {"made by": self.provider.name, "seed": str(self.seed)})

        def build(folder: Path) -> dict[str, Any]:
            write_release(made, folder)
            return {"digest": made.digest}

        run = self.store.files(self._key("release"), self._spec("release", spec), build, seed=self.seed)
        settings = [setting for setting in SETTINGS if made.of_setting(setting)]
        release = read_release(run.path, settings=settings, languages=made.languages, counts=None)
        return Construction(release, Funnel((*rows, *last)), (*runs, run))

    def _rows(self, name: str, spec: Spec, batches: Sequence[Any], work: Any) -> Run:
        return self.store.rows(self._key(name), spec, batches, work, seed=self.seed)

    def _key(self, name: str) -> DataKey:
        return DataKey(PROTOCOL, name, self.seed, self.provider.name)

    def _spec(self, name: str, before: Spec | None) -> Spec:
        inputs = {"subjects": digest_of([asdict(subject) for subject in self.subjects]), "by": self.provider.digest}
        return Spec(
            {"stage": name, "settings": self.settings, "seed": self.seed},
            ("kbook.construction.pipeline", *self.provider.sources),
            inputs,
            made_from={"before": before} if before else {},
        )
