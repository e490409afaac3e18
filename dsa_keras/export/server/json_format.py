"""TensorFlow Serving's JSON: requests by row or by column to arrays, and answers back.

By row, `{"instances": [...]}` has one element per row, a bare value where the signature has one
input and an object of named values otherwise, and the answer is `{"predictions": [...]}`. By
column, `{"inputs": ...}` has the arrays whole and the answer is `{"outputs": ...}`. Bytes that are
not text are `{"b64": "..."}`, in answers for outputs whose name ends in `_bytes`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dsa_keras.export.server.signatures import Arrays, Signature, TensorSpec
from dsa_keras.export.server.status import ServingError, invalid


def parse(body: bytes) -> dict[str, Any]:
    """The object in a request's body.

    Raises:
        ServingError: if it is not a JSON object, or its signature name is not text.
    """
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        value = json.loads(body)
    except RecursionError:
        raise invalid("JSON Parse error: nested too deeply") from None
    except ValueError as error:
        raise invalid(f"JSON Parse error: {error}") from None
    if not isinstance(value, dict):
        raise invalid(f"JSON Value: {_shown(value)} Is not object")
    if not isinstance(value.get("signature_name", ""), str):
        raise invalid("'signature_name' key must be a string value.")
    return value


def arrays_of(request: Mapping[str, Any], signature: Signature) -> Arrays:
    """The arrays of a parsed request.

    Raises:
        ServingError: if they are not what the signature takes.
    """
    if "instances" in request and "inputs" in request:
        raise invalid(
            "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist"
        )
    try:
        if "instances" in request:
            return _from_rows(request["instances"], signature)
        if "inputs" in request:
            return _from_columns(request["inputs"], signature)
    except RecursionError:
        raise invalid("JSON value is nested too deeply") from None
    raise invalid("Missing 'inputs' or 'instances' key")


def answer_of(arrays: Arrays, request: Mapping[str, Any]) -> bytes:
    """The body of an answer, in the format the request had.

    Raises:
        ServingError: if an answer by row was asked for outputs without a row for every row.
    """
    bare = len(arrays) == 1
    lists = {key: _listed(array, key) for key, array in arrays.items()}
    if "inputs" in request:
        return _dumped({"outputs": next(iter(lists.values())) if bare else lists})
    sizes = {array.shape[0] if array.ndim else -1 for array in arrays.values()}
    if len(sizes) != 1 or -1 in sizes:
        raise invalid("Tensors have no common batch size: ask by column, with 'inputs'")
    if bare:
        return _dumped({"predictions": next(iter(lists.values()))})
    rows = zip(*lists.values(), strict=True)
    return _dumped({"predictions": [dict(zip(lists, row, strict=True)) for row in rows]})


def _from_rows(rows: Any, signature: Signature) -> Arrays:
    if not isinstance(rows, list):
        raise invalid("Expecting 'instances' to be an list/array")
    if not rows:
        raise invalid("No values in 'instances' array")
    names = list(signature.inputs)
    named = _is_named(rows[0])
    if not named and len(names) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            f"required: {', '.join(names)}"
        )
    columns: dict[str, list] = {name: [] for name in names}
    for index, row in enumerate(rows):
        if _is_named(row) != named:
            expected = "object but got list" if named else "value/list but got object"
            raise invalid(f"Expecting {expected} at item {index} of input list")
        if named and set(row) != set(names):
            raise invalid(
                f"Failed to process element: {index} of 'instances' list. JSON object: "
                f"{_shown(row)} keys must be equal to: {','.join(names)}"
            )
        for name in names:
            columns[name].append(row[name] if named else row)
    return {name: _array(columns[name], signature.inputs[name], name) for name in names}


def _from_columns(inputs: Any, signature: Signature) -> Arrays:
    names = list(signature.inputs)
    if not _is_named(inputs):
        if len(names) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                f"required: {', '.join(names)}"
            )
        inputs = {names[0]: inputs}
    for name in names:
        if name not in inputs:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
    return {name: _array(inputs[name], signature.inputs[name], name) for name in names}


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _array(value: Any, spec: TensorSpec, name: str) -> np.ndarray:
    """An array of nested lists that are all of one shape."""
    shape, inner = [], value
    while isinstance(inner, list):
        shape.append(len(inner))
        if not inner:
            break
        inner = inner[0]
    flat: list = []
    try:
        _flatten(value, shape, 0, spec, flat)
        array = np.empty(len(flat), spec.numpy_dtype)
        array[:] = flat
    except ServingError as error:
        raise invalid(f"input {name}: {error.message}") from None
    except OverflowError:
        raise invalid(f"input {name}: a number does not fit {spec.dtype.name}") from None
    # An empty list says nothing of the axes inside it.
    if not flat and spec.shape and len(shape) < len(spec.shape):
        shape += [size or 0 for size in spec.shape[len(shape) :]]
    return array.reshape(shape)


def _flatten(value: Any, shape: list[int], level: int, spec: TensorSpec, flat: list) -> None:
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                f"JSON Value: {_shown(value)} found at incorrect level: {level + 1} in the JSON "
                f"DOM. Expected at level: {len(shape)}"
            )
        flat.append(_element(value, spec))
        return
    if level >= len(shape):
        raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise invalid(
            f"Encountered list at unexpected size: {len(value)} at level: {level} "
            f"expected size: {shape[level]}"
        )
    for item in value:
        _flatten(item, shape, level + 1, spec, flat)


def _element(value: Any, spec: TensorSpec) -> Any:
    kind = spec.numpy_dtype.kind
    if kind == "O" and isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise invalid("The surrogate pair in string is invalid.") from None
    if kind == "O" and _is_base64(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise invalid("Unable to base64 decode") from None
    if kind == "b" and isinstance(value, bool):
        return value
    if kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        limits = np.iinfo(spec.numpy_dtype)
        if limits.min <= value <= limits.max:
            return value
    if kind == "f" and isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and abs(number) > np.finfo(spec.numpy_dtype).max:
            raise invalid(f"Cannot convert JSON value: {_shown(value)} without loss of precision.")
        return number
    raise invalid(f"JSON Value: {_shown(value)} is not of expected type: {spec.dtype.name}")


def _listed(array: np.ndarray, name: str) -> Any:
    if array.dtype != object:
        # The shortest digits of a float32, not those of the float64 nearest to it.
        if array.dtype == np.float32:
            return _shortest(array)
        return array.tolist()
    if name.endswith("_bytes"):
        return _nested(array, lambda data: {"b64": base64.b64encode(data).decode()})
    # JSON has no invalid UTF-8; clients that need the bytes ask by gRPC.
    return _nested(array, lambda data: data.decode(errors="replace"))


def _shortest(array: np.ndarray) -> Any:
    flat = [float(str(value)) for value in array.ravel()]
    return np.array(flat, np.float64).reshape(array.shape).tolist()


def _nested(array: np.ndarray, change: Any) -> Any:
    changed = np.empty(array.size, object)
    changed[:] = [change(data) for data in array.ravel()]
    return changed.reshape(array.shape).tolist()


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _shown(value: Any) -> str:
    """A value in an error, cut short."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
