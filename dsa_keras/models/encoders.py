"""Sentence encoders: word ids in, sentence vectors out.

An encoder is a chain of named layers. `build_encoder` joins them into a functional model on padded
ids; `pack_encoder` and `trace_encoder` join the same layer objects, found by name, into models with
other inputs or outputs. So there is one set of weights and one definition of the network.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from dsa_keras.config import ModelConfig
from dsa_keras.layers import (
    ConvMaxPooling,
    DenseConvBlock,
    DynamicSelfAttention,
    HeDropout,
    PackedBiLSTM,
    SelfAttention,
    TracedAttention,
    WordCompression,
    WordEmbedding,
)
from dsa_keras.layers.masked_words import trust_masked_words

ATTENTION = "attention"
"""Name of the attention layer in encoders that have one."""


def build_encoder(config: ModelConfig) -> keras.Model:
    """Builds the model from word ids `(batch, words)` to sentence vectors `(batch, units)`.

    Id 0 is padding. A sentence has the same vector alone, in any batch, in any order and under any
    padding. A sentence without words has the zero vector. Put word vectors in with
    `assign_vectors`.

    Example:

    >>> encoder = build_encoder(ModelConfig(encoder="dsa-single", vocabulary_size=1000))
    >>> encoder(np.array([[5, 7, 9, 0]])).shape
    TensorShape([1, 600])
    """
    word_ids = keras.Input((None,), dtype="int32", name="word_ids")
    vectors = _encode(_layers(config), word_ids)
    return keras.Model(word_ids, vectors, name="encoder")


def pack_encoder(encoder: keras.Model) -> keras.Model:
    """The same encoder on packed words: shares the layers, and so the weights, of `encoder`.

    Its inputs are `word_ids` and `segment_ids`, both `(rows, words)`, in the convention of
    `DynamicSelfAttention`; and `index`, which only says by its number of entries
    how many segments a row has at most. XLA compiles all but the BiLSTMs, whose steps depend on the
    lengths.

    Output: `(rows, segments, units)`.
    """
    word_ids, segment_ids = (
        keras.Input((None,), dtype="int32", name=name) for name in ("word_ids", "segment_ids")
    )
    index = keras.Input((), dtype="int32", name="index")
    inputs = {"index": index, "segment_ids": segment_ids, "word_ids": word_ids}
    vectors = encode_packed(encoder, word_ids, segment_ids, index)
    return keras.Model(inputs, vectors, name="packed_encoder")


def encode_packed(encoder: keras.Model, word_ids: Any, segment_ids: Any, index: Any) -> Any:
    """Applies the encoder's layers to packed words; see `pack_encoder`."""
    layers = {layer.name: layer for layer in encoder.layers}
    return _encode(layers, word_ids, segment_ids=segment_ids, num_segments=ops.size(index))


def trace_encoder(encoder: keras.Model) -> keras.Model:
    """The same encoder, with what it attends to.

    Its outputs are `vectors`, `attention_weights` and `weight_vectors`.
    `attention_weights` are `(batch, iterations, attentions, words)` and `weight_vectors` are
    `(batch, iterations, attentions, units)`; static self-attention has one iteration and no weight
    vectors.

    Raises:
        ValueError: if the encoder has no attention.
    """
    layers = {layer.name: layer for layer in encoder.layers}
    if ATTENTION not in layers:
        raise ValueError(
            "`encoder` has no attention to look at: it must be a DSA or self-attention encoder."
        )
    layers[ATTENTION] = TracedAttention(layers[ATTENTION], name="traced_attention")
    word_ids = keras.Input((None,), dtype="int32", name="word_ids")
    return keras.Model(word_ids, _encode(layers, word_ids), name="traced_encoder")


def assign_vectors(model: keras.Model, matrix: Any) -> None:
    """Puts word vectors `(vocabulary_size, embedding_dim)` into an encoder or a classifier."""
    encoder = model if model.name == "encoder" else model.get_layer("encoder")
    encoder.get_layer("embedding").assign_vectors(matrix)


def _layers(config: ModelConfig) -> dict[str, keras.Layer]:
    """The layers of an encoder, by name, in the order in which `_encode` applies them."""
    layers: list[keras.Layer] = [
        WordEmbedding(
            config.vocabulary_size,
            config.embedding_dim,
            dropout=config.embedding_dropout,
            train_vectors=config.train_embeddings,
            name="embedding",
        )
    ]
    if config.encoder in ("dsa-single", "dsa-multiple", "self-attention"):
        initializer = HeDropout(config.dropout, config.initial_scale)
        layers += [
            trust_masked_words(
                DenseConvBlock(
                    kernel_size,
                    filters=config.filters,
                    first_filters=config.first_filters,
                    num_layers=config.num_dense_layers,
                    dropout=config.dropout,
                    kernel_initializer=initializer.clone(),
                    name=f"dense_conv_{number}",
                )
            )
            for number, kernel_size in enumerate(config.kernel_sizes, start=1)
        ]
        layers.append(
            trust_masked_words(
                WordCompression(
                    config.compressed_units,
                    dropout=config.dropout,
                    kernel_initializer=initializer.clone(),
                    name="compression",
                )
            )
        )
        layers.append(trust_masked_words(_attention(config)))
    elif config.encoder == "cnn":
        layers.append(ConvMaxPooling(config.cnn_widths, config.cnn_filters, name="pooling"))
    else:
        attends = config.encoder == "bilstm-self-attention"
        lstm = keras.layers.LSTM(config.lstm_units, return_sequences=attends, name="lstm")
        layers.append(keras.layers.Bidirectional(lstm, name="bilstm"))
        if attends:
            attention = SelfAttention(2 * config.lstm_units, project=False, name=ATTENTION)
            layers.append(trust_masked_words(attention))
    return {layer.name: layer for layer in layers}


def _attention(config: ModelConfig) -> keras.Layer:
    if config.encoder == "self-attention":
        return SelfAttention(config.units, num_attentions=config.num_attentions, name=ATTENTION)
    return DynamicSelfAttention(
        config.units,
        num_attentions=config.num_attentions,
        num_iterations=config.num_iterations,
        stop_routing_gradient=config.stop_routing_gradient,
        name=ATTENTION,
    )


def _encode(
    layers: dict[str, keras.Layer],
    word_ids: Any,
    segment_ids: Any = None,
    num_segments: Any = None,
) -> Any:
    """Applies the layers; what follows the embedding tells which encoder it is."""
    packed = (
        {} if segment_ids is None else {"segment_ids": segment_ids, "num_segments": num_segments}
    )
    blocks = [layer for layer in layers.values() if isinstance(layer, DenseConvBlock)]
    if blocks:
        x0 = layers["embedding"](word_ids)
        apart = {"segment_ids": segment_ids} if packed else {}
        xc = layers["compression"]([*(block(x0, **apart) for block in blocks), x0])
        return layers[ATTENTION](xc, **packed)
    if "bilstm" in layers:
        x, bilstm = layers["embedding"](word_ids), layers["bilstm"]
        if packed:
            bilstm = PackedBiLSTM(bilstm, name="packed_bilstm")
        states = bilstm(x, **packed)
        return layers[ATTENTION](states, **packed) if ATTENTION in layers else states
    return layers["pooling"](layers["embedding"](word_ids), **packed)
