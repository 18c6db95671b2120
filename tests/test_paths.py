"""Where things lie, from wherever Python was started."""

from pathlib import Path

from kbook import paths


def test_root_is_the_checkout_whatever_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    paths.project_root.cache_clear()
    assert paths.project_root() == Path(__file__).resolve().parents[1]
    assert (paths.data_folder() / "profiles" / "laptop.toml").is_file()


def test_store_lies_in_the_checkout_unless_the_environment_names_another(monkeypatch, tmp_path):
    monkeypatch.delenv("KBOOK_STORE", raising=False)
    assert paths.store_folder() == paths.project_root() / "_runs"
    monkeypatch.setenv("KBOOK_STORE", str(tmp_path / "elsewhere"))
    assert paths.store_folder() == tmp_path / "elsewhere"
