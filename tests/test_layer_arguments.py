"""Wrong arguments of layers are refused by name."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from dsa_keras.layers import (
    ConvMaxPooling,
    DenseConvBlock,
    DynamicSelfAttention,
    HeDropout,
    HeuristicMatching,
    MLPHead,
    PackedBiLSTM,
    SelfAttention,
    TracedAttention,
    WordCompression,
    WordEmbedding,
)

WORDS = np.random.default_rng(0).normal(size=(3, 6, 4)).astype("float32")
VECTORS = np.ones((5, 4), "float32")
IDS = np.array([[3, 1, 4, 0]], "int32")
SEGMENTS = np.array([[1, 1, 0, 2, 2, 2]] * 3, "int32")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: DynamicSelfAttention(0), "`units` must be a positive integer. Received: units=0"),
        (lambda: DynamicSelfAttention("abc"), "`units` must be a positive .* units='abc'"),
        (lambda: DynamicSelfAttention(None), "`units` must be a positive .* units=None"),
        (lambda: DynamicSelfAttention(float("inf")), "`units` must be .* units=inf"),
        (
            lambda: DynamicSelfAttention(2, num_attentions=1.5),
            "`num_attentions` must be a positive",
        ),
        (
            lambda: DynamicSelfAttention(2, num_iterations=True),
            "`num_iterations` must be a positive",
        ),
        (lambda: SelfAttention(-3), "`units` must be a positive integer. Received: units=-3"),
        (lambda: SelfAttention(3, num_attentions=0), "`num_attentions` must be a positive"),
        (
            lambda: SelfAttention(3, project=False)(WORDS),
            r"`units` must equal .*=3, shape=\(3, 6, 4\)",
        ),
        (lambda: DenseConvBlock(4), "`kernel_size` must be odd.* Received: kernel_size=4"),
        (lambda: DenseConvBlock(0), "`kernel_size` must be a positive .* kernel_size=0"),
        (lambda: DenseConvBlock(3, filters=0), "`filters` must be a positive"),
        (lambda: DenseConvBlock(3, first_filters=0), "`first_filters` must be a positive"),
        (lambda: DenseConvBlock(3, num_layers=0), "`num_layers` must be a positive"),
        (
            lambda: DenseConvBlock(3, dropout=-0.1),
            r"`dropout` must be a number in the range \[0, 1\)",
        ),
        (lambda: DenseConvBlock(3, dropout=None), "`dropout` must be a number .* dropout=None"),
        (
            lambda: WordCompression(3, dropout=1.0),
            r"`dropout` must be a number in the range \[0, 1\)",
        ),
        (lambda: WordCompression(0), "`units` must be a positive"),
        (lambda: ConvMaxPooling(()), r"`widths` must contain .* Received: widths=\(\)"),
        (lambda: ConvMaxPooling((3, 0)), "`widths` must be a positive integer.* widths=0"),
        (lambda: ConvMaxPooling(filters=0), "`filters` must be a positive"),
        (lambda: MLPHead(0), "`num_classes` must be a positive"),
        (lambda: MLPHead(2, num_hidden_layers=0), "`num_hidden_layers` must be a positive"),
        (
            lambda: MLPHead(2)(WORDS),
            r"MLPHead expects vectors of shape \(batch, features\). Rec.*\(3, 6, 4\)",
        ),
        (lambda: WordEmbedding(0), "`vocabulary_size` must be a positive"),
        (lambda: WordEmbedding(5, dropout=2), r"`dropout` must be a number in the range \[0, 1\)"),
        (
            lambda: WordEmbedding(5)(IDS[0]),
            r"word ids of shape \(batch, words\). Received: shape=\(4,\)",
        ),
        (lambda: HeDropout(1.5), "`rate` must be a number .* Received: rate=1.5"),
        (
            lambda: HeDropout(0.1, "both"),
            "`scale_by` must be one of .*keep.*none.*rate.*scale_by='both'",
        ),
        (lambda: HeuristicMatching()(VECTORS), r"`inputs` must be a list of two tensors"),
        (lambda: HeuristicMatching()(keras.Input((4,))), r"`inputs` must be a list of two"),
        (lambda: HeuristicMatching()([VECTORS] * 3), r"`inputs` must be a list of two tensors"),
        (
            lambda: HeuristicMatching()([VECTORS, VECTORS[:, :2]]),
            "`inputs` must be .* the same shape",
        ),
        (
            lambda: HeuristicMatching()([keras.Input((4,)), keras.Input((5,))]),
            r"`inputs` must be .* of the same shape.*shapes=\[\(None, 4\), \(None, 5\)\]",
        ),
        (lambda: PackedBiLSTM(keras.layers.LSTM(2)), "`bilstm` must be a keras.layers.Bidirect"),
        (
            lambda: PackedBiLSTM(keras.layers.Bidirectional(keras.layers.LSTM(2, dropout=0.1))),
            "`bilstm` must not have dropout.* dropout=0.1, recurrent_dropout=0.0",
        ),
        (
            lambda: PackedBiLSTM(keras.layers.Bidirectional(keras.layers.LSTM(2)))(WORDS),
            "`segment_ids` is required.* Received: segment_ids=None",
        ),
        (
            lambda: TracedAttention(keras.layers.Dense(2)),
            "`attention` must be a layer with a method `trace`.*Received: attention=<Dense",
        ),
        (
            lambda: DynamicSelfAttention(2)(WORDS, num_segments=2),
            "`num_segments` can only be given together with `segment_ids`.*num_segments=2, ",
        ),
        (
            lambda: DynamicSelfAttention(2)(WORDS, segment_ids=SEGMENTS, num_segments=0),
            "`num_segments` must be a positive integer. Received: num_segments=0",
        ),
        (
            lambda: DynamicSelfAttention(2)(WORDS, segment_ids=SEGMENTS[:, :3]),
            r"`segment_ids` must have one entry .* shape \(3, 6\).* segment_ids of shape \(3, 3\)",
        ),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(
    "make",
    [
        lambda: DynamicSelfAttention(2),
        lambda: SelfAttention(2),
        lambda: DenseConvBlock(3),
        lambda: WordCompression(2),
        lambda: ConvMaxPooling(),
    ],
    ids=["dsa", "self-attention", "dense-conv-block", "compression", "conv-max-pooling"],
)
def test_wrong_words_and_masks_are_named(make):
    name = type(make()).__name__
    expected = rf"{name} expects words of shape \(batch, words, features\). Received: shape="
    for wrong in (WORDS[0], WORDS[..., np.newaxis]):
        with pytest.raises(ValueError, match=expected):
            make()(wrong)
    with pytest.raises(ValueError, match=f"{name} expects at least one word per row"):
        make()(WORDS[:, :0])
    with pytest.raises(ValueError, match=f"{name} needs a known number of features"):
        make()(keras.Input((None, None)))
    for mask in (np.ones((3, 5)), np.ones((2, 6)), np.ones((3, 6, 4)), np.ones(6)):
        shape = ", ".join(map(str, mask.shape))
        with pytest.raises(ValueError, match=rf"`mask` must .* \(3, 6\).* mask of shape \({shape}"):
            make()(WORDS, mask=mask)
