"""Checks that the layers share; each message names the argument and what was expected."""

from __future__ import annotations

from numbers import Real
from typing import Any

import keras
from keras import ops

REGISTERED_PACKAGE = "dsa_keras"


def positive_integer(name: str, value: Any) -> int:
    """Returns `value` as an int if it is a whole number of at least 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or value % 1 != 0 or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
    return int(value)


def odd_integer(name: str, value: Any) -> int:
    """Returns `value` as an int if it is a positive odd number."""
    value = positive_integer(name, value)
    if value % 2 == 0:
        raise ValueError(f"`{name}` must be odd, so that a window has a middle word, got {value}.")
    return value


def dropout_rate(name: str, value: Any) -> float:
    """Returns `value` as a float if it is a share in [0, 1)."""
    if not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ValueError(f"`{name}` must be at least 0 and below 1, got {value!r}.")
    return float(value)


def words_shape(layer: keras.Layer, shape: Any) -> tuple[int | None, ...]:
    """Returns the shape if it is `(batch, words, features)` with room for at least one word."""
    shape = tuple(shape)
    if len(shape) != 3:
        raise ValueError(
            f"{type(layer).__name__} expects words of shape (batch, words, features), "
            f"got shape {shape}."
        )
    if shape[1] == 0:
        raise ValueError(
            f"{type(layer).__name__} expects at least one word position, got shape {shape}: "
            "pad an empty sentence to one masked word."
        )
    if shape[2] is None:
        raise ValueError(
            f"{type(layer).__name__} needs to know the number of features, got shape {shape}."
        )
    return shape


def word_flags(name: str, value: Any, words: Any) -> Any:
    """Returns a `(batch, words)` mask as bool; Keras may have cast it to float on the way."""
    value = ops.convert_to_tensor(value)
    check_per_word(name, value, words)
    return ops.cast(value, "bool")


def check_per_word(name: str, value: Any, words: Any) -> None:
    """Raises ValueError unless `value` has one entry per word of `words`."""
    got, expected = tuple(value.shape), tuple(words.shape[:2])
    fits = len(got) == 2 and all(
        a is None or b is None or a == b for a, b in zip(got, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have one entry per word, shape {expected}, got shape {got}."
        )


def zero_masked(words: Any, mask: Any) -> Any:
    """Sets the masked words to exactly zero, even where they hold NaN or infinity."""
    if mask is None:
        return words
    return ops.where(ops.expand_dims(mask, -1), words, ops.zeros((), dtype=words.dtype))
