"""Functional Keras models: words, an encoder, an objective, as a `ModelConfig` asks for them."""

from dsa_keras.backend import require_tensorflow

require_tensorflow()


from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.models.network import Network

__all__ = ["ModelConfig", "Network", "Recipe", "TrainingConfig"]
