"""Warm-up requests: TF Serving answers them before it takes real ones.

The first request of each kind is slow, because kernels are made and memory is reserved. A record is
a `PredictionLog`; there is one for every signature on text and some sizes of batch and sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WARMUP = Path("assets.extra") / "tf_serving_warmup_requests"
SIZES = ((1, 1), (1, 20), (8, 20), (64, 40))
"""Sentences in a request, and words in the longest of them."""


def write_warmup(
    folder: Path, name: str, inputs: Mapping[str, Sequence[str]], words: Sequence[str]
) -> int:
    """Writes the requests and returns how many there are.

    Args:
        folder: the version.
        name: of the model, as TF Serving is told.
        inputs: names of the text inputs of each signature.
        words: to make sentences of.
    """
    import tensorflow as tf

    file = folder / WARMUP
    file.parent.mkdir(exist_ok=True)
    count = 0
    with tf.io.TFRecordWriter(str(file)) as writer:
        for signature, names in inputs.items():
            for batch, longest in SIZES:
                texts = _sentences(words, batch, longest)
                writer.write(_request(name, signature, names, texts).SerializeToString())
                count += 1
    return count


def _request(model: str, signature: str, names: Sequence[str], texts: Sequence[str]) -> Any:
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name in names:
        request.inputs[name].CopyFrom(tf.make_tensor_proto(texts, dtype=tf.string))
    return log


def _sentences(words: Sequence[str], batch: int, longest: int) -> list[str]:
    """Sentences of all lengths up to the longest, of known words where there are any."""
    words = list(words[2 : 2 + longest]) or ["word"]
    return [
        " ".join(words[place % len(words)] for place in range(max(1, longest * (row + 1) // batch)))
        for row in range(batch)
    ]
