"""Training: optimizers as in PyTorch, the schedule by hand, runs that explain themselves."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from runs import SMALL, shared_run, tiny_run
from slow_parameters import some_slow

import dsa_keras
from dsa_keras.config import Recipe, TrainingConfig
from dsa_keras.datasets import Dataset, load_dataset, preset
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.inputs import PAIR
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.monitor import Monitor
from dsa_keras.objectives.regression import Regression
from dsa_keras.runs import Run
from dsa_keras.training.callbacks import TrainingError
from dsa_keras.training.fit import Options
from dsa_keras.training.optimizers import AdadeltaL2, AdamL2, build_optimizer
from dsa_keras.training.schedule import Schedule
from dsa_keras.training.trainer import train

QUIET = Options(show_progress=False)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return tiny_run(
        tmp_path_factory.mktemp("single") / "run",
        training={"epochs": 2},
        options={"histograms": True},
    )


# Optimizers ---------------------------------------------------------------------------------------


def adam_steps(weight, gradients, rate, epsilon, l2):
    """PyTorch's Adam with `weight_decay`, in float64."""
    first = second = np.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        gradient = gradient + l2 * weight
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        size = rate / (1 - 0.9**step)
        weight = weight - size * first / (np.sqrt(second) / math.sqrt(1 - 0.999**step) + epsilon)
    return weight


def adadelta_steps(weight, gradients, rate, rho, epsilon, l2):
    """PyTorch's Adadelta with `weight_decay`, in float64."""
    squares = deltas = np.zeros_like(weight)
    for gradient in gradients:
        gradient = gradient + l2 * weight
        squares = rho * squares + (1 - rho) * gradient**2
        delta = np.sqrt(deltas + epsilon) / np.sqrt(squares + epsilon) * gradient
        deltas = rho * deltas + (1 - rho) * delta**2
        weight = weight - rate * delta
    return weight


def keras_steps(optimizer, weight, gradients):
    variable = keras.Variable(weight.astype(np.float32))
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient, tf.float32)], [variable])
    return variable.numpy()


def start(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(4, 3)), rng.normal(size=(12, 4, 3))


@pytest.mark.parametrize(("epsilon", "l2"), [(1e-8, 0.0), (1e-8, 0.1), (0.1, 0.1)])
def test_adam_is_pytorchs(epsilon, l2):
    weight, gradients = start()
    optimizer = AdamL2(0.01, epsilon=epsilon, l2=l2)
    expected = adam_steps(weight, gradients, 0.01, epsilon, l2)
    np.testing.assert_allclose(
        keras_steps(optimizer, weight, gradients), expected, rtol=2e-5, atol=1e-6
    )


def test_adam_refuses_what_it_would_not_do():
    with pytest.raises(ValueError, match="AdamL2 has no `amsgrad`"):
        AdamL2(amsgrad=True)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_adadelta_is_pytorchs(l2):
    weight, gradients = start()
    optimizer = AdadeltaL2(1.0, rho=0.9, epsilon=1e-6, l2=l2)
    expected = adadelta_steps(weight, gradients, 1.0, 0.9, 1e-6, l2)
    np.testing.assert_allclose(
        keras_steps(optimizer, weight, gradients), expected, rtol=2e-5, atol=1e-6
    )


def test_presets_name_their_optimizer():
    adam = build_optimizer(preset("snli").training)
    assert (type(adam), float(adam.learning_rate.numpy())) == (AdamL2, pytest.approx(1e-3))
    assert (adam.epsilon, adam.l2) == (1e-8, 1e-5)
    adadelta = build_optimizer(preset("sst2").training)
    assert (type(adadelta), float(adadelta.learning_rate.numpy())) == (AdadeltaL2, 1.0)
    assert (adadelta.rho, adadelta.epsilon, adadelta.l2) == (0.9, 1e-6, 1e-5)


def test_repeated_words_add_up_before_the_square():
    """A word that is twice in a batch has one gradient, the sum, as in PyTorch."""
    table = keras.Variable(np.ones((3, 2), np.float32))
    optimizer = AdamL2(0.1, epsilon=1e-8, l2=0.0)
    sparse = tf.IndexedSlices(tf.constant([[1.0, 2], [3, 4]]), tf.constant([1, 1]), [3, 2])
    optimizer.apply([sparse], [table])
    dense = np.array([[0, 0], [4, 6], [0, 0]], np.float64)
    expected = adam_steps(np.ones((3, 2)), [dense], 0.1, 1e-8, 0.0)
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-5)


# Schedule -----------------------------------------------------------------------------------------


def schedule_of(**settings):
    return Schedule(TrainingConfig(**settings), Monitor(Classification()))


def test_plateau_halves_after_two_checks_without_progress():
    schedule = schedule_of(learning_rate=1.0, plateau_patience=2, early_stopping=0)
    rates = []
    for loss in (1.0, 0.9995, 0.9991, 0.5, 0.5, 0.4995, 0.4992, 0.4991):
        schedule.finish_epoch(loss, 0.5)
        rates.append(schedule.learning_rate)
    # 0.9995 and 0.9991 are not 0.001 better than 1.0; 0.5 is; then four checks without progress.
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]


def test_early_stopping_counts_epochs_since_the_best():
    schedule = schedule_of(early_stopping=2, epochs=10)
    best = []
    for accuracy in (0.5, 0.7, 0.7, 0.6):
        assert not schedule.finished
        best.append(schedule.finish_epoch(1.0, accuracy))
    assert best == [True, True, False, False]  # an equal accuracy is not better
    assert schedule.finished
    assert (schedule.best_epoch, schedule.best_figure, schedule.epoch) == (2, 0.7, 4)


def test_no_early_stopping_runs_to_the_last_epoch():
    schedule = schedule_of(early_stopping=0, epochs=3)
    for _ in range(3):
        assert not schedule.finished
        schedule.finish_epoch(1.0, 0.5)
    assert schedule.finished


def test_schedule_goes_on_from_its_state():
    config, monitor = TrainingConfig(plateau_patience=2), Monitor(Classification())
    schedule = Schedule(config, monitor)
    for loss, accuracy in ((1.0, 0.4), (1.0, 0.6), (1.0, 0.5)):
        schedule.finish_epoch(loss, accuracy)
    state = json.loads(json.dumps(schedule.state()))
    assert Schedule.of_state(config, monitor, state) == schedule
    # As it was called before there were other figures.
    older = {**state, "best_accuracy": state["best_figure"]}
    del older["best_figure"], older["best_dev_loss"], older["improved_epoch"]
    found = Schedule.of_state(config, monitor, older)
    assert found == dataclasses.replace(schedule, best_dev_loss=-math.inf)
    for wrong in ({**state, "more": 1}, [1], {"epoch": 1, "best_figure": 3, "seed": 2}):
        with pytest.raises((TypeError, ValueError)):
            Schedule.of_state(config, monitor, wrong)


class LessIsBetter(Regression):
    higher_is_better = False


def test_the_objective_says_which_figure_is_better():
    schedule = Schedule(TrainingConfig(early_stopping=2, epochs=10), Monitor(LessIsBetter()))
    figures = (-0.5, 0.2, 0.2, -0.7, 0.0)
    assert [schedule.finish_epoch(1.0, one) for one in figures] == [True, False, False, True, False]
    assert (schedule.best_epoch, schedule.best_figure) == (4, -0.7)
    # Correlations may be below zero: the first epoch is the best so far in any case.
    assert Schedule(TrainingConfig(), Monitor(Regression())).finish_epoch(1.0, -0.9)


def test_ties_are_broken_by_the_loss_of_dev_and_do_not_put_off_the_early_stop():
    schedule = schedule_of(early_stopping=3, epochs=10)
    best = [
        schedule.finish_epoch(1.0, accuracy, dev_loss)
        for accuracy, dev_loss in ((0.5, 0.1), (0.7, 0.6), (0.7, 0.6), (0.7, 0.5), (0.6, 0.1))
    ]
    assert best == [True, True, False, True, False]
    assert (schedule.best_epoch, schedule.best_dev_loss) == (4, 0.5)
    assert schedule.finished  # three epochs after 0.7 was reached


def test_a_run_that_broke_no_ties_keeps_its_best_epoch():
    config, monitor = TrainingConfig(), Monitor(Classification())
    state = {"epoch": 2, "best_accuracy": 0.7, "best_epoch": 1}
    schedule = Schedule.of_state(config, monitor, state)
    assert not schedule.finish_epoch(1.0, 0.7, 0.1)
    assert schedule.finish_epoch(1.0, 0.8, 0.5)
    assert schedule.finish_epoch(1.0, 0.8, 0.4)


# Runs ---------------------------------------------------------------------------------------------


# The fixture `single` is the first of them.
@pytest.mark.parametrize(
    "encoder",
    some_slow(
        [name for name in ENCODERS.names() if name != DEFAULT_ENCODER],
        {"dsa-multiple", "bilstm-self-attention"},
    ),
)
def test_every_encoder_trains_on_sentences(encoder):
    run = Run(shared_run(encoder=encoder))
    assert run.config().model.encoder.name == encoder
    assert math.isfinite(run.metrics()[0]["train_loss"])
    prediction = dsa_keras.load(run.path).predict(["the acting is superb"])[0]
    assert sum(prediction.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("encoder", some_slow(["dsa-single", "dsa-multiple"], {"dsa-multiple"}))
def test_pairs_train(encoder):
    run = Run(shared_run(pair=True, encoder=encoder))
    model = run.config().model
    assert model.inputs == PAIR
    assert model.objective.class_names == ("entailment", "neutral", "contradiction")
    prediction = dsa_keras.load(run.path).predict([("a man sleeps", "nobody sleeps")])[0]
    assert set(prediction.probabilities) == set(model.objective.class_names)


def test_a_run_folder_explains_itself(single):
    assert sorted(path.name for path in single.iterdir()) == [
        ".lock",
        "README.md",
        "best.npz",
        "config.json",
        "last.npz",
        "logs",
        "manifest.json",
        "metrics.jsonl",
        "vectors.npy",
        "vocabulary.txt",
    ]
    run = Run(single)
    run.manifest.check_all(ignore=["logs/*"])
    config = run.config()
    assert config.task == "demo-sentiment"
    assert config.data["examples"] == {"train": 240, "dev": 30, "test": 30}
    assert config.model.vocabulary_size == len(run.vocabulary(config))
    records = run.metrics()
    assert [record["epoch"] for record in records] == [1, 2]
    for name in ("train_loss", "train_accuracy", "dev_loss", "dev_accuracy"):
        assert all(math.isfinite(record[name]) for record in records), name
    assert all(record["train_gradient_norm"] > 0 for record in records)
    assert records[0]["train_learning_rate"] == pytest.approx(0.001)


def test_the_model_card_has_the_facts(single):
    card = (single / "README.md").read_text()
    best = max(Run(single).metrics(), key=lambda record: record["dev_accuracy"])
    for fact in (
        "dsa-single on demo-sentiment",
        "negative, positive",
        f"{best['dev_accuracy']:.4f} (epoch {best['epoch']} of 2)",
        "train 240, dev 30, test 30",
        "fixed, random at the start",
        f"dsa-keras predict {single}",
        f"tensorflow {tf.__version__}",
        "| num_iterations | 2 |",
        "| learning_rate | 0.001 |",
    ):
        assert fact in card, fact


def test_best_weights_are_those_of_the_best_dev_accuracy(single):
    run = Run(single)
    best = max(record["dev_accuracy"] for record in run.metrics())
    dev = load_dataset("demo-sentiment", size=300)["dev"]
    assert dsa_keras.load(single).evaluate(dev).accuracy == pytest.approx(best)


def test_no_file_of_a_run_is_a_pickle(single):
    arrays = 0
    for path in single.rglob("*"):
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                assert all(name.endswith(".npy") for name in archive.namelist())
            with np.load(path, allow_pickle=False) as file:
                arrays += len([file[name] for name in file.files])
        elif path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        elif path.is_file():
            # Pickles of protocol 2 and later start so.
            assert not path.read_bytes().startswith(b"\x80"), path
    assert arrays > 20


def test_tensorboard_shows_scalars_pictures_and_histograms(single):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train_log = EventAccumulator(str(single / "logs" / "train")).Reload()
    dev_log = EventAccumulator(str(single / "logs" / "dev")).Reload()
    tags = set(train_log.Tags()["tensors"])
    names = {"loss", "accuracy", "learning_rate", "words_per_second", "gradient_norm"}
    assert names <= tags
    assert any("attention" in tag for tag in tags - names)
    assert {"loss", "accuracy", "confusion matrix"} <= set(dev_log.Tags()["tensors"])
    events = dev_log.Tensors("accuracy")
    assert [event.step for event in events] == [1, 2]
    shown = [float(tf.make_ndarray(event.tensor_proto)) for event in events]
    assert shown == pytest.approx([record["dev_accuracy"] for record in Run(single).metrics()])
    width, height, picture = tf.make_ndarray(
        dev_log.Tensors("confusion matrix")[0].tensor_proto
    ).tolist()
    assert picture.startswith(b"\x89PNG")
    assert int(width) > 100
    assert int(height) > 100


@pytest.mark.slow
def test_the_same_seed_trains_the_same_and_another_does_not(tmp_path):
    weights = []
    for number, seed in enumerate((0, 0, 1)):
        path = tiny_run(tmp_path / str(number), encoder="cnn", training={"seed": seed})
        with np.load(path / "last.npz") as file:
            weights.append({name: file[name] for name in file.files if name != "meta"})
    first, second, third = weights
    # A second model in one process has the same names, so its files fit the first.
    assert first.keys() == second.keys() == third.keys()
    for name, value in first.items():
        np.testing.assert_allclose(value, second[name], rtol=1e-3, atol=1e-4)
    assert any(not np.allclose(value, third[name]) for name, value in first.items())


@pytest.mark.slow
def test_mixed_bfloat16_trains_and_loads_in_float32(tmp_path):
    path = tiny_run(tmp_path / "run", options={"precision": "mixed_bfloat16"})
    assert Run(path).config().options["precision"] == "mixed_bfloat16"
    assert keras.config.dtype_policy().name == "float32"
    assert math.isfinite(Run(path).metrics()[0]["train_loss"])
    assert dsa_keras.load(path).encode("a film").dtype == np.float32


@pytest.mark.slow
def test_xla_trains(tmp_path):
    # A tiny model: what is compiled is the same, only smaller.
    path = tiny_run(
        tmp_path / "run",
        size=150,
        training={"batch_size": 128},
        options={"jit": "on"},
        kernel_sizes=[3],
    )
    assert math.isfinite(Run(path).metrics()[0]["train_loss"])


# What goes wrong ----------------------------------------------------------------------------------


def test_a_loss_that_is_not_a_number_stops_with_advice(tmp_path):
    with pytest.raises(TrainingError, match=r"loss became .* Try a lower --learning-rate"):
        tiny_run(
            tmp_path / "run",
            encoder="cnn",
            training={"learning_rate": 1e30, "optimizer": "adadelta"},
        )


def test_data_without_dev_examples_is_refused(tmp_path):
    data = load_dataset("demo-sentiment", size=150)
    data = Dataset(data.name, {"train": data["train"]}, data.objective)
    with pytest.raises(DataError, match="no dev examples"):
        train(data, tmp_path / "run", preset("demo-sentiment"))
    assert not (tmp_path / "run").exists()


def test_a_recipe_about_something_else_is_refused(tmp_path):
    recipe = preset("demo-sentiment")
    other = Recipe(recipe.model.replace(objective=Regression()), recipe.training)
    message = "the recipe is one of regression, the data is of classification"
    with pytest.raises(ConfigError, match=message):
        train(load_dataset("demo-sentiment", size=150), tmp_path / "run", other, options=QUIET)
    assert not (tmp_path / "run").exists()


def test_what_the_data_decides_comes_from_the_data(tmp_path):
    """A recipe of pairs with other classes is fitted to sentences; what is chosen stays."""
    data = load_dataset("demo-sentiment", size=150)
    recipe = preset("demo-nli", "cnn").replace(cnn_filters=4, epochs=1, vocabulary_size=7)
    config = train(data, tmp_path / "run", recipe, options=QUIET)
    assert config.model.inputs == data.inputs
    assert config.model.objective == data.objective
    assert config.model.vocabulary_size > 7
    assert config.model.encoder == recipe.model.encoder
    assert config == Run(tmp_path / "run").config()


def test_a_folder_that_cannot_be_made_is_known_before_training(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RunError, match="cannot write there"):
        tiny_run(file / "run")


def test_too_little_disk_is_known_before_training(tmp_path):
    with pytest.raises(RunError, match=r"the disk has .* MB left, the run needs 1,000,000,000,000"):
        Run(tmp_path / "run").check_room(10**18)


def test_odd_options_are_refused(tmp_path):
    for options, encoder, message in (
        ({"jit": "sometimes"}, "cnn", "jit must be auto, on or off. Received: 'sometimes'"),
        ({"precision": "float17"}, "cnn", "precision must be float32, .* Received: 'float17'"),
        ({"jit": "on"}, "bilstm", "XLA cannot compile the training of bilstm"),
        ({"jit": "on", "devices": ("CPU:0", "CPU:1")}, "cnn", "several devices"),
    ):
        with pytest.raises(ConfigError, match=message):
            tiny_run(tmp_path / "run", encoder=encoder, options=options)
        assert not (tmp_path / "run").exists()


# Several devices ----------------------------------------------------------------------------------

TWO_DEVICES = """
import sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
sys.path.insert(0, "tests")
from runs import tiny_run
same = dict(training={"epochs": 3, "averaging": 0.9}, dropout=0.0, embedding_dropout=0.0,
            head_dropout=0.0, initial_scale="none")
tiny_run(sys.argv[1] + "/one", options={"devices": ("CPU:0",)}, **same)
tiny_run(sys.argv[1] + "/two", options={"devices": ("CPU:0", "CPU:1")}, **same)
"""


def test_two_devices_train_as_one(tmp_path):
    """Two devices see the same batches as one, half each, and add their gradients up.

    Without dropout only batch norm tells them apart: its statistics are those of a half batch.
    """
    root = Path(__file__).parent.parent
    subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, str(tmp_path)],
        cwd=root,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=600,
    )
    one, two = (Run(tmp_path / name).metrics() for name in ("one", "two"))
    assert two[-1]["train_loss"] < two[0]["train_loss"]
    for first, second in zip(one, two, strict=True):
        assert second["train_loss"] == pytest.approx(first["train_loss"], rel=0.02)
    with np.load(tmp_path / "two" / "last.npz") as file:
        assert all(np.isfinite(file[name]).all() for name in file.files)
    assert dsa_keras.load(tmp_path / "two").encode("a film").shape == (SMALL["units"],)
