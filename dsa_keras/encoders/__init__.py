"""Sentence encoders, one file each, registered by name.

A file holds the encoder's settings, its layers, how it goes from words to a sentence vector, what
it can do, and the rows of its search space. Nothing else names an encoder. `CONTRIBUTING.md` says
how to add one, here or in a file of your own:

```python
@register_encoder("mean-of-words")
@dataclass(frozen=True)
class MeanOfWords(Encoder):
    def layers(self): ...

    def encode(self, layers, words): ...
```

Importing this package loads no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dsa_keras.encoders.encoder import Encoder, LogRange
from dsa_keras.registry import Registry, of_json, register

Kind = TypeVar("Kind", bound=type[Encoder])

ENCODERS: Registry[type[Encoder]] = Registry("encoder", __name__)
"""The encoders by name."""

DEFAULT_ENCODER = "dsa-single"
"""What is built where no encoder is named: the paper's own."""

__all__ = [
    "DEFAULT_ENCODER",
    "ENCODERS",
    "Encoder",
    "LogRange",
    "encoder_of",
    "register_encoder",
]


def register_encoder(name: str) -> Callable[[Kind], Kind]:
    """Decorates a subclass of `Encoder` to register it under a name."""
    return register(ENCODERS, name)


def encoder_of(values: Mapping[str, Any]) -> Encoder:
    """The encoder that `to_json` of another told: its name and its settings."""
    return of_json(ENCODERS, values)
