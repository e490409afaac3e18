"""Every registered encoder, and one of a user's own, keeps what encoders promise."""

from __future__ import annotations

import math

import keras
import numpy as np
import own_encoders
import pytest
from encoder_checks import (
    CHECKS,
    check_encoder,
    encode,
    encode_packed,
    pack,
    shaken,
    small_config,
    small_encoder,
)
from hypothesis import Phase, settings
from own_encoders import MeanOfWords, TakenNames, TwoOfAName, registered
from runs import shared_run, tiny_run
from slow_parameters import some_slow

import dsa_keras
from dsa_keras.config import ModelConfig
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.keras_private import dtype_policy
from dsa_keras.models import Network
from dsa_keras.runs import Run
from dsa_keras.text_encoder import TextEncoder
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import resume

# What takes seconds, where another encoder shows the same.
SLOW = {
    *(("compiled", name) for name in ("dsa-multiple", "self-attention", "cnn")),
    *(("tables", name) for name in ("dsa-multiple", "self-attention")),
    *(("training", name) for name in ("dsa-multiple", "bilstm-self-attention")),
}
EVERY = [(check, name) for check in CHECKS for name in ENCODERS.names()]
OURS = ("bilstm", "bilstm-self-attention", "cnn", "dsa-multiple", "dsa-single", "self-attention")
"""Those of which more is known than every encoder promises."""


@pytest.mark.parametrize(("check", "name"), some_slow(EVERY, SLOW))
def test_every_encoder(check, name):
    CHECKS[check](small_encoder(name))


@pytest.mark.parametrize("name", OURS)
def test_a_sentence_without_words_is_the_zero_vector(name):
    encoder = small_encoder(name)
    ids = np.array([[0, 0, 0], [7, 0, 0]], dtype="int32")
    assert not encode(encoder)(ids).numpy()[0].any()
    packed = {**pack([[7]]), "index": np.zeros(3, "int32")}
    assert not encode_packed(encoder)(packed).numpy()[1:].any()


@pytest.mark.parametrize("name", OURS)
def test_the_order_of_words_matters(name):
    vectors = encode(small_encoder(name))(np.array([[3, 4, 5], [5, 4, 3]], "int32")).numpy()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


# Mixed precision.


def test_many_words_are_encoded_under_mixed_precision():
    """With 2,048 words and more by tables, whose kernels are float32 and whose words are not."""
    words = [f"w{number}" for number in range(30)]
    vocabulary = Vocabulary.from_counts(dict.fromkeys(words, 1))
    changes = {"vocabulary_size": len(vocabulary)}
    exact = shaken(Network(small_config("dsa-single", **changes)))
    with dtype_policy("mixed_float16"):
        mixed = shaken(Network(small_config("dsa-single", **changes)))
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, 12)) for _ in range(200)]
    assert 12 * len(texts) > 2048
    expected = TextEncoder("whitespace", vocabulary, exact).vectors(texts)
    got = TextEncoder("whitespace", vocabulary, mixed).vectors(texts)
    np.testing.assert_allclose(got, expected, atol=0.02)
    assert np.abs(got - expected).max() > 1e-5, "it did not compute in float16"


@pytest.mark.parametrize("name", some_slow(["dsa-single", "bilstm-self-attention"], {"dsa-single"}))
def test_a_run_answers_in_float32_whatever_the_policy_of_the_process(name):
    texts = [f"the acting is {word}" for word in ("superb", "dull", "hardly")]
    words = {"word_ids": [[5, 6, 7]], "segment_ids": [[1, 1, 2]], "index": [0, 1]}
    words = {key: np.array(value) for key, value in words.items()}

    def answers():
        model = dsa_keras.load(shared_run(encoder=name))
        # Models that are made later on compute as the first ones do.
        yield model.encode(texts)
        yield model.encode(texts * 200)
        yield model.numbers(texts)
        yield from (one.traces["sentence"].weights[-1] for one in model.explain(texts))
        yield model.network.packed_encoder(words).numpy()

    expected = list(answers())
    keras.config.set_dtype_policy("mixed_float16")
    for got, wanted in zip(answers(), expected, strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert keras.config.dtype_policy().name == "mixed_float16"


# Encoders of a user's own.


@pytest.fixture
def mean_of_words():
    with registered(MeanOfWords):
        yield MeanOfWords()


def test_an_encoder_of_ones_own_keeps_all_promises(mean_of_words):
    check_encoder(mean_of_words)


def test_an_encoder_of_ones_own_trains_loads_and_resumes(mean_of_words, tmp_path):
    path = tiny_run(tmp_path / "run", encoder="mean-of-words", size=150, mean_units=5)
    run = Run(path)
    assert run.config().model.encoder == MeanOfWords(mean_units=5)
    resume(path, epochs=2, options=Options(show_progress=False))
    assert [math.isfinite(record["dev_loss"]) for record in run.metrics()] == [True, True]
    model = dsa_keras.load(path)
    assert model.encode(["the acting is superb", ""]).shape == (2, 5)
    with pytest.raises(ConfigError, match="mean-of-words has no attention to look at"):
        model.explain([])


def test_an_encoder_that_does_not_pack_cannot_be_compiled(mean_of_words, tmp_path):
    with pytest.raises(ConfigError, match="XLA cannot compile the training of mean-of-words"):
        tiny_run(tmp_path / "run", encoder="mean-of-words", options={"jit": "on"})
    assert not (tmp_path / "run").exists()


def test_a_run_of_an_encoder_that_is_not_registered_says_so(tmp_path):
    with registered(MeanOfWords):
        path = tiny_run(tmp_path / "run", encoder="mean-of-words", size=150)
    with pytest.raises(RunError, match=r"unknown encoder 'mean-of-words'.*must be imported first"):
        dsa_keras.load(path)


@pytest.fixture
def _nothing_is_shrunk():
    """What is wrong is to be found, not to be explained."""
    before = settings()
    settings.register_profile("found", before, phases=[Phase.generate])
    settings.load_profile("found")
    yield
    settings.register_profile("before", before)
    settings.load_profile("before")


@pytest.mark.usefixtures("_nothing_is_shrunk")
@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("MeanOfPlaces", "alone or among others"),
        ("MeanByKeras", "no words"),
        ("AcrossSentences", "packed"),
        ("SameForAll", "words matter"),
        ("Undescribed", "settings"),
    ],
)
def test_the_checks_find_what_is_wrong(name, check):
    encoder = getattr(own_encoders, name)
    with registered(encoder):
        with pytest.raises((AssertionError, ExceptionGroup)):
            CHECKS[check](encoder())
        CHECKS["layers"](encoder())


def test_two_weights_of_one_path_are_refused(tmp_path):
    problem = r"two-of-a-name: the network has two weights 'each_word/dense/kernel'. Give each"
    with registered(TwoOfAName):
        with pytest.raises(ConfigError, match=problem):
            Network(ModelConfig(encoder=TwoOfAName())).named_weights()
        # Known before an epoch is trained whose weights could not be saved.
        with pytest.raises(ConfigError, match=problem):
            tiny_run(tmp_path / "run", encoder="two-of-a-name")
    assert not Run(tmp_path / "run").logs.exists()


def test_names_of_layers_that_are_taken_are_refused():
    with pytest.raises(ConfigError, match=r"taken-names need names of their own.* head"):
        Network(ModelConfig(encoder=TakenNames()))
