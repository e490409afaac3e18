"""`classification`: one of several classes for each text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dsa_keras.objectives import register_objective
from dsa_keras.objectives.objective import Answer, Evaluation, Objective
from dsa_keras.settings import from_data

if TYPE_CHECKING:
    import keras
    from matplotlib.figure import Figure


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


@dataclass(frozen=True)
class ClassEvaluation(Evaluation):
    """How well predicted classes agree with the true ones.

    Attributes:
        confusion: counts by true class (rows) and predicted class (columns).
        class_names: the classes.
    """

    confusion: np.ndarray
    class_names: tuple[str, ...]

    @property
    def examples(self) -> int:
        """How many examples there were."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return float(np.trace(self.confusion) / max(self.examples, 1))

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that are there or were predicted, each counting the same."""
        found = self.confusion.sum(axis=0) + self.confusion.sum(axis=1) > 0
        f1 = [row["f1"] for row, one in zip(self.per_class(), found, strict=True) if one]
        return float(np.mean(f1)) if f1 else 0.0

    @property
    def never_predicted(self) -> list[str]:
        """The classes that examples have, but no answer."""
        missed = (self.confusion.sum(axis=0) == 0) & (self.confusion.sum(axis=1) > 0)
        return [name for name, one in zip(self.class_names, missed, strict=True) if one]

    def figures(self) -> dict[str, float]:
        """The accuracy and the mean F1 of the classes."""
        return {"accuracy": self.accuracy, "macro_f1": self.macro_f1}

    def warnings(self) -> list[str]:
        """Names the classes that are never predicted, which a good accuracy may hide."""
        names = ", ".join(self.never_predicted)
        return [f"never predicted, though there are examples of it: {names}"] if names else []

    def per_class(self) -> list[dict[str, Any]]:
        """Precision, recall and F1 of each class (0 where nothing was predicted or is there)."""
        right = np.diag(self.confusion)
        predicted, true = self.confusion.sum(axis=0), self.confusion.sum(axis=1)
        precision = right / np.maximum(predicted, 1)
        recall = right / np.maximum(true, 1)
        f1 = 2 * right / np.maximum(predicted + true, 1)
        rows = zip(self.class_names, precision, recall, f1, true, strict=True)
        return [
            {
                "class": name,
                "precision": float(p),
                "recall": float(r),
                "f1": float(f),
                "examples": int(n),
            }
            for name, p, r, f, n in rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "examples": self.examples,
            **self.figures(),
            "never_predicted": self.never_predicted,
            "per_class": self.per_class(),
            "confusion": self.confusion.tolist(),
            "class_names": list(self.class_names),
        }

    def table(self) -> str:
        """Accuracy, macro-F1, a row for each class, and the confusion matrix."""
        width = max(len("predicted"), *(len(name) for name in self.class_names))
        lines = [
            f"accuracy {self.accuracy:.4f} on {self.examples:,} examples",
            f"macro-F1 {self.macro_f1:.4f}",
            "",
        ]
        lines.append(f"{'class':<{width}}  precision  recall      F1  examples")
        lines += [
            f"{row['class']:<{width}}  {row['precision']:9.4f}  {row['recall']:6.4f}"
            f"  {row['f1']:6.4f}  {row['examples']:8,}"
            for row in self.per_class()
        ]
        lines += [
            "",
            "true \\ predicted",
            " " * width + "".join(f"  {n:>{width}}" for n in self.class_names),
        ]
        for name, row in zip(self.class_names, self.confusion, strict=True):
            lines.append(f"{name:<{width}}" + "".join(f"  {count:>{width},}" for count in row))
        return "\n".join(lines)

    def pictures(self, title: str) -> dict[str, Figure]:
        """The confusion matrix."""
        return {"confusion matrix": confusion_figure(self.confusion, self.class_names, title)}


@register_objective("classification")
@dataclass(frozen=True)
class Classification(Objective):
    """One of several classes for each text, by the cross-entropy of the paper.

    Attributes:
        class_names: the classes, in the order of their labels.
    """

    target_kind: ClassVar[str] = "class"
    output: ClassVar[str] = "probabilities"
    monitor: ClassVar[str] = "accuracy"
    other_figures: ClassVar[Mapping[str, bool]] = {"macro_f1": True}
    watched: ClassVar[str] = "accuracy"
    dtype: ClassVar[str] = "int32"

    class_names: tuple[str, ...] = from_data(("0", "1"))

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


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts by true class (rows) and predicted class (columns)."""
    cells = np.asarray(labels) * num_classes + np.asarray(predicted)
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)


def confusion_figure(confusion: np.ndarray, class_names: tuple[str, ...], title: str) -> Figure:
    """Rows are the true classes, columns the predicted ones; shades are shares of a row."""
    from matplotlib.figure import Figure

    size = max(4.0, 1.6 + 0.8 * len(class_names))
    figure = Figure(figsize=(size + 1, size), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)
    ticks = range(len(class_names))
    axes.set_xticks(ticks, class_names, rotation=30, ha="right")
    axes.set_yticks(ticks, class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(f"Confusion matrix, {title}")
    if len(class_names) <= 20:
        for row in ticks:
            for column in ticks:
                shade = "black" if shares[row, column] > 0.5 else "white"
                text = f"{confusion[row, column]:,}"
                axes.text(column, row, text, ha="center", va="center", color=shade)
    return figure
