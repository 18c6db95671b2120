"""The audit sheet: drawn without replacement over all strata, and counted as it was filled in."""

from collections import Counter

import pytest
from unit_factory import COMMON, FRENCH, release, topic_pair

from kbook.construction.audit import CRITERIA, audit_result, audit_rows
from kbook.errors import KBookError

RELEASE = release(topic_pair(COMMON, n=4, n_holdout=2), topic_pair(FRENCH, n=4, n_holdout=2))


def strata(rows):
    return Counter((row["language"], row["setting"], row["role of the unit"], row["layer"]) for row in rows)


def test_a_round_covers_languages_settings_roles_and_layers():
    rows = audit_rows(RELEASE, rounds=2, per_round=100)
    assert [row["round"] for row in rows] == [1] * 100 + [2] * 100
    assert len({row["question_id"] for row in rows}) == 200
    first = strata(row for row in rows if row["round"] == 1)
    assert len(first) == 9 * 2 * 5 and max(first.values()) <= 2


def test_a_small_release_is_audited_whole_and_english_is_not_in_it():
    rows = audit_rows(RELEASE)
    assert len(rows) == 2 * 9 * (2 * 4 * 4 + 2)
    assert "en" not in {row["language"] for row in rows}


def test_each_row_shows_both_anchors_beside_the_translation():
    unit = RELEASE.units("forget", "common-goal")[0]
    row = next(row for row in audit_rows(RELEASE) if row["question_id"] == unit.qas["th"][2].id)
    assert (row["statement"], row["English question"]) == (unit.card.statement, unit.qas["en"][2].question)
    assert (row["question"], row["answer"]) == (unit.qas["th"][2].question, unit.qas["th"][2].answer)
    assert all(row[criterion] == "" for criterion in CRITERIA)


def test_the_draw_follows_from_the_seed():
    assert (
        audit_rows(RELEASE, 1, 50, seed=3) == audit_rows(RELEASE, 1, 50, seed=3) != audit_rows(RELEASE, 1, 50, seed=4)
    )


def test_a_filled_sheet_is_counted():
    rows = audit_rows(RELEASE, 1, 4)
    for row in rows[:3]:
        row.update(dict.fromkeys(CRITERIA, "Yes "))
    rows[1]["fluent"] = "no"
    rows[2]["note"] = "fine"
    found = audit_result(rows)
    assert (found.n_rows, found.n_filled, found.n_accepted) == (4, 3, 2)
    assert found.refused == {**dict.fromkeys(CRITERIA, 0), "fluent": 1}


def test_any_other_answer_is_refused_with_its_question():
    rows = audit_rows(RELEASE, 1, 2)
    rows[1]["intent"] = "maybe"
    with pytest.raises(KBookError, match=f"{rows[1]['question_id']}: the answer 'maybe'"):
        audit_result(rows)
