"""Run folders: everything about one trained model, in files that explain themselves."""

from dsa_keras.runs.config import RunConfig
from dsa_keras.runs.run import Run

__all__ = ["Run", "RunConfig"]
