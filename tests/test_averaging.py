"""The moving average of the weights: its values, what it is used for, what it leaves alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from runs import shared_run, tiny_run

import dsa_keras
from dsa_keras.datasets import load_dataset
from dsa_keras.errors import RunError
from dsa_keras.manifest import Manifest
from dsa_keras.runs import Run
from dsa_keras.runs.weights import weights_in
from dsa_keras.training.averaging import WeightAverage
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import resume


class SmallNetwork:
    """What the average asks of a network."""

    def __init__(self, model: keras.Model) -> None:
        self.model = model

    def named_weights(self):
        return {weight.path: weight for weight in self.model.weights}


def named_weights(model: keras.Model):
    return SmallNetwork(model).named_weights()


def load_weights(path: Path) -> dict[str, np.ndarray]:
    return weights_in(path.read_bytes(), path)


def small_model() -> keras.Model:
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


class Seen(keras.callbacks.Callback):
    """Keeps the weights after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[dict[str, np.ndarray]] = []

    def on_train_batch_end(self, batch, logs=None):
        self.weights.append({n: np.array(w) for n, w in named_weights(self.model).items()})


def fitted(decay: float, steps: int) -> tuple[keras.Model, WeightAverage, dict, list[dict]]:
    keras.utils.set_random_seed(0)
    model = small_model()
    start = {name: np.array(weight) for name, weight in named_weights(model).items()}
    average = WeightAverage(SmallNetwork(model), model.optimizer, decay)
    seen = Seen()
    x = np.random.default_rng(0).normal(size=(4 * steps, 2))
    model.fit(x, x.sum(-1), batch_size=4, verbose=0, callbacks=[average, seen])
    return model, average, start, seen.weights


def test_the_first_steps_forget_fast():
    """2/11 and 3/12 of the average stay, which is less than 0.9."""
    _, average, start, (first, second) = fitted(0.9, steps=2)
    for name, value in average.state().items():
        expected = start[name] * 2 / 11 + first[name] * 9 / 11
        expected = expected * 3 / 12 + second[name] * 9 / 12
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_later_steps_keep_the_decay_of_all_weights():
    """From step 2 on 0.2 is the smaller one; batch norm's statistics are averaged too."""
    _, average, start, seen = fitted(0.2, steps=6)
    expected = {name: value * 2 / 11 + seen[0][name] * 9 / 11 for name, value in start.items()}
    for weights in seen[1:]:
        expected = {name: 0.2 * expected[name] + 0.8 * weights[name] for name in expected}
    state = average.state()
    assert state.keys() == expected.keys()
    assert any("moving" in name for name in state)
    for name, value in state.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_it_is_in_the_model_for_a_block_only():
    model, average, _, seen = fitted(0.9, steps=3)

    def look_and_fail() -> None:
        with average.in_model():
            for name, weight in named_weights(model).items():
                np.testing.assert_array_equal(np.array(weight), average.state()[name])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        look_and_fail()
    for name, weight in named_weights(model).items():
        np.testing.assert_array_equal(np.array(weight), seen[-1][name])


def test_what_a_block_changes_stays_in_the_average():
    model, average, _, seen = fitted(0.9, steps=3)
    mean = model.layers[0].moving_mean
    before = average.state()
    with average.in_model():
        mean.assign([5.0, 7.0])
    np.testing.assert_array_equal(np.array(mean), seen[-1][mean.path])
    for name, value in average.state().items():
        np.testing.assert_array_equal(value, [5.0, 7.0] if name == mean.path else before[name])


def test_without_decay_there_is_none():
    model, average, _, seen = fitted(0.0, steps=2)
    assert average.state() == {}
    with average.in_model():
        for name, weight in named_weights(model).items():
            np.testing.assert_array_equal(np.array(weight), seen[-1][name])


@pytest.fixture(scope="module")
def averaged_run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("averaged") / "run"
    return tiny_run(path, training={"averaging": 0.9}, options={"deterministic": True})


def test_the_average_is_kept_and_training_is_as_without(averaged_run, tmp_path):
    """An epoch with it and one without end in the same weights; what is kept differs."""
    paths = {0.0: tiny_run(tmp_path / "run", options={"deterministic": True}), 0.9: averaged_run}
    last, best = (
        {decay: load_weights(path / name) for decay, path in paths.items()}
        for name in ("last.npz", "best.npz")
    )
    for name, value in last[0.0].items():
        np.testing.assert_array_equal(last[0.9][name], value)
        np.testing.assert_array_equal(best[0.0][name], value)
    assert any(np.abs(best[0.9][name] - last[0.9][name]).max() > 1e-3 for name in best[0.9])
    with np.load(paths[0.9] / "last.npz") as file:
        for name, value in best[0.9].items():
            np.testing.assert_array_equal(file[f"average/{name}"], value)


@pytest.mark.parametrize("pair", [False, True])
def test_statistics_are_those_of_the_training_sentences(averaged_run, pair):
    """The normed inputs of the first hidden layer have mean 0 and variance 1, without dropout."""
    path = shared_run(pair=True) if pair else averaged_run
    model = dsa_keras.load(path)
    texts = load_dataset(model.config.task, size=300)["train"].texts
    if pair:
        p, h = (model.encode([text[side] for text in texts]) for side in (0, 1))
        features = np.concatenate([h, p, np.abs(h - p), h * p], axis=-1)
    else:
        features = model.encode(texts)
    best = load_weights(path / "best.npz")
    mean, variance = (best[f"head/batch_norm1/moving_{name}"] for name in ("mean", "variance"))
    np.testing.assert_allclose(mean, features.mean(0), atol=1e-5)
    np.testing.assert_allclose(variance, features.var(0), atol=1e-5)


def test_a_state_without_its_average_is_refused(averaged_run, tmp_path):
    path = shutil.copytree(averaged_run, tmp_path / "run")
    state = Run(path).last_file
    with np.load(state) as file:
        arrays = {name: file[name] for name in file.files if not name.startswith("average/")}
    np.savez(state, **arrays)
    Manifest.of(path, ignore=("logs/*",)).write({})
    with pytest.raises(RunError, match=r"last\.npz: has no average of the weights"):
        resume(path, epochs=2, options=Options(show_progress=False))
