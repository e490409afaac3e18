"""Heads, one file each, registered by name: from sentence vectors to what the objective needs.

A head joins the vectors of an example's sentences and computes the raw outputs. Objectives say how
many outputs there are; encoders whose authors published another head ask for it in their recipe.
Nothing else names a head.

Importing this package loads no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dsa_keras.heads.head import Head
from dsa_keras.registry import Registry, of_json, register

Kind = TypeVar("Kind", bound=type[Head])

HEADS: Registry[type[Head]] = Registry("head", __name__)
"""The heads by name."""

DEFAULT_HEAD = "mlp"
"""The paper's."""

__all__ = ["DEFAULT_HEAD", "HEADS", "Head", "head_of", "register_head"]


def register_head(name: str) -> Callable[[Kind], Kind]:
    """Decorates a subclass of `Head` to register it under a name."""
    return register(HEADS, name)


def head_of(values: Mapping[str, Any]) -> Head:
    """The head that `to_json` of another told: its name and its settings."""
    return of_json(HEADS, values)
