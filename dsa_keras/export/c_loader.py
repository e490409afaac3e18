"""Runs a SavedModel with TensorFlow's C++ loader through its C API, without Python's TensorFlow.

This is the loader that TF Serving has, so what answers here does not lean on Python. It is a script
of its own, `python c_loader.py FOLDER < requests.json > answers.json`, and imports nothing but the
standard library; the shared libraries are those of the installed TensorFlow.

A request is `{"inputs": {tensor: {"strings": [...]} or {"ids": [[...]]}}, "outputs": [tensor]}`,
an answer `{tensor: {"shape": [...], "values": [...]}}`. Strings are base64.
"""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import json
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint8, c_void_p
from pathlib import Path
from typing import Any

FLOAT, INT32, STRING, INT64 = 1, 3, 7, 9
"""Data types, as the C API numbers them."""

_NUMBERS: dict[int, Any] = {FLOAT: ctypes.c_float, INT32: ctypes.c_int32, INT64: ctypes.c_int64}
_STRING_BYTES = 24  # sizeof(TF_TString)


class Output(ctypes.Structure):
    """`TF_Output`: an operation and which of its outputs."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


def main() -> None:
    """Answers the requests on standard input."""
    session = Session(Path(sys.argv[1]))
    answers = [session.run(one["inputs"], one["outputs"]) for one in json.load(sys.stdin)]
    imported = any(name.split(".")[0] == "tensorflow" for name in sys.modules)
    json.dump({"python_tensorflow": imported, "answers": answers}, sys.stdout)


class Session:
    """A SavedModel, loaded."""

    def __init__(self, folder: Path) -> None:
        self.tf = _library()
        self.graph = self.tf.TF_NewGraph()
        self.status = self.tf.TF_NewStatus()
        tags = (c_char_p * 1)(b"serve")
        self.session = self.tf.TF_LoadSessionFromSavedModel(
            self.tf.TF_NewSessionOptions(),
            None,
            str(folder).encode(),
            tags,
            1,
            self.graph,
            None,
            self.status,
        )
        self._check()

    def run(self, inputs: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
        """Runs one request."""
        fed = (Output * len(inputs))(*(self._output(name) for name in inputs))
        values = (c_void_p * len(inputs))(*(self._tensor(one) for one in inputs.values()))
        wanted = (Output * len(outputs))(*(self._output(name) for name in outputs))
        results = (c_void_p * len(outputs))()
        self.tf.TF_SessionRun(
            self.session,
            None,
            *(fed, values, len(inputs)),
            *(wanted, results, len(outputs)),
            *(None, 0, None),
            self.status,
        )
        self._check()
        return {name: self._value(one) for name, one in zip(outputs, results, strict=True)}

    def _output(self, name: str) -> Output:
        operation, _, index = name.partition(":")
        found = self.tf.TF_GraphOperationByName(self.graph, operation.encode())
        if not found:
            raise SystemExit(f"the graph has no operation {operation}")
        return Output(found, int(index or 0))

    def _tensor(self, value: dict[str, Any]) -> int:
        if "strings" in value:
            texts = [base64.b64decode(one) for one in value["strings"]]
            tensor, data = self._allocate(STRING, [len(texts)], len(texts) * _STRING_BYTES)
            for number, text in enumerate(texts):
                place = data + number * _STRING_BYTES
                self.tf.TF_StringInit(place)
                self.tf.TF_StringCopy(place, text, len(text))
            return tensor
        rows = value["ids"]
        flat = [number for row in rows for number in row]
        shape = [len(rows), len(rows[0]) if rows else 0]
        tensor, data = self._allocate(INT32, shape, 4 * len(flat))
        ctypes.memmove(data, (ctypes.c_int32 * len(flat))(*flat), 4 * len(flat))
        return tensor

    def _allocate(self, kind: int, shape: list[int], size: int) -> tuple[int, int]:
        tensor = self.tf.TF_AllocateTensor(kind, (c_int64 * len(shape))(*shape), len(shape), size)
        return tensor, self.tf.TF_TensorData(tensor) or 0

    def _value(self, tensor: int) -> dict[str, Any]:
        axes = range(self.tf.TF_NumDims(tensor))
        shape = [self.tf.TF_Dim(tensor, axis) for axis in axes]
        size = 1
        for length in shape:
            size *= length
        kind, data = self.tf.TF_TensorType(tensor), self.tf.TF_TensorData(tensor) or 0
        values: list[Any]
        if kind == STRING:
            places = [data + number * _STRING_BYTES for number in range(size)]
            values = [base64.b64encode(self._string(place)).decode() for place in places]
        else:
            values = list((_NUMBERS[kind] * size).from_address(data)) if size else []
        return {"shape": shape, "values": values}

    def _string(self, place: int) -> bytes:
        return ctypes.string_at(
            self.tf.TF_StringGetDataPointer(place), self.tf.TF_StringGetSize(place)
        )

    def _check(self) -> None:
        if self.tf.TF_GetCode(self.status):
            raise SystemExit(self.tf.TF_Message(self.status).decode())


def _library() -> Any:
    """The C API, with the types of what is called."""
    found = importlib.util.find_spec("tensorflow")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("TensorFlow is not installed")
    folder = Path(next(iter(found.submodule_search_locations)))
    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        library = ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
    types: dict[str, tuple[Any, list[Any]]] = {
        "TF_NewGraph": (c_void_p, []),
        "TF_NewStatus": (c_void_p, []),
        "TF_NewSessionOptions": (c_void_p, []),
        "TF_LoadSessionFromSavedModel": (
            c_void_p,
            [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, *[c_void_p] * 3],
        ),
        "TF_GetCode": (c_int, [c_void_p]),
        "TF_Message": (c_char_p, [c_void_p]),
        "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
        "TF_AllocateTensor": (c_void_p, [c_int, POINTER(c_int64), c_int, c_size_t]),
        "TF_TensorData": (c_void_p, [c_void_p]),
        "TF_TensorType": (c_int, [c_void_p]),
        "TF_NumDims": (c_int, [c_void_p]),
        "TF_Dim": (c_int64, [c_void_p, c_int]),
        "TF_StringInit": (None, [c_void_p]),
        "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
        "TF_StringGetDataPointer": (POINTER(c_uint8), [c_void_p]),
        "TF_StringGetSize": (c_size_t, [c_void_p]),
        "TF_SessionRun": (
            None,
            [
                *(c_void_p, c_void_p),
                *(POINTER(Output), POINTER(c_void_p), c_int),
                *(POINTER(Output), POINTER(c_void_p), c_int),
                *(c_void_p, c_int, c_void_p, c_void_p),
            ],
        ),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


if __name__ == "__main__":
    main()
