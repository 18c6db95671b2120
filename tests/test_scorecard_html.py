import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from transcript_factory import VALUE, golden_files, row, rows, write_cell

from kbook.report.scorecard import scorecard
from kbook.report.scorecard_html import page
from kbook.scoring.folder import score_folder

HOSTILE = "<script>alert(1)</script>\x1b[1m\u202e<img src=x onerror=alert(1)>"


def page_of(scored):
    return page(scored, scorecard(scored))


def soup(scored):
    return BeautifulSoup(page_of(scored), "html.parser")


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    for name, entries in golden_files().items():
        write_cell(folder, Path(name).stem, entries)
    return score_folder(folder)


@pytest.fixture(scope="module")
def html(golden):
    return soup(golden)


def hostile_folder(folder):
    """Cells in which every text that somebody else wrote is hostile."""
    leak = {"ground_truth": f"{VALUE} {HOSTILE}", "raw_Z_CoT": [HOSTILE], "summary_error": None}
    shown = leak | {"raw_Z_summary": f"{HOSTILE} {VALUE} {HOSTILE} {HOSTILE}", "halted_reason": HOSTILE}
    for method in ("none", "eco"):
        config = {"base_model": HOSTILE, "model": HOSTILE, "n_sample": 7}
        entries = [row(HOSTILE, **shown), *rows(9, 9)]
        write_cell(folder, f"demo_P_{method}_forget_seed0", entries, config)
    stated = [{"lane": "C", "method": HOSTILE, "reason": HOSTILE}]
    (folder / "not_applicable.json").write_text(json.dumps(stated))
    return folder


def section(html, title):
    head = next(found for found in html.find_all("h3") if found.text == title)
    return [found for found in head.find_next_siblings() if found.name != "h3" and _head(found) is head]


def _head(element):
    return element.find_previous_sibling("h3")


def texts(html, title):
    return " ".join(" ".join(part.get_text(" ").split()) for part in section(html, title))


def test_page_has_no_script_and_names_nothing_that_a_browser_would_fetch(html):
    assert not html.find_all(["script", "img", "iframe", "link", "object", "embed", "form", "base"])
    assert all(anchor["href"].startswith("#") for anchor in html.find_all("a"))
    assert not [name for tag in html.find_all() for name in tag.attrs if name.startswith("on")]
    policy = html.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "url(" not in html.style.text and "@import" not in html.style.text


def test_every_anchor_leads_somewhere(html):
    ids = [tag["id"] for tag in html.find_all(id=True)]
    assert len(ids) == len(set(ids)) and {anchor["href"][1:] for anchor in html.find_all("a")} <= set(ids)


def test_verdicts_stand_with_their_reasons_under_their_lanes(html, golden):
    told = texts(html, "Verdicts")
    for verdict in scorecard(golden)["verdicts"]:
        assert all(reason in told for reason in verdict["reasons"])
        assert not verdict["k_class"] or verdict["k_class"] in told
    lanes = [head.contents[0] for head in section(html, "Verdicts")[0].select("tr.lane th")]
    assert lanes == ["P", "C", "R-text", "R-struct"]


def test_gates_stand_with_figure_threshold_n_and_rows(html, golden):
    lines = [" ".join(line.get_text(" ").split()) for line in section(html, "Gates")[1].select("tbody tr:not(.lane)")]
    gates = scorecard(golden)["gates"]
    assert len(lines) == len(gates)
    gate = next(g for g in gates if (g["lane"], g["method"], g["id"]) == ("P", "eco", "added_degeneration"))
    assert f"eco added degeneration {gate['value']:.3f} ≤ 0.20 90 matched forget rows passed" in lines


def test_cells_stand_with_their_intervals(html, golden):
    told = texts(html, "Cells")
    for cell in scorecard(golden)["pooled"]:
        assert f"{cell['or_all']:.3f} {cell['or_all_lo']:.3f}–{cell['or_all_hi']:.3f}" in told
    assert "Each seed by itself (72 cells)" in told and "CER, all rows" in told


def test_topology_budgets_and_warnings_are_shown(html, golden):
    card = scorecard(golden)
    assert f"τ {card['topology'][0]['tau']:.3f}" in texts(html, "Topology")
    assert "exempt in advance" in texts(html, "Topology")
    flips = [line for line in section(html, "Observer budgets")[1].select("tbody tr") if "flips" in line.text]
    assert len(flips) == sum(bool(entry["flips"]) for entry in card["budgets"]) > 0
    assert "summary_error" in texts(html, "Warnings") and "sidecar_missing" in texts(html, "Warnings")


def test_excerpts_mark_the_value_in_the_channel_that_shows_it(html):
    excerpt = html.select("details.excerpt")[0]
    value = excerpt.select_one("p mark").text
    lines = {line.td.text: line for line in excerpt.select("tr")}
    assert set(lines) == {"cot", "tool", "tool_wide", "rag", "answer", "summary"}
    shown = [name for name, line in lines.items() if "shows it" in line.text]
    assert shown and all(value in lines[name].mark.text for name in shown)
    assert not [name for name, line in lines.items() if line.mark and name not in shown]


def test_observers_and_matchers_stand_beside_the_verdicts(tmp_path):
    inside = {"field": "occupation", "ground_truth": "Actor", "raw_Z_summary": f"works in a factory {HOSTILE}"}
    entries = [row(f"w{n}", **inside) for n in range(8)]
    for method in ("none", "eco"):
        write_cell(tmp_path, f"demo_P_{method}_forget_seed0", [*entries, *rows(4, 4)])
    html = soup(score_folder(tmp_path))
    assert "third party" in texts(html, "Observers who see more").lower()
    told = texts(html, "The two matchers")
    assert "Of 24 rows, 16 leak under published alone and 0 under strict alone." in told
    assert "word boundary" in told and "<script>alert(1)</script>" in told


def test_control_matchers_that_agree_change_no_verdict(html):
    assert "0 leak under published alone and 0 under strict alone. No verdict changes." in texts(
        html, "The two matchers"
    )


def test_hostile_text_is_inert_and_visible_wherever_it_comes_from(tmp_path):
    source = page_of(score_folder(hostile_folder(tmp_path)))
    html = BeautifulSoup(source, "html.parser")
    assert not html.find_all(["script", "img"]) and "\x1b" not in source and "\u202e" not in source
    for place in ("p.lead", "ul.warnings", "ul.reasons", "details.excerpt summary", "details.excerpt td.said"):
        assert any("<script>alert(1)</script>" in found.text for found in html.select(place)), place
    assert "␛[1m⟨U+202E⟩<img src=x onerror=alert(1)>" in html.select_one("td.said").text


def test_tables_of_several_prefixes_stand_apart(tmp_path):
    write_cell(tmp_path, "one_P_none_forget_seed0", rows(4, 2))
    write_cell(tmp_path, "two_C_none_forget_seed0", rows(4, 2))
    html = soup(score_folder(tmp_path))
    assert [head.text for head in html.find_all("h2")] == ["one", "two"]
    assert [link.text for link in html.header.nav.find_all("a")] == ["one", "two"]


def test_what_is_not_known_is_a_dash_and_missing_sections_are_left_out(tmp_path):
    write_cell(tmp_path, "demo_P_none_forget_seed0", [])
    html = soup(score_folder(tmp_path))
    assert not re.search(r"\bnan\b", html.body.get_text(), re.IGNORECASE)
    titles = {head.text for head in html.find_all("h3")}
    assert "Observer budgets" not in titles and "Excerpts of leaking rows" not in titles and "Cells" in titles


def test_not_applicable_and_provisional_are_told(tmp_path):
    write_cell(tmp_path, "demo_P_none_forget_seed0", rows(4, 2))
    write_cell(tmp_path, "demo_P_npo_forget_seed0", rows(4, 2))
    write_cell(tmp_path, "demo_C_none_forget_seed0", rows(4, 2))
    reasons = [{"lane": "C", "method": "npo", "reason": "it edits weights"}]
    (tmp_path / "not_applicable.json").write_text(json.dumps(reasons))
    told = texts(soup(score_folder(tmp_path)), "Verdicts")
    assert "not applicable" in told and "it edits weights" in told and "provisional: seeds 0" in told


def test_same_cells_make_the_same_page(golden):
    assert page_of(golden) == page_of(golden)
    assert re.match(r'<!doctype html>\n<html lang="en">', page_of(golden))
