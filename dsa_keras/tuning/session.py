"""What the commands do: a search alone, a chief, a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_tuner.errors import FatalError

from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.oracles import build_oracle
from dsa_keras.tuning.progress import Progress
from dsa_keras.tuning.records import COMPLETED, FAILED, INVALID, trial_folders
from dsa_keras.tuning.recovery import repair
from dsa_keras.tuning.settings import SearchFolder, Settings
from dsa_keras.tuning.tuner import SearchTuner, Task, load_task
from dsa_keras.tuning.workers import serve, signs_of_life


def search_alone(folder: SearchFolder, settings: Settings) -> None:
    """Searches in this process, from where an earlier one was stopped if there was one."""
    task, clock = load_task(settings), Clock(folder.clock_file, settings.max_minutes)
    oracle = _whole_oracle(folder, settings, task, clock)
    tuner = _tuner(folder, settings, task, oracle, clock, clock.is_up, alone=True)
    _run(tuner)
    clock.save()
    print(f"{_counts(folder)}: {oracle.over}; {tuner.progress.best()}", flush=True)


def search_as_chief(
    folder: SearchFolder, settings: Settings, address: str, patience: float
) -> None:
    """Chooses candidates for workers, and looks after their trials."""
    task, clock = load_task(settings), Clock(folder.clock_file, settings.max_minutes)
    oracle = _whole_oracle(folder, settings, task, clock)
    tuner = _tuner(folder, settings, task, oracle, clock, clock.is_up, alone=False)
    tuner.save()
    serve(folder, oracle, clock, patience, address)
    print(f"{_counts(folder)}: {oracle.over}; {tuner.progress.best()}", flush=True)


def search_as_worker(folder: SearchFolder, worker: str) -> None:
    """Trains the candidates that the chief chooses."""
    settings = folder.settings()
    with signs_of_life(folder, worker):
        task, clock = load_task(settings), Clock(folder.clock_file, None)
        oracle = build_oracle(settings, task.hypermodel, folder, clock)
        time_is_up = folder.stop_file.exists
        _run(_tuner(folder, settings, task, oracle, clock, time_is_up, alone=False))
    print(f"worker {worker}: nothing is left to do", flush=True)


def _whole_oracle(folder: SearchFolder, settings: Settings, task: Task, clock: Clock) -> Any:
    for note in repair(folder, build_oracle(settings, task.hypermodel, folder, clock)):
        print(note, flush=True)
    return build_oracle(settings, task.hypermodel, folder, clock)


def _tuner(
    folder: SearchFolder,
    settings: Settings,
    task: Task,
    oracle: Any,
    clock: Clock,
    time_is_up: Callable[[], bool],
    *,
    alone: bool,
) -> SearchTuner:
    trials, epochs = oracle.planned_trials(), oracle.planned_epochs()
    progress = Progress(folder, settings.goal, clock, trials, epochs, alone)
    return SearchTuner(folder, settings, task, oracle, time_is_up, progress)


def _run(tuner: SearchTuner) -> None:
    try:
        tuner.search()
    except FatalError as error:
        raise error.__cause__ or error from None


def _counts(folder: SearchFolder) -> str:
    outcomes = [files.outcome() for files in trial_folders(folder.trials_dir)]
    ended = [outcome.status for outcome in outcomes if outcome is not None]
    parts = [f"{ended.count(COMPLETED)} trials finished"]
    for status, word in ((FAILED, "failed"), (INVALID, "over the parameter budget")):
        if status in ended:
            parts.append(f"{ended.count(status)} {word}")
    return ", ".join(parts)
