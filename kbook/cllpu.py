"""Protocol B from end to end: the one place where release, models, methods and scoring are wired together.

    bench = CLLPU("laptop")
    scores = bench.scores()                                  # every model, every language, every answer
    table = source_and_cross(accessibility(scores))          # kbook.scoring.accessibility

Nothing is computed twice: taught models, sweeps and what each model answered are runs of the store, found again by a
digest of everything that decides them. Models are loaded only when a run is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property
from itertools import product
from typing import Any

import pandas as pd

from kbook.cllpu_models import BASE, METHODS, ORIGINAL, PROTOCOL, REFERENCES, SEED, CLLPUModels
from kbook.corpora.belebele import ReadingQuestion, read_belebele
from kbook.corpora.reading_sets import generated_reading
from kbook.corpora.units import SETTINGS, Release
from kbook.corpora.worlds import load_world
from kbook.digests import Spec, digest_of
from kbook.errors import unknown_name
from kbook.keys import CellKey, DataKey, base_segment, check_name
from kbook.methods.registry import make_method
from kbook.profiles import Profile
from kbook.scoring.accessibility import COLUMNS, Encoder, Judge, RuleJudge, similarity
from kbook.scoring.answered import (
    ANSWER_COLUMNS,
    FORCED_COLUMNS,
    READING,
    Examinee,
    answers_frame,
    forced_frame,
    judge_values,
    judged_frame,
    membership_frame,
    scores_frame,
)
from kbook.scoring.reading import reading_scores
from kbook.store import Run, Store
from kbook.workers import side_by_side, workers

__all__ = ["METHODS", "REFERENCES", "CLLPU"]

READING_SEED, READING_TOPICS = 7, 60
"""Of the background that reading questions are made from: another than any base has read about."""
SETTINGS_SWEPT = ("learning_rate", "beta", "gamma", "alpha", "margin", "temperature")
SWEEP_COLUMNS = (
    *("method", "setting", "source", *SETTINGS_SWEPT),
    *("epoch", "target", "neighbour", "score", "chosen", "stopped"),
)
INJECTION_COLUMNS = ("method", "documents", "epochs", "steps", "tokens", "learning_rate", "seconds", "stopped")
SIMILARITY_COLUMNS = ("setting", "source", "language", "topic", "pair", "s")
JUDGED_AT_ONCE = 50

Chosen = Sequence[str] | None


class CLLPU(CLLPUModels):
    """One profile and one base of protocol B.

    Args:
        profile: a name or a loaded profile.
        release_folder: the ``data`` folder of the official release; "" for the release of the profile's world.
        base: an embedded base, a local folder or a hub id; "" for the profile's.
        reading_folder: Belebele's files; "" for questions generated from a background of the world.
        judge: scores answers; by default a rule (`RuleJudge`). Any other is asked once for each answer.
        release: a release to use instead.
        store: by default the project's run store.
    """

    def __init__(
        self,
        profile: str | Profile = "laptop",
        release_folder: str = "",
        base: str = "",
        *,
        reading_folder: str = "",
        judge: Judge | None = None,
        release: Release | None = None,
        store: Store | None = None,
    ) -> None:
        super().__init__(profile, release_folder, base, release=release, store=store)
        self.reading_folder = reading_folder
        self.judge: Judge = judge or RuleJudge()
        self._answered: dict[Examinee, pd.DataFrame] = {}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_answered": {}}

    # ---- who measures -------------------------------------------------------------------------------------

    @property
    def encoder_name(self) -> str:
        """The sentence encoder of S; "" for none."""
        return self.sizes.encoder

    @property
    def judge_name(self) -> str:
        """Who judges answers."""
        return self.judge.name

    @property
    def reading_name(self) -> str:
        """Where reading questions come from, and how their options are weighed."""
        origin = "Belebele" if self.reading_folder else f"generated from a background of {self.sizes.world}"
        return f"{origin}, {self.sizes.reading.weighed} weighed"

    @property
    def screening(self) -> str:
        """The screening rule as a formula in LaTeX: T and N are ROUGE-L of target and neighbour in the source."""
        weight = self.sizes.unlearning.target_weight
        return rf"\mathrm{{score}} = {weight:g}\,(1 - T) + {1 - weight:g}\,N"

    @cached_property
    def reading_questions(self) -> Mapping[str, tuple[ReadingQuestion, ...]]:
        """Language → reading questions."""
        n = self.sizes.reading.n
        if self.reading_folder:
            read = read_belebele(self.reading_folder, self.languages)
            return {code: questions[:n] for code, questions in read.items()}
        background = load_world(self.sizes.world).background(READING_SEED, READING_TOPICS)
        return generated_reading(background, n, languages=self.languages)

    # ---- what each model is asked -------------------------------------------------------------------------

    def examined(self, who: Examinee) -> Run:
        """All that one model answered: rows of the kinds of `kbook.scoring.answered`.

        Raises:
            KBookError: unknown setting, method or source; a reference that the setting has not.
        """
        from kbook.examining import BATCHES_AT_ONCE, Examiner, sheet

        forced = who.method in self.sizes.forced
        asked = sheet(
            self.release, who.setting, self.languages, self.reading_questions, source=who.source, demands=forced
        )
        batches = asked.batches(BATCHES_AT_ONCE * self.sizes.at_once)
        model = cache(lambda: self.model(who.setting, who.method, who.source))
        examiner = Examiner(self.sizes, self._encoder)

        def work(batch: tuple[str, Sequence[Any]]) -> list[dict[str, Any]]:
            return examiner.rows(model(), *batch)

        return self._read(self.store.rows(self._key(who), self._spec(who), batches, work, seed=SEED))

    def _models(self, settings: Sequence[str], methods: Chosen, sources: Chosen) -> list[Examinee]:
        """The models of a call, all of them examined; those that were not are, side by side."""
        found = list(self._examinees(settings, methods, sources))
        missing = [who for who in found if not self.store.lookup(self._key(who), self._spec(who))]
        most = workers(self.profile.device)
        if min(most, len(missing)) > 1:
            for name in {ORIGINAL if who.source else who.method for who in missing} - {BASE}:
                self.taught(name)
            side_by_side(_examine, [(self, who) for who in missing], most)
        return found

    def _key(self, who: Examinee, variant: str = "") -> CellKey:
        segment = base_segment(self.base_name)
        return CellKey(PROTOCOL, segment, who.setting, who.method, who.source or "all", SEED, variant)

    def _spec(self, who: Examinee) -> Spec:
        sizes = self.sizes
        parameters = {
            "setting": who.setting,
            "limits": [sizes.answer_tokens, sizes.at_once, sizes.token_budget],
            "encoder": sizes.encoder,
            "reading": sizes.reading.weighed,
            "forced": who.method in sizes.forced,
            "dtype": self.profile.dtype,
        }
        made_from = {}
        if who.method != BASE:
            sweep = (who.setting, who.method, who.source)
            made_from = {"model": self.sweep_spec(*sweep) if who.source else self.taught_spec(who.method)}
        return Spec(
            parameters,
            ("kbook.examining", "kbook.models.multilingual_embedding"),
            {"release": self.release.digest, "reading": self._reading_digest},
            self._base_digest,
            made_from,
        )

    @cached_property
    def _reading_digest(self) -> str:
        return digest_of({code: [asdict(each) for each in found] for code, found in self.reading_questions.items()})

    @property
    def _encoder(self) -> Encoder | None:
        from kbook.models.multilingual_embedding import load_multilingual_encoder

        return load_multilingual_encoder(self.sizes.encoder) if self.sizes.encoder else None

    def _examinees(self, settings: Sequence[str], methods: Chosen, sources: Chosen) -> Iterator[Examinee]:
        """The models of a call, references first; a reference that a setting has not is left out."""
        for setting in settings:
            check_name("setting", setting, SETTINGS)
            for method in methods if methods is not None else (*REFERENCES[setting], *self.methods):
                if method in (BASE, *REFERENCES["common-goal"]):
                    yield from [Examinee(method, setting)] * (method in (BASE, *REFERENCES[setting]))
                    continue
                check_name("method", method, self.methods)
                yield from (Examinee(method, setting, source) for source in self._sources(setting, sources))

    def _sources(self, setting: str, sources: Chosen) -> Iterator[str]:
        for source in sources if sources is not None else self.languages:
            if source not in self.languages:
                raise unknown_name("source language", source, self.languages)
            if self.release.of_setting(setting, source):
                yield source

    # ---- frames -------------------------------------------------------------------------------------------

    def answers(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None
    ) -> pd.DataFrame:
        """What each model answered, in every language and wording (`kbook.scoring.answered.answers_frame`).

        Args:
            settings: of `SETTINGS`.
            methods: by default the references ("original", "retrain") and all methods; "base" is the base before it was
                taught anything.
            sources: languages of unlearning; by default all. References are always whole.
        """
        return _joined(map(self._answers, self._models(settings, methods, sources)), ANSWER_COLUMNS)

    def _answers(self, who: Examinee) -> pd.DataFrame:
        if who not in self._answered:
            self._answered[who] = answers_frame(self.examined(who).rows(), self.release, who)
        return self._answered[who]

    def scores(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None
    ) -> pd.DataFrame:
        """EM, ROUGE-L and S of each answer, a measure a row (`kbook.scoring.answered.scores_frame`)."""
        return scores_frame(self.answers(settings, methods, sources))

    def judged(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Sequence[str] = ("en",)
    ) -> pd.DataFrame:
        """The judge's score of each answer; in the paper for English sources alone."""
        frames = []
        for who in self._models(settings, methods, sources):
            answers = self._answers(who)
            answers = answers[answers["source"].isin(("", *sources))].reset_index(drop=True)
            frames.append(judged_frame(answers, self._judgement(who, answers)))
        return _joined(frames, COLUMNS)

    def _judgement(self, who: Examinee, answers: pd.DataFrame) -> list[float]:
        """Scores of answers, in their order; those of a judge that must be asked are stored."""
        if isinstance(self.judge, RuleJudge):
            return judge_values(answers, self.release, self.judge)

        def work(batch: pd.DataFrame) -> list[dict[str, Any]]:
            values = judge_values(batch, self.release, self.judge)
            return [{"value": value if value == value else None} for value in values]

        parts = [answers[i : i + JUDGED_AT_ONCE] for i in range(0, len(answers), JUDGED_AT_ONCE)]
        asked = {"judge": self.judge.name, "sources": sorted(set(answers["source"]))}
        spec = Spec(asked, ("kbook.scoring.answered",), made_from={"answers": self._spec(who)})
        key = self._key(who, f"judge-{_segment(self.judge.name)}")
        rows = self._read(self.store.rows(key, spec, parts, work)).rows()
        return [float("nan") if row["value"] is None else row["value"] for row in rows]

    def membership(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None
    ) -> pd.DataFrame:
        """Four membership scores of each core question to forget and of the holdout, in the language of the source."""
        found = self._models(settings, methods, sources)
        frames = (membership_frame(self.examined(who).rows(), self.release, who) for who in found)
        return _joined(frames, COLUMNS)

    def reading(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None
    ) -> pd.DataFrame:
        """Whether each reading question was answered rightly (`kbook.scoring.reading.reading_scores`)."""
        return _joined(map(self._reading, self._models(settings, methods, sources)), COLUMNS)

    def _reading(self, who: Examinee) -> pd.DataFrame:
        known = {(each.language, each.id): each for found in self.reading_questions.values() for each in found}
        rows = [row for row in self.examined(who).rows() if row["kind"] == READING]
        questions = [known[row["language"], row["id"]] for row in rows]
        log_probs = [[float("nan") if value is None else value for value in row["log_probs"]] for row in rows]
        return reading_scores(questions, log_probs, **asdict(who))

    def forced(
        self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None
    ) -> pd.DataFrame:
        """Answers that were demanded in every language, of the models that the profile names for it."""
        chosen = [name for name in self.sizes.forced if methods is None or name in methods]
        found = self._models(settings, chosen, sources)
        frames = (forced_frame(self.examined(who).rows(), self.release, who) for who in found)
        return _joined(frames, FORCED_COLUMNS)

    def sweep(self, settings: Sequence[str] = SETTINGS, methods: Chosen = None, sources: Chosen = None) -> pd.DataFrame:
        """Every judged checkpoint, and which one the screening rule chose.

        *Shape*: columns `SWEEP_COLUMNS`. *Missing*: a setting that the method has not is nan; an epoch that a broken
        run did not reach has no row.
        """
        found = (who for who in self._models(settings, methods, sources) if who.source)
        return _joined(map(self._sweep, found), SWEEP_COLUMNS)

    def _sweep(self, who: Examinee) -> pd.DataFrame:
        best = self.chosen(who.setting, who.method, who.source)
        lines = []
        for row in self.sweep_of(who.setting, who.method, who.source).rows():
            used = make_method(who.method, row["settings"]).settings.model_dump()
            swept = (float(used.get(name, "nan")) for name in SETTINGS_SWEPT)
            judged = (row["epoch"], row["target"], row["neighbour"], row["score"])
            chosen = (row["settings"], row["epoch"]) == (best.settings, best.epoch)
            lines.append((who.method, who.setting, who.source, *swept, *judged, chosen, row["stopped"]))
        return pd.DataFrame(lines, columns=list(SWEEP_COLUMNS))

    def injection(self) -> pd.DataFrame:
        """What teaching Original and Retrain took.

        *Shape*: one row a model, columns `INJECTION_COLUMNS`. *Unit*: ``seconds`` of the machine that did it.
        """
        how = self.sizes.original
        lines = []
        for name in REFERENCES[SETTINGS[0]]:
            facts = self.taught(name, account=True).manifest.extra
            steps = (facts["documents"], how.epochs, facts["steps"], facts["tokens"])
            lines.append((name, *steps, how.learning_rate, facts["seconds"], facts["stopped"]))
        return pd.DataFrame(lines, columns=list(INJECTION_COLUMNS))

    def loss_curves(self) -> pd.DataFrame:
        """How the loss fell as Original and Retrain were taught.

        *Shape*: columns ``method``, ``step`` and ``loss``. *Unit*: nats per token, a mean of ten steps.
        """
        runs = {name: self.taught(name, account=True) for name in REFERENCES[SETTINGS[0]]}
        lines = [(name, *point) for name, run in runs.items() for point in run.manifest.extra["losses"]]
        return pd.DataFrame(lines, columns=["method", "step", "loss"])

    def paired_similarity(self, settings: Sequence[str] = SETTINGS) -> pd.DataFrame:
        """How alike the expected answers of a pair of units are, in each language.

        *Shape*: columns `SIMILARITY_COLUMNS`. *Unit*: cosine. *Missing*: nan without an encoder.

        Source: CLLPU, appendix C.1, figure 10.
        """
        found = [
            (setting, topic.source or "", code, topic.id, pair)
            for setting in settings
            for topic in self.release.of_setting(setting)
            for pair, code in product(topic.pairs, self.languages)
        ]
        values = self._paired([(row[-1], row[2]) for row in found])
        lines = [(*row[:-1], row[-1].id, value) for row, value in zip(found, values, strict=True)]
        return pd.DataFrame(lines, columns=list(SIMILARITY_COLUMNS)).astype({"s": float})

    def _paired(self, pairs: Sequence[tuple[Any, str]]) -> list[float]:
        if not self.sizes.encoder or not pairs:
            return [float("nan")] * len(pairs)
        texts = [[side.qas[code][0].answer for side in (pair.forget, pair.retain)] for pair, code in pairs]
        key = DataKey(PROTOCOL, "paired-similarity", SEED, _segment(self.sizes.encoder))
        sources = ("kbook.models.multilingual_embedding", "kbook.scoring.accessibility")
        spec = Spec({"encoder": self.sizes.encoder}, sources, {"texts": digest_of(texts)})

        def work(batch: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
            assert self._encoder
            values = similarity(self._encoder, *zip(*batch, strict=True))
            return [{"s": round(float(value), 5)} for value in values]

        return [row["s"] for row in self._read(self.store.rows(key, spec, [texts], work, seed=SEED)).rows()]


def _examine(bench: CLLPU, who: Examinee) -> None:
    bench.examined(who)


def _joined(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    found = [frame for frame in frames if len(frame)]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(columns))


def _segment(name: str) -> str:
    """A name as a segment of a key."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", base_segment(name)).strip("-._+")[:60]
