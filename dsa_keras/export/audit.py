"""What a SavedModel is made of: every operation must run in a plain TF Serving.

TF Serving has the operations of TensorFlow itself, no Python, and refuses functions that must be
compiled by XLA.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsa_keras.errors import RunError

FORBIDDEN = frozenset(
    {
        *("PyFunc", "PyFuncStateless", "EagerPyFunc"),
        *("ReadFile", "WriteFile", "MatchingFiles", "PrintV2", "Print"),
    }
)
"""Stock operations that need Python, or that a served model has no business with."""

FLAGS = ("_XlaMustCompile", "_XlaCompile")
"""Attributes that ask for XLA."""


def read_saved_model(folder: Path) -> Any:
    """The meta graph of `saved_model.pb`."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    file = folder / "saved_model.pb"
    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString(file.read_bytes())
        return message.meta_graphs[0]
    except (OSError, DecodeError, IndexError):
        raise RunError(
            "is missing or damaged", where=file, hint="Give the folder of a version, models/NAME/N"
        ) from None


def operations(folder: Path) -> set[str]:
    """The operations of a SavedModel, in the graph and in its functions.

    Raises:
        RunError: if one of them is not a stock operation, is forbidden, or must be compiled.
    """
    import tensorflow as tf

    graph = read_saved_model(folder).graph_def
    functions = {function.signature.name for function in graph.library.function}
    found = set()
    for node in _nodes(graph):
        for flag in FLAGS:
            if flag in node.attr and node.attr[flag].b:
                raise _refused(folder, f"{node.name} must be compiled by XLA ({flag})")
        if node.op not in functions:
            found.add(node.op)
    for function in graph.library.function:
        for flag in FLAGS:
            if flag in function.attr and function.attr[flag].b:
                raise _refused(folder, f"{function.signature.name} must be compiled by XLA")
    if odd := sorted(op for op in found if op in FORBIDDEN or not hasattr(tf.raw_ops, op)):
        raise _refused(folder, f"the operation {odd[0]} is not one that TF Serving runs")
    return found


def _nodes(graph: Any) -> Iterator[Any]:
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def _refused(folder: Path, problem: str) -> RunError:
    return RunError(problem, where=folder, hint="Please report this: the export must not have it")
