"""Table 6: mean and sample deviation over topic pairs, and each topic by name."""

import math

import pytest
from cllpu_scores import rows, scores
from unit_factory import release, topic_pair

from kbook.report.cllpu_topics import by_topic, published_topics, topic_frame, topic_matrix


def of_topic(method, source, topic, own, others, role="forget"):
    matrix = {(source, t): own if t == source else others for t in ("de", "fr", "th")}
    return rows(method, matrix, setting="conditioned", role=role, topic=topic)


@pytest.fixture
def topics():
    return by_topic(
        scores(
            of_topic("npo", "fr", "fr_a", 0.0, 0.2),
            of_topic("npo", "fr", "fr_b", 0.2, 0.4),
            of_topic("npo", "de", "de_a", 0.4, 0.3),
            of_topic("npo", "fr", "fr_a", 0.9, 0.5, role="retain"),
        )
    )


def test_topics_differ_by_the_sample_deviation(topics):
    (row,) = topic_frame(topics).to_dict("records")
    assert (row["method"], row["topics"]) == ("NPO", 3)
    assert (row["target, source"], row["± target, source"]) == (pytest.approx(0.2), pytest.approx(0.2))
    assert (row["target, cross"], row["± target, cross"]) == (pytest.approx(0.3), pytest.approx(0.1))
    assert row["neighbour, cross"] == pytest.approx(0.5) and math.isnan(row["± neighbour, cross"])


def test_the_papers_table_has_the_same_columns_marked(topics):
    names = [name.removesuffix(" (published)") for name in published_topics().frame.columns]
    assert names == [name for name in topic_frame(topics).columns if name != "topics"]
    assert published_topics().number("± target, cross", method="GD") == 0.131


def test_a_topic_is_named_by_its_source_and_target(topics):
    made = release(topic_pair("fr_a"), topic_pair("fr_b"))
    matrix = topic_matrix(topics, made, "target", "cross").set_index("topic")
    assert matrix.loc["fr fr_b target", "value"] == pytest.approx(0.4) and "de_a" in matrix.index
