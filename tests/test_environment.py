"""One list of requirements, said three times the same, and enough for everything that the package imports."""

import ast
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kbook.paths import PACKAGE, project_root

ROOT = project_root()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIRED = [Requirement(line) for line in PROJECT["dependencies"]]
FOR_TESTS = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
LOCKED = {
    canonicalize_name(name): version
    for name, version in (
        line.split("==")
        for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
}


def test_conda_and_pip_name_the_same_requirements():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    assert f"python {PROJECT['requires-python']}" in environment["dependencies"]


@pytest.mark.parametrize("requirement", [*REQUIRED, *FOR_TESTS], ids=lambda requirement: requirement.name)
def test_the_lock_satisfies_each_requirement(requirement):
    assert requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)])


def test_the_lock_names_no_place_and_no_build():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not any(mark in text for mark in ("://", "@", "+cpu", "+cu", "--"))
    assert LOCKED["torch"] == "2.13.0"


def test_the_book_stays_on_version_1_of_jupyter_book():
    installed = metadata.version("jupyter-book")
    assert installed.startswith("1."), f"jupyter-book {installed}: run `make clean` and `make test` to get 1.x again"
    assert LOCKED["jupyter-book"] == "1.0.4.post1"


def imported_packages():
    """The top names of everything that the package imports, our own and the standard library aside."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(str(node.module).split(".")[0])
    return names - set(sys.stdlib_module_names) - {"kbook"}


def test_whatever_the_package_imports_is_required():
    providers = metadata.packages_distributions()
    required = {canonicalize_name(requirement.name) for requirement in REQUIRED}
    given = {name: {canonicalize_name(d) for d in providers.get(name, [name])} for name in imported_packages()}
    assert {name for name, packages in given.items() if not packages & required} == set()


def test_whatever_is_required_is_locked_once():
    assert len(LOCKED) == len([line for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line])
