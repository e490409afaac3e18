"""One call that checks what every layer promises, after Keras's own `run_layer_test`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def check_layer(
    make: Callable[..., keras.Layer],
    inputs: Any,
    folder: Path,
    *,
    arguments: dict[str, Any] | None = None,
    masked: bool = False,
    compiles: bool = True,
) -> None:
    """Checks a layer's config, shapes, training, mixed precision, masks and file.

    Args:
        make: gives a new layer; keyword arguments go to its constructor.
        inputs: an array, or a list of them.
        folder: where a model file can be written.
        arguments: further call arguments; arrays become inputs of the model that is trained.
        masked: whether the layer takes a mask of the words.
        compiles: whether XLA can compile it.
    """
    arguments = arguments or {}
    check_config(make)
    check_shapes(make, inputs, arguments)
    check_file(make, inputs, arguments, folder)
    check_mixed_precision(make, inputs, arguments)
    check_training(make, inputs, arguments, jit_compile=False)
    if compiles:
        check_training(make, inputs, arguments, jit_compile=True)
    if masked:
        check_masks(make, inputs, arguments)


def check_config(make: Callable[..., keras.Layer]) -> None:
    layer = make(name="given", trainable=False)
    config = json.loads(json.dumps(layer.get_config()))
    named = {
        parameter.name
        for parameter in inspect.signature(type(layer).__init__).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    }
    assert named - {"self"} <= set(config), "a constructor argument is missing from get_config"
    again = type(layer).from_config(config)
    assert json.loads(json.dumps(again.get_config())) == config
    assert again.name == "given"
    assert not again.trainable
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(restored) is type(layer)
    registered = keras.saving.get_registered_name(type(layer))
    assert registered == f"dsa_keras>{type(layer).__name__}"


def check_shapes(make: Callable[..., keras.Layer], inputs: Any, arguments: dict[str, Any]) -> None:
    layer = make()
    eager = keras.tree.flatten(layer(inputs, **arguments))
    for known in (True, False):
        symbolic = keras.tree.flatten(layer(**symbols(layer, inputs, arguments, known=known)))
        assert len(symbolic) == len(eager)
        for one, other in zip(symbolic, eager, strict=True):
            assert one.dtype == other.dtype.name
            assert len(one.shape) == len(other.shape)
            assert all(a in (None, b) for a, b in zip(one.shape, other.shape, strict=True))
    if not arguments and len(eager) == 1:
        shapes = keras.tree.map_structure(np.shape, inputs)
        assert tuple(layer.compute_output_shape(shapes)) == tuple(eager[0].shape)


def check_file(
    make: Callable[..., keras.Layer], inputs: Any, arguments: dict[str, Any], folder: Path
) -> None:
    layer = make()
    model = functional(layer, inputs, arguments)
    fed = feed(inputs, arguments)
    expected = keras.tree.flatten(model(fed))
    model.save(folder / "layer.keras")
    loaded = keras.models.load_model(folder / "layer.keras")
    same(expected, keras.tree.flatten(loaded(fed)))
    for twin in (keras.models.clone_model(model), type(model).from_config(model.get_config())):
        twin.set_weights(model.get_weights())
        same(expected, keras.tree.flatten(twin(fed)))


def check_mixed_precision(
    make: Callable[..., keras.Layer], inputs: Any, arguments: dict[str, Any]
) -> None:
    exact = make()
    expected = keras.tree.flatten(exact(inputs, **arguments))
    for policy in ("mixed_bfloat16", "mixed_float16", "float64"):
        layer = make(dtype=policy)
        layer(inputs, **arguments)
        layer.set_weights(exact.get_weights())
        got = keras.tree.flatten(layer(inputs, **arguments))
        symbolic = keras.tree.flatten(layer(**symbols(layer, inputs, arguments, known=True)))
        for variable in layer.trainable_variables:
            assert policy == "float64" or variable.dtype == "float32"
        for one, other, spec in zip(got, expected, symbolic, strict=True):
            assert one.dtype.name == spec.dtype
            one, other = (np.asarray(tf.cast(value, "float64")) for value in (one, other))
            np.testing.assert_allclose(one, other, atol=0.06, rtol=0.06)


def check_training(
    make: Callable[..., keras.Layer], inputs: Any, arguments: dict[str, Any], jit_compile: bool
) -> None:
    layer = make()
    model = functional(layer, inputs, arguments, known=jit_compile)
    fed = {name: tf.constant(value) for name, value in feed(inputs, arguments).items()}
    before = [variable.numpy() for variable in layer.trainable_variables]

    @tf.function(jit_compile=jit_compile)
    def step() -> Any:
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(model(fed, training=True))
            # Not a plain sum, which the weights of an attention could not change.
            loss = sum(tf.reduce_sum(tf.cast(one, "float32") ** 2) for one in outputs)
        return tape.gradient(loss, layer.trainable_variables)

    for variable, gradient, old in zip(layer.trainable_variables, step(), before, strict=True):
        assert gradient is not None, variable.path
        assert np.isfinite(gradient).all(), variable.path
        variable.assign(old - 0.1 * gradient)
    if layer.trainable_variables:
        after = [variable.numpy() for variable in layer.trainable_variables]
        assert any((a != b).any() for a, b in zip(before, after, strict=True))


def check_masks(
    make: Callable[..., keras.Layer],
    inputs: Any,
    arguments: dict[str, Any],
    garbage: Sequence[float] = (7.0, -1e30, np.nan, np.inf),
) -> None:
    """A mask is the same as bool, int, float or from an Embedding, and hides what it masks."""
    layer = make()
    rows, words = np.shape(inputs)[:2]
    mask = np.arange(words) < np.arange(1, rows + 1)[:, np.newaxis]
    assert not mask.all()
    expected = keras.tree.flatten(layer(inputs, mask=mask, **arguments))
    for kind in ("int32", "int64", "float32", "uint8"):
        same(expected, keras.tree.flatten(layer(inputs, mask=mask.astype(kind), **arguments)))
    same(expected, keras.tree.flatten(layer(inputs, mask=mask.tolist(), **arguments)))
    for value in garbage:
        dirty = np.where(mask[..., np.newaxis], inputs, np.float32(value))
        same(expected, keras.tree.flatten(layer(dirty, mask=mask, **arguments)))

    # In a user's own functional model the mask comes along with the words.
    embedding = keras.layers.Embedding(rows * words + 1, inputs.shape[-1], mask_zero=True)
    ids = np.where(mask, np.arange(1, rows * words + 1).reshape(rows, words), 0)
    table = np.concatenate([np.full((1, inputs.shape[-1]), 9.0), inputs.reshape(rows * words, -1)])
    entrance = keras.Input((None,), dtype="int32")
    model = keras.Model(entrance, layer(embedding(entrance), **arguments))
    embedding.set_weights([table])
    same(expected, keras.tree.flatten(model(ids)), atol=1e-6)

    with_input = keras.Input((None,), dtype="bool")
    words_input = keras.Input((None, inputs.shape[-1]))
    model = keras.Model([words_input, with_input], layer(words_input, mask=with_input, **arguments))
    same(expected, keras.tree.flatten(model([inputs, mask])), atol=1e-6)


def symbols(
    layer: keras.Layer, inputs: Any, arguments: dict[str, Any], known: bool = False
) -> dict[str, Any]:
    """The call arguments with an Input for every array, of the same or of unknown sizes."""

    def symbol(array: Any, name: str) -> Any:
        array = np.asarray(array)
        # Only batch and words may be unknown, never features.
        free = (None,) * min(array.ndim, 2)
        shape = array.shape if known else (*free, *array.shape[2:])
        if array.dtype.kind == "f" and array.ndim == 2 and not known:
            shape = (None, array.shape[1])
        return keras.Input(batch_shape=shape, dtype=str(array.dtype), name=name)

    first = next(iter(inspect.signature(layer.call).parameters))
    if isinstance(inputs, list):
        entrance: Any = [symbol(one, f"inputs{n}") for n, one in enumerate(inputs)]
    else:
        entrance = symbol(inputs, "inputs")
    return {
        first: entrance,
        **{
            name: symbol(value, name) if isinstance(value, np.ndarray) else value
            for name, value in arguments.items()
        },
    }


def functional(
    layer: keras.Layer, inputs: Any, arguments: dict[str, Any], known: bool = False
) -> keras.Model:
    """A functional model of the layer alone."""
    called = symbols(layer, inputs, arguments, known=known)
    entrances = [one for one in keras.tree.flatten(called) if isinstance(one, keras.KerasTensor)]
    first = next(iter(called))
    outputs = layer(called.pop(first), **called)
    return keras.Model({one.name: one for one in entrances}, outputs)


def feed(inputs: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a model of `functional` is called with."""
    if isinstance(inputs, list):
        fed = {f"inputs{number}": one for number, one in enumerate(inputs)}
    else:
        fed = {"inputs": inputs}
    return {**fed, **{k: v for k, v in arguments.items() if isinstance(v, np.ndarray)}}


def same(expected: list[Any], got: list[Any], atol: float = 0.0) -> None:
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=atol, rtol=0)
