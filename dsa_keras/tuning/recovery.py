"""State files of KerasTuner that were cut short: set aside, reported, made again.

What is lost with a `trial.json` stands in our own records of the trial; what is lost with
`oracle.json` can be told from the trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keras_tuner.engine.trial import Trial, TrialStatus

from dsa_keras.files import write_json
from dsa_keras.tuning.records import COMPLETED, TrialFolder, trial_folders
from dsa_keras.tuning.settings import SearchFolder


def repair(folder: SearchFolder, oracle: Any) -> list[str]:
    """Makes the state of a search whole again.

    Args:
        folder: of the search.
        oracle: a new oracle of that search, whose state has not been loaded.

    Returns:
        What was found and done, a sentence each.
    """
    if not folder.tuner_dir.is_dir():
        return []
    notes, lost = [], False
    known = {files.id: files for files in trial_folders(folder.trials_dir)}
    on_disk = {path.name.removeprefix("trial_") for path in folder.tuner_dir.glob("trial_*")}
    for trial_id in sorted(known.keys() | on_disk):
        file = folder.tuner_dir / f"trial_{trial_id}" / "trial.json"
        if _is_whole(file, "hyperparameters"):
            continue
        _set_aside(file)
        files = known.get(trial_id)
        if files is not None and files.candidate() is not None:
            write_json(file, _trial_again(files, oracle).get_state())
            notes.append(f"{file}: was damaged, made again from {files.path}")
        else:
            lost = True
            notes.append(f"{file}: was damaged before the trial began, the trial is dropped")
    ids = [path.parent.name for path in folder.tuner_dir.glob("trial_*/trial.json")]
    if ids and (lost or not _is_whole(folder.oracle_file, "start_order")):
        _set_aside(folder.oracle_file)
        oracle._set_project_dir(str(folder.path), folder.tuner_dir.name)
        oracle.rebuild()
        notes.append(f"{folder.oracle_file}: was damaged, made again from {len(ids)} trials")
    elif not ids and not _is_whole(folder.oracle_file, "start_order"):
        _set_aside(folder.oracle_file)
    return notes


def _is_whole(file: Path, key: str) -> bool:
    try:
        return key in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _set_aside(file: Path) -> None:
    if file.exists():
        file.replace(file.with_name(f"{file.name}.broken"))


def _trial_again(files: TrialFolder, oracle: Any) -> Trial:
    record, outcome = files.candidate(), files.outcome()
    assert record is not None
    space = oracle.get_space()
    space.values = dict(record.values)
    trial = Trial(space, files.id, TrialStatus.RUNNING)
    if outcome is not None:
        trial.status, trial.message = outcome.status, outcome.reason
        if outcome.status == COMPLETED:
            goal = oracle.objective
            trial.metrics.register(goal.name, direction=goal.direction)
            trial.metrics.update(goal.name, outcome.figure, step=0)
            trial.score = outcome.figure
    return trial
