"""Checks shared by the layers; a message says what was expected and what was received."""

from __future__ import annotations

from numbers import Real
from typing import Any

import keras
from keras import ops

REGISTERED_PACKAGE = "dsa_keras"


def positive_integer(name: str, value: Any) -> int:
    """Returns `value` as an int; raises ValueError if it is not a positive integer."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or value % 1 != 0 or value < 1:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    return int(value)


def odd_integer(name: str, value: Any) -> int:
    """Returns `value` as an int; raises ValueError if it is not a positive odd integer."""
    value = positive_integer(name, value)
    if value % 2 == 0:
        raise ValueError(
            f"`{name}` must be odd, so that a window has a middle word. Received: {name}={value}"
        )
    return value


def dropout_rate(name: str, value: Any) -> float:
    """Returns `value` as a float; raises ValueError if it is not in the range [0, 1)."""
    if not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ValueError(
            f"`{name}` must be a number in the range [0, 1). Received: {name}={value!r}"
        )
    return float(value)


def words_shape(layer: keras.Layer, shape: Any) -> tuple[int | None, ...]:
    """Returns the shape; raises ValueError if it is not `(batch, words, features)`, words >= 1."""
    shape = tuple(shape)
    if len(shape) != 3:
        raise ValueError(
            f"{type(layer).__name__} expects words of shape (batch, words, features). "
            f"Received: shape={shape}"
        )
    if shape[1] == 0:
        raise ValueError(
            f"{type(layer).__name__} expects at least one word per row; pad an empty sentence to "
            f"one masked word. Received: shape={shape}"
        )
    if shape[2] is None:
        raise ValueError(
            f"{type(layer).__name__} needs a known number of features. Received: shape={shape}"
        )
    return shape


def word_flags(name: str, value: Any, words: Any) -> Any:
    """Returns a `(batch, words)` mask as bool; Keras may have cast it to float before."""
    value = ops.convert_to_tensor(value)
    check_per_word(name, value, words)
    return ops.cast(value, "bool")


def check_per_word(name: str, value: Any, words: Any) -> None:
    """Raises ValueError if `value` does not have one entry per word of `words`."""
    got, expected = tuple(value.shape), tuple(words.shape[:2])
    fits = len(got) == 2 and all(
        a is None or b is None or a == b for a, b in zip(got, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have one entry per word, that is, shape {expected}. "
            f"Received: {name} of shape {got}"
        )


def zero_masked(words: Any, mask: Any) -> Any:
    """Sets the masked words to exactly zero, even where they hold NaN or infinity."""
    if mask is None:
        return words
    return ops.where(ops.expand_dims(mask, -1), words, ops.zeros((), dtype=words.dtype))
