"""What a search is, and the folder it lives in.

search.json      the settings below
tuner/           KerasTuner's own state: oracle.json and a trial.json per trial
trials/ID/       candidate.json, outcome.json and run/, the run folder of the trial
clock.json       the seconds used so far
workers/         signs of life, when several machines search together
report/          what `report` writes
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsa_keras.commands.train_settings import configs
from dsa_keras.config import Preset
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.files import write_json
from tuning.spaces import SPACES, Row, rows_of

TUNERS = ("hyperband", "bayesian", "random", "grid")

_MAY_CHANGE = ("trials", "max_minutes", "data_dir", "vectors")


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a search does.

    Attributes:
        task: the name of the data set.
        data_dir: where it is.
        data_options: further options of `load_dataset`.
        vectors: files of word vectors.
        space: a name in `SPACES`.
        tuner: one of `TUNERS`.
        trials: at most so many are trained; None leaves it to the tuner.
        epochs: at most so many for a candidate.
        seed: of the search and of every training.
        max_parameters: larger networks are infeasible; None for no bound.
        max_minutes: of searching, all sessions together; None for no bound.
        fixed: hyper-parameters that are not searched.
    """

    task: str
    data_dir: str | None = None
    data_options: Mapping[str, Any] = field(default_factory=dict)
    vectors: tuple[str, ...] = ()
    space: str = "paper"
    tuner: str = "hyperband"
    trials: int | None = None
    epochs: int = 9
    seed: int = 0
    max_parameters: int | None = None
    max_minutes: float | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, names in (
            ("space", self.space, tuple(SPACES)),
            ("tuner", self.tuner, TUNERS),
        ):
            if value not in names:
                raise ConfigError(f"unknown {name} {value!r}", hint=f"Known: {', '.join(names)}")
        for name in ("trials", "max_parameters", "max_minutes", "epochs"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"{name} must be positive, got {value}")
        if not self.rows:
            raise ConfigError(
                f"nothing of the space {self.space} is left to search",
                hint="Fix fewer hyper-parameters",
            )

    @property
    def rows(self) -> tuple[Row, ...]:
        """The part of the space that is searched."""
        base = self.base(self.fixed.get("encoder", "dsa-single"))
        names = {one.name for one in SPACES[self.space]}
        settled = {**base.model.to_dict(), **base.training.to_dict()}
        untouched = {name: value for name, value in settled.items() if name not in names}
        return rows_of(self.space, {**untouched, **self.fixed})

    def base(self, encoder: str) -> Preset:
        """What `python -m dsa_keras train` would take for an encoder, with what is fixed here."""
        changes = {**self.fixed, "epochs": self.epochs, "seed": self.seed}
        changes.pop("encoder", None)
        arguments = argparse.Namespace(
            task=self.task,
            encoder=encoder,
            config=None,
            vectors=self.vectors,
            pair_column=self.data_options.get("pair_column"),
            **{f"hyper_{name}": value for name, value in changes.items()},
        )
        return Preset(*configs(arguments))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The settings that `to_dict` gave."""
        return cls(**{**values, "vectors": tuple(values["vectors"])})


class SearchFolder:
    """The folder of a search by its path; nothing is read before it is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.settings_file = self.path / "search.json"
        self.tuner_dir = self.path / "tuner"
        self.oracle_file = self.tuner_dir / "oracle.json"
        self.trials_dir = self.path / "trials"
        self.clock_file = self.path / "clock.json"
        self.workers_dir = self.path / "workers"
        self.stop_file = self.workers_dir / "time-is-up"
        self.report_dir = self.path / "report"

    def settings(self) -> Settings:
        """Reads `search.json`."""
        try:
            return Settings.from_dict(json.loads(self.settings_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            problem, hint = "there is no search", "Start one: python -m tuning search --help"
        except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
            problem, hint = f"search.json cannot be read ({error})", "Restore it"
        raise RunError(problem, where=self.path, hint=hint)

    def open(self, settings: Settings) -> bool:
        """Starts a search here, or goes on with the one that is here; True if it goes on.

        Raises:
            ConfigError: if the search that is here is another one.
        """
        if not self.settings_file.exists():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise RunError(
                    "the folder is not empty and no search",
                    where=self.path,
                    hint="Choose another --dir",
                )
            write_json(self.settings_file, settings.to_dict())
            return False
        old, new = self.settings().to_dict(), settings.to_dict()
        for name in old:
            if old[name] != new[name] and name not in _MAY_CHANGE:
                raise ConfigError(
                    f"the search was started with {name} {old[name]!r}, not {new[name]!r}",
                    where=self.path,
                    hint="Give the same options to go on, or another --dir for a new search",
                )
        write_json(self.settings_file, new)
        return True
