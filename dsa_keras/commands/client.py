"""`client`: asks a server about sentences."""

from dsa_keras.export.client import add_parser

__all__ = ["add_parser"]
