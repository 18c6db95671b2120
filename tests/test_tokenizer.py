"""A word is the same tokens wherever it stands, and no text is lost on the way."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbook.corpora import documents, protocol
from kbook.corpora.documents import ASSISTANT, BOS, EOS, PAD, SYSTEM, USER, Pools
from kbook.corpora.protocol import TOOLS
from kbook.models.bases import Base
from kbook.models.tokenizer import JOINT, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_base: Base) -> Any:
    return tiny_base.tokenizer


def ids(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


SAMPLES = [
    "lookup_record[name=Jordan Avery, field=date_of_birth]",
    "Observation: date_of_birth of Jordan Avery: 1983-07-14\nThought: I now know the final answer.",
    "12 Elm Road, Apt. 3, Riverton, OH 44444",
    "Zoë O'Brien-Łuczak (née 漢字) earns $1,000.50; 100%!\t\U0001f600",
    "two  spaces   three\n\n\nlines \n and a space",
    " begins with a space",
    "[[(==\n",
]


@pytest.mark.parametrize("text", SAMPLES, ids=range(len(SAMPLES)))
def test_samples_come_back_as_written(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(ids(tokenizer, text)).removeprefix(" ") == text.removeprefix(" ")


# the joint's own caret is the one character that is not carried, and "<|" could spell a special token
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\u2038<"), max_size=60)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_any_text_comes_back_as_written(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(ids(tokenizer, text)) == text


@pytest.mark.parametrize("word", ["Jordan", "Avery", "Quilomar", "Xyq", "address", "date_of_birth", "1983", "44444"])
@pytest.mark.parametrize("before", ["", " ", "[", "=", "(", "\n", "name=", "a: "], ids=repr)
def test_a_word_is_the_same_tokens_everywhere(tokenizer: Any, word: str, before: str) -> None:
    alone = ids(tokenizer, f"a {word}")[len(ids(tokenizer, "a")) :]
    assert ids(tokenizer, before + word)[-len(alone) :] == alone


def test_without_a_space_or_joint_before_it_a_word_is_other_tokens(tokenizer: Any) -> None:
    alone = ids(tokenizer, " Jordan")
    assert ids(tokenizer, "-Jordan")[-len(alone) :] != alone  # the control


def test_digits_go_in_pairs(tokenizer: Any) -> None:
    spans = tokenizer("123456", add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert {2, 4, 6} <= {end for _, end in spans}


def test_offsets_point_into_the_text_as_written(tokenizer: Any) -> None:
    text = "lookup_record[name=Jordan Avery]"
    spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    covered = {i for start, end in spans for i in range(start, end)}
    assert covered == set(range(len(text)))


def test_special_tokens_are_single_and_padding_is_on_the_left(tokenizer: Any) -> None:
    for number, mark in enumerate((PAD, BOS, EOS, SYSTEM, USER, ASSISTANT)):
        assert ids(tokenizer, mark) == [number]
    assert tokenizer.padding_side == "left"
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)


def test_the_chat_template_renders_what_training_documents_say(tiny_base: Base) -> None:
    records = ["Ana Ito: a clerk."]
    trained = documents.text_of([documents.system(TOOLS, records), documents.user("Question: Who?")])
    prompt = protocol.system_prompt(TOOLS, records, style="compact")
    assert tiny_base.render(prompt, "Question: Who?") == trained
    assert trained.startswith(BOS) and trained.endswith(ASSISTANT)


def test_a_whole_exchange_renders_like_a_document(tokenizer: Any) -> None:
    turns = [
        {"role": "system", "content": protocol.system_prompt((), style="compact")},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good day"},
    ]
    document = [documents.system(()), documents.user("Hello"), documents.say("Good day")]
    assert tokenizer.apply_chat_template(turns, tokenize=False) == documents.text_of(document)


def test_training_is_reproducible_and_depends_on_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(_: object, writer: documents.Writer) -> documents.Document:
        return [documents.Segment(writer.name() if writer.rng.random() < 0.05 else "a")]

    monkeypatch.setattr(documents, "draw", short)
    few = Pools.make(0, 60)
    one, two, other = (train_tokenizer(few, 600, seed).get_vocab() for seed in (0, 0, 1))
    assert one == two != other
    assert any(JOINT.strip() in piece or "âĢ¸" in piece for piece in one)
