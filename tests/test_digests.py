"""Digests: they change with what decides a result, and with nothing else."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.digests import ABSENT, Spec, canonical_json, digest_of, file_digest, imports_of, source_digests
from kbook.errors import KBookError
from kbook.profiles import load_profile

SPEC = Spec(parameters={"n": 8, "seeds": [0, 137]}, sources=("kbook.keys",), inputs={"corpus": "c0"}, base="b0")

PACKAGE = {
    "__init__.py": "__version__ = '1'\n",
    "ground.py": "LIMIT = 1\n",
    "other.py": "UNRELATED = 1\n",
    "lazy.py": "X = 1\n",
    "sub/__init__.py": "REGISTRY = {}\n",
    "sub/work.py": "import json\nfrom ..ground import LIMIT\nfrom . import help\n",
    "sub/help.py": "def f():\n    from book.lazy import X\n    return X\n",
    "sub/cycle.py": "import book.sub.work\nfrom book.sub.cycle import missing\n",
    "sub/version.py": "from book import __version__\n",
    "sub/guarded.py": "try:\n    import book.absent.thing\nexcept ImportError:\n    pass\n",
}


@pytest.fixture
def package(tmp_path):
    """Return a maker of fresh copies of a small package, with some files replaced."""
    made = []

    def make(changes: dict[str, str] | None = None) -> Path:
        root = tmp_path / str(len(made)) / "book"
        for name, text in (PACKAGE | (changes or {})).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        made.append(root)
        return root

    return make


def test_digest_is_the_sha256_of_canonical_json():
    assert canonical_json({"b": [1, 2.5, None], "a": "é"}) == '{"a":"\\u00e9","b":[1,2.5,null]}'
    assert digest_of({}) == hashlib.sha256(b"{}").hexdigest()


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers())))
def test_digest_does_not_depend_on_the_order_of_keys(value):
    assert digest_of(value) == digest_of(dict(reversed(value.items())))


def test_sections_of_a_profile_are_digested_by_their_fields():
    profile = load_profile("smoke")
    assert digest_of({"cells": profile.cells}) == digest_of({"cells": profile.cells.model_dump(mode="json")})
    assert digest_of(profile.cells) != digest_of(profile.with_(cells={"n": 7}).cells)


@pytest.mark.parametrize("value", [float("nan"), Path("a"), {1}, b"bytes"], ids=str)
def test_value_that_is_no_json_is_refused(value):
    with pytest.raises(KBookError, match="cannot be written as JSON"):
        digest_of({"x": value})


def test_file_digest_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert file_digest(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"n": 9, "seeds": [0, 137]}},
        {"parameters": {"n": 8, "seeds": [137, 0]}},
        {"parameters": {"n": 8, "seeds": [0, 137], "new": None}},
        {"inputs": {"corpus": "c1"}},
        {"inputs": {"corpus": "c0", "index": "i0"}},
        {"base": "b1"},
        {"sources": ("kbook.errors",)},
    ],
    ids=["parameter", "order of a list", "new parameter", "input", "new input", "base", "another source"],
)
def test_spec_digest_changes_with_each_of_its_parts(changes):
    assert replace(SPEC, **changes).digest != SPEC.digest


def test_spec_digest_stays_when_nothing_changes():
    same = Spec(
        parameters={"seeds": (0, 137), "n": 8},
        sources=("kbook.keys", "kbook.keys", "kbook.errors"),  # the latter is what the former imports anyway
        inputs={"corpus": "c0"},
        base="b0",
    )
    assert same.digest == SPEC.digest
    assert len(SPEC.digest) == 64


def test_imports_are_followed_wherever_they_stand(package):
    found = source_digests(["book.sub.work"], package())
    assert set(found) == {"book.sub", "book.sub.work", "book.sub.help", "book.ground", "book.lazy"}


def test_named_package_and_attribute_imports_resolve(package):
    root = package()
    assert set(source_digests(["book.sub"], root)) == {"book.sub"}
    assert "book" in source_digests(["book.sub.version"], root)


def test_cyclic_imports_end(package):
    assert {"book.sub.cycle", "book.sub.work"} <= set(source_digests(["book.sub.cycle"], package()))


@pytest.mark.parametrize(
    "changes",
    [
        {"sub/work.py": PACKAGE["sub/work.py"] + "# a comment\n"},
        {"ground.py": "LIMIT = 2\n"},
        {"lazy.py": "X = 2\n"},
        {"sub/__init__.py": "REGISTRY = {1: 2}\n"},
    ],
    ids=[
        "the module itself, by a comment",
        "a module it imports",
        "two imports away",
        "the package it lies in",
    ],
)
def test_source_digests_change_with_any_module_that_runs(package, changes):
    before = source_digests(["book.sub.work"], package())
    assert source_digests(["book.sub.work"], package(changes)) != before


def test_source_digests_stay_when_other_modules_or_the_version_change(package):
    other = package({"other.py": "UNRELATED = 2\n", "__init__.py": "__version__ = '2'\n"})
    assert source_digests(["book.sub.work"], other) == source_digests(["book.sub.work"], package())


def test_module_behind_a_guard_changes_the_digest_when_it_appears(package):
    before = source_digests(["book.sub.guarded"], package())
    assert before["book.absent"] == ABSENT
    assert source_digests(["book.sub.guarded"], package({"absent.py": "thing = 1\n"})) != before


def test_unknown_source_is_refused(package):
    with pytest.raises(KBookError, match="there is no module book.nothing"):
        source_digests(["book.nothing"], package())
    with pytest.raises(KBookError, match="there is no module json"):
        source_digests(["json"], package())


def test_source_with_a_syntax_error_is_named_with_its_line(package):
    with pytest.raises(KBookError, match=r"ground\.py, line 2"):
        source_digests(["book.ground"], package({"ground.py": "a = 1\nb = = 2\n"}))


def test_edit_during_a_process_does_not_change_what_it_runs(package):
    root = package()
    before = source_digests(["book.ground"], root)
    (root / "ground.py").write_text("LIMIT = 3\n")
    assert source_digests(["book.ground"], root) == before


def test_edited_copy_of_kbook_itself_has_another_digest(tmp_path):
    """End to end, in fresh processes: `kbook.keys` changes through `kbook.errors`, which it imports."""
    package = Path(__file__).parents[1] / "kbook"
    copy = tmp_path / "kbook"
    copy.mkdir()
    for path in package.glob("*.py"):
        (copy / path.name).write_bytes(path.read_bytes())
    (copy.parent / "data" / "profiles").mkdir(parents=True)
    code = "from kbook.store import Spec; print(Spec({}, ('kbook.keys',)).digest)"

    def digest() -> str:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    before = digest()
    (copy / "doctor.py").write_text("# not imported by keys\n")
    assert digest() == before
    (copy / "errors.py").write_text((copy / "errors.py").read_text() + "\n# edited\n")
    assert digest() != before


def test_a_file_outside_the_package_names_what_it_imports(package, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("import json\nfrom book.sub.work import LIMIT\nfrom book import absent\nimport bookkeeping\n")
    assert imports_of(file, package()) == ("book.sub", "book.sub.work", "book")
    file.write_text("import (\n")
    with pytest.raises(KBookError, match="own.py, line 1: cannot be parsed"):
        imports_of(file, package())
