"""`classification`: one of several classes for each text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dsa_keras.objectives import register_objective
from dsa_keras.objectives.class_evaluation import ClassEvaluation, confusion_matrix
from dsa_keras.objectives.objective import Answer, Objective
from dsa_keras.settings import from_data

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Prediction(Answer):
    """What a classifier says about one text.

    Attributes:
        label: name of the most probable class.
        probability: of that class.
        probabilities: of every class by name.
    """

    label: str
    probability: float
    probabilities: dict[str, float]

    def fields(self) -> dict[str, Any]:
        """Label, its probability, and that of every class."""
        return {
            "label": self.label,
            "probability": self.probability,
            "probabilities": self.probabilities,
        }

    def row(self) -> list[Any]:
        """Label, its probability, and that of every class."""
        return [self.label, self.probability, *self.probabilities.values()]

    def cells(self) -> list[str]:
        """Label and probability."""
        return [self.label, f"{self.probability:.4f}"]

    def headline(self) -> str:
        """The label."""
        return self.label

    def asides(self) -> list[str]:
        """Its probability."""
        return [f"{self.probability:.3f}"]

    def details(self) -> str:
        """The probability of every class."""
        return ", ".join(f"{name} {value:.3f}" for name, value in self.probabilities.items())


@register_objective("classification")
@dataclass(frozen=True)
class Classification(Objective):
    """One of several classes for each text, by the cross-entropy of the paper.

    Attributes:
        class_names: the classes, in the order of their labels.
        class_weights: `balanced` weighs each class in the loss of training by 1 over how often the
            training split has it, so that rare classes count as much as others; or `none`.
    """

    target_kind: ClassVar[str] = "class"
    output: ClassVar[str] = "probabilities"
    monitor: ClassVar[str] = "accuracy"
    other_figures: ClassVar[Mapping[str, bool]] = {"macro_f1": True}
    watched: ClassVar[str] = "accuracy"
    dtype: ClassVar[str] = "int32"

    class_names: tuple[str, ...] = from_data(("0", "1"))
    class_weights: Literal["none", "balanced"] = "none"

    def check(self) -> None:
        """Raises ConfigError for values that cannot be."""
        self.require("class_names", len(self.class_names) >= 2, "at least 2 names")
        distinct = len(set(self.class_names)) == len(self.class_names)
        self.require("class_names", distinct, "different names")

    @property
    def num_outputs(self) -> int:
        """One for each class."""
        return len(self.class_names)

    @classmethod
    def parsed(cls, value: object) -> str:
        """The name of a class: any plain value that is not empty."""
        name = None
        if isinstance(value, bool):
            name = str(value).lower()
        elif isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value)):
            name = str(value).strip()
        if not name or "\0" in name or not _is_sound(name):
            raise ValueError(f"no usable label: {str(value)[:40]!r}")
        return name

    @classmethod
    def of_targets(cls, values: Sequence[str]) -> Self:
        """The classes that occur, sorted."""
        names = sorted_names(set(values))
        if len(names) < 2:
            raise ValueError(f"only the class {names[0]!r} occurs" if names else "no class occurs")
        return cls(class_names=names)

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Self:
        """These classes, in this order."""
        parsed = tuple(map(cls.parsed, names))
        if twice := [name for number, name in enumerate(parsed) if name in parsed[:number]]:
            raise ValueError(f"the class {twice[0]!r} is named twice")
        if len(parsed) < 2:
            raise ValueError("fewer than 2 classes are named")
        return cls(class_names=parsed)

    def encoded(self, value: str) -> int:
        """The number of the class."""
        if value not in self.class_names:
            raise ValueError(f"label {value!r}")
        return self.class_names.index(value)

    @classmethod
    def stratum(cls, value: str) -> Hashable:
        """The class."""
        return value

    def checked_targets(self, targets: np.ndarray) -> np.ndarray:
        """Labels as whole numbers, each of a class."""
        labels = np.asarray(targets)
        whole = labels.ndim == 1 and (labels.dtype.kind in "iu" or not len(labels))
        if not whole or (len(labels) and not 0 <= labels.min() <= labels.max() < self.num_outputs):
            raise ValueError(
                f"labels must be whole numbers from 0 to {self.num_outputs - 1}, one for each text"
            )
        return labels.astype(self.dtype)

    def fits(self, other: Objective) -> bool:
        """The same classes, in the same order."""
        return isinstance(other, Classification) and other.class_names == self.class_names

    def told(self, target: Any) -> str:
        """The name of the class."""
        return self.class_names[int(target)]

    def grouped(self, targets: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """The classes."""
        return targets, self.class_names

    def loss(self) -> keras.losses.Loss:
        """Cross-entropy."""
        import keras

        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def weights(self, targets: np.ndarray) -> np.ndarray:
        """The weight of each class: 1 in the mean over these targets."""
        counts = np.bincount(targets, minlength=self.num_outputs)
        if self.class_weights == "none":
            return np.ones(self.num_outputs)
        return len(targets) / np.maximum(counts, 1) / np.count_nonzero(counts)

    def training_loss(self, targets: np.ndarray) -> Any:
        """Cross-entropy, weighted if that was chosen."""
        if self.class_weights == "none":
            return self.loss()
        import keras
        from keras import ops

        weights = self.weights(targets).astype("float32")

        def weighted_cross_entropy(targets: Any, raw: Any) -> Any:
            targets = ops.cast(ops.reshape(targets, (-1,)), "int32")
            losses = keras.losses.sparse_categorical_crossentropy(targets, raw, from_logits=True)
            return losses * ops.cast(ops.take(weights, targets), losses.dtype)

        return weighted_cross_entropy

    def metrics(self) -> list[keras.metrics.Metric]:
        """Accuracy."""
        import keras

        # Given by its name, it would be made within the step, which is then traced twice.
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def numbers(self, raw: Any) -> Any:
        """Logits to probabilities."""
        import tensorflow as tf

        return tf.nn.softmax(raw)

    def numbers_of(self, raw: np.ndarray) -> np.ndarray:
        """Logits to probabilities."""
        powers = np.exp(raw - raw.max(axis=-1, keepdims=True), dtype=np.float64)
        return powers / powers.sum(axis=-1, keepdims=True)

    def loss_of(self, raw: np.ndarray, targets: np.ndarray) -> float:
        """The mean cross-entropy."""
        shifted = raw - raw.max(axis=-1, keepdims=True)
        log_sums = np.log(np.exp(shifted).sum(axis=-1))
        return float(np.mean(log_sums - shifted[np.arange(len(targets)), targets]))

    def evaluate(self, numbers: np.ndarray, targets: np.ndarray) -> ClassEvaluation:
        """Counts right and wrong classes."""
        confusion = confusion_matrix(targets, numbers.argmax(-1), self.num_outputs)
        return ClassEvaluation(confusion, self.class_names)

    def answers(self, numbers: np.ndarray) -> list[Answer]:
        """A `Prediction` for each text."""
        answers: list[Answer] = []
        for row in numbers:
            best = int(row.argmax())
            by_name = dict(zip(self.class_names, map(float, row), strict=True))
            answers.append(Prediction(self.class_names[best], float(row[best]), by_name))
        return answers

    def columns(self) -> list[str]:
        """Label, its probability, and that of every class."""
        return ["label", "probability", *(f"probability of {name}" for name in self.class_names)]

    def served(self, numbers: Any) -> dict[str, Any]:
        """Labels, probabilities, and the names of the classes in each row."""
        import tensorflow as tf

        names = tf.constant(self.class_names)
        return {
            "label": tf.gather(names, tf.argmax(numbers, axis=-1)),
            "probabilities": numbers,
            "class_names": tf.tile(tf.expand_dims(names, 0), [tf.shape(numbers)[0], 1]),
        }

    def served_of(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Labels, probabilities, and the names of the classes in each row."""
        names = np.array(self.class_names, object)
        return {
            "label": names[numbers.argmax(-1)],
            "probabilities": numbers,
            "class_names": np.tile(names, (len(numbers), 1)),
        }

    def for_runner(self) -> dict[str, Any]:
        """The highest of named numbers is the label."""
        return {"output": self.output, "names": list(self.class_names), "highest": "label"}

    def summary(self) -> str:
        """The classes."""
        return f"Classes: {', '.join(self.class_names)}."


def sorted_names(names: set[str]) -> tuple[str, ...]:
    """Sorts class names: by value if all are numbers, else as text."""
    try:
        values = {name: float(name) for name in names}
    except ValueError:
        return tuple(sorted(names))
    if not all(math.isfinite(value) for value in values.values()):
        return tuple(sorted(names))
    return tuple(sorted(names, key=lambda name: (values[name], name)))


def _is_sound(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
