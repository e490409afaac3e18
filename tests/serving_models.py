"""Small SavedModels with the signatures of the exported ones, and a server to answer for them."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path

BUCKETS, UNITS, CLASS_NAMES = 97, 4, ("negative", "positive")


def save_model(
    folder: Path, *, scale: float = 1.0, pair: bool = False, warm_up: bool = False
) -> Path:
    """Writes a version folder, whole or not at all; `scale` shows in every vector."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(7)
    table = tf.constant(rng.normal(size=(BUCKETS, UNITS)), tf.float32)
    head = tf.constant(rng.normal(size=(UNITS, len(CLASS_NAMES))), tf.float32)
    module = tf.Module()
    module.scale = tf.Variable(scale)
    spec = tf.TensorSpec([None], tf.string)

    def words(text):
        ragged = tf.strings.split(text)
        tokens = ragged.to_tensor("", shape=[None, None])
        tokens = tf.pad(tokens, [[0, 0], [0, tf.maximum(1 - tf.shape(tokens)[1], 0)]])
        return tokens, tf.cast(ragged.row_lengths(), tf.int32)

    def encode(ids, lengths):
        mask = tf.sequence_mask(lengths, tf.shape(ids)[1], dtype=tf.float32)
        return tf.reduce_sum(tf.gather(table, ids) * mask[..., None], 1) * module.scale

    def vector(text):
        tokens, lengths = words(text)
        return encode(tf.strings.to_hash_bucket_fast(tokens, BUCKETS), lengths)

    def classes(vectors):
        probabilities = tf.nn.softmax(vectors @ head)
        names = tf.constant(CLASS_NAMES)
        return {
            "label": tf.gather(names, tf.argmax(probabilities, -1)),
            "probabilities": probabilities,
            "class_names": tf.tile(names[None], [tf.shape(vectors)[0], 1]),
        }

    def attended(text, part=""):
        tokens, lengths = words(text)
        mask = tf.sequence_mask(lengths, tf.shape(tokens)[1], dtype=tf.float32)
        one = mask * tf.cast(tf.strings.length(tokens), tf.float32)
        one /= tf.maximum(tf.reduce_sum(one, 1, keepdims=True), 1.0)
        weights = tf.tile(one[:, None, None], [1, 2, 3, 1])
        weights = tf.ensure_shape(weights, [None, 2, 3, None])
        return {f"{part}tokens": tokens, f"{part}weights": weights, f"{part}lengths": lengths}

    if pair:
        parts = {"premise": spec, "hypothesis": spec}
        module.serving_default = tf.function(autograph=False)(
            lambda premise, hypothesis: classes(vector(premise) - vector(hypothesis))
        )
        module.attention = tf.function(autograph=False)(
            lambda premise, hypothesis: (
                attended(premise, "premise_") | attended(hypothesis, "hypothesis_")
            )
        )
        signatures = {
            name: getattr(module, name).get_concrete_function(**parts)
            for name in ("serving_default", "attention")
        }
    else:
        module.serving_default = tf.function(autograph=False)(lambda text: classes(vector(text)))
        module.embed = tf.function(autograph=False)(lambda text: {"vector": vector(text)})
        module.attention = tf.function(autograph=False)(lambda text: attended(text))
        module.tokens = tf.function(autograph=False)(
            lambda word_ids: classes(encode(word_ids, tf.fill([tf.shape(word_ids)[0]], 10**6)))
        )
        # No lengths, so answers of merged requests could not be parted.
        module.letters = tf.function(autograph=False)(
            lambda text: {"letters_bytes": tf.strings.bytes_split(text).to_tensor("")}
        )
        ids = tf.TensorSpec([None, None], tf.int32)
        signatures = {
            "tokens": module.tokens.get_concrete_function(word_ids=ids),
            **{
                name: getattr(module, name).get_concrete_function(text=spec)
                for name in ("serving_default", "embed", "attention", "letters")
            },
        }
    aside = folder.parent / f".aside-{folder.name}"
    tf.saved_model.save(module, str(aside), signatures=signatures)
    if warm_up:
        from tensorflow_serving.apis import prediction_log_pb2

        log = prediction_log_pb2.PredictionLog()
        request = log.predict_log.request
        request.model_spec.signature_name = "embed"
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(["warm up"]))
        (aside / "assets.extra").mkdir(exist_ok=True)
        path = aside / "assets.extra" / "tf_serving_warmup_requests"
        with tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(log.SerializeToString())
    aside.rename(folder)
    return folder


def template(basetemp: Path, name: str) -> Path:
    """A version folder to copy, made once a session: "one", "two" (vectors doubled) or "pair"."""
    folder = basetemp / "serving-models" / name
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        save_model(
            folder, scale=2.0 if name == "two" else 1.0, pair=name == "pair", warm_up=name == "one"
        )
    return folder


def model_folder(tmp_path: Path, source: Path, name: str = "demo", version: int = 1) -> Path:
    """A model of one version."""
    folder = tmp_path / name
    folder.mkdir()
    copy_version(source, folder / str(version))
    return folder


def copy_version(source: Path, target: Path) -> Path:
    """Makes a version appear whole, as an export does."""
    aside = target.parent / f".aside-{target.name}"
    shutil.copytree(source, aside)
    return aside.rename(target)


def direct(folder: Path, signature: str, **inputs):
    """What the model answers without any server, as arrays."""
    import tensorflow as tf

    model = _loaded(folder)
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    return {name: v.numpy() for name, v in model.signatures[signature](**tensors).items()}


@functools.cache
def _loaded(folder: Path):
    import tensorflow as tf

    return tf.saved_model.load(str(folder))


def ask(url: str, body: object = None, *, method: str | None = None, timeout: float = 30):
    """Status and JSON of a request; a body may be bytes as they are."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def wait_until(condition, *, seconds: float = 60):
    """Polls until a condition holds and returns what it gave."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


@contextlib.contextmanager
def serving(*folders: Path, **options):
    """A running server on free ports."""
    from dsa_keras.export.server.app import running
    from dsa_keras.export.server.options import ServerOptions

    options = {"rest_port": 0, "grpc_port": 0, "poll_seconds": 0.05, **options}
    with running(ServerOptions(tuple(folders), **options)) as server:
        yield server
