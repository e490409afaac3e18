"""Functional Keras models of the paper, built from a `ModelConfig`."""

from dsa_keras.config import (
    ENCODERS,
    PAPER_TASKS,
    ModelConfig,
    Preset,
    TrainingConfig,
    preset,
)
from dsa_keras.models.classifiers import (
    build_classifier,
    build_pair_classifier,
    head_features,
    pack_classifier,
)
from dsa_keras.models.encoders import assign_vectors, build_encoder, pack_encoder, trace_encoder
from dsa_keras.models.word_tables import TabledEncoder, has_word_tables

__all__ = [
    "ENCODERS",
    "PAPER_TASKS",
    "ModelConfig",
    "Preset",
    "TabledEncoder",
    "TrainingConfig",
    "assign_vectors",
    "build_classifier",
    "build_encoder",
    "build_pair_classifier",
    "has_word_tables",
    "head_features",
    "pack_classifier",
    "pack_encoder",
    "preset",
    "trace_encoder",
]
