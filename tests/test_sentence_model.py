"""The Python API: order kept, sentences encoded once, streams, pairs, threads, honest errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runs import shared_run

import dsa_keras
from dsa_keras.data.word_lookup import Sentences
from dsa_keras.datasets import load_dataset
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.objectives.classification import Prediction
from dsa_keras.sentence_model import STREAM_CHUNK
from dsa_keras.text_encoder import _windows, length_batches

UNITS = 64
"""Eight attentions of eight units each."""

WORDS = ["the", "acting", "music", "is", "superb", "dull", "hardly", "lovely"]

SENTENCES = [
    "the acting is superb",
    "dull",
    "the music is lovely , but the story is hardly convincing",
    "the acting is superb",
    "",
    "words nobody has ever seen",
]


@pytest.fixture(scope="module")
def model():
    return dsa_keras.load(shared_run(encoder="dsa-multiple"))


@pytest.fixture(scope="module")
def pair_model():
    return dsa_keras.load(shared_run(pair=True))


def test_one_sentence_or_many(model):
    vectors = model.encode(SENTENCES)
    assert vectors.shape == (len(SENTENCES), UNITS)
    assert vectors.dtype == np.float32
    assert model.encode(SENTENCES[0]).shape == (UNITS,)
    assert model.encode([]).shape == (0, UNITS)


def test_vectors_are_in_the_order_of_the_sentences(model):
    alone = np.stack([model.encode(sentence) for sentence in SENTENCES])
    for batch_size in (1, 2, 256):
        np.testing.assert_allclose(
            model.encode(SENTENCES, batch_size=batch_size), alone, rtol=1e-4, atol=1e-5
        )
    np.testing.assert_allclose(model.encode(SENTENCES[::-1]), alone[::-1], rtol=1e-4, atol=1e-5)
    assert not np.allclose(alone[0], alone[1])


def test_equal_sentences_have_equal_bits_and_no_words_the_zero_vector(model):
    vectors = model.encode(SENTENCES)
    np.testing.assert_array_equal(vectors[0], vectors[3])
    assert not vectors[4].any()
    assert vectors[5].any()


def test_normalized_vectors_have_length_one(model):
    vectors = model.encode(SENTENCES, normalize_embeddings=True)
    norms = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(np.delete(norms, 4), 1, rtol=1e-5)
    assert norms[4] == 0


def test_a_stream_takes_a_chunk_at_a_time(model):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield SENTENCES[taken % 4]

    stream = model.encode(endless())
    assert taken == 0
    first = [next(stream) for _ in range(3)]
    assert taken == STREAM_CHUNK
    np.testing.assert_allclose(first, model.encode(SENTENCES[1:4]), rtol=1e-4, atol=1e-5)


def test_predictions_have_labels_and_probabilities(model):
    predictions = model.predict(SENTENCES)
    probabilities = model.numbers(SENTENCES)
    assert probabilities.shape == (len(SENTENCES), 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    for prediction, row in zip(predictions, probabilities, strict=True):
        assert prediction.label == model.objective.class_names[row.argmax()]
        assert prediction.probability == pytest.approx(row.max())
        assert list(prediction.probabilities.values()) == pytest.approx(row.tolist())
    assert model.predict([]) == []


def test_answers_say_how_much_of_the_text_was_read(model, pair_model):
    texts = ["the acting is superb", "", "zzz qqq", "the zzz", "superb " * 10_001]
    answers = model.predict(texts)
    found = [(one.reading.words, one.reading.known_words, one.reading.cut) for one in answers]
    assert found == [
        (4, 4, False),
        (0, 0, False),
        (2, 0, False),
        (2, 1, False),
        (10_000,) * 2 + (True,),
    ]
    assert [one.notes() for one in answers] == [
        [],
        ["there is no word in it"],
        ["no word of it is known to the model"],
        [],
        ["it was cut, only the first 10,000 words were read"],
    ]
    assert model.predict("superb " * 10_000).reading.cut is False
    assert answers[2].to_dict().items() >= {"words": 2, "known_words": 0, "cut": False}.items()
    both = pair_model.predict(("a man", "zzz"))
    assert (both.reading.words, both.reading.known_words) == (3, 2)
    assert both.notes() == ["hypothesis: no word of it is known to the model"]
    assert model.explain("zzz").answer.reading == model.predict("zzz").reading


def test_probabilities_are_the_classifiers(model):
    words = [model.vocabulary.ids(sentence.split()) for sentence in SENTENCES[:2]]
    for row, ids in zip(model.numbers(SENTENCES[:2]), words, strict=True):
        logits = np.array(model.network.model(np.array([ids])))[0].astype(np.float64)
        expected = np.exp(logits - logits.max())
        np.testing.assert_allclose(row, expected / expected.sum(), rtol=1e-4)


def test_pairs_are_premise_and_hypothesis(pair_model):
    premise, hypothesis = "a man is outside", "nobody is outside"
    there, back = pair_model.numbers([(premise, hypothesis), (hypothesis, premise)])
    ids = {
        "premise": np.array([pair_model.vocabulary.ids(premise.split())]),
        "hypothesis": np.array([pair_model.vocabulary.ids(hypothesis.split())]),
    }
    logits = np.array(pair_model.network.model(ids))[0].astype(np.float64)
    expected = np.exp(logits - logits.max())
    np.testing.assert_allclose(there, expected / expected.sum(), rtol=1e-4)
    assert not np.allclose(there, back, rtol=1e-6)
    assert pair_model.encode(premise).shape == (8,)


def test_similarity_is_the_cosine(model):
    first = np.array([[3.0, 4.0], [0.0, 0.0]])
    second = np.array([[4.0, 3.0], [-6.0, -8.0]])
    np.testing.assert_allclose(model.similarity(first, second), [[0.96, -1.0], [0, 0]], atol=1e-7)
    assert model.similarity(first[0], second[0]).shape == (1, 1)
    with pytest.raises(ConfigError, match="different sizes, 2 and 3"):
        model.similarity(np.ones((1, 2)), np.ones((1, 3)))


def test_evaluation_counts_predictions(model):
    split = load_dataset("demo-sentiment", size=300)["test"]
    evaluation = model.evaluate(split)
    predicted = model.numbers(split.texts).argmax(axis=1)
    assert evaluation.accuracy == pytest.approx(np.mean(predicted == split.targets))
    assert evaluation.examples == len(split)


def test_threads_get_what_one_thread_gets(model):
    expected = model.encode(SENTENCES)
    barrier = threading.Barrier(4)

    def encode(number):
        barrier.wait(timeout=60)
        order = np.random.default_rng(number).permutation(len(SENTENCES))
        return order, model.encode([SENTENCES[one] for one in order])

    with ThreadPoolExecutor(4) as pool:
        for order, vectors in pool.map(encode, range(4)):
            np.testing.assert_allclose(vectors, expected[order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.encode([1]), "text 0 is not a sentence .* Received: 1"),
        (lambda model: model.encode(["a"], batch_size=0), "batch_size must be at least 1"),
        (lambda model: model.numbers(["a"], batch_size=0), "batch_size must be at least 1"),
        (
            lambda model: model.predict(["b", ("a", "b")]),
            r"text 1 is not a sentence .*\('a', 'b'\)",
        ),
        (lambda model: model.predict(("a", 1)), "text 1 is not a sentence"),
        (lambda model: model.predict([None]), "text 0 is not a sentence .* None"),
    ],
)
def test_wrong_calls_are_told(model, call, message):
    with pytest.raises(ConfigError, match=message):
        call(model)


@pytest.mark.parametrize(
    "texts", [["a"], [("a", "b"), "c"], [("a", "b", "c")], [("a", 1)], [["a"]], ("a", "b", "c")]
)
def test_a_pair_model_wants_pairs(pair_model, texts):
    for call in (pair_model.predict, pair_model.numbers, pair_model.explain):
        with pytest.raises(ConfigError, match=r"text \d is not a pair of sentences, \(premise"):
            call(texts)
        with pytest.raises(ConfigError, match="texts must be a list, not one str"):
            call("a")


def test_one_text_has_one_answer_and_many_a_list(model, pair_model):
    one = model.predict("the acting is superb")
    assert isinstance(one, Prediction)
    for many in (["the acting is superb"], ("the acting is superb",), iter(SENTENCES[:1])):
        (answer,) = model.predict(many)
        assert answer == one
    (answer,) = model.predict(np.array(SENTENCES[:1]))
    assert answer == one
    # A tuple of two sentences is one pair, or two sentences: the model knows which.
    assert len(model.predict(("dull", "superb"))) == 2
    pair = pair_model.predict(("a man", "a woman"))
    assert isinstance(pair, Prediction)
    for many in ([("a man", "a woman")], [["a man", "a woman"]], np.array([["a man", "a woman"]])):
        (answer,) = pair_model.predict(many)
        assert answer == pair
    explained = model.explain("the acting is superb")
    assert explained.answer == one
    assert [found.answer for found in model.explain(["the acting is superb"])] == [one]
    assert list(pair_model.explain(("a man", "a woman")).traces) == ["premise", "hypothesis"]


def test_no_texts_have_no_answers(model, pair_model):
    assert model.numbers([]).shape == (0, 2)
    assert pair_model.numbers([]).shape == (0, 3)
    assert model.explain([]) == pair_model.explain([]) == []
    assert list(model.encode(iter([]))) == []


def test_a_missing_run_is_told(tmp_path):
    with pytest.raises(RunError, match="no such run folder"):
        dsa_keras.load(tmp_path / "nothing")


def test_many_sentences_have_the_vectors_of_few(model):
    # Enough words for tables, and for more than one window of them.
    texts = [f"{a} {b} the story is {a}" for a in WORDS for b in WORDS]
    texts += [" ".join([one] * 500) for one in texts]
    assert sum(len(text.split()) for text in texts) > 65_536
    vectors = model.encode(texts)
    for number in (0, 1, len(texts) // 2 - 1, len(texts) // 2, len(texts) - 1):
        np.testing.assert_allclose(vectors[number], model.encode(texts[number]), atol=1e-5)


def test_windows_are_bounded_and_complete():
    lengths = np.array([5, 40_000, 0, 30_000, 70_000, 20_000, 3])
    sentences = Sentences(np.zeros(lengths.sum(), np.int32), np.append(0, lengths.cumsum()))
    found = [window.tolist() for window in _windows(sentences)]
    assert found == [[4], [1], [3, 5, 0, 6, 2]]
    assert list(_windows(Sentences(np.zeros(0, np.int32), np.zeros(1, np.int64)))) == []


def test_chosen_sentences_keep_their_words():
    sentences = Sentences(np.arange(6, dtype=np.int32), np.array([0, 2, 2, 5, 6]))
    chosen = sentences.chosen([2, 1, 0, 2])
    assert chosen.ids.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert chosen.lengths.tolist() == [3, 0, 2, 3]


def test_batches_are_bounded_and_complete():
    lengths = np.array([3, 0, 60_000, 7, 70_000, 7])
    sentences = Sentences(np.zeros(lengths.sum(), np.int32), np.append(0, lengths.cumsum()))
    batches = list(length_batches(sentences, 2))
    assert [batch.tolist() for batch in batches] == [[4], [2], [3, 5], [0, 1]]
