"""The models: parameters, training, compilation, precision, traces and files."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from slow_parameters import some_slow
from test_invariance import SMALL, pack, shaken

from dsa_keras.models import (
    ENCODERS,
    ModelConfig,
    assign_vectors,
    build_classifier,
    build_encoder,
    build_pair_classifier,
    pack_classifier,
    pack_encoder,
    preset,
    trace_encoder,
)

ATTENDING = ("dsa-single", "dsa-multiple", "self-attention", "bilstm-self-attention")
IDS = np.array([[3, 1, 4, 1, 5], [9, 2, 0, 0, 0], [6, 0, 0, 0, 0]], dtype="int32")
ROWS = [[3, 1, 4, 1, 5], [9, 2], [6]]
LABELS = np.array([0, 1, 1])


def small(encoder, **changes):
    return ModelConfig.from_dict({**SMALL, "num_dense_layers": 1, "encoder": encoder, **changes})


def trainable(model):
    return sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)


@pytest.mark.parametrize(
    ("encoder", "num_dense_layers", "expected"),
    [
        ("dsa-single", 4, 2_078_703),  # 2.1 M in Table 1
        ("dsa-multiple", 4, 7_003_731),  # 7.0 M
        ("self-attention", 4, 2_439_903),  # 2.4 M
        # The fifth layer has 375 * 75 * (3 + 5) + 2 * 75 weights and gives h^c 2 * 75 * 300 more:
        # 270,150 less without it.
        ("dsa-single", 3, 1_808_553),
        ("dsa-multiple", 3, 6_733_581),
        ("self-attention", 3, 2_169_753),
    ],
)
def test_parameters_on_snli(encoder, num_dense_layers, expected):
    config = preset("snli", encoder).model.replace(num_dense_layers=num_dense_layers)
    assert trainable(build_pair_classifier(config)) == expected


@pytest.mark.parametrize(("num_dense_layers", "expected"), [(4, 1_443_902), (3, 1_173_752)])
def test_parameters_on_sst2(num_dense_layers, expected):
    config = preset("sst2").model.replace(num_dense_layers=num_dense_layers, vocabulary_size=99)
    assert trainable(build_classifier(config)) == expected


@pytest.mark.parametrize("encoder", ["dsa-single", "dsa-multiple", "self-attention"])
def test_initial_weights_follow_the_dropout_of_their_layer(encoder):
    config = preset("snli", encoder).model.replace(num_dense_layers=1)
    model = build_pair_classifier(config)
    variances = {
        variable.path: (float(np.var(variable)), np.prod(variable.shape[:-1]))
        for variable in model.trainable_variables
        if variable.path.endswith("kernel")
    }
    assert len(variances) >= 9
    for path, (variance, fan_in) in variances.items():
        if "hidden" in path and "head" in path:
            scale = config.head_dropout
        elif "attention" in path or "classes" in path:
            scale = 1.0  # these have no dropout
        else:
            scale = config.dropout
        assert variance == pytest.approx(2 / fan_in * scale, rel=0.25 if fan_in < 600 else 0.2), (
            path
        )


@pytest.mark.parametrize("encoder", ENCODERS)
def test_packing_and_tracing_share_the_weights(encoder):
    model = build_encoder(small(encoder))
    twins = [pack_encoder(model)]
    if encoder in ATTENDING:
        twins.append(trace_encoder(model))
    for twin in twins:
        assert {id(v) for v in twin.variables} == {id(v) for v in model.variables}
    classifier = build_classifier(small(encoder))
    packed = pack_classifier(classifier)
    assert {id(v) for v in packed.variables} == {id(v) for v in classifier.variables}


@pytest.mark.parametrize("encoder", ATTENDING)
def test_traces_show_what_is_attended_to(encoder):
    model = shaken(build_encoder(small(encoder)))
    trace = trace_encoder(model)(IDS)
    np.testing.assert_array_equal(trace["vectors"], model(IDS))
    weights = trace["attention_weights"].numpy()
    iterations, attentions = (3, 2) if encoder.startswith("dsa") else (1, 2)
    if encoder == "bilstm-self-attention":
        attentions = 1
    assert weights.shape == (3, iterations, attentions, 5)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
    padding = np.broadcast_to((IDS == 0)[:, np.newaxis, np.newaxis], weights.shape)
    assert not weights[padding].any()  # exactly zero, in every iteration
    assert ("weight_vectors" in trace) == encoder.startswith("dsa")
    if encoder.startswith("dsa"):
        vectors = trace["weight_vectors"].numpy()
        assert vectors.shape == (3, 3, 2, 5)
        np.testing.assert_array_equal(vectors[:, -1].reshape(3, 10), trace["vectors"])


@pytest.mark.parametrize("encoder", ["bilstm", "cnn"])
def test_what_does_not_attend_has_no_trace(encoder):
    with pytest.raises(ValueError, match="`encoder` has no attention to look at"):
        trace_encoder(build_encoder(small(encoder)))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_word_vectors_are_assigned(encoder):
    matrix = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    for build in (build_encoder, build_classifier, build_pair_classifier):
        model = build(small(encoder))
        assign_vectors(model, matrix)
        inner = model if build is build_encoder else model.get_layer("encoder")
        np.testing.assert_array_equal(inner.get_layer("embedding").vectors, matrix)
    with pytest.raises(ValueError, match=r"`matrix` must have shape \(40, 6\).* shape \(40, 7\)"):
        assign_vectors(model, np.zeros((40, 7)))


# Training and execution.


def loss_of(model, inputs, labels):
    logits = model(inputs, training=True)
    return keras.ops.mean(
        keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    )


def compiled(model, **options):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.05), loss, **options)
    return model


@pytest.mark.parametrize(
    ("encoder", "form"),
    [
        *some_slow(
            [(encoder, "padded") for encoder in ENCODERS],
            {(encoder, "padded") for encoder in ENCODERS if encoder != "dsa-single"},
        ),
        *((encoder, "packed") for encoder in ("dsa-single", "bilstm", "cnn")),
    ],
)
def test_training_lowers_the_loss(encoder, form):
    model = build_classifier(small(encoder, train_embeddings=encoder == "cnn"))
    inputs = IDS
    if form == "packed":
        model, inputs = pack_classifier(model), pack(ROWS)
    data = tf.data.Dataset.from_tensors((inputs, LABELS)).repeat(12)
    compiled(model, jit_compile=False)
    before = model.evaluate(data.take(1), verbose=0)
    model.fit(data, shuffle=False, verbose=0)
    assert model.evaluate(data.take(1), verbose=0) < before


@pytest.mark.parametrize(
    ("encoder", "form"),
    [
        ("dsa-single", "padded"),
        pytest.param("dsa-single", "packed", marks=pytest.mark.slow),
        pytest.param("dsa-multiple", "packed pairs", marks=pytest.mark.slow),
        pytest.param("self-attention", "packed", marks=pytest.mark.slow),
        pytest.param("cnn", "padded", marks=pytest.mark.slow),
        pytest.param("bilstm-self-attention", "padded", marks=pytest.mark.slow),
    ],
)
def test_xla_agrees_and_trains(encoder, form):
    options = {"embedding_dropout": 0.0, "dropout": 0.0, "head_dropout": 0.0}
    config = small(encoder, **options)
    inputs = IDS
    if form == "packed pairs":
        model = pack_classifier(build_pair_classifier(config))
        inputs = {**pack(ROWS), "index": np.array([[0, 1], [1, 2], [2, 0]], dtype="int32")}
    else:
        model = build_classifier(config)
        if form == "packed":
            model, inputs = pack_classifier(model), pack(ROWS)
    inputs = keras.tree.map_structure(tf.constant, inputs)

    def step(inputs):
        with tf.GradientTape() as tape:
            loss = loss_of(model, inputs, LABELS)
        return loss, tape.gradient(loss, model.trainable_variables)

    expected = keras.tree.flatten(tf.function(step)(inputs))
    got = keras.tree.flatten(tf.function(step, jit_compile=True)(inputs))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-4)
    if (encoder, form) == ("dsa-single", "packed"):
        data = tf.data.Dataset.from_tensors((inputs, LABELS))
        before = model.get_weights()
        compiled(model, jit_compile=True).fit(data, shuffle=False, verbose=0)
        changes = zip(before, model.get_weights(), strict=True)
        assert any((old != new).any() for old, new in changes)


@pytest.mark.parametrize(
    ("encoder", "policy"),
    [
        *some_slow(
            [(encoder, "mixed_float16") for encoder in ENCODERS],
            {
                (encoder, "mixed_float16")
                for encoder in ("dsa-multiple", "self-attention", "bilstm", "bilstm-self-attention")
            },
        ),
        ("dsa-single", "mixed_bfloat16"),
    ],
)
def test_mixed_precision(encoder, policy):
    exact = shaken(build_classifier(small(encoder)))
    keras.config.set_dtype_policy(policy)
    model = build_classifier(small(encoder))
    assert all(v.dtype == "float32" for v in model.trainable_variables)
    model.set_weights(exact.get_weights())
    assert model.output.dtype == "float32"
    logits = model(IDS)
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, exact(IDS), atol=0.15)
    np.testing.assert_allclose(pack_classifier(model)(pack(ROWS)), logits, atol=0.1)
    compiled(model, jit_compile=False)
    assert np.isfinite(model.train_on_batch(IDS, LABELS))


@pytest.mark.parametrize("encoder", ["dsa-single", "cnn"])
def test_any_batch_and_any_length(encoder):
    model = build_classifier(small(encoder))
    assert model.input_shape == (None, None)
    for batch, words in ((1, 1), (2, 7), (5, 31)):
        logits = model.predict(np.ones((batch, words), dtype="int32"), verbose=0)
        assert logits.shape == (batch, 3)


# Files.


def every_form(encoder):
    """Name, model and inputs of all the forms that an encoder comes in."""
    pair = shaken(build_pair_classifier(small(encoder)))
    packed = pack(ROWS)
    packed_pairs = {**packed, "index": np.array([[0, 1], [2, 2]], dtype="int32")}
    yield "packed pair classifier", pack_classifier(pair), packed_pairs
    if encoder in ("dsa-multiple", "bilstm"):
        return  # made of the same layers as the encoders before and after them
    model = pair.get_layer("encoder")
    single = shaken(build_classifier(small(encoder)))
    yield "encoder", model, IDS
    yield "packed encoder", pack_encoder(model), packed
    if encoder in ATTENDING:
        yield "traced encoder", trace_encoder(model), IDS
    yield "classifier", single, IDS
    yield "packed classifier", pack_classifier(single), packed
    yield "pair classifier", pair, {"hypothesis": IDS, "premise": IDS[::-1, :4].copy()}


@pytest.mark.parametrize(
    "encoder",
    some_slow(ENCODERS, {"dsa-multiple", "self-attention", "bilstm-self-attention"}),
)
def test_files_and_clones_give_the_same_answers(encoder, tmp_path):
    path = tmp_path / "model.keras"
    for form, model, inputs in every_form(encoder):
        expected = keras.tree.flatten(model(inputs))
        model.save(path)
        twins = [keras.models.load_model(path, safe_mode=True)]
        if form in ("encoder", "packed pair classifier", "traced encoder"):
            twins += [
                keras.models.clone_model(model),
                type(model).from_config(model.get_config()),
            ]
        for twin in twins[1:]:
            fresh = keras.tree.flatten(twin(inputs))
            assert not np.array_equal(fresh[0], expected[0]), form
            twin.set_weights(model.get_weights())
        for twin in twins:
            got = keras.tree.flatten(twin(inputs))
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=form)


def test_a_loaded_classifier_can_be_packed_and_traced(tmp_path):
    model = shaken(build_classifier(small("dsa-single")))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(pack_classifier(loaded)(pack(ROWS)), model(IDS), atol=1e-5)
    trace = trace_encoder(loaded.get_layer("encoder"))(IDS)
    np.testing.assert_array_equal(trace["vectors"], model.get_layer("encoder")(IDS))
