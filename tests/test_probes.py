"""What a model gives: likelihoods that transformers confirms, in the order asked; knowledge that shows in every row."""

import copy
import json
import math
from dataclasses import replace

import pytest
import torch

from kbook.corpora.documents import Segment
from kbook.corpora.injection import plain_question, write
from kbook.corpora.people import Query
from kbook.corpora.probe_items import ProbeQuestion, ProbeText
from kbook.models.batching import collate, encode
from kbook.models.likelihood import sequence_nll
from kbook.models.probes import continuations, question_rows, text_rows, token_losses

LIMITS = {"tokens": 8, "budget": 400}


@pytest.fixture(scope="module")
def questions(people):
    wrong = [p.employer for p in people[6:11]]
    return [ProbeQuestion(Query(person, "employer"), "forget", tuple(wrong)) for person in people[:3]]


@pytest.fixture(scope="module")
def documents():
    replies = ["yes", "a much longer reply than all of the others, by far", "no", "1983-07-14"]
    return [[Segment("<s>Q: What?\nA:"), Segment(f" {reply}</s>", True)] for reply in replies]


def test_losses_are_those_of_each_document_alone_in_the_order_of_the_documents(tiny_base, documents):
    together = token_losses(tiny_base, documents, budget=60)
    alone = [token_losses(tiny_base, [document], budget=60)[0] for document in documents]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    with torch.no_grad():
        means = sequence_nll(tiny_base.model, collate(encode(tiny_base.tokenizer, documents)), "mean").tolist()
    assert [sum(losses) / len(losses) for losses in together] == pytest.approx(means, abs=1e-4)


def test_losses_are_those_of_transformers(tiny_base, documents):
    batch = collate(encode(tiny_base.tokenizer, documents[1:2]))
    stock = tiny_base.model(input_ids=batch.ids, labels=batch.labels).loss.item()
    (losses,) = token_losses(tiny_base, documents[1:2], budget=60)
    assert sum(losses) / len(losses) == pytest.approx(stock, abs=1e-4)


def test_nothing_asked_gives_nothing(tiny_base):
    assert token_losses(tiny_base, [], 60) == [] and continuations(tiny_base, [], 5) == []
    assert question_rows(tiny_base, [], **LIMITS) == [] == text_rows(tiny_base, [], **LIMITS)


def test_a_uniform_model_finds_every_value_equally_likely(tiny_base, questions):
    model = copy.deepcopy(tiny_base.model)
    torch.nn.init.zeros_(model.lm_head.weight)
    for row in question_rows(replace(tiny_base, model=model), questions, **LIMITS):
        assert row["nll"] == pytest.approx([math.log(1024)] * 6, abs=1e-4) == row["nll_again"]


def test_the_true_value_comes_first_in_both_wordings(tiny_base, questions):
    (row, *_) = question_rows(tiny_base, questions, **LIMITS)
    query = questions[0].query
    told = plain_question(query.person, "employer")
    again = replace(told, prompt=f"Q: {questions[0].paraphrase.text}\nA:")
    wrong = replace(told, reply=f" {questions[0].wrong[4]}")
    expected = [
        sum(t) / len(t) for t in token_losses(tiny_base, [write(tiny_base, e) for e in (told, again, wrong)], 400)
    ]
    assert [row["nll"][0], row["nll_again"][0], row["nll"][5]] == pytest.approx(expected, abs=1e-4)
    assert row["nll"] != row["nll_again"] and len(row["nll"]) == len(row["nll_again"]) == 6


def test_a_model_that_was_taught_a_value_prefers_it(tiny_base, injected_base, people, questions):
    """People 0 to 3 were injected; the control is the same model before that."""

    def lead(base):
        rows = question_rows(base, questions, **LIMITS)
        return sum(min(row["nll"][1:]) - row["nll"][0] for row in rows)

    assert lead(injected_base) > lead(tiny_base) + 1
    texts = [ProbeText(p, "forget") for p in people[:4]] + [ProbeText(p, "holdout") for p in people[8:12]]
    rows = text_rows(injected_base, texts, **LIMITS)
    known, unknown = (sum(sum(r["losses"]) / len(r["losses"]) for r in half) for half in (rows[:4], rows[4:]))
    assert known < unknown


def test_a_continuation_is_greedy_within_its_line_and_its_limit_whoever_is_beside_it(tiny_base, people):
    prompts = [f"<s>{person.name}:" for person in people]
    together, shorter = continuations(tiny_base, prompts, 12), continuations(tiny_base, prompts, 3)
    assert all("\n" not in text and text == text.strip() for text in together)
    assert all(long.startswith(short) for long, short in zip(together, shorter, strict=True)) and together != shorter
    assert [continuations(tiny_base, [prompt], 12)[0] for prompt in prompts[:4]] == together[:4]


def test_rows_name_what_was_asked_and_are_plain_json(tiny_base, people, questions):
    rows = question_rows(tiny_base, questions, **LIMITS)
    rows += text_rows(tiny_base, [ProbeText(people[5], "holdout")], **LIMITS)
    assert json.loads(json.dumps(rows)) == rows
    assert rows[0]["query_id"] == questions[0].query.id and rows[0]["value"] == questions[0].query.value
    assert (rows[-1]["kind"], rows[-1]["group"], rows[-1]["text"]) == ("text", "holdout", people[5].biography)


def test_a_broken_model_leaves_gaps_instead_of_numbers_that_are_none(tiny_base, people, questions):
    model = copy.deepcopy(tiny_base.model)
    model.lm_head.weight.data.fill_(float("nan"))
    broken = replace(tiny_base, model=model)
    (row, *_) = question_rows(broken, questions, **LIMITS)
    (text,) = text_rows(broken, [ProbeText(people[5], "holdout")], **LIMITS)
    assert row["nll"] == [None] * 6 and set(text["losses"]) == {None}
    json.dumps([row, text], allow_nan=False)


def test_another_style_of_base_is_asked_the_same_plain_question(tiny_base, instructed_base, questions):
    """No chat template takes part: the question is put outside any conversation."""
    assert question_rows(instructed_base, questions, **LIMITS) == question_rows(tiny_base, questions, **LIMITS)
