"""`serve`: answers requests for exported models on this machine."""

from dsa_keras.export.serve import add_parser

__all__ = ["add_parser"]
