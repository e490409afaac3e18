"""The classifier's input for two sentences."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class HeuristicMatching(keras.layers.Layer):
    """Joins the vectors of hypothesis and premise: `concat[h, p, |h - p|, h * p]` (Section 4.1).

    **Masking.** Sentence vectors carry no mask; none is used or passed on.

    Call arguments:
        inputs: the list `[h, p]` of two tensors of the same shape `(batch, units)`.

    Output shape:
        `(batch, 4 * units)`.

    Example:

    >>> h, p = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    >>> HeuristicMatching()([h, p]).numpy()
    array([[ 1.,  2.,  3., -1.,  2.,  3.,  3., -2.]], dtype=float32)
    """

    def call(self, inputs: Any) -> Any:
        """Joins `[h, p]`; see the class."""
        if not isinstance(inputs, list | tuple):
            inputs = [inputs]
        _check([tuple(one.shape) for one in inputs])
        h, p = inputs
        return ops.concatenate([h, p, ops.absolute(h - p), h * p], axis=-1)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Two of `(batch, units)` to `(batch, 4 * units)`."""
        _check(input_shape)
        return (*input_shape[0][:-1], 4 * input_shape[0][-1])


def _check(shapes: Any) -> None:
    if len(shapes) != 2 or not all(isinstance(shape, list | tuple) for shape in shapes):
        raise ValueError("`inputs` must be a list of two tensors, [h, p].")
    if shapes[0][-1] != shapes[1][-1]:
        raise ValueError(
            f"`inputs` must have the same shape, got {tuple(shapes[0])} and {tuple(shapes[1])}."
        )
