"""The messages of a gRPC request as a client needs them, without TensorFlow.

The generated messages of tensorflow-serving-api import those of TensorFlow, and a module of a
package loads the package first: all of TensorFlow, seconds of it. So the few fields that a client
writes and reads are described here, with the numbers they have on the wire, in a pool of their own,
where they cannot collide with the generated ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsa_keras.errors import RunError

PREDICT = "/tensorflow.serving.PredictionService/Predict"
"""The method of TensorFlow Serving."""

_STRING_TYPE = 7
# By the number of a type: how its bytes are read, and the field that has its values one by one.
_NUMBERS = {
    1: ("<f4", "float_val"),
    2: ("<f8", "double_val"),
    3: ("<i4", "int_val"),
    9: ("<i8", "int64_val"),
    10: ("?", "bool_val"),
}
# Message: (field, its number, its type or message); * repeats a field.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Version": (("value", 1, "int64"),),
    "ModelSpec": (
        ("name", 1, "string"),
        ("version", 2, "Version"),
        ("signature_name", 3, "string"),
        ("version_label", 4, "string"),
    ),
    "Dim": (("size", 1, "int64"),),
    "Shape": (("dim", 2, "*Dim"),),
    "Tensor": (
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "Shape"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, "*float"),
        ("double_val", 6, "*double"),
        ("int_val", 7, "*int32"),
        ("string_val", 8, "*bytes"),
        ("int64_val", 10, "*int64"),
        ("bool_val", 11, "*bool"),
    ),
    # A map is, on the wire, a repeated message of keys and values.
    "Named": (("key", 1, "string"), ("value", 2, "Tensor")),
    "PredictRequest": (("model_spec", 1, "ModelSpec"), ("inputs", 2, "*Named")),
    "PredictResponse": (("outputs", 1, "*Named"),),
}


def request_of(
    model_spec: dict[str, Any], signature: str, inputs: Mapping[str, Sequence[str]]
) -> bytes:
    """The bytes of a PredictRequest of texts, by the name of the input that takes them."""
    request = _messages()["PredictRequest"](
        model_spec={**model_spec, "signature_name": signature},
        inputs=[
            {
                "key": name,
                "value": {
                    "dtype": _STRING_TYPE,
                    "tensor_shape": {"dim": [{"size": len(texts)}]},
                    "string_val": [text.encode() for text in texts],
                },
            }
            for name, texts in inputs.items()
        ],
    )
    return request.SerializeToString()


def outputs_of(response: bytes) -> dict[str, Any]:
    """The outputs of a PredictResponse as nested lists.

    Raises:
        RunError: if it is none, or a tensor contradicts itself.
    """
    from google.protobuf.message import DecodeError

    try:
        read = _messages()["PredictResponse"].FromString(response)
        return {one.key: _values(one.value) for one in read.outputs}
    except (DecodeError, ValueError) as error:
        raise RunError(f"the answer is not one of a model ({error})") from None


def _values(tensor: Any) -> Any:
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.dtype == _STRING_TYPE:
        flat = np.array([text.decode(errors="replace") for text in tensor.string_val], object)
        return _filled(flat, shape).tolist()
    if tensor.dtype not in _NUMBERS:
        raise ValueError(f"a tensor of type {tensor.dtype}")
    dtype, field = _NUMBERS[tensor.dtype]
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape).tolist()
    return _filled(np.array(getattr(tensor, field), dtype), shape).tolist()


def _filled(values: np.ndarray, shape: list[int]) -> np.ndarray:
    """Values in their shape; of equal ones at the end a message holds the first only."""
    missing = math.prod(shape) - len(values)
    if missing > 0 and len(values):
        values = np.concatenate([values, np.repeat(values[-1:], missing)])
    return values.reshape(shape)


@functools.cache
def _messages() -> dict[str, Any]:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    package = "dsa_keras"
    file = FileDescriptorProto(name="predict.proto", package=package, syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            one = described.field.add(name=name, number=number)
            plain = kind.removeprefix("*")
            repeated = plain != kind
            one.label = one.LABEL_REPEATED if repeated else one.LABEL_OPTIONAL
            if plain in _MESSAGES:
                one.type, one.type_name = one.TYPE_MESSAGE, f".{package}.{plain}"
            else:
                one.type = FieldDescriptorProto.Type.Value(f"TYPE_{plain.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return {
        message: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message}"))
        for message in _MESSAGES
    }
