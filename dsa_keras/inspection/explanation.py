"""One text explained: what the model says about it, and which words it attended to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dsa_keras.inputs import Inputs, Text
from dsa_keras.inspection.trace import Trace, trace
from dsa_keras.objectives import Answer

if TYPE_CHECKING:
    from dsa_keras.objectives import Objective
    from dsa_keras.text_encoder import TextEncoder


class Explainable(Protocol):
    """What inspection asks of a model; `SentenceModel` has it all."""

    text_encoder: TextEncoder
    inputs: Inputs
    objective: Objective

    @property
    def config(self) -> Any:
        """The settings of the run."""

    def numbers(
        self, texts: Sequence[Text], batch_size: int = ..., show_progress_bar: bool = ...
    ) -> np.ndarray:
        """What the model says in numbers."""

    def predict(self, texts: Sequence[Text]) -> list[Answer]:
        """What the model says in words."""


@dataclass(frozen=True)
class AttentionRow:
    """The weights of one attention in one iteration.

    Attributes:
        attention: its number, counted from 1.
        iteration: its number, counted from 1.
        label: both in words, as far as there is more than one to tell apart.
        weights: one per word.
    """

    attention: int
    iteration: int
    label: str
    weights: np.ndarray


@dataclass(frozen=True)
class Explanation:
    """What the model says about a text, and what it attended to.

    Attributes:
        text: the sentence, or (premise, hypothesis).
        answer: what the model says.
        traces: words and weights by name: `sentence`, or `premise` and `hypothesis`.
    """

    text: Text
    answer: Answer
    traces: dict[str, Trace]

    def to_dict(self, *, iterations: bool = False) -> dict[str, Any]:
        """Plain values, ready for JSON; the last iteration only, unless all are asked for."""
        return {
            "text": self.text if isinstance(self.text, str) else list(self.text),
            **self.answer.to_dict(),
            "sentences": {
                name: {
                    "words": list(one.words),
                    "known": list(one.known),
                    "attention": [
                        {
                            "attention": row.attention,
                            "iteration": row.iteration,
                            "weights": [round(float(weight), 6) for weight in row.weights],
                        }
                        for row in rows(one, iterations=iterations)
                    ],
                }
                for name, one in self.traces.items()
            },
        }


def explain(model: Explainable, texts: Sequence[Text]) -> list[Explanation]:
    """Answers for texts, with what the model attended to.

    Args:
        model: a model whose encoder attends.
        texts: sentences, or (premise, hypothesis) pairs for a model of pairs.

    Raises:
        ConfigError: if the encoder has no attention, or the texts are not what the model takes.

    Example:
    ```python
    [one] = explain(dsa_keras.load("runs/demo"), ["not a dull moment"])
    one.traces["sentence"].weights[-1]  # (attentions, words)
    ```
    """
    texts, names = model.inputs.checked(texts), model.inputs.names
    answers = model.predict(texts)
    sentences, index = model.inputs.distinct(texts)
    traces = trace(model.text_encoder, sentences)
    which = index.reshape(len(texts), len(names))
    return [
        Explanation(
            text,
            answer,
            {name: traces[number] for name, number in zip(names, numbers, strict=True)},
        )
        for text, answer, numbers in zip(texts, answers, which, strict=True)
    ]


def rows(one: Trace, *, iterations: bool = False) -> Iterator[AttentionRow]:
    """The weights row by row: each attention, in the last or in every iteration."""
    steps, attentions, _ = one.weights.shape
    for attention in range(attentions):
        for step in range(0 if iterations else steps - 1, steps):
            label = f"attention {attention + 1}" if attentions > 1 else "attention"
            if iterations and steps > 1:
                label += f", iteration {step + 1}"
            yield AttentionRow(attention + 1, step + 1, label, one.weights[step, attention])
