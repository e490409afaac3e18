"""A sentence has one vector: alone, among others, in any order, under any padding, or packed."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.models import (
    ENCODERS,
    ModelConfig,
    TabledEncoder,
    build_classifier,
    build_encoder,
    build_pair_classifier,
    has_word_tables,
    pack_classifier,
    pack_encoder,
)

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
FREE = tf.TensorSpec([None, None], "int32")

sentences = st.lists(st.integers(1, VOCABULARY - 1), min_size=1, max_size=12)
batches = st.lists(sentences, min_size=1, max_size=5)


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


def shaken(model):
    """The model with random weights: biases that start at zero would hide a leak of padding."""
    random = np.random.default_rng(3)
    for variable in model.variables:
        if variable.dtype == "float32" and "moving_variance" not in variable.path:
            variable.assign(random.normal(size=variable.shape, scale=0.5))
    return model


@functools.cache
def encoder_of(name):
    return shaken(build_encoder(ModelConfig.from_dict({**SMALL, "encoder": name})))


@functools.cache
def encode(name):
    return tf.function(encoder_of(name), input_signature=[FREE])


@functools.cache
def encode_packed(name):
    specs = {"index": tf.TensorSpec([None], "int32"), "segment_ids": FREE, "word_ids": FREE}
    return tf.function(pack_encoder(encoder_of(name)), input_signature=[specs])


def close(got, expected):
    np.testing.assert_allclose(got, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ENCODERS)
@given(rows=batches, extra=st.integers(1, 100), data=st.data())
def test_a_sentence_has_one_vector(name, rows, extra, data):
    together = encode(name)(pad(rows)).numpy()
    assert np.isfinite(together).all()
    for row, vector in zip(rows, together, strict=True):
        close(encode(name)(np.array([row], dtype="int32"))[0], vector)
    order = data.draw(st.permutations(range(len(rows))))
    close(encode(name)(pad([rows[place] for place in order])), together[order])
    close(encode(name)(pad(rows, extra)), together)


@pytest.mark.parametrize("name", ENCODERS)
@given(rows=batches, num_rows=st.integers(1, 3), gap=st.integers(0, 2), tail=st.integers(0, 100))
def test_a_packed_sentence_has_the_same_vector(name, rows, num_rows, gap, tail):
    together = encode(name)(pad(rows)).numpy()
    packed = pack(rows, num_rows, gap, tail)
    vectors = encode_packed(name)(packed).numpy()
    assert vectors.shape == (num_rows, len(rows), together.shape[-1])
    close(vectors.reshape(-1, together.shape[-1])[packed["index"]], together)


@functools.cache
def tabled(name):
    return TabledEncoder(encoder_of(name)).functions()


@pytest.mark.parametrize("name", [name for name in ENCODERS if has_word_tables(encoder_of(name))])
@given(rows=batches)
def test_a_sentence_encoded_by_word_tables_has_the_same_vector(name, rows):
    ids = pad(rows)
    known, inverse = np.unique(np.append(0, ids.ravel()), return_inverse=True)
    make, encode_by_tables = tabled(name)
    places = inverse[1:].reshape(ids.shape).astype("int32")
    close(encode_by_tables(make(known.astype("int32")), places), encode(name)(ids))


@pytest.mark.parametrize("name", ENCODERS)
def test_different_sentences_have_different_vectors(name):
    # Or else the tests above would pass for an encoder that ignores its words.
    vectors = encode(name)(pad([[3, 4, 5], [3, 4, 6], [5, 4, 3]])).numpy()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    assert np.abs(vectors[0] - vectors[2]).max() > 1e-3


@pytest.mark.parametrize("name", ENCODERS)
def test_a_sentence_without_words_is_the_zero_vector(name):
    ids = np.array([[0, 0, 0], [7, 0, 0]], dtype="int32")
    vectors = encode(name)(ids).numpy()
    assert not vectors[0].any()
    assert vectors[1].any()
    close(encode(name)(ids[1:, :1]), vectors[1:])
    assert not encode(name)(ids[:1]).numpy().any()
    # A gradient through it is finite as well.
    encoder = encoder_of(name)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(ids) ** 2)
    assert all(np.isfinite(one).all() for one in tape.gradient(loss, encoder.trainable_variables))
    # Packed: a segment that does not occur, and a batch with no word.
    packed = {**pack([[7]]), "index": np.zeros(3, "int32")}
    vectors = encode_packed(name)(packed).numpy()
    assert vectors.shape[:2] == (1, 3)
    assert not vectors[0, 1:].any()
    empty = {**packed, "word_ids": ids[:1], "segment_ids": ids[:1]}
    assert not encode_packed(name)(empty).numpy().any()


@pytest.mark.parametrize("name", ENCODERS)
@given(rows=batches, extra=st.integers(0, 100), num_rows=st.integers(1, 2))
def test_a_packed_classifier_gives_the_same_logits(name, rows, extra, num_rows):
    padded, packed = classifiers(name, pair=False)
    fed = pack(rows, num_rows)
    close(packed(fed), padded(pad(rows, extra)))


@pytest.mark.parametrize("name", ENCODERS)
@given(rows=batches, data=st.data())
def test_a_packed_pair_classifier_gives_the_same_logits(name, rows, data):
    padded, packed = classifiers(name, pair=True)
    which = st.integers(0, len(rows) - 1)
    pairs = data.draw(st.lists(st.tuples(which, which), min_size=len(rows), max_size=8))
    fed = {**pack(rows), "index": np.array(pairs, dtype="int32")}
    premise, hypothesis = (pad([rows[pair[side]] for pair in pairs]) for side in (0, 1))
    close(packed(fed), padded({"hypothesis": hypothesis, "premise": premise}))


@functools.cache
def classifiers(name, pair):
    config = ModelConfig.from_dict({**SMALL, "encoder": name})
    model = shaken(build_pair_classifier(config) if pair else build_classifier(config))
    signature = {"hypothesis": FREE, "premise": FREE} if pair else FREE
    index = tf.TensorSpec([None, 2] if pair else [None], "int32")
    packed = {"index": index, "segment_ids": FREE, "word_ids": FREE}
    return (
        tf.function(model, input_signature=[signature]),
        tf.function(pack_classifier(model), input_signature=[packed]),
    )


def test_hypothesis_and_premise_are_not_mixed_up():
    padded, packed = classifiers("dsa-single", pair=True)
    one, other = pad([[3, 4, 5]]), pad([[9, 8]])
    forth = padded({"hypothesis": one, "premise": other})
    back = padded({"hypothesis": other, "premise": one})
    assert np.abs(forth - back).max() > 1e-3
    # index is (premise, hypothesis)
    fed = pack([[3, 4, 5], [9, 8]])
    close(packed({**fed, "index": np.array([[1, 0]], dtype="int32")}), forth)


def test_masks_reach_a_users_own_model():
    keras.utils.set_random_seed(5)
    from dsa_keras.layers import DenseConvBlock, DynamicSelfAttention

    ids = keras.Input((None,), dtype="int32")
    words = keras.layers.Embedding(VOCABULARY, 6, mask_zero=True)(ids)
    words = DenseConvBlock(5, filters=3, first_filters=4, num_layers=2)(words)
    words = keras.layers.LayerNormalization()(keras.layers.Dropout(0.1)(words))
    model = shaken(keras.Model(ids, DynamicSelfAttention(5)(words)))
    alone = model(np.array([[3, 1, 4]]))
    close(model(np.array([[3, 1, 4, 0, 0, 0], [1, 2, 3, 4, 5, 6]]))[:1], alone)
