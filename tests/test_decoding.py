"""Decoding many rows at once gives each row what it would get alone, and hooks see what is really there."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers as hf
from hooks import hooked
from transformers.cache_utils import DynamicLayer

from kbook.corpora.documents import EOS
from kbook.models.bases import Base
from kbook.models.decoding import DecodingHook, GrowingLayer, LiveBatch, Pass, Reply
from kbook.models.initialisation import initialise
from kbook.models.pretrain import Architecture, build_model

QUESTIONS = [
    "Jordan Avery was born in 1983. Jordan Avery",
    "Question: where does Mira Oduya live? Mira Oduya lives at 12 Elm Road, Riverton. Answer: 12 Elm",
    "one two three one two",
    "A: yes. B: no. A: yes. B:",
    "Records: Ana Ito, clerk; Bo Lund, baker; Cy Poe, miller. Ana Ito, clerk; Bo",
]
NEW = 24


@pytest.fixture(scope="module")
def texts(tiny_base: Base) -> list[str]:
    return [tiny_base.render("Tools: none.", question) for question in QUESTIONS]


def with_a_window() -> Any:
    """A Mistral whose window is shorter than the texts."""
    model = build_model(Architecture("mistral", 64, 2, 2, 2, 32, 64, 1024))
    initialise(model, 0)
    model.config.sliding_window = 24
    return model


def with_a_recurrence() -> Any:
    """A Qwen3.5: three layers in four carry a state instead of keys and values."""
    sizes = {"vocab_size": 1024, "hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 64, "head_dim": 16}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "linear_num_value_heads": 4, "linear_num_key_heads": 2}
    config = hf.Qwen3_5TextConfig(
        **sizes, **heads, linear_key_head_dim=16, linear_value_head_dim=16, tie_word_embeddings=True, eos_token_id=2
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = hf.Qwen3_5ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3 if parameter.dim() > 1 else 1
    return model


@pytest.fixture(scope="module", params=[None, with_a_window, with_a_recurrence], ids=["plain", "window", "recurrence"])
def base(request: pytest.FixtureRequest, tiny_base: Base) -> Base:
    return replace(tiny_base, model=request.param().eval()) if request.param else tiny_base


def replies(base: Base, texts: Sequence[str], hooks: Sequence[DecodingHook] = (), new: int = NEW) -> list[Reply]:
    return LiveBatch(base, range(len(texts)), hooks).reply(texts, new)


def by_generate(base: Base, text: str) -> str:
    """What the stock greedy loop writes, one row at a time."""
    ids = base.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    out = base.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False)
    written = base.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
    return str(written).split("\nObservation", 1)[0]


def same_but_for_ties(one: Sequence[Reply], other: Sequence[Reply]) -> bool:
    """Whether replies agree wherever no choice between two tokens was close."""
    return all(a.text == b.text or min(a.margin, b.margin) < 1e-3 for a, b in zip(one, other, strict=True))


# ---- one by one, all together, turn by turn ----------------------------------------------------------------


def test_replies_are_those_of_the_stock_greedy_loop(base: Base, texts: list[str]) -> None:
    ours = replies(base, texts)
    assert [r.text for r in ours if r.margin > 1e-3] == [
        by_generate(base, text) for text, r in zip(texts, ours, strict=True) if r.margin > 1e-3
    ]
    assert sum(r.margin > 1e-3 for r in ours) >= 3
    assert len({r.text for r in ours}) == len(texts)  # the rows do differ


def test_a_row_alone_gets_what_it_gets_in_company(base: Base, texts: list[str]) -> None:
    alone = [replies(base, [text])[0] for text in texts]
    assert same_but_for_ties(alone, replies(base, texts))
    assert same_but_for_ties(list(reversed(alone)), replies(base, texts[::-1]))


def test_the_same_batch_gives_the_same_replies(base: Base, texts: list[str]) -> None:
    assert replies(base, texts) == replies(base, texts)


def test_a_later_turn_over_the_cache_equals_a_fresh_reading(base: Base, texts: list[str]) -> None:
    live, said = LiveBatch(base, range(len(texts))), list(texts)
    for turn in range(3):
        answers = live.reply(said, NEW)
        assert same_but_for_ties(answers, replies(base, said))
        said = [
            f"{text}{a.text}\nObservation: {turn} of {i}" for i, (text, a) in enumerate(zip(said, answers, strict=True))
        ]


def test_a_text_that_takes_words_back_is_read_as_it_stands(base: Base, texts: list[str]) -> None:
    live = LiveBatch(base, range(2))
    live.reply([texts[0] + " This is taken back again.", texts[1]], NEW)
    changed = [texts[0] + " Other words.", texts[1]]
    assert same_but_for_ties(live.reply(changed, NEW), replies(base, changed))
    assert same_but_for_ties(live.reply(changed, NEW), replies(base, changed))  # the very same text once more


def test_rows_that_leave_do_not_change_the_others(base: Base, texts: list[str]) -> None:
    live = LiveBatch(base, range(len(texts)))
    first = live.reply(texts, NEW)
    live.keep([0, 2, 4])
    going_on = [texts[i] + first[i].text + " And" for i in (0, 2, 4)]
    assert same_but_for_ties(live.reply(going_on, NEW), replies(base, going_on))
    live.keep([1])
    assert same_but_for_ties(live.reply(going_on[1:2], NEW), replies(base, going_on[1:2]))
    live.keep([])
    assert live.rows == []


class Ends(DecodingHook):
    """Each row ends its reply after as many tokens as its name says."""

    by_name = True

    def __init__(self, base: Base) -> None:
        self.end = base.tokenizer.eos_token_id
        self.carried: list[int] = []

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        self.carried.append(len(step.rows))
        written = step.written or [[] for _ in step.rows]
        for line, (name, ids) in enumerate(zip(step.rows, written, strict=True)):
            if len(ids) >= name:
                values[line, self.end] = 1e4
        return values


class EndsAndHolds(Ends):
    by_name = False


def test_rows_that_are_done_are_not_carried_along_and_come_back_for_the_next_turn(base: Base, texts: list[str]) -> None:
    names = [2, 20, 4, 12, 3]
    said = {False: list(texts), True: list(texts)}
    hooks = {False: EndsAndHolds(base), True: Ends(base)}
    live = {narrow: LiveBatch(base, names, [hook]) for narrow, hook in hooks.items()}
    for turn in range(3):
        found = {narrow: live[narrow].reply(said[narrow], NEW) for narrow in live}
        assert same_but_for_ties(found[True], found[False])
        said = {n: [f"{t}{a.text}\nObservation: {turn}" for t, a in zip(said[n], found[n], strict=True)] for n in found}
    assert set(hooks[False].carried) == {5}
    assert min(hooks[True].carried) == (1 if live[True].reusable else 5)


def test_a_twin_has_read_the_same_and_goes_its_own_way(tiny_base: Base, texts: list[str]) -> None:
    live = LiveBatch(tiny_base, range(len(texts)))
    live.read(texts)
    other = live.twin([f"twin {i}" for i in range(len(texts))])
    endings = [text + " Other words" for text in texts]
    assert same_but_for_ties(live.reply(texts, NEW), replies(tiny_base, texts))
    assert same_but_for_ties(other.reply(endings, NEW), replies(tiny_base, endings))
    assert [row.name for row in other.rows] != [row.name for row in live.rows]


# ---- hooks -------------------------------------------------------------------------------------------------


class Recorder(DecodingHook):
    """Keeps every pass and what stood in it."""

    def __init__(self) -> None:
        self.seen: list[tuple[Pass, torch.Tensor]] = []
        self.logit_shapes: list[torch.Size] = []
        self.written: list[list[list[int]]] = []

    def embeddings(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        self.seen.append((step, values.clone()))
        return values

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        self.logit_shapes.append(values.shape)
        self.written.append([list(row) for row in step.written])
        return values


def test_hooks_see_each_row_under_its_name_with_its_own_spans(base: Base, texts: list[str]) -> None:
    hook = Recorder()
    live = LiveBatch(base, ["a", "b", "c", "d", "e"], [hook])
    live.reply(texts, 3)
    step, values = hook.seen[0]
    assert step.reading and list(step.rows) == ["a", "b", "c", "d", "e"] and list(step.texts) == texts
    table = base.model.get_input_embeddings().weight
    for i, text in enumerate(texts):
        encoded = base.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        assert [tuple(s) for s in step.spans[i]] == encoded["offset_mapping"]
        assert torch.equal(values[i, : len(step.spans[i])], table[encoded["input_ids"]])
    writing = [s for s, _ in hook.seen[1:]]
    assert all(not s.reading and not s.spans and list(s.rows) == list(step.rows) for s in writing)
    assert hook.logit_shapes == [torch.Size([5, 1024])] * len(hook.logit_shapes)


def test_hooks_see_what_was_written_so_far(tiny_base: Base, texts: list[str]) -> None:
    hook = Recorder()
    (reply,) = LiveBatch(tiny_base, ["a"], [hook]).reply(texts[:1], 5)
    lengths = [len(rows[0]) for rows in hook.written]
    assert lengths == list(range(len(lengths)))
    assert tiny_base.tokenizer.decode(hook.written[-1][0]) in reply.text


def test_a_later_turn_reads_only_what_is_new(tiny_base: Base, texts: list[str]) -> None:
    hook = Recorder()
    live = LiveBatch(tiny_base, ["a"], [hook])
    (reply,) = live.reply(texts[:1], 8)
    hook.seen.clear()
    longer = f"{texts[0]}{reply.text}\nObservation: no results"
    live.reply([longer], 8)
    step, values = hook.seen[0]
    assert values.shape[1] == len(step.spans[0]) < 20
    start, end = step.spans[0][0][0], step.spans[0][-1][1]
    assert longer[start:end].endswith("no results") and start >= len(texts[0])


class Blur(DecodingHook):
    """Replaces the embeddings of one row's tokens by noise while they are read."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def embeddings(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        if not step.reading:
            return values
        changed = values.clone()
        for i, row in enumerate(step.rows):
            if row == self.target:
                n = len(step.spans[i])
                changed[i, :n] = torch.randn(n, values.shape[2], generator=torch.Generator().manual_seed(0))
        return changed


def test_an_embedding_hook_changes_the_row_that_it_targets_and_no_other(base: Base, texts: list[str]) -> None:
    plain, blurred = replies(base, texts), replies(base, texts, [Blur(1)])
    assert blurred[1].text != plain[1].text
    others = [0, 2, 3, 4]
    assert same_but_for_ties([blurred[i] for i in others], [plain[i] for i in others])
    assert replies(base, texts, [Blur("nobody")]) == plain


class Script(DecodingHook):
    """Makes a row write a given text, token by token."""

    def __init__(self, base: Base, scripts: dict[Any, str]) -> None:
        encode = base.tokenizer
        self.ids = {row: encode(text, add_special_tokens=False)["input_ids"] for row, text in scripts.items()}

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        changed = values.clone()
        for i, row in enumerate(step.rows):
            if row in self.ids and len(step.written[i]) < len(self.ids[row]):
                changed[i] = 0.0
                changed[i, self.ids[row][len(step.written[i])]] = 5.0
        return changed


WRITTEN = {
    "stop": ("Thought: I look.\nObservation: a lie\nFinal Answer: x", "Thought: I look."),
    "end token": (f"Final Answer: yes{EOS} and more", "Final Answer: yes"),
    "end at once": (EOS, ""),
    "not at a line start": (
        f"Observation is the word. Observation: here{EOS}",
        "Observation is the word. Observation: here",
    ),
}


@pytest.mark.parametrize(("script", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_where_a_reply_ends(tiny_base: Base, texts: list[str], script: str, expected: str) -> None:
    hook = Script(tiny_base, {0: script})
    (reply,) = replies(tiny_base, texts[:1], [hook], new=60)
    assert reply.text.removeprefix(" ") == expected
    assert reply.margin == pytest.approx(5.0)
    assert reply.n_tokens < len(hook.ids[0]) + 1


def test_a_reply_ends_at_its_limit(tiny_base: Base, texts: list[str]) -> None:
    (reply,) = replies(tiny_base, texts[:1], [Script(tiny_base, {0: "one two three four five six seven"})], new=4)
    assert reply.n_tokens == 4


def test_the_longest_row_does_not_hold_the_others_open(tiny_base: Base, texts: list[str]) -> None:
    hook = Script(tiny_base, {0: EOS, 1: f"Final Answer: a longer reply than the other{EOS}"})
    short, long = replies(tiny_base, texts[:2], [hook], new=60)
    assert (short.text, short.n_tokens) == ("", 0)
    assert long.text.removeprefix(" ") == "Final Answer: a longer reply than the other"


def test_hooks_act_in_order(tiny_base: Base, texts: list[str]) -> None:
    first, second = Script(tiny_base, {0: f"one{EOS}"}), Script(tiny_base, {0: f"two{EOS}"})
    said = [replies(tiny_base, texts[:1], hooks, new=8)[0].text.strip() for hooks in ([first, second], [second, first])]
    assert said == ["two", "one"]


def failing_embedding(step: Pass, values: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("broken hook")


@pytest.mark.parametrize("fails", [False, True], ids=["after use", "after a failure"])
def test_no_hook_stays_on_the_model(
    tiny_base: Base, texts: list[str], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = Recorder()
    if fails:
        monkeypatch.setattr(hook, "embeddings", failing_embedding)
        with pytest.raises(RuntimeError, match="broken hook"):
            replies(tiny_base, texts, [hook])
    else:
        replies(tiny_base, texts, [hook])
    assert hooked(tiny_base) == []
    assert replies(tiny_base, texts[:1]) == replies(tiny_base, texts[:1])


# ---- the growing cache layer -------------------------------------------------------------------------------


def pieces(sizes: Sequence[int], rows: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(rows, 2, n, 4, generator=generator) for n in sizes]


def keep_all(layer: DynamicLayer) -> None:
    """The control: nothing leaves."""


def keep_two(layer: DynamicLayer) -> None:
    layer.batch_select_indices(torch.tensor([2, 0]))


@pytest.mark.parametrize("leave", [keep_all, keep_two])
def test_a_growing_layer_holds_what_a_stock_layer_holds(
    leave: Callable[[DynamicLayer], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GrowingLayer, "spare", 4)
    ours, stock, left = GrowingLayer(), DynamicLayer(), False
    grown = set()
    for piece in pieces([5, 1, 1, 1, 1, 1, 9, 1, 1, 1, 1, 1, 1]):
        if ours.get_seq_length() > 8 and not left:
            left = True
            leave(ours), leave(stock)
        piece = piece[: len(stock.keys)] if left else piece
        for layer in (ours, stock):
            layer.update(piece, -piece)
        assert torch.equal(ours.keys, stock.keys) and torch.equal(ours.values, stock.values)
        assert ours.get_seq_length() == stock.get_seq_length()
        grown.add(ours.room[0].shape[-2])
    assert len(grown) >= 3  # the boundary was crossed more than once


def test_decoding_crosses_the_boundary_unharmed(
    tiny_base: Base, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy = replies(tiny_base, texts)
    monkeypatch.setattr(GrowingLayer, "spare", 1)
    assert same_but_for_ties(replies(tiny_base, texts), roomy)
