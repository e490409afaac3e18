"""Objectives, one file each, registered by name: what a model is trained to say.

A file holds the kind of target and how it is read, the head, the loss, the metrics, what is
monitored, the evaluation, and what an answer looks like in Python, in the commands and in an
exported model. Nothing else names an objective. `CONTRIBUTING.md` says how to add one.

Importing this package loads no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dsa_keras.objectives.objective import Answer, Evaluation, Objective
from dsa_keras.registry import Registry, of_json, register

Kind = TypeVar("Kind", bound=type[Objective])

OBJECTIVES: Registry[type[Objective]] = Registry("objective", __name__)
"""The objectives by name."""

DEFAULT_OBJECTIVE = "classification"
"""What own data is trained for where nothing else is named."""

__all__ = [
    "DEFAULT_OBJECTIVE",
    "OBJECTIVES",
    "Answer",
    "Evaluation",
    "Objective",
    "objective_of",
    "register_objective",
]


def register_objective(name: str) -> Callable[[Kind], Kind]:
    """Decorates a subclass of `Objective` to register it under a name."""
    return register(OBJECTIVES, name)


def objective_of(values: Mapping[str, Any]) -> Objective:
    """The objective that `to_json` of another told: its name and its settings."""
    return of_json(OBJECTIVES, values)
