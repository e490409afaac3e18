"""The network as it is served, and its signatures.

`Network` is the trained classifier made lean: batch norm is folded into the dense layer after it,
dropout is gone, word vectors are stored in the precision asked for. `servable` joins it with the
tokeniser and the vocabulary into signatures on raw text:

| signature | input | outputs, a row for each row in |
|---|---|---|
| `serving_default` | `text` | `label`; `probabilities` and `class_names`, `(batch, classes)` |
| `embed` | `text` | `vector`, `(batch, units)` |
| `attention` | `text` | `tokens`, `(batch, words)`; `lengths`, `(batch,)`; `weights`, `(batch, |
| | | iterations, attentions, words)` |
| `tokens` | `word_ids`, `(batch, words)` | those of `serving_default`, and `vector` |

In ids 0 is padding; numbers that no word has are the unknown word.

Models of sentence pairs take `premise` and `hypothesis` (`premise_ids` and `hypothesis_ids`), and
give what belongs to one of them under `premise_...` and `hypothesis_...`; their `embed` takes one
`text`. Encoders without attention have no `attention`.

Any string is answered: words beyond `MAX_WORDS` are ignored, bytes that are not UTF-8 are unknown
characters, and a text without words has the zero vector. A batch is encoded in groups of sentences
of similar length, each of at most `POSITIONS` positions, so that one long sentence costs its own
length and not that of a padded batch, and memory stays bounded. Small groups were also the fastest
form in one session on two busy cores: 256 sentences of SNLI's lengths took 140 ms (single DSA) and
287 ms (multiple) in groups of 512 positions, 1.8 s and 2.4 s as one padded batch, 0.6 s and 0.7 s
packed into one row. Packing pays for small batches only (32 sentences: 16 ms against 22).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.data import MAX_WORDS, tokenize_tensor
from dsa_keras.layers import MLPHead
from dsa_keras.models import trace_encoder
from dsa_keras.models.classifiers import is_pair_classifier
from export.quantization import WordTable

POSITIONS = 512
"""Sentences are encoded together as long as they take no more positions, padding included."""

PARTS = ("premise", "hypothesis")
"""The inputs of a model of pairs."""

Tensors = dict[str, Any]


class Network:
    """A classifier for inference; not trackable itself, so that only `variables` are saved.

    Args:
        classifier: from `build_classifier` or `build_pair_classifier`, with its weights.
        vectors: the word vectors `(words, dimension)`, in place of the classifier's own.
        precision: how they are stored.
    """

    def __init__(
        self, classifier: keras.Model, vectors: np.ndarray, precision: str = "float32"
    ) -> None:
        self.is_pair = is_pair_classifier(classifier)
        self.vocabulary_size = len(vectors)
        table = WordTable(vectors, precision, name="embedding")
        trained = classifier.get_layer("encoder")
        self._encoder = keras.models.clone_model(
            trained, clone_function=lambda layer: table if layer.name == "embedding" else layer
        )
        attends = any(layer.name == "attention" for layer in trained.layers)
        self._trace = trace_encoder(self._encoder) if attends else None
        self._matching = classifier.get_layer("matching") if self.is_pair else None
        self._slope = classifier.get_layer("head").negative_slope
        self._dense = fold(classifier.get_layer("head"))
        self.variables = [
            *table.tables,
            *(weight.value for layer in self._encoder.layers for weight in layer.weights),
            *(part for dense in self._dense for part in dense),
        ]

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return self._trace is not None

    @property
    def units(self) -> int:
        """Size of a sentence vector."""
        return self._encoder.output_shape[-1]

    @property
    def weights_shape(self) -> tuple[int, int]:
        """Iterations and attentions."""
        assert self._trace is not None
        return tuple(self._trace.output["attention_weights"].shape[1:3])

    def encode(self, ids: Any) -> Any:
        """Vectors of padded sentences, of at least one position."""
        return self._encoder(ids, training=False)

    def attend(self, ids: Any) -> Any:
        """Attention weights `(batch, iterations, attentions, words)` of padded sentences."""
        assert self._trace is not None
        return self._trace(ids, training=False)["attention_weights"]

    def probabilities(self, *vectors: Any) -> Any:
        """Classes of sentences, or of premises and hypotheses, by their vectors."""
        x = vectors[0] if self._matching is None else self._matching([vectors[1], vectors[0]])
        *hidden, (kernel, bias) = self._dense
        for weights, shift in hidden:
            x = tf.nn.leaky_relu(tf.matmul(x, weights) + shift, self._slope)
        return tf.nn.softmax(tf.matmul(x, kernel) + bias)


def fold(head: MLPHead) -> list[tuple[tf.Variable, tf.Variable]]:
    """Kernel and bias of the head's dense layers, each with the batch norm before it folded in."""
    return [
        (tf.Variable(kernel, trainable=False), tf.Variable(bias, trainable=False))
        for kernel, bias in head.folded()
    ]


def in_groups(function: Callable[[Any], Any], ids: Any, shape: Sequence[int | None]) -> Any:
    """Applies `function` to padded ids, some sentences of similar length at a time.

    Args:
        function: takes ids `(sentences, words)` and gives a row for each sentence. Its last axis
            may be the words.
        ids: `(batch, words)`, at least one word wide.
        shape: of a row of the result; None for the axis of the words, which must be the last.
    """
    batch, width = tf.unstack(tf.shape(ids))
    lengths = tf.maximum(_lengths(ids), 1)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)

    def group(start: Any, rows: Any) -> tuple[Any, Any]:
        longest = tf.gather(lengths, tf.gather(order, start))
        end = tf.minimum(start + tf.maximum(POSITIONS // longest, 1), batch)
        new = function(tf.gather(ids, order[start:end])[:, :longest])
        if shape[-1] is None:
            around = [[0, 0]] * len(shape)
            new = tf.pad(new, [*around, [0, width - longest]])
        return end, tf.concat([rows, new], axis=0)

    none = tf.zeros([0, *(width if size is None else size for size in shape)])
    _, rows = tf.while_loop(
        lambda start, _: start < batch,
        group,
        (0, none),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, *shape])),
        parallel_iterations=1,
    )
    return tf.gather(rows, tf.math.invert_permutation(order))


class Servable(tf.Module):
    """What `tf.saved_model.save` writes: variables, the vocabulary's table, the signatures."""

    def __init__(
        self,
        network: Network,
        vocabulary_file: str | os.PathLike[str],
        tokenizer: str,
        class_names: Sequence[str],
    ) -> None:
        super().__init__()
        self.saved = network.variables
        entries = tf.lookup.TextFileInitializer(
            os.fspath(vocabulary_file),
            key_dtype=tf.string,
            key_index=tf.lookup.TextFileIndex.WHOLE_LINE,
            value_dtype=tf.int64,
            value_index=tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.table = tf.lookup.StaticHashTable(entries, default_value=1)
        self.endpoints = _signatures(network, self.table, tokenizer, tuple(class_names))


def _signatures(
    network: Network, table: Any, tokenizer: str, class_names: tuple[str, ...]
) -> dict[str, Any]:
    inputs = PARTS if network.is_pair else ("text",)
    prefixes = {name: f"{name}_" if network.is_pair else "" for name in inputs}
    ids_of = {name: f"{name}_ids" if network.is_pair else "word_ids" for name in inputs}

    def words(texts: Any) -> tuple[Any, Any]:
        """Words `(batch, words)` and how many of them each text has."""
        ragged = tokenize_tensor(texts, tokenizer)[:, :MAX_WORDS]
        return _at_least_one(ragged.to_tensor("")), tf.cast(ragged.row_lengths(), tf.int32)

    def look_up(texts: Any) -> tuple[Any, Any, Any]:
        tokens, lengths = words(texts)
        # Line 0 holds the name of the padding, which as a word of a text is unknown like any other.
        ids = tf.maximum(tf.cast(table.lookup(tokens), tf.int32), 1)
        real = tf.sequence_mask(lengths, tf.shape(tokens)[1])
        return tf.where(real, ids, 0), tokens, lengths

    def encode(parts: Sequence[Any]) -> list[Any]:
        """Vectors of each part; all parts go through one copy of the encoder."""
        width = tf.reduce_max([tf.shape(part)[1] for part in parts])
        rows = tf.concat(
            [tf.pad(part, [[0, 0], [0, width - tf.shape(part)[1]]]) for part in parts], axis=0
        )
        return tf.split(in_groups(network.encode, rows, [network.units]), len(parts))

    def classify(parts: Sequence[Any]) -> tuple[Tensors, list[Any]]:
        vectors = encode(parts)
        probabilities = network.probabilities(*vectors)
        names = tf.constant(class_names)
        outputs = {
            "label": tf.gather(names, tf.argmax(probabilities, axis=-1)),
            "probabilities": probabilities,
            "class_names": tf.tile(tf.expand_dims(names, 0), [tf.shape(probabilities)[0], 1]),
        }
        return outputs, vectors

    def serving_default(**texts: Any) -> Tensors:
        with tf.control_dependencies(_as_many(texts)):
            return classify([look_up(texts[name])[0] for name in inputs])[0]

    def embed(text: Any) -> Tensors:
        return {"vector": encode([look_up(text)[0]])[0]}

    def attention(**texts: Any) -> Tensors:
        outputs: Tensors = {}
        with tf.control_dependencies(_as_many(texts)):
            for name, prefix in prefixes.items():
                ids, tokens, lengths = look_up(texts[name])
                weights = in_groups(network.attend, ids, [*network.weights_shape, None])
                outputs |= {
                    f"{prefix}tokens": tokens,
                    f"{prefix}weights": weights,
                    f"{prefix}lengths": lengths,
                }
        return outputs

    def tokens(**ids: Any) -> Tensors:
        with tf.control_dependencies(_as_many(ids)):
            parts = [_known(ids[ids_of[name]], network.vocabulary_size) for name in inputs]
            outputs, vectors = classify(parts)
        named = zip(prefixes.values(), vectors, strict=True)
        return outputs | {f"{prefix}vector": one for prefix, one in named}

    strings = {name: tf.TensorSpec([None], tf.string, name=name) for name in inputs}
    numbers = {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in ids_of.values()}
    one_text = {"text": tf.TensorSpec([None], tf.string, name="text")}
    functions: dict[str, tuple[Callable[..., Tensors], dict[str, Any]]] = {
        "serving_default": (serving_default, strings),
        "embed": (embed, one_text),
        "tokens": (tokens, numbers),
    }
    if network.attends:
        functions["attention"] = (attention, strings)
    return {
        name: tf.function(function, autograph=False).get_concrete_function(**specs)
        for name, (function, specs) in functions.items()
    }


def ids_function(network: Network) -> tuple[Callable[..., Tensors], list[tf.TensorSpec]]:
    """The plain network on ids, for formats without strings: a function and its inputs.

    It takes ids as `tokens` does, padded to at least one position, and gives `probabilities` and
    the vectors; nothing is checked, nothing is split into groups.
    """
    names = [f"{part}_ids" for part in PARTS] if network.is_pair else ["word_ids"]

    def function(*ids: Any) -> Tensors:
        vectors = [network.encode(part) for part in ids]
        prefixes = [f"{part}_" for part in PARTS] if network.is_pair else [""]
        named = zip(prefixes, vectors, strict=True)
        return {
            "probabilities": network.probabilities(*vectors),
            **{f"{prefix}vector": one for prefix, one in named},
        }

    return function, [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]


def _lengths(ids: Any) -> Any:
    """Words of each sentence, padding between them included, padding after them not."""
    places = tf.range(1, tf.shape(ids)[1] + 1)
    return tf.reduce_max(tf.where(tf.equal(ids, 0), 0, places), axis=1)


def _at_least_one(rows: Any) -> Any:
    """A batch in which no sentence has a word still has one position."""
    missing = tf.maximum(1 - tf.shape(rows)[1], 0)
    return tf.pad(
        rows, [[0, 0], [0, missing]], constant_values="" if rows.dtype == tf.string else 0
    )


def _known(ids: Any, vocabulary_size: int) -> Any:
    """A client's ids, cut at `MAX_WORDS`; numbers that are no word's are the unknown word."""
    ids = _at_least_one(ids[:, :MAX_WORDS])
    return tf.where((ids >= 0) & (ids < vocabulary_size), ids, 1)


def _as_many(parts: Mapping[str, Any]) -> list[Any]:
    """Fails unless there are as many hypotheses as premises."""
    sizes = [tf.shape(part)[0] for part in parts.values()]
    message = "premise and hypothesis must be as many"
    return [tf.debugging.assert_equal(sizes[0], size, message=message) for size in sizes[1:]]
