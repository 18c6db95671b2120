"""The wiring of protocol B: who is asked what, nothing computed twice, whole sweeps, references without a source."""

import pandas as pd
import pytest
from unit_factory import release, topic_pair

from kbook import cllpu_models
from kbook.cllpu import CLLPU, INJECTION_COLUMNS, METHODS, REFERENCES, SIMILARITY_COLUMNS, SWEEP_COLUMNS
from kbook.corpora.units import SETTINGS
from kbook.errors import KBookError
from kbook.examining import Examiner
from kbook.models.bases import load_base
from kbook.profiles import load_profile
from kbook.scoring.accessibility import COLUMNS, EM, ROUGE_L, accessibility, source_and_cross
from kbook.scoring.answered import ANSWER_COLUMNS, FORCED_COLUMNS, Examinee, forced_cells
from kbook.scoring.membership import ATTACKS, attack_aucs
from kbook.scoring.reading import utility
from kbook.scoring.transfer import transfer_frame
from kbook.shipped import Shipped
from kbook.shipping import ship
from kbook.store import Store

LANGUAGES = ("de", "en", "fr")
PROFILE = load_profile("smoke").with_(
    cllpu={
        "base": "tiny",
        "languages": LANGUAGES,
        "unit_pairs": 2,
        "holdout": 2,
        "answer_tokens": 5,
        "encoder": "",
        "forced": ("original", "gd"),
        "reading": {"n": 2},
        "original": {"epochs": 3, "learning_rate": 2e-3},
        "unlearning": {"grids": {"ga": {"learning_rate": [1e-4, 1e-3]}}},
    }
)
WHOLE = release(*(topic_pair(id, 2, 2) for id in ("common_lamps", "de_mills", "en_boats", "fr_bells")))
SOME = {"methods": ("original", "gd"), "sources": ("de",)}


class Letters:
    """An encoder of two letters."""

    name = "letters"

    def encode(self, texts):
        import numpy as np

        found = np.array([[text.count("a") + 1.0, text.count("e") + 1.0] for text in texts], np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def loads(tiny_base):
    """Folders that models were loaded from; None for the plain base."""
    seen = []

    def load(name, *, folder=None, **_):
        seen.append(folder)
        return load_base(str(folder)) if folder else tiny_base

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cllpu_models, "load_base", load)
        patch.setattr(cllpu_models, "base_digest", lambda name, revision=None: f"digest of {name}")
        patch.setenv("KBOOK_WORKERS", "1")
        yield seen


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def make(folder, **options):
    return CLLPU(PROFILE, release=WHOLE, store=Store(folder, PROFILE.name, Shipped(())), **options)


@pytest.fixture(scope="module")
def bench(loads, root):
    return make(root)


@pytest.fixture(scope="module")
def scores(bench):
    return bench.scores(methods=["original", "retrain", "ga", "gd"], sources=["de", "fr"])


# ---- who is asked what -------------------------------------------------------------------------------------


def test_every_unit_is_asked_about_in_every_wording_and_language(bench, scores):
    assert tuple(scores.columns) == COLUMNS and set(scores["measure"]) == {EM, ROUGE_L}
    n = {"common-goal": 2, "conditioned": 2}
    for who, part in scores[scores["method"] == "gd"].groupby(["setting", "source", "role", "language"]):
        assert len(part) == n[who[0]] * 4 * 2 and part["unit"].nunique() == n[who[0]]
    answers = bench.answers(methods=["gd"], sources=["de"])
    assert tuple(answers.columns) == ANSWER_COLUMNS and answers["variant"].dtype == "int64"
    assert set(answers["variant"]) == {0, 1, 2, 3} and answers["s"].isna().all()
    assert (answers["expected"] != "").all() and answers["qa"].nunique() == len(answers)


def test_a_conditioned_model_is_asked_about_the_topics_of_its_source_and_original_about_all(scores):
    conditioned = scores[scores["setting"] == "conditioned"]
    gd = conditioned[conditioned["method"] == "gd"].groupby("source")["topic"].unique()
    assert {source: list(topics) for source, topics in gd.items()} == {"de": ["de_mills"], "fr": ["fr_bells"]}
    original = conditioned[conditioned["method"] == "original"].groupby("source")["topic"].unique()
    assert set(original.index) == set(LANGUAGES) and original["en"].tolist() == ["en_boats"]
    assert "retrain" not in set(conditioned["method"])


def test_source_is_cross_for_models_that_no_language_made_and_for_no_other(scores):
    table = source_and_cross(accessibility(scores[scores["setting"] == "common-goal"]))
    free = table[table["method"].isin(REFERENCES["common-goal"])]
    assert len(free) == 8 and free["source"].tolist() == pytest.approx(free["cross"].tolist())
    assert set(free["n_sources"]) == {3}
    rouge = table[(table["method"] == "gd") & (table["measure"] == ROUGE_L)]
    assert (rouge["source"] != rouge["cross"]).all() and set(rouge["n_sources"]) == {2}


def test_membership_is_of_core_questions_in_the_language_of_the_source(bench):
    found = bench.membership(methods=["original", "gd"], sources=["de"])
    assert tuple(found.columns) == COLUMNS and set(found["measure"]) == set(ATTACKS)
    gd = found[found["method"] == "gd"]
    assert set(gd["language"]) == {"de"} and set(gd["role"]) == {"forget", "holdout"}
    aucs = attack_aucs(found).groupby(["method", "setting"])["source"].unique()
    assert set(aucs["original", "common-goal"]) == set(aucs["original", "conditioned"]) == set(LANGUAGES)
    assert attack_aucs(found)["auc"].between(0, 1).all()


def test_reading_is_asked_in_every_language(bench):
    found = bench.reading(**SOME)
    assert tuple(found.columns) == COLUMNS
    assert set(found.groupby(["method", "setting", "source", "language"]).size()) == {2}
    assert set(utility(found)["n_sources"]) == {3, 1}
    original = found[found["method"] == "original"]
    assert set(original["source"]) == {""}
    both = [part["value"].tolist() for _, part in original.groupby("setting")]
    assert both[0] == both[1]


def test_answers_are_demanded_of_the_named_models_in_every_language(bench):
    found = bench.forced(methods=["original", "gd", "ga"], sources=["de"])
    assert tuple(found.columns) == FORCED_COLUMNS and set(found["method"]) == {"original", "gd"}
    gd = found[found["method"] == "gd"]
    assert set(gd["language"]) == {"de"} and set(gd["demanded"]) == set(LANGUAGES)
    row = gd[gd["demanded"] == "fr"].iloc[0]
    assert row["expected"].startswith("fr ") and "-de-" in row["qa"]
    matrix = forced_cells(found[(found["method"] == "original") & (found["setting"] == "common-goal")])
    assert len(matrix) == 3 * 3 * 2 * 2 and set(matrix["n"]) == {2}


def test_the_judge_sees_english_sources_and_a_rule_is_named(bench, root):
    found = bench.judged(methods=["original", "gd"], sources=["de"])
    assert tuple(found.columns) == COLUMNS and set(found["measure"]) == {"judge"} and "rule" in bench.judge_name
    assert set(found[found["setting"] == "conditioned"]["source"]) == {"de"}
    assert bench.judged.__defaults__[-1] == ("en",)


def test_a_judge_that_must_be_asked_is_asked_once(bench, root):
    class Asked:
        name = "some/model"
        n = 0

        def judge(self, question, expected, answer, language):
            self.n += 1
            return 0.25

    judge = Asked()
    for _ in range(2):
        found = make(root, judge=judge).judged(methods=["original"], sources=["de"])
    said = make(root).answers(methods=["original"])["said"]
    assert set(found["value"]) <= {0.25, 0.0} and 0 < judge.n <= (said != "").sum()


def test_pairs_of_expected_answers_are_compared(bench, monkeypatch):
    assert bench.paired_similarity()["s"].isna().all()
    monkeypatch.setattr(type(bench), "_encoder", Letters())
    named = CLLPU(PROFILE.with_(cllpu={"encoder": "letters"}), release=WHOLE, store=bench.store)
    found = named.paired_similarity()
    assert tuple(found.columns) == SIMILARITY_COLUMNS and found["s"].between(0, 1 + 1e-6).all()
    assert len(found) == 4 * 2 * 3 and found["pair"].nunique() == 8 and set(found["source"]) == {"", *LANGUAGES}


# ---- models ------------------------------------------------------------------------------------------------


def test_original_is_taught_both_roles_and_retrain_one(bench):
    original, retrain = (bench.lessons(name) for name in ("original", "retrain"))
    assert {qa.layer for qa in original} == {"core"} and len(original) == 4 * 2 * 2 * 3
    assert {qa.role for qa in original} == {"forget", "retain"} and {qa.role for qa in retrain} == {"retain"}
    base = bench.answers(methods=["base"])
    assert len(base) == 4 * 2 * 2 * 4 * 3 and base[EM].sum() == 0
    found = bench.injection()
    assert tuple(found.columns) == INJECTION_COLUMNS and found["documents"].tolist() == [48, 24]
    assert set(bench.loss_curves()["method"]) <= {"original", "retrain"}


def test_the_whole_sweep_is_stored_and_the_rule_chooses(bench, scores):
    found = bench.sweep(methods=["ga", "gd"], sources=["de", "fr"])
    assert tuple(found.columns) == SWEEP_COLUMNS
    for (method, *_), part in found.groupby(["method", "setting", "source"]):
        n_settings = len(bench.grid(method))
        assert sorted(part["epoch"]) == sorted([1, 2] * n_settings) and part["chosen"].sum() == 1
        assert part["learning_rate"].nunique() == n_settings
        assert part.loc[part["chosen"], "score"].item() == part["score"].max()
    assert found["score"].tolist() == pytest.approx(
        (0.5 * (1 - found["target"]) + 0.5 * found["neighbour"]).tolist(), abs=2e-6
    )
    assert found.loc[found["method"] == "ga", "alpha"].isna().all() and "0.5" in bench.screening


def test_the_screened_scores_are_those_of_the_core_answers_in_the_source(bench, scores):
    """The chosen checkpoint answers as it did when it was judged."""
    best = bench.chosen("common-goal", "ga", "fr")
    core = scores[(scores["method"] == "ga") & (scores["source"] == "fr") & (scores["setting"] == "common-goal")]
    core = core[(core["layer"] == "core") & (core["language"] == "fr") & (core["measure"] == ROUGE_L)]
    means = core.groupby("role")["value"].mean()
    assert means["forget"] == pytest.approx(best.target, abs=1e-4)
    assert means["retain"] == pytest.approx(best.neighbour, abs=1e-4)


def test_a_checkpoint_that_is_not_held_is_made_again(bench, root):
    who = ("common-goal", "gd", "de")
    again = make(root)
    held, made = bench.model(*who).model.state_dict(), again.model(*who).model.state_dict()
    assert all(value.equal(made[name]) for name, value in held.items())


def test_unlearning_in_one_language_can_be_compared_with_the_original(scores):
    found = transfer_frame(scores[scores["setting"] == "common-goal"])
    assert {"gd", "ga"} >= set(found["method"]) and set(found["source"]) <= {"de", "fr"}


# ---- runs --------------------------------------------------------------------------------------------------


def test_what_was_answered_is_read_without_a_model(bench, scores, loads, root):
    loads.clear()
    later = make(root)
    pd.testing.assert_frame_equal(
        later.scores(methods=["original", "retrain", "ga", "gd"], sources=["de", "fr"]), scores
    )
    assert loads == [] and len(later.runs) == 2 + 1 + 2 * 4
    assert {run.key.protocol for run in later.runs} == {"cllpu"}


def test_a_narrow_call_computes_what_it_names(loads, tmp_path):
    small = make(tmp_path)
    small.scores(["common-goal"], ["gd"], ["fr"])
    assert sorted(str(run.key) for run in small.store.find()) == [
        "cllpu/tiny/common-goal/gd/fr/seed=0",
        "cllpu/tiny/common-goal/gd/fr/seed=0/variant=sweep",
        "cllpu/tiny/model=original/seed=0",
    ]


@pytest.mark.parametrize("broken", ["sweep", "answers"])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(bench, scores, loads, tmp_path, monkeypatch, broken):
    who = Examinee("ga", "common-goal", "fr")
    calls = []

    class Killed(Exception):
        pass

    def dying(function):
        def call(*arguments, **options):
            calls.append(1)
            if len(calls) == 2:
                raise Killed
            return function(*arguments, **options)

        return call

    late = make(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        target, name = (CLLPU, "_try") if broken == "sweep" else (Examiner, "rows")
        patch.setattr(target, name, dying(getattr(target, name)))
        late.examined(who)
    assert late.store.unfinished()
    done = make(tmp_path).examined(who)
    assert done.file("rows.jsonl").read_bytes() == bench.examined(who).file("rows.jsonl").read_bytes()


def test_results_ship_without_weights_and_are_read_from_an_empty_store(bench, scores, loads, root, tmp_path):
    loads.clear()
    sizes = ship(Store(root, PROFILE.name, Shipped(())), PROFILE.name, tmp_path / "results")
    assert [path.name for path in sizes if "tiny" in path.name] == ["smoke.cllpu.tiny.parquet"]
    reader = CLLPU(PROFILE, release=WHOLE, store=Store(tmp_path / "empty", PROFILE.name, Shipped(sizes)))
    found = reader.scores(methods=["original", "retrain", "ga", "gd"], sources=["de", "fr"])
    pd.testing.assert_frame_equal(found, scores)
    assert reader.sweep(methods=["ga"], sources=["fr"])["chosen"].sum() == 2
    assert reader.injection()["documents"].tolist() == [48, 24]
    assert loads == [] and not list((tmp_path / "empty").rglob("*.safetensors"))


def test_another_grid_is_another_model_and_another_judge_is_not(bench):
    who = Examinee("gd", "common-goal", "de")
    other = CLLPU(PROFILE.with_(cllpu={"unlearning": {"grids": {"gd": {"learning_rate": [2e-3]}}}}), release=WHOLE)
    same = CLLPU(PROFILE.with_(cllpu={"unlearning": {"grids": {"npo": {"learning_rate": [2e-3]}}}}), release=WHOLE)
    assert other._spec(who).digest != bench._spec(who).digest == same._spec(who).digest
    assert other.taught_spec().digest == bench.taught_spec().digest


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bench: bench.scores(["conditional"]), "Did you mean conditioned"),
        (lambda bench: bench.scores(methods=["gx"]), "unknown method 'gx'"),
        (lambda bench: bench.scores(sources=["xx"]), "unknown source language 'xx'"),
        (lambda bench: bench.taught("retrained"), "Did you mean retrain"),
        (lambda bench: bench.grid("rmu"), "unknown method with a grid 'rmu'"),
    ],
    ids=["setting", "method", "source", "reference", "grid"],
)
def test_unknown_names_are_refused(bench, call, message):
    with pytest.raises(KBookError, match=message):
        call(bench)


def test_the_six_methods_and_both_settings_are_the_papers():
    profile = load_profile("paper").cllpu
    assert tuple(profile.unlearning.grids) and set(profile.unlearning.grids) == set(METHODS)
    bench = CLLPU("paper", release=WHOLE)
    assert [len(bench.grid(name)) for name in METHODS] == [3, 3, 6, 12, 12, 24]
    assert SETTINGS == tuple(REFERENCES)
