"""What a hyper-parameter is by default, in each task: the recipes themselves are asked."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from typing import Any

from dsa_keras.datasets import DATASETS, preset
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import DsaError


class RecipeDefault:
    """The defaults of a hyper-parameter as the help has them; found when they are printed.

    Args:
        name: of the hyper-parameter.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        text = told_defaults(self.name)
        return f" (default: {text})" if text else ""


def told_defaults(name: str) -> str:
    """The default that most tasks have, then what others have: `0.001; sst2, sst5: 1.0`.

    Where encoders differ, each value is followed by theirs. Empty if no recipe has it.
    """
    by_task = {task: found for task in DATASETS.names() if (found := _values(name, task, True))}
    tasks_of: dict[str, list[str]] = {}
    for task, values in by_task.items():
        tasks_of.setdefault(_told(values), []).append(task)
    ranked = sorted(tasks_of.items(), key=lambda item: -len(item[1]))
    parts = [
        text if not place else f"{', '.join(tasks)}: {text}"
        for place, (text, tasks) in enumerate(ranked)
    ]
    alone: dict[str, list[str]] = {}
    for task, values in by_task.items():
        if (without := _values(name, task, False)) != values:
            alone.setdefault(_told(without), []).append(task)
    parts += [f"{', '.join(tasks)} without --vectors: {text}" for text, tasks in alone.items()]
    return "" if parts == [""] else "; ".join(parts)


def _values(name: str, task: str, vectors: bool) -> dict[str, Any]:
    """The default for each encoder whose recipe has the hyper-parameter."""
    recipes = _recipes(task, vectors, ENCODERS.names())
    return {encoder: values[name] for encoder, values in recipes.items() if name in values}


@functools.cache
def _recipes(task: str, vectors: bool, encoders: tuple[str, ...]) -> Mapping[str, dict[str, Any]]:
    found = {}
    for encoder in encoders:
        try:
            found[encoder] = preset(task, encoder, vectors=vectors).hyper_parameters()
        except DsaError:  # a recipe of a user's own may be for some encoders only
            continue
    return found


def _told(values: Mapping[str, Any]) -> str:
    """A value, or each value with its encoders."""
    encoders_of: dict[Hashable, list[str]] = {}
    for encoder, value in values.items():
        encoders_of.setdefault(_word(value), []).append(encoder)
    if len(encoders_of) == 1:
        return str(next(iter(encoders_of)))
    return ", ".join(f"{value} ({', '.join(names)})" for value, names in encoders_of.items())


def _word(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(_word, value))
    return str(value)
