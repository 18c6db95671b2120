"""Tool calls survive whatever stands in their values; prompts and observations read as the base was taught."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kbook.corpora import protocol
from kbook.corpora.protocol import ACTION, TOOLS, parse_call, render_call
from kbook.keys import FIELDS

ADDRESS = "12 Elm Road, Apt. 3, Riverton, OH 44444"
AWKWARD = st.text(st.sampled_from("ab ,'\"[]=.é漢\u00a0\U0001f600"), min_size=1, max_size=30)


def is_plain(value: str) -> bool:
    """Whether a value is what any reader would take it for: trimmed, not wrapped in quotes."""
    return bool(value) and value == value.strip() and not (value[0] == value[-1] and value[0] in "\"'")


@given(name=AWKWARD, value=AWKWARD)
def test_named_arguments_come_back_as_written(name: str, value: str) -> None:
    assume(is_plain(name) and is_plain(value))
    call = parse_call(f"{ACTION} {render_call('verify_attribute', name=name, attribute_value=value)}")
    assert call and call.arguments == {"name": name, "attribute_value": value}


@given(name=AWKWARD, field=st.sampled_from(FIELDS))
def test_look_ups_come_back_as_written(name: str, field: str) -> None:
    assume(is_plain(name))
    written = render_call("lookup_record", name=name, field=field)
    call = parse_call(f"Thought: I look.\n{ACTION} {written}\nObservation")
    assert call and call.arguments == {"name": name, "field": field}
    assert call.text == written


@given(query=AWKWARD)
def test_searches_come_back_as_written(query: str) -> None:
    assume(is_plain(query))
    call = parse_call(f"{ACTION} {render_call('search_wiki', query=query)}")
    assert call and (call.tool, call.arguments) == ("search_wiki", {"query": query})


@given(st.text())
def test_any_text_is_a_call_or_none(text: str) -> None:
    call = parse_call(text)
    assert call is None or set(call.arguments) <= {"name", "field", "attribute_value", "query"}


BOTH = {"name": "Ana Ito", "attribute_value": ADDRESS}


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        pytest.param(f"verify_attribute[name=Ana Ito, attribute_value={ADDRESS}]", BOTH, id="an address with commas"),
        pytest.param(f"verify_attribute[attribute_value={ADDRESS}, name=Ana Ito]", BOTH, id="the other order"),
        pytest.param(f"verify_attribute[name='Ana Ito', attribute_value=\"{ADDRESS}\"]", BOTH, id="quoted"),
        pytest.param(f"verify_attribute[Ana Ito, {ADDRESS}]", BOTH, id="positional"),
        pytest.param(f'verify_attribute["Ana Ito", "{ADDRESS}"]', BOTH, id="positional and quoted"),
        pytest.param(f"verify_attribute[Ana Ito, attribute_value={ADDRESS}]", BOTH, id="only the second is named"),
        pytest.param(f"verify_attribute[name = Ana Ito,attribute_value = {ADDRESS}", BOTH, id="bracket not closed"),
        pytest.param(f"verify_attribute [name=Ana Ito,\u00a0attribute_value={ADDRESS}] .", BOTH, id="odd spaces"),
        pytest.param(
            'lookup_record["Ito, Ana", address]', {"name": "Ito, Ana", "field": "address"}, id="comma in a quoted name"
        ),
        pytest.param(
            "lookup_record[name=Ana [Ito], field=address]", {"name": "Ana [Ito]", "field": "address"}, id="brackets"
        ),
        pytest.param("lookup_record[name=Ana Ito]", {"name": "Ana Ito"}, id="one argument missing"),
        pytest.param("lookup_record[Ana Ito]", {"name": "Ana Ito"}, id="one positional argument"),
        pytest.param("lookup_record[]", {}, id="no argument"),
        pytest.param("search_wiki[query=Ana Ito, address]", {"query": "Ana Ito, address"}, id="named query"),
        pytest.param("send_mail[to=Ana Ito]", {}, id="unknown tool"),
    ],
)
def test_ways_to_write_a_call(written: str, arguments: dict[str, str]) -> None:
    call = parse_call(f"{ACTION} {written}")
    assert call and call.arguments == arguments


@pytest.mark.parametrize(
    "reply",
    ["", "Thought: none", "Action: think harder", "lookup_record[name=A, field=address]", "Action: [name=A]"],
    ids=["empty", "no action", "no bracket", "no label", "no tool"],
)
def test_no_call(reply: str) -> None:
    assert parse_call(reply) is None


def test_the_last_call_of_a_text_is_read() -> None:
    call = parse_call("Action: search_wiki[one]\nObservation: no results\nAction: search_wiki[two]")
    assert call and call.arguments == {"query": "two"}


def test_observations() -> None:
    assert protocol.record_observation("Ana Ito", "address", ADDRESS) == f"address of Ana Ito: {ADDRESS}"
    assert protocol.no_record("Ana Ito") == "no record for Ana Ito"
    assert protocol.passages_observation(["A: a", "B: b"]) == "[1] A: a | [2] B: b"
    assert protocol.passages_observation([]) == "no results"


@pytest.mark.parametrize("style", ["compact", "instructed"])
def test_the_system_prompt_holds_the_records_it_is_given(style: str) -> None:
    with_records = protocol.system_prompt(TOOLS, ["Ana Ito: a clerk."], style=style)
    assert with_records.endswith("\nRecords:\n- Ana Ito: a clerk.")
    assert "Records:" not in protocol.system_prompt(TOOLS, [], style=style)
    assert all(tool in with_records for tool in TOOLS)


def test_without_tools_the_prompt_says_so() -> None:
    assert protocol.system_prompt((), style="compact") == "Tools: none."
