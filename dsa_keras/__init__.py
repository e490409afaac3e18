"""Sentence embeddings with Dynamic Self-Attention for Keras 3.

The paper: Yoon, Lee and Lee, arXiv 1808.07383.

Importing the package is light: TensorFlow loads when a layer, a model or a run is asked for.
"""

__version__ = "0.1.0"
