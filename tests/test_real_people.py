"""Tables about people in LUME's format: lines in order, fields that are known, and the paper's numbers alone."""

from transcript_factory import key, rows

from kbook.corpora.lume import lookalike, lookalike_rows
from kbook.report.published import MARK
from kbook.report.real_people import channel_frame, line_frame, person_frame, published_figures
from kbook.scoring.cells import score_rows
from kbook.scoring.panel import judge


def test_the_lines_of_a_person_are_in_order():
    frame = line_frame(lookalike_rows(1, 0)["forget"])
    assert [id[-3:] for id in frame["id"]] == ["qa0", "qa1", "qa2", "qa3", "qa4", "sc1"]
    assert frame["input"][0].startswith("What is the birth date of ")


def test_people_are_shown_with_what_is_known_and_what_is_asked():
    corpus = lookalike(3, n_distractors=2)
    frame = person_frame(corpus.forget_eval, corpus)
    assert list(frame) == ["name", "date_of_birth (asked for)", "address"] and len(frame) == 3


def test_channels_are_listed_method_by_method_the_untreated_agent_first():
    cells = [
        score_rows(rows(4, leaking=n), key(method, "forget")) for method, n in (("eco", 0), ("none", 4), ("star", 2))
    ]
    frame = channel_frame(judge(cells), ["star", "eco"])
    assert frame["method"].tolist() == ["none", "star", "eco"] and frame["answer"].tolist() == [1.0, 0.5, 0.0]


def test_the_papers_numbers_are_those_on_lume():
    paper = published_figures()
    assert paper.frame["quantity"].str.startswith("LUME").all() and len(paper.frame) == 8
    assert paper.number("value", quantity="LUME entities") == 249 and f"value{MARK}" in paper.frame
