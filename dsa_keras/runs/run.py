"""A run folder: everything about one trained model, in files that explain themselves.

config.json      task, data, model, training: all settings, and what the data was
vocabulary.txt   a word a line, the line number is the word's id
vectors.npy      the word vectors, if they are fixed
best.npz         the weights of the best epoch
last.npz         the state after the last finished epoch; training goes on from it
metrics.jsonl    a line per epoch
evaluation-*.json  figures of splits, each of certain weights
manifest.json    checksums of all these; it is written last, and checked when the run is loaded
logs/            for TensorBoard
README.md        the model card

A process that is killed while it writes leaves a folder that still loads: see `Manifest`. Folders
of format 1 have no manifest until they are trained on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.files import is_aside, recover_folder, replaced_folder, write_json
from dsa_keras.locks import LOCK, locked
from dsa_keras.manifest import MARK, Manifest
from dsa_keras.runs.config import FORMAT, RunConfig

if TYPE_CHECKING:
    from dsa_keras.models import Network

_OURS = (
    *("config.json", "vocabulary.txt", "vectors.npy", "best.npz", "last.npz", "metrics.jsonl"),
    *("manifest.json", "README.md", "logs", "figures", LOCK),
)
_MISSING_HINT = "Restore it, or train again"

Record = dict[str, Any]
"""The figures of an epoch."""


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
        self.manifest = Manifest(self.path, hint=_MISSING_HINT)

    # Making a folder

    def check_free(self, *, force: bool, made_by: str | None = None) -> None:
        """Says early why a new run cannot be put here.

        Args:
            force: whether an old run in the folder may be replaced.
            made_by: only a run that this command made may be.

        Raises:
            RunError: if the folder holds anything else than a run, or cannot be written to.
        """
        recover_folder(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise RunError("is not a folder", where=self.path, hint="Choose another --run-dir")
        if not self._is_empty():
            self._check_replaceable(force, made_by)
        parent = next(one for one in self.path.absolute().parents if one.exists())
        folder = self.path if self.path.is_dir() else parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RunError(
                "cannot write there (Permission denied)",
                where=self.path,
                hint="Choose a --run-dir that you may write to",
            )

    def _is_empty(self) -> bool:
        return not self.path.is_dir() or all(one.name == LOCK for one in self.path.iterdir())

    def _check_replaceable(self, force: bool, made_by: str | None) -> None:
        if not force:
            raise RunError(
                "the folder is not empty",
                where=self.path,
                hint="Choose another --run-dir, go on with --resume, or overwrite with --force",
            )
        try:
            config = self.config()
        except RunError as error:
            raise RunError(
                f"the folder is not a run ({error}), so nothing in it is removed",
                where=self.path,
                hint="Choose another --run-dir",
            ) from None
        others = sorted(
            one.name
            for one in self.path.iterdir()
            if one.name not in _OURS and not _is_made_on_the_way(one.name)
        )
        if others:
            raise RunError(
                f"{others[0]} is no file of a run, so the folder is not removed",
                where=self.path,
                hint="Move it elsewhere, or choose another --run-dir",
            )
        if made_by is not None and config.made_by != made_by:
            raise RunError(
                f"the folder is a run on {config.task} that {made_by} did not make, so it is not "
                "removed",
                where=self.path,
                hint="Choose another --run-dir",
            )

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """Keeps other trainings out of the folder for the time of a `with` block.

        Raises:
            RunError: if another process trains there.
        """
        with locked(self.path, "training"):
            yield

    @contextlib.contextmanager
    def made(
        self,
        config: RunConfig,
        vocabulary: Vocabulary,
        matrix: np.ndarray | None,
        *,
        force: bool,
        made_by: str | None = None,
    ) -> Iterator[None]:
        """Makes the folder of a run, which is trained in the `with` block.

        An old one is there until the new one is complete. The block has the folder for itself, as
        that of `training`.

        Args:
            config: its settings.
            vocabulary: its words.
            matrix: their vectors, if they are fixed.
            force: whether an old run in the folder may be replaced.
            made_by: only a run that this command made may be.
        """
        self.check_free(force=force, made_by=made_by)
        with contextlib.ExitStack() as locks:
            if self.path.is_dir():
                locks.enter_context(locked(self.path, "replacing the run"))
            with replaced_folder(self.path) as aside:
                with Manifest(aside).replacing() as files:
                    files.write("config.json", lambda path: write_json(path, config.to_dict()))
                    files.write("vocabulary.txt", vocabulary.save)
                    if matrix is not None:
                        files.write("vectors.npy", lambda path: np.save(path, matrix))
                locks.enter_context(locked(aside, "training"))
            yield

    def adopted(self, config: RunConfig) -> None:
        """Gives a folder of format 1 a manifest and a config of today, before it is trained on."""
        if not self.manifest.exists:
            Manifest.of(self.path, ignore=("logs/*", "figures/*")).write({})
            self.save_config(config)

    def check_room(self, needed_bytes: int) -> None:
        """Raises RunError if the disk has less left than that."""
        folder = next(one for one in (self.path, *self.path.absolute().parents) if one.exists())
        free = shutil.disk_usage(folder).free
        if free < needed_bytes:
            raise RunError(
                f"the disk has {free / 1e6:,.0f} MB left, the run needs {needed_bytes / 1e6:,.0f}",
                where=self.path,
                hint="Make room, or choose a --run-dir on another disk",
            )

    # Reading

    def config(self) -> RunConfig:
        """Reads `config.json`."""
        if not self.path.is_dir():
            with contextlib.suppress(OSError):
                recover_folder(self.path)
        if not self.path.is_dir():
            raise RunError(
                "no such run folder",
                where=self.path,
                hint="Train one: dsa-keras train --help",
            )
        data = self._read(self.config_file, "Is this the folder of a run?")
        try:
            values = json.loads(data.decode("utf-8"))
            config = RunConfig.from_dict(values)
        except ConfigError as error:
            problem, hint = error.problem, error.hint or _MISSING_HINT
        except (ValueError, RecursionError) as error:
            problem, hint = f"cannot be read ({error})", _MISSING_HINT
        else:
            if values["format"] == FORMAT and not self.manifest.exists:
                raise RunError("the file is missing", where=self.manifest.path, hint=_MISSING_HINT)
            return config
        raise RunError(problem, where=self.config_file, hint=hint)

    def vocabulary(self, config: RunConfig) -> Vocabulary:
        """Reads the vocabulary and checks that it is the one the model was trained with."""
        if self.manifest.exists:
            self.manifest.check("vocabulary.txt")
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

    def vectors(self, config: RunConfig) -> np.ndarray:
        """Reads fixed word vectors and checks them."""
        expected = (config.model.vocabulary_size, config.model.embedding_dim)
        if self.manifest.exists:
            self.manifest.check("vectors.npy")
        try:
            with self.vectors_file.open("rb") as file:
                matrix = np.load(file, allow_pickle=False)
        except FileNotFoundError:
            problem = "the file is missing"
        except Exception as error:  # NumPy raises whatever its parsers of a damaged header do
            problem = f"the file is damaged ({error!r:.200})"
        else:
            if not isinstance(matrix, np.ndarray) or matrix.dtype != np.float32:
                problem = "is no array of float32"
            elif matrix.shape != expected:
                problem = f"has shape {matrix.shape}, the model needs {expected}"
            elif not np.isfinite(matrix).all():
                problem = "holds numbers that are not finite"
            else:
                return matrix
        raise RunError(problem, where=self.vectors_file, hint=_MISSING_HINT)

    def load_network(self, config: RunConfig) -> Network:
        """Builds the network from our code, then loads its best weights."""
        from dsa_keras.models import Network
        from dsa_keras.runs.weights import assign_weights, weights_in

        weights = weights_in(self._read(self.best_file, _UNFINISHED), self.best_file)
        network = Network(config.model)
        if not config.model.train_embeddings:
            network.assign_vectors(self.vectors(config))
        assign_weights(network, weights, self.best_file)
        return network

    def num_parameters(self) -> int:
        """Trained parameters, as papers count them: without the statistics of batch norm."""
        from dsa_keras.runs.weights import weights_in

        weights = weights_in(self._read(self.best_file, _UNFINISHED), self.best_file)
        return sum(value.size for name, value in weights.items() if "/moving_" not in name)

    def state(self) -> bytes:
        """The bytes of `last.npz`, checked.

        Raises:
            RunError: if there is none, though the run was trained: going on would lose it.
        """
        return self._read(self.last_file, _UNFINISHED)

    @property
    def is_begun(self) -> bool:
        """Whether an epoch was finished, as far as the folder tells."""
        return any(one.exists() for one in (self.last_file, self.best_file, self.metrics_file))

    def records(self) -> list[Record]:
        """The figures of each finished epoch; none if there is no such file yet."""
        return self.metrics() if self.metrics_file.exists() else []

    def metrics(self) -> list[Record]:
        """Reads `metrics.jsonl`: a dictionary per epoch."""
        data = self._read(self.metrics_file, "Train the run again")
        try:
            records = [json.loads(line) for line in data.decode("utf-8").splitlines()]
            if not all(isinstance(one, dict) and "epoch" in one for one in records):
                raise ValueError("a line is not the record of an epoch")
            return records
        except (ValueError, RecursionError) as error:
            raise RunError(
                f"cannot be read ({error})", where=self.metrics_file, hint="Train the run again"
            ) from None

    def best(self, config: RunConfig) -> Record:
        """The record of the epoch whose weights were kept.

        Raises:
            RunError: if no epoch is finished.
        """
        records = self.records()
        if not records:
            raise RunError(
                "no epoch is finished yet", where=self.path, hint="Go on with train --resume"
            )
        try:
            return config.monitor.best(records)
        except (KeyError, TypeError) as error:
            raise RunError(
                f"cannot be read ({error!r})", where=self.metrics_file, hint="Train the run again"
            ) from None

    # Writing

    def save_config(self, config: RunConfig) -> None:
        """Writes `config.json` again."""
        with self.manifest.replacing() as files:
            files.write("config.json", lambda path: write_json(path, config.to_dict()))

    def save_epoch(
        self,
        state: Mapping[str, np.ndarray],
        best: Mapping[str, np.ndarray],
        records: Sequence[Record],
        card: str,
    ) -> None:
        """Writes an epoch: its state, and what can be made of that."""
        lines = "".join(json.dumps(record) + "\n" for record in records)
        with self.manifest.replacing() as files:
            files.write("last.npz", lambda path: np.savez(path, **state))  # type: ignore[arg-type]
            files.write("best.npz", lambda path: np.savez(path, **best))  # type: ignore[arg-type]
            files.write("metrics.jsonl", lambda path: path.write_text(lines, encoding="utf-8"))
            files.write("README.md", lambda path: path.write_text(card, encoding="utf-8"))

    def save_evaluation(self, split: str, figures: Mapping[str, Any]) -> None:
        """Keeps the figures of a split, and of which weights they are.

        Raises:
            RunError: if another process trains in the folder.
        """
        values = {"split": split, "weights": self._weights(), **figures}
        path = self.evaluation_file(split)
        if self.manifest.exists:
            with locked(self.path, "evaluating"), self.manifest.replacing() as files:
                files.write(path.name, lambda aside: write_json(aside, values))
        else:
            write_json(path, values)

    def evaluation(self, split: str) -> Record | None:
        """The figures of a split; None if it was not scored, or with other weights.

        Raises:
            RunError: if the file cannot be read.
        """
        path = self.evaluation_file(split)
        if not path.exists():
            return None
        data = self._read(path, "Make it again with evaluate")
        try:
            values = json.loads(data.decode("utf-8"))
            if not isinstance(values, dict):
                raise ValueError("not a JSON object")
        except (ValueError, RecursionError) as error:
            raise RunError(
                f"cannot be read ({error})", where=path, hint="Make it again with evaluate"
            ) from None
        if "weights" in values:
            return values if values["weights"] == self._weights() else None
        # Older ones do not say of which weights they are; their time does.
        older = path.stat().st_mtime < self.best_file.stat().st_mtime
        return None if older else values

    def evaluation_file(self, split: str) -> Path:
        """Where the figures of a split are kept."""
        return self.path / f"evaluation-{split}.json"

    def _weights(self) -> str:
        """What tells the best weights from others."""
        return hashlib.sha256(self._read(self.best_file, _UNFINISHED)).hexdigest()

    def _read(self, file: Path, hint: str) -> bytes:
        """The bytes of a file, those that the manifest knows."""
        if self.manifest.exists:
            return self.manifest.read_bytes(file.name)
        try:
            return file.read_bytes()
        except FileNotFoundError:
            raise RunError("the file is missing", where=file, hint=hint) from None
        except OSError as error:
            raise RunError(
                f"cannot be read ({error.strerror})", where=file, hint=_MISSING_HINT
            ) from None


_UNFINISHED = "Is this the folder of a run with a finished epoch?"


def _is_made_on_the_way(name: str) -> bool:
    """Whether it is an evaluation, or what a killed process has left of a file."""
    evaluation = name.startswith("evaluation-") and name.endswith(".json")
    return evaluation or is_aside(name) or is_aside(name, MARK)
