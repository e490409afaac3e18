"""A run that was killed, then interrupted, then resumed is to the bit one that never stopped."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from runs import SMALL_OPTIONS, tiny_run

from dsa_keras.errors import RunError
from dsa_keras.runs import Run
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import resume

ROOT = Path(__file__).parent.parent
EPOCHS = 10
QUIET = Options(show_progress=False)
TIMES = ("time", "seconds", "train_words_per_second")

START = [
    *("train", "demo-sentiment", "--deterministic", "--size", "200", "--epochs", str(EPOCHS)),
    *("--early-stopping", "0", "--averaging", "0.9", *SMALL_OPTIONS, "--kernel-sizes", "3"),
]


def started(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own, as a terminal would.

    Tests that a script started in the background ignore Ctrl-C, and a child would inherit that.
    """
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def send_after_epoch(process: subprocess.Popen[str], epoch: int, sent: signal.Signals) -> str:
    """Sends a signal when the process reports an epoch; returns the rest of its output."""
    guard = threading.Timer(600, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"epoch {epoch}/"):
                process.send_signal(sent)
                break
        return process.communicate()[0]
    finally:
        guard.cancel()


def state(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def records(folder: Path) -> list[dict]:
    return [
        {name: value for name, value in record.items() if name not in TIMES}
        for record in Run(folder).metrics()
    ]


def test_killed_and_interrupted_is_exactly_uninterrupted(tmp_path):
    killed = started(["-m", "dsa_keras", *START, "--run-dir", "stopped"], tmp_path)
    send_after_epoch(killed, 2, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    after_kill = len(records(tmp_path / "stopped"))
    assert 2 <= after_kill < EPOCHS

    command = "train --resume stopped"
    interrupted = started(["-m", "dsa_keras", *shlex.split(command)], tmp_path)
    told = send_after_epoch(interrupted, after_kill + 1, signal.SIGINT)
    assert interrupted.returncode == 130
    assert f"dsa-keras {command}" in told
    assert after_kill + 1 <= len(records(tmp_path / "stopped")) < EPOCHS

    # The last part, and the whole in one go.
    script = (
        "import sys; from dsa_keras.commands.main import main\n"
        f"sys.exit(main({shlex.split(command)!r}) or main({[*START, '--run-dir', 'whole']!r}))"
    )
    finished = started(["-c", script], tmp_path)
    finished.communicate(timeout=600)
    assert finished.returncode == 0

    assert records(tmp_path / "stopped") == records(tmp_path / "whole")
    assert len(records(tmp_path / "whole")) == EPOCHS
    for name in ("best.npz", "last.npz"):
        one, two = (state(tmp_path / run / name) for run in ("stopped", "whole"))
        assert one.keys() == two.keys()
        for key in one.keys() - {"meta"}:
            np.testing.assert_array_equal(one[key], two[key], err_msg=f"{name}: {key}")
    schedules = [
        json.loads(state(tmp_path / run / "last.npz")["meta"].tobytes())["schedule"]
        for run in ("stopped", "whole")
    ]
    assert schedules[0] == schedules[1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run whose word vectors are trained, and its state at that time."""
    path = tiny_run(
        tmp_path_factory.mktemp("trained") / "run",
        encoder="cnn",
        size=150,
        training={"epochs": 1, "early_stopping": 0},
    )
    return path, state(path / "last.npz")


def test_stopped_in_the_first_epoch_starts_with_the_same_vectors(trained):
    path, before = trained
    with Run(path).manifest.replacing() as files:
        for name in ("last.npz", "best.npz", "metrics.jsonl", "README.md"):
            files.remove(name)
    resume(path, options=QUIET)
    again = state(path / "last.npz")
    [table] = [name for name in before if name.startswith("weights/") and "embedding" in name]
    # An epoch changes the vectors a little; others would differ by their whole range.
    np.testing.assert_allclose(again[table], before[table], atol=0.02)


def test_a_finished_run_has_nothing_left_and_trains_longer(trained):
    path, _ = trained
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    resume(path, options=QUIET)
    assert len(Run(path).metrics()) == 1
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before
    resume(path, epochs=2, options=QUIET)
    assert [record["epoch"] for record in Run(path).metrics()] == [1, 2]
    assert Run(path).config().training.epochs == 2


def test_files_that_follow_from_the_state_are_made_again(trained):
    """Killed after `last.npz` was renamed and before the rest was: the rest is caught up."""
    path, _ = trained
    metrics, best = (path / "metrics.jsonl").read_text(), state(path / "best.npz")
    with Run(path).manifest.replacing() as files:
        files.remove("best.npz")
        files.write("metrics.jsonl", lambda aside: aside.write_text(""))
    resume(path, options=QUIET)
    assert (path / "metrics.jsonl").read_text() == metrics
    again = state(path / "best.npz")
    for name, value in best.items():
        np.testing.assert_array_equal(again[name], value)
    Run(path).manifest.check_all(ignore=["logs/*"])


def test_a_truncated_state_is_reported(trained):
    path, _ = trained
    whole = (path / "last.npz").read_bytes()
    try:
        (path / "last.npz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(RunError, match=r"last\.npz: is not the file that belongs here"):
            resume(path, options=QUIET)
    finally:
        (path / "last.npz").write_bytes(whole)
