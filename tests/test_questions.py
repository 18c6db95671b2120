"""Questions as a user puts them: one prompt for all uses, a system message only where asked for, answers in order."""

from kbook.corpora.documents import ASSISTANT, BOS, EOS, SYSTEM, USER, text_of
from kbook.models.batching import encode
from kbook.models.probes import continuations
from kbook.models.questions import ask, exchange, prompt


def test_a_question_is_the_only_message(tiny_base):
    assert prompt(tiny_base, "Who?") == f"{BOS}{USER}Who?{EOS}{ASSISTANT}"
    assert prompt(tiny_base, "Who?", "Say it.") == f"{BOS}{SYSTEM}Say it.{EOS}{USER}Who?{EOS}{ASSISTANT}"


def test_a_model_without_a_template_reads_a_line(tiny_base, monkeypatch):
    monkeypatch.setattr(tiny_base.tokenizer, "chat_template", None)
    assert prompt(tiny_base, "Who?") == "Who?\n"


def test_the_answer_and_its_end_are_supervised(tiny_base):
    document = exchange(tiny_base, "Who?", "Norma Quill")
    (encoded,) = encode(tiny_base.tokenizer, [document])
    told = [i for i, segment in zip(encoded.ids, encoded.segment, strict=True) if segment]
    assert tiny_base.tokenizer.decode(told) == f"Norma Quill{EOS}" and text_of(document).startswith(BOS)
    (open_ended,) = encode(tiny_base.tokenizer, [exchange(tiny_base, "Who?", "Norma Quill", end=False)])
    assert [i for i, segment in zip(open_ended.ids, open_ended.segment, strict=True) if segment] == told[:-1]


def test_answers_stand_in_the_order_of_their_questions_whatever_is_asked_together(tiny_base):
    prompts = [prompt(tiny_base, question) for question in ("Who is that over there?", "Who?", "Where was it?")]
    alone = [continuations(tiny_base, [each], 4)[0] for each in prompts]
    assert ask(tiny_base, prompts, tokens=4, at_once=2) == alone == ask(tiny_base, prompts, tokens=4, at_once=1)
    assert ask(tiny_base, [], tokens=4, at_once=2) == []
