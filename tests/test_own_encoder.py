"""An encoder, and a data set, in files of the user's own: by commands and in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ENCODER = '''
from dataclasses import dataclass
from typing import ClassVar

from dsa_keras.encoders import Encoder, register_encoder


@register_encoder("mean-of-words")
@dataclass(frozen=True)
class MeanOfWords(Encoder):
    """The mean of the words, projected.

    Attributes:
        projected_units: size of the vector, 50 % of it for luck.
        size: named as an option of the data, so it is set by --config only.
    """

    packs: ClassVar[bool] = False

    projected_units: int = 16
    size: int = 1

    def layers(self):
        import keras

        return [
            keras.layers.GlobalAveragePooling1D(name="mean"),
            keras.layers.Dense(self.projected_units, name="projection"),
        ]

    def encode(self, layers, words):
        return layers["projection"](layers["mean"](words))
'''

DATA = """
import numpy as np

from dsa_keras import recipes
from dsa_keras.datasets import Dataset, Entry, Option, Split, register_dataset
from dsa_keras.inputs import SENTENCE
from dsa_keras.objectives.classification import Classification

MOOD = Classification(class_names=("sad", "glad"))


def read(data_dir, *, count=20):
    texts = [f"a {word} day number {n}" for n in range(count) for word in MOOD.class_names]
    labels = np.arange(2 * count) % 2
    return Dataset("whatever", {"train": Split(texts, labels), "dev": Split(texts, labels)}, MOOD)


MOODS = register_dataset(
    Entry(
        "moods",
        "sad and glad days",
        read,
        lambda encoder, options: recipes.own_data(encoder, MOOD, SENTENCE),
        (Option("--days", "count", "how many days, 100 % of them made up", kind=int, metavar="N"),),
    )
)
"""

TRAINING = """
from dataclasses import replace

import numpy as np
from my_encoders import MeanOfWords

import dsa_keras
from dsa_keras.datasets import Dataset, Split, recipe_for
from dsa_keras.objectives.classification import Classification
from dsa_keras.runs import Run
from dsa_keras.training.trainer import resume, train

texts = [f"a {word} film number {n}" for n in range(20) for word in ("bad", "good")]
labels = np.arange(40) % 2
dataset = Dataset(
    "mine",
    {"train": Split(texts, labels), "dev": Split(texts[:10], labels[:10])},
    Classification(class_names=("bad", "good")),
)
recipe = recipe_for(dataset, MeanOfWords(projected_units=4), vectors=False)
train(dataset, "of-python", recipe.replace(embedding_dim=8, hidden_units=8, epochs=1))
resume("of-python", epochs=2, dataset=dataset)
assert len(Run("of-python").metrics()) == 2
model = dsa_keras.load("of-python")
assert model.encode(["a good film", ""]).shape == (2, 4)
# A sentence has its vector alone and in a batch with longer ones.
alone, batch = model.encode("a good film"), model.encode(["a good film", "a " * 30])
np.testing.assert_allclose(alone, batch[0], rtol=1e-5, atol=1e-6)
assert model.predict("a good film").label in ("bad", "good")
"""

TRAIN = ("train", "demo-sentiment", "--size", "300", "--run-dir", "run")
CHOSEN = (*TRAIN, "--encoder", "my_encoders:MeanOfWords", "--projected-units", "6", "--epochs", "1")


def command(folder, *words):
    """Runs a command in a process of its own; gives exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the encoder and a run of it."""
    path = tmp_path_factory.mktemp("own")
    (path / "my_encoders.py").write_text(ENCODER)
    code, out, error = command(path, "-m", "dsa_keras", *CHOSEN)
    assert code == 0, error
    assert "evaluate run --import my_encoders\n" in out
    return path


@pytest.fixture
def called(folder):
    """Runs `dsa-keras` in the folder; it must succeed."""

    def call(*words):
        code, out, error = command(folder, "-m", "dsa_keras", *words)
        assert code == 0, error
        return out

    return call


@pytest.fixture
def refused_there(folder):
    """Runs `dsa-keras` in the folder; it must fail with one line."""

    def call(*words):
        code, _, error = command(folder, "-m", "dsa_keras", *words)
        assert code == 2, error
        assert error.count("\n") == 1, error
        return error

    return call


def test_it_has_options_of_its_own(called, folder):
    out = called("train", "--encoder", "my_encoders:MeanOfWords", "--help")
    words = " ".join(out.split()).replace("- ", "-")
    assert "--projected-units N size of the vector, 50 % of it for luck [mean-of-words]" in words
    assert words.count("--size N") == 1
    assert '"projected_units": 6' in (folder / "run" / "config.json").read_text()


def test_it_is_resumed_and_used(called):
    resumed = called(*TRAIN, "--import", "my_encoders", "--resume", "--epochs", "2")
    assert "epoch 2/2" in resumed
    own = ("--import", "my_encoders")
    assert "on 30 examples" in called("evaluate", "run", *own)
    assert len(called("predict", "run", "the acting is superb", *own).split("\t")) == 3
    assert "mean-of-words" in called("compare", "run", *own)


def test_without_the_module_one_line_says_how_to_give_it(refused_there):
    for words in (("predict", "run", "a film"), ("evaluate", "run"), ("compare", "run")):
        error = refused_there(*words)
        assert "config.json: unknown encoder 'mean-of-words'" in error
        assert "--import package.module" in error
    assert "unknown encoder 'mean-of-words'" in refused_there(*TRAIN, "--resume")


def test_what_it_cannot_do_is_refused(refused_there):
    own = ("--import", "my_encoders")
    no_attention = "the encoder mean-of-words has no attention to look at"
    assert no_attention in refused_there("explain", "run", "a film", *own)
    assert no_attention in refused_there("inspect", "run", *own)
    other = ("train", "demo-sentiment", "--run-dir", "other", "--encoder=my_encoders:MeanOfWords")
    assert no_attention in refused_there(*other, "--size", "150", "--probe", "3")
    jit = refused_there(*other, "--size", "150", "--jit", "on")
    assert "XLA cannot compile the training of mean-of-words" in jit
    assert "there is no 'MeanOfWrds' in my_encoders" in refused_there(
        *TRAIN, "--encoder", "my_encoders:MeanOfWrds"
    )


def test_a_module_with_a_mistake_is_told_in_one_line(folder, refused_there):
    (folder / "mistaken.py").write_text("import dsa_keras\nnothing_of_the_kind\n")
    error = refused_there("predict", "run", "a film", "--import", "mistaken")
    assert "mistaken: cannot be imported (NameError: name 'nothing_of_the_kind' is not" in error


@pytest.mark.slow
def test_a_data_set_of_ones_own(called, refused_there, folder):
    (folder / "my_data.py").write_text(DATA)
    start = ("train", "moods", "--import", "my_data", "--run-dir", "moods")
    small = ("--encoder", "cnn", "--cnn-filters", "2", "--hidden-units", "4", "--epochs", "1")
    out = called(*start, "--days", "30", *small)
    assert "no --vectors given" in out
    assert "evaluate moods --import my_data\n" in out
    assert "epoch 2/2" in called(*start, "--resume", "--epochs", "2")
    # There is no test split, so the default is dev.
    assert "dev split\naccuracy" in (out := called("evaluate", "moods", "--import", "my_data"))
    assert "on 60 examples" in out
    assert "unknown data set 'moods'" in refused_there("evaluate", "moods")
    assert "unknown data set 'moods'" in refused_there(
        *("train", "moods", "--resume", "--run-dir", "moods")
    )
    assert "--days is an option of moods, not of demo-nli" in refused_there(
        "train", "demo-nli", "--import", "my_data", "--days", "3"
    )
    out = called("train", "my_data:MOODS", "--run-dir", "named", *small)
    assert "evaluate named --import my_data\n" in out


def test_it_is_trained_and_resumed_in_python(folder):
    (folder / "training.py").write_text(TRAINING)
    code, _, error = command(folder, "training.py")
    assert code == 0, error
