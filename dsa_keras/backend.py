"""The backend that Keras must have: the layers here are written with operations of TensorFlow."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def require_tensorflow() -> None:
    """Says so where Keras runs, or would run, on something else than TensorFlow.

    Raises:
        ImportError: with what to do.
    """
    found = _backend()
    if found not in (None, "tensorflow"):
        raise ImportError(
            f"dsa_keras needs Keras on TensorFlow, and here it runs on {found}. Set the "
            "environment variable KERAS_BACKEND to tensorflow before Keras is imported."
        )


def _backend() -> str | None:
    """The backend of Keras: as it is loaded, or as it would be; None for its default."""
    if (keras := sys.modules.get("keras")) is not None and hasattr(keras, "backend"):
        return keras.backend.backend()
    if found := os.environ.get("KERAS_BACKEND"):
        return found
    home = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        return json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        return None
