"""The ways in which `verify` asks for answers: Keras, the SavedModel by three loaders, ONNX.

A way takes chunks of texts and gives the outputs of each signature as numpy arrays, strings as
`str`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.errors import RunError
from dsa_keras.export import c_loader
from dsa_keras.export.reference import Answers
from dsa_keras.inputs import Text

if TYPE_CHECKING:
    from dsa_keras.config import ModelConfig
    from dsa_keras.export.onnx_runtime import OnnxModel

Requests = dict[str, dict[str, Any]]
"""Inputs by name, by signature: lists of texts, or arrays of ids."""


def by_tensorflow(folder: Path, chunks: Sequence[Requests]) -> list[Answers]:
    """Answers of `tf.saved_model.load`."""
    import tensorflow as tf

    signatures = tf.saved_model.load(str(folder)).signatures
    return [
        {
            name: {
                output: _decoded(value.numpy())
                for output, value in signatures[name](
                    **{key: tf.constant(value) for key, value in inputs.items()}
                ).items()
            }
            for name, inputs in requests.items()
        }
        for requests in chunks
    ]


def by_cpp(folder: Path, chunks: Sequence[Requests]) -> list[Answers]:
    """Answers of the C++ loader, in a process that never imports Python's TensorFlow."""
    from dsa_keras.export.audit import read_saved_model

    definitions = read_saved_model(folder).signature_def
    asked, names = [], []
    for requests in chunks:
        for signature, inputs in requests.items():
            definition = definitions[signature]
            asked.append(
                {
                    "inputs": {
                        definition.inputs[key].name: _for_c(value) for key, value in inputs.items()
                    },
                    "outputs": [one.name for one in definition.outputs.values()],
                }
            )
            names.append({one.name: key for key, one in definition.outputs.items()})
    command = [sys.executable, "-P", c_loader.__file__, str(folder.resolve())]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RunError(f"the C++ loader failed: {reason}", where=folder)
    result = json.loads(done.stdout)
    if result["python_tensorflow"]:
        raise RunError("Python's TensorFlow was imported, so nothing is shown", where=folder)
    outputs = iter(
        {key: _from_c(answer[tensor]) for tensor, key in named.items()}
        for answer, named in zip(result["answers"], names, strict=True)
    )
    return [{name: next(outputs) for name in requests} for requests in chunks]


def by_serve(folder: Path, chunks: Sequence[Requests]) -> list[Answers]:
    """Answers of `dsa-keras serve` over REST."""
    from dsa_keras.export.audit import read_saved_model

    definitions = read_saved_model(folder).signature_def
    outputs = {name: list(one.outputs) for name, one in definitions.items()}
    with _serving(folder) as url:
        return [
            {name: _posted(url, name, inputs, outputs[name]) for name, inputs in requests.items()}
            for requests in chunks
        ]


def by_onnx(
    model: OnnxModel, config: ModelConfig, chunks: Sequence[Sequence[Text]]
) -> list[Answers]:
    """Answers of the ONNX file by its own tokeniser."""
    first = config.inputs.signature[0]
    return [
        {
            "serving_default": config.objective.served_of(model.numbers(texts)),
            "embed": {"vector": model.encode(config.inputs.columns(texts)[first])},
        }
        for texts in chunks
    ]


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Starts a server on a free port; gives the address that predicts with this version."""
    command = [sys.executable, "-m", "dsa_keras", "serve", str(folder.parent)]
    command += ["--rest-port", "0", "--grpc-port", "0", "--label", f"verify={folder.name}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield f"{_address(process)}/v1/models/{folder.parent.name}/versions/{folder.name}:predict"
    finally:
        process.terminate()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    """What the server prints when it is ready."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line.strip())
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip(".,;").split("/v1")[0].rstrip("/")
    raise RunError(f"serve did not start: {said[-1] if said else 'it said nothing'}")


def _posted(
    url: str, signature: str, inputs: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    values = {
        key: value.tolist() if isinstance(value, np.ndarray) else [_b64(one) for one in value]
        for key, value in inputs.items()
    }
    body = json.dumps({"signature_name": signature, "inputs": values}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            outputs = json.load(response)["outputs"]
    except urllib.error.HTTPError as error:
        raise RunError(f"serve refused {signature}: {error.read().decode()}") from None
    if len(names) == 1:
        # The REST interface leaves out the name of a lone output.
        outputs = {names[0]: outputs}
    return {key: _array(value) for key, value in outputs.items()}


def _b64(text: str) -> dict[str, str]:
    return {"b64": base64.b64encode(text.encode()).decode()}


def _for_c(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"ids": value.tolist()}
    return {"strings": [_b64(text)["b64"] for text in value]}


def _from_c(value: Mapping[str, Any]) -> np.ndarray:
    values = value["values"]
    if values and isinstance(values[0], str):
        values = [base64.b64decode(one).decode() for one in values]
    return _array(values).reshape(value["shape"])


def _array(values: Any) -> np.ndarray:
    array = np.array(values)
    return array.astype(object) if array.dtype.kind == "U" else array


def _decoded(array: np.ndarray) -> np.ndarray:
    if array.dtype != object:
        return array
    flat = np.array([one.decode() for one in array.ravel()], object)
    return flat.reshape(array.shape)
