"""LAW: the memory edit in closed form, washing that always answers more, and facts that are no longer told."""

import pytest
import torch

from kbook.methods.registry import make_method
from kbook.methods.washing import at_subjects, facts_of, key_moment, memory_edit, told, washed
from kbook.models.bases import load_base


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def disturbance(change, moment):
    return (change @ moment @ change.T).trace() / moment.trace()


def test_the_memory_edit_answers_its_keys():
    keys, residual, moment = torch.randn(9, 3).double(), torch.randn(5, 3).double(), torch.eye(9).double()
    exact = memory_edit(residual, keys, moment, 0.0)
    assert torch.allclose(exact @ keys, residual, atol=1e-4)
    careful = memory_edit(residual, keys, moment, 10.0)
    assert disturbance(careful, moment) < disturbance(exact, moment)
    assert not memory_edit(torch.zeros_like(residual), keys, moment, 1.0).any()


def test_with_one_key_and_plain_others_the_change_turns_to_the_key():
    key, start = torch.randn(7, 1).double(), torch.randn(4, 7).double()
    found = washed(start, key, torch.eye(7).double(), 200, 1.0)
    cosines = (found @ key).abs() / (found.norm(dim=1, keepdim=True) * key.norm())
    assert torch.allclose(cosines, torch.ones_like(cosines), atol=1e-6)
    assert torch.linalg.matrix_rank(found, rtol=1e-6) == 1


def test_every_step_answers_more_at_the_same_disturbance():
    keys, start = torch.randn(7, 3).double(), torch.randn(4, 7).double()
    others = torch.randn(40, 7).double() * torch.arange(1, 8)
    moment = others.T @ others / 40
    changes = [washed(start, keys, moment, steps, 1.0) for steps in (1, 2, 5, 50)]
    answers = [float((change @ keys).square().sum()) for change in changes]
    assert answers == sorted(answers) and answers[-1] > 1.5 * answers[0]
    for change in changes:
        assert disturbance(change, moment) == pytest.approx(1.1 * disturbance(start, moment).item(), rel=1e-4)
    best = torch.linalg.eigvals(torch.linalg.solve(moment, keys @ keys.T)).real.max()
    assert answers[-1] == pytest.approx(float(1.1 * disturbance(start, moment) * moment.trace() * best), rel=1e-2)


def test_without_steps_or_without_a_guess_nothing_is_washed():
    keys, start, moment = torch.randn(7, 3).double(), torch.randn(4, 7).double(), torch.eye(7).double()
    assert torch.allclose(washed(start, keys, moment, 0, 1.0), start, atol=1e-6)
    assert not washed(torch.zeros_like(start), keys, moment, 5, 1.0).any()


def test_facts_are_read_where_the_name_and_the_question_end(fitting, people):
    facts, tokenizer = facts_of(fitting), fitting.base.tokenizer
    assert len(facts) == 2 * 4 * 2
    for row, subject, end in zip(facts.batch.ids, facts.subjects, facts.ends, strict=True):
        name = next(p.name for p in people[:2] if p.name in tokenizer.decode(row))
        assert tokenizer.decode(row[: subject + 1]).endswith(name)
        assert tokenizer.decode(row[: end + 1]).endswith(("\nA:", "<|assistant|>"))


def test_parts_are_the_whole(fitting):
    facts = facts_of(fitting)
    down = fitting.base.model.model.layers[0].mlp.down_proj
    with torch.no_grad():
        ((few, _),) = at_subjects(fitting.base.model, [down], facts, 200)
        ((all_at_once, _),) = at_subjects(fitting.base.model, [down], facts, 10**6)
        assert torch.equal(told(fitting.base.model, facts, 200), told(fitting.base.model, facts, 10**6))
    assert few.shape == (len(facts), down.in_features) and torch.allclose(few, all_at_once, atol=1e-5)


def test_the_moment_of_keys_counts_real_tokens_alone(fitting):
    method = make_method("law")
    retain, down = method.material(fitting).retain, fitting.base.model.model.layers[1].mlp.down_proj
    with torch.no_grad():
        moment = key_moment(fitting.base.model, down, retain)
        padded = [type(b)(*(torch.nn.functional.pad(t, (0, 6)) for t in (b.ids, b.labels, b.weights, b.mask)))
                  for b in retain]  # fmt: skip
        assert torch.allclose(moment, key_moment(fitting.base.model, down, padded), atol=1e-6)
    assert torch.allclose(moment, moment.T) and moment.trace() > 0


def test_an_edit_writes_the_chosen_output_matrices_alone_and_forgets(fitting):
    facts = make_method("law", {"preserve": 0.1, "steps": 2, "target_steps": 40, "target_rate": 1.0}).edit(fitting)
    edited, start = load_base(str(fitting.work)).model.state_dict(), fitting.base.model.state_dict()
    assert facts["layers"] == [0]  # of two: a later layer must carry the change to the answer
    assert [n for n in start if not torch.equal(edited[n], start[n])] == ["model.layers.0.mlp.down_proj.weight"]
    rises = {pool: facts["nll"]["after"][pool] - facts["nll"]["before"][pool] for pool in ("forget", "retain")}
    assert rises["forget"] > rises["retain"] + 0.05


def test_facts_that_are_no_longer_told_are_dropped(fitting, monkeypatch):
    from kbook.methods import washing

    answers = iter([torch.arange(16) < 10, torch.arange(10) < 4])
    monkeypatch.setattr(washing, "told", lambda model, facts, budget: next(answers))
    facts = make_method("law", {"target_steps": 1}).edit(fitting)
    assert (facts["facts"], facts["told"], facts["washed in"]) == (16, 10, [4])
