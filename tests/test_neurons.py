"""Neurons: attributions that add up, zeroed columns, and ranks that sink where they should and nowhere else."""

import copy
from collections import Counter

import pytest
import torch

from kbook.corpora.documents import Segment
from kbook.methods.neurons import (
    Lens,
    Secret,
    integrated_gradients,
    neurons_set,
    rank_of,
    secrets,
    shared_neurons,
    sunk,
    thinned,
    told_probability,
)
from kbook.methods.registry import make_method
from kbook.models.bases import load_base
from kbook.models.batching import collate, encode

# ---- DEPN --------------------------------------------------------------------------------------------------


def test_attributions_add_up_to_what_the_layer_adds(fitting):
    """Completeness: their sum is the probability with the layer's neurons less that without them."""
    model = fitting.base.model
    batch = make_method("depn").material(fitting).forget[0][0]
    for layer in model.model.layers:
        module = layer.mlp.down_proj
        found = integrated_gradients(model, module, batch, 64).sum(1)
        with torch.no_grad():
            whole = told_probability(model, batch)
            with neurons_set(module, torch.zeros(*batch.ids.shape, module.in_features)):
                without = told_probability(model, batch)
        assert torch.allclose(found, whole - without, atol=2e-4)
        assert (whole - without).abs().max() > 1e-3


def test_shared_neurons_by_hand():
    attributions = torch.zeros(4, 2, 3)
    attributions[:, 0, 1] = 1.0  # the largest of all documents
    attributions[:3, 1, 2] = 0.2  # matters to three of four
    attributions[0, 1, 0] = 0.5  # to one alone
    attributions[:, 0, 0] = 0.05  # too little
    assert shared_neurons(attributions, 0.1, 0.5, 10) == [(0, 1), (1, 2)]
    assert shared_neurons(attributions, 0.1, 0.5, 1) == [(0, 1)]
    assert shared_neurons(attributions, 0.1, 0.9, 10) == [(0, 1)]
    assert shared_neurons(attributions, 0.1, 0.5, 0) == []


def test_erased_columns_are_zero_and_nothing_else_changes(fitting):
    facts = make_method("depn", {"records": 4, "steps": 2, "neurons": 5}).edit(fitting)
    edited, start = load_base(str(fitting.work)).model.state_dict(), fitting.base.model.state_dict()
    for name, value in start.items():
        places = [neuron for layer, neuron in facts["erased"] if name == f"model.layers.{layer}.mlp.down_proj.weight"]
        expected = value.clone()
        if places:
            expected[:, places] = 0
        assert torch.equal(edited[name], expected), name
    assert 0 < len(facts["erased"]) <= 5 and facts["documents"] == 4
    assert facts["nll"]["after"]["forget"] > facts["nll"]["before"]["forget"]


@pytest.mark.parametrize("name", ["depn", "revs"])
def test_without_neurons_the_model_is_the_start(fitting, name):
    make_method(name, {"neurons": 0, **({"records": 2, "steps": 1} if name == "depn" else {})}).edit(fitting)
    edited, start = load_base(str(fitting.work)).model.state_dict(), fitting.base.model.state_dict()
    assert all(torch.equal(edited[n], start[n]) for n in start)


def test_thinning_takes_documents_evenly(tiny_base):
    documents = encode(tiny_base.tokenizer, [[Segment(f"<s>{i}", True)] for i in range(10)])
    batches = [collate(documents[:7]), collate(documents[7:])]
    for most, expected in ((10, 10), (4, 4), (99, 10), (1, 1)):
        assert sum(len(b.ids) for b in thinned(batches, most)) == expected
    assert [len(b.ids) for b in thinned(batches, 4)] == [3, 1]


# ---- REVS --------------------------------------------------------------------------------------------------


@pytest.fixture
def square():
    """A lens whose head can be inverted."""
    torch.manual_seed(0)
    return Lens(0.5 + torch.rand(8), torch.randn(8, 8), 1e-6)


def test_with_an_invertible_head_only_the_target_moves(square):
    vectors, by = torch.randn(3, 8), torch.tensor([1.0, 2.0, 3.0])
    before = (vectors / square.lengths(vectors) * square.gain) @ square.head.T
    lowered = square.lowered(vectors, square.direction(5), by)
    after = (lowered / square.lengths(vectors) * square.gain) @ square.head.T
    expected = before.clone()
    expected[:, 5] -= by
    assert torch.allclose(after, expected, atol=1e-3)
    assert torch.equal(square.lowered(vectors, square.direction(5), torch.zeros(3)), vectors)


def test_with_a_tall_head_it_is_least_squares():
    lens = Lens(torch.ones(4), torch.randn(20, 4), 1e-6)
    expected = torch.linalg.pinv(lens.head)[:, 7]
    assert torch.allclose(lens.direction(7), expected, atol=1e-4)


def test_a_token_sinks_into_the_margin():
    torch.manual_seed(1)
    lens, columns = Lens(torch.ones(16), torch.randn(200, 16), 1e-6), torch.randn(6, 16)
    found = sunk(lens, columns, 7, (140, 156), 200)
    before, ranks = rank_of(lens.logits(columns), 7), rank_of(lens.logits(found), 7)
    high, deep = before < 140, before > 156
    assert high.any() and deep.any()
    assert ((ranks >= 140) & (ranks <= 156))[high].all()
    assert torch.allclose(found[deep], columns[deep], atol=1e-3)  # what lies deeper already is not raised


def test_ranks_count_the_higher_ones():
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    assert rank_of(logits, 2).tolist() == [1, 0]


def test_secrets_are_the_rarest_tokens_of_values_where_they_are_told(fitting, people):
    found = secrets(fitting, Counter(), 1)
    assert len(found) == 2 * 4 * 2  # people, fields, two ways of telling
    tokenizer = fitting.base.tokenizer
    for secret in found:
        told, token = tokenizer.decode(secret.ids), tokenizer.decode([secret.token]).strip()
        person = next(p for p in people[:2] if p.name in told)
        assert any(token in person.value(f) for f in ("date_of_birth", "address", "occupation", "employer"))


def test_a_rarer_token_is_taken_first(fitting):
    everything = secrets(fitting, Counter(), 20)
    common = Counter(s.token for s in everything for _ in range(5))
    rare = everything[3].token
    common[rare] = 0
    firsts = [s.token for s in secrets(fitting, common, 1)]
    assert rare in firsts


def test_an_edit_sinks_the_secret_and_writes_output_matrices_alone(fitting, monkeypatch):
    method = make_method("revs", {"residual": 1.0, "mlp": 1.0, "neurons": 40, "active": 64})
    secret: Secret = secrets(fitting, Counter(), 1)[0]
    model = copy.deepcopy(fitting.base.model)

    def told():
        with torch.no_grad():
            return model(input_ids=secret.ids[None]).logits[0, -1].log_softmax(-1)[secret.token].item()

    before, lens = told(), Lens.of(model)
    with torch.no_grad():
        assert method._sink(model, lens, secret) == 80
    assert told() < before
    start = fitting.base.model.state_dict()
    changed = [n for n, value in model.state_dict().items() if not torch.equal(value, start[n])]
    assert changed == [f"model.layers.{i}.mlp.down_proj.weight" for i in range(2)]
    idle = make_method("revs", {"residual": 0.0})
    with torch.no_grad():
        assert idle._sink(model, lens, secret) == 0
