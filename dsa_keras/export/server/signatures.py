"""A loaded SavedModel: its signatures, what they take, and how answers of merged requests part.

A request must get what it would have got alone. Rows are independent by contract, so merging is
concatenation and parting is slicing, with one exception: answers padded to the longest sentence of
the batch (tokens and attention weights). Such an output has an unknown axis after the batch axis,
and the signature says how much of it is real in an output called `lengths` (`premise_lengths` for
`premise_tokens`). It is cut to the longest row of the request it belongs to. A signature whose
answers could not be parted this way is never merged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from dsa_keras.export.server.protos import array_of
from dsa_keras.export.server.status import ServingError, invalid

Arrays = dict[str, np.ndarray]
MOST_WARM_UP_REQUESTS = 1000


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """Type and shape of an input or output; None stands for any size."""

    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @classmethod
    def of(cls, info: Any) -> TensorSpec:
        """Reads a TensorInfo message."""
        shape = None
        if not info.tensor_shape.unknown_rank:
            shape = tuple(d.size if d.size >= 0 else None for d in info.tensor_shape.dim)
        return cls(tf.dtypes.as_dtype(info.dtype), shape)

    @property
    def numpy_dtype(self) -> np.dtype:
        """The dtype of arrays; strings are arrays of bytes objects."""
        return np.dtype(self.dtype.as_numpy_dtype)

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape can be given."""
        return self.shape is None or (
            len(shape) == len(self.shape)
            and all(want in (None, have) for want, have in zip(self.shape, shape, strict=True))
        )


class Signature:
    """One signature of a SavedModel, callable from any thread."""

    def __init__(self, name: str, definition: Any, function: Any) -> None:
        self.name = name
        self.inputs = {key: TensorSpec.of(info) for key, info in sorted(definition.inputs.items())}
        self.outputs = {k: TensorSpec.of(info) for k, info in sorted(definition.outputs.items())}
        self._function = function
        self._lengths: dict[str, str] = {}
        self._least_width: dict[str, int] = {}
        self.mergeable = all(
            spec.shape and spec.shape[0] is None
            for spec in (*self.inputs.values(), *self.outputs.values())
        )
        for key, spec in self.outputs.items():
            if self.mergeable and spec.shape and None in spec.shape[1:]:
                part, _, _ = key.rpartition("_")
                self._lengths[key] = lengths = f"{part}_lengths" if part else "lengths"
                last = spec.shape.index(None, 1) == len(spec.shape) - 1
                self.mergeable = last and lengths in self.outputs
        if self.mergeable and self._lengths:
            self._learn_least_width()

    def check(self, arrays: Mapping[str, np.ndarray]) -> int:
        """Checks a request's arrays; returns its number of rows.

        Raises:
            ServingError: if they do not fit the signature.
        """
        expected = ", ".join(self.inputs)
        if unknown := ", ".join(sorted(arrays.keys() - self.inputs.keys())):
            raise invalid(
                f"input tensor alias not found in signature: {unknown}. "
                f"Inputs expected to be in the set {{{expected}}}."
            )
        if len(arrays) < len(self.inputs):
            missing = ", ".join(key for key in self.inputs if key not in arrays)
            raise invalid(f"input size does not match signature: missing {missing}")
        for key, spec in self.inputs.items():
            array = arrays[key]
            if array.dtype != spec.numpy_dtype:
                raise invalid(f"input {key}: expected {spec.dtype.name}, got {array.dtype}")
            if not spec.fits(array.shape):
                raise invalid(
                    f"input {key}: expected shape {_shape(spec.shape)}, got {_shape(array.shape)}"
                )
        rows = {array.shape[0] if array.ndim else 1 for array in arrays.values()}
        if len(rows) != 1:
            raise invalid(f"inputs {expected} have different numbers of rows")
        return rows.pop()

    def run(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Runs the model once.

        Raises:
            ServingError: if TensorFlow refuses.
        """
        try:
            tensors = {
                key: tf.convert_to_tensor(arrays[key], spec.dtype)
                for key, spec in self.inputs.items()
            }
            return {key: value.numpy() for key, value in self._function(**tensors).items()}
        except tf.errors.OpError as error:
            raise ServingError(_code(error), _reason(error)) from error

    def run_merged(self, requests: list[Mapping[str, np.ndarray]]) -> list[Arrays]:
        """Runs several requests as one batch; each gets what it would have got alone."""
        if len(requests) == 1:
            return [self.run(requests[0])]
        merged = {key: np.concatenate([r[key] for r in requests]) for key in self.inputs}
        sizes = [len(next(iter(request.values()))) for request in requests]
        outputs = self.run(merged)
        for key, array in outputs.items():
            if len(array) != sum(sizes):
                raise ServingError("INTERNAL", f"output {key} has no row for every row given")
        answers, start = [], 0
        for size in sizes:
            rows = {key: array[start : start + size] for key, array in outputs.items()}
            answers.append(self._trim(rows))
            start += size
        return answers

    def _trim(self, rows: Arrays) -> Arrays:
        """Cuts padded outputs to the longest of these rows."""
        widths = {
            key: max(int(rows[lengths].max(initial=0)), self._least_width[key])
            for key, lengths in self._lengths.items()
        }
        return {k: array[..., : widths[k]] if k in widths else array for k, array in rows.items()}

    def _learn_least_width(self) -> None:
        """Asks for empty sentences: their answers may be padded to more than their length."""
        if any(
            spec.dtype != tf.string or len(spec.shape or ()) != 1 for spec in self.inputs.values()
        ):
            self.mergeable = False
            return
        answer = self.run({key: np.array([b""], object) for key in self.inputs})
        self._least_width = {key: answer[key].shape[-1] for key in self._lengths}


class SavedModel:
    """A version in memory.

    Args:
        folder: the version folder.
        warm_up: whether to run the requests in `assets.extra/tf_serving_warmup_requests`.

    Raises:
        Exception: whatever TensorFlow finds wrong with the folder.
    """

    def __init__(self, folder: Path, *, warm_up: bool = True) -> None:
        message = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
        graphs = [g for g in message.meta_graphs if "serve" in g.meta_info_def.tags]
        if not graphs:
            raise ValueError("no graph tagged 'serve' in saved_model.pb")
        self.definitions = dict(graphs[0].signature_def)
        self._model = tf.saved_model.load(str(folder))
        self.signatures = {
            name: Signature(name, self.definitions[name], function)
            for name, function in self._model.signatures.items()
        }
        if warm_up:
            for name, arrays in warm_up_requests(folder):
                signature = self.signature(name)
                signature.check(arrays)
                signature.run(arrays)

    def signature(self, name: str) -> Signature:
        """The signature of this name; an empty name means the default one."""
        name = name or "serving_default"
        try:
            return self.signatures[name]
        except KeyError:
            raise invalid(f'Serving signature name: "{name}" not found in signature def') from None


def warm_up_requests(folder: Path) -> Iterator[tuple[str, Arrays]]:
    """Signature and inputs of the Predict requests that a version brings for its warm-up."""
    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    if not path.exists():
        return
    records: Iterable[Any] = tf.data.TFRecordDataset(str(path)).take(MOST_WARM_UP_REQUESTS)
    for record in records:
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        if log.HasField("predict_log"):
            request = log.predict_log.request
            arrays = {key: array_of(tensor, key) for key, tensor in request.inputs.items()}
            yield request.model_spec.signature_name, arrays


def _code(error: tf.errors.OpError) -> str:
    if isinstance(error, (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)):
        return "INVALID_ARGUMENT"
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return "RESOURCE_EXHAUSTED"
    return "INTERNAL"


def _reason(error: tf.errors.OpError) -> str:
    """The line that says what was wrong; those around it say where in the graph."""
    lines = [line.strip() for line in (error.message or "").splitlines()]
    lines = [line for line in lines if line and not line.startswith("[[")]
    return lines[-1].partition(" [Op:")[0] if lines else type(error).__name__


def _shape(shape: tuple[int | None, ...] | None) -> str:
    return str([-1 if size is None else size for size in shape or ()]).replace(" ", "")
