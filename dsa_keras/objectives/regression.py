"""`regression`: a number for each text, such as a similarity or stars."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dsa_keras.objectives import register_objective
from dsa_keras.objectives.objective import Answer, Evaluation, Objective
from dsa_keras.settings import from_data

if TYPE_CHECKING:
    import keras
    from matplotlib.figure import Figure

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Estimate(Answer):
    """What a model says about one text.

    Attributes:
        number: in the unit of the targets.
    """

    number: float

    def fields(self) -> dict[str, Any]:
        """The number."""
        return {"number": self.number}

    def row(self) -> list[Any]:
        """The number."""
        return [self.number]

    def cells(self) -> list[str]:
        """The number."""
        return [self.headline()]

    def headline(self) -> str:
        """The number."""
        return f"{self.number:.4f}"


@dataclass(frozen=True)
class NumberEvaluation(Evaluation):
    """How well numbers agree with the true ones.

    Attributes:
        numbers: what the model says.
        targets: what is true.
    """

    numbers: np.ndarray
    targets: np.ndarray

    @property
    def examples(self) -> int:
        """How many examples there were."""
        return len(self.targets)

    def figures(self) -> dict[str, float]:
        """Correlation of the ranks, of the numbers, and the mean absolute error."""
        return {
            "spearman": spearman(self.numbers, self.targets),
            "pearson": pearson(self.numbers, self.targets),
            "mae": float(np.abs(self.numbers - self.targets).mean()) if self.examples else 0.0,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"examples": self.examples, **self.figures()}

    def table(self) -> str:
        """The figures, a line each."""
        figures = self.figures()
        return "\n".join(
            [
                f"Spearman {figures['spearman']:.4f} on {self.examples:,} examples",
                f"Pearson {figures['pearson']:.4f}",
                f"mean absolute error {figures['mae']:.4f}",
            ]
        )

    def pictures(self, title: str) -> dict[str, Figure]:
        """Numbers against targets."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 5), dpi=100, layout="constrained")
        axes = figure.add_subplot()
        axes.scatter(self.targets, self.numbers, s=8, alpha=0.4, linewidths=0, color="#2171b5")
        ends = [min(self.targets, default=0), max(self.targets, default=1)]
        axes.plot(ends, ends, color="0.5", linestyle="--", linewidth=1)
        axes.set_xlabel("true")
        axes.set_ylabel("predicted")
        axes.set_title(f"Numbers, {title}")
        return {"numbers": figure}


@register_objective("regression")
@dataclass(frozen=True)
class Regression(Objective):
    """A number for each text, by the mean squared error; the order of the numbers is monitored.

    The head learns numbers of mean 0 and deviation 1, so the unit of the targets does not matter.

    Attributes:
        mean: of the training targets.
        deviation: their standard deviation.
    """

    target_kind: ClassVar[str] = "number"
    output: ClassVar[str] = "number"
    monitor: ClassVar[str] = "spearman"
    other_figures: ClassVar[Mapping[str, bool]] = {"spearman": True, "pearson": True, "mae": False}
    watched: ClassVar[str] = "mae"

    mean: float = from_data(0.0)
    deviation: float = from_data(1.0)

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require_each(("deviation",), "positive")

    @property
    def num_outputs(self) -> int:
        """A single one."""
        return 1

    @classmethod
    def parsed(cls, value: object) -> float:
        """A finite number."""
        number = math.nan
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            with contextlib.suppress(ValueError, OverflowError):
                # Python would read "1_0" as ten.
                number = float("nan" if "_" in str(value) else value)
        if not abs(number) <= _LARGEST:  # so NaN is refused too
            raise ValueError(f"no usable number: {str(value)[:40]!r}")
        return number

    @classmethod
    def of_targets(cls, values: Sequence[float]) -> Self:
        """With the mean and the deviation of the numbers."""
        # As they are trained on: of equal numbers, rounding may leave a deviation that is not 0.
        if len(np.unique(np.asarray(values, np.float32))) < 2:
            raise ValueError(
                f"all numbers are {values[0]:g}" if len(values) else "no number occurs"
            )
        return cls(mean=float(np.mean(values)), deviation=float(np.std(values)))

    def encoded(self, value: float) -> float:
        """The number."""
        return value

    def checked_targets(self, targets: np.ndarray) -> np.ndarray:
        """Finite numbers."""
        numbers = np.asarray(targets)
        if numbers.dtype.kind not in "iuf" or numbers.ndim != 1:
            raise ValueError("targets must be numbers, one for each text")
        if not (np.abs(numbers.astype(float)) <= _LARGEST).all():
            raise ValueError(f"targets must be finite numbers, at most {_LARGEST:.2g}")
        return numbers.astype(self.dtype)

    def told(self, target: Any) -> str:
        """The number."""
        return f"{float(target):g}"

    def grouped(self, targets: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Thirds of the targets; fewer groups if many targets are the same."""
        if not len(targets):
            return np.zeros(0, int), ("all",)
        cuts = np.unique(np.quantile(targets, [1 / 3, 2 / 3], method="lower"))
        cuts = cuts[cuts < targets.max()]
        names = [f"up to {cut:.3g}" for cut in cuts]
        names.append(f"above {cuts[-1]:.3g}" if len(cuts) else f"{targets[0]:.3g}")
        return np.searchsorted(cuts, targets, side="left"), tuple(names)

    def loss(self) -> Any:
        """The squared error, in deviations."""
        from keras import ops

        def squared_error(targets: Any, raw: Any) -> Any:
            standard = (ops.cast(targets, "float32") - self.mean) / self.deviation
            return ops.square(ops.reshape(raw, (-1,)) - ops.reshape(standard, (-1,)))

        return squared_error

    def metrics(self) -> list[keras.metrics.Metric]:
        """The mean absolute error, in the unit of the targets."""
        import keras
        from keras import ops

        def absolute_error(targets: Any, raw: Any) -> Any:
            targets = ops.reshape(ops.cast(targets, "float32"), (-1,))
            return ops.absolute(self.numbers(raw) - targets)

        return [keras.metrics.MeanMetricWrapper(absolute_error, name="mae")]

    def numbers(self, raw: Any) -> Any:
        """Raw outputs to the unit of the targets: `(batch,)`."""
        import tensorflow as tf

        return tf.reshape(raw, [-1]) * self.deviation + self.mean

    def numbers_of(self, raw: np.ndarray) -> np.ndarray:
        """Raw outputs to the unit of the targets: `(batch,)`."""
        return raw.reshape(-1).astype(np.float64) * self.deviation + self.mean

    def loss_of(self, raw: np.ndarray, targets: np.ndarray) -> float:
        """The mean squared error, in deviations."""
        standard = (targets.astype(np.float64) - self.mean) / self.deviation
        return float(np.mean((raw.reshape(-1) - standard) ** 2))

    def evaluate(self, numbers: np.ndarray, targets: np.ndarray) -> NumberEvaluation:
        """Compares numbers."""
        return NumberEvaluation(np.asarray(numbers, float), np.asarray(targets, float))

    def answers(self, numbers: np.ndarray) -> list[Answer]:
        """An `Estimate` for each text."""
        return [Estimate(float(number)) for number in numbers]

    def columns(self) -> list[str]:
        """The number."""
        return ["number"]

    def served(self, numbers: Any) -> dict[str, Any]:
        """The numbers."""
        return {self.output: numbers}

    def served_of(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers."""
        return {self.output: numbers}

    def for_runner(self) -> dict[str, Any]:
        """The numbers as they are."""
        return {"output": self.output}

    def summary(self) -> str:
        """Where the numbers lie."""
        return f"A number: {self.mean:.4g} in the mean of training, deviation {self.deviation:.4g}."


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation of the ranks; equal values share the mean of their ranks."""
    return pearson(_ranks(one), _ranks(other))


def pearson(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation; 0 where one of the two is constant, since then it shows no order."""
    one, other = (np.asarray(values, float) for values in (one, other))
    if len(one) < 2:
        return 0.0
    one, other = one - one.mean(), other - other.mean()
    norm = float(np.sqrt(np.sum(one**2) * np.sum(other**2)))
    return float(np.clip(np.sum(one * other) / norm, -1, 1)) if norm > 0 else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
