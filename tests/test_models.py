"""The network's models: parameters, training, compilation, precision, traces and files."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from encoder_checks import pack, shaken, small_config
from slow_parameters import some_slow

from dsa_keras.datasets import preset
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError
from dsa_keras.models import Network

NAMES = ENCODERS.names()
ATTENDING = ("dsa-single", "dsa-multiple", "self-attention", "bilstm-self-attention")
IDS = np.array([[3, 1, 4, 1, 5], [9, 2, 0, 0, 0], [6, 0, 0, 0, 0]], dtype="int32")
ROWS = [[3, 1, 4, 1, 5], [9, 2], [6]]
LABELS = np.array([0, 1, 1])


def small(encoder, **changes):
    return Network(small_config(encoder, **{"num_dense_layers": 1, **changes}))


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
    assert trainable(Network(config).model) == expected


@pytest.mark.parametrize(("num_dense_layers", "expected"), [(4, 1_443_902), (3, 1_173_752)])
def test_parameters_on_sst2(num_dense_layers, expected):
    config = preset("sst2").model.replace(num_dense_layers=num_dense_layers, vocabulary_size=99)
    assert trainable(Network(config).model) == expected


@pytest.mark.parametrize("encoder", ["dsa-single", "dsa-multiple", "self-attention"])
def test_initial_weights_follow_the_dropout_of_their_layer(encoder):
    config = preset("snli", encoder).model.replace(num_dense_layers=1)
    model = Network(config).model
    variances = {
        variable.path: (float(np.var(variable)), np.prod(variable.shape[:-1]))
        for variable in model.trainable_variables
        if variable.path.endswith("kernel")
    }
    assert len(variances) >= 9
    for path, (variance, fan_in) in variances.items():
        if "hidden" in path and "head" in path:
            scale = config.head.head_dropout
        elif "attention" in path or "classes" in path:
            scale = 1.0  # these have no dropout
        else:
            scale = config.encoder.dropout
        assert variance == pytest.approx(2 / fan_in * scale, rel=0.25 if fan_in < 600 else 0.2), (
            path
        )


@pytest.mark.parametrize("encoder", NAMES)
def test_packing_and_tracing_share_the_weights(encoder):
    network = small(encoder)
    twins = [network.packed_encoder, network.encoder_on(network.embedding)]
    if encoder in ATTENDING:
        twins.append(network.traced_encoder)
    for twin in twins:
        assert {id(v) for v in twin.variables} == {id(v) for v in network.encoder.variables}
    packed, padded = network.packed_model, network.model
    assert {id(v) for v in packed.variables} == {id(v) for v in padded.variables}
    of_head = {id(v) for v in network.head.variables}
    features = {id(v) for v in network.packed_features.variables}
    assert features | of_head == {id(v) for v in padded.variables}
    assert not features & of_head


@pytest.mark.parametrize("encoder", ATTENDING)
def test_traces_show_what_is_attended_to(encoder):
    network = shaken(small(encoder))
    trace = network.traced_encoder(IDS)
    np.testing.assert_array_equal(trace["vectors"], network.encoder(IDS))
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
    with pytest.raises(ConfigError, match=f"the encoder {encoder} has no attention to look at"):
        _ = small(encoder).traced_encoder


@pytest.mark.parametrize("pair", [False, True])
def test_word_vectors_are_assigned(pair):
    matrix = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    network = small("cnn", pair=pair)
    network.assign_vectors(matrix)
    np.testing.assert_array_equal(network.vectors, matrix)
    for model in (network.encoder, network.packed_encoder):
        np.testing.assert_array_equal(model.get_layer("embedding").vectors, matrix)
    with pytest.raises(ValueError, match=r"`matrix` must have shape \(40, 6\).* shape \(40, 7\)"):
        network.assign_vectors(np.zeros((40, 7)))


@pytest.mark.parametrize("trained", [False, True])
def test_fixed_word_vectors_are_no_weights_to_keep(trained):
    network = small("cnn", train_embeddings=trained)
    assert (network.embedding.vectors.path in network.named_weights()) == trained
    kept = len(network.named_weights())
    assert kept == len(network.model.weights) - (not trained)


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


@pytest.mark.parametrize("encoder", some_slow(NAMES, {one for one in NAMES if one != "dsa-single"}))
def test_training_lowers_the_loss(encoder):
    """With padded words; `encoder_checks.py` trains with packed ones."""
    model = small(encoder, train_embeddings=encoder == "cnn").model
    data = tf.data.Dataset.from_tensors((IDS, LABELS)).repeat(12)
    compiled(model, jit_compile=False)
    before = model.evaluate(data.take(1), verbose=0)
    model.fit(data, shuffle=False, verbose=0)
    assert model.evaluate(data.take(1), verbose=0) < before


@pytest.mark.parametrize(
    ("encoder", "form"),
    [
        ("dsa-single", "padded"),
        ("dsa-single", "packed"),
        ("dsa-multiple", "packed pairs"),
        ("cnn", "padded"),
        ("bilstm-self-attention", "padded"),
    ],
)
@pytest.mark.slow
def test_xla_agrees_and_trains(encoder, form):
    """As `encoder_checks.py` shows of packed words, in further forms."""
    options = {"embedding_dropout": 0.0, "dropout": 0.0, "head_dropout": 0.0}
    network = small(encoder, pair=form == "packed pairs", **options)
    model = network.model if form == "padded" else network.packed_model
    inputs = IDS if form == "padded" else pack(ROWS)
    if form == "packed pairs":
        inputs["index"] = np.array([[0, 1], [1, 2], [2, 0]], dtype="int32")
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
            [(encoder, "mixed_float16") for encoder in NAMES],
            {
                (encoder, "mixed_float16")
                for encoder in ("dsa-multiple", "self-attention", "bilstm", "bilstm-self-attention")
            },
        ),
        ("dsa-single", "mixed_bfloat16"),
    ],
)
def test_mixed_precision(encoder, policy):
    exact = shaken(small(encoder)).model
    keras.config.set_dtype_policy(policy)
    network = small(encoder)
    model = network.model
    assert all(v.dtype == "float32" for v in model.trainable_variables)
    model.set_weights(exact.get_weights())
    assert model.output.dtype == "float32"
    logits = model(IDS)
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, exact(IDS), atol=0.15)
    np.testing.assert_allclose(network.packed_model(pack(ROWS)), logits, atol=0.1)
    compiled(model, jit_compile=False)
    assert np.isfinite(model.train_on_batch(IDS, LABELS))


def test_a_network_keeps_the_precision_that_it_was_made_in():
    keras.config.set_dtype_policy("mixed_bfloat16")
    network = small("bilstm-self-attention")
    keras.config.set_dtype_policy("float32")
    exact = small("bilstm-self-attention")
    for one, dtype in ((network, "bfloat16"), (exact, "float32")):
        keras.config.set_dtype_policy("float32" if one is network else "mixed_bfloat16")
        assert one.packed_encoder.output.dtype == dtype
        assert one.packed_features.output.dtype == dtype
        assert one.traced_encoder.output["vectors"].dtype == dtype
        assert one.encoder_on(one.embedding).output.dtype == dtype
        assert one.model.output.dtype == "float32"


@pytest.mark.parametrize("encoder", ["dsa-single", "cnn"])
def test_any_batch_and_any_length(encoder):
    model = small(encoder).model
    assert model.input_shape == (None, None)
    for batch, words in ((1, 1), (2, 7), (5, 31)):
        logits = model.predict(np.ones((batch, words), dtype="int32"), verbose=0)
        assert logits.shape == (batch, 3)


# Files.


def every_form(encoder):
    """Name, model and inputs of all the forms that an encoder comes in."""
    network = shaken(small(encoder, pair=True))
    packed = pack(ROWS)
    packed_pairs = {**packed, "index": np.array([[0, 1], [2, 2]], dtype="int32")}
    yield "packed pair model", network.packed_model, packed_pairs
    if encoder in ("dsa-multiple", "bilstm"):
        return  # made of the same layers as the encoders before and after them
    single = shaken(small(encoder))
    yield "encoder", network.encoder, IDS
    yield "packed encoder", network.packed_encoder, packed
    if encoder in ATTENDING:
        yield "traced encoder", network.traced_encoder, IDS
    yield "model", single.model, IDS
    yield "packed model", single.packed_model, packed
    yield "pair model", network.model, {"premise": IDS[::-1, :4].copy(), "hypothesis": IDS}


@pytest.mark.parametrize(
    "encoder",
    some_slow(NAMES, {"dsa-multiple", "self-attention", "bilstm-self-attention", "cnn"}),
)
def test_files_and_clones_give_the_same_answers(encoder, tmp_path):
    path = tmp_path / "model.keras"
    for form, model, inputs in every_form(encoder):
        expected = keras.tree.flatten(model(inputs))
        model.save(path)
        twins = [keras.models.load_model(path, safe_mode=True)]
        if form in ("encoder", "packed pair model", "traced encoder"):
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


def test_the_weights_of_a_loaded_model_can_be_packed_and_traced(tmp_path):
    network = shaken(small("dsa-single"))
    network.model.save(tmp_path / "model.keras")
    loaded = small("dsa-single")
    loaded.model.set_weights(keras.models.load_model(tmp_path / "model.keras").get_weights())
    np.testing.assert_allclose(loaded.packed_model(pack(ROWS)), network.model(IDS), atol=1e-5)
    trace = loaded.traced_encoder(IDS)
    np.testing.assert_array_equal(trace["vectors"], network.encoder(IDS))
