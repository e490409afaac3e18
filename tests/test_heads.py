"""Heads: what they compute is the same for inference, and any layer of Keras is one."""

from __future__ import annotations

import json
from dataclasses import dataclass

import keras
import numpy as np
import pytest
from encoder_checks import pad, shaken, small_config
from own_encoders import forgotten

import dsa_keras
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.heads import HEADS, Head, head_of, register_head
from dsa_keras.heads.mlp import Mlp
from dsa_keras.models import Network
from dsa_keras.runs import Run
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import train

IDS = pad([[3, 1, 4, 1, 5], [9, 2], [6]])
random = np.random.default_rng(0)
FEATURES = random.normal(3, 2, size=(50, 5)).astype("float32")


with forgotten(HEADS):

    @register_head("own-head")
    @dataclass(frozen=True)
    class OwnHead(Head):
        """A plain layer on the difference of two sentences.

        Attributes:
            own_units: of a layer before.
        """

        own_units: int = 3

        def layer(self, num_outputs):
            layers = [keras.layers.Dense(self.own_units, name="hidden")]
            layers.append(keras.layers.Dense(num_outputs, dtype="float32", name="last"))
            return keras.Sequential(layers, name="head")

        def matching(self):
            return keras.layers.Subtract(name="matching")

        def joined(self, matching, vectors):
            return matching(list(vectors))


EVERY = [HEADS.get(name)() for name in HEADS.names()]
ALL = [*EVERY, OwnHead()]


@pytest.mark.parametrize("head", EVERY, ids=lambda one: one.name)
def test_settings_become_json_and_are_explained(head):
    assert head_of(json.loads(json.dumps(head.to_json()))) == head
    assert all(text for text in type(head).described().values())


@pytest.mark.parametrize("head", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("num_outputs", [1, 3])
def test_the_head_for_inference_is_the_head(head, num_outputs):
    layer = head.layer(num_outputs)
    assert layer.name == "head"
    assert layer(FEATURES).shape == (50, num_outputs)
    for weight in layer.weights:
        draw = random.uniform(0.5, 2, weight.shape)
        weight.assign(draw if "variance" in weight.path else draw - 1)
    function, variables = head.inference(layer)
    np.testing.assert_allclose(function(FEATURES), layer(FEATURES, training=False), rtol=1e-4)
    # They are all that an exported model saves: the function reads nothing else.
    for variable in variables:
        variable.assign(0 * variable)
    assert not function(FEATURES).numpy().any()


def test_statistics_are_those_of_the_features():
    head = Mlp(hidden_units=6)
    layer = head.layer(2)
    layer(FEATURES)
    head.take_statistics(layer, FEATURES)
    found = {one.path: np.array(one) for one in layer.weights}
    np.testing.assert_allclose(found["head/batch_norm1/moving_mean"], FEATURES.mean(0), rtol=1e-5)
    np.testing.assert_allclose(
        found["head/batch_norm1/moving_variance"], FEATURES.var(0), rtol=1e-5
    )


def test_a_head_without_statistics_takes_none():
    layer = OwnHead().layer(2)
    layer(FEATURES)
    before = layer.get_weights()
    OwnHead().take_statistics(layer, FEATURES)
    for one, other in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_papers_features_of_pairs():
    """`concat[h, p, |h - p|, h * p]`, Section 4.1; the premise comes first in a pair."""
    network = shaken(Network(small_config("cnn", pair=True)))
    p, h = (network.encoder(ids).numpy() for ids in (IDS, IDS[::-1]))
    features = network.features([p, h])
    np.testing.assert_allclose(features, np.concatenate([h, p, np.abs(h - p), h * p], axis=-1))
    answer = network.model({"premise": IDS, "hypothesis": IDS[::-1]})
    np.testing.assert_allclose(answer, network.head(features), rtol=1e-5, atol=1e-6)


def test_a_head_joins_premise_and_hypothesis():
    network = shaken(Network(small_config("cnn", pair=True).replace(head=OwnHead())))
    premise, hypothesis = (network.encoder(ids) for ids in (IDS, IDS[::-1]))
    features = network.features([premise, hypothesis])
    np.testing.assert_allclose(features, premise - hypothesis)
    expected = network.head(features)
    answer = network.model({"hypothesis": IDS[::-1], "premise": IDS})
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def test_a_head_of_ones_own_trains_with_an_average(tmp_path):
    with forgotten(HEADS):
        HEADS.add("own-head", OwnHead)
        path = tmp_path / "run"
        recipe = preset("demo-nli", "cnn").replace(
            head=OwnHead(own_units=4), cnn_filters=4, epochs=1, averaging=0.9
        )
        quiet = Options(show_progress=False)
        train(load_dataset("demo-nli", size=150), path, recipe, options=quiet)
        assert Run(path).config().model.head == OwnHead(own_units=4)
        assert dsa_keras.load(path).numbers([("a man", "a woman")]).shape == (1, 3)
    with pytest.raises(RunError, match=r"unknown head 'own-head'.*must be imported first"):
        dsa_keras.load(path)


def test_unknown_heads_are_told_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown head 'mpl'\. Did you mean 'mlp'"):
        head_of({"name": "mpl"})
