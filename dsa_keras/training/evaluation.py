"""Figures of merit: accuracy, precision, recall and F1 per class, the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts by true class (rows) and predicted class (columns)."""
    cells = np.asarray(labels) * num_classes + np.asarray(predicted)
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)


@dataclass(frozen=True)
class Evaluation:
    """How well predictions agree with labels.

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
            "accuracy": self.accuracy,
            "per_class": self.per_class(),
            "confusion": self.confusion.tolist(),
            "class_names": list(self.class_names),
        }

    def table(self) -> str:
        """A table for people."""
        width = max(len("predicted"), *(len(name) for name in self.class_names))
        lines = [f"accuracy {self.accuracy:.4f} on {self.examples:,} examples", ""]
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
