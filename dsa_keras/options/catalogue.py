"""Every hyper-parameter there is: who has it, what it means, and which values it takes."""

from __future__ import annotations

import argparse
import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.encoders import ENCODERS
from dsa_keras.heads import HEADS
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.settings import Settings


@dataclass
class HyperParameter:
    """What the option of a hyper-parameter needs.

    Attributes:
        name: of the field.
        hints: the types that it has in its owners.
        owners: by description the encoders, heads or objectives that have it; empty if all do.
    """

    name: str
    hints: list[Any] = field(default_factory=list)
    owners: dict[str, list[str]] = field(default_factory=dict)

    def help(self) -> str:
        """The descriptions, and to whom they apply if not to all."""
        parts = [
            f"{text.rstrip('.')} [{', '.join(owners)}]" if owners else text.rstrip(".")
            for text, owners in self.owners.items()
        ]
        return "; ".join(parts)


def hyper_parameter_groups() -> dict[str, dict[str, HyperParameter]]:
    """The hyper-parameters of all that is registered, by the title of their group and by name."""
    own = {name: [ModelConfig] for name in ModelConfig.own_choices()}
    groups = {
        "encoder hyper-parameters": _collected(ENCODERS),
        "head and objective hyper-parameters": {**_collected(HEADS), **_collected(OBJECTIVES)},
        "word vector hyper-parameters": {
            name: _described(name, {"": ModelConfig}, 1) for name in own
        },
        "training hyper-parameters": {
            name: _described(name, {"": TrainingConfig}, 1) for name in TrainingConfig.choices()
        },
    }
    # What several groups have is in the last of them: its help names no encoder.
    seen: set[str] = set()
    for title in reversed(groups):
        groups[title] = {name: one for name, one in groups[title].items() if name not in seen}
        seen |= groups[title].keys()
    return groups


def _collected(registry: typing.Iterable[type[Settings]]) -> dict[str, HyperParameter]:
    kinds = {kind.name: kind for kind in registry}  # type: ignore[attr-defined]
    names = dict.fromkeys(name for kind in kinds.values() for name in kind.choices())
    found = {}
    for name in names:
        owners = {key: kind for key, kind in kinds.items() if name in kind.choices()}
        found[name] = _described(name, owners, len(kinds))
    return found


def _described(name: str, owners: Mapping[str, type[Settings]], count: int) -> HyperParameter:
    one = HyperParameter(name)
    for owner, kind in owners.items():
        one.owners.setdefault(kind.described()[name], []).append(owner)
        if kind.hints()[name] not in one.hints:
            one.hints.append(kind.hints()[name])
    if len(owners) == count and len(one.owners) == 1:
        one.owners = {text: [] for text in one.owners}
    return one


def owners_of(name: str) -> list[str]:
    """The encoders, heads and objectives that have a hyper-parameter."""
    return [
        one.name for kind in (ENCODERS, HEADS, OBJECTIVES) for one in kind if name in one.choices()
    ]


def argument_of(hints: Sequence[Any]) -> dict[str, Any] | None:
    """The arguments of `add_argument` for a field; None for a type that is no plain value."""
    hint = hints[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[0] in _PLAIN:
        return {"type": arguments[0], "nargs": "+", "metavar": "N"}
    if len(hints) > 1:
        return {"type": _plain_value, "metavar": "VALUE"}
    if origin is typing.Literal:
        return {"type": _plain_value, "choices": arguments}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    return {"type": hint, "metavar": _PLAIN[hint]} if hint in _PLAIN else None


_PLAIN = {int: "N", float: "X", str: "TEXT"}


def _plain_value(text: str) -> Any:
    """A number, true, false, or else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
