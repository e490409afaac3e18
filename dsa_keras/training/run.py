"""A run folder: everything about one trained model, in files that explain themselves.

config.json      task, classes, data, model, training: all settings, and what the data was
vocabulary.txt   a word a line, the line number is the word's id
vectors.npy      the word vectors, if they are fixed
best.npz         weights with the best dev accuracy
last.npz         the state after the last finished epoch; training goes on from it
metrics.jsonl    a line per epoch
logs/            for TensorBoard
README.md        the model card
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.files import write_json, written_aside

if TYPE_CHECKING:
    import keras

FORMAT = 1


@dataclass(frozen=True)
class RunConfig:
    """What `config.json` of a run folder holds.

    Attributes:
        task: the name the data set was asked for by.
        class_names: the classes, in label order.
        is_pair: whether an example is two sentences.
        model: the network.
        training: how it was trained.
        data: where the data came from: `data_dir`, `options`, examples per split, fingerprint.
        vectors: the files of word vectors, and what was found in them.
        options: `jit`, `precision`, `deterministic`.
        versions: of the libraries.
    """

    task: str
    class_names: tuple[str, ...]
    is_pair: bool
    model: ModelConfig
    training: TrainingConfig
    data: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        values |= {
            "class_names": list(self.class_names),
            "model": self.model.to_dict(),
            "training": self.training.to_dict(),
        }
        return {"format": FORMAT, **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """The config that `to_dict` gave."""
        values = dict(values)
        if values.pop("format", None) != FORMAT:
            raise ConfigError(f"is not of format {FORMAT}", hint="Train again with this version")
        try:
            return cls(
                **{
                    **values,
                    "class_names": tuple(values["class_names"]),
                    "model": ModelConfig.from_dict(values["model"]),
                    "training": TrainingConfig.from_dict(values["training"]),
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"lacks or has something odd ({error})") from None


class Run:
    """A run folder by its path; nothing is read before it is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.vocabulary_file = self.path / "vocabulary.txt"
        self.vectors_file = self.path / "vectors.npy"
        self.best_file = self.path / "best.npz"
        self.last_file = self.path / "last.npz"
        self.metrics_file = self.path / "metrics.jsonl"
        self.card_file = self.path / "README.md"
        self.logs = self.path / "logs"

    def create(self, *, force: bool, needed_bytes: int) -> None:
        """Makes the folder ready for a new run, or says why it cannot be.

        Args:
            force: whether an old run in the folder may be removed.
            needed_bytes: what the run will take on the disk.
        """
        try:
            if self.path.is_dir() and any(self.path.iterdir()):
                if not force:
                    raise RunError(
                        "the folder is not empty",
                        where=self.path,
                        hint="Choose another --run-dir, go on with --resume, or overwrite with "
                        "--force",
                    )
                if not self.config_file.exists():
                    raise RunError(
                        "the folder is not a run, so --force does not remove it",
                        where=self.path,
                        hint="Choose another --run-dir",
                    )
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True, exist_ok=True)
            with written_aside(self.path / ".writable"):
                pass
            (self.path / ".writable").unlink()
        except OSError as error:
            raise RunError(
                f"cannot write there ({error.strerror})",
                where=self.path,
                hint="Choose a --run-dir that you may write to",
            ) from None
        self.check_room(needed_bytes)

    def check_room(self, needed_bytes: int) -> None:
        """Raises RunError if the disk has less left than that."""
        free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise RunError(
                f"the disk has {free / 1e6:,.0f} MB left, the run needs {needed_bytes / 1e6:,.0f}",
                where=self.path,
                hint="Make room, or choose a --run-dir on another disk",
            )

    def config(self) -> RunConfig:
        """Reads `config.json`."""
        if not self.path.is_dir():
            raise RunError(
                "no such run folder",
                where=self.path,
                hint="Train one: python -m dsa_keras train --help",
            )
        try:
            return RunConfig.from_dict(json.loads(self.config_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            problem, hint = "the file is missing", "Is this the folder of a run?"
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            problem, hint = f"cannot be read ({error})", "Restore it, or train again"
        except ConfigError as error:
            problem, hint = error.problem, error.hint or "Restore it, or train again"
        raise RunError(problem, where=self.config_file, hint=hint)

    def save_config(self, config: RunConfig) -> None:
        """Writes `config.json`."""
        write_json(self.config_file, config.to_dict())

    def vocabulary(self, config: RunConfig) -> Vocabulary:
        """Reads the vocabulary and checks that it is the one the model was trained with."""
        try:
            vocabulary = Vocabulary.load(self.vocabulary_file)
        except DataError as error:
            raise RunError(str(error)) from None
        if len(vocabulary) != config.model.vocabulary_size:
            raise RunError(
                f"has {len(vocabulary):,} entries, the model has {config.model.vocabulary_size:,}",
                where=self.vocabulary_file,
                hint="Restore the vocabulary that belongs to this run",
            )
        return vocabulary

    def save_vectors(self, matrix: np.ndarray) -> None:
        """Writes fixed word vectors."""
        with written_aside(self.vectors_file) as aside:
            np.save(aside, matrix)

    def vectors(self, config: RunConfig) -> np.ndarray:
        """Reads fixed word vectors and checks their size."""
        expected = (config.model.vocabulary_size, config.model.embedding_dim)
        try:
            matrix = np.load(self.vectors_file, allow_pickle=False)
        except FileNotFoundError:
            problem = "the file is missing"
        except (ValueError, OSError, EOFError) as error:
            problem = f"the file is damaged ({error})"
        else:
            if matrix.shape == expected:
                return matrix
            problem = f"has shape {matrix.shape}, the model needs {expected}"
        raise RunError(problem, where=self.vectors_file, hint="Restore it, or train again")

    def load_model(self, config: RunConfig) -> keras.Model:
        """Builds the classifier from our code, then loads its best weights."""
        from dsa_keras.models import assign_vectors, build_classifier, build_pair_classifier
        from dsa_keras.training.weights import assign_weights, load_weights

        weights = load_weights(self.best_file)
        build = build_pair_classifier if config.is_pair else build_classifier
        model = build(config.model)
        if not config.model.train_embeddings:
            assign_vectors(model, self.vectors(config))
        assign_weights(model, weights, self.best_file)
        return model

    def metrics(self) -> list[dict[str, Any]]:
        """Reads `metrics.jsonl`: a dictionary per epoch."""
        try:
            lines = self.metrics_file.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise RunError(
                f"cannot be read ({error})", where=self.metrics_file, hint="Train the run again"
            ) from None
