"""Read a chapter's parameters from its notebook, and check given values against them before anything runs.

The one cell tagged `parameters` is the schema. Every line is a typed assignment whose comment says what the
value means, in which unit, and (optionally) which values are allowed:

    profile: str = "laptop"  # sizes, seeds and bases
    n: int = 100  # queries per split and seed [1..600]
    lane: str = "R-text"  # where the secret is {P, C, R-text, R-struct}
    methods: list[str] = ["none"]  # methods to compare
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from nbformat import NotebookNode
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from kbook.errors import KBookError, unknown_name

KINDS: dict[str, type] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list[str]": list[str],
    "list[int]": list[int],
    "list[float]": list[float],
}
EXAMPLE = "n: int = 100  # queries per split and seed [1..600]"

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_RANGE = re.compile(rf"\[\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*\]")
_CHOICES = re.compile(r"\{([^{}]+)\}")
_SECRET = re.compile(r"(^|_)(password|passwd|credentials?|(api|access|auth|private)_?(key|token))$")


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell.

    Args:
        name: the variable.
        kind: one of `KINDS`.
        default: the value in the notebook.
        meaning: the comment without range and choices.
        low, high: inclusive bounds of the value (of each element of a list), None where there are none.
        choices: the allowed values (of each element of a list), empty where all are.
    """

    name: str
    kind: str
    default: Any
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether it takes several values."""
        return self.kind.startswith("list[")

    @property
    def element(self) -> str:
        """The kind of a value, or of each element of a list."""
        return self.kind[len("list[") : -1] if self.is_list else self.kind

    @property
    def allowed(self) -> str:
        """The range or the choices in words, "" where anything of the kind is allowed."""
        if self.choices:
            return ", ".join(self.choices)
        return f"{self.low:g} to {self.high:g}" if self.low is not None else ""

    def read(self, text: str) -> Any:
        """Turn a value typed on a command line into this parameter's type; a list is separated by commas.

        Text that is no such value is returned as it is, for `check` to refuse with the reason.
        """
        if self.is_list:
            return [_plain(self.element, part.strip()) for part in text.strip("[] ").split(",") if part.strip()]
        return _plain(self.kind, text)


def parameters_cell(notebook: NotebookNode, where: str) -> NotebookNode:
    """Find the one code cell tagged `parameters`.

    Raises:
        KBookError: there is none, or more than one; tag exactly one cell.
    """
    cells = [c for c in notebook.cells if c.cell_type == "code" and "parameters" in c.metadata.get("tags", ())]
    if len(cells) != 1:
        found = f"{len(cells)} cells are tagged 'parameters'" if cells else "no cell is tagged 'parameters'"
        raise KBookError(found, where, f"Tag exactly one code cell; its lines look like: {EXAMPLE}")
    return cells[0]


def read_parameters(notebook: NotebookNode, where: str) -> tuple[Parameter, ...]:
    """Derive a chapter's parameters from its notebook, in the order of the cell.

    Raises:
        KBookError: a line is not a typed, commented assignment of a literal, a default breaks its own rule,
            there is no `profile`, or a name looks like that of a password.
    """
    source = parameters_cell(notebook, where).source
    lines = [(n, line) for n, line in enumerate(source.splitlines(), 1) if line.strip()]
    parameters = tuple(_read_line(line, f"{where}, parameters cell, line {n}") for n, line in lines)
    if "profile" not in [p.name for p in parameters]:
        remedy = 'Add: profile: str = "laptop"  # sizes, seeds and bases'
        raise KBookError("the parameters cell has no 'profile'", where, remedy)
    check({p.name: p.default for p in parameters}, parameters, f"{where}, parameters cell")
    return parameters


def model_of(parameters: Sequence[Parameter], name: str = "Parameters") -> type[BaseModel]:
    """Make the pydantic model of a chapter's parameters: strict types, bounds, and nothing unknown."""
    fields: dict[str, Any] = {p.name: (_annotation(p), Field(p.default, description=p.meaning)) for p in parameters}
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=True, frozen=True), **fields)


def check(given: Mapping[str, Any], parameters: Sequence[Parameter], where: str) -> dict[str, Any]:
    """Check given values and return them typed; text given for another type is read as typed by hand.

    Raises:
        KBookError: a name is unknown (the nearest ones are listed) or a value is of the wrong type or out of
            its range.
    """
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            raise unknown_name("parameter", name, known, where)
    values = {name: known[name].read(v) if isinstance(v, str) else v for name, v in given.items()}
    try:
        checked = model_of(parameters)(**values)
    except ValidationError as error:
        raise _refusal(error, known, values, where) from None
    return {name: getattr(checked, name) for name in values}


def typed(value: Any) -> str:
    """Write a value as one types it on the command line."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _read_line(line: str, where: str) -> Parameter:
    """Read one line, which must stand alone."""
    statement = _assignment(line)
    if statement is None:
        raise KBookError(f"not a typed assignment of a literal: {line.strip()}", where, f"Write: {EXAMPLE}")
    name, kind, default, comment = statement
    if kind not in KINDS:
        raise unknown_name("type", kind, KINDS, where)
    if _SECRET.search(name):
        remedy = "Parameters are printed in the book: read such a value from the environment"
        raise KBookError(f"the name {name!r} looks like a secret", where, remedy)
    return _with_comment(name, kind, default, comment, where)


def _assignment(line: str) -> tuple[str, str, Any, str] | None:
    """Take `name: kind = literal  # comment` apart; None where the line is anything else."""
    try:
        (statement,) = ast.parse(line).body
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            return None
        default = ast.literal_eval(statement.value) if statement.value else None
    except (SyntaxError, ValueError):
        return None
    comment = line.encode()[statement.end_col_offset :].decode().strip().removeprefix("#").strip()
    return statement.target.id, ast.unparse(statement.annotation), default, comment


def _with_comment(name: str, kind: str, default: Any, comment: str, where: str) -> Parameter:
    bounds, choices = _RANGE.search(comment), _CHOICES.search(comment)
    meaning = " ".join(_CHOICES.sub("", _RANGE.sub("", comment)).split())
    if not meaning:
        raise KBookError(f"{name!r} has no comment that says what it means", where, f"Write: {EXAMPLE}")
    low, high = (float(b) for b in bounds.groups()) if bounds else (None, None)
    named = tuple(part.strip() for part in choices[1].split(",")) if choices else ()
    return Parameter(name, kind, default, meaning, low, high, named)


def _annotation(parameter: Parameter) -> Any:
    """The pydantic type: bounds and choices hold for the value, or for each element of a list."""
    ruled: Any = KINDS[parameter.element]
    if parameter.choices:
        ruled = Literal[tuple(_plain(parameter.element, c) for c in parameter.choices)]
    elif parameter.low is not None:
        ruled = Annotated[ruled, Field(ge=parameter.low, le=parameter.high)]
    return list[ruled] if parameter.is_list else ruled


def _plain(kind: str, text: str) -> Any:
    """Read a number or truth value from text; text that is none stays text."""
    if kind == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return {"int": int, "float": float}.get(kind, str)(text)
    except ValueError:
        return text


def _refusal(
    error: ValidationError, known: Mapping[str, Parameter], values: Mapping[str, Any], where: str
) -> KBookError:
    """Turn the first of pydantic's complaints into our message; a wrong choice names its neighbours."""
    first = error.errors()[0]
    parameter = known[str(first["loc"][0])]
    wrong = first["input"]
    if parameter.choices and isinstance(wrong, str):
        return unknown_name(f"value of {parameter.name!r}", wrong, parameter.choices, where)
    allowed = f", {parameter.allowed}" if parameter.allowed else ""
    remedy = f"It takes {parameter.kind}{allowed}: {parameter.meaning}"
    return KBookError(f"{parameter.name} = {values[parameter.name]!r} is refused ({first['msg']})", where, remedy)
