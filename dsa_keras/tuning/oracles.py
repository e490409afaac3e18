"""KerasTuner's oracles with what a long search needs, which `Guarded` adds to each.

Grid search goes on after a restart, which KerasTuner's does not: it keeps its place in memory.

KerasTuner has no public way to much of this, so what is used of it, here and in the other modules
of the package, is private by nature. `PRIVATE` lists it, as KerasTuner 1.4 has it;
`tests/test_tuning_private.py` names what moved when a later version moves something.
"""

from __future__ import annotations

import warnings
from typing import Any

from keras_tuner import oracles as kt
from keras_tuner.engine.trial import TrialStatus

from dsa_keras.errors import ConfigError
from dsa_keras.tuning.candidates import NetworkHyperModel
from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.guarded import DEFAULT_TRIALS, Guarded
from dsa_keras.tuning.records import INVALID
from dsa_keras.tuning.settings import SearchFolder, Settings

HYPERBAND_FACTOR = 3

PRIVATE = {
    "keras_tuner.src.engine.oracle:Oracle": (
        "_duplicate",
        "_get_oracle_fname",
        "_get_trial_dir",
        "_project_dir",
        "_record_values",
        "_retry_queue",
        "_save_trial",
        "_seed_state",
        "_set_project_dir",
        "end_order",
        "ongoing_trials",
        "start_order",
        "trials",
        "tuner_ids",
    ),
    "keras_tuner.src.tuners.gridsearch:GridSearchOracle": ("_get_next_combination",),
    "keras_tuner.src.tuners.bayesian:BayesianOptimizationOracle": ("_random_populate_space",),
    "keras_tuner.src.tuners.hyperband:HyperbandOracle": (
        "_brackets",
        "_current_bracket",
        "_get_epochs",
        "_get_num_brackets",
        "_get_size",
    ),
    "keras_tuner.src.engine.base_tuner:BaseTuner": ("_get_tuner_fname",),
    "keras_tuner.src.engine.trial:Trial": ("message", "metrics", "score", "status"),
    "keras_tuner.src.distribute.oracle_chief:OracleServicer": (),
    "keras_tuner.src.protos:get_service_grpc": (),
}
"""What is used of KerasTuner that its documentation does not promise, by where it is."""


class RandomOracle(Guarded, kt.RandomSearchOracle):
    """Candidates drawn evenly from the space."""


class GridOracle(Guarded, kt.GridSearchOracle):
    """All candidates of the space in order; ranges are taken at ten points."""

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The first combination that has not been tried."""
        if self.settings.trials and self.counted_trials() >= self.settings.trials:
            return super().populate_space(trial_id)
        values = self._defaults()
        while values is not None and self._duplicate(values):
            values = self._get_next_combination(values)
        status = TrialStatus.STOPPED if values is None else TrialStatus.RUNNING
        return {"status": status, "values": values}


class BayesianOracle(Guarded, kt.BayesianOptimizationOracle):
    """Candidates by a Gaussian process, after a third of the trials at random."""

    def __init__(self, settings: Settings, *args: Any, **options: Any) -> None:
        first = max(4, (settings.trials or DEFAULT_TRIALS) // 3)
        super().__init__(settings, *args, num_initial_points=first, **options)

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The process's proposal, or a random one if that was tried or the last was infeasible."""
        if self.infeasible_in_a_row:
            return self._random_populate_space()
        with warnings.catch_warnings():
            # The process fits its own parameters to a handful of points, and says so at length.
            warnings.simplefilter("ignore")
            found = super().populate_space(trial_id)
        if found["status"] == TrialStatus.RUNNING and self._duplicate(found["values"]):
            return self._random_populate_space()
        return found


class HyperbandOracle(Guarded, kt.HyperbandOracle):
    """Many candidates for few epochs, the better third of them for three times as many."""

    def planned_trials(self) -> int:
        """The trials of all rounds of all brackets, if no bound is given."""
        planned = sum(self._get_size(bracket, round_) for bracket, round_ in self._plan())
        return min(planned, self.settings.trials or planned)

    def planned_epochs(self) -> int:
        """The epochs of all rounds; a promoted run goes on where it was."""
        epochs = trials = 0
        for bracket, round_ in self._plan():
            before = self._get_epochs(bracket, round_ - 1) if round_ else 0
            size = min(self._get_size(bracket, round_), self.planned_trials() - trials)
            epochs += size * (self._get_epochs(bracket, round_) - before)
            trials += size
        return epochs

    def _plan(self) -> list[tuple[int, int]]:
        brackets = range(self._get_num_brackets())
        return [(one, round_) for one in reversed(brackets) for round_ in range(one + 1)]

    def _forget_place(self, trial_id: str) -> None:
        for bracket in self._brackets:
            bracket["rounds"] = [
                [entry for entry in entries if entry["id"] != trial_id]
                for entries in bracket["rounds"]
            ]

    def restore_place(self) -> None:
        """Puts every trial into its bracket and round."""
        found: dict[int, list[list[dict[str, Any]]]] = {}
        bracket_of: dict[str, int] = {}
        for trial_id in sorted(self.trials):
            trial = self.trials[trial_id]
            values = trial.hyperparameters.values
            if trial.status == INVALID:
                continue
            # A promoted trial names the bracket that was current, not the one it belongs to.
            number = bracket_of.get(values.get("tuner/trial_id"), values["tuner/bracket"])
            bracket_of[trial_id], round_ = number, values["tuner/round"]
            rounds = found.setdefault(number, [[] for _ in range(number + 1)])
            rounds[round_].append({"past_id": values.get("tuner/trial_id"), "id": trial_id})
        last = self._get_num_brackets() - 1
        self._current_bracket = min(found, default=last)
        self._brackets: list[dict[str, Any]] = [
            {"bracket_num": number, "rounds": found.get(number, [[] for _ in range(number + 1)])}
            for number in range(last, self._current_bracket - 1, -1)
        ]


def build_oracle(
    settings: Settings, hypermodel: NetworkHyperModel, folder: SearchFolder, clock: Clock
) -> Any:
    """The oracle that the settings ask for."""
    if settings.tuner == "hyperband":
        return HyperbandOracle(
            settings,
            hypermodel,
            folder,
            clock,
            max_epochs=settings.epochs,
            factor=HYPERBAND_FACTOR,
        )
    kinds = {"random": RandomOracle, "grid": GridOracle, "bayesian": BayesianOracle}
    try:
        return kinds[settings.tuner](settings, hypermodel, folder, clock, max_trials=None)
    except ImportError as error:
        raise ConfigError(
            f"the tuner {settings.tuner} cannot start ({error})",
            hint="Install what it needs: pip install scikit-learn scipy",
        ) from None
