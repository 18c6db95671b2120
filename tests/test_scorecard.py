"""The JSON object: what its schema says of it, and what the conformance suite says of its numbers."""

import json
import math
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import pytest
from transcript_factory import golden_files, golden_values, row, rows, write_cell

from kbook.keys import CHANNELS, OFFICIAL_CHANNELS
from kbook.paths import data_folder
from kbook.report.scorecard import scorecard, to_json
from kbook.scoring.folder import score_folder

SCHEMA = json.loads((data_folder() / "schema" / "score.schema.json").read_text(encoding="utf-8"))
BUDGETS = ("A1", "A2", "A3", "A4", "A5")


def check(card):
    jsonschema.Draft202012Validator(SCHEMA).validate(card)
    return card


@cache
def golden_card():
    """The object of the conformance folder, as a reader of the file has it; scored within ten seconds of work."""
    with TemporaryDirectory() as folder:
        for name, entries in golden_files().items():
            write_cell(Path(folder), Path(name).stem, entries)
        begun = time.process_time()
        text = to_json(scorecard(score_folder(Path(folder))))
        assert time.process_time() - begun < 10
        return json.loads(text)


def card_of(tmp_path, **cells):
    """Score cells given as METHOD_SPLIT_seedN=rows, all of lane P."""
    for name, entries in cells.items():
        write_cell(tmp_path, f"demo_P_{name}", entries)
    return check(scorecard(score_folder(tmp_path)))


def by(records, *names):
    return {"|".join(str(record[name]) for name in names): record for record in records}


def test_schema_is_one_and_names_its_draft():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_control_schema_refuses_what_is_not_an_output():
    for change in ({"cells": None}, {"surprise": 1}, {"schema": "kbook-score@0"}):
        with pytest.raises(jsonschema.ValidationError):
            check(golden_card() | change)
    renamed = [{**golden_card()["verdicts"][0], "kscore": 1}]
    with pytest.raises(jsonschema.ValidationError):
        check(golden_card() | {"verdicts": renamed})


def test_conformance_object_follows_the_schema():
    card = check(golden_card())
    assert len(card["cells"]) == 72 and len(card["pooled"]) == 24 and len(card["budgets"]) == 8
    assert card["source"]["layout"] == "official files" and card["settings"]["matcher"] == "published"


def test_conformance_cells_agree():
    cells, wanted = by(golden_card()["cells"], "lane", "method", "split", "seed"), golden_values()["cells"]
    assert cells.keys() == wanted.keys()
    for name, cell in cells.items():
        assert cell["n"] == wanted[name]["n"]
        assert cell["or_all"] == pytest.approx(wanted[name]["or_all"], abs=1e-12)
        for channel in CHANNELS:
            official, found = OFFICIAL_CHANNELS[channel], cell["channels"][channel]
            assert found["cer_available"] == pytest.approx(wanted[name]["cer"][official], abs=1e-12)
            assert found["share"] == pytest.approx(wanted[name]["share"][official], abs=1e-12)


def test_conformance_tests_agree():
    tests, wanted = by(golden_card()["tests"], "lane", "method", "split"), golden_values()["mcnemar"]
    assert tests.keys() == wanted.keys()
    for name, test in tests.items():
        value = wanted[name]
        counts = (value["n_matched"], value["base_only"], value["intervention_only"])
        assert (test["n"], test["base_only"], test["method_only"]) == counts
        assert (test["or_none"], test["or_method"]) == pytest.approx((value["or_base"], value["or_intervention"]))
        assert (test["p"], test["p_adj"]) == pytest.approx((value["p"], value["p_adj"]), rel=1e-9)


def test_conformance_verdicts_agree():
    verdicts, wanted = by(golden_card()["verdicts"], "lane", "method"), golden_values()["kscore"]
    pooled = by(golden_card()["pooled"], "lane", "method", "split")
    assert verdicts.keys() == wanted.keys()
    for name, verdict in verdicts.items():
        value, forget, retain = wanted[name], pooled[f"{name}|forget"], pooled[f"{name}|retain"]
        found = (verdict["k_score"], verdict["delta_sel"], verdict["delta_degen"])
        assert found == pytest.approx((value["kscore"], value["delta_sel"], value["delta_degen"]), abs=1e-12)
        rates = (forget["or_graded"], retain["or_graded"], forget["degeneration"])
        expected = (value["or_graded_forget"], value["or_graded_retain"], value["degen_forget"])
        assert rates == pytest.approx(expected, abs=1e-12)
        severity = {OFFICIAL_CHANNELS[c]: forget["channels"][c]["severity"] for c in CHANNELS}
        assert severity == pytest.approx(value["severity_by_channel"], abs=1e-12)


def test_conformance_topology_agrees():
    (topology,), wanted = golden_card()["topology"], golden_values()
    assert topology["tau"] == pytest.approx(wanted["tau"], abs=1e-12)
    assert topology["within"] == pytest.approx(wanted["d_within"], abs=1e-12)
    distances = {frozenset((p["first"], p["second"])): p["distance"] for p in topology["pairs"]}
    assert len(distances) == len(wanted["tv"])
    for name, distance in wanted["tv"].items():
        assert distances[frozenset(name.split("|"))] == pytest.approx(distance, abs=1e-12)


def test_every_rate_lies_in_its_interval():
    for cell in golden_card()["cells"] + golden_card()["pooled"]:
        for place in (cell, *cell["channels"].values()):
            for name in [name for name in place if f"{name}_lo" in place]:
                assert place[f"{name}_lo"] <= place[name] <= place[f"{name}_hi"], (cell["lane"], name)


def test_budgets_never_fall_and_flips_are_those_of_the_verdicts():
    verdicts = by(golden_card()["verdicts"], "lane", "method")
    for entry in golden_card()["budgets"]:
        rates = [entry["observers"][budget]["or_method"] for budget in BUDGETS]
        assert rates == sorted(rates)
        assert entry["flips"] == verdicts[f"{entry['lane']}|{entry['method']}"]["flipped"]


def test_gates_can_be_checked_by_hand():
    gates = [gate for gate in golden_card()["gates"] if gate["id"] == "added_degeneration"]
    assert len(gates) == 8
    for gate in gates:
        assert gate["passed"] == (gate["value"] <= gate["threshold"]) and gate["n"] == 90


def test_what_is_not_known_is_null_and_the_text_is_strict_json(tmp_path):
    card = card_of(tmp_path, none_forget_seed0=rows(4, 2), eco_forget_seed0=rows(4))
    eco = by(card["verdicts"], "method")["eco"]
    assert eco["k_score"] is None and eco["selectivity"] is None and eco["eligible"] is None
    assert eco["k_class"] == "measured failure" or eco["ratio"] is None
    assert any("no retain cell of eco" in reason for reason in eco["reasons"])
    text = to_json(scorecard(score_folder(tmp_path)))
    assert json.loads(text, parse_constant=pytest.fail) == card


def test_infinite_ratio_is_null_and_nan_nowhere(tmp_path):
    card = card_of(tmp_path, none_forget_seed0=rows(40, 30), eco_forget_seed0=rows(40))
    assert by(card["verdicts"], "method")["eco"]["k_class"] == "K-REF ∞"
    assert by(card["verdicts"], "method")["eco"]["ratio"] is None

    def numbers(value):
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = [value] if isinstance(value, float) else []
        return own + [number for child in children for number in numbers(child)]

    assert all(math.isfinite(number) for number in numbers(card))


def test_cell_without_rows_and_lane_that_does_not_apply_follow_the_schema(tmp_path):
    reasons = [{"lane": "C", "method": "eco", "reason": "acts on weights"}]
    (tmp_path / "not_applicable.json").write_text(json.dumps(reasons))
    card = card_of(tmp_path, none_forget_seed0=[], eco_forget_seed0=[row()])
    assert by(card["verdicts"], "lane", "method")["C|eco"]["status"] == "not applicable"
    assert {"cell_empty", "sidecar_missing"} <= {warning["code"] for warning in card["warnings"]}


def test_collapse_is_told_for_a_method_and_never_for_the_baseline(tmp_path):
    broken = {"raw_full": "Thought: t", "answer": None, "halted_reason": "max_iters", "n_thoughts": 1}
    card = card_of(tmp_path, none_forget_seed0=rows(4, **broken), eco_forget_seed0=rows(4, **broken))
    told = {cell["method"]: (cell["degeneration"], cell["terminal_collapse"]) for cell in card["cells"]}
    assert told == {"none": (1.0, False), "eco": (1.0, True)}


def test_observers_stand_beside_or_all_and_never_below_it():
    observers = golden_card()["observers"]
    assert len(observers["cells"]) == 2 * 72 and len(observers["verdicts"]) == 2 * 16
    assert all(cell["or_seen"] >= cell["or_all"] for cell in observers["cells"])
    verdicts = by(golden_card()["verdicts"], "lane", "method")
    for label in observers["verdicts"]:
        verdict = verdicts[f"{label['lane']}|{label['method']}"]
        assert label["label_or_all"] == verdict["k_class" if label["split"] == "forget" else "selectivity"]


def test_value_of_another_person_is_seen_by_the_third_party_alone(tmp_path):
    told = {"raw_Z_summary": "N1 works at Birch and Sons Ltd."}
    asked = [row("q0", pii_id="p0", **told), row("q1", pii_id="p1", ground_truth="Birch and Sons Ltd.")]
    card = card_of(tmp_path, none_forget_seed0=asked, eco_forget_seed0=[asked[0] | {"raw_Z_summary": ""}, asked[1]])
    seen = by(card["observers"]["cells"], "observer", "method")
    assert seen["third party|none"]["or_all"] == 0 and seen["third party|none"]["or_seen"] == 0.5
    assert seen["third party|eco"]["or_seen"] == 0 and seen["stitching|none"]["or_seen"] == 0


def test_matchers_that_disagree_are_counted_with_their_rule_and_place(tmp_path):
    inside = {"field": "occupation", "ground_truth": "Actor", "raw_Z_summary": "works in a factory"}
    found = card_of(tmp_path, none_forget_seed0=[row("q0", **inside)])["disagreements"]
    assert found["n_differences"] == 1 and found["cells"][0]["n_published_only"] == 1
    (rule,), (difference,) = found["rules"], found["rows"]
    assert (rule["found_by"], rule["rule"], rule["n_rows"]) == ("published", "word boundary", 1)
    assert (difference["query_id"], difference["channel"]) == ("q0", "summary")


def test_control_matchers_agree_on_the_conformance_suite():
    found = golden_card()["disagreements"]
    assert found["n_differences"] == 0 and len(found["cells"]) == 72 and found["rows"] == found["rules"] == []
    assert not any(label["changed"] for label in found["verdicts"])


def test_tables_say_what_they_are_made_of(tmp_path):
    config = {"base_model": "Qwen/Qwen3.5-9B"}
    write_cell(tmp_path, "two_Rtext_none_forget_seed7", rows(2, 1), config)
    card = card_of(tmp_path, none_forget_seed0=rows(2, 1))
    first, second = card["tables"]
    assert (first["prefix"], first["bases"], first["lanes"]) == ("demo", [], ["P"])
    assert (second["prefix"], second["bases"], second["seeds"]) == ("two", ["Qwen/Qwen3.5-9B"], [7])
    assert {record["prefix"] for record in card["cells"]} == {"demo", "two"}


def test_hostile_names_are_text_like_any_other(tmp_path):
    hostile = "</script>\u202e\x00"
    write_cell(tmp_path, "demo_P_none_forget_seed0", [row(hostile, summary_error="x")], {"model": hostile})
    text = to_json(scorecard(score_folder(tmp_path)))
    assert text.isascii() and "\x00" not in text
    check(json.loads(text))
