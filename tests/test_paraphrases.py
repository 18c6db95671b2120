"""Wordings compared query by query: planted flips are counted where they are, and nowhere else."""

import pytest
from planted_runs import judged, run
from transcript_factory import PLANTED, row

from kbook.corpora.people import Query
from kbook.keys import FIELDS
from kbook.report import paraphrases
from kbook.report.paraphrases import CANONICAL

LEAKS = PLANTED["answer"][0]
BROKEN = {"halted_reason": "parse_error", "raw_full": "zzz", "answer": ""}


def cell(leaking, wording=0, broken=(), **names):
    """Four people by four fields; ``leaking`` and ``broken`` are numbers of queries."""
    found = []
    for i in range(16):
        query = f"pii-{i // 4:05d}::{FIELDS[i % 4]}" + (f"::w{wording}" if wording else "")
        found.append(row(query, **(BROKEN if i in broken else LEAKS if i in leaking else {})))
    return run(found, variant=f"wording-{wording}" if wording else "", **names)


def panels(canonical, *others, **names):
    """Judged panels of one treated cell, the untreated agent leaking everywhere in every wording."""
    found = {}
    for wording, treated in enumerate((canonical, *others)):
        pair = [cell(range(16), wording, **names), cell(wording=wording, method="eco", **treated, **names)]
        found[f"paraphrase {wording}" if wording else CANONICAL] = judged(pair)
    return found


def agreement(*treated):
    frame = paraphrases.agreement_frame(panels(*treated))
    return frame[frame["method"] == "eco"].iloc[0]


def test_a_query_is_the_same_whatever_its_words(people):
    for wording in (0, 1, 2):
        assert paraphrases.asked(Query(people[0], "address", wording).id) == Query(people[0], "address").id
        assert paraphrases.field_of(Query(people[0], "address", wording).id) == "address"


def test_the_four_kinds_of_pair_and_the_exact_test():
    found = agreement({"leaking": range(8)}, {"leaking": range(6, 12)})
    assert [found[n] for n in ("both", "only canonical", "only this", "neither")] == [2, 6, 4, 4]
    assert found["agree"] == pytest.approx(6 / 16) and found["p"] == pytest.approx(772 / 1024)


def test_the_same_outcome_everywhere_agrees_and_equal_rates_need_not():
    same, other = (
        agreement({"leaking": range(8)}, {"leaking": range(8)}),
        agreement({"leaking": range(8)}, {"leaking": range(8, 16)}),
    )
    assert (same["agree"], same["p"]) == (1, 1) and (other["agree"], other["p"]) == (0, 1)


def test_a_trace_that_broke_off_is_no_disagreement_among_healthy_ones():
    found = agreement({"leaking": range(8)}, {"leaking": range(8), "broken": range(4)})
    assert found["agree"] == pytest.approx(12 / 16) and found["agree, both healthy"] == 1
    assert found["only canonical"] == 4
    none = agreement({"leaking": (), "broken": range(16)}, {"leaking": ()})
    assert none["agree"] == 1 and none["agree, both healthy"] != none["agree, both healthy"]


def test_flips_are_counted_at_their_field_and_lane():
    flips = paraphrases.flip_frame(panels({"leaking": (0, 4)}, {"leaking": (4, 1, 5, 9)}, lane="C"))
    by_field = flips.set_index("field")
    assert set(flips["lane"]) == {"C"} and (flips["pairs"] == 8).all()  # of both methods
    assert by_field.loc[FIELDS[0], ["only canonical", "only paraphrase", "flips"]].tolist() == [1, 0, 1 / 8]
    assert by_field.loc[FIELDS[1], ["only canonical", "only paraphrase", "flips"]].tolist() == [0, 3, 3 / 8]
    assert by_field.loc[list(FIELDS[2:]), "flips"].tolist() == [0, 0]


def test_asking_in_all_wordings_finds_the_union():
    frame = paraphrases.any_frame(panels({"leaking": range(4)}, {"leaking": range(2, 8)}, {"leaking": (15,)}))
    eco = frame.set_index("method").loc["eco"]
    assert [eco[c] for c in ("queries", CANONICAL, "highest of one wording", "any wording")] == [
        16,
        4 / 16,
        6 / 16,
        9 / 16,
    ]


def test_rates_stand_by_wording_with_the_retain_side_where_there_is_one():
    found = panels({"leaking": range(4)}, {"leaking": range(6)})
    table = paraphrases.rate_table(found)
    eco = table[table["method"] == "eco"].set_index("wording")
    assert eco["leak on forget"].to_dict() == {CANONICAL: 4 / 16, "paraphrase 1": 6 / 16}
    assert eco["leak on retain"].isna().all() and (eco["degenerate"] == 0).all()
    rates = paraphrases.wording_rates(found)
    assert (rates["low"] <= rates["share"]).all() and (rates["share"] <= rates["high"]).all()


def test_an_answer_that_changes_is_seen_beside_a_summary_that_does_not():
    told = {0: PLANTED["answer"][0] | PLANTED["summary"][0], 1: PLANTED["summary"][0]}
    found = {
        name: judged([run([row(f"pii-1::address{tail}", **told[w])], variant=f"wording-{w}" if w else "")])
        for w, (name, tail) in enumerate(((CANONICAL, ""), ("paraphrase 1", "::w1")))
    }
    table = paraphrases.rate_table(found).set_index("wording")
    assert table["in the answer"].to_dict() == {CANONICAL: 1, "paraphrase 1": 0}
    assert table["in the summary"].tolist() == [1, 1] and table["leak on forget"].tolist() == [1, 1]


def test_verdicts_stand_by_wording_and_a_lane_that_fails_its_gate_says_so():
    found = panels({"leaking": ()}, {"leaking": range(16)})
    (verdict,) = paraphrases.verdict_frame(found).to_dict("records")
    assert verdict[CANONICAL].startswith("K-REF") and verdict["paraphrase 1"] == "measured failure"
    assert verdict["same kind"] is False and paraphrases.excluded_in_words(found) == "none"
    silent = judged([cell((), 1), cell((), 1, method="eco")])
    (verdict,) = paraphrases.verdict_frame(found | {"paraphrase 1": silent}).to_dict("records")
    assert verdict["paraphrase 1"] == "excluded" and not verdict["same kind"]
    words = paraphrases.excluded_in_words(found | {"paraphrase 1": silent})
    assert words.startswith("lane P, paraphrase 1: ")


def test_cells_without_a_canonical_partner_and_queries_without_one_are_left_out():
    found = panels({"leaking": range(4)}, {"leaking": range(4)})
    alone = {CANONICAL: judged([cell((), lane="C")]), "paraphrase 1": found["paraphrase 1"]}
    assert list(paraphrases.pairings(alone)) == [] and paraphrases.agreement_frame(alone).empty
    few = judged([run([row("pii-00000::address")])])
    (pair, _) = paraphrases.pairings({CANONICAL: few, "paraphrase 1": found["paraphrase 1"]}), None
    assert [p.query for p in pair] == [("pii-00000::address",)]
