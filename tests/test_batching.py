"""Labels fall on the assistant's words, padding on nothing, and no document is lost on the way into a batch."""

import random
from typing import Any

import pytest
import torch

from kbook.corpora.documents import STAGES, USER, Pools, Segment, Writer, draw, text_of
from kbook.models.bases import Base
from kbook.models.batching import IGNORED, Encoded, by_length, collate, encode


@pytest.fixture(scope="module")
def tokenizer(tiny_base: Base) -> Any:
    return tiny_base.tokenizer


def test_labels_decode_to_the_supervised_text(tokenizer: Any, pools: Pools) -> None:
    writer = Writer(pools, random.Random(0))
    documents = [d for d in (draw(STAGES["full"], writer) for _ in range(40)) if USER in text_of(d)]
    batch = collate(encode(tokenizer, documents))
    for row, document in enumerate(documents):
        supervised = "".join(s.text for s in document if s.supervised)
        kept = batch.labels[row][batch.labels[row] != IGNORED]
        squeezed = tokenizer.decode(kept).replace(" ", "")  # a joint may stand on either side of the cut
        assert squeezed == supervised.replace(" ", "")
        assert tokenizer.decode(batch.ids[row][batch.mask[row] == 1]) == text_of(document)


def test_padding_is_masked_and_carries_no_loss(tokenizer: Any) -> None:
    long, short = [Segment("one two three", True)], [Segment("one", True)]
    encoded = encode(tokenizer, [long, short])
    batch = collate(encoded)
    n = len(encoded[1])
    assert batch.ids.shape == (2, len(encoded[0]))
    assert batch.mask.sum(1).tolist() == [len(encoded[0]), n]
    assert (batch.labels[1, n:] == IGNORED).all() and (batch.labels[1, :n] != IGNORED).all()


def test_segments_number_the_tokens_that_they_supervise(tokenizer: Any) -> None:
    document = [Segment("Question:"), Segment(" Answer", True), Segment(" aside"), Segment(" again", True)]
    encoded = encode(tokenizer, [document])[0]
    assert sorted(set(encoded.segment)) == [0, 2, 4]
    pieces = dict.fromkeys(encoded.segment, "")
    for token, segment in zip(encoded.ids, encoded.segment, strict=True):
        pieces[segment] += tokenizer.decode([token])
    assert (pieces[2], pieces[4]) == (" Answer", " again")


def test_a_merge_across_a_boundary_cannot_shift_the_mask(tokenizer: Any) -> None:
    parts = ["lookup", "_rec", "ord[name", "=Jor", "dan]"]
    document = [Segment(part, i % 2 == 1) for i, part in enumerate(parts)]
    encoded = encode(tokenizer, [document])[0]
    assert encoded.ids == encode(tokenizer, [[Segment("".join(parts))]])[0].ids


def test_the_answer_and_the_start_of_a_segment_weigh_more() -> None:
    #          unsupervised | supervised: x  Answer : v1 v2 v3
    encoded = Encoded((50, 51, 60, 7, 61, 62, 63, 64), (0, 0, 2, 2, 2, 2, 2, 2))
    weights = collate([encoded], answer_token=7, answer_weight=4.0).weights[0]
    assert weights.tolist() == [1, 1, 4, 1, 1, 4, 4, 1]
    plain = collate([encoded], answer_token=7).weights
    assert torch.equal(plain, torch.ones_like(plain))  # the control


def test_every_document_is_in_one_batch_within_the_budget() -> None:
    encoded = [Encoded(tuple(range(n)), (0,) * n) for n in (3, 90, 5, 40, 8, 8, 120, 2)]
    batches = by_length(encoded, 100, random.Random(0))
    assert sorted(len(e) for b in batches for e in b) == sorted(map(len, encoded))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(map(len, batch)) <= 100
    assert [len(e) for b in batches if max(map(len, b)) > 100 for e in b] == [120]


def test_the_order_of_batches_follows_from_the_seed() -> None:
    encoded = [Encoded(tuple(range(n)), (0,) * n) for n in range(20, 60)]
    one, two, other = (by_length(encoded, 100, random.Random(seed)) for seed in (1, 1, 2))
    assert one == two != other


def test_a_batch_moves_as_a_whole() -> None:
    batch = collate([Encoded((1, 2), (0, 1))]).to("meta")
    assert {t.device.type for t in (batch.ids, batch.labels, batch.weights, batch.mask)} == {"meta"}


def test_a_token_that_begins_with_the_line_break_before_it_belongs_to_that_line(tokenizer: Any) -> None:
    document = [Segment("A:"), Segment(" yes\n", True), Segment("Q: who?\n")]
    encoded = encode(tokenizer, [document])[0]
    labelled = tokenizer.decode([i for i, s in zip(encoded.ids, encoded.segment, strict=True) if s])
    assert labelled in (" yes\n", " yes\nQ")  # the joint after a line break may bring the next word's start along
