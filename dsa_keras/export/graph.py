"""The network as it is served, and its signatures.

`ServedNetwork` is the trained network made lean: the head in its form for inference (of an MLP,
batch norm is folded into the dense layer after it), no dropout, word vectors in the precision asked
for. `Servable` joins it with the tokeniser and the vocabulary into signatures on raw text:

| signature | input | outputs, a row for each row in |
|---|---|---|
| `serving_default` | `text` | what the objective serves (`Objective.served`): of a classifier |
| | | `label`; `probabilities` and `class_names`, `(batch, classes)`; of a regression `number` |
| `embed` | `text` | `vector`, `(batch, units)` |
| `attention` | `text` | `tokens`, `(batch, words)`; `lengths`, `(batch,)`; `weights`, `(batch, |
| | | iterations, attentions, words)` |
| `tokens` | `word_ids`, `(batch, words)` | those of `serving_default`, and `vector` |

In ids 0 is padding; numbers that no word has are the unknown word.

Models of sentence pairs take `premise` and `hypothesis` (`premise_ids` and `hypothesis_ids`), and
give what belongs to one of them under `premise_...` and `hypothesis_...`; their `embed` takes one
`text`. Encoders without attention have no `attention`.

Any string is answered: words beyond `MAX_WORDS` are ignored, bytes that are not UTF-8 are unknown
characters, and a text without words has a finite vector, of our encoders zero. A batch is encoded
in groups of sentences of similar length, each of at most `POSITIONS` positions, so that one long
sentence costs its own length and not that of a padded batch, and memory stays bounded. Small groups
were also the fastest form in one session on two busy cores: 256 sentences of SNLI's lengths took
140 ms (single DSA) and 287 ms (multiple) in groups of 512 positions, 1.8 s and 2.4 s as one padded
batch, 0.6 s and 0.7 s packed into one row. Packing pays for small batches only (32 sentences: 16 ms
against 22).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dsa_keras.data import MAX_WORDS, tokenize_tensor
from dsa_keras.export.quantization import WordTable
from dsa_keras.inputs import SENTENCE
from dsa_keras.keras_private import float32_policy
from dsa_keras.models import Network

POSITIONS = 512
"""Sentences are encoded together as long as they take no more positions, padding included."""

Tensors = dict[str, Any]


class ServedNetwork:
    """A network for inference; not trackable itself, so that only `variables` are saved.

    Args:
        network: with its weights.
        vectors: the word vectors `(words, dimension)`; None takes the network's own.
        precision: how they are stored.
    """

    def __init__(
        self, network: Network, vectors: np.ndarray | None = None, precision: str = "float32"
    ) -> None:
        config = network.config
        self.inputs, self.objective = config.inputs, config.objective
        vectors = network.vectors if vectors is None else vectors
        self.vocabulary_size, self.units = len(vectors), network.units
        with float32_policy():
            table = WordTable(vectors, precision, name="embedding")
            self._encoder = network.encoder_on(table)
            attends = config.encoder.attends
            self._trace = network.traced_encoder_on(table) if attends else None
        self._features = network.features
        self._raw, of_head = network.config.head.inference(network.head)
        self.variables = [
            *table.tables,
            *(weight.value for weight in self._encoder.weights),
            *of_head,
        ]

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return self._trace is not None

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

    def numbers(self, vectors: Sequence[Any]) -> Any:
        """What the model says in numbers, by the vectors of each input in order."""
        return self.objective.numbers(self._raw(self._features(vectors)))


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
        network: ServedNetwork,
        vocabulary_file: str | os.PathLike[str],
        tokenizer: str,
        lowercase: bool,
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
        self.endpoints = _signatures(network, self.table, tokenizer, lowercase)


def _signatures(
    network: ServedNetwork, table: Any, tokenizer: str, lowercase: bool
) -> dict[str, Any]:
    inputs = network.inputs
    (one_text,) = SENTENCE.signature

    def words(texts: Any) -> tuple[Any, Any]:
        """Words `(batch, words)` and how many of them each text has."""
        ragged = tokenize_tensor(texts, tokenizer, lowercase)[:, :MAX_WORDS]
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

    def answer(parts: Sequence[Any]) -> tuple[Tensors, list[Any]]:
        vectors = encode(parts)
        return network.objective.served(network.numbers(vectors)), vectors

    def serving_default(**texts: Any) -> Tensors:
        with tf.control_dependencies(_as_many(texts)):
            return answer([look_up(texts[name])[0] for name in inputs.signature])[0]

    def embed(**texts: Any) -> Tensors:
        return {"vector": encode([look_up(texts[one_text])[0]])[0]}

    def attention(**texts: Any) -> Tensors:
        outputs: Tensors = {}
        with tf.control_dependencies(_as_many(texts)):
            for prefix, name in inputs.by_prefix(inputs.signature).items():
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
            parts = [_known(ids[name], network.vocabulary_size) for name in inputs.ids]
            outputs, vectors = answer(parts)
        return outputs | _named_vectors(network, vectors)

    strings = {name: tf.TensorSpec([None], tf.string, name=name) for name in inputs.signature}
    numbers = {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in inputs.ids}
    functions: dict[str, tuple[Callable[..., Tensors], dict[str, Any]]] = {
        "serving_default": (serving_default, strings),
        "embed": (embed, {one_text: tf.TensorSpec([None], tf.string, name=one_text)}),
        "tokens": (tokens, numbers),
    }
    if network.attends:
        functions["attention"] = (attention, strings)
    return {
        name: tf.function(function, autograph=False).get_concrete_function(**specs)
        for name, (function, specs) in functions.items()
    }


def ids_function(network: ServedNetwork) -> tuple[Callable[..., Tensors], list[tf.TensorSpec]]:
    """The plain network on ids, for formats without strings: a function and its inputs.

    It takes ids as `tokens` does, padded to at least one position, and gives the numbers under the
    name that the objective has for them, and the vectors; nothing is checked, nothing is split into
    groups.
    """

    def function(*ids: Any) -> Tensors:
        vectors = [network.encode(part) for part in ids]
        numbers = {network.objective.output: network.numbers(vectors)}
        return numbers | _named_vectors(network, vectors)

    names = network.inputs.ids
    return function, [tf.TensorSpec([None, None], tf.int32, name=name) for name in names]


def _named_vectors(network: ServedNetwork, vectors: Sequence[Any]) -> Tensors:
    return {f"{prefix}vector": one for prefix, one in network.inputs.by_prefix(vectors).items()}


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
    """Fails unless there are as many of one input as of another."""
    sizes = [tf.shape(part)[0] for part in parts.values()]
    message = f"{' and '.join(parts)} must be as many"
    return [tf.debugging.assert_equal(sizes[0], size, message=message) for size in sizes[1:]]
