"""Searches as real processes that are killed: alone, and as chief and workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsa_keras.tuning.records import COMPLETED, TrialFolder
from dsa_keras.tuning.settings import SearchFolder
from tests.runs import SMALL_OPTIONS

DEADLINE = 400.0
"""Seconds until a test gives up; on two idle cores everything here takes a tenth of that."""

EPOCHS = 6
"""Of a trial: enough for a kill to hit the middle."""

ROOT = Path(__file__).parent.parent


def _options(folder: Path, trials: int, epochs: int) -> list[str]:
    pairs = zip(SMALL_OPTIONS[::2], SMALL_OPTIONS[1::2], strict=True)
    small = [
        part for pair in pairs if pair[0] not in ("--units", "--num-dense-layers") for part in pair
    ]
    return [
        *("demo-sentiment", "--size", "300", "--tuner", "random", "--space", "small"),
        *("--trials", str(trials), "--epochs", str(epochs), "--dir", str(folder)),
        *("--early-stopping", "0", "--batch-size", "64", "--kernel-sizes", "3", *small),
    ]


@pytest.fixture
def start(tmp_path):
    """Starts commands of the package; kills what is left of them in the end."""
    started = []

    def run(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (tmp_path / f"{name}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dsa_keras", "tune", *arguments],
            cwd=ROOT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.close()
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def _until(holds, process, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if found := holds():
            return found
        assert process.poll() is None, f"the process ended before {what}"
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def _output(tmp_path, name):
    return (tmp_path / f"{name}.log").read_text()


def test_a_search_survives_kill_9_and_a_truncated_state_file(start, tmp_path):
    folder = SearchFolder(tmp_path / "search")
    command = ["search", *_options(folder.path, trials=2, epochs=EPOCHS)]
    trial = TrialFolder(folder.trials_dir / "0000")
    first = start("first", *command)
    _until(trial.epochs, first, "an epoch")
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    before = trial.epochs()
    assert 1 <= len(before) < EPOCHS
    assert trial.outcome() is None
    whole = folder.oracle_file.read_bytes()
    folder.oracle_file.write_bytes(whole[: len(whole) // 2])

    second = start("second", *command)
    assert second.wait(DEADLINE) == 0, _output(tmp_path, "second")
    output = _output(tmp_path, "second")
    assert f"{folder.oracle_file}: was damaged, made again from 1 trials" in output
    assert "goes on after epoch" in output
    assert trial.epochs()[: len(before)] == before
    assert len(trial.epochs()) == EPOCHS
    assert trial.outcome().status == COMPLETED
    assert TrialFolder(folder.trials_dir / "0001").outcome().status == COMPLETED


@pytest.mark.slow
def test_chief_and_workers_of_which_one_is_killed(start, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    folder = SearchFolder(tmp_path / "shared")
    options = [*_options(folder.path, trials=3, epochs=EPOCHS), "--patience", "10"]
    workers = {
        name: start(name, "worker", "--dir", str(folder.path), "--address", address, "--id", name)
        for name in ("ann", "bob")
    }
    chief = start("chief", "chief", *options, "--address", address)

    def trial_of_ann():
        for number in range(3):
            files = TrialFolder(folder.trials_dir / f"{number:04d}")
            owned = files.owner_file.exists() and '"ann"' in files.owner_file.read_text()
            if owned and files.epochs() and files.outcome() is None:
                return files
        return None

    trial = _until(trial_of_ann, chief, "an epoch of a trial of ann's")
    workers["ann"].send_signal(signal.SIGKILL)
    workers["ann"].wait()
    before = trial.epochs()
    assert chief.wait(DEADLINE) == 0, _output(tmp_path, "chief")
    assert workers["bob"].wait(DEADLINE) == 0, _output(tmp_path, "bob")
    assert f"worker ann gave no sign of life, trial {trial.id} goes to the next one" in _output(
        tmp_path, "chief"
    )
    assert json.loads(trial.owner_file.read_text()) == {"worker": "bob"}
    assert trial.epochs()[: len(before)] == before
    for number in range(3):
        files = TrialFolder(folder.trials_dir / f"{number:04d}")
        assert files.outcome().status == COMPLETED
        assert len(files.epochs()) == EPOCHS
    assert "3 trials finished" in _output(tmp_path, "chief")
    assert "nothing is left to do" in _output(tmp_path, "bob")
