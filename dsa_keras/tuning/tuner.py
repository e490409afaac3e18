"""Runs trials: each is a run folder that `dsa_keras.training` trains and resumes.

So a trial that was cut goes on from its last epoch, one that Hyperband promotes goes on from the
run of its predecessor, and every trial can be evaluated, exported and inspected as any other run.
"""

from __future__ import annotations

import contextlib
import filecmp
import gc
import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import Trial, TrialStatus
from keras_tuner.errors import FailedTrialError, FatalError

from dsa_keras.config import TrainingConfig
from dsa_keras.datasets import Dataset, load_dataset
from dsa_keras.errors import DsaError
from dsa_keras.files import folder_written_aside, is_aside, write_json
from dsa_keras.locks import LOCK
from dsa_keras.training.callbacks import TrainingError
from dsa_keras.training.schedule import Schedule
from dsa_keras.training.task_data import TaskData, prepare_task
from dsa_keras.training.trainer import resume, train
from dsa_keras.tuning.candidates import NetworkHyperModel
from dsa_keras.tuning.progress import Progress
from dsa_keras.tuning.records import COMPLETED, FAILED, CandidateRecord, Outcome, TrialFolder
from dsa_keras.tuning.settings import SearchFolder, Settings

_MOST_STARTS = 3


@dataclass(frozen=True)
class Task:
    """The data of a search, read and tokenised once for all its trials."""

    dataset: Dataset
    task_data: TaskData
    hypermodel: NetworkHyperModel


def load_task(settings: Settings) -> Task:
    """Loads the data that the settings name."""
    dataset = load_dataset(settings.task, settings.data_dir, **settings.data_options)
    recipe = settings.base(settings.encoders[0])
    dimension = settings.fixed.get("embedding_dim")
    task_data = prepare_task(dataset, recipe, settings.vectors, dimension=dimension)
    return Task(dataset, task_data, NetworkHyperModel(settings, dataset, task_data))


class SearchTuner(BaseTuner):
    """Runs the trials of one search, alone or as one of many workers.

    Args:
        folder: of the search.
        settings: of the search.
        task: its data.
        oracle: what chooses the candidates.
        time_is_up: asked after every epoch.
        progress: tells the user.
    """

    def __init__(
        self,
        folder: SearchFolder,
        settings: Settings,
        task: Task,
        oracle: Any,
        time_is_up: Callable[[], bool],
        progress: Progress,
    ) -> None:
        self.folder, self.settings, self.task = folder, settings, task
        self.time_is_up, self.progress = time_is_up, progress
        self.asked = self.cut = self.disowned = False
        worker = os.environ.get("KERASTUNER_TUNER_ID", "tuner0")
        if folder.oracle_file.exists():
            # KerasTuner loads the state only if this file, which holds nothing, is there.
            write_json(folder.tuner_dir / f"{worker}.json", {})
        with contextlib.redirect_stdout(io.StringIO()):
            super().__init__(oracle, directory=str(folder.path), project_name=folder.tuner_dir.name)

    def pre_create_trial(self) -> None:
        """Waits a moment when the last question was answered with "wait"."""
        if self.asked:
            self.progress.wait()
        self.asked = True

    def on_trial_begin(self, trial: Trial) -> None:
        """Notes whose trial it is now."""
        self.asked = self.cut = self.disowned = False
        files = self._files(trial)
        write_json(files.owner_file, {"worker": self.tuner_id})
        self.progress.begin(files)

    def run_trial(self, trial: Trial, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Trains a candidate; returns its figures."""
        files = self._files(trial)
        record, outcome = files.candidate(), files.outcome()
        assert record is not None
        if outcome is None:
            keras.backend.clear_session()
            gc.collect()
            outcome = self._outcome(files, record)
            if outcome is None:
                self.cut = True
                raise FailedTrialError("stopped by the clock")
            files.save_outcome(outcome)
        if outcome.status != COMPLETED:
            raise FailedTrialError(outcome.reason)
        assert outcome.figure is not None
        return {self.settings.goal.key: outcome.figure}

    def on_trial_end(self, trial: Trial) -> None:
        """Hands the trial back, unless it has been given to somebody else."""
        if self.disowned:
            return
        if self.cut:
            trial.status = TrialStatus.STOPPED
        super().on_trial_end(trial)
        self.progress.end(self._files(trial))

    def _files(self, trial: Trial) -> TrialFolder:
        return TrialFolder(self.folder.trials_dir / trial.trial_id)

    def _outcome(self, files: TrialFolder, record: CandidateRecord) -> Outcome | None:
        """Trains; returns how it ended, or None if it was cut."""
        starts = _count_starts(files)
        if starts > _MOST_STARTS:
            done = len(files.epochs())
            reason = f"the process died {_MOST_STARTS} times in epoch {done + 1}, out of memory?"
            return Outcome(FAILED, reason, epochs=done)
        try:
            self._train(files, record)
        except Exception as error:
            its_own_fault = isinstance(error, TrainingError)
            if not its_own_fault and isinstance(error, DsaError | OSError):
                # Not the candidate's fault: the next one would meet it too.
                raise FatalError(str(error)) from error
            reason = str(error).splitlines()[0] if str(error) else "no reason given"
            name = "" if its_own_fault else f"{type(error).__name__}: "
            return Outcome(FAILED, f"{name}{reason}"[:500], epochs=len(files.epochs()))
        if self.cut or self.disowned:
            return None
        _share(files, self.folder.path / "vectors.npy")
        epochs = files.epochs()
        best = self.settings.goal.best(epochs)
        past = 0
        if record.continues:
            past = len(TrialFolder(files.path.parent / record.continues).epochs())
        return Outcome(
            COMPLETED,
            figure=best[self.settings.goal.key],
            best_epoch=best["epoch"],
            epochs=len(epochs),
            seconds=sum(epoch["seconds"] for epoch in epochs[past:]),
        )

    def _train(self, files: TrialFolder, record: CandidateRecord) -> None:
        """Trains the run of a trial, which nobody else may do at the same time (`Run.training`)."""
        chosen = record.hyper_parameters()
        recipe = self.settings.base(chosen.pop("encoder")).replace(**chosen)

        def after_epoch(_: dict[str, Any]) -> bool:
            self.progress.epoch()
            self.disowned = _owner(files) != self.tuner_id
            # Not cut when this epoch was the last one anyway.
            self.cut = self.time_is_up() and not self._is_finished(files, recipe.training)
            return self.cut or self.disowned

        if record.continues and not files.run.config_file.exists():
            past = TrialFolder(files.path.parent / record.continues)
            _copy_run(past.run.path, files.run.path)
        if files.run.config_file.exists():
            resume(
                files.run.path,
                epochs=recipe.training.epochs,
                task_data=self.task.task_data,
                after_epoch=after_epoch,
            )
            return
        train(
            self.task.dataset,
            files.run.path,
            recipe,
            vectors=self.settings.vectors,
            task_data=self.task.task_data,
            after_epoch=after_epoch,
        )

    def _is_finished(self, files: TrialFolder, training: TrainingConfig) -> bool:
        """Whether the epoch that just ended was the last one."""
        goal = self.settings.goal
        schedule = Schedule(training, goal.monitor)
        for epoch in files.epochs():
            schedule.finish_epoch(epoch["train_loss"], epoch[goal.key])
        return schedule.finished


def _count_starts(files: TrialFolder) -> int:
    """How often the trial was started with as many epochs done as now."""
    done, starts = len(files.epochs()), 0
    try:
        before = json.loads(files.starts_file.read_text(encoding="utf-8"))
        starts = before["starts"] if before["epochs"] == done else 0
    except (OSError, ValueError, KeyError, TypeError):
        pass
    write_json(files.starts_file, {"epochs": done, "starts": starts + 1})
    return starts + 1


def _owner(files: TrialFolder) -> str:
    return json.loads(files.owner_file.read_text(encoding="utf-8"))["worker"]


def _copy_run(source: Path, target: Path) -> None:
    """Copies a run, by links: files of a run are replaced, never changed.

    The copy has all files that the manifest lists. Logs begin anew, and so does the lock.
    """

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    def left_out(_: str, names: list[str]) -> set[str]:
        return {name for name in names if name in ("logs", LOCK) or is_aside(name)}

    with folder_written_aside(target) as aside:
        shutil.copytree(source, aside, copy_function=link, ignore=left_out, dirs_exist_ok=True)


def _share(files: TrialFolder, original: Path) -> None:
    """Makes one file of the word vectors of all runs; manifests stay right, the bytes are equal."""
    file, aside = files.run.vectors_file, files.path / original.name
    try:
        if not file.exists() or file.samefile(original):
            return
    except FileNotFoundError:
        pass
    try:
        if not original.exists():
            os.link(file, original)
        elif filecmp.cmp(file, original, shallow=False):
            aside.unlink(missing_ok=True)
            os.link(original, aside)
            aside.replace(file)
    except OSError:
        # A file system without links keeps its copies.
        return
