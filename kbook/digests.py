"""Say in 64 characters what a result depends on: parameters, source text, inputs and base model.

Two runs with the same digest are the same run. Nothing is normalised: a changed comment in a module that a
run depends on makes another run, because deciding which edits are harmless is how stale results get read.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kbook.errors import KBookError
from kbook.paths import PACKAGE

ABSENT = "absent"


def canonical_json(value: Any) -> str:
    """Write a value as JSON in one way only: sorted keys, no spaces, ASCII; pydantic models as their fields.

    Raises:
        KBookError: the value cannot be written as JSON (an array, a path, NaN …); convert it first.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_fields)
    except (TypeError, ValueError) as error:
        remedy = "Give plain numbers, strings, lists and dicts"
        raise KBookError(f"a value cannot be written as JSON ({error})", remedy=remedy) from None


def digest_of(value: Any) -> str:
    """Digest a JSON-able value: sha256, as hex, of its canonical JSON.

    Raises:
        KBookError: as `canonical_json`.
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Digest the bytes of a file: sha256 as hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Spec:
    """Everything that decides the content of a run.

    Args:
        parameters: JSON-able values, pydantic models (sections of a profile) included.
        sources: the `kbook` modules that do the work; their own `kbook` imports follow by themselves, also
            those inside functions. A module that is imported by a computed name must be named here.
        inputs: name of each input → digest of its content.
        base: digest of the base model, "" where none is used.
        made_from: name of each input that is itself a run → its own Spec, so that it need not be there yet.
    """

    parameters: Mapping[str, Any]
    sources: tuple[str, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    made_from: Mapping[str, Spec] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Any]:
        """What is digested, as plain JSON values; `sources` maps each module to its own digest."""
        inputs = {**self.inputs, **{name: spec.digest for name, spec in self.made_from.items()}}
        parts = {**self._settled(inputs), "sources": source_digests(self.sources)}
        plain: dict[str, Any] = json.loads(canonical_json(parts))
        return plain

    def _settled(self, inputs: Mapping[str, str]) -> dict[str, Any]:
        return {"parameters": self.parameters, "inputs": inputs, "base": self.base}

    @property
    def digest(self) -> str:
        """The digest of the run, 64 hex characters.

        Raises:
            KBookError: a parameter is not JSON-able, or a source module does not exist.
        """
        return digest_of(self.parts)

    @property
    def question(self) -> str:
        """The digest of all but the source text, 64 hex characters: what was asked, whatever code answered.

        Raises:
            KBookError: a parameter is not JSON-able.
        """
        inputs = {**self.inputs, **{name: spec.question for name, spec in self.made_from.items()}}
        return digest_of(self._settled(inputs))


def source_digests(modules: Iterable[str], package: Path = PACKAGE, *, missing_ok: bool = False) -> dict[str, str]:
    """Digest the source of modules of one package and of all its modules that they import, however deep.

    The package's own `__init__` counts only where something is imported from it by name: it holds the
    version, and a new version alone is no reason to compute everything again. Each file is read once a
    process: an edit made later is not the code that this process runs.

    Args:
        modules: names, such as ``kbook.agent.react``.
        package: the folder of the package.
        missing_ok: leave out a named module that does not exist.
    Raises:
        KBookError: a named module does not exist, or a source file cannot be parsed.
    """
    pending: list[str] = []
    for name in modules:
        if _source_file(name, package) is None:
            if missing_ok:
                continue
            raise KBookError(f"there is no module {name}", "sources of a run", f"Name a module of {package.name}")
        pending += _with_packages(name, package)
    digests: dict[str, str] = {}
    while pending:
        name = pending.pop()
        if name not in digests:
            digests[name], imported = _read_module(name, package)
            pending += imported
    return digests


def imports_of(path: Path, package: Path = PACKAGE) -> tuple[str, ...]:
    """List the modules of the package that a file outside it imports.

    Raises:
        KBookError: the file cannot be parsed.
    """
    return tuple(dict.fromkeys(name for name in _imports("", path, package) if _source_file(name, package)))


@cache
def _read_module(module: str, package: Path) -> tuple[str, tuple[str, ...]]:
    """Return the digest of a module's source and the modules of the package that it imports."""
    path = _source_file(module, package)
    if path is None:  # only a guarded import can ask for it; should it appear, that is another source
        return ABSENT, ()
    return file_digest(path), tuple(_imports(module, path, package))


def _source_file(module: str, package: Path) -> Path | None:
    first, *rest = module.split(".")
    stem = package.joinpath(*rest)
    candidates = (stem / "__init__.py", stem.with_suffix(".py")) if rest else (stem / "__init__.py",)
    return next((c for c in candidates if c.is_file()), None) if first == package.name else None


def _imports(module: str, path: Path, package: Path) -> Iterator[str]:
    """Yield every module of the package that a source file imports, with the packages that this runs."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise KBookError(f"cannot be parsed ({error.msg})", f"{path}, line {error.lineno}", "Mend the file") from None
    for node in ast.walk(tree):
        for name in _imported_names(node, module, is_package=path.name == "__init__.py"):
            yield from _with_packages(name, package)


def _imported_names(node: ast.AST, module: str, is_package: bool) -> list[str]:
    """List the dotted names that one import statement asks for; in a from-import, each may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = node.module or ""
    if node.level:
        package = module.split(".") if is_package else module.split(".")[:-1]
        anchor = package[: len(package) - (node.level - 1)]
        origin = ".".join([*anchor, *([origin] if origin else [])])
    return [f"{origin}.{alias.name}" for alias in node.names]


def _with_packages(name: str, package: Path) -> Iterator[str]:
    """Resolve a dotted name to its module (dropping a trailing attribute) and the packages above it."""
    parts = name.split(".")
    if parts[0] != package.name:
        return
    if _source_file(name, package) is None and len(parts) > 1:
        parts = parts[:-1]
    yield from (".".join(parts[:n]) for n in range(2, len(parts)))
    yield ".".join(parts)


def _fields(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")
