"""A real TensorFlow Serving, when there is one: DSA_TF_SERVING holds the REST address of a model.

Such as http://127.0.0.1:8501/v1/models/sentiment, a model exported by `dsa-keras export
saved-model` from a classifier of single sentences.
"""

from __future__ import annotations

import os

import pytest
from serving_models import ask

from dsa_keras.export.client import RestClient

URL = os.environ.get("DSA_TF_SERVING", "").rstrip("/")
TEXTS = ["a fine film", "", "   ", "dull and slow", "x" * 1000, "\u4e2d\u6587 \U0001f600"]

pytestmark = pytest.mark.skipif(
    not URL, reason="DSA_TF_SERVING does not hold the REST address of a model in TensorFlow Serving"
)


def rows(texts):
    return [{"text": text} for text in texts]


def test_it_is_available():
    status, answer = ask(URL)
    assert status == 200
    assert "AVAILABLE" in {version["state"] for version in answer["model_version_status"]}


def test_every_text_is_answered():
    for text, answer in zip(TEXTS, RestClient(URL).ask(rows(TEXTS)), strict=True):
        assert answer["label"] in answer["class_names"], text
        assert sum(answer["probabilities"]) == pytest.approx(1, abs=1e-5)


def test_a_sentence_has_the_same_vector_alone_and_in_a_batch():
    client = RestClient(URL)
    together = client.ask(rows(TEXTS), "embed")
    for text, expected in zip(TEXTS, together, strict=True):
        (alone,) = client.ask(rows([text]), "embed")
        assert alone["vector"] == pytest.approx(expected["vector"], abs=1e-5)


def test_attention_adds_up():
    for answer in RestClient(URL).ask(rows(TEXTS), "attention"):
        for iteration in answer["weights"]:
            for weights in iteration:
                assert sum(weights) == pytest.approx(1 if answer["lengths"] else 0, abs=1e-4)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (":predict", b"{", 400),
        (":predict", {"instances": []}, 400),
        (":predict", {"signature_name": "x", "instances": ["a"]}, 400),
        ("/versions/99999999:predict", {"instances": ["a"]}, 404),
        (":predict", None, 400),
    ],
)
def test_its_errors_are_those_of_serve(path, body, status):
    found, answer = ask(URL + path, body)
    assert found == status
    assert answer.keys() == {"error"}
