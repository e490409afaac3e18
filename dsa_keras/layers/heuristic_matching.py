"""The features of a pair of sentences for the classifier."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class HeuristicMatching(keras.layers.Layer):
    """Combines the vectors of hypothesis and premise, `concat[h, p, |h - p|, h * p]` (Section 4.1).

    **Masking.** Sentence vectors have no mask: none is used or passed on.

    Call arguments:
        inputs: list `[h, p]` of two tensors of the same shape `(batch, units)`.

    Output shape:
        `(batch, 4 * units)`.

    Example:

    >>> h, p = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    >>> HeuristicMatching()([h, p]).numpy()
    array([[ 1.,  2.,  3., -1.,  2.,  3.,  3., -2.]], dtype=float32)
    """

    def call(self, inputs: Any) -> Any:
        """Combines `[h, p]`; see the class."""
        if not isinstance(inputs, list | tuple):
            inputs = [inputs]
        _check([tuple(one.shape) for one in inputs])
        h, p = inputs
        return ops.concatenate([h, p, ops.absolute(h - p), h * p], axis=-1)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Maps two of `(batch, units)` to `(batch, 4 * units)`."""
        _check(input_shape)
        return (*input_shape[0][:-1], 4 * input_shape[0][-1])


def _check(shapes: Any) -> None:
    if len(shapes) != 2 or not all(isinstance(shape, list | tuple) for shape in shapes):
        raise ValueError(
            f"`inputs` must be a list of two tensors, [h, p]. Received: shapes={shapes}"
        )
    if shapes[0][-1] != shapes[1][-1]:
        raise ValueError(
            "`inputs` must be two tensors of the same shape. "
            f"Received: shapes={[tuple(shape) for shape in shapes]}"
        )
