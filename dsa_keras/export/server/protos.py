"""Tensors of gRPC messages to arrays and back, without trusting what a message claims.

A few bytes can claim a shape of a trillion elements: sizes are checked before anything is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from dsa_keras.export.server.status import invalid

MOST_ELEMENTS = 1 << 24


def array_of(message: Any, name: str) -> np.ndarray:
    """The array of a TensorProto.

    Raises:
        ServingError: if the message contradicts itself or claims too much.
    """
    shape = message.tensor_shape
    sizes = [dim.size for dim in shape.dim]
    if shape.unknown_rank or any(size < 0 for size in sizes):
        raise invalid(f"input {name}: the shape is not known")
    elements = 1
    for size in sizes:
        elements *= size
    if elements > MOST_ELEMENTS:
        raise invalid(f"input {name}: {elements} elements are more than {MOST_ELEMENTS}")
    try:
        array = tf.make_ndarray(message)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        reason = str(error).partition("\n")[0]
        raise invalid(f"input {name}: not a valid tensor ({reason})") from None
    if array.shape != tuple(sizes):
        raise invalid(f"input {name}: not as many values as its shape {sizes} has")
    return array


def message_of(array: np.ndarray) -> Any:
    """The TensorProto of an array; strings are arrays of bytes objects."""
    dtype = tf.string if array.dtype == object else None
    return tf.make_tensor_proto(array, dtype=dtype, shape=array.shape)
