"""Languages on the axes of figures: drawn in their script where a font and shaping are here, else named by code."""

from types import SimpleNamespace

import pytest

from kbook import doctor
from kbook.corpora.languages import LANGUAGES
from kbook.report import figures, fonts


def with_families(monkeypatch, *names, shapes=True):
    """A machine whose fonts are these."""
    manager = SimpleNamespace(ttflist=[SimpleNamespace(name=name, fname=f"/{name}") for name in names])
    monkeypatch.setattr("matplotlib.font_manager.fontManager", manager)
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [])
    monkeypatch.setattr(fonts, "shapes", lambda: shapes)
    fonts.drawn.cache_clear()


@pytest.fixture(autouse=True)
def forget_fonts():
    yield
    fonts.drawn.cache_clear()


def test_a_script_without_a_font_is_named_by_its_code_alone(monkeypatch):
    with_families(monkeypatch, fonts.FAMILY, "Noto Sans Thai")
    assert [fonts.label(code) for code in ("de", "th", "bn", "ja")] == ["de Deutsch", "th ไทย", "bn", "ja"]
    assert fonts.undrawn() == ["bn", "ja", "zh"]


def test_with_noto_every_language_has_its_own_name_and_the_code_comes_first(monkeypatch):
    with_families(monkeypatch, fonts.FAMILY, *(names[0] for names in fonts.FAMILIES.values()))
    assert fonts.undrawn() == [] and fonts.families()[0] == fonts.FAMILY
    assert all(fonts.label(code).startswith(f"{code} ") for code in LANGUAGES)


def test_letters_that_must_be_joined_are_not_drawn_where_nothing_joins_them(monkeypatch):
    with_families(monkeypatch, fonts.FAMILY, *(names[0] for names in fonts.FAMILIES.values()), shapes=False)
    assert fonts.undrawn() == ["ar", "bn", "th"] and fonts.label("ar") == "ar" and fonts.label("zh") == "zh 中文"


def test_noto_that_came_after_the_list_of_fonts_was_made_is_found(monkeypatch):
    with_families(monkeypatch, fonts.FAMILY)
    from matplotlib.font_manager import fontManager

    def add(path):
        fontManager.ttflist.append(SimpleNamespace(name=path.split("/")[-1], fname=path))

    monkeypatch.setattr(fontManager, "addfont", add, raising=False)
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: ["/new/Noto Sans Thai", "/new/Other"])
    assert "th" not in fonts.undrawn()
    assert "/new/Other" not in {entry.fname for entry in fontManager.ttflist}


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_label_has_a_letter_that_no_font_here_can_draw(code, recwarn):
    figure, axes = figures.canvas(width="half", height=1)
    axes[0, 0].set_title(fonts.label(code))
    figures.to_svg(figure, "fig-a-b")
    assert not [warning for warning in recwarn if "missing from font" in str(warning.message)]


def test_doctor_names_the_languages_that_are_not_drawn_and_how_to_get_fonts(monkeypatch):
    monkeypatch.setattr("matplotlib.font_manager.findfont", lambda *_, **__: "")
    with_families(monkeypatch, fonts.FAMILY)
    found = doctor._fonts()
    assert found.state == "optional" and "bn, ja, th, zh" in found.found and "fonts-noto-cjk" in found.remedy
    with_families(monkeypatch, fonts.FAMILY, *(names[0] for names in fonts.FAMILIES.values()), shapes=False)
    assert "3.11" in doctor._fonts().remedy
    with_families(monkeypatch, fonts.FAMILY, *(names[0] for names in fonts.FAMILIES.values()))
    assert doctor._fonts().state == "ok"
