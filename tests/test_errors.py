"""The one error: a paragraph that says what, where and what to do."""

import pickle

from kbook.errors import KBookError, unknown_name


def test_message_names_place_then_fault_then_remedy():
    error = KBookError("unknown lane 'X'", "cells.toml, line 3", "Use one of P, C")
    assert str(error) == "cells.toml, line 3: unknown lane 'X'. Use one of P, C."


def test_message_without_place_and_remedy_is_one_sentence():
    assert str(KBookError("nothing to do")) == "nothing to do."


def test_sentence_that_ends_already_gets_no_second_mark():
    assert str(KBookError("what now?", remedy="Stop!")) == "what now? Stop!"


def test_hostile_text_stays_one_inert_paragraph():
    text = str(KBookError("bad name 'a\n\nb\x1b[31m\u202e'"))
    assert "\n" not in text and "\x1b" not in text and "\u202e" not in text
    assert "\\x1b[31m\\u202e" in text


def test_ordinary_foreign_letters_are_left_alone():
    assert str(KBookError("Müller, 王, ✓")) == "Müller, 王, ✓."


def test_unknown_name_offers_the_nearest_and_lists_all():
    text = str(unknown_name("profile", "lapto", ["laptop", "paper"]))
    assert text == "unknown profile 'lapto'. Did you mean laptop? Known: laptop, paper."


def test_unknown_name_finds_a_neighbour_in_another_case():
    assert "Did you mean R-text?" in str(unknown_name("lane", "RTEXT", ["P", "R-text"]))


def test_unknown_name_without_neighbour_only_lists():
    text = str(unknown_name("profile", "zzz", ["laptop", "paper"]))
    assert "Did you mean" not in text and "Known: laptop, paper." in text


def test_unknown_name_among_none():
    assert str(unknown_name("chapter", "x", [])) == "unknown chapter 'x'. None are known."


def test_error_survives_a_process_boundary():
    error = pickle.loads(pickle.dumps(KBookError("a", "b", "c")))
    assert (error.what, error.where, error.remedy) == ("a", "b", "c")
