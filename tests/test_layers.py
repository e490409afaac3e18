"""Every layer: what all of them promise, and what each computes, against NumPy."""

from __future__ import annotations

import json
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer, check_masks

from dsa_keras import layers
from dsa_keras.config import ModelConfig
from dsa_keras.encoders import ENCODERS
from dsa_keras.layers import (
    AttentionLayer,
    ConvMaxPooling,
    DenseConvBlock,
    DynamicSelfAttention,
    GatherSentences,
    HeDropout,
    HeuristicMatching,
    MLPHead,
    PackedBiLSTM,
    SelfAttention,
    TracedAttention,
    UnpackIds,
    WordCompression,
    WordConvolution,
    WordDropout,
    WordEmbedding,
)
from dsa_keras.layers.composite import CompositeFunction
from dsa_keras.layers.convolution import WordProduct
from dsa_keras.layers.masked_words import MaskedWordsLayer, trust_masked_words
from dsa_keras.models import Network

RANDOM = np.random.default_rng(0)
WORDS = RANDOM.normal(size=(3, 6, 4)).astype("float32")
VECTORS = RANDOM.normal(size=(5, 4)).astype("float32")
IDS = np.array([[3, 1, 4, 0], [1, 5, 0, 0]], dtype="int32")
SEGMENTS = np.array([[1, 1, 0, 2, 2, 2], [1, 0, 2, 2, 0, 0], [1, 1, 1, 1, 1, 0]], dtype="int32")
PACKED = {"segment_ids": SEGMENTS, "num_segments": 2}
UNPACKED = {
    "segment_ids": np.array([[1, 1, 2, 0], [2, 2, 0, 0]], dtype="int32"),
    "num_segments": 2,
}


def bilstm(units, return_sequences=False, dtype=None):
    lstm = keras.layers.LSTM(units, return_sequences=return_sequences, dtype=dtype)
    return keras.layers.Bidirectional(lstm, dtype=dtype)


@keras.saving.register_keras_serializable(package="dsa_keras")
class OwnAttention(AttentionLayer):
    """An attention as a user writes one, on the words as they are."""

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self._scores = self.dense(self.num_attentions, "scores")

    def build(self, input_shape):
        self._scores.build(input_shape)

    def call(
        self,
        inputs,
        mask=None,
        segment_ids=None,
        num_segments=None,
        return_attention_scores=False,
    ):
        words, form = self.words_and_form(inputs, mask, segment_ids, num_segments)
        scores = form.arrange(self._scores(words), self.num_attentions)[..., 0]
        weights = form.softmax(scores)
        words = form.arrange(words, self.num_attentions)
        vectors = self.joined(form, form.weighted_sum(weights, words))
        return (vectors, form.weights_out(weights)) if return_attention_scores else vectors


# name: (what makes the layer, inputs, further options of check_layer)
CASES = {
    "conv-max-pooling": (
        lambda **kw: ConvMaxPooling((2, 3), filters=5, **kw),
        WORDS,
        {"masked": True},
    ),
    "conv-max-pooling-packed": (
        lambda **kw: ConvMaxPooling((2, 3), filters=5, **kw),
        WORDS,
        {"arguments": PACKED},
    ),
    "dense-conv-block": (
        lambda **kw: DenseConvBlock(3, filters=2, first_filters=3, num_layers=2, **kw),
        WORDS,
        {"masked": True},
    ),
    "dense-conv-block-packed": (
        lambda **kw: DenseConvBlock(5, filters=2, first_filters=3, num_layers=2, **kw),
        WORDS,
        {"arguments": {"segment_ids": SEGMENTS}},
    ),
    "word-convolution": (lambda **kw: WordConvolution(3, 3, **kw), WORDS, {}),
    "word-product": (lambda **kw: WordProduct(3, **kw), [WORDS, WORDS[..., :2]], {}),
    "word-dropout": (lambda **kw: WordDropout(0.5, **kw), WORDS, {}),
    "composite": (
        lambda **kw: CompositeFunction(3, 3, 0.2, 0.01, HeDropout(0.2), **kw),
        WORDS,
        {},
    ),
    "dsa": (
        lambda **kw: DynamicSelfAttention(3, num_attentions=2, num_iterations=3, **kw),
        WORDS,
        {"masked": True},
    ),
    "dsa-one-iteration": (
        lambda **kw: DynamicSelfAttention(3, num_iterations=1, stop_routing_gradient=True, **kw),
        WORDS,
        {"masked": True},
    ),
    "dsa-packed": (
        lambda **kw: DynamicSelfAttention(3, num_attentions=2, **kw),
        WORDS,
        {"arguments": PACKED, "masked": False},
    ),
    "dsa-trace": (
        lambda **kw: DynamicSelfAttention(3, num_attentions=2, **kw),
        WORDS,
        {"arguments": {"return_trace": True}, "masked": True},
    ),
    "dsa-packed-trace": (
        lambda **kw: DynamicSelfAttention(3, num_attentions=2, **kw),
        WORDS,
        {"arguments": {**PACKED, "return_trace": True}},
    ),
    "self-attention": (
        lambda **kw: SelfAttention(3, num_attentions=2, **kw),
        WORDS,
        {"masked": True},
    ),
    "self-attention-scores": (
        lambda **kw: SelfAttention(4, project=False, **kw),
        WORDS,
        {"arguments": {"return_attention_scores": True}, "masked": True},
    ),
    "self-attention-packed": (
        lambda **kw: SelfAttention(3, num_attentions=2, **kw),
        WORDS,
        {"arguments": PACKED},
    ),
    "own-attention": (
        lambda **kw: OwnAttention(2, num_attentions=2, **kw),
        WORDS,
        {"masked": True},
    ),
    "own-attention-packed": (
        lambda **kw: OwnAttention(2, num_attentions=2, **kw),
        WORDS,
        {"arguments": {**PACKED, "return_attention_scores": True}},
    ),
    "traced-own-attention": (
        lambda **kw: TracedAttention(OwnAttention(4, dtype=kw.get("dtype")), **kw),
        WORDS,
        {"masked": True},
    ),
    "traced-dsa": (
        lambda **kw: TracedAttention(DynamicSelfAttention(3, dtype=kw.get("dtype")), **kw),
        WORDS,
        {"masked": True},
    ),
    "traced-self-attention": (
        lambda **kw: TracedAttention(SelfAttention(3, dtype=kw.get("dtype")), **kw),
        WORDS,
        {"masked": True},
    ),
    "packed-bilstm": (
        lambda **kw: PackedBiLSTM(bilstm(3, dtype=kw.get("dtype")), **kw),
        WORDS,
        {"arguments": PACKED, "compiles": False},
    ),
    "packed-bilstm-of-words": (
        lambda **kw: PackedBiLSTM(bilstm(3, True, dtype=kw.get("dtype")), **kw),
        WORDS,
        {"arguments": PACKED, "compiles": False},
    ),
    "compression": (lambda **kw: WordCompression(3, **kw), WORDS, {"masked": True}),
    "compression-of-a-list": (
        lambda **kw: WordCompression(3, dropout=0.5, **kw),
        [WORDS, WORDS[..., :2]],
        {},
    ),
    "matching": (HeuristicMatching, [VECTORS, VECTORS[::-1].copy()], {}),
    "mlp-head": (
        lambda **kw: MLPHead(3, hidden_units=6, num_hidden_layers=2, **kw),
        VECTORS,
        {},
    ),
    "word-embedding": (lambda **kw: WordEmbedding(6, dimension=3, **kw), IDS, {}),
    "word-embedding-trained": (
        lambda **kw: WordEmbedding(6, dimension=3, train_vectors=True, **kw),
        IDS,
        {},
    ),
    "unpack-ids": (UnpackIds, IDS, {"arguments": UNPACKED, "compiles": False}),
    "gather-sentences": (
        GatherSentences,
        VECTORS,
        {"arguments": {"index": np.array([[0, 3], [4, 4]], dtype="int32")}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_every_layer_promises(name, tmp_path):
    make, inputs, options = CASES[name]
    check_layer(make, inputs, tmp_path, **options)


def test_every_public_layer_is_checked():
    public = {
        one
        for one in (getattr(layers, name) for name in layers.__all__)
        if isinstance(one, type) and issubclass(one, keras.Layer)
    }
    checked = {type(make()) for make, _, _ in CASES.values()}
    assert OwnAttention.__base__ is AttentionLayer
    assert public - {AttentionLayer} <= checked


# What each layer computes.


def leaky(x):
    return np.where(x > 0, x, 0.01 * x)


def convolve(x, kernel, bias):
    """A "same" convolution by its definition: a zero word where there is none."""
    reach = len(kernel) // 2
    out = np.zeros((len(x), kernel.shape[-1]))
    for position in range(len(x)):
        for offset in range(-reach, reach + 1):
            if 0 <= position + offset < len(x):
                out[position] += x[position + offset] @ kernel[offset + reach]
    return out + bias


@pytest.mark.parametrize(("kernel_size", "num_layers"), [(1, 1), (3, 1), (3, 3), (5, 2)])
def test_dense_conv_block_is_equations_2_to_4(kernel_size, num_layers):
    layer = DenseConvBlock(kernel_size, filters=2, first_filters=3, num_layers=num_layers)
    layer.build(WORDS.shape)
    # Biases start at zero, where a leak of padding would not show.
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    lengths = [6, 4, 1]
    mask = np.arange(6) < np.array(lengths)[:, np.newaxis]
    got = layer(WORDS, mask=mask).numpy()
    assert got.shape == (3, 6, 3 + 2 * num_layers)
    for row, length in enumerate(lengths):
        sentence = WORDS[row, :length].astype("float64")  # the sentence alone, without padding
        weights = iter(w.astype("float64") for w in layer.get_weights())
        first, bias = next(weights), next(weights)
        outputs = [leaky(sentence @ first + bias)]  # Eq. 2
        for _ in range(num_layers):
            fed = np.concatenate(outputs[::-1], axis=-1)  # X^{l-1}, ..., X^1
            kernel, bias = next(weights), next(weights)
            kernel = kernel.reshape(kernel_size, fed.shape[-1], -1)
            outputs.append(leaky(convolve(fed, kernel, bias)))  # Eq. 3
        expected = np.concatenate(outputs[::-1], axis=-1)  # Eq. 4
        np.testing.assert_allclose(got[row, :length], expected, atol=1e-5)
        assert not got[row, length:].any()


def test_segments_keep_packed_sentences_apart():
    layer = DenseConvBlock(5, filters=2, first_filters=3, num_layers=2)
    layer.build(WORDS.shape)
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    one, two = WORDS[:1, :3], WORDS[1:2, :4]
    packed = layer(np.concatenate([one, two], axis=1), segment_ids=[[1, 1, 1, 2, 2, 2, 2]])
    np.testing.assert_allclose(packed[:, :3], layer(one), atol=1e-6)
    np.testing.assert_allclose(packed[:, 3:], layer(two), atol=1e-6)
    with pytest.raises(ValueError, match="`segment_ids` must have one entry per word"):
        layer(one, segment_ids=[[1, 1]])


def test_compression_gives_unit_vectors():
    layer = WordCompression(3)
    mask = [[1] * 6, [1] * 4 + [0] * 2, [0] * 6]
    got = layer([WORDS, WORDS[..., :2]], mask=[np.array(mask)] * 2).numpy()
    kernel, bias = layer.get_weights()
    x = leaky(np.concatenate([WORDS, WORDS[..., :2]], -1) @ kernel + bias)
    expected = x / np.linalg.norm(x, axis=-1, keepdims=True) * np.expand_dims(mask, -1)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_norms_are_exact_in_half_precision():
    # Squares of values below 2e-4 vanish in float16: the norm must be computed in float32.
    layer = WordCompression(300, kernel_initializer="ones", dtype="mixed_float16")
    words = np.full((1, 2, 4), 1e-5, dtype="float32")
    norms = np.linalg.norm(layer(words).numpy().astype("float64"), axis=-1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-3)


def test_heuristic_matching_by_hand():
    h, p = np.array([[1.0, -2.0]]), np.array([[3.0, 0.5]])
    # h, p, |h - p| = |-2|, |-2.5| and h * p = 3, -1
    np.testing.assert_array_equal(
        HeuristicMatching()([h, p]), [[1.0, -2.0, 3.0, 0.5, 2.0, 2.5, 3.0, -1.0]]
    )


def test_conv_max_pooling_by_its_definition():
    layer = ConvMaxPooling((2, 4), filters=3)
    layer.build(WORDS.shape)
    # Large biases: a window of padding alone would win the maximum.
    layer.set_weights([RANDOM.normal(size=w.shape) + (w.ndim == 1) for w in layer.get_weights()])
    lengths = [6, 2, 1]
    got = layer(WORDS, mask=np.arange(6) < np.array(lengths)[:, np.newaxis]).numpy()
    kernels = layer.get_weights()
    for row, length in enumerate(lengths):
        expected = []
        for kernel, bias in zip(kernels[::2], kernels[1::2], strict=True):
            width = len(kernel)
            around = np.zeros((width - 1, 4))
            words = np.concatenate([around, WORDS[row, :length], around])
            windows = [
                np.einsum("wf,wfo->o", words[start : start + width], kernel) + bias
                for start in range(len(words) - width + 1)
            ]
            expected.append(np.maximum(np.max(windows, axis=0), 0))
        np.testing.assert_allclose(got[row], np.concatenate(expected), atol=1e-5)


@pytest.mark.parametrize(
    ("rate", "scale_by", "scale"),
    [(0.2, "rate", 0.2), (0.2, "keep", 0.8), (0.2, "none", 1.0), (0.0, "rate", 1.0)],
)
def test_he_dropout_variance(rate, scale_by, scale):
    kernel = np.asarray(HeDropout(rate, scale_by, seed=3)((400, 300)))
    assert abs(kernel.mean()) < 1e-3
    assert kernel.var() == pytest.approx(2 / 400 * scale, rel=0.02)
    # A truncated normal would end at two standard deviations.
    assert np.abs(kernel).max() > 3.5 * kernel.std()


def test_every_kernel_is_a_draw_of_its_own():
    layer = DenseConvBlock(3, filters=3, first_filters=4, num_layers=1, dropout=0.5)
    layer.build((None, None, 4))
    head = MLPHead(2, hidden_units=4, num_hidden_layers=2, kernel_initializer=HeDropout(0.4))
    head.build((None, 4))
    kernels = [w for w in head.get_weights() if w.shape == (4, 4)]
    assert (kernels[0] != kernels[1]).all()
    assert HeDropout(0.4, "keep", seed=5).get_config() == {
        "rate": 0.4,
        "scale_by": "keep",
        "seed": 5,
    }


def test_dropout_sits_between_convolution_and_activation():
    # With dropout after the convolution a dropped value is LeakyReLU(0) = 0; the others are scaled.
    layer = DenseConvBlock(3, filters=50, first_filters=50, num_layers=1, dropout=0.5)
    still, dropped = layer(WORDS).numpy(), layer(WORDS, training=True).numpy()
    first = slice(50, None)  # X^1 is last; it depends on one dropout only
    zero = dropped[..., first] == 0
    assert 0.4 < zero.mean() < 0.6
    np.testing.assert_allclose(dropped[..., first][~zero], 2 * still[..., first][~zero], rtol=1e-5)


def test_mlp_head_normalises_as_pytorch_does():
    head = MLPHead(3, hidden_units=4, num_hidden_layers=1, dropout=0.0)
    x = np.array([[1.0, 10.0], [3.0, 20.0], [5.0, 60.0]], dtype="float32")
    trained = head(x, training=True).numpy()
    gamma, beta, kernel, bias, classes, classes_bias, mean, variance = (
        w.numpy() for w in (*head.trainable_variables, *head.non_trainable_variables[:2])
    )
    normal = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * gamma + beta
    expected = leaky(normal @ kernel + bias) @ classes + classes_bias
    np.testing.assert_allclose(trained, expected, atol=1e-4)
    # Momentum 0.1 in PyTorch's sense, from mean 0 and variance 1.
    np.testing.assert_allclose(mean, 0.1 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * x.var(0), rtol=1e-5)


def test_statistics_taken_from_a_batch_are_those_of_training_on_it():
    """Without dropout, inference after it is what training computes: both norms fit the batch."""
    head = MLPHead(3, hidden_units=4, num_hidden_layers=2, dropout=0.0)
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 6)).astype("float32")
    trained = head(x, training=True)
    assert np.abs(np.array(head(x, training=False) - trained)).max() > 0.1
    head.take_statistics(x)
    np.testing.assert_allclose(head(x, training=False), trained, atol=1e-5)


def test_batch_norm_is_folded_by_hand():
    head = MLPHead(1, hidden_units=2, num_hidden_layers=1)
    with pytest.raises(ValueError, match="MLPHead must be built before"):
        head.folded()
    head.build((None, 2))
    norm, hidden, classes = head._norms[0], head._hidden[0], head._classes
    # gamma, beta, mean, variance; with epsilon 1e-5 the deviations are 2 and 1/2.
    norm.set_weights(np.array([[4, 1], [1, -1], [3, 2], [4 - 1e-5, 0.25 - 1e-5]]))
    hidden.set_weights([np.array([[1, 2], [3, 4]]), np.array([10, 20])])
    classes.set_weights([np.array([[5], [6]]), np.array([7])])
    # Scales are 4 / 2 = 2 and 1 / 0.5 = 2; shifts are 1 - 3 * 2 = -5 and -1 - 2 * 2 = -5.
    # The bias is (10 - 5 * 1 - 5 * 3, 20 - 5 * 2 - 5 * 4).
    expected = [([[2, 4], [6, 8]], [-10, -10]), ([[5], [6]], [7])]
    folded = head.folded()
    for parts, by_hand in zip(folded, expected, strict=True):
        for part, other in zip(parts, by_hand, strict=True):
            assert part.dtype == np.float32
            np.testing.assert_allclose(part, other, rtol=1e-6)
    (kernel, bias), (last, last_bias) = folded
    x = RANDOM.normal(size=(5, 2)).astype("float32")
    np.testing.assert_allclose(leaky(x @ kernel + bias) @ last + last_bias, head(x), rtol=1e-4)


def test_mlp_head_gives_float32_logits_in_half_precision():
    head = MLPHead(3, dtype="mixed_float16")
    assert head(VECTORS).dtype == "float32"
    assert head(keras.Input((4,))).dtype == "float32"


# Packed sentences.


# Sentences of 3, 0, 1 and 5 words, in two rows that have room for two each.
ROWS = RANDOM.normal(size=(2, 6, 2)).astype("float32")
ROW_SEGMENTS = np.array([[1, 0, 1, 1, 0, 0], [1, 2, 2, 2, 2, 2]], dtype="int32")
PLACES = [(0, 0), (0, 2), (0, 3)], [], [(1, 0)], [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]
LENGTHS = np.array([len(one) for one in PLACES])
# What lies behind the words of a sentence must not matter.
ALONE = np.stack([np.resize([ROWS[place] for place in one] or 9.0, (5, 2)) for one in PLACES])
ALONE = ALONE.astype("float32")


@pytest.mark.parametrize(
    "run", [lambda function: function, tf.function, tf.function(jit_compile=True)]
)
def test_packed_pooling_and_its_gradient_are_those_of_padded_words(run):
    layer = ConvMaxPooling((2, 4), filters=20)
    layer.build((None, None, 2))
    # Large biases, and so many filters that all windows of a sentence are below zero for some of
    # them: a window of padding alone would win the maximum.
    layer.set_weights([RANDOM.normal(size=w.shape) + (w.ndim == 1) for w in layer.get_weights()])
    weight = RANDOM.normal(size=(4, 40)).astype("float32")
    variables = [one.value for one in layer.trainable_variables]

    def pooled(words, **form):
        words = tf.constant(words)
        with tf.GradientTape() as tape:
            tape.watch(words)
            out = tf.reshape(layer(words, **form), [4, 40])
            loss = tf.reduce_sum(out * weight)
        return out, *tape.gradient(loss, [words, *variables])

    packed = run(lambda: pooled(ROWS, segment_ids=ROW_SEGMENTS, num_segments=2))
    got, by_words, *gradients = packed()
    out, slope, *slopes = pooled(ALONE, mask=np.arange(5) < LENGTHS[:, np.newaxis])
    np.testing.assert_allclose(got, out, atol=1e-5)
    assert not np.any(out[1])
    expected = np.zeros_like(ROWS)
    for number, places in enumerate(PLACES):
        for position, place in enumerate(places):
            expected[place] = slope[number, position]
    np.testing.assert_allclose(by_words, expected, atol=1e-5)
    for one, other in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_packed_pooling_takes_whole_numbers_of_any_kind_and_rows_without_words():
    layer = ConvMaxPooling((2, 3), filters=5, dtype="float32")
    layer.build((None, None, 2))
    layer.set_weights([np.ones(w.shape) for w in layer.get_weights()])
    expected = layer(ROWS, segment_ids=ROW_SEGMENTS, num_segments=2)
    for num_segments in (np.int64(2), tf.constant(2, "int64"), None):
        got = layer(ROWS, segment_ids=ROW_SEGMENTS.astype("int64"), num_segments=num_segments)
        np.testing.assert_array_equal(got, expected)
    empty = layer(ROWS, segment_ids=ROW_SEGMENTS * 0, num_segments=2)
    np.testing.assert_array_equal(empty, np.zeros((2, 2, 10)))


@pytest.mark.parametrize("of_words", [False, True])
@pytest.mark.parametrize("run", [lambda function: function, tf.function])
def test_packed_bilstm_and_its_gradient_are_those_of_keras(of_words, run):
    layer = bilstm(4, return_sequences=of_words)
    layer.build((None, None, 2))
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    mask = np.arange(5) < LENGTHS[:, np.newaxis]
    weight = RANDOM.normal(size=(2, 6 if of_words else 2, 8)).astype("float32")

    @run
    def packed():
        with tf.GradientTape() as tape:
            out = PackedBiLSTM(layer)(ROWS, segment_ids=ROW_SEGMENTS, num_segments=2)
            loss = tf.reduce_sum(out * weight)
        return out, tape.gradient(loss, [one.value for one in layer.trainable_variables])

    def expected():
        with tf.GradientTape() as tape:
            out = layer(ALONE, mask=mask)
            if of_words:
                places = [place for one in PLACES for place in one]
                out = tf.scatter_nd(places, tf.boolean_mask(out, mask), [2, 6, 8])
            else:
                out = tf.reshape(out, [2, 2, 8])
            loss = tf.reduce_sum(out * weight)
        return out, tape.gradient(loss, [one.value for one in layer.trainable_variables])

    (got, gradients), (out, slopes) = packed(), expected()
    np.testing.assert_allclose(got, out, atol=1e-6)
    for one, other in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_trace_of_dynamic_self_attention_has_every_iteration():
    layer = DynamicSelfAttention(3, num_attentions=2, num_iterations=3)
    mask = np.array([[1, 1, 0, 1, 1, 0]] * 3)
    for traced in (layer.trace(WORDS, mask=mask), TracedAttention(layer)(WORDS, mask=mask)):
        assert set(traced) == {"vectors", "attention_weights", "weight_vectors"}
        vectors, trace = layer(WORDS, mask=mask, return_trace=True)
        np.testing.assert_array_equal(traced["vectors"], vectors)
        assert traced["attention_weights"].shape == (3, 3, 2, 6)
        np.testing.assert_array_equal(traced["attention_weights"], trace.attention_weights)
        assert traced["weight_vectors"].shape == (3, 3, 2, 3)
        np.testing.assert_array_equal(traced["weight_vectors"], trace.weight_vectors)


@pytest.mark.parametrize("make", [SelfAttention, OwnAttention])
def test_a_trace_of_one_iteration_has_the_weights_of_the_call(make):
    layer = make(2, num_attentions=2)
    mask = np.array([[1, 1, 0, 1, 1, 0]] * 3)
    for traced in (layer.trace(WORDS, mask=mask), TracedAttention(layer)(WORDS, mask=mask)):
        assert set(traced) == {"vectors", "attention_weights"}
        vectors, weights = layer(WORDS, mask=mask, return_attention_scores=True)
        np.testing.assert_array_equal(traced["vectors"], vectors)
        assert traced["attention_weights"].shape == (3, 1, 2, 6)
        np.testing.assert_array_equal(traced["attention_weights"][:, 0], weights)


HIDING = {
    "dsa": lambda: DynamicSelfAttention(3),
    "self-attention": lambda: SelfAttention(3),
    "dense-conv-block": lambda: DenseConvBlock(3, filters=2, first_filters=3),
    "compression": lambda: WordCompression(3),
}


@pytest.mark.parametrize("name", HIDING)
def test_trusted_masked_words_are_hidden_without_being_set_to_zero(name):
    # The values of masked words have no effect as long as they are finite; NaN would spread, which
    # shows that no pass over the words was made.
    check_masks(lambda: trust_masked_words(HIDING[name]()), WORDS, {}, garbage=(7.0, -1e15))
    layer = HIDING[name]()
    mask = np.array([[1, 1, 0, 1, 1, 0]] * 3, bool)
    dirty = np.where(mask[..., np.newaxis], WORDS, np.float32(np.nan))
    assert np.isfinite(layer(dirty, mask=mask)).all()
    assert not np.isfinite(trust_masked_words(layer)(dirty, mask=mask)).all()


@pytest.mark.parametrize("name", HIDING)
@pytest.mark.parametrize("packed", [False, True])
def test_trust_changes_no_bit_for_masked_words_that_are_zero(name, packed):
    layer = HIDING[name]()
    mask = np.array([[1, 1, 0, 1, 1, 0]] * 3, bool)
    zeroed = np.where(mask[..., np.newaxis], WORDS, np.float32(0))
    arguments = {"mask": mask}
    if packed and name != "compression":
        arguments["segment_ids"] = SEGMENTS
    expected = layer(zeroed, **arguments)
    np.testing.assert_array_equal(trust_masked_words(layer)(zeroed, **arguments), expected)


@pytest.mark.parametrize("encoder", ["dsa-single", "self-attention", "bilstm-self-attention"])
def test_encoders_spend_no_pass_on_masked_words(encoder):
    config = ModelConfig(ENCODERS.get(encoder)(), vocabulary_size=5, embedding_dim=4)
    model = Network(config).encoder
    hiding = [one for one in model.layers if isinstance(one, MaskedWordsLayer)]
    assert hiding
    for layer in hiding:
        # Among the inputs of a layer there is the mask.
        fed = [one.shape for one in keras.tree.flatten(layer.input) if len(one.shape) == 3]
        features = sum(shape[-1] for shape in fed)
        words = np.full((1, 2, features), np.nan, "float32")
        assert np.isnan(layer(words, mask=np.zeros((1, 2), bool))).any(), layer.name


def test_only_layers_that_hide_words_can_trust_them():
    with pytest.raises(ValueError, match="`layer` must be a layer that sets masked words to zero"):
        trust_masked_words(keras.layers.Dense(2))


@pytest.mark.parametrize("name", HIDING)
def test_files_of_when_trust_was_an_argument_still_load(name, tmp_path):
    layer = HIDING[name]()
    words = keras.Input((None, 4))
    model = keras.Model(words, layer(words))
    expected = model(WORDS)
    assert "finite_inputs" not in layer.get_config()
    model.save(tmp_path / "new.keras")
    with (
        zipfile.ZipFile(tmp_path / "new.keras") as new,
        zipfile.ZipFile(tmp_path / "old.keras", "w") as old,
    ):
        for member in new.namelist():
            content = new.read(member)
            if member == "config.json":
                config = json.loads(content)
                (own,) = (one for one in config["config"]["layers"] if one["name"] == layer.name)
                own["config"]["finite_inputs"] = True
                content = json.dumps(config).encode()
            old.writestr(member, content)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "old.keras")(WORDS), expected)


def test_unpacked_ids_have_a_row_for_each_sentence():
    ids = np.array([[7, 8, 0, 9, 4, 0], [5, 0, 6, 6, 6, 3]], dtype="int32")
    segments = np.array([[1, 1, 0, 2, 2, 0], [2, 0, 3, 3, 3, 4]], dtype="int32")
    rows = UnpackIds()(ids, segment_ids=segments, num_segments=3)
    # A sentence that a row does not have is empty; a fourth one does not belong to the batch.
    expected = [[7, 8, 0], [9, 4, 0], [0, 0, 0], [0, 0, 0], [5, 0, 0], [6, 6, 6]]
    np.testing.assert_array_equal(rows, expected)
    nothing = UnpackIds()(0 * ids, segment_ids=0 * segments, num_segments=tf.constant(3))
    np.testing.assert_array_equal(nothing, np.zeros((6, 1)))
    assert UnpackIds().compute_output_spec(ids, segments, 3).dtype == "int32"


def test_packed_bilstm_leaves_out_masked_words():
    layer = PackedBiLSTM(bilstm(3))
    mask = np.array([[True, False, True, True, True, False]] * 3)
    masked = layer(WORDS, mask=mask, segment_ids=SEGMENTS, num_segments=2)
    dirty = np.where(mask[..., np.newaxis], WORDS, np.nan)
    np.testing.assert_array_equal(
        masked, layer(dirty, segment_ids=np.where(mask, SEGMENTS, 0), num_segments=2)
    )
    np.testing.assert_array_equal(
        masked, layer(dirty, mask=mask, segment_ids=SEGMENTS, num_segments=2)
    )
