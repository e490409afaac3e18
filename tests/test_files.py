"""Files and folders appear whole or not at all, whatever happens to their writer."""

from __future__ import annotations

import contextlib
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dsa_keras.files import folder_written_aside, write_json, write_text, written_aside

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
