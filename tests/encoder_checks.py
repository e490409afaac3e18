"""What every encoder promises, ours and one of your own: `check_encoder` is one call for all of it.

A check takes an encoder with few units and says by an assertion what does not hold.

```python
def test_my_encoder():
    check_encoder(MyEncoder(units=4))
```
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.config import ModelConfig, Recipe
from dsa_keras.encoders import ENCODERS, Encoder, encoder_of
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import PAIR, SENTENCE
from dsa_keras.keras_private import dtype_policy
from dsa_keras.models import Network
from dsa_keras.objectives.classification import Classification

VOCABULARY = 40
SMALL = {
    "vocabulary_size": VOCABULARY,
    "embedding_dim": 6,
    "first_filters": 5,
    "filters": 4,
    "num_dense_layers": 2,
    "compressed_units": 7,
    "units": 5,
    "num_attentions": 2,
    "num_iterations": 3,
    "lstm_units": 4,
    "cnn_filters": 3,
    "hidden_units": 8,
}
"""Hyper-parameters that make any of our encoders small; each has some of them."""

FREE = tf.TensorSpec([None, None], "int32")

sentences = st.lists(st.integers(1, VOCABULARY - 1), min_size=1, max_size=12)
batches = st.lists(sentences, min_size=1, max_size=5)


def check_encoder(encoder: Encoder) -> None:
    """Runs all checks."""
    for check in CHECKS.values():
        check(encoder)


# Words and networks.


def pad(rows, extra=0):
    longest = max(map(len, rows)) + extra
    return np.array([[*row, *[0] * (longest - len(row))] for row in rows], dtype="int32")


def pack(rows, num_rows=1, gap=0, tail=0):
    """Packed ids, segment ids, and the index of each sentence through all rows."""
    parts = [rows[start::num_rows] for start in range(num_rows)]
    ids = [[word for one in part for word in [*one, *[0] * gap]] for part in parts]
    segments = [
        [mark for n, one in enumerate(part, 1) for mark in [*[n] * len(one), *[0] * gap]]
        for part in parts
    ]
    places = [(number % num_rows) * len(rows) + number // num_rows for number in range(len(rows))]
    return {
        "word_ids": pad(ids, tail),
        "segment_ids": pad(segments, tail),
        "index": np.array(places, dtype="int32"),
    }


def small_config(encoder: str | Encoder, *, pair: bool = False, **changes: Any) -> ModelConfig:
    """A small network; of the changes those that it has."""
    chosen = ENCODERS.get(encoder)() if isinstance(encoder, str) else encoder
    config = ModelConfig(
        encoder=chosen,
        objective=Classification(class_names=("a", "b", "c")),
        inputs=PAIR if pair else SENTENCE,
    )
    # An encoder that is given has the sizes that it should have.
    names = {*config.choosable(), "vocabulary_size"}
    small = {k: v for k, v in SMALL.items() if isinstance(encoder, str) or k not in chosen.hints()}
    values = {**small, **changes}
    return config.replace(**{name: value for name, value in values.items() if name in names})


def small_encoder(name: str) -> Encoder:
    """One of `ENCODERS` with few units."""
    return small_config(name).encoder


def shaken(network: Network) -> Network:
    """The network with random weights: biases that start at zero would hide a leak of padding."""
    random = np.random.default_rng(3)
    for variable in network.model.variables:
        if variable.dtype == "float32" and "moving_variance" not in variable.path:
            variable.assign(random.normal(size=variable.shape, scale=0.5))
    return network


@functools.cache
def network_of(encoder: Encoder) -> Network:
    return shaken(Network(small_config(encoder)))


@functools.cache
def encode(encoder: Encoder) -> Callable[[Any], Any]:
    return tf.function(network_of(encoder).encoder, input_signature=[FREE])


@functools.cache
def encode_packed(encoder: Encoder) -> Callable[[Any], Any]:
    """Vectors `(sentences, units)`, a sentence for each place of all rows."""
    specs = {"index": tf.TensorSpec([None], "int32"), "segment_ids": FREE, "word_ids": FREE}
    network = network_of(encoder)

    def vectors(inputs: Any) -> Any:
        return tf.reshape(network.packed_encoder(inputs), [-1, network.units])

    return tf.function(vectors, input_signature=[specs])


def close(got, expected, atol=1e-5):
    np.testing.assert_allclose(got, expected, atol=atol, rtol=0)


# Checks.


def check_settings(encoder: Encoder) -> None:
    """Its settings become JSON and are made of it again; the command line can explain them."""
    assert ENCODERS.registered(encoder.name) is type(encoder)
    told = json.loads(json.dumps(encoder.to_json()))
    again = encoder_of(told)
    assert again == encoder
    assert type(again) is type(encoder)
    for name, text in type(encoder).described().items():
        assert text.strip(), f"the docstring does not describe {name}"
    for name in type(encoder).choices():
        with pytest.raises(ConfigError, match=f"unknown hyper-parameter '{name}x'.*'{name}'"):
            encoder_of({**told, f"{name}x": told[name]})
    with pytest.raises(ConfigError, match=f"unknown encoder '{encoder.name}x'"):
        encoder_of({**told, "name": f"{encoder.name}x"})
    assert type(encoder.small()) is type(encoder)
    for inputs in (SENTENCE, PAIR):
        recipe = encoder.recipe(Recipe(ModelConfig(encoder=encoder, inputs=inputs)))
        assert recipe.model.encoder == encoder
        assert recipe.model.inputs == inputs


def check_layers(encoder: Encoder) -> None:
    """Layers have names of their own, are made anew for each model, and weights have paths."""
    first, second = encoder.layers(), encoder.layers()
    names = [layer.name for layer in first]
    assert len(set(names)) == len(names)
    assert names == [layer.name for layer in second], "names are part of the format of a run folder"
    assert not {id(layer) for layer in first} & {id(layer) for layer in second}
    network, twin = Network(small_config(encoder)), Network(small_config(encoder))
    named = network.named_weights()
    assert list(named) == list(twin.named_weights())
    fixed = {network.embedding.vectors.path}
    assert {one.path for one in network.model.weights} == named.keys() | fixed


def check_alone_or_among_others(encoder: Encoder) -> None:
    """A sentence has one vector: alone, in any batch, in any order, under any padding."""

    @given(rows=batches, extra=st.integers(1, 100), data=st.data())
    def holds(rows, extra, data):
        together = encode(encoder)(pad(rows)).numpy()
        assert np.isfinite(together).all()
        for row, vector in zip(rows, together, strict=True):
            close(encode(encoder)(np.array([row], dtype="int32"))[0], vector)
        order = data.draw(st.permutations(range(len(rows))))
        close(encode(encoder)(pad([rows[place] for place in order])), together[order])
        close(encode(encoder)(pad(rows, extra)), together)

    holds()


def check_packed(encoder: Encoder) -> None:
    """A packed sentence has the same vector, in one row or in several."""

    @given(rows=batches, num_rows=st.integers(1, 3), gap=st.integers(0, 2), tail=st.integers(0, 99))
    def holds(rows, num_rows, gap, tail):
        together = encode(encoder)(pad(rows)).numpy()
        packed = pack(rows, num_rows, gap, tail)
        vectors = encode_packed(encoder)(packed).numpy()
        assert vectors.shape == (num_rows * len(rows), together.shape[-1])
        close(vectors[packed["index"]], together)

    holds()


def check_words_matter(encoder: Encoder) -> None:
    """Other words are another vector, or else the checks would pass for one that ignores them."""
    vectors = encode(encoder)(pad([[3, 4, 5], [3, 4, 6], [7]])).numpy()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    assert np.abs(vectors[0] - vectors[2]).max() > 1e-3


def check_no_words(encoder: Encoder) -> None:
    """A sentence without words has a finite vector, always the same, and a finite gradient."""
    ids = np.array([[0, 0, 0], [7, 0, 0]], dtype="int32")
    vectors = encode(encoder)(ids).numpy()
    assert np.isfinite(vectors).all()
    assert vectors[1].any()
    close(encode(encoder)(ids[1:, :1]), vectors[1:])
    for alone in (ids[:1], ids[:1, :1]):
        close(encode(encoder)(alone), vectors[:1])
    model = network_of(encoder).encoder
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(ids) ** 2)
    for gradient in tape.gradient(loss, model.trainable_variables):
        assert np.isfinite(gradient).all()
    # Packed: a segment that does not occur, and a batch with no word.
    packed = {**pack([[7]]), "index": np.zeros(3, "int32")}
    found = encode_packed(encoder)(packed).numpy()
    assert len(found) == 3
    close(found, vectors[[1, 0, 0]])
    empty = {**packed, "word_ids": ids[:1], "segment_ids": ids[:1]}
    close(encode_packed(encoder)(empty), vectors[[0, 0, 0]])


def check_tables(encoder: Encoder) -> None:
    """Vectors by tables of words are those of the encoder, under mixed precision about so."""
    network = network_of(encoder)
    if not encoder.has_word_tables:
        assert network.word_tables() is None
        return
    make, by_tables = network.word_tables().functions()

    @given(rows=batches)
    def holds(rows):
        close(by_tables(*tabled(make, pad(rows))), encode(encoder)(pad(rows)))

    holds()
    ids = pad([[3, 4, 5], [9, 2], [7]])
    for policy in ("mixed_float16", "mixed_bfloat16"):
        with dtype_policy(policy):
            mixed = shaken(Network(small_config(encoder)))
        make, by_tables = mixed.word_tables().functions()
        found = by_tables(*tabled(make, ids))
        assert found.dtype == policy.removeprefix("mixed_")
        expected = encode(encoder)(ids)
        scale = float(np.abs(expected).max())
        close(tf.cast(found, "float32"), expected, 0.02 * scale if "bf" not in policy else 0.1)


def tabled(make, ids):
    """Tables of the words, and the sentences as rows of them."""
    known, inverse = np.unique(np.append(0, ids.ravel()), return_inverse=True)
    return make(known.astype("int32")), inverse[1:].reshape(ids.shape).astype("int32")


def check_trace(encoder: Encoder) -> None:
    """What attends can be looked at: the same vectors, and weights that are 0 at padding."""
    network = network_of(encoder)
    if not encoder.attends:
        with pytest.raises(ConfigError, match=f"{encoder.name} has no attention to look at"):
            _ = network.traced_encoder
        return
    ids = pad([[3, 1, 4, 1, 5], [9, 2], [6]])
    traced = network.traced_encoder(ids)
    np.testing.assert_array_equal(traced["vectors"], network.encoder(ids))
    weights = traced["attention_weights"].numpy()
    assert weights.ndim == 4
    assert weights.shape[::3] == ids.shape
    close(weights.sum(-1), 1.0)
    padding = np.broadcast_to((ids == 0)[:, np.newaxis, np.newaxis], weights.shape)
    assert not weights[padding].any(), "padding is attended to"
    no_words = network.traced_encoder(0 * ids[:1])
    assert all(np.isfinite(value).all() for value in no_words.values())
    assert not no_words["attention_weights"].numpy().any()


def check_training(encoder: Encoder) -> None:
    """Packed batches train it, and weights of every layer get a gradient."""
    config = small_config(encoder, embedding_dropout=0.0, dropout=0.0, head_dropout=0.0)
    network = Network(config)
    fed, labels = pack([[3, 1, 4, 1, 5], [9, 2], [6], []]), np.array([0, 1, 1, 2])
    variables = network.packed_model.trainable_variables
    assert {one.path for one in variables} == {
        one.path for one in network.model.trainable_variables
    }
    optimizer, loss = keras.optimizers.SGD(0.02), config.objective.loss()

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss(labels, network.packed_model(fed, training=True))
        return value, tape.gradient(value, variables)

    losses = []
    for _ in range(12):
        value, gradients = step()
        for variable, gradient in zip(variables, gradients, strict=True):
            assert gradient is not None, variable.path
            assert np.isfinite(gradient).all(), variable.path
        optimizer.apply([tf.convert_to_tensor(one) for one in gradients], variables)
        losses.append(float(value))
    assert losses[-1] < losses[0]


def check_compiled(encoder: Encoder) -> None:
    """Where it says so, XLA compiles the training on packed words, to the same gradients."""
    if not (encoder.compiles and encoder.packs):
        return
    config = small_config(encoder, embedding_dropout=0.0, dropout=0.0, head_dropout=0.0)
    network, loss = Network(config), config.objective.loss()
    fed = keras.tree.map_structure(tf.constant, pack([[3, 1, 4, 1, 5], [9, 2], [6]]))
    model = network.packed_model

    def step(inputs):
        with tf.GradientTape() as tape:
            value = loss(np.array([0, 1, 1]), model(inputs, training=True))
        return value, tape.gradient(value, model.trainable_variables)

    expected = keras.tree.flatten(tf.function(step)(fed))
    got = keras.tree.flatten(tf.function(step, jit_compile=True)(fed))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-4)


CHECKS: dict[str, Callable[[Encoder], None]] = {
    "settings": check_settings,
    "layers": check_layers,
    "alone or among others": check_alone_or_among_others,
    "packed": check_packed,
    "words matter": check_words_matter,
    "no words": check_no_words,
    "tables": check_tables,
    "trace": check_trace,
    "training": check_training,
    "compiled": check_compiled,
}
