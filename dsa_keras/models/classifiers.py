"""Classifiers of one sentence (SST) or two (SNLI) on top of one encoder.

They give logits. `pack_classifier` gives the same classifier on packed batches, which is the form
that trains.
"""

from __future__ import annotations

import keras

from dsa_keras.config import ModelConfig
from dsa_keras.layers import GatherSentences, HeDropout, HeuristicMatching, MLPHead
from dsa_keras.models.encoders import build_encoder, encode_packed


def build_classifier(config: ModelConfig) -> keras.Model:
    """Builds the model from word ids `(batch, words)` to logits `(batch, num_classes)`.

    Its layers: `encoder` (see `build_encoder`) and `head`.

    Example:

    >>> model = build_classifier(preset("sst2").model.replace(vocabulary_size=1000))
    >>> model(np.array([[5, 7, 9, 0]])).shape
    TensorShape([1, 2])
    """
    word_ids = keras.Input((None,), dtype="int32", name="word_ids")
    logits = _head(config)(build_encoder(config)(word_ids))
    return keras.Model(word_ids, logits, name="classifier")


def build_pair_classifier(config: ModelConfig) -> keras.Model:
    """Builds the model from two sentences to logits `(batch, num_classes)`.

    Both sentences go through one encoder; the head sees `[h, p, |h - p|, h * p]`. Inputs: a
    dictionary of word ids, `premise` and `hypothesis`, each `(batch, words)` with a length of its
    own.

    Example:

    >>> model = build_pair_classifier(preset("snli").model.replace(vocabulary_size=1000))
    >>> model({"premise": np.array([[5, 7, 9]]), "hypothesis": np.array([[5, 7]])}).shape
    TensorShape([1, 3])
    """
    encoder = build_encoder(config)
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name) for name in ("hypothesis", "premise")
    }
    h, p = (encoder(ids) for ids in inputs.values())
    logits = _head(config)(HeuristicMatching(name="matching")([h, p]))
    return keras.Model(inputs, logits, name="pair_classifier")


def is_pair_classifier(model: keras.Model) -> bool:
    """Whether the classifier takes two sentences."""
    return any(isinstance(layer, HeuristicMatching) for layer in model.layers)


def pack_classifier(model: keras.Model) -> keras.Model:
    """The same classifier on packed batches: shares the layers, and so the weights, of `model`.

    The distinct sentences of a batch lie one after another in `word_ids` and `segment_ids` (see
    `pack_encoder`), and `index` says which of them each example is about, counted from 0:
    `(batch,)`, or `(batch, 2)` with premise and hypothesis.
    """
    pair = is_pair_classifier(model)
    word_ids, segment_ids = (
        keras.Input((None,), dtype="int32", name=name) for name in ("word_ids", "segment_ids")
    )
    index = keras.Input((2,) if pair else (), dtype="int32", name="index")
    sentences = encode_packed(model.get_layer("encoder"), word_ids, segment_ids, index)
    vectors = GatherSentences(name="sentences")(sentences, index=index)
    if pair:
        vectors = HeuristicMatching(name="matching")([vectors[:, 1], vectors[:, 0]])
    inputs = {"index": index, "segment_ids": segment_ids, "word_ids": word_ids}
    return keras.Model(inputs, model.get_layer("head")(vectors), name=f"packed_{model.name}")


def head_features(packed: keras.Model) -> keras.Model:
    """The part of a packed classifier up to what its head sees: `(batch, features)`."""
    last = packed.get_layer("matching" if is_pair_classifier(packed) else "sentences")
    return keras.Model(packed.input, last.output, name="head_features")


def _head(config: ModelConfig) -> keras.Layer:
    return MLPHead(
        config.num_classes,
        hidden_units=config.hidden_units,
        num_hidden_layers=config.num_hidden_layers,
        dropout=config.head_dropout,
        batch_norm_momentum=config.batch_norm_momentum,
        kernel_initializer=HeDropout(config.head_dropout, config.initial_scale),
        name="head",
    )
