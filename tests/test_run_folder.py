"""Run folders: made whole, never taken for what they are not, changed only by those who may."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bare_runs import (
    WORDS,
    config_of,
    epoch,
    finish_epoch,
    made,
    read,
    replace,
    sealed,
    told,
)
from killed import killed_at_every_step

from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.errors import RunError
from dsa_keras.files import new_aside
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.monitor import Monitor
from dsa_keras.objectives.regression import Regression
from dsa_keras.runs import Run

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden" / "runs"


def content(folder):
    """All files of a folder, but for locks, which say who has them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def run(tmp_path):
    """A run of two epochs."""
    return Run(epoch(made(tmp_path / "place" / "run"), 7, 0.25, 0.5))


@pytest.fixture
def older(tmp_path):
    """A run folder of format 1, which has no manifest."""
    path = shutil.copytree(GOLDEN / "sentence", tmp_path / "older")
    (path / "expected.json").unlink()
    return Run(path)


# The best epoch.


class LessIsBetter(Regression):
    higher_is_better = False


@pytest.mark.parametrize(
    ("objective", "figures", "best"),
    [
        (Classification(), [0.5, 0.7, 0.7, 0.6], 2),
        (Classification(), [0.5], 1),
        (Regression(), [-0.5, -0.9, -0.1, -0.1], 3),
        (LessIsBetter(), [0.5, 0.7, 0.3, 0.3], 3),
    ],
)
def test_of_older_runs_the_best_epoch_is_the_earliest_of_the_best(objective, figures, best):
    monitor = Monitor(objective)
    records = [{"epoch": n, monitor.key: one} for n, one in enumerate(figures, start=1)]
    assert monitor.best(records)["epoch"] == best


def test_the_best_epoch_is_the_one_that_training_kept():
    monitor = Monitor(Classification())
    # The first two are of an older version, which broke no ties; the fourth had a lower loss.
    records = [
        {"epoch": 1, "dev_accuracy": 0.5, "dev_loss": 0.9},
        {"epoch": 2, "dev_accuracy": 0.5, "dev_loss": 0.8},
        {"epoch": 3, "dev_accuracy": 0.7, "dev_loss": 0.7, "best": True},
        {"epoch": 4, "dev_accuracy": 0.7, "dev_loss": 0.6, "best": True},
        {"epoch": 5, "dev_accuracy": 0.7, "dev_loss": 0.6, "best": False},
    ]
    assert [monitor.best(records[:n])["epoch"] for n in range(1, 6)] == [1, 1, 3, 4, 4]
    resumed = [*records[:2], {**records[4], "dev_accuracy": 0.5}]
    assert monitor.best(resumed)["epoch"] == 1


def test_the_best_epoch_of_a_run(run):
    config = run.config()
    assert run.best(config) == {"epoch": 2, "dev_accuracy": 0.5}
    assert [record["epoch"] for record in run.records()] == [1, 2]
    assert run.num_parameters() == 3


def test_a_run_without_an_epoch_has_no_best(tmp_path):
    run = Run(made(tmp_path / "run"))
    assert run.records() == []
    assert not run.is_begun
    with pytest.raises(RunError, match=r"run: no epoch is finished yet\. Go on with train"):
        run.best(run.config())


@pytest.mark.parametrize(
    "text",
    [
        '{"epoch": 1}\n' * 2,
        '{"epoch": 1, "dev_accuracy": null}\n' * 2,
        "[1]",
        "{",
        "1",
        "\xff",
        "[" * 9999,
    ],
)
def test_records_that_are_none_are_told(run, text):
    run.metrics_file.write_text(text + "\n", encoding="latin-1")
    sealed(run.path)
    with pytest.raises(RunError, match=r"metrics\.jsonl: cannot be read .*Train the run again"):
        run.best(run.config())


# Evaluations.


def test_figures_of_other_weights_are_not_given(run):
    assert run.evaluation("test") is None
    run.save_evaluation("test", {"accuracy": 0.75})
    kept = run.evaluation("test")
    assert (kept["accuracy"], kept["split"]) == (0.75, "test")
    # Another epoch, but the same weights are the best.
    epoch(run.path, 7, 0.25, 0.5, 0.4)
    assert run.evaluation("test") == kept
    epoch(run.path, 8, 0.25, 0.5, 0.4, 0.6)
    assert run.evaluation("test") is None
    run.save_evaluation("test", {"accuracy": 0.8})
    assert run.evaluation("test")["accuracy"] == 0.8
    run.manifest.check_all()


def test_figures_of_format_1_are_known_by_their_time(older):
    file = older.evaluation_file("test")
    file.write_text('{"accuracy": 0.5}')
    weights = older.best_file.stat().st_mtime
    os.utime(file, (weights + 1, weights + 1))
    assert older.evaluation("test") == {"accuracy": 0.5}
    os.utime(file, (weights - 1, weights - 1))
    assert older.evaluation("test") is None
    older.save_evaluation("dev", {"accuracy": 0.25})
    assert older.evaluation("dev")["accuracy"] == 0.25
    assert not older.manifest.exists


@pytest.mark.parametrize("text", ["[1]", "null", "{", "[" * 9999])
def test_figures_that_cannot_be_read_are_told(run, text):
    run.evaluation_file("test").write_text(text)
    sealed(run.path)
    with pytest.raises(RunError, match=r"evaluation-test\.json: cannot be read .* with evaluate"):
        run.evaluation("test")


def test_figures_that_were_changed_are_told(run):
    run.save_evaluation("test", {"accuracy": 0.75})
    file = run.evaluation_file("test")
    file.write_text(file.read_text().replace("0.75", "0.95"))
    with pytest.raises(RunError, match=r"evaluation-test\.json: is not the file that belongs here"):
        run.evaluation("test")


# What may be replaced.


def written(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


NOT_OURS = {
    "a model of Hugging Face": {
        "config__json": '{"model_type": "bert", "architectures": ["BertModel"]}',
        "vocab__txt": "[PAD]",
        "README__md": "# BERT",
    },
    "a web project": {"config__json": '{"site": "blog"}', "package__json": "{}"},
    "notes": {"thesis__txt": "years of work"},
    "a list": {"config__json": "[]"},
    "files of a run without its config": {"vocabulary__txt": "<pad>", "README__md": "# mine"},
    "of format 2 without a manifest": {"config__json": json.dumps(config_of().to_dict())},
    "of a newer format": {"config__json": '{"format": 99}'},
}


@pytest.mark.parametrize("kind", NOT_OURS)
def test_a_folder_that_is_no_run_is_never_replaced(tmp_path, kind):
    folder = written(tmp_path / "folder", **NOT_OURS[kind])
    before = content(folder)
    with pytest.raises(RunError, match=r"not empty\. Choose another --run-dir"):
        Run(folder).check_free(force=False)
    for call in (lambda: Run(folder).check_free(force=True), lambda: made(folder, force=True)):
        with pytest.raises(RunError, match=r"the folder is not a run .* nothing in it is removed"):
            call()
    assert content(folder) == before
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("name", ["thesis.txt", ".git", "evaluation-mine.txt", "best.npz.bak"])
def test_a_run_with_something_else_in_it_is_never_replaced(run, name):
    if name == ".git":
        (run.path / name).mkdir()
    else:
        (run.path / name).write_text("mine")
    before = content(run.path)
    with pytest.raises(RunError, match=f"{name} is no file of a run, so the folder is not removed"):
        made(run.path, 1, force=True)
    assert content(run.path) == before


def test_a_run_of_ours_is_replaced_only_if_asked(run):
    run.save_evaluation("test", {"accuracy": 0.5})
    for folder in ("logs", "figures"):
        written(run.path / folder, anything="drawn")
    with pytest.raises(RunError, match=r"the folder is not empty.* overwrite with --force"):
        made(run.path, 1)
    assert told(run.path) == (0, 0, 7, 7, 7, 2)
    made(run.path, 1, force=True)
    assert told(run.path) == (1, 1)
    assert names(run.path) == [
        ".lock", "config.json", "manifest.json", "vectors.npy", "vocabulary.txt"
    ]  # fmt: skip


def test_what_a_killed_process_left_in_a_run_does_not_keep_it(run):
    for file, mark in ((run.best_file, "replacing"), (run.config_file, "aside")):
        assert new_aside(file, mark).name.startswith(".")
    run.check_free(force=True)
    made(run.path, 1, force=True)
    assert told(run.path) == (1, 1)


def test_an_old_run_of_format_1_is_replaced(older):
    with pytest.raises(RunError, match="not empty"):
        made(older.path)
    made(older.path, 1, force=True)
    assert told(older.path) == (1, 1)


def test_an_empty_folder_is_no_loss(tmp_path):
    (tmp_path / "empty").mkdir()
    assert told(made(tmp_path / "empty")) == (0, 0)
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / ".lock").touch()
    assert told(made(tmp_path / "locked")) == (0, 0)
    assert told(made(tmp_path / "new" / "and" / "deep")) == (0, 0)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(RunError, match=r"file: is not a folder"):
        made(tmp_path / "file", force=True)
    assert (tmp_path / "file").read_text() == "text"


def test_a_command_replaces_its_own_runs_only(tmp_path):
    mine = made(tmp_path / "run", made_by="train")
    with pytest.raises(RunError, match="a run on demo-sentiment that demo did not make"):
        Run(mine).check_free(force=True, made_by="demo")
    with Run(mine).made(config_of(3, made_by="demo"), WORDS, None, force=True):
        pass
    Run(mine).check_free(force=True, made_by="demo")
    assert Run(mine).config().made_by == "demo"


def test_behind_a_link_the_folder_is_replaced(run, tmp_path):
    (tmp_path / "latest").symlink_to(run.path)
    made(tmp_path / "latest", 1, force=True)
    assert (tmp_path / "latest").is_symlink()
    assert told(run.path) == (1, 1)


# Made whole or not at all.


class FullDisk(Vocabulary):
    def save(self, path):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("old", [True, False])
def test_what_cannot_be_prepared_leaves_the_old_run(tmp_path, old):
    path = tmp_path / "run"
    if old:
        epoch(made(path), 7, 0.5)
    before = content(tmp_path)
    with pytest.raises(OSError, match="No space left"):
        made(path, 1, force=True, words=FullDisk(list(WORDS)[2:]))
    assert content(tmp_path) == before
    assert names(tmp_path) == ["run"] * old


def test_a_training_that_fails_leaves_a_run_to_go_on_with(tmp_path):
    path = tmp_path / "run"
    run = Run(path)
    with pytest.raises(ZeroDivisionError), run.made(config_of(3), WORDS, None, force=False):
        raise ZeroDivisionError
    assert run.config() == config_of(3)
    assert not run.is_begun
    with run.training():
        pass


def test_killed_while_it_replaces_a_run_it_leaves_the_old_or_the_new_one(run, tmp_path):
    folders = killed_at_every_step(replace, run.path.parent, tmp_path / "scratch")
    found = [told_after_kill(folder / "run") for folder in folders]
    assert len(folders) > 20
    old, new = (0, 0, 7, 7, 7, 2), (1, 1)
    change = found.index(new)
    assert found == [old] * change + [new] * (len(found) - change)
    assert change > 5
    for folder in folders:
        # The next one is not kept out by what was left, and nothing of it stays.
        assert told(made(folder / "run", 5, force=True)) == (5, 5)
        assert names(folder) == ["run"]


def told_after_kill(path):
    """Between two renames there is no folder: it is put back when the run is asked for."""
    Run(path).config()
    return told(path)


def test_killed_while_it_writes_an_epoch_the_run_still_loads(run, tmp_path):
    folders = killed_at_every_step(finish_epoch, run.path.parent, tmp_path / "scratch")
    assert len(folders) > 10
    old, new = (0, 0, 7, 7, 7, 2), (0, 0, 2, 2, 2, 2)
    found = [told(folder / "run") for folder in folders]
    assert found[0] == old
    assert found[-1] == new
    for one in found:
        assert all(
            number in (first, last) for number, first, last in zip(one, old, new, strict=True)
        )
    assert sum(one not in (old, new) for one in found) >= 3, "files are renamed one after another"
    for folder in folders:
        epoch(folder / "run", 9, 0.5)
        assert told(folder / "run") == (0, 0, 9, 9, 9, 1)
        Run(folder / "run").check_free(force=True)


# One process at a time.


@pytest.fixture
def elsewhere(run):
    """Another process that trains in the folder."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "bare_runs.py"), str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_another_process_is_kept_out(run, elsewhere):
    from dsa_keras.training.trainer import resume

    message = rf"run: another process \(pid {elsewhere.pid}\) is training in this folder"
    before = content(run.path)
    for call in (
        lambda: resume(run.path),
        lambda: run.training().__enter__(),
        lambda: made(run.path, 1, force=True),
        lambda: run.save_evaluation("test", {"accuracy": 1.0}),
    ):
        with pytest.raises(RunError, match=message):
            call()
    assert content(run.path) == before
    assert told(run.path) == (0, 0, 7, 7, 7, 2)  # to be read it needs no lock
    elsewhere.send_signal(signal.SIGKILL)
    elsewhere.wait()
    made(run.path, 1, force=True)


def test_a_run_is_locked_from_its_first_moment(tmp_path):
    run = Run(tmp_path / "run")
    with run.made(config_of(), WORDS, None, force=False):
        with pytest.raises(RunError, match="this process is already training in this folder"):
            run.training().__enter__()
        with pytest.raises(RunError, match="this process is already training in this folder"):
            made(run.path, 1, force=True)
    with run.training(), pytest.raises(RunError, match="this process is already training"):
        made(run.path, 1, force=True)


# What is missing.


@pytest.mark.parametrize("name", ["config.json", "vocabulary.txt", "vectors.npy", "best.npz"])
def test_a_missing_file_is_told(run, name):
    (run.path / name).unlink()
    with pytest.raises(RunError, match=rf"{name}: is missing\. Restore it, or train again"):
        read(run)


def test_a_missing_manifest_is_told(run):
    run.manifest.path.unlink()
    with pytest.raises(RunError, match=r"manifest\.json: the file is missing"):
        run.config()


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises(RunError, match=r"nothing: no such run folder\. Train one"):
        Run(tmp_path / "nothing").config()
    with pytest.raises(RunError, match=r"config\.json: the file is missing\. Is this the folder"):
        Run(tmp_path).config()


def test_a_file_that_cannot_be_read_is_told(run):
    run.manifest.path.unlink()
    run.config_file.unlink()
    run.config_file.mkdir()
    with pytest.raises(RunError, match=r"config\.json: cannot be read \(Is a directory\)"):
        run.config()
