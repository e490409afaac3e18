"""How well predicted classes agree with the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.objectives.objective import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
