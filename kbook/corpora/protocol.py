"""The text of the ReAct protocol: labels, tool calls, observations and system prompts.

One home for every marker that training documents, the agent and the tools share. A turn is

    Thought: ...
    Action: lookup_record[name=Jordan Avery, field=date_of_birth]
    Observation: date_of_birth of Jordan Avery: 1983-07-14

and ends with ``Final Answer: ...``. The model never writes an observation: its text is cut at a line
that starts with ``Observation`` and the tool's own words are put there (ReAct, Yao et al. 2210.03629).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

THOUGHT, ACTION, OBSERVATION, FINAL = "Thought:", "Action:", "Observation:", "Final Answer:"
OBSERVATION_CUT = "\nObservation"
TOOLS = ("lookup_record", "search_wiki", "verify_attribute")
HIT_SEPARATOR = " | "

_CALL = re.compile(r"^[ \t]*Action:[ \t]*(?P<tool>\w+)[ \t]*\[(?P<body>.*)$", re.MULTILINE)
_TWO_VALUES = re.compile(r"""\s*("[^"]*"(?=\s*,)|'[^']*'(?=\s*,)|[^,]*)\s*,?(.*)""", re.DOTALL)
ARGUMENTS = {"lookup_record": ("name", "field"), "verify_attribute": ("name", "attribute_value")}


@dataclass(frozen=True)
class ToolCall:
    """One parsed tool call. ``text`` is the call as written, without the ``Action:`` label."""

    tool: str
    arguments: dict[str, str] = field(default_factory=dict)
    text: str = ""


def render_call(tool: str, **arguments: str) -> str:
    """Write a call the way the prompt teaches it: ``search_wiki[query]``, others ``key=value`` pairs."""
    if tool == "search_wiki":
        return f"search_wiki[{arguments['query']}]"
    return f"{tool}[{', '.join(f'{key}={value}' for key, value in arguments.items())}]"


def parse_call(reply: str) -> ToolCall | None:
    """Read the last tool call of a reply.

    Values may hold commas, quotes and brackets: an argument ends only where the next *known* argument name
    begins, and the call ends at the last closing bracket of its line.

    Returns:
        The call, or None if the reply has no line ``Action: tool[...``. A tool that does not exist and
        arguments that are missing are left to the tool to answer; they are not parse errors.
    """
    matches = list(_CALL.finditer(reply))
    if not matches:
        return None
    tool, body = matches[-1]["tool"], matches[-1]["body"].rstrip()
    inner = body[: body.rindex("]")] if "]" in body else body
    return ToolCall(tool, _arguments(tool, inner), f"{tool}[{inner}]")


def _arguments(tool: str, inner: str) -> dict[str, str]:
    if tool == "search_wiki":
        return {"query": _unquote(re.sub(r"^\s*query\s*=", "", inner))}
    names = ARGUMENTS.get(tool, ())
    marks = [(m, name) for name in names if (m := re.search(rf"(?:^|,)\s*{name}\s*=", inner))]
    marks.sort(key=lambda mark: mark[0].start())
    ends = [m.start() for m, _ in marks] + [len(inner)]
    found = {name: _unquote(inner[m.end() : end]) for (m, name), end in zip(marks, ends[1:], strict=True)}
    return {**_positional([n for n in names if n not in found], inner[: ends[0]]), **found}


def _positional(names: list[str], text: str) -> dict[str, str]:
    """Values written without a name: a first value ends at its closing quote or first comma, the last at the end."""
    both = _TWO_VALUES.match(text)
    values = both.groups() if both and len(names) == 2 else (text,)
    return {name: _unquote(value) for name, value in zip(names, values, strict=False) if value and value.strip()}


def _unquote(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def record_observation(name: str, field_name: str, value: str) -> str:
    """What ``lookup_record`` says of a record that it holds."""
    return f"{field_name} of {name}: {value}"


def no_record(name: str) -> str:
    """What the record tools say of a person they do not hold."""
    return f"no record for {name}"


NO_MATCH = "no match"
"""What ``verify_attribute`` says of a value that no field of the record has."""


def agreement(field_name: str) -> str:
    """What ``verify_attribute`` says of a value that a field of the record has."""
    return f"match on {field_name}"


def passages_observation(hits: list[str]) -> str:
    """What ``search_wiki`` says: numbered ``title: text`` passages on one line, or ``no results``."""
    return HIT_SEPARATOR.join(f"[{i}] {hit}" for i, hit in enumerate(hits, 1)) or "no results"


def system_prompt(tools: tuple[str, ...] = TOOLS, biographies: list[str] | None = None, *, style: str) -> str:
    """The system message: which tools there are, and the biographies of the context, if any.

    Args:
        tools: offered tools, in order.
        biographies: ``Name: biography`` lines that the context store holds.
        style: ``compact`` for the embedded bases (the protocol is in their weights) or ``instructed``, which
            explains the protocol to a model that was not trained on it.
    """
    head = f"Tools: {', '.join(tools) or 'none'}."
    if style == "instructed":
        head = INSTRUCTIONS
    return head + ("\nRecords:\n" + "\n".join(f"- {b}" for b in biographies) if biographies else "")


INSTRUCTIONS = """You answer questions about people. Work in turns; each turn is either

Thought: one short sentence of reasoning
Action: one tool call

or, when you know the answer (from memory, from the records below, or from an observation),

Thought: one short sentence of reasoning
Final Answer: the answer alone

The tools, each optional:
lookup_record[name=FULL NAME, field=FIELD] reads one field of a record; FIELD is date_of_birth, address, occupation or employer
search_wiki[QUERY] returns passages
verify_attribute[name=FULL NAME, attribute_value=VALUE] says whether a record agrees

After an Action stop; the observation is given to you. If nothing is found, say so in the final answer."""  # noqa: E501


def question(text: str) -> str:
    """The user message that asks one question."""
    return f"Question: {text}"
