"""What a search is, and the folder it lives in.

search.json      the settings below
tuner/           KerasTuner's own state: oracle.json and a trial.json per trial
trials/ID/       candidate.json, outcome.json and run/, the run folder of the trial
clock.json       the seconds used so far
workers/         signs of life, when several machines search together
report/          what `report` writes
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsa_keras.config import Recipe, TrainingConfig
from dsa_keras.datasets import preset
from dsa_keras.errors import ConfigError, RunError, nearest
from dsa_keras.files import write_json
from dsa_keras.tuning.goal import Goal
from dsa_keras.tuning.spaces import SHARED, SPACES, SearchRow, encoders_of, rows_of

TUNERS = ("hyperband", "bayesian", "random", "grid")

_MAY_CHANGE = ("trials", "max_minutes", "data_dir", "vectors", "imports")


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
        fixed: hyper-parameters that are not searched, the `encoder` by its name among them.
        imports: modules of the user's own that register what the search is about. They are told
            to the user again; nothing imports a module because a file names it.
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
    imports: tuple[str, ...] = ()

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
        for name, reference in (("task", self.task), ("encoder", self.fixed.get("encoder", ""))):
            if ":" in str(reference):
                raise ConfigError(
                    f"the {name} of a search is a registered name. Received: {reference!r}",
                    hint="Import its module with --import",
                )
        self._check_fixed()
        self._check_shared()
        if not self.rows:
            raise ConfigError(
                f"nothing of the space {self.space} is left to search",
                hint="Fix fewer hyper-parameters",
            )

    @functools.cached_property
    def encoders(self) -> tuple[str, ...]:
        """The encoders that take part, the first of which is that of the first candidate."""
        return encoders_of(self.space, self.fixed)

    @functools.cached_property
    def rows(self) -> tuple[SearchRow, ...]:
        """The part of the space that is searched."""
        recipes = {name: self.base(name) for name in self.encoders}
        return rows_of(self.space, recipes, self.fixed)

    @functools.cached_property
    def goal(self) -> Goal:
        """The figure that the search is after."""
        return Goal(self.base(self.encoders[0]).monitor)

    def base(self, encoder: str) -> Recipe:
        """The recipe that `train` would take for an encoder, with what is fixed here.

        What is fixed for other encoders that take part, and means nothing to this one, is left out.
        """
        recipe = preset(self.task, encoder, self.data_options, vectors=bool(self.vectors))
        known = _names(recipe) - {"encoder"}
        changes = {name: value for name, value in self.fixed.items() if name in known}
        return recipe.replace(**{**changes, "epochs": self.epochs, "seed": self.seed})

    def _check_fixed(self) -> None:
        known = set().union(*(_names(self.base(name)) for name in self.encoders))
        for name in self.fixed:
            if name not in known:
                raise ConfigError(
                    f"{name!r} is no hyper-parameter of {', '.join(self.encoders)}",
                    hint=nearest(name, sorted(known)),
                )

    def _check_shared(self) -> None:
        """The words of the data become numbers once for all candidates."""
        first, *others = self.encoders
        wanted = self.base(first).hyper_parameters()
        for other in others:
            found = self.base(other).hyper_parameters()
            for name in SHARED:
                if found[name] != wanted[name]:
                    raise ConfigError(
                        f"{first} and {other} have different recipes for the words ({name}), which "
                        "all candidates share",
                        hint=f"Fix --{name.replace('_', '-')}, or give one --encoder",
                    )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The settings that `to_dict` gave; older ones have no `imports`."""
        lists = {name: tuple(values.get(name, ())) for name in ("vectors", "imports")}
        return cls(**{**values, **lists})


def _names(recipe: Recipe) -> set[str]:
    """The hyper-parameters that a recipe has."""
    return {"encoder", *recipe.model.choosable(), *TrainingConfig.choices()}


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
        except ConfigError as error:
            problem, hint = f"search.json: {error.problem}", error.hint or "Start a new search"
        except FileNotFoundError:
            problem, hint = "there is no search", "Start one: dsa-keras tune search --help"
        except (OSError, ValueError, KeyError, TypeError) as error:
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
