"""Run folders made without training and without TensorFlow, and what processes do with them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.encoders.cnn import Cnn
from dsa_keras.locks import locked
from dsa_keras.manifest import Manifest
from dsa_keras.runs import Run, RunConfig

WORDS = Vocabulary(["film", "dull", "superb"])
DIMENSION = 4


def config_of(number: int = 0, **changes) -> RunConfig:
    """A config; the number is its seed."""
    model = ModelConfig(Cnn(), vocabulary_size=len(WORDS), embedding_dim=DIMENSION)
    values = {"task": "demo-sentiment", "data": {"data_dir": None, "options": {"size": 150}}}
    return RunConfig(model=model, training=TrainingConfig(seed=number), **{**values, **changes})


def made(path: Path, number: int = 0, *, force: bool = False, words=WORDS, **changes) -> Path:
    """Makes a run whose config and vectors tell a number."""
    matrix = np.full((len(words), DIMENSION), number, np.float32)
    with Run(path).made(config_of(number, **changes), words, matrix, force=force):
        pass
    return path


def epoch(path: Path, number: int, *figures: float) -> Path:
    """Writes weights that are a number, and the record of an epoch for each figure."""
    weights = {"weights/head/kernel": np.full(3, number, np.float32)}
    records = [{"epoch": n, "dev_accuracy": one} for n, one in enumerate(figures, start=1)]
    Run(path).save_epoch(weights, weights, records, f"# {number}\n")
    return path


def sealed(path: Path) -> Path:
    """Gives a folder that was changed the manifest that it would have if it were right."""
    Manifest.of(path, ignore=("logs/*", "figures/*")).write({})
    return path


def told(path: Path) -> tuple[int, ...]:
    """The numbers that the files of a run tell, after everything in it is checked."""
    run = Run(path)
    run.manifest.check_all(ignore=["logs/*", "figures/*"])
    config = run.config()
    assert run.vocabulary(config) == WORDS
    numbers = [config.training.seed, int(run.vectors(config)[0, 0])]
    if run.best_file.exists():
        with np.load(run.best_file) as best, np.load(run.last_file) as last:
            numbers += [int(one["weights/head/kernel"][0]) for one in (best, last)]
        numbers += [int(run.card_file.read_text().lstrip("# ")), len(run.records())]
    return tuple(numbers)


def read(run: Run) -> None:
    """Reads all that an answer needs."""
    config = run.config()
    run.vocabulary(config)
    run.vectors(config)
    run.num_parameters()


def replace(folder: Path) -> None:
    """What `train --force` does before it trains."""
    made(folder / "run", 1, force=True)


def finish_epoch(folder: Path) -> None:
    """What training does after an epoch."""
    epoch(folder / "run", 2, 0.5, 0.6)


if __name__ == "__main__":
    with locked(sys.argv[1], "training"):
        print("locked", flush=True)
        sys.stdin.read()
