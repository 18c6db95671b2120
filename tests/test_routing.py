"""Routers: an oracle that is wrong as often as it is told to be, and a detector that recognises people."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kbook.corpora import protocol
from kbook.corpora.wordings import QUESTIONS
from kbook.errors import KBookError
from kbook.methods.names import NameList
from kbook.methods.routing import Oracle, fit_detector, messages_about


def oracle(people, accuracy=1.0, seed=0):
    return Oracle(NameList(p.name for p in people), accuracy, seed)


def asked(person, field="employer"):
    return protocol.question(QUESTIONS[field][0].format(name=person.name))


# ---- oracle ------------------------------------------------------------------------------------------------


def test_a_perfect_oracle_knows_the_list(people):
    route = oracle(people[:4])
    assert [route((0, p.id, "agent"), asked(p)) for p in people] == [True] * 4 + [False] * 8


@pytest.mark.parametrize("accuracy", [0.9, 0.7, 0.5, 0.0])
def test_an_oracle_is_right_as_often_as_it_is_told(people, accuracy):
    route = oracle(people[:6], accuracy)
    right = [route((0, f"q{n}", "agent"), asked(people[n % 12])) == (n % 12 < 6) for n in range(3000)]
    assert np.mean(right) == pytest.approx(accuracy, abs=0.03)


def test_all_conversations_about_a_query_are_decided_alike(people):
    route = oracle(people[:6], 0.5)
    decided = [{route((0, f"q{n}", part), asked(people[0])) for part in ("agent", "summary")} for n in range(50)]
    assert all(len(d) == 1 for d in decided) and {True, False} == set.union(*decided)


def test_a_better_oracle_is_wrong_nowhere_that_a_worse_one_is_right(people):
    def wrong(accuracy):
        return {n for n in range(500) if not oracle(people[:6], accuracy)((0, f"q{n}", "agent"), asked(people[0]))}

    assert wrong(0.9) < wrong(0.7) < wrong(0.5)


def test_the_coin_is_seeded(people):
    def flips(seed):
        return [oracle(people[:6], 0.5, seed)((0, f"q{n}", "agent"), asked(people[0])) for n in range(40)]

    assert flips(0) == flips(0) != flips(1)


# ---- detector ----------------------------------------------------------------------------------------------


class Encoder:
    """A vector of the name and a vector of the question, the latter much larger."""

    def encode(self, texts):
        return np.array([self._vector(t) for t in texts], np.float32)

    def _vector(self, text):
        words = text.replace("'s", " ").replace("?", " ").replace(".", " ").split()
        name = " ".join(w for w in words[1:] if w[0].isupper() and w not in ("What", "Who", "Summarize"))
        question = " ".join(w for w in words if w not in name.split())
        draws = (np.random.default_rng(list(t.encode())).normal(size=24) for t in (name, question))
        noise = np.random.default_rng(list(text.encode())).normal(size=48)
        return np.concatenate([next(draws), 8 * next(draws)]) + 0.05 * noise


@pytest.fixture
def detector(people):
    return fit_detector(Encoder(), people[:6], 0.1)


def test_known_people_are_recognised_whatever_is_asked_and_strangers_are_not(detector, people):
    known, strangers = ([detector(("r",), m) for m in messages_about(ps)] for ps in (people[:6], people[6:]))
    assert np.mean(known) >= 0.85 and not any(strangers)


def test_it_tells_people_apart_not_questions(detector, people):
    """The plain distance, as a control, is ruled by the question."""
    message = asked(people[0], "address")
    plain = Encoder().encode([message, asked(people[0], "employer"), asked(people[7], "address")])
    assert np.linalg.norm(plain[0] - plain[1]) > np.linalg.norm(plain[0] - plain[2])
    other_question, other_person = detector.distances([asked(people[0], "employer"), asked(people[7], "address")])
    assert other_question < other_person


@pytest.mark.parametrize("nu", [0.1, 0.3])
def test_the_share_outside_is_nu_of_messages_measured_against_the_others(people, nu):
    detector = fit_detector(Encoder(), people, nu)
    encoded = torch.from_numpy(Encoder().encode(messages_about(people))).double().unflatten(0, (12, 5))
    outside = [
        float(((p[i] - torch.cat([p[:i], p[i + 1 :]]).mean(0)) @ detector.whitening).square().sum())
        > detector.threshold
        for p in encoded
        for i in range(5)
    ]
    assert np.mean(outside) == pytest.approx(nu, abs=0.02)


def test_distances_are_those_of_mahalanobis(people):
    """Where all messages about a person differ alike in every direction, it is the plain distance, scaled."""

    class Isotropic:
        def encode(self, texts):
            rows = np.arange(len(texts))
            vectors = np.zeros((len(texts), 5))
            vectors[rows, rows % 5] = 1
            return (vectors + 10 * (rows // 5)[:, None]).astype(np.float32)

    detector = fit_detector(Isotropic(), people[:2], 0.1)
    first, second = detector.people
    steps = (second - first).norm() / np.sqrt(5 * 100)
    probe = SimpleNamespace(encode=lambda texts: np.full((1, 5), 0.2 + 3.0, np.float32))
    moved = type(detector)(probe, detector.whitening, detector.people, detector.threshold)
    assert float(moved.distances(["x"])[0]) == pytest.approx(float(steps) ** 2 * 5 * 9, rel=1e-4)


def test_an_empty_list_is_refused():
    with pytest.raises(KBookError, match="nobody to recognise"):
        fit_detector(Encoder(), [], 0.1)
