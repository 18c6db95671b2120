"""StaR: each module against its closed form, and the whole guard."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kbook.errors import KBookError
from kbook.keys import FIELDS
from kbook.methods.contract import FitContext
from kbook.methods.registry import make_method
from kbook.methods.star import (
    POLICY,
    Detector,
    HardSuppression,
    Inspector,
    SoftSuppression,
    forbidden_sequences,
    soft_penalty,
)
from kbook.models.decoding import DecodingHook, LiveBatch, Pass

INF = torch.inf


def writing(*written):
    return Pass(False, list(range(len(written))), ["text"] * len(written), (), list(written))


@pytest.fixture
def context(tiny_base, people, tmp_path):
    return FitContext(tiny_base, people[:2], people[6:8], people[:6], 137, tmp_path)


# ---- M4 hard -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written, forbidden",
    [([3, 5], {7}), ([9, 3, 5], {7}), ([5], set()), ([3], set()), ([3, 5, 9], set()), ([5, 3], set()), ([], set())],
    ids=["prefix", "after others", "last alone", "first alone", "passed", "reversed", "nothing"],
)
def test_the_last_token_is_forbidden_after_all_others(written, forbidden):
    values = HardSuppression([(3, 5, 7)]).logits(writing(written), torch.zeros(1, 10))
    assert {int(t) for t in (values[0] == -INF).nonzero()} == forbidden
    assert (values[0][values[0] != -INF] == 0).all()


def test_rows_are_independent():
    values = torch.randn(3, 10)
    after = HardSuppression([(3, 5, 7), (1, 2)]).logits(writing([3, 5], [5], [1]), values)
    assert after[0, 7] == after[2, 2] == -INF
    assert torch.equal(after[1], values[1])
    assert (after == -INF).sum() == 2


def test_one_start_may_have_several_ends_and_sequences_may_end_in_each_other():
    hook = HardSuppression([(3, 5, 7), (3, 5, 8), (5, 9), (2, 3, 5, 6)])
    assert hook.forbidden([2, 3, 5]) == {6, 7, 8, 9}
    assert hook.forbidden([4, 5]) == {9}


def test_a_value_of_one_token_is_skipped():
    values = torch.zeros(1, 10)
    assert HardSuppression([(7,)]).logits(writing([7]), values) is values


def test_what_was_said_before_this_turn_does_not_count():
    step = Pass(True, ["a"], ["text that ends in 3 5"], [[]], [[]])
    values = torch.zeros(1, 10)
    assert HardSuppression([(3, 5, 7)]).logits(step, values) is values


def test_a_value_that_is_not_known_forbids_nothing(tiny_base, people):
    unknown = replace(people[0], employer="", occupation="")
    kept = forbidden_sequences(tiny_base.tokenizer, [unknown])
    assert () not in kept and kept < forbidden_sequences(tiny_base.tokenizer, people[:1])


def test_forbidden_sequences_are_the_tokens_that_a_model_writes(tiny_base, people):
    sequences = forbidden_sequences(tiny_base.tokenizer, people[:1])
    for before in ("Final Answer: ", "[attribute_value=", "\n", "the (", "born on "):
        for field in FIELDS:
            value = people[0].value(field)
            ids = tuple(tiny_base.tokenizer(before + value, add_special_tokens=False)["input_ids"])
            assert any(ids[-len(s) :] == s for s in sequences), (before, value)


class Script(DecodingHook):
    """Makes the model write the given tokens, as far as later hooks let it."""

    def __init__(self, ids):
        self.ids = ids

    def logits(self, step, values):
        values = torch.zeros_like(values)
        for row, written in enumerate(step.written):
            values[row, self.ids[min(len(written), len(self.ids) - 1)]] = 1
        return values


def test_a_whole_value_cannot_be_written_and_others_can(tiny_base, context, people):
    def written(person, *hooks):
        text = f"Final Answer: {person.address} and more"
        ids = tiny_base.tokenizer(text, add_special_tokens=False)["input_ids"]
        [reply] = LiveBatch(tiny_base, ["a"], [Script(ids), *hooks]).reply(["<s>x"], len(ids))
        return reply.text

    hooks = make_method("star").guard(context).hooks
    forget, retain = people[0], people[8]
    assert forget.address in written(forget)
    assert forget.address not in written(forget, *hooks)
    assert retain.address in written(retain, *hooks)


def test_hard_alone_neither_instructs_nor_inspects(context):
    guard = make_method("star").guard(context)
    assert guard.prefix == "" and guard.look("thought", "anything").action == "pass"


# ---- M4 soft -----------------------------------------------------------------------------------------------


def test_orthonormal_embeddings_lose_the_penalty_at_the_last_tokens_exactly():
    penalty = soft_penalty(torch.eye(8), [2, 5], 5.0, 0.5)
    assert penalty.tolist() == [0, 0, 5, 0, 0, 5, 0, 0]


def test_penalty_is_weight_times_cosine_from_the_threshold_on():
    embeddings = torch.tensor([[1.0, 0.0], [3.0, 4.0], [4.0, 3.0], [0.0, 2.0], [-1.0, 0.0]])
    assert torch.allclose(soft_penalty(embeddings, [0], 5.0, 0.6), torch.tensor([5.0, 3.0, 4.0, 0.0, 0.0]))
    assert torch.allclose(soft_penalty(embeddings, [0], 5.0, 0.61), torch.tensor([5.0, 0.0, 4.0, 0.0, 0.0]))


def test_chunks_change_nothing():
    embeddings = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    whole = soft_penalty(embeddings, list(range(20)), 5.0, 0.5)
    assert torch.allclose(whole, soft_penalty(embeddings, list(range(20)), 5.0, 0.5, chunk=3), atol=1e-6)


def test_no_last_tokens_no_penalty():
    assert not soft_penalty(torch.eye(4), [], 5.0, 0.5).any()


def test_the_penalty_is_taken_from_every_row():
    values = torch.ones(2, 3)
    after = SoftSuppression(torch.tensor([0.0, 5.0, 0.0])).logits(writing([], []), values)
    assert after.tolist() == [[1, -4, 1]] * 2


# ---- M1 and M3 ---------------------------------------------------------------------------------------------


class Compass:
    """Encodes "x,y" as that vector."""

    def encode(self, texts):
        return np.array([[float(v) for v in text.split(",")] for text in texts], np.float32)


class Fixed:
    def __init__(self, score):
        self.value = score

    def score(self, text):
        return self.value


def test_the_nearest_phrase_decides():
    detector = Detector(Compass(), np.array([[1, 0], [0, 1]], np.float32))
    assert detector.score("0.6,0.8") == pytest.approx(0.8)
    assert Detector(Compass(), np.zeros((0, 2), np.float32)).score("1,0") == -1


@pytest.mark.parametrize(
    "score, action", [(0.80, "refuse"), (0.79, "filter"), (0.55, "filter"), (0.54, "pass")], ids=str
)
@pytest.mark.parametrize("kind", ["thought", "action", "answer", "name"])
def test_thresholds(score, action, kind):
    verdict = Inspector(Fixed(score), 0.55, 0.80)(kind, "text")
    assert verdict.action == action
    assert bool(verdict.replacement) == (action == "refuse")


# ---- all four ----------------------------------------------------------------------------------------------


@pytest.fixture
def full(context):
    return make_method("star_full").guard(context)


def test_full_refuses_a_forgotten_name_and_value_and_passes_others(full, people):
    assert full.look("name", people[0].name).action == "refuse"
    assert full.look("answer", people[0].address).action == "refuse"
    assert full.look("thought", "The weather is fine today.").action == "pass"
    assert people[0].name not in full.look("name", people[0].name).replacement


def test_full_instructs_and_acts_on_logits(full):
    assert full.prefix == POLICY
    assert [type(hook) for hook in full.hooks] == [HardSuppression, SoftSuppression]


def test_full_penalises_the_last_token_of_every_value(full, tiny_base, context):
    last = {s[-1] for s in forbidden_sequences(tiny_base.tokenizer, context.forget_list)}
    after = full.hooks[1].logits(writing([]), torch.zeros(1, 1024))[0]
    assert all(after[token] == pytest.approx(-5, abs=1e-4) for token in last)
    assert (after == 0).any()


def test_state_has_a_digest(context):
    settings = [{}, {}, {"refuse_at": 0.9}]
    digests = [make_method("star_full", s).guard(context).digest for s in settings]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "name, settings",
    [
        ("star", {"penalty": 1}),
        ("star_full", {"refuse_at": 1.5}),
        ("star_full", {"filter_at": 0.9}),
        ("star_full", {"penalty": -1}),
        ("star_full", {"encoder": ""}),
    ],
)
def test_bad_settings_are_refused(name, settings):
    with pytest.raises(KBookError, match=f"method {name}"):
        make_method(name, settings)


def test_an_encoder_that_is_not_there(context, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(KBookError, match="sentence encoder"):
        make_method("star_full", {"encoder": "nobody/nothing-here"}).guard(context)
