"""Word vectors: looked up, assigned, fixed or trained."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from dsa_keras.layers import WordEmbedding

RANDOM = np.random.default_rng(0)
IDS = np.array([[3, 1, 4, 0], [1, 5, 0, 0]], dtype="int32")


def test_word_vectors_are_assigned_and_padding_is_zero():
    layer = WordEmbedding(6, dimension=3)
    layer.build((None, None))
    matrix = RANDOM.normal(size=(6, 3)).astype("float32")
    layer.assign_vectors(matrix)
    words = layer(IDS)
    np.testing.assert_array_equal(words, np.where((IDS != 0)[..., np.newaxis], matrix[IDS], 0))
    np.testing.assert_array_equal(layer.compute_mask(IDS), IDS != 0)
    with pytest.raises(ValueError, match=r"`matrix` must have shape \(6, 3\).* shape \(3, 6\)"):
        layer.assign_vectors(matrix.T)


def test_fixed_vectors_get_no_gradient():
    layer = WordEmbedding(6, dimension=3)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(IDS))
    assert layer.trainable_variables == []
    assert len(layer.get_weights()) == 1 + 0  # the table is still saved with the model
    assert tape.gradient(loss, layer.vectors.value) is None


@pytest.mark.parametrize("jit_compile", [False, True])
def test_trained_vectors_get_a_dense_gradient_summed_over_repeats(jit_compile):
    layer = WordEmbedding(5, dimension=2, dropout=0.0, train_vectors=True)
    ids = np.array([[2, 3, 2], [2, 4, 0]], dtype="int32")
    layer.build(ids.shape)
    upstream = RANDOM.normal(size=(2, 3, 2)).astype("float32")

    @tf.function(jit_compile=jit_compile)
    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.constant(ids)) * upstream)
        return tape.gradient(loss, layer.vectors.value)

    expected = np.zeros((5, 2))
    for word, value in zip(ids.ravel(), upstream.reshape(-1, 2), strict=True):
        if word != 0:
            expected[word] += value
    got = gradient()
    assert isinstance(got, tf.Tensor)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_large_ids_survive_half_precision():
    layer = WordEmbedding(5000, dimension=1, dropout=0.0, dtype="mixed_float16")
    layer.build((None, None))
    layer.assign_vectors(np.arange(5000, dtype="float32")[:, np.newaxis] % 7)
    ids = np.array([[4097, 4099, 4999]])
    np.testing.assert_array_equal(layer(ids).numpy().ravel(), (ids % 7).ravel())
