"""A text has one answer, padded or packed; `encoder_checks.py` has the same for vectors."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from encoder_checks import FREE, VOCABULARY, batches, close, pack, pad, shaken, small_config
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.encoders import ENCODERS
from dsa_keras.models import Network


@pytest.mark.parametrize("name", ENCODERS.names())
@given(rows=batches, extra=st.integers(0, 100), num_rows=st.integers(1, 2))
def test_a_packed_classifier_gives_the_same_logits(name, rows, extra, num_rows):
    padded, packed = classifiers(name, pair=False)
    fed = pack(rows, num_rows)
    close(packed(fed), padded(pad(rows, extra)))


@pytest.mark.parametrize("name", ENCODERS.names())
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
    """The padded and the packed model on one network."""
    network = shaken(Network(small_config(name, pair=pair)))
    signature = {"premise": FREE, "hypothesis": FREE} if pair else FREE
    index = tf.TensorSpec([None, 2] if pair else [None], "int32")
    packed = {"index": index, "segment_ids": FREE, "word_ids": FREE}
    return (
        tf.function(network.model, input_signature=[signature]),
        tf.function(network.packed_model, input_signature=[packed]),
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
    model = keras.Model(ids, DynamicSelfAttention(5)(words))
    random = np.random.default_rng(3)
    model.set_weights([random.normal(size=one.shape, scale=0.5) for one in model.get_weights()])
    alone = model(np.array([[3, 1, 4]]))
    close(model(np.array([[3, 1, 4, 0, 0, 0], [1, 2, 3, 4, 5, 6]]))[:1], alone)
