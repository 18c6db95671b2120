"""ULD: logits by hand, an assistant that reads along exactly, and the model that stays as it is."""

import copy

import pytest
import torch

from kbook.keys import LANES
from kbook.methods.assistant import AssistantLogits, offset_logits, truncated
from kbook.methods.registry import make_method, method_class, why_not
from kbook.models.bases import Base
from kbook.models.decoding import LiveBatch

TEXTS = ["<s>Q: Who is Norma Quill?\nA:", "<s>Q: What?\nA:", "<s>A longer text, of which nothing is known:"]


def test_offsets_by_hand():
    logits = torch.tensor([[4.0, 3.0, -9.0]])
    assistant = torch.tensor([[2.0, -1.0, 5.0]])
    assert torch.equal(offset_logits(logits, assistant, 0.0, 0.01), logits)
    assert torch.allclose(offset_logits(logits, assistant, -0.8, 0.0), torch.tensor([[2.4, 3.8, -13.0]]))
    assert torch.allclose(offset_logits(logits, assistant, -0.8, 0.01), torch.tensor([[2.4, 3.8, -9.0]]))
    assert torch.allclose(offset_logits(logits, assistant, -0.8, 1.0), torch.tensor([[2.4, 3.0, -9.0]]))


def test_a_truncated_copy_is_the_models_first_layers(tiny_base):
    small = truncated(tiny_base.model, 1)
    ids = torch.tensor([[1, 5, 9]])
    states = tiny_base.model.model(input_ids=ids, output_hidden_states=True).hidden_states[1]
    expected = tiny_base.model.lm_head(tiny_base.model.model.norm(states))
    assert torch.allclose(small(input_ids=ids).logits, expected, atol=1e-5)
    whole = truncated(tiny_base.model, 2)
    assert torch.allclose(whole(input_ids=ids).logits, tiny_base.model(input_ids=ids).logits, atol=1e-5)
    assert whole.model.layers[0].mlp.down_proj.weight is not tiny_base.model.model.layers[0].mlp.down_proj.weight


@pytest.fixture
def other(tiny_base):
    """An assistant of another mind."""
    model = copy.deepcopy(tiny_base.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.2)
    return Base("other", model, tiny_base.tokenizer, "", "compact", "")


class Noting(AssistantLogits):
    """Keeps what it made of each row."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = []

    def logits(self, step, values):
        found = super().logits(step, values)
        self.seen.append((list(step.rows), list(step.texts), [list(w) for w in step.written], found - values))
        return found


def test_the_assistant_reads_and_writes_along_exactly(tiny_base, other):
    """Its logits are those that it gives to the whole text, read anew, also after rows have left."""
    hook = Noting(other, 1.0, 0.0, {})
    live = LiveBatch(tiny_base, ["a", "b", "c"], [hook])
    replies = live.reply(TEXTS, 6)
    live.keep([0, 2])
    longer = [TEXTS[i] + replies[i].text + "\nQ: And then?\nA:" for i in (0, 2)]
    live.reply(longer, 4)
    assert len(hook.seen) >= 4
    for rows, texts, written, offset in hook.seen:
        for i, _ in enumerate(rows):
            ids = tiny_base.tokenizer(texts[i], add_special_tokens=False)["input_ids"] + written[i]
            expected = other.model(input_ids=torch.tensor([ids])).logits[0, -1].float()
            assert torch.allclose(offset[i], expected, atol=1e-3)


def test_at_weight_zero_replies_are_the_models_own(tiny_base, other):
    plain = LiveBatch(tiny_base, list("abc"), []).reply(TEXTS, 8)
    for weight, same in ((0.0, True), (3.0, False)):
        found = LiveBatch(tiny_base, list("abc"), [AssistantLogits(other, weight, 0.0, {})]).reply(TEXTS, 8)
        assert ([r.text for r in found] == [r.text for r in plain]) == same


def test_new_conversations_begin_anew(tiny_base, other):
    hook = AssistantLogits(other, 2.0, 0.0, {})
    first = LiveBatch(tiny_base, ["a", "b"], [hook]).reply(TEXTS[:2], 5)
    LiveBatch(tiny_base, ["c"], [hook]).reply(TEXTS[2:], 5)
    again = LiveBatch(tiny_base, ["a", "b"], [hook]).reply(TEXTS[:2], 5)
    assert [r.text for r in first] == [r.text for r in again]


def test_the_assistant_learns_forget_answers_and_the_model_stays(fitting):
    start = copy.deepcopy(fitting.base.model.state_dict())
    guard = make_method("uld", {"learning_rate": 5e-3, "epochs": 4, "warmup_steps": 1}).guard(fitting)
    (hook,) = guard.hooks
    nll = hook.facts["nll"]
    assert nll["after"]["forget"] < nll["before"]["forget"] - 0.3
    assert nll["after"]["retain"] > nll["after"]["forget"] + 0.3
    assert (hook.facts["layers"], len(hook.assistant.model.model.layers)) == (1, 1)
    assert all(torch.equal(v, start[k]) for k, v in fitting.base.model.state_dict().items())
    other = make_method("uld", {"learning_rate": 5e-3, "epochs": 1, "warmup_steps": 1})
    assert other.guard(fitting.__class__(*[getattr(fitting, f) for f in fitting.__dataclass_fields__][:-1],
                                         fitting.work / "other")).digest != guard.digest  # fmt: skip


def test_it_acts_on_logits_but_knows_no_fact_that_is_handed_over():
    cls = method_class("uld")
    assert (cls.family, make_method("uld").edits_weights) == ("logits", False)
    assert [lane for lane in LANES if why_not(cls, lane) is None] == ["P"]
