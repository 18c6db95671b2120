"""O3: requests one after another, adapters beside a model that stays as it is, and whom they are switched on for."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hooks import hooked

from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.errors import KBookError
from kbook.keys import LANES
from kbook.methods import o3
from kbook.methods.contract import FitContext
from kbook.methods.o3 import O3
from kbook.methods.registry import make_method, why_not
from kbook.models.bases import load_base
from kbook.models.decoding import LiveBatch

QUICK = {"epochs": 12, "warmup_steps": 1, "learning_rate": 5e-3, "rho": 0.0}


def deployed(context, tiny_base):
    """The model that the edit wrote, as the cells load it."""
    return replace(load_base(str(context.work)), style=tiny_base.style)


@pytest.fixture(scope="module")
def edited(tiny_base, people, tmp_path_factory):
    """A fit in two requests; the model before and after it, and the facts."""
    context = FitContext(tiny_base, people[:4], people[4:8], people[:6], 0, tmp_path_factory.mktemp("o3"))
    before = copy.deepcopy(tiny_base.model.state_dict())
    facts = make_method("o3", QUICK).edit(context)
    return SimpleNamespace(context=context, facts=facts, before=before, base=deployed(context, tiny_base))


@pytest.fixture
def guard(edited):
    def make(**settings):
        return make_method("o3", {**QUICK, **settings}).guard(replace(edited.context, base=edited.base))

    return make


def replies(base, people, hooks=()):
    queries = [Query(p, "employer") for p in people]
    texts = [base.render(protocol.system_prompt(style=base.style), protocol.question(query.text)) for query in queries]
    for hook in hooks:
        hook.start(base)
        with hook.installed(base):
            return [r.text for r in LiveBatch(base, [(0, q.id, "agent") for q in queries], hooks).reply(texts, 12)]
    return [r.text for r in LiveBatch(base, [(0, q.id, "agent") for q in queries]).reply(texts, 12)]


# ---- fitting ----------------------------------------------------------------------------------------------


def test_refusals_are_learned_request_by_request(edited):
    first, second = edited.facts["requests"]
    assert (first["people"], second["people"]) == (2, 2)
    for request in (first, second):
        assert request["refusal_loss"]["after"] < 0.7 * request["refusal_loss"]["before"] and request["stopped"] == ""
    assert first["overlap"] == 0 < second["overlap"]
    assert second["refusal_loss"]["before"] < first["refusal_loss"]["before"]  # on top of the first adapter


def test_orthogonality_keeps_adapters_apart(edited, tmp_path):
    def overlap(weight):
        context = replace(edited.context, work=tmp_path / str(weight))
        return make_method("o3", {**QUICK, "epochs": 4, "orthogonality": weight}).edit(context)["requests"][1][
            "overlap"
        ]

    assert overlap(10.0) < 0.5 * overlap(0.0)


def test_every_router_has_the_same_adapters(edited, tmp_path):
    """One fit serves them all, and goes on from what the fit for another has left."""
    quick = {**QUICK, "epochs": 1}
    routers = ({}, {"oracle_accuracy": 0.5}, {"routing": "detector", "nu": 0.3, "encoder": "another"})
    methods = [make_method("o3", {**quick, **router}) for router in routers]
    assert all(method.edit_settings == methods[0].edit_settings for method in methods)
    assert make_method("o3", {**quick, "rho": 0.5}).edit_settings != methods[0].edit_settings
    written = []
    for method, folder in zip(methods, ("alone", "shared", "shared"), strict=True):
        method.edit(replace(edited.context, work=tmp_path / folder))
        written.append([file.read_bytes() for file in sorted((tmp_path / folder / o3.ADAPTERS).iterdir())])
    assert written[0] == written[1] == written[2]


def test_the_model_stays_as_it_is(edited, tiny_base):
    for model in (tiny_base.model, edited.base.model):
        assert all(torch.equal(value, edited.before[key]) for key, value in model.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in tiny_base.model.parameters())
    assert hooked(tiny_base) == []


def test_the_fit_is_reproducible_and_seeded(edited, tmp_path):
    def digest(seed):
        context = replace(edited.context, seed=seed, work=tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}")
        method = make_method("o3", {**QUICK, "epochs": 1})
        method.edit(context)
        base = replace(edited.base, source=str(context.work))
        return method.guard(replace(edited.context, base=base)).digest

    assert digest(0) == digest(0) != digest(1)


def test_a_single_request_and_a_retain_term(edited, tmp_path):
    context = replace(edited.context, work=tmp_path)
    facts = make_method("o3", {**QUICK, "epochs": 2, "requests": 1, "rho": 1.0}).edit(context)
    (request,) = facts["requests"]
    assert request["people"] == 4 and request["overlap"] == 0
    assert len(list((tmp_path / o3.ADAPTERS).iterdir())) == 1


@pytest.mark.parametrize(
    "changes, settings, problem",
    [
        ({"fit_forget": ()}, {}, "too few people in the forget fitting pool: 0, where 2 are needed.*n_fit_forget"),
        (
            {},
            {"requests": 5},
            "too few people in the forget fitting pool: 4, where 5 are needed.*settings that need fewer",
        ),
        (
            {"fit_retain": ()},
            {"rho": 1.0},
            "too few people in the retain fitting pool: 0, where 1 are needed.*settings that need fewer",
        ),
    ],
)
def test_missing_people_are_refused(edited, tmp_path, changes, settings, problem):
    with pytest.raises(KBookError, match=problem):
        make_method("o3", {**QUICK, **settings}).edit(replace(edited.context, work=tmp_path, **changes))


# ---- at run time ------------------------------------------------------------------------------------------


def test_people_on_the_list_get_the_adapters_and_others_are_answered_as_before(edited, guard, people):
    plain = replies(edited.base, people)
    treated = replies(edited.base, people, guard().hooks)
    assert all(a != b for a, b in zip(treated[:6], plain[:6], strict=True))
    assert treated[6:] == plain[6:]
    assert replies(edited.base, people) == plain


def test_an_oracle_that_is_always_wrong_turns_it_round(edited, guard, people):
    plain = replies(edited.base, people)
    treated = replies(edited.base, people, guard(oracle_accuracy=0.0).hooks)
    assert treated[:6] == plain[:6]
    assert all(a != b for a, b in zip(treated[6:], plain[6:], strict=True))


def test_the_detector_gives_an_account_of_itself(guard, people, monkeypatch):
    from test_routing import Encoder

    monkeypatch.setattr(o3, "load_encoder", lambda name: Encoder())
    [hook] = guard(routing="detector", nu=0.05).hooks
    assert hook.facts["nu"] == 0.05 and hook.facts["false_alarms"] == pytest.approx(0.5)  # 4, 5 of 4..7 are listed
    assert hook.facts["recognised"] == 1 > hook.facts["recognised, paraphrased"]  # words that it was not fitted to
    assert hook.route(("q", "agent"), protocol.question(Query(people[0], "address").text))
    assert not hook.route(("q", "agent"), protocol.question(Query(people[9], "address").text))


def test_the_digest_says_what_is_switched_on_for_whom(guard, edited, people):
    digests = [guard().digest, guard().digest, guard(oracle_accuracy=0.9).digest]
    assert digests[0] == digests[1] != digests[2]
    context = replace(edited.context, base=edited.base, forget_list=people[:5])
    assert make_method("o3", QUICK).guard(context).digest != digests[0]


def test_a_model_without_adapters_is_refused(tiny_base, edited):
    with pytest.raises(KBookError, match="no adapters beside tiny.*fit them first"):
        make_method("o3", QUICK).guard(edited.context)


def test_adapters_of_another_model_are_refused(edited):
    other = replace(edited.base, digest="0" * 64)
    with pytest.raises(KBookError, match="fitted on another model"):
        make_method("o3", QUICK).guard(replace(edited.context, base=other))


def test_it_reaches_weights_alone_and_says_why():
    assert why_not(O3, "P") is None
    for lane in set(LANES) - {"P"}:
        assert "what the weights remember" in why_not(O3, lane)


@pytest.mark.parametrize(
    "settings", [{"oracle_accuracy": 1.1}, {"routing": "guess"}, {"requests": 0}, {"nu": 0}, {"learning_rate": 0}]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method o3"):
        make_method("o3", settings)
