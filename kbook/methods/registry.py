"""Methods by name: the registry, and methods that are brought in a file of one's own.

Bring your own: ``path/to/file.py::ClassName`` wherever a method name is expected. The registry is no part of the
source of any run, so that a new method leaves the runs of all others as they are.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import traceback
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from kbook.digests import file_digest, imports_of
from kbook.errors import KBookError, unknown_name
from kbook.keys import LANES
from kbook.methods.contract import Intervention
from kbook.paths import project_root

FAMILIES = ("weights", "embeddings", "activations", "logits", "text", "control")
_REMEDY = "give path/to/file.py::ClassName, the class derived from kbook.methods.contract.Intervention"

METHODS: dict[str, str] = {
    "none": "kbook.methods.contract:NoIntervention",
    "noise": "kbook.methods.noise:Noise",
    "eco": "kbook.methods.eco:ECO",
    "star": "kbook.methods.star:StarHard",
    "star_full": "kbook.methods.star:StarFull",
    "ga": "kbook.methods.ascent:GA",
    "gd": "kbook.methods.ascent:GD",
    "npo": "kbook.methods.preference:NPO",
    "npo_kl": "kbook.methods.preference:NPOKL",
    "idk": "kbook.methods.refusal:IDK",
    "cha": "kbook.methods.hinge:Cha",
    "simnpo": "kbook.methods.preference:SimNPO",
    "dpo": "kbook.methods.preference:DPO",
    "baldro_npo": "kbook.methods.preference:BalDRONPO",
    "baldro_simnpo": "kbook.methods.preference:BalDROSimNPO",
    "wga": "kbook.methods.ascent:WGA",
    "satimp": "kbook.methods.ascent:SatImp",
    "flat": "kbook.methods.refusal:FLAT",
    "llmu": "kbook.methods.refusal:LLMU",
    "undial": "kbook.methods.distillation:UNDIAL",
    "elm": "kbook.methods.distillation:ELM",
    "loku": "kbook.methods.hinge:LoKU",
    "memflex": "kbook.methods.localised:MemFlex",
    "sku": "kbook.methods.localised:SKU",
    "soul": "kbook.methods.second_order:SOUL",
    "rmu": "kbook.methods.representation:RMU",
    "falcon": "kbook.methods.representation:FALCON",
    "depn": "kbook.methods.neurons:DEPN",
    "revs": "kbook.methods.neurons:REVS",
    "law": "kbook.methods.washing:LAW",
    "uld": "kbook.methods.assistant:ULD",
    "leace": "kbook.methods.leace:LEACE",
    "repe": "kbook.methods.repe:RepE",
    "mlp_probe": "kbook.methods.mlp_probe:MLPProbe",
    "rlace": "kbook.methods.rlace:RLACE",
    "rlace_cov": "kbook.methods.rlace:RLACECovariance",
    "o3": "kbook.methods.o3:O3",
}
"""Name to ``module:Class``; everything else about a method is read from its class."""


def method_class(name: str) -> type[Intervention]:
    """The class behind a method name, or behind ``path/to/file.py::ClassName``.

    Raises:
        KBookError: unknown name; a file or class that does not exist or does not keep the contract.
    """
    if "::" in name:
        return _brought(name)
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    module, _, attribute = METHODS[name].partition(":")
    found: type[Intervention] = getattr(importlib.import_module(module), attribute)
    return found


def make_method(name: str, settings: dict[str, Any] | None = None) -> Intervention:
    """A method with checked settings.

    Raises:
        KBookError: as `method_class`, or settings that the method does not know or that are out of range.
    """
    cls = method_class(name)
    try:
        return cls(cls.Parameters(**(settings or {})))
    except ValidationError as error:
        first = error.errors()[0]
        raise KBookError(
            f"setting {'.'.join(map(str, first['loc']))!r} of method {cls.name}: {first['msg']}",
            where="methods",
            remedy=f"settings of {cls.name}: {', '.join(cls.Parameters.model_fields) or 'none'}",
        ) from None


def why_not(cls: type[Intervention], lane: str) -> str | None:
    """None if the method can reach the lane, else the reason that it cannot."""
    if lane not in LANES:
        raise unknown_name("lane", lane, LANES)
    return None if lane in cls.lanes else cls.reason


def source_modules(name: str) -> tuple[str, ...]:
    """The `kbook` modules whose source decides what a method does; a brought file is an input (`brought_digest`)."""
    contract = Intervention.__module__
    if "::" not in name:
        return METHODS[name].partition(":")[0], contract
    return tuple(sorted({contract, *imports_of(_file(name))}))


def brought_digest(name: str) -> dict[str, str]:
    """The digest of a brought method's file, under ``method``; nothing for a registered one."""
    return {"method": file_digest(_file(name))} if "::" in name else {}


def described() -> list[dict[str, Any]]:
    """Every registered method as plain values: name, title, family, lanes, reason, source and settings."""
    return [description(method_class(name)) for name in METHODS]


def description(cls: type[Intervention]) -> dict[str, Any]:
    """One method as plain values."""
    names = ("name", "title", "family", "lanes", "reason", "source")
    settings = {n: {"default": f.default, "meaning": f.description} for n, f in cls.Parameters.model_fields.items()}
    return {name: getattr(cls, name) for name in names} | {"settings": settings}


def _file(name: str) -> Path:
    """The file of a brought method: as given, or else from the checkout, where chapters run."""
    path = Path(name.partition("::")[0]).expanduser()
    return path if path.is_absolute() or path.is_file() else project_root() / path


def _brought(name: str) -> type[Intervention]:
    path, _, attribute = name.partition("::")
    file = _file(name)
    if not file.is_file():
        raise KBookError(f"there is no file {path}", "method", _REMEDY)
    cls = getattr(_imported(file, path), attribute, None)
    if not (inspect.isclass(cls) and issubclass(cls, Intervention)):
        raise KBookError(f"{attribute!r} is not an Intervention", path, _REMEDY)
    faults = [fault for fault, found in _faults(cls).items() if found]
    if faults:
        remedy = "Mend the class; kbook/methods/contract.py says what each part means"
        raise KBookError(f"class {attribute} {', and '.join(faults)}", path, remedy)
    return cls


def _imported(file: Path, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"kbook_brought_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise KBookError("the file is not a Python module", path, _REMEDY)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a reader's own file may raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
        where = f"{path}, line {line}" if line else path
        raise KBookError(f"{type(error).__name__}: {error}", where, "Mend the file; it is imported as it is") from None
    return module


def _faults(cls: type[Intervention]) -> dict[str, bool]:
    """What keeps a class from being a method; each in words, and whether it holds."""
    missing = [a for a in ("name", "title", "family", "source") if not hasattr(cls, a)]
    abstract = sorted(cls.__abstractmethods__)
    lanes, settings = set(cls.lanes), cls.Parameters
    name, family = getattr(cls, "name", ""), getattr(cls, "family", None)
    plain = not (inspect.isclass(settings) and issubclass(settings, BaseModel))
    return {
        f"lacks {', '.join(missing)}": bool(missing),
        f"does not define {', '.join(abstract)}": bool(abstract),
        f"bears the name {name}, which the book gives to another": name in METHODS,
        f"is of no family: one of {', '.join(FAMILIES)}": family is not None and family not in FAMILIES,
        f"names no lane: some of {', '.join(LANES)}": not lanes or not lanes <= set(LANES),
        "gives no reason why it cannot reach the other lanes": lanes != set(LANES) and not cls.reason,
        "edits weights without a method edit": family == "weights" and cls.edit is Intervention.edit,
        "has Parameters that are no pydantic model": plain,
    }
