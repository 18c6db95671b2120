"""What the sidecar of a cell says of its making, and whether cells that are compared were made alike.

A sidecar is the file `STEM.config.json` beside `STEM.jsonl`, in the words of the public harness:

    {"substrate": "C", "query_subset": "forget", "seed": 0, "n_sample": 200, "model": "ckpt/eco",
     "base_model": "meta-llama/Llama-3.1-8B-Instruct", "api_model": null}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kbook.errors import KBookError
from kbook.keys import CellKey, OfficialName
from kbook.scoring.comparisons import BASELINE
from kbook.scoring.notices import Notice
from kbook.scoring.sources import Config, Source, read_object

SUFFIX = ".config.json"

_SPELLED = {"Rtext": "R-text", "Rstruct": "R-struct"}


def sidecar_of(path: Path) -> Path:
    """The path of the sidecar of a transcript file."""
    return path.with_name(path.name.removesuffix(".jsonl") + SUFFIX)


def read_sidecar(path: Path, name: OfficialName | CellKey) -> dict[str, Any] | None:
    """Read the sidecar of a transcript file; None where there is none.

    Args:
        path: the transcript file.
        name: the cell that it should be about.

    Raises:
        KBookError: it is no JSON object, or says that it belongs to another cell.
    """
    place = sidecar_of(path)
    if not place.exists():
        return None
    config = read_object(place, "a sidecar")
    check_sidecar(config, name, str(place))
    return config


def check_sidecar(config: Config, name: OfficialName | CellKey, where: str) -> None:
    """Refuse a sidecar that contradicts the name of its cell; what it does not say is no contradiction.

    Raises:
        KBookError: lane, split or seed differ.
    """
    lane = config.get("substrate")
    said = {"lane": _SPELLED.get(str(lane), lane), "split": config.get("query_subset"), "seed": config.get("seed")}
    for part, value in said.items():
        wanted = getattr(name, part)
        if value is not None and value != wanted:
            what = f"the sidecar says {part} {value!r}, the file's name {wanted!r}"
            raise KBookError(what[:200], where, "Put each sidecar beside its own cell")


def base_of(config: Config | None) -> str | None:
    """The base model that a sidecar names; None where it names none.

    A model behind an interface is its own base; our own runs add the digest of its weights.
    """
    said = _text(config, "api_model") or _text(config, "base_model")
    digest = _text(config, "base_digest")
    return f"{said} ({digest[:8]})" if said and digest else said


def model_of(config: Config | None) -> str | None:
    """The model that answered: the base, or an edited copy of it."""
    return _text(config, "api_model") or _text(config, "model")


def check_bases(sources: Sequence[Source]) -> tuple[Notice, ...]:
    """Compare what the sidecars of one table say of the models behind cells that are put side by side.

    Returns:
        a notice for each method whose model differs from its baseline's, where no sidecar says that both
        come from one base; and for each cell that a sidecar calls not comparable.

    Raises:
        KBookError: forget and retain of a method, or a method and its baseline, come from different bases.
    """
    cells = {source.key: source for source in sources}
    notices: list[Notice] = []
    for source in sources:
        for role, other in partners(source.key, cells):
            _refuse_other_base(source, cells[other], role)
            notices += _other_model(source, cells[other], role)
    return (*_once(notices), *_marked(sources))


def partners(key: CellKey, cells: Mapping[CellKey, Source]) -> Iterator[tuple[str, CellKey]]:
    """The cells that a cell is put beside: ("retain", …) and ("baseline", …), as far as they are there."""
    if key.split == "forget":
        yield from (("retain", other) for other in (replace(key, split="retain"),) if other in cells)
    if key.method != BASELINE:
        for variant in dict.fromkeys((key.variant, "")):
            other = replace(key, method=BASELINE, variant=variant)
            if other in cells:
                yield "baseline", other
                return


def _refuse_other_base(source: Source, other: Source, role: str) -> None:
    pairs = [(base_of(source.config), base_of(other.config))]
    if role == "retain":
        pairs.append((model_of(source.config), model_of(other.config)))
    for first, second in pairs:
        if first and second and first != second:
            what = f"is put beside {other.path.name}, which comes from another base: {first} and {second}"
            remedy = "Give the cells of each base a prefix of their own"
            raise KBookError(what[:400], str(source.path), remedy)


def _other_model(source: Source, other: Source, role: str) -> Iterator[Notice]:
    first, second = model_of(source.config), model_of(other.config)
    known = base_of(source.config) and base_of(other.config)
    if role == "baseline" and not known and first and second and first != second:
        text = f"its model is {first}, that of the baseline {second}; no sidecar names the base of both"
        yield Notice("models_differ", _place(source.key), text[:400])


def _marked(sources: Sequence[Source]) -> Iterator[Notice]:
    for source in sources:
        if source.config is not None and source.config.get("comparable") is False:
            text = "its sidecar says that the run is not comparable with the benchmark's"
            yield Notice("not_comparable", str(source.key), text)


def _once(notices: Sequence[Notice]) -> list[Notice]:
    return list(dict.fromkeys(notices))


def _place(key: CellKey) -> str:
    return f"{key.base} {key.lane} {key.method}"


def _text(config: Config | None, name: str) -> str | None:
    value = (config or {}).get(name)
    return value if isinstance(value, str) and value else None
