"""What all oracles of a search have: budgets, and a state that survives.

- A candidate over the parameter budget is recorded as invalid and another one is drawn; it counts
  neither as a trial nor as a failure, and leaves no hole in a round of Hyperband.
- The time budget: once it is used up no trial starts, and one that was cut goes back to the queue.
- State files are written whole or not at all (KerasTuner writes them in place).
- While trials run, a worker that finds nothing to do is told to wait: if another worker dies, its
  trial goes back to the queue, and somebody must be there to take it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras_tuner
from keras_tuner.engine.trial import Trial, TrialStatus

from dsa_keras.files import write_json
from dsa_keras.tuning.candidates import NetworkHyperModel
from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.records import FAILED, INVALID, CandidateRecord, Outcome, TrialFolder
from dsa_keras.tuning.settings import SearchFolder, Settings

DEFAULT_TRIALS = 20

_MOST_INFEASIBLE = 200
_MOST_FAILURES = 5


class Guarded(keras_tuner.Oracle):
    """Budgets and lasting state for an oracle of KerasTuner, which comes after it among the bases.

    Args:
        settings: of the search.
        hypermodel: knows the space and the size of a candidate.
        folder: of the search.
        clock: of the time budget.
        **options: of the oracle.
    """

    def __init__(
        self,
        settings: Settings,
        hypermodel: NetworkHyperModel,
        folder: SearchFolder,
        clock: Clock,
        **options: Any,
    ) -> None:
        space = keras_tuner.HyperParameters()
        hypermodel.declare(space)
        super().__init__(
            objective=keras_tuner.Objective(settings.goal.key, settings.goal.direction),
            hyperparameters=space,
            # KerasTuner takes 0 for "any".
            seed=settings.seed + 1,
            # It would raise with its lock held; `_why_over` does the same without.
            max_consecutive_failed_trials=10**9,
            **options,
        )
        self.settings, self.hypermodel, self.folder, self.clock = (
            settings,
            hypermodel,
            folder,
            clock,
        )
        self.over: str | None = None
        self.infeasible_in_a_row = 0
        self.verbose = 0

    def planned_trials(self) -> int:
        """How many trials the search will train, at most."""
        return self.settings.trials or DEFAULT_TRIALS

    def planned_epochs(self) -> int:
        """How many epochs that takes, at most."""
        return self.planned_trials() * self.settings.epochs

    @keras_tuner.synchronized
    def create_trial(self, tuner_id: str) -> Trial:
        """A feasible trial, or one whose status says to wait or to stop."""
        while True:
            if reason := self._why_over(tuner_id):
                self.over = reason
                self.tuner_ids.discard(tuner_id)
                return Trial(self.get_space(), "none", TrialStatus.STOPPED)
            trial = super().create_trial(tuner_id)
            if trial.status == TrialStatus.STOPPED:
                if not self.ongoing_trials:
                    self.over = self.over or "every candidate of the space has been tried"
                    return trial
                self.tuner_ids.add(tuner_id)
                return Trial(self.get_space(), "none", TrialStatus.IDLE)
            if trial.status != TrialStatus.RUNNING or self._is_feasible(trial):
                self.infeasible_in_a_row = 0
                return trial
            self.infeasible_in_a_row += 1

    @keras_tuner.synchronized
    def end_trial(self, trial: Trial) -> None:
        """Ends a trial; one that was stopped by the clock goes back to the queue."""
        ongoing = [one.trial_id for one in self.ongoing_trials.values()]
        if trial.trial_id not in ongoing:
            return
        if trial.status == TrialStatus.STOPPED:
            self.put_back(trial.trial_id)
        else:
            super().end_trial(trial)
            # KerasTuner writes its state while the trial still counts as running.
            self.save()

    @keras_tuner.synchronized
    def put_back(self, trial_id: str) -> None:
        """Takes a trial from whoever has it; the next one who asks gets it."""
        for tuner_id, trial in list(self.ongoing_trials.items()):
            if trial.trial_id == trial_id:
                del self.ongoing_trials[tuner_id]
                self._retry_queue.append(trial_id)
        self.save()

    @keras_tuner.synchronized
    def forget_worker(self, tuner_id: str) -> str | None:
        """Gives up on a worker; returns the trial that it had."""
        self.tuner_ids.discard(tuner_id)
        trial = self.ongoing_trials.get(tuner_id)
        if trial is None:
            return None
        self.put_back(trial.trial_id)
        return trial.trial_id

    def counted_trials(self) -> int:
        """Trials that were trained or are being trained."""
        return sum(trial.status != INVALID for trial in self.trials.values())

    def save(self) -> None:
        """Writes `oracle.json`, whole or not at all."""
        write_json(self._get_oracle_fname(), self.get_state())

    def reload(self) -> None:
        """Reads the state; a trial that was written a moment before the state joins the queue."""
        super().reload()
        ended = [key for key, one in self.trials.items() if one.status != TrialStatus.RUNNING]
        self._retry_queue[:] = [key for key in self._retry_queue if key not in ended]
        queued = [
            trial_id
            for trial_id, trial in sorted(self.trials.items())
            if trial.status == TrialStatus.RUNNING and trial_id not in self._retry_queue
        ]
        if queued:
            self._retry_queue.extend(queued)
            self._take_over_trials()

    def rebuild(self) -> None:
        """Makes the state again from the trials' own files, and writes it."""
        for file in sorted(Path(self._project_dir).glob("trial_*/trial.json")):
            trial = Trial.load(str(file))
            self.trials[trial.trial_id] = trial
        # Past the seeds of the lost state, so that no candidate is drawn twice.
        self._seed_state = self.seed + len(self.trials) * len(self.hyperparameters.space)
        self._take_over_trials()
        self.save()

    def _take_over_trials(self) -> None:
        self.start_order = sorted(self.trials)
        ended = [key for key in self.start_order if self.trials[key].status != TrialStatus.RUNNING]
        self.end_order += [trial_id for trial_id in ended if trial_id not in self.end_order]
        for trial in self.trials.values():
            self._record_values(trial)
        self.restore_place()

    def _save_trial(self, trial: Trial) -> None:
        write_json(Path(self._get_trial_dir(trial.trial_id)) / "trial.json", trial.get_state())

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The values of a new trial, or why there is none."""
        if self.settings.trials and self.counted_trials() >= self.settings.trials:
            self.over = f"{self.settings.trials} trials are done"
            return {"status": TrialStatus.STOPPED, "values": None}
        found = super().populate_space(trial_id)
        if not self.trials and found["status"] == TrialStatus.RUNNING:
            # The first candidate is the recipe's, so that the others are compared with it.
            found["values"] = {
                **{name: value for name, value in found["values"].items() if "tuner/" in name},
                **self._defaults(),
            }
        return found

    def _defaults(self) -> dict[str, Any]:
        space = self.get_space()
        return {hp.name: hp.default for hp in space.space if space.is_active(hp)}

    def _why_over(self, tuner_id: str) -> str | None:
        if tuner_id in self.ongoing_trials:
            return None
        if self.clock.is_up():
            return f"the {self.settings.max_minutes:g} minutes are used up"
        if self.infeasible_in_a_row >= _MOST_INFEASIBLE:
            return (
                f"{_MOST_INFEASIBLE} candidates in a row are over the parameter budget of "
                f"{self.settings.max_parameters:,}"
            )
        ended = [self.trials[trial_id].status for trial_id in self.end_order]
        ended = [status for status in ended if status != INVALID][-_MOST_FAILURES:]
        if len(ended) == _MOST_FAILURES and set(ended) == {FAILED}:
            return f"the last {_MOST_FAILURES} trials all failed"
        return None

    def _is_feasible(self, trial: Trial) -> bool:
        """Records what the trial is; one over the budget is ended here."""
        files = TrialFolder(self.folder.trials_dir / trial.trial_id)
        record = files.candidate()
        if record is None:
            record = self._record(trial)
            files.save_candidate(record)
        budget = self.settings.max_parameters
        if budget is None or record.parameters <= budget:
            return True
        reason = f"over the parameter budget: {record.parameters:,} > {budget:,}"
        files.save_outcome(Outcome(INVALID, reason))
        trial.status, trial.message = INVALID, reason
        self.end_order.append(trial.trial_id)
        for worker in [key for key, one in self.ongoing_trials.items() if one is trial]:
            del self.ongoing_trials[worker]
        self._forget_place(trial.trial_id)
        self._save_trial(trial)
        self.save()
        return False

    def _record(self, trial: Trial) -> CandidateRecord:
        values = trial.hyperparameters.values
        found = self.hypermodel.candidate(values)
        training = found.recipe.training
        training = training.replace(epochs=values.get("tuner/epochs", training.epochs))
        return CandidateRecord(
            trial=trial.trial_id,
            values=dict(values),
            searched=dict(found.searched),
            model=found.recipe.model.to_dict(),
            training=training.to_dict(),
            parameters=self.hypermodel.count_parameters(found.recipe.model),
            continues=values.get("tuner/trial_id"),
        )

    def _forget_place(self, trial_id: str) -> None:
        """Undoes what the oracle noted when it drew an infeasible candidate."""

    def restore_place(self) -> None:
        """Finds the oracle's place in its plan again from the trials alone."""
