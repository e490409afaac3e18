"""Which private names of Keras are used, that they are there, and what happens without them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import dsa_keras
from dsa_keras.keras_private import dtype_policy, float32_policy, learn_shapes_from, slots
from dsa_keras.training.optimizers import AdadeltaL2, AdamL2

PACKAGE = Path(dsa_keras.__file__).parent
START = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
GRADIENTS = np.random.default_rng(1).normal(size=(6, 4, 3)).astype("float32")

OURS = {
    "adam": lambda **kw: AdamL2(0.01, epsilon=1e-8, **kw),
    "adadelta": lambda **kw: AdadeltaL2(1.0, rho=0.9, epsilon=1e-6, **kw),
}
KERAS = {
    "adam": lambda: keras.optimizers.Adam(0.01, epsilon=1e-8),
    "adadelta": lambda: keras.optimizers.Adadelta(1.0, rho=0.9, epsilon=1e-6),
}
LISTS = {
    "adam": ("_momentums", "_velocities"),
    "adadelta": ("_accumulated_grads", "_accumulated_delta_vars"),
}


def built(optimizer, count=2):
    variables = [keras.Variable(START + number) for number in range(count)]
    optimizer.build(variables)
    return variables


# The names.


def test_models_learn_shapes_where_we_think():
    method = getattr(keras.Model, "_maybe_symbolic_build", None)
    assert method is not None, "Keras has moved Model._maybe_symbolic_build"
    assert {"iterator", "data_batch"} <= set(inspect.signature(method).parameters)


@pytest.mark.parametrize("name", KERAS)
def test_optimizers_keep_where_we_think(name):
    optimizer = KERAS[name]()
    variables = built(optimizer)
    assert hasattr(optimizer, "_get_variable_index"), "Keras has moved _get_variable_index"
    assert [optimizer._get_variable_index(one) for one in variables] == [0, 1]
    for kept in LISTS[name]:
        found = getattr(optimizer, kept, None)
        assert isinstance(found, list), f"Keras has moved {type(optimizer).__name__}.{kept}"
        assert [tuple(one.shape) for one in found] == [START.shape] * 2


def test_the_table_names_all_that_is_private():
    """Every name with an underscore that is looked up in the module stands in its table."""
    source = (PACKAGE / "keras_private.py").read_text(encoding="utf-8")
    table, code = source.split('"""', 2)[1:]
    optimizers = (PACKAGE / "training" / "optimizers.py").read_text(encoding="utf-8")
    looked_up = set(re.findall(r'"(_[a-z_]+)"', code + optimizers))
    assert looked_up
    assert looked_up == set(re.findall(r"\b(_[a-z_]+)`", table))


def test_nothing_else_reaches_into_keras_or_tensorflow():
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"\bkeras\.src|tensorflow\.python|\bkeras\._[a-z]", source), path


# What they are for.


@pytest.mark.parametrize("name", OURS)
def test_the_state_of_an_optimizer_is_kerass_and_the_norm(name):
    """A run folder keeps it by its order, so nothing else may slip in."""
    optimizer, plain = OURS[name](), KERAS[name]()
    for one in (optimizer, plain):
        built(one)
    shapes = [tuple(one.shape) for one in plain.variables]
    assert [tuple(one.shape) for one in optimizer.variables] == [*shapes, (), ()]


@pytest.mark.parametrize("name", OURS)
def test_slots_are_those_of_the_variable(name):
    optimizer = OURS[name]()
    variables = built(optimizer)
    for number, variable in enumerate(variables):
        expected = [getattr(optimizer, kept)[number] for kept in LISTS[name]]
        found = slots(optimizer, variable, *LISTS[name])
        assert [id(one) for one in found] == [id(one) for one in expected]


def steps(optimizer, change=None):
    """A variable after some steps, and what was kept of it."""
    variable = keras.Variable(START)
    optimizer.build([variable])
    if change is not None:
        change(optimizer)
    for gradient in GRADIENTS:
        optimizer.apply([tf.constant(gradient)], [variable])
    return variable.numpy()


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("name", OURS)
def test_one_operation_and_kerass_own_update_agree(name, l2):
    def hidden(optimizer):
        # As if Keras kept something else there: no list, though its own update can use it.
        for kept in LISTS[name]:
            setattr(optimizer, kept, tuple(getattr(optimizer, kept)))
        assert slots(optimizer, optimizer.trained()[0], *LISTS[name]) is None

    fast, plain = steps(OURS[name](l2=l2)), steps(OURS[name](l2=l2), hidden)
    assert np.abs(plain - START).max() > 0.005
    np.testing.assert_allclose(fast, plain, rtol=1e-5, atol=1e-6)
    if not l2:
        np.testing.assert_array_equal(plain, steps(KERAS[name]()))


def test_names_that_moved_have_no_slots():
    optimizer = OURS["adam"]()
    (variable,) = built(optimizer, 1)
    assert slots(optimizer, variable, "_momentums", "_moved") is None

    class Moved(keras.optimizers.SGD):
        @property
        def _get_variable_index(self):
            raise AttributeError

    optimizer = Moved()
    optimizer._momentums = [variable]
    assert slots(optimizer, variable, "_momentums") is None


def test_l2_is_applied_without_naming_the_variables():
    """`apply(grads)` takes the variables that the optimizer was built for."""
    optimizer, named = OURS["adam"](l2=0.5), OURS["adam"](l2=0.5)
    variables, expected = built(optimizer), built(named)
    gradients = [tf.constant(GRADIENTS[0]), tf.constant(GRADIENTS[1])]
    optimizer.apply(gradients)
    named.apply(gradients, expected)
    for one, other in zip(variables, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        assert (one.numpy() != START).any()


def model_of_any_length():
    words = keras.Input((None, 2))
    pooled = keras.layers.GlobalMaxPooling1D()(words)
    model = keras.Model(words, keras.layers.Dense(1)(pooled))
    model.compile("sgd", "mse")
    return model


def test_fit_learns_its_shapes_from_the_example():
    model, asked = model_of_any_length(), []
    learn = model._maybe_symbolic_build

    def seen(**given):
        asked.append(given)
        learn(**given)

    model._maybe_symbolic_build = seen
    example = (np.ones((2, 5, 2), "float32"), np.ones((2, 1), "float32"))
    learn_shapes_from(model, example)
    model.fit(tf.data.Dataset.from_tensors(example), shuffle=False, verbose=0)
    assert [list(one) for one in asked] == [["data_batch"]]
    assert asked[0]["data_batch"] is example


def test_a_model_that_learns_otherwise_is_left_alone():
    class Otherwise:
        pass

    model = Otherwise()
    learn_shapes_from(model, None)
    assert vars(model) == {}


# The policy, by the public interface.


def test_the_policy_is_as_before():
    with dtype_policy("mixed_bfloat16"):
        assert keras.layers.Dense(1).compute_dtype == "bfloat16"
        with float32_policy():
            assert keras.layers.Dense(1).compute_dtype == "float32"
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    with pytest.raises(ZeroDivisionError), dtype_policy(keras.DTypePolicy("mixed_float16")):
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="float17"), dtype_policy("float17"):
        pass
    assert keras.config.dtype_policy().name == "float32"
