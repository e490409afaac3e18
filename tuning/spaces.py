"""What is searched: every space is a table of hyper-parameters, their values and when they apply.

A hyper-parameter that the table does not name keeps the paper's value for the task, or the one the
user gave; one that the user gave is not searched. Rows with a condition apply to candidates that
meet it: a learning rate of 1 suits Adadelta and ruins Adam, and only `dsa-multiple` has several
attentions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsa_keras.config import ENCODERS

Value = int | float | str | tuple[int, ...]


@dataclass(frozen=True)
class LogRange:
    """Any number between two others, drawn evenly on the scale of its logarithm."""

    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One line of a space.

    Attributes:
        name: a field of `ModelConfig` or `TrainingConfig`.
        values: what it may be.
        when: the values of other hyper-parameters for which this row applies.
        key: the name in KerasTuner, which cannot have two rows of one name.
    """

    name: str
    values: tuple[Value, ...] | LogRange
    when: Mapping[str, tuple[Value, ...]]

    @property
    def key(self) -> str:
        """The name, and the condition where there is one."""
        conditions = ["+".join(map(str, values)) for values in self.when.values()]
        return "/".join([self.name, *conditions])


def row(name: str, values: tuple[Value, ...] | LogRange, **when: Value | tuple[Value, ...]) -> Row:
    """A row; a condition is one value, or several of which one must hold."""
    conditions = {
        parent: allowed if isinstance(allowed, tuple) else (allowed,)
        for parent, allowed in when.items()
    }
    return Row(name, values, conditions)


DSA = ("dsa-single", "dsa-multiple")
CONVOLUTIONAL = (*DSA, "self-attention")

# fmt: off
SPACES: dict[str, tuple[Row, ...]] = {
    # For a first look: what an hour on a laptop can tell apart.
    "small": (
        row("units",             (150, 300, 600)),
        row("num_iterations",    (1, 2, 3)),
        row("num_dense_layers",  (2, 4)),
        row("embedding_dropout", (0.2, 0.4)),
        row("head_dropout",      (0.2, 0.4)),
        row("learning_rate",     (5e-4, 1e-3, 2e-3),                  optimizer="adam"),
        row("learning_rate",     (0.25, 0.5, 1.0),                    optimizer="adadelta"),
        row("initial_scale",     ("rate", "keep")),
    ),
    # The paper's choices among their neighbours, so that a search can find them again.
    "paper": (
        row("encoder",           ("dsa-single", "dsa-multiple", "self-attention")),
        row("num_attentions",    (2, 4, 8),                           encoder="dsa-multiple"),
        row("units",             (150, 300, 600)),
        row("num_iterations",    (1, 2, 3, 4),                        encoder=DSA),
        row("kernel_sizes",      ((3,), (3, 5), (3, 5, 7))),
        row("num_dense_layers",  (2, 3, 4)),
        row("embedding_dropout", (0.2, 0.3, 0.4)),
        row("dropout",           (0.1, 0.2, 0.3)),
        row("head_dropout",      (0.2, 0.3, 0.4)),
        row("l2",                (0.0, 1e-6, 1e-5, 1e-4)),
        row("optimizer",         ("adam", "adadelta")),
        row("learning_rate",     (3e-4, 1e-3, 3e-3),                  optimizer="adam"),
        row("learning_rate",     (0.3, 1.0, 3.0),                     optimizer="adadelta"),
        row("batch_size",        (64, 128, 256)),
        row("initial_scale",     ("rate", "keep", "none")),
    ),
    # All encoders, and ranges instead of steps.
    "wide": (
        row("encoder",           ENCODERS),
        row("num_attentions",    (2, 4, 8, 16),                       encoder="dsa-multiple"),
        row("units",             (100, 150, 300, 600, 900),           encoder=CONVOLUTIONAL),
        row("num_iterations",    (1, 2, 3, 4, 5),                     encoder=DSA),
        row("kernel_sizes",      ((1,), (3,), (5,), (3, 5), (3, 5, 7)), encoder=CONVOLUTIONAL),
        row("num_dense_layers",  (1, 2, 3, 4, 5, 6),                  encoder=CONVOLUTIONAL),
        row("lstm_units",        (100, 200, 300, 600),
            encoder=("bilstm", "bilstm-self-attention")),
        row("cnn_filters",       (50, 100, 200),                      encoder="cnn"),
        row("embedding_dropout", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        row("dropout",           (0.0, 0.1, 0.2, 0.3, 0.4)),
        row("head_dropout",      (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        row("l2",                LogRange(1e-7, 1e-3)),
        row("optimizer",         ("adam", "adadelta")),
        row("learning_rate",     LogRange(1e-4, 1e-2),                optimizer="adam"),
        row("learning_rate",     LogRange(0.1, 5.0),                  optimizer="adadelta"),
        row("batch_size",        (32, 64, 128, 256)),
        row("initial_scale",     ("rate", "keep", "none")),
    ),
}
# fmt: on


def rows_of(space: str, fixed: Mapping[str, Any]) -> tuple[Row, ...]:
    """The rows of a space that are left when some hyper-parameters are fixed.

    Args:
        space: a name in `SPACES`.
        fixed: values that are not searched. A row whose condition they break is dropped, a
            condition that they meet is no condition any more.
    """
    searched = {row.name for row in SPACES[space]} - fixed.keys()
    kept = []
    for one in SPACES[space]:
        settled = {parent: fixed[parent] for parent in one.when if parent not in searched}
        if one.name in searched and all(settled[name] in one.when[name] for name in settled):
            open_conditions = {name: one.when[name] for name in one.when if name not in settled}
            kept.append(Row(one.name, one.values, open_conditions))
    return tuple(kept)
