"""The paper's initial weights."""

from __future__ import annotations

from typing import Any, Literal

import keras

from dsa_keras.layers.checks import REGISTERED_PACKAGE, dropout_rate

ScaleBy = Literal["rate", "keep", "none"]


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class HeDropout(keras.initializers.VarianceScaling):
    """He normal weights times the square root of the dropout rate of their layer.

    The weights are drawn from N(0, 2 / fan_in * s) without truncation, as by PyTorch's
    `kaiming_normal_`. The paper says "multiply them by square root of the dropout rate"; whether
    that is the rate at which values are dropped or kept is ambiguous, so both readings are
    available.

    Args:
        rate: dropout rate of the layer. With 0, for a layer without dropout, the weights are plain
            He normal.
        scale_by: `"rate"` (s = rate, the text), `"keep"` (s = 1 - rate) or `"none"` (s = 1, plain
            He).
        seed: an integer, or None for a new draw per instance.

    Example:

    >>> kernel = HeDropout(0.2, seed=1)((300, 150))
    >>> round(float(keras.ops.std(kernel)), 3)  # sqrt(2 / 300 * 0.2) = 0.037
    0.037
    """

    def __init__(self, rate: float, scale_by: ScaleBy = "rate", seed: int | None = None) -> None:
        self.rate = dropout_rate("rate", rate)
        scales = {"rate": self.rate, "keep": 1.0 - self.rate, "none": 1.0}
        if scale_by not in scales:
            raise ValueError(
                f"`scale_by` must be one of {sorted(scales)}. Received: scale_by={scale_by!r}"
            )
        self.scale_by = scale_by
        super().__init__(
            scale=2.0 * (scales[scale_by] or 1.0),
            mode="fan_in",
            distribution="untruncated_normal",
            seed=seed,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the initializer can be created again."""
        return {"rate": self.rate, "scale_by": self.scale_by, "seed": super().get_config()["seed"]}
