"""Encoders as users write them, and registrations that last as long as a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import keras
from keras import ops

from dsa_keras.encoders import ENCODERS, Encoder, register_encoder
from dsa_keras.layers import DenseConvBlock, SelfAttention
from dsa_keras.registry import Registry


@contextlib.contextmanager
def forgotten(registry: Registry) -> Iterator[None]:
    """Forgets what is registered in a `with` block, so that no other test sees it."""
    registry.names()
    before = dict(registry._found)
    try:
        yield
    finally:
        registry._found.clear()
        registry._found.update(before)


@keras.saving.register_keras_serializable(package="own_encoders")
class MeanOfRealWords(keras.layers.Layer):
    """The mean of the words that the mask shows; zero where there is none."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        shown = ops.cast(ops.expand_dims(mask, -1), inputs.dtype)
        return ops.sum(inputs * shown, 1) / ops.maximum(ops.sum(shown, 1), 1)

    def compute_mask(self, inputs, mask=None):
        return None


class Twins(keras.layers.Layer):
    """Two layers of one name."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.twins = [keras.layers.Dense(6, activation="tanh", name="dense") for _ in range(2)]

    def call(self, inputs):
        return self.twins[1](self.twins[0](inputs))


class OwnEncoder(Encoder):
    """Dense layers on each word, then the mean of the words."""

    def layers(self):
        return [
            keras.layers.Dense(4, activation="tanh", name="each_word"),
            MeanOfRealWords(name="mean"),
        ]

    def encode(self, layers, words, **packed):
        return layers["mean"](layers["each_word"](words))


with forgotten(ENCODERS):

    @register_encoder("mean-of-words")
    @dataclass(frozen=True)
    class MeanOfWords(OwnEncoder):
        """The mean of the words; it knows nothing of packed ones.

        Attributes:
            mean_units: of the dense layer.
        """

        packs: ClassVar[bool] = False

        mean_units: int = 4

        def layers(self):
            return [
                keras.layers.Dense(self.mean_units, activation="tanh", name="each_word"),
                MeanOfRealWords(name="mean"),
            ]

        def encode(self, layers, words, **packed):
            assert not packed
            return super().encode(layers, words)

    @register_encoder("mean-of-places")
    @dataclass(frozen=True)
    class MeanOfPlaces(OwnEncoder):
        """Padding counts as a word."""

        packs: ClassVar[bool] = False

        def encode(self, layers, words, **packed):
            return ops.mean(layers["each_word"](words), axis=1)

    @register_encoder("mean-by-keras")
    @dataclass(frozen=True)
    class MeanByKeras(OwnEncoder):
        """Divides by the number of words."""

        packs: ClassVar[bool] = False

        def layers(self):
            return [*super().layers()[:1], keras.layers.GlobalAveragePooling1D(name="mean")]

    @register_encoder("across-sentences")
    @dataclass(frozen=True)
    class AcrossSentences(Encoder):
        """Looks at neighbours without asking which sentence they belong to."""

        attends: ClassVar[bool] = True

        def layers(self):
            block = DenseConvBlock(3, filters=2, first_filters=3, num_layers=1, name="near")
            return [block, SelfAttention(4, name="attention")]

        def encode(self, layers, words, **packed):
            return layers["attention"](layers["near"](words), **packed)

    @register_encoder("same-for-all")
    @dataclass(frozen=True)
    class SameForAll(OwnEncoder):
        """Has a vector that no word changes."""

        packs: ClassVar[bool] = False

        def encode(self, layers, words, **packed):
            return 0 * super().encode(layers, words) + 1

    @register_encoder("undescribed")
    @dataclass(frozen=True)
    class Undescribed(OwnEncoder):
        """Has a setting that nothing explains."""

        packs: ClassVar[bool] = False

        other_units: int = 4

    @register_encoder("two-of-a-name")
    @dataclass(frozen=True)
    class TwoOfAName(OwnEncoder):
        """Has a layer with two sub-layers of one name, so two weights have one path."""

        packs: ClassVar[bool] = False

        def layers(self):
            return [Twins(name="each_word"), MeanOfRealWords(name="mean")]

    @register_encoder("taken-names")
    @dataclass(frozen=True)
    class TakenNames(OwnEncoder):
        """Has a layer of the name of the network's head."""

        def layers(self):
            return [*super().layers(), keras.layers.Dense(4, name="head")]


@contextlib.contextmanager
def registered(*encoders: type[Encoder]) -> Iterator[None]:
    """Registers encoders under their names for the time of a `with` block."""
    with forgotten(ENCODERS):
        for one in encoders:
            ENCODERS.add(one.name, one)
        yield
