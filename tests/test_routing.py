"""Algorithm 1 against a case worked out by hand, NumPy, finite differences, and itself packed."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from dsa_keras.layers import DynamicSelfAttention, SelfAttention

RANDOM = np.random.default_rng(7)
LENGTHS = [6, 1, 3, 4]


def attention(units, features, **options):
    """A layer in float64 with random weights, biases included."""
    layer = DynamicSelfAttention(units, dtype="float64", **options)
    layer.build((None, None, features))
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def padded(sentences):
    """`(words, mask)` with the same garbage in every masked position."""
    longest = max(map(len, sentences))
    words = np.full((len(sentences), longest, sentences[0].shape[-1]), 3.3)
    for row, sentence in enumerate(sentences):
        words[row, : len(sentence)] = sentence
    return words, np.arange(longest) < np.array([[len(one)] for one in sentences])


def packed(sentences, rows):
    """`(words, segment_ids)` with the sentences laid into so many rows, garbage in between."""
    per_row = -(-len(sentences) // rows)
    length = 1 + sum(len(one) + 1 for one in sentences)
    words = np.full((rows, length, sentences[0].shape[-1]), 3.3)
    segment_ids = np.zeros((rows, length), dtype="int32")
    for row in range(rows):
        start = 1
        for number, one in enumerate(sentences[row * per_row : (row + 1) * per_row], start=1):
            words[row, start : start + len(one)] = one
            segment_ids[row, start : start + len(one)] = number
            start += len(one) + 1
    return words, segment_ids, per_row


def algorithm_1(projected, iterations):
    """One sentence and one attention, line by line as the paper has it."""
    q = np.zeros(len(projected))
    trace = []
    for _ in range(iterations):
        a = np.array([np.exp(one) / sum(np.exp(other) for other in q) for one in q])
        s = sum(weight * word for weight, word in zip(a, projected, strict=True))
        z = np.tanh(s)
        q = q + np.array([word @ z for word in projected])
        trace.append((a, z))
    return trace


def by_numpy(layer, sentence):
    """Weights `(r, m, words)` and vectors `(r, m, units)` of one sentence."""
    kernel, bias = layer.get_weights()
    x = sentence @ kernel + bias
    x = np.where(x > 0, x, 0.01 * x).reshape(len(sentence), layer.num_attentions, layer.units)
    traces = [algorithm_1(x[:, j], layer.num_iterations) for j in range(layer.num_attentions)]
    weights, vectors = (
        np.array([[step[part] for step in trace] for trace in traces]) for part in (0, 1)
    )
    return weights.swapaxes(0, 1), vectors.swapaxes(0, 1)


def test_a_case_worked_out_by_hand():
    # Projection = identity (all inputs are positive), words (2, 0) and (0, 1), one padded (5, 5).
    # Iteration 1: a = (1/2, 1/2), s = (1, 0.5), z = (tanh 1, tanh 0.5) = (0.761594, 0.462117)
    #              q = (2 * 0.761594, 1 * 0.462117) = (1.523188, 0.462117)
    # Iteration 2: a_1 = 1 / (1 + exp(0.462117 - 1.523188)) = 1 / (1 + 0.346085) = 0.742895
    #              a_2 = 1 - a_1 = 0.257105; s = (1.485790, 0.257105)
    #              z = (tanh 1.485790, tanh 0.257105) = (0.902547, 0.251586)
    layer = DynamicSelfAttention(2, num_iterations=2)
    layer.build((None, None, 2))
    layer.set_weights([np.eye(2), np.zeros(2)])
    words = np.array([[[2.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    vectors, trace = layer(words, mask=[[1, 1, 0]], return_trace=True)
    weights = [[0.5, 0.5, 0.0], [0.742895, 0.257105, 0.0]]
    np.testing.assert_allclose(trace.attention_weights[0, :, 0], weights, atol=2e-6)
    z = [[0.761594, 0.462117], [0.902547, 0.251586]]
    np.testing.assert_allclose(trace.weight_vectors[0, :, 0], z, atol=2e-6)
    np.testing.assert_array_equal(vectors, trace.weight_vectors[:, -1, 0])


@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("attentions", [1, 2, 3, 8])
def test_routing_is_algorithm_1(iterations, attentions):
    layer = attention(3, 4, num_attentions=attentions, num_iterations=iterations)
    sentences = [RANDOM.normal(size=(length, 4)) for length in LENGTHS]
    expected = [by_numpy(layer, sentence) for sentence in sentences]

    words, mask = padded(sentences)
    vectors, trace = layer(words, mask=mask, return_trace=True)
    scored, last = layer(words, mask=mask, return_attention_scores=True)
    np.testing.assert_array_equal(vectors, scored)
    np.testing.assert_array_equal(vectors, layer(words, mask=mask))
    np.testing.assert_array_equal(trace.attention_weights[:, -1], last)
    assert trace.attention_weights.shape == (4, iterations, attentions, 6)
    assert trace.weight_vectors.shape == (4, iterations, attentions, 3)
    for row, (weights, z) in enumerate(expected):
        got = trace.attention_weights[row].numpy()
        np.testing.assert_allclose(got[..., : len(sentences[row])], weights, atol=1e-8)
        assert not got[..., len(sentences[row]) :].any()  # exactly zero, in every iteration
        np.testing.assert_allclose(got.sum(-1), 1.0, atol=1e-8)
        np.testing.assert_allclose(trace.weight_vectors[row], z, atol=1e-8)
        np.testing.assert_allclose(vectors[row], z[-1].ravel(), atol=1e-8)


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("attentions", [1, 3])
def test_packed_routing_is_algorithm_1(rows, iterations, attentions):
    layer = attention(3, 4, num_attentions=attentions, num_iterations=iterations)
    sentences = [RANDOM.normal(size=(length, 4)) for length in LENGTHS]
    words, segment_ids, per_row = packed(sentences, rows)
    vectors, trace = layer(words, segment_ids=segment_ids, return_trace=True)
    assert vectors.shape == (rows, per_row, 3 * attentions)
    for number, sentence in enumerate(sentences):
        row, segment = divmod(number, per_row)
        weights, z = by_numpy(layer, sentence)
        np.testing.assert_allclose(vectors[row, segment], z[-1].ravel(), atol=1e-8)
        np.testing.assert_allclose(trace.weight_vectors[row, :, segment], z, atol=1e-8)
        own = trace.attention_weights[row].numpy()[..., segment_ids[row] == segment + 1]
        np.testing.assert_allclose(own, weights, atol=1e-8)
    gaps = np.swapaxes(trace.attention_weights, 1, -1)[segment_ids == 0]
    assert not gaps.any()


@pytest.mark.parametrize("layer_type", [DynamicSelfAttention, SelfAttention])
def test_segments_in_any_type_and_number(layer_type):
    layer = layer_type(3)
    words, segment_ids, _ = packed([RANDOM.normal(size=(n, 4)) for n in LENGTHS], rows=1)
    expected = layer(words, segment_ids=segment_ids, num_segments=4).numpy()
    for kind in ("int64", "int32", "uint8", "float32"):
        for number in (None, 4, np.int64(4), tf.constant(4), tf.constant(4, "int64")):
            got = layer(words, segment_ids=segment_ids.astype(kind), num_segments=number)
            np.testing.assert_array_equal(got, expected)
    tensor = tf.constant(segment_ids, "int64")
    np.testing.assert_array_equal(layer(words, segment_ids=tensor), expected)
    np.testing.assert_array_equal(layer(words, segment_ids=segment_ids.tolist()), expected)
    # More segments than there are: zero vectors. Fewer: the others are left out.
    more = layer(words, segment_ids=segment_ids, num_segments=6).numpy()
    np.testing.assert_array_equal(more[:, :4], expected)
    assert not more[:, 4:].any()
    fewer = layer(words, segment_ids=segment_ids, num_segments=2)
    np.testing.assert_array_equal(fewer, expected[:, :2])
    # A mask takes words away from their sentence, here the second, which has one word.
    masked = layer(words, segment_ids=segment_ids, mask=segment_ids != 2).numpy()
    assert not masked[:, 1].any()
    np.testing.assert_allclose(masked[:, [0, 2, 3]], expected[:, [0, 2, 3]], atol=1e-6)
    # No sentence at all.
    assert not layer(words, segment_ids=segment_ids * 0).numpy().any()


def test_garbage_between_packed_sentences_does_not_matter():
    layer = attention(3, 4, num_attentions=2)
    words, segment_ids, _ = packed([RANDOM.normal(size=(n, 4)) for n in LENGTHS], rows=2)

    def vectors_and_gradient(words):
        with tf.GradientTape() as tape:
            vectors = layer(words, segment_ids=segment_ids)
            loss = tf.reduce_sum(vectors**2)
        return vectors, tape.gradient(loss, layer.trainable_variables)

    vectors, gradients = vectors_and_gradient(words)
    for garbage in (-1e30, np.nan, np.inf):
        dirty = np.where((segment_ids > 0)[..., np.newaxis], words, garbage)
        got, got_gradients = vectors_and_gradient(dirty)
        np.testing.assert_array_equal(got, vectors)
        for one, other in zip(got_gradients, gradients, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-8)


def test_one_iteration_is_the_tanh_of_the_mean():
    layer = attention(5, 4, num_iterations=1)
    words, mask = padded([RANDOM.normal(size=(n, 4)) for n in LENGTHS])
    kernel, bias = layer.get_weights()
    x = words @ kernel + bias
    x = np.where(x > 0, x, 0.01 * x) * mask[..., np.newaxis]
    expected = np.tanh(x.sum(1) / mask.sum(1, keepdims=True))
    np.testing.assert_allclose(layer(words, mask=mask), expected, atol=1e-8)


# Gradients.


def gradients(layer, words, **arguments):
    """Greatest difference of the exact from the numeric Jacobian, by words, kernel and bias."""

    def vectors(words, kernel, bias):
        return layer.stateless_call([kernel, bias], [], words, **arguments)[0]

    values = [tf.constant(words), *(v.value for v in layer.trainable_variables)]
    exact, numeric = tf.test.compute_gradient(vectors, values, delta=1e-6)
    return exact, numeric


@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("form", ["padded", "packed"])
def test_gradients_flow_through_every_iteration(iterations, form):
    layer = attention(2, 3, num_attentions=2, num_iterations=iterations)
    sentences = [RANDOM.normal(size=(length, 3)) for length in (3, 1)]
    if form == "padded":
        words, mask = padded(sentences)
        arguments = {"mask": mask}
    else:
        words, segment_ids, _ = packed(sentences, rows=1)
        arguments = {"segment_ids": segment_ids, "num_segments": 2}
    for exact, numeric in zip(*gradients(layer, words, **arguments), strict=True):
        np.testing.assert_allclose(exact, numeric, atol=1e-7)


@pytest.mark.parametrize("form", ["padded", "packed"])
def test_a_stopped_gradient_takes_the_weights_as_given(form):
    layer = attention(2, 3, num_iterations=3, stop_routing_gradient=True)
    free = attention(2, 3, num_iterations=3)
    free.set_weights(layer.get_weights())
    sentence = RANDOM.normal(size=(1, 4, 3))
    arguments = {} if form == "padded" else {"segment_ids": np.ones((1, 4)), "num_segments": 1}
    vectors, weights = layer(sentence, return_attention_scores=True, **arguments)
    np.testing.assert_array_equal(vectors, free(sentence, **arguments))

    kernel, bias = layer.get_weights()

    def frozen(words):
        x = words @ kernel + bias
        return np.tanh(weights[0, 0].numpy() @ np.where(x > 0, x, 0.01 * x))

    numeric = np.zeros((2, 12))
    for place in range(12):
        step = np.zeros(12)
        step[place] = 1e-6
        step = step.reshape(4, 3)
        numeric[:, place] = (frozen(sentence[0] + step) - frozen(sentence[0] - step)) / 2e-6

    (stopped, *_), (true, *_) = gradients(layer, sentence, **arguments)
    np.testing.assert_allclose(stopped, numeric, atol=1e-7)
    assert np.abs(stopped - true).max() > 1e-3
    (flowing, *_), _ = gradients(free, sentence, **arguments)
    np.testing.assert_allclose(flowing, true, atol=1e-7)


# Execution and precision.


@pytest.mark.parametrize("layer_type", [DynamicSelfAttention, SelfAttention])
@pytest.mark.parametrize("form", ["padded", "packed"])
def test_eager_graph_and_xla_agree(layer_type, form):
    layer = layer_type(3, num_attentions=2)
    sentences = [RANDOM.normal(size=(n, 4)).astype("float32") for n in LENGTHS]
    if form == "padded":
        words, mask = padded(sentences)
        arguments = {"mask": tf.constant(mask)}
    else:
        words, segment_ids, _ = packed(sentences, rows=2)
        arguments = {"segment_ids": tf.constant(segment_ids)}
    words = tf.constant(words, "float32")
    layer(words)

    def step(words, arguments):
        with tf.GradientTape() as tape:
            # XLA must know the number of segments; here the shape of a tensor tells it.
            number = {} if form == "padded" else {"num_segments": tf.size(tf.zeros(2))}
            vectors = layer(words, **arguments, **number)
            loss = tf.reduce_sum(vectors**2)
        return vectors, tape.gradient(loss, layer.trainable_variables)

    expected = keras.tree.flatten(step(words, arguments))
    free = tf.TensorSpec([None, None, 4])
    specs = {name: tf.TensorSpec([None, None], one.dtype) for name, one in arguments.items()}
    for function in (
        tf.function(step, input_signature=[free, specs]),
        tf.function(step),
        tf.function(step, jit_compile=True),
    ):
        got = keras.tree.flatten(function(words, arguments))
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("form", ["padded", "packed"])
@pytest.mark.parametrize("layer_type", [DynamicSelfAttention, SelfAttention])
def test_the_softmax_stays_in_float32(layer_type, form, policy):
    # In float16 the weights of 1,000 words would sum to 1 only within some 1e-3.
    words = RANDOM.normal(size=(2, 1000, 8)).astype("float32")
    arguments = {"return_attention_scores": True}
    if form == "packed":
        arguments |= {"segment_ids": np.ones((2, 1000)), "num_segments": 1}
    layer, exact = layer_type(4, dtype=policy), layer_type(4)
    exact(words)
    layer(words)
    layer.set_weights(exact.get_weights())
    vectors, weights = layer(words, **arguments)
    assert weights.dtype == "float32"
    assert vectors.dtype == policy.removeprefix("mixed_")
    np.testing.assert_allclose(np.sum(weights, -1, dtype="float64"), 1.0, atol=3e-6)
    difference = tf.cast(vectors, "float32") - exact(words, **arguments)[0]
    assert np.abs(difference).max() < 2e-2


def test_large_scores_do_not_overflow():
    layer = SelfAttention(4, project=False)
    layer.build((None, None, 4))
    hidden, bias, vector = layer.get_weights()
    layer.set_weights([hidden, bias, vector * 1e4])
    words = RANDOM.normal(size=(1, 5, 4)).astype("float32")
    for arguments in ({}, {"mask": np.ones((1, 5))}, {"segment_ids": np.ones((1, 5))}):
        vectors, weights = layer(words, return_attention_scores=True, **arguments)
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(np.sum(weights), 1.0, atol=1e-6)


def test_static_self_attention_is_equation_1():
    layer = SelfAttention(3, num_attentions=2, dtype="float64")
    layer.build((None, None, 4))
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    projection, offset, w, b, v = layer.get_weights()
    sentences = [RANDOM.normal(size=(n, 4)) for n in LENGTHS]
    words, mask = padded(sentences)
    vectors, weights = layer(words, mask=mask, return_attention_scores=True)
    in_rows, segment_ids, _ = packed(sentences, rows=1)
    in_one_row = layer(in_rows, segment_ids=segment_ids)
    for row, sentence in enumerate(sentences):
        x = sentence @ projection + offset
        x = np.where(x > 0, x, 0.01 * x)
        a = np.exp(np.tanh(x @ w + b) @ v)
        a /= a.sum(0)
        np.testing.assert_allclose(weights[row, :, : len(sentence)], a.T, atol=1e-8)
        assert not np.any(weights[row, :, len(sentence) :])
        np.testing.assert_allclose(vectors[row], (a.T @ x).ravel(), atol=1e-8)
        np.testing.assert_allclose(in_one_row[0, row], (a.T @ x).ravel(), atol=1e-8)
