"""What every objective is: targets, head, loss, judgement and answers."""

from __future__ import annotations

import abc
import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dsa_keras.objectives.reading import Reading
from dsa_keras.settings import Settings

if TYPE_CHECKING:
    import keras
    from matplotlib.figure import Figure

LOSS = "loss"
"""The figure that every objective has, of which less is better."""


class Answer(abc.ABC):
    """What a model says about one text.

    Attributes:
        reading: how much of the text the model could read: `reading.words`, `reading.known_words`,
            `reading.cut`. None for an answer that was made of numbers alone.
    """

    reading: Reading | None = None

    def read(self, reading: Reading) -> Self:
        """The same answer with how much of the text was read."""
        answer = copy.copy(self)
        object.__setattr__(answer, "reading", reading)  # answers are frozen as a rule
        return answer

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the answer, and how much of the text was read."""
        return {**self.fields(), **(self.reading.to_dict() if self.reading else {})}

    def notes(self) -> list[str]:
        """What a person should know before trusting the answer; nothing as a rule."""
        return self.reading.notes() if self.reading else []

    @abc.abstractmethod
    def fields(self) -> dict[str, Any]:
        """Plain values by name, ready for JSON."""

    @abc.abstractmethod
    def row(self) -> list[Any]:
        """The values of `Objective.columns`."""

    @abc.abstractmethod
    def cells(self) -> list[str]:
        """The answer in a line of text, in a few columns."""

    @abc.abstractmethod
    def headline(self) -> str:
        """The answer in a word or a number."""

    def asides(self) -> list[str]:
        """What belongs beside the headline, such as a probability."""
        return []

    def details(self) -> str:
        """What else there is to say, on one line; may be empty."""
        return ""


class Evaluation(abc.ABC):
    """How well answers agree with targets."""

    @property
    @abc.abstractmethod
    def examples(self) -> int:
        """How many examples there were."""

    @abc.abstractmethod
    def figures(self) -> dict[str, float]:
        """Figures of merit by name, the one that is monitored among them."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the figures among them."""

    @abc.abstractmethod
    def table(self) -> str:
        """A table for people."""

    def warnings(self) -> list[str]:
        """What a person should know before trusting the figures, a line each."""
        return []

    @abc.abstractmethod
    def pictures(self, title: str) -> dict[str, Figure]:
        """Pictures by name, for TensorBoard."""


@dataclass(frozen=True)
class Objective(Settings, abc.ABC):
    """What a model is trained to say, and how that is judged.

    An objective is a frozen dataclass of its hyper-parameters and of what the data decides
    (`from_data`), such as the names of the classes.

    The head of the network gives raw outputs. `numbers` turns them into what a model says, in
    graphs, and `numbers_of` does the same in NumPy.
    """

    name: ClassVar[str] = ""
    target_kind: ClassVar[str] = ""
    """What a target is, in a word, such as `class`."""
    output: ClassVar[str] = ""
    """The name of the numbers in exported models."""
    monitor: ClassVar[str] = ""
    """The figure of the dev split that chooses the epoch, unless the user names another."""
    higher_is_better: ClassVar[bool] = True
    """Whether more of that figure is better."""
    other_figures: ClassVar[Mapping[str, bool]] = {}
    """Further figures that may choose it, and whether more of them is better."""
    watched: ClassVar[str] = ""
    """The metric of `metrics` that the progress bar shows."""
    dtype: ClassVar[str] = "float32"
    """Of the targets in arrays."""

    # Targets

    @classmethod
    @abc.abstractmethod
    def parsed(cls, value: object) -> Any:
        """The target that a cell of a table holds.

        Raises:
            ValueError: with the problem in words, if it is none.
        """

    @classmethod
    @abc.abstractmethod
    def of_targets(cls, values: Sequence[Any]) -> Self:
        """The objective that the parsed targets of the training split call for.

        Raises:
            ValueError: with the problem in words, if nothing can be learnt from them.
        """

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Self:
        """The objective of these targets, in this order, where targets have names.

        Raises:
            ValueError: with the problem in words, if they have none, or these cannot be.
        """
        raise ValueError(f"targets of {cls.name} have no names")

    @abc.abstractmethod
    def encoded(self, value: Any) -> int | float:
        """A parsed target as it stands in an array.

        Raises:
            ValueError: with the problem in words, if training has no such target.
        """

    @classmethod
    def stratum(cls, value: Any) -> Hashable:
        """Targets of one stratum are dealt out to the splits in the same shares."""
        return None

    def checked_targets(self, targets: np.ndarray) -> np.ndarray:
        """Targets from Python in their dtype.

        Raises:
            ValueError: with the problem in words, if one of them cannot be.
        """
        return np.asarray(targets, self.dtype)

    def fits(self, other: Objective) -> bool:
        """Whether the targets of another objective mean what those of this one do."""
        return type(other) is type(self)

    def told(self, target: Any) -> str:
        """A target of an array in words."""
        return str(target)

    def grouped(self, targets: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Targets in a few groups, for pictures: the group of each, and the names of all."""
        return np.zeros(len(targets), int), ("all",)

    # Network

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """How many raw outputs there are for a text."""

    @abc.abstractmethod
    def loss(self) -> keras.losses.Loss:
        """Makes the loss of targets and raw outputs."""

    def training_loss(self, targets: np.ndarray) -> Any:
        """Makes the loss of training, which may depend on the targets of the training split."""
        return self.loss()

    @abc.abstractmethod
    def metrics(self) -> list[keras.metrics.Metric]:
        """Makes what is measured while training, on raw outputs."""

    @abc.abstractmethod
    def numbers(self, raw: Any) -> Any:
        """Raw outputs to what the model says, by operations of TensorFlow."""

    @abc.abstractmethod
    def numbers_of(self, raw: np.ndarray) -> np.ndarray:
        """The same in NumPy."""

    # Judgement

    @abc.abstractmethod
    def loss_of(self, raw: np.ndarray, targets: np.ndarray) -> float:
        """The mean loss, in NumPy."""

    @abc.abstractmethod
    def evaluate(self, numbers: np.ndarray, targets: np.ndarray) -> Evaluation:
        """Compares what the model says with the targets."""

    # Answers

    @abc.abstractmethod
    def answers(self, numbers: np.ndarray) -> list[Answer]:
        """What the model says, one answer for each text."""

    @abc.abstractmethod
    def columns(self) -> list[str]:
        """Names of the values in `Answer.row`."""

    @abc.abstractmethod
    def served(self, numbers: Any) -> dict[str, Any]:
        """The outputs of an exported model, by operations of TensorFlow."""

    @abc.abstractmethod
    def served_of(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The same in NumPy, strings as `str`."""

    @abc.abstractmethod
    def for_runner(self) -> dict[str, Any]:
        """How the ONNX runner makes answers of the numbers; see `export/onnx_runtime.py`."""

    def monitored(self) -> dict[str, bool]:
        """The figures that may choose the epoch, and whether more of them is better."""
        return {**self.other_figures, self.monitor: self.higher_is_better, LOSS: False}

    def summary(self) -> str:
        """What it is about, in a line of a model card."""
        return ""

    def to_json(self) -> dict[str, Any]:
        """Its name and its settings, ready for JSON."""
        return {"name": self.name, **self.to_dict()}
