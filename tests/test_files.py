"""Files and folders appear whole or not at all, whatever happens to their writer."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from killed import killed_at_every_step

from dsa_keras.files import (
    folder_written_aside,
    is_aside,
    recover_folder,
    replaced_folder,
    write_json,
    write_text,
    written_aside,
)

REPOSITORY = Path(__file__).parent.parent


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "new" / "vectors.npy"
    with written_aside(str(path)) as aside:
        assert aside.suffix == ".npy"
        assert aside.parent == path.parent  # a rename does not work across file systems
        aside.write_text("content")
        assert not path.exists()
    assert path.read_text() == "content"
    assert names(path.parent) == ["vectors.npy"]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failing_writer_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "model.json"
    write_json(path, {"old": "é"})
    with pytest.raises(error), written_aside(path) as aside:  # noqa: PT012
        aside.write_text("half")
        raise error
    assert json.loads(path.read_text(encoding="utf-8")) == {"old": "é"}
    assert names(tmp_path) == ["model.json"]


@pytest.mark.parametrize("name", ["folder", "n" * 254])
def test_errors_name_the_file_and_not_the_one_beside_it(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=f"{name}'$") as caught, written_aside(tmp_path / name):
        pass
    assert caught.value.filename == str(tmp_path / name)
    assert names(tmp_path) == ["folder"]


def test_what_cannot_be_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.json"
    write_text(path, "old")
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert path.read_text() == "old"
    assert names(tmp_path) == ["model.json"]


def test_our_temporary_names_are_known_and_others_are_not(tmp_path):
    for path in (tmp_path / "a.npy", tmp_path / "b", tmp_path / ".c", tmp_path / "d.e-f\n.tar"):
        with written_aside(path) as aside:
            assert is_aside(aside.name)
            assert not is_aside(aside.name, "other")
        with folder_written_aside(tmp_path / "folder") as aside:
            assert is_aside(aside.name)
    for name in ("a.npy", ".a.npy", ".a-x.aside", "a-abcdefgh.aside", ".a-abcdefgh.aside.b.c"):
        assert not is_aside(name)


def test_a_folder_appears_whole(tmp_path):
    path = tmp_path / "export" / "1"
    with folder_written_aside(path) as aside:
        (aside / "variables").mkdir()
        (aside / "variables" / "data").write_text("weights")
        assert not path.exists()
    assert (path / "variables" / "data").read_text() == "weights"
    assert names(path.parent) == ["1"]
    plain = tmp_path / "plain"
    plain.mkdir()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failing_writer_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="stop"), folder_written_aside(tmp_path / "1") as aside:  # noqa: PT012
        (aside / "half").write_text("half")
        raise ValueError("stop")
    assert names(tmp_path) == []


def test_a_folder_is_never_overwritten(tmp_path):
    path = tmp_path / "1"
    path.mkdir()
    with folder_written_aside(path) as aside:  # an empty folder is no loss
        (aside / "new").touch()
    with (
        pytest.raises(FileExistsError, match="exists and is not empty"),
        folder_written_aside(path),
    ):
        pass
    assert names(path) == ["new"]
    assert names(tmp_path) == ["1"]


KILLED = """
import sys
from dsa_keras.files import {writer} as writer

with writer(sys.argv[1]) as aside:
    place = aside / "half" if aside.is_dir() else aside
    with place.open("w") as file:
        file.write("half")
        file.flush()
        print("writing", flush=True)
        sys.stdin.read()
"""


@pytest.mark.parametrize("writer", ["written_aside", "folder_written_aside"])
def test_a_killed_writer_leaves_what_was_there(tmp_path, writer):
    path = tmp_path / "thing"
    if writer == "written_aside":
        path.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(writer=writer), str(path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    if writer == "written_aside":
        assert path.read_text() == "old"
    else:
        assert not path.exists()
    # What a killed writer leaves aside does not stop the next one.
    if writer == "written_aside":
        write_text(path, "new")
        assert path.read_text() == "new"
    else:
        with folder_written_aside(path) as aside:
            (aside / "file").write_text("new")
        assert names(path) == ["file"]


def test_two_writers_of_a_folder_leave_each_other_alone(tmp_path):
    with folder_written_aside(tmp_path / "thing") as slow:
        (slow / "one").touch()
        with folder_written_aside(tmp_path / "other"):
            pass
        with contextlib.suppress(ZeroDivisionError), folder_written_aside(tmp_path / "thing"):
            raise ZeroDivisionError
        assert (slow / "one").exists()
    assert names(tmp_path) == ["other", "thing"]


def fill(folder, **files):
    for name, content in files.items():
        (folder / name).write_text(content)


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


OLD, NEW = {"config": "old", "weights": "old"}, {"config": "new", "vectors": "new"}


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "runs" / "run"
    path.mkdir(parents=True)
    fill(path, **OLD)
    return path


def replace(runs):
    """The old folder becomes the new one; run in a process that is killed on the way."""
    with replaced_folder(runs / "run") as aside:
        fill(aside, **NEW)


def test_a_folder_takes_the_place_of_another(run):
    permissions = run.stat().st_mode
    with replaced_folder(str(run)) as aside:
        assert aside.parent == run.parent
        fill(aside, **NEW)
        assert content(run) == OLD
    assert content(run) == NEW
    assert run.stat().st_mode == permissions
    assert names(run.parent) == ["run"]
    with replaced_folder(run.parent / "other" / "first"):
        pass
    assert names(run.parent / "other") == ["first"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failing_writer_leaves_the_old_folder(run, error):
    with pytest.raises(error), replaced_folder(run) as aside:  # noqa: PT012
        fill(aside, **NEW)
        raise error
    assert content(run) == OLD
    assert names(run.parent) == ["run"]


def test_a_folder_that_cannot_be_renamed_leaves_the_old_one(run, monkeypatch):
    real = os.replace

    def replace_but_the_new(source, target):
        if Path(source).name.endswith(".aside") and Path(target) == run:
            raise OSError(errno.EIO, "broken disk")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace_but_the_new)
    with pytest.raises(OSError, match="broken disk"), replaced_folder(run) as aside:
        fill(aside, **NEW)
    assert content(run) == OLD
    assert names(run.parent) == ["run"]


def test_only_a_folder_is_replaced(run):
    with pytest.raises(NotADirectoryError), replaced_folder(run / "config"):
        pass
    assert content(run) == OLD
    # The folder that a link leads to is replaced, where it is; the link stays.
    link = run.parent.parent / "link"
    link.symlink_to(run)
    with replaced_folder(link) as aside:
        assert aside.parent == run.parent
        fill(aside, **NEW)
    assert link.is_symlink()
    assert content(run) == NEW


def test_a_killed_replacement_leaves_the_old_or_the_new_folder(run, tmp_path):
    killed = tmp_path / "killed"
    killed.mkdir()
    missing, left = 0, set()
    for runs in killed_at_every_step(replace, run.parent, killed):
        path = runs / "run"
        left |= {name.rsplit(".")[-1] for name in names(runs)}
        expected = content(path) if path.exists() else OLD
        missing += not path.exists()
        assert expected in (OLD, NEW)
        again, failed = runs.with_name(f"{runs.name}-again"), runs.with_name(f"{runs.name}-failed")
        for copy in (again, failed):
            shutil.copytree(runs, copy)
        recover_folder(path)
        assert content(path) == expected
        assert not [name for name in names(runs) if name.endswith(".replaced")]
        with contextlib.suppress(ZeroDivisionError), replaced_folder(failed / "run"):
            raise ZeroDivisionError
        assert content(failed / "run") == expected
        replace(again)
        assert content(again / "run") == NEW
        assert names(failed) == names(again) == ["run"]
    assert missing == 1  # between the two renames
    assert left == {"run", "aside", "replaced"}


def test_only_what_the_pattern_says_is_put_back_or_removed(run):
    runs = run.parent
    kept = [".run-abcdefgh.replaced.bak", ".run-ABCDEFGH.replaced", ".run-abcdefg.replaced"]
    kept += [".run-1-abcdefgh.replaced", "run-abcdefgh.replaced", ".ran-abcdefgh.replaced"]
    for name in kept:
        (runs / name).mkdir()
        fill(runs / name, **NEW)
    (runs / ".run-abcdefgh.replaced").touch()  # a file
    (runs / ".run-ijklmnop.replaced").symlink_to(runs / kept[0])
    before = names(runs)
    recover_folder(run)
    shutil.rmtree(run)
    recover_folder(run)
    assert names(runs) == [name for name in before if name != "run"]
    assert all(content(runs / name) == NEW for name in kept)


@pytest.mark.parametrize("there", ["missing", "empty", "full"])
def test_an_old_folder_goes_back_to_an_empty_place_only(run, there):
    old = run.with_name(".run-abcdefgh.replaced")
    run.rename(old)
    if there != "missing":
        run.mkdir()
    if there == "full":
        fill(run, **NEW)
    recover_folder(run)
    assert content(run) == (NEW if there == "full" else OLD)
    assert names(run.parent) == ["run"]


HOLDING = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(handle, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_folder_that_a_live_process_has_is_left_alone(run):
    old = run.with_name(".run-abcdefgh.replaced")
    run.rename(old)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(old)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        recover_folder(run)
        assert names(run.parent) == [old.name]
        process.kill()
        process.wait()
        recover_folder(run)
    assert content(run) == OLD


def test_two_do_not_replace_one_folder_at_a_time(run):
    with replaced_folder(run) as aside:
        with pytest.raises(BlockingIOError, match=f"Another process is replacing it: '{run}'"):
            replace(run.parent)
        fill(aside, **NEW)
    assert content(run) == NEW
    # Two that make a folder that was not there: the second to end says so, and changes nothing.
    path = run.with_name("other")
    with pytest.raises(OSError, match="not empty"), replaced_folder(path) as slow:  # noqa: PT012
        fill(slow, **OLD)
        with replaced_folder(path) as fast:
            fill(fast, **NEW)
    assert content(path) == NEW
    assert names(run.parent) == ["other", "run"]


def test_a_folder_that_was_removed_meanwhile_is_made_anew(run):
    with replaced_folder(run) as aside:
        fill(aside, **NEW)
        shutil.rmtree(run)
    assert content(run) == NEW
    assert names(run.parent) == ["run"]


def test_half_a_folder_is_never_put_back(run, monkeypatch):
    """From the moment when the old folder begins to go, its name says that it is rubbish."""
    seen = []
    real = shutil.rmtree

    def look(folder, **options):
        seen.append(Path(folder).name)
        real(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", look)
    replace(run.parent)
    run.with_name(".run-abcdefgh.replaced").mkdir()
    recover_folder(run)
    assert seen
    assert all(name.endswith(".aside") for name in seen)


def test_a_file_system_that_locks_no_folders(run, monkeypatch):
    """As NFS, which none can mount in a test: flock says what it says there."""

    def flock(handle, how):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    rubbish = run.with_name(".run-abcdefgh.aside")
    rubbish.mkdir()
    replace(run.parent)
    assert content(run) == NEW
    assert names(run.parent) == [rubbish.name, "run"]  # it may be another's
    run.rename(run.with_name(".run-abcdefgh.replaced"))
    recover_folder(run)
    assert content(run) == NEW


def test_all_of_a_folder_is_on_the_disk_before_it_is_renamed(run, monkeypatch):
    events = []
    synced, renamed = os.fsync, os.replace

    def fsync(handle):
        events.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        synced(handle)

    def rename(source, target):
        events.append((str(source), str(target)))
        renamed(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    with replaced_folder(run) as aside:
        fill(aside, **NEW)
        (aside / "deep").mkdir()
        fill(aside / "deep", **NEW)
        os.mkfifo(aside / "pipe")  # must not keep us waiting
    old = str(aside.with_suffix(".replaced"))
    ends = [(str(run), old), (str(aside), str(run)), str(run.parent), (old, str(aside))]
    assert events[-5:] == [*ends, str(run.parent)]
    files = {str(aside / name) for name in (*NEW, "deep", "deep/config", "deep/vectors")}
    assert set(events[:-5]) == {*files, str(aside)}
