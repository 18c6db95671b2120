"""ECO: noise where the name is, for whom it is meant, and nowhere else."""

import copy

import pytest
import torch
from hooks import hooked

from kbook.corpora import protocol
from kbook.corpora.people import Query
from kbook.corpora.wordings import SUMMARY_PROMPTS
from kbook.errors import KBookError
from kbook.methods.contract import FitContext
from kbook.methods.registry import make_method
from kbook.models.decoding import LiveBatch, Pass


@pytest.fixture
def context(tiny_base, people, tmp_path):
    return FitContext(tiny_base, people[:2], people[6:8], people[:6], 137, tmp_path)


@pytest.fixture
def eco(context, tiny_base):
    def make(**settings):
        [hook] = make_method("eco", settings).guard(context).hooks
        hook.start(tiny_base)
        return hook

    return make


def prompt(base, person, biographies=()):
    system = protocol.system_prompt(biographies=list(biographies), style=base.style)
    return base.render(system, protocol.question(Query(person, "employer").text))


def changed_tokens(before, after):
    return (before != after).any(-1)


def test_only_name_tokens_and_first_dimensions_change(eco, reading, tiny_base, people):
    name = people[0].name
    text = prompt(tiny_base, people[0], [people[0].titled, people[7].titled]) + f"Thought: {name}, ={name} ({name})"
    step, values = reading([text], ["a"])
    after = eco(k=3).embeddings(step, values)
    for token, (start, end) in enumerate(step.spans[0]):
        inside = any(start < m + len(name) and m < end for m in range(len(text)) if text.startswith(name, m))
        differs = values[0, token] != after[0, token]
        assert differs[:3].all() if inside else not differs.any()
        assert not differs[3:].any()


@pytest.mark.parametrize("around", ["={}", "({})", "\n{}", "{}'s", " {}", "[name={}, x]", '"{}"'])
def test_no_surrounding_hides_a_name(eco, reading, tiny_base, people, around):
    text = prompt(tiny_base, people[0]) + "Thought: " + around.format(people[0].name)
    step, values = reading([text], ["a"])
    changed = changed_tokens(values, eco().embeddings(step, values))[0]
    covered = [span for token, span in enumerate(step.spans[0]) if changed[token]]
    start = text.rindex(people[0].name)
    characters = {c for first, last in covered for c in range(first, last)}
    assert set(range(start, start + len(people[0].name))) <= characters


def test_noise_has_the_strength_asked_for(eco, reading, tiny_base, people):
    text = prompt(tiny_base, people[0]) + f" {people[0].name}" * 80
    step, values = reading([text], ["a"])
    noise = (eco(s=100.0, k=8).embeddings(step, values) - values)[0]
    drawn = noise[noise.any(-1)][:, :8]
    assert drawn.numel() > 1500
    assert drawn.std().item() == pytest.approx(100, rel=0.06)
    assert drawn.mean().item() == pytest.approx(0, abs=8)


def test_strength_zero_is_the_identity(eco, reading, tiny_base, people):
    step, values = reading([prompt(tiny_base, people[0])], ["a"])
    assert torch.equal(eco(s=0).embeddings(step, values), values)


def test_a_retain_query_is_left_alone_whoever_is_in_its_context(eco, reading, tiny_base, people):
    retain, forget = people[8], people[0]
    texts = [prompt(tiny_base, retain, [forget.titled]), prompt(tiny_base, forget, [retain.titled])]
    step, values = reading(texts, ["retain", "forget"])
    after = eco().embeddings(step, values)
    assert torch.equal(after[0], values[0])
    assert changed_tokens(values, after)[1].any()


def test_the_gate_reads_the_question_not_what_follows(eco, reading, tiny_base, people):
    text = prompt(tiny_base, people[8]) + f"Thought: ...\nObservation: {people[0].titled}"
    step, values = reading([text], ["a"])
    assert torch.equal(eco().embeddings(step, values), values)


def test_the_summary_prompt_is_seen(eco, reading, tiny_base, people):
    asked = SUMMARY_PROMPTS[0].format(name=people[0].name)
    step, values = reading([tiny_base.render("Tools: none.", asked)], ["a"])
    assert changed_tokens(values, eco().embeddings(step, values)).any()


def test_what_the_model_writes_is_not_touched(eco, tiny_base, people):
    values = torch.randn(1, 1, 64)
    step = Pass(False, ["a"], [prompt(tiny_base, people[0])], (), [[5]])
    assert eco().embeddings(step, values) is values


def test_a_row_is_changed_alike_alone_and_in_a_batch(eco, reading, tiny_base, people):
    texts = [prompt(tiny_base, p) for p in (people[0], people[8], people[1])]
    step, values = reading(texts, ["a", "b", "c"])
    together = eco().embeddings(step, values)
    for i, row in enumerate("abc"):
        one, alone = reading([texts[i]], [row])
        assert torch.equal(eco().embeddings(one, alone)[0], together[i, : alone.shape[1]])


def test_noise_does_not_depend_on_how_the_text_is_cut_into_passes(eco, reading, tiny_base, people):
    text = prompt(tiny_base, people[0])
    later = text + f"Thought: {people[0].name}"
    step, values = reading([later], ["a"])
    whole = eco().embeddings(step, values)
    hook, cut = eco(), len(step.spans[0]) - 4
    first, start = reading([text], ["a"])
    hook.embeddings(first, start)
    rest = Pass(True, ["a"], [later], [step.spans[0][cut:]], [[]])
    assert torch.equal(hook.embeddings(rest, values[:, cut:]), whole[:, cut:])


def test_conversations_of_one_name_are_told_apart_by_their_text(eco, reading, tiny_base, people):
    hook = eco()
    step, values = reading([prompt(tiny_base, people[0])], ["a"])
    hook.embeddings(step, values)
    step, values = reading([prompt(tiny_base, people[8])], ["a"])
    assert torch.equal(hook.embeddings(step, values), values)


def test_the_gate_works_behind_a_template_without_a_system_role(instructed_base, people, tmp_path, reading):
    context = FitContext(instructed_base, [], [], people[:6], 0, tmp_path)
    [hook] = make_method("eco").guard(context).hooks
    texts = [prompt(instructed_base, p, [people[0].titled, people[8].titled]) for p in (people[0], people[8])]
    step, values = reading(texts, ["a", "b"])
    after = hook.embeddings(step, values)
    assert changed_tokens(values, after)[0].any()
    assert torch.equal(after[1], values[1])


def test_replies_change_for_forget_people_alone_and_hooks_are_gone_afterwards(eco, tiny_base, people):
    weight = copy.deepcopy(tiny_base.model.get_input_embeddings().weight)
    texts = [prompt(tiny_base, people[0]), prompt(tiny_base, people[8])]

    def replies(*hooks):
        return [r.text for r in LiveBatch(tiny_base, ["f", "r"], hooks).reply(texts, 16)]

    plain, treated = replies(), replies(eco())
    assert treated[0] != plain[0] and treated[1] == plain[1]
    assert replies() == plain
    assert hooked(tiny_base) == []
    assert torch.equal(tiny_base.model.get_input_embeddings().weight, weight)


def test_state_has_a_digest(context):
    guards = [make_method("eco", s).guard(context) for s in ({}, {}, {"s": 50})]
    assert guards[0].digest == guards[1].digest != guards[2].digest


@pytest.mark.parametrize("settings", [{"s": -1}, {"k": 0}, {"k": 1.5}, {"s": float("inf")}, {"strength": 3}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(KBookError, match="method eco"):
        make_method("eco", settings)


def test_more_dimensions_than_the_model_has(context):
    with pytest.raises(KBookError, match="k is 65.*64 dimensions"):
        make_method("eco", {"k": 65}).guard(context)
