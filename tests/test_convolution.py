"""Convolution as a matrix product, and dropout together with the mask."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from dsa_keras.layers import WordConvolution, WordDropout
from dsa_keras.layers.convolution import WordProduct, same_sentence


def value_and_gradients(convolve, words, kernel):
    """The result, and the gradient of its square's sum by words and kernel."""
    with tf.GradientTape() as tape:
        tape.watch([words, kernel])
        result = convolve(words, kernel)
        loss = tf.reduce_sum(result**2)
    return [result, *tape.gradient(loss, [words, kernel])]


def layer_of(kernel, **arguments):
    """WordConvolution as a function of words and kernel."""

    def convolve(words, weights):
        layer = WordConvolution(kernel.shape[2], kernel.shape[0], use_bias=True)
        layer.build(words.shape)
        layer.kernel.assign(kernel)
        with keras.StatelessScope(state_mapping=[(layer.kernel, weights)]):
            return layer(words, **arguments)

    return convolve


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 3),
    length=st.integers(1, 6),
    features=st.integers(1, 4),
    filters=st.integers(1, 3),
    size=st.sampled_from([1, 3, 5, 7]),
)
def test_value_and_gradients_are_those_of_tensorflow(rows, length, features, filters, size):
    random = np.random.default_rng(rows + 7 * length)
    words = tf.constant(random.normal(size=(rows, length, features)), tf.float32)
    kernel = tf.constant(random.normal(size=(size, features, filters)), tf.float32)
    got = value_and_gradients(layer_of(kernel), words, kernel)
    expected = value_and_gradients(
        lambda words, kernel: tf.nn.conv1d(words, kernel, 1, "SAME"), words, kernel
    )
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3, rtol=1e-4)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from([3, 5]))
def test_sentences_side_by_side_are_as_if_alone(lengths, size):
    random = np.random.default_rng(sum(lengths))
    kernel = tf.constant(random.normal(size=(size, 2, 3)), tf.float32)
    words = tf.constant(random.normal(size=(1, sum(lengths), 2)), tf.float32)
    segments = np.repeat(np.arange(len(lengths)) + 1, lengths)[np.newaxis]
    flags = same_sentence(segments, size, "float32")
    got = value_and_gradients(layer_of(kernel, same_sentence=flags), words, kernel)

    def one_by_one(words, kernel):
        parts = [tf.nn.conv1d(one, kernel, 1, "SAME") for one in tf.split(words, lengths, axis=1)]
        return tf.concat(parts, axis=1)

    for one, other in zip(got, value_and_gradients(one_by_one, words, kernel), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-4)


def test_convolution_has_the_weights_of_keras_own():
    ours, keras_own = WordConvolution(4, 3), keras.layers.Conv1D(4, 3, padding="same")
    words = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    ours.build(words.shape)
    keras_own.build(words.shape)
    ours.set_weights([np.random.default_rng(1).normal(size=w.shape) for w in ours.get_weights()])
    keras_own.set_weights(ours.get_weights())
    np.testing.assert_allclose(ours(words), keras_own(words), atol=1e-5)


# Dropout.


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.5])
def test_dropout_keeps_the_share_and_the_mean(rate):
    dropped = WordDropout(rate)(np.ones((50, 40, 75), "float32"), training=True).numpy()
    assert np.unique(dropped).size == 2
    # 150,000 decisions: five standard deviations are 0.0065 at most.
    assert abs((dropped == 0).mean() - rate) < 0.0065
    np.testing.assert_allclose(dropped.max(), 1 / (1 - rate), rtol=1e-4)


def test_masked_words_are_zero_with_and_without_dropout():
    layer, words = WordDropout(0.5), np.ones((2, 3, 40), "float32")
    mask = tf.constant([[True, True, False], [False, True, False]])
    for training in (False, True):
        dropped = layer(words, mask=mask, training=training).numpy()
        assert dropped[mask].any(axis=-1).all()
        assert not dropped[~mask.numpy()].any()
    np.testing.assert_array_equal(layer(words, training=False), words)


def test_each_call_draws_anew_and_neighbours_are_independent():
    layer, words = WordDropout(0.5), np.ones((1, 1, 100_001), "float32")
    one, two = (layer(words, training=True).numpy().ravel() > 0 for _ in range(2))
    assert 0.49 < (one == two).mean() < 0.51
    # Four decisions come from one drawn number.
    for apart in (1, 2, 3):
        first, second = one[: 100_000 - apart], one[apart:100_000]
        assert 0.49 < (first == second).mean() < 0.51


@pytest.mark.parametrize("rate", [0.201, 0.001])
def test_the_rate_is_met_between_the_steps_of_eight_bits(rate):
    """By limits of 51 and 52 out of 256, or 0 and 1, which words draw for themselves."""
    words = np.ones((1, 20_000, 200), "float32")
    dropped = (WordDropout(rate)(words, training=True).numpy() == 0).mean(axis=-1).ravel()
    # 4,000,000 decisions: five standard deviations are 0.001, or 0.00008 for the low rate.
    assert abs(dropped.mean() - rate) < 5 * (rate / 4e6) ** 0.5
    higher = np.ceil(256 * rate) / 256
    # As many words have the higher limit as it takes; their own shares scatter.
    assert dropped.var() > rate * (1 - rate) / 200 * 0.95
    assert dropped.max() < higher + 6 * (higher / 200) ** 0.5


def test_dropout_of_nothing_and_of_too_much():
    words = np.ones((1, 2, 3), "float32")
    np.testing.assert_array_equal(WordDropout(0.0)(words, training=True), words)
    with pytest.raises(
        ValueError, match=r"`rate` must be a number in the range \[0, 1\). Received: rate=1"
    ):
        WordDropout(1)


def test_a_product_of_parts_is_that_of_the_parts_side_by_side():
    """Answers and gradients are those of `Dense`, and what needs no gradient gets none."""
    random = np.random.default_rng(0)
    fixed, trained = (random.normal(size=(2, 3, n)).astype("float32") for n in (4, 5))
    fixed, trained = tf.constant(fixed), tf.Variable(trained)
    parts, dense = WordProduct(6), keras.layers.Dense(6)
    for layer in (parts, dense):
        layer.build((2, 3, 9))
        layer.set_weights([np.cos(np.arange(54.0)).reshape(9, 6), np.arange(6.0)])
    with tf.GradientTape(persistent=True) as tape:
        got, expected = parts([fixed, trained]), dense(tf.concat([fixed, trained], -1))
        losses = [tf.reduce_sum(tf.sin(one)) for one in (got, expected)]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(parts(tf.concat([fixed, trained], -1)), expected, atol=1e-5)
    for loss, layer in zip(losses, (parts, dense), strict=True):
        layer.gradients = [
            one.numpy()
            for one in tape.gradient(loss, [trained, layer.kernel.value, layer.bias.value])
        ]
    for one, two in zip(parts.gradients, dense.gradients, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
