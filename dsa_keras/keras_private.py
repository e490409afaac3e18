"""All that is used of Keras beyond its public interface, with what happens where it is missing.

| what | for | without it |
|---|---|---|
| `Model._maybe_symbolic_build` | `fit` on several devices | `fit` fails there, as Keras does |
| `Optimizer._get_variable_index` | Adam and Adadelta as one operation | Keras's own update |
| `Adam._momentums`, `_velocities` | Adam as one operation | the same |
| `Adadelta._accumulated_grads`, `_accumulated_delta_vars` | Adadelta as one operation | the same |

`tests/test_keras_private.py` says which of these moved when one moves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras


@contextlib.contextmanager
def dtype_policy(policy: str | keras.DTypePolicy) -> Iterator[None]:
    """Sets Keras's global dtype policy for the time of a `with` block (public interface)."""
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy(policy)
        yield
    finally:
        keras.config.set_dtype_policy(before)


def float32_policy() -> contextlib.AbstractContextManager[None]:
    """Layers made in the block compute in float32."""
    return dtype_policy("float32")


def learn_shapes_from(model: keras.Model, example: Any) -> None:
    """Makes `fit` learn the shapes of its inputs from one batch, before it sees several at once.

    To learn them, Keras adds up the devices' first batches, which fails since packed batches differ
    in shape.
    """
    learn = getattr(model, "_maybe_symbolic_build", None)
    if learn is not None:
        model._maybe_symbolic_build = lambda iterator: learn(data_batch=example)


def slots(optimizer: keras.optimizers.Optimizer, variable: Any, *names: str) -> list[Any] | None:
    """What an optimizer keeps of a variable, such as `_momentums`; None if Keras has moved it."""
    lists = [getattr(optimizer, name, None) for name in names]
    place = getattr(optimizer, "_get_variable_index", None)
    if place is None or not all(isinstance(one, list) for one in lists):
        return None
    return [one[place(variable)] for one in lists if one is not None]
