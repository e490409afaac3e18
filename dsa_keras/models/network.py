"""The network of a `ModelConfig`: its layers, and the models that join them for each use.

There is one set of layers, and so of weights. `model` and `encoder` take padded ids, `packed_model`
and `packed_encoder` packed ones (the form that trains), `traced_encoder` gives what is attended to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from dsa_keras.config import ModelConfig
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError
from dsa_keras.keras_private import dtype_policy
from dsa_keras.layers import GatherSentences, UnpackIds, WordEmbedding


def _in_own_policy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Gives what a method of a `Network` makes the dtype policy that its layers have."""

    @functools.wraps(method)
    def made(network: Network, *args: Any) -> Any:
        with dtype_policy(network.policy):
            return method(network, *args)

    return made


class Network:
    """A network and the models on its layers.

    Whenever a model is asked for, it computes in the dtype policy that was Keras's when the network
    was made.

    Args:
        config: what the network is.

    Example:

    >>> from dsa_keras.datasets import preset
    >>> network = Network(preset("snli").model.replace(vocabulary_size=1000))
    >>> network.encoder(np.array([[5, 7, 9, 0]])).shape
    TensorShape([1, 600])
    >>> network.model({"premise": np.array([[5, 7, 9]]), "hypothesis": np.array([[5, 7]])}).shape
    TensorShape([1, 3])
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.inputs = config.inputs
        self.policy = keras.config.dtype_policy()
        # Making a layer draws seeds for its weights, so a seed means what it does in this order.
        if self.inputs.is_pair:
            self._make_encoder()
            self._make_head()
        else:
            self._make_head()
            self._make_encoder()
        self.matching = config.head.matching() if self.inputs.is_pair else None

    def _make_head(self) -> None:
        self.head = self.config.head.layer(self.config.objective.num_outputs)

    def _make_encoder(self) -> None:
        config = self.config
        self.embedding = WordEmbedding(
            config.vocabulary_size,
            config.embedding_dim,
            dropout=config.embedding_dropout,
            train_vectors=config.train_embeddings,
            name="embedding",
        )
        layers = config.encoder.layers()
        self.layers: dict[str, keras.Layer] = {layer.name: layer for layer in layers}
        if len(self.layers) < len(layers) or self.layers.keys() & {"embedding", "head", "matching"}:
            raise ConfigError(
                f"the layers of the encoder {config.encoder.name} need names of their own. "
                f"Received: {', '.join(layer.name for layer in layers)}",
                hint="embedding, head and matching are taken",
            )
        self.encoder = self.encoder_on(self.embedding)

    @functools.cached_property
    @_in_own_policy
    def model(self) -> keras.Model:
        """From word ids to raw outputs.

        Its input is ids `(batch, words)`; for two sentences a dictionary of them by name, each with
        a length of its own.
        """
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name) for name in self.inputs.signature
        }
        raw = self.head(self.features([self.encoder(ids) for ids in inputs.values()]))
        if not self.inputs.is_pair:
            return keras.Model(inputs["text"], raw, name="model")
        return keras.Model(inputs, raw, name="pair_model")

    @functools.cached_property
    @_in_own_policy
    def packed_model(self) -> keras.Model:
        """The same on packed batches, from the inputs of `packed_encoder` to raw outputs.

        `index` says which sentence each example is about, counted from 0: `(batch,)`, or
        `(batch, 2)` for two.
        """
        inputs = _packed_inputs((2,) if self.inputs.is_pair else ())
        features = self._packed_features(inputs)
        return keras.Model(inputs, self.head(features), name="packed_model")

    @functools.cached_property
    @_in_own_policy
    def packed_features(self) -> keras.Model:
        """The part of `packed_model` up to what its head sees: `(batch, features)`."""
        inputs = _packed_inputs((2,) if self.inputs.is_pair else ())
        return keras.Model(inputs, self._packed_features(inputs), name="packed_features")

    @functools.cached_property
    @_in_own_policy
    def packed_encoder(self) -> keras.Model:
        """The encoder on packed words.

        Its inputs are `word_ids` and `segment_ids`, both `(rows, words)`, in the convention of
        `DynamicSelfAttention`; and `index`, which only says by its number of entries how many
        segments a row has at most. Its output is `(rows, segments, units)`, or for an encoder that
        takes padded words only `(rows * segments, units)`.
        """
        inputs = _packed_inputs(())
        return keras.Model(inputs, self._encode_packed(inputs), name="packed_encoder")

    @functools.cached_property
    def traced_encoder(self) -> keras.Model:
        """The encoder with what it attends to; see `AttentionLayer.trace`.

        Raises:
            ConfigError: if the encoder does not attend.
        """
        return self.traced_encoder_on(self.embedding)

    @property
    def units(self) -> int:
        """Size of a sentence vector."""
        return self.encoder.output_shape[-1]

    @_in_own_policy
    def encoder_on(self, embedding: keras.Layer) -> keras.Model:
        """The encoder on another layer that gives words their vectors."""
        word_ids = keras.Input((None,), dtype="int32", name="word_ids")
        vectors = self.config.encoder.encode_ids(self.layers, embedding, word_ids)
        return keras.Model(word_ids, vectors, name="encoder")

    @_in_own_policy
    def traced_encoder_on(self, embedding: keras.Layer) -> keras.Model:
        """The traced encoder on another layer that gives words their vectors."""
        check_attends(self.config)
        word_ids = keras.Input((None,), dtype="int32", name="word_ids")
        outputs = self.config.encoder.trace(self.layers, embedding, word_ids)
        return keras.Model(word_ids, outputs, name="traced_encoder")

    def word_tables(self) -> Any:
        """What encodes many sentences by tables of their words, or None; see `TabledEncoder`."""
        if not self.config.encoder.has_word_tables:
            return None
        return self.config.encoder.word_tables(self.embedding, self.layers)

    def features(self, vectors: Sequence[Any]) -> Any:
        """What the head sees of the sentences of each example, given in order."""
        if self.matching is None:
            return vectors[0]
        return self.config.head.joined(self.matching, vectors)

    def assign_vectors(self, matrix: Any) -> None:
        """Puts word vectors `(vocabulary_size, embedding_dim)` into the network."""
        self.embedding.assign_vectors(matrix)

    @property
    def vectors(self) -> np.ndarray:
        """The word vectors."""
        return np.array(self.embedding.vectors)

    def named_weights(self) -> dict[str, Any]:
        """The weights by path, without fixed word vectors.

        Raises:
            ConfigError: if two weights have one path, since one would be lost when they are saved.
        """
        fixed = {id(one) for one in self.embedding.weights} if self._fixed_vectors else set()
        named: dict[str, Any] = {}
        for variable in self.model.weights:
            if id(variable) in fixed:
                continue
            if variable.path in named:
                raise ConfigError(
                    f"the network has two weights {variable.path!r}",
                    where=self.config.encoder.name,
                    hint="Give each layer of the encoder, and each of its sub-layers, a name",
                )
            named[variable.path] = variable
        return named

    @property
    def _fixed_vectors(self) -> bool:
        return not self.config.train_embeddings

    def _packed_features(self, inputs: dict[str, Any]) -> Any:
        sentences = self._encode_packed(inputs)
        vectors = GatherSentences(name="sentences")(sentences, index=inputs["index"])
        if not self.inputs.is_pair:
            return vectors
        return self.features([vectors[:, number] for number in range(self.inputs.count)])

    def _encode_packed(self, inputs: dict[str, Any]) -> Any:
        encoder, num_segments = self.config.encoder, ops.size(inputs["index"])
        form = {"segment_ids": inputs["segment_ids"], "num_segments": num_segments}
        if encoder.packs:
            return encoder.encode_ids(self.layers, self.embedding, inputs["word_ids"], **form)
        ids = UnpackIds(name="unpacked")(inputs["word_ids"], **form)
        return encoder.encode_ids(self.layers, self.embedding, ids)


def check_attends(config: ModelConfig) -> None:
    """Refuses an encoder that has no attention.

    Raises:
        ConfigError: if there is nothing to look at.
    """
    if not config.encoder.attends:
        attending = [one.name for one in ENCODERS if one.attends]
        raise ConfigError(
            f"the encoder {config.encoder.name} has no attention to look at",
            hint=f"Encoders with attention: {', '.join(attending)}",
        )


def _packed_inputs(index: tuple[int, ...]) -> dict[str, Any]:
    words, segments = (
        keras.Input((None,), dtype="int32", name=name) for name in ("word_ids", "segment_ids")
    )
    of_examples = keras.Input(index, dtype="int32", name="index")
    return {"index": of_examples, "segment_ids": segments, "word_ids": words}
