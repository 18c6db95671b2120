"""Turn an executed notebook into a page of the book: published things become MyST, the rest becomes inert.

Of ordinary outputs only plain text passes, clipped; HTML, JavaScript and pictures without alt text do not.
What is left depends on the notebook, its parameters and its results alone: no times, ids or local paths.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from kbook.errors import KBookError, unknown_name
from kbook.report.artifacts import MIME, NUMBER_MIME, PUBLISHED, Artifact, RunRecord, duration, minute
from kbook.report.parameters import Parameter, typed
from kbook.report.tables import to_myst
from kbook.report.text import clip, colourless, escape_text, visible

MAX_OUTPUT = 6000

_GLUE = re.compile(r"\{glue:text\}`(?P<key>[^`:]+)(?::(?P<spec>[^`:]*))?`")
_SCRAP = "application/papermill.record/"


@dataclass(frozen=True)
class Page:
    """What a chapter contributes to the book.

    Args:
        notebook: the page, for Sphinx to typeset without running anything.
        files: name → text of the pictures and CSVs that the page refers to, in the chapter's folder.
        artifacts: what was published, in order.
    """

    notebook: NotebookNode
    files: Mapping[str, str]
    artifacts: tuple[Artifact, ...]

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """All runs behind the page, each once, sorted by key."""
        return tuple(sorted({run for artifact in self.artifacts for run in artifact.provenance.runs}))


def make_page(
    executed: NotebookNode, name: str, parameters: Sequence[Parameter], values: Mapping[str, Any], root: Path
) -> Page:
    """Make the page of a chapter.

    Args:
        executed: the notebook as papermill left it, without errors.
        name: of the chapter; the pictures and CSVs lie in a folder of this name beside the page.
        parameters: of the chapter.
        values: the value of each in this run.
        root: folder of the checkout, which no page may name.
    Raises:
        KBookError: a picture was shown without being published, a key was used twice, or prose asks for a
            number that was not glued.
    """
    numbers = _numbers(executed, name)
    cells: list[NotebookNode] = []
    artifacts: list[Artifact] = []
    for cell in executed.cells:
        where = f"{name}, {cell.id}"
        if cell.cell_type != "code":
            cells.append(new_markdown_cell(_with_numbers(cell.source, numbers, where), id=cell.id))
            continue
        cells.append(_code_cell(cell, root, where))
        found = _artifacts(cell)
        cells += [_generated(artifact_markdown(artifact, name), artifact.key) for artifact in found]
        artifacts += found
        if "parameters" in cell.metadata.get("tags", ()):
            cells.append(_generated(rerun_box(name, parameters, values), "rerun"))
    _check_distinct([artifact.key for artifact in artifacts], name)
    page = Page(_notebook(cells), _files(artifacts), tuple(artifacts))
    page.notebook.cells.append(_generated(_provenance_section(page.runs), "provenance"))
    return page


def rerun_box(name: str, parameters: Sequence[Parameter], values: Mapping[str, Any]) -> str:
    """Write the box "Rerun this chapter": the exact command, and the parameters of this run."""
    rows = [(p.name, typed(values[p.name]), typed(p.default), p.allowed or p.kind, p.meaning) for p in parameters]
    columns = ["parameter", "this run", "default", "allowed", "meaning"]
    table = to_myst(pd.DataFrame(rows, columns=columns))
    return "\n".join(
        [
            "::::{admonition} Rerun this chapter",
            ":class: tip kbook-rerun",
            "",
            "```bash",
            f".venv/bin/{rerun_command(name, parameters, values)}",
            "```",
            "",
            f"Add `-p name=value` to change a parameter, or open `notebooks/{name}.ipynb` with `make lab`.",
            "Only what depends on the change is computed again.",
            "",
            ":::{dropdown} Parameters of this run",
            table,
            ":::",
            "::::",
        ]
    )


def rerun_command(name: str, parameters: Sequence[Parameter], values: Mapping[str, Any]) -> str:
    """Write the command that makes this page again: only what differs from the defaults is named."""
    changed = [p for p in parameters if p.name != "profile" and values[p.name] != p.default]
    options = [f"-p {shlex.quote(f'{p.name}={typed(values[p.name])}')}" for p in changed]
    return " ".join(["kbook", "run", name, "--profile", str(values["profile"]), *options])


def artifact_markdown(artifact: Artifact, folder: str) -> str:
    """Write a figure or table as MyST: label, number, caption, data link, and its provenance below it.

    What is long may stand in a box that readers open.
    """
    body = _artifact_body(artifact, folder)
    title = f"{{dropdown}} {escape_text(artifact.fold)}"
    return _fenced([title, "", body], mark=":") if artifact.fold else body


def _artifact_body(artifact: Artifact, folder: str) -> str:
    if artifact.svg:
        lines = [f"{{figure}} {folder}/{artifact.key}.svg", f":name: {artifact.key}"]
        lines += [f":alt: {json.dumps(artifact.alt, ensure_ascii=False)}", "", artifact.caption]
        return _fenced([*lines, "", _provenance_block(artifact, folder)])
    directive = "list-table" if artifact.body.startswith("* - ") else "table"
    lines = [f"{{{directive}}} {artifact.caption}", f":name: {artifact.key}"]
    lines += [":header-rows: 1", ":widths: 18 15 67", ":class: kbook-trace"] * (directive == "list-table")
    return _fenced([*lines, "", artifact.body]) + "\n\n" + _provenance_block(artifact, folder)


def _provenance_block(artifact: Artifact, folder: str) -> str:
    """The line below a figure or table; the check of the built book finds it by its name and class."""
    known = artifact.provenance
    cites = " ".join(f"{{cite}}`{cite}`" for cite in known.cites)
    link = f"{{download}}`data (CSV) <{folder}/{artifact.key}.csv>`"
    sentence = f"{escape_text(known.sentence(), 2000)} {cites}".strip()
    options = [f":name: {artifact.key}-provenance", ""]
    opening = f"{{container}} kbook-provenance kbook-{known.kind}"
    return _fenced([opening, *options, f"{sentence} · {link}"], mark=":")


def _provenance_section(runs: Sequence[RunRecord]) -> str:
    """The end of a page: every run behind it."""
    head = "## Provenance\n\n"
    if not runs:
        return head + "No run of this book stands behind this page."
    columns = ["run", "digest", "profile", "computed (UTC)", "took", "commit"]
    rows = [(r.key, r.digest[:8], r.profile, minute(r.ended), duration(r.seconds), r.commit) for r in runs]
    shown = pd.DataFrame(rows[:100], columns=columns)
    rest = f"\n\n{len(rows) - 100} more runs are on the status page." if len(rows) > 100 else ""
    count = f"{len(rows)} runs stand" if len(rows) > 1 else "One run stands"
    return f"{head}{count} behind this page.\n\n:::{{dropdown}} Runs\n{to_myst(shown)}{rest}\n:::"


def _numbers(executed: NotebookNode, name: str) -> dict[str, dict[str, Any]]:
    """Collect the glued numbers of a notebook, each key once."""
    found = [data[NUMBER_MIME] for data in _bundles(executed.cells) if NUMBER_MIME in data]
    _check_distinct([number["key"] for number in found], name)
    return {number["key"]: number for number in found}


def _with_numbers(source: str, numbers: Mapping[str, Mapping[str, Any]], where: str) -> str:
    """Put glued numbers into prose; those of papers get a mark. References to other pages are left alone."""

    def show(match: re.Match[str]) -> str:
        number = numbers.get(match["key"])
        if number is None:
            raise unknown_name("glued number", match["key"], numbers, where)
        text = _formatted(number["value"], match["spec"] or "", where)
        return f"[{text} {{sup}}`published`]{{.kbook-published-number}}" if number["kind"] == PUBLISHED else text

    return _GLUE.sub(show, source)


def _formatted(value: Any, spec: str, where: str) -> str:
    try:
        return escape_text(format(value, spec))
    except ValueError:
        raise KBookError(f"the format {spec!r} does not fit {value!r}", where, "Use one such as .2f") from None


def _artifacts(cell: NotebookNode) -> list[Artifact]:
    return [Artifact.of(data[MIME]) for data in _bundles([cell]) if MIME in data]


def _bundles(cells: Sequence[NotebookNode]) -> Iterator[Mapping[str, Any]]:
    for cell in cells:
        for output in cell.get("outputs", ()):
            yield output.get("data", {})


def _code_cell(cell: NotebookNode, root: Path, where: str) -> NotebookNode:
    """Keep the source, the tags and what is safe of the outputs."""
    tags = list(cell.metadata.get("tags", ()))
    if {"parameters", "injected-parameters"} & set(tags):
        tags.append("hide-input" if "parameters" in tags else "remove-cell")
    shown = [safe for output in cell.outputs for safe in _safe_output(output, root, where)]
    metadata = {"tags": tags} if tags else {}
    kept = {"id": "injected-parameters" if "injected-parameters" in tags else cell.id, "metadata": metadata}
    return new_code_cell(cell.source, outputs=shown, execution_count=cell.execution_count, **kept)


def _safe_output(output: NotebookNode, root: Path, where: str) -> list[NotebookNode]:
    if output.output_type == "stream":
        return [new_output("stream", name=output.name, text=_plain_text(output.text, root))]
    data = output.data
    if MIME in data:
        return []
    if NUMBER_MIME in data:
        return _scrap(data[NUMBER_MIME])
    if any(mime.startswith("image/") for mime in data):
        remedy = "Show it with publish_figure(key, figure, data, caption=..., alt=...)"
        raise KBookError("a picture without caption and alt text", where, remedy)
    text = data.get("text/plain")
    return [new_output("display_data", data={"text/plain": _plain_text(text, root)})] if text else []


def _scrap(number: Mapping[str, Any]) -> list[NotebookNode]:
    """Keep a measured number where other pages can ask Sphinx for it; a published one would lose its mark."""
    if number["kind"] == PUBLISHED:
        return []
    metadata = {"scrapbook": {"name": number["key"], "mime_prefix": _SCRAP}}
    return [new_output("display_data", data={f"{_SCRAP}text/plain": repr(number["value"])}, metadata=metadata)]


def _plain_text(text: str, root: Path) -> str:
    plain = colourless(clip(text, MAX_OUTPUT))
    return visible(plain.replace(f"{root}/", "").replace(str(root), "."))


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    language = {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": language})


def _generated(source: str, name: str) -> NotebookNode:
    return new_markdown_cell(source, id=f"kbook-{name}"[:64])


def _files(artifacts: Sequence[Artifact]) -> dict[str, str]:
    pictures = {f"{a.key}.svg": a.svg for a in artifacts if a.svg}
    return pictures | {f"{a.key}.csv": a.csv for a in artifacts}


def _fenced(lines: Sequence[str], mark: str = "`") -> str:
    """Fence a directive with more marks than occur in a row inside it."""
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(f"{mark}+", body)), default=0)
    fence = mark * max(3, longest + 1)
    return f"{fence}{body}\n{fence}"


def _check_distinct(keys: Sequence[str], name: str) -> None:
    repeated = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if repeated:
        raise KBookError(f"the key {repeated[0]!r} is used twice", name, "Give each thing its own key")
