"""Sentence embeddings with Dynamic Self-Attention for Keras 3.

The paper: Yoon, Lee and Lee, arXiv 1808.07383.

Importing the package is light: TensorFlow loads when a layer, a model or a run is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsa_keras.sentence_model import SentenceModel, load

__version__ = "0.1.0"

__all__ = ["SentenceModel", "__version__", "load"]


def __getattr__(name: str) -> Any:
    if name in ("SentenceModel", "load"):
        from dsa_keras.backend import require_tensorflow

        require_tensorflow()
        from dsa_keras import sentence_model

        return getattr(sentence_model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
