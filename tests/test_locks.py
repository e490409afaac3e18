"""One process at a time has a folder, and no process that is gone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dsa_keras.errors import RunError
from dsa_keras.files import replaced_folder
from dsa_keras.locks import LOCK, locked

REPOSITORY = Path(__file__).parent.parent

HOLD = """
import sys
from dsa_keras.locks import locked

with locked(sys.argv[1], "training"):
    print("locked", flush=True)
    sys.stdin.read()
"""

# The child has copies of all handles; it says so, and outlives its parent.
FORK = """
import os, sys
from dsa_keras.locks import locked

with locked(sys.argv[1], "training"):
    if os.fork() == 0:
        print(f"child {os.getpid()}", flush=True)
        sys.stdin.read()
        os._exit(0)
    sys.stdin.read()
"""

# All of them wait for one line, then try at the same time.
TRY = """
import sys
from dsa_keras.errors import RunError
from dsa_keras.locks import locked

print("ready", flush=True)
sys.stdin.readline()
try:
    with locked(sys.argv[1], "trying"):
        print("locked", flush=True)
        sys.stdin.read()
except RunError:
    print("refused", flush=True)
"""


@contextlib.contextmanager
def process(script, folder):
    """A process, and the first line it printed; ended with SIGKILL."""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


def is_free(folder):
    try:
        with locked(folder, "testing"):
            return True
    except RunError:
        return False


def test_another_process_is_refused_and_told_who_has_it(tmp_path):
    with process(HOLD, tmp_path) as (other, said):
        assert said == "locked"
        with pytest.raises(RunError) as caught, locked(tmp_path, "training"):
            pass
        assert str(caught.value) == (
            f"{tmp_path}: another process (pid {other.pid}) is training in this folder. "
            "Wait for it, or stop it"
        )
        # A refused process leaves the words of the one that has it.
        assert (tmp_path / LOCK).read_text() == f"{other.pid} training\n"
        other.stdin.close()
        assert other.wait() == 0
        assert is_free(tmp_path)
    assert (tmp_path / LOCK).read_text() == ""


def test_the_lock_goes_with_a_killed_process(tmp_path):
    with process(HOLD, tmp_path) as (other, said):
        assert said == "locked"
        assert not is_free(tmp_path)
        other.send_signal(signal.SIGKILL)
        assert other.wait() == -signal.SIGKILL
        assert is_free(tmp_path)


def test_a_forked_child_does_not_hold_the_lock_of_its_killed_parent(tmp_path):
    with process(FORK, tmp_path) as (other, said):
        child = int(re.fullmatch(r"child (\d+)", said)[1])
        try:
            assert not is_free(tmp_path)
            other.send_signal(signal.SIGKILL)
            assert other.wait() == -signal.SIGKILL
            os.kill(child, 0)  # it lives
            assert is_free(tmp_path)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_that_leaves_the_block_closes_nothing_of_its_own(tmp_path):
    script = FORK.replace("sys.stdin.read()\n        os._exit(0)", "mine = os.open('/', 0)")
    script += "\nos.fstat(mine)\nprint('open', flush=True)"
    with process(script, tmp_path) as (other, said):
        assert said.startswith("child")
        assert not is_free(tmp_path)
        other.stdin.close()
        assert other.stdout.readline() == "open\n"


def test_this_process_is_refused_too(tmp_path):
    with locked(tmp_path, "training"):
        with (
            pytest.raises(RunError, match="this process is already training in this folder"),
            locked(tmp_path, "evaluating"),
        ):
            pass
        # The refused one has not let go of the lock.
        assert not is_free(tmp_path)
        thread = threading.Thread(target=lambda: found.append(is_free(tmp_path)))
        found = []
        thread.start()
        thread.join()
        assert found == [False]
    assert is_free(tmp_path)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_lock_goes_with_its_block(tmp_path, error):
    with pytest.raises(error), locked(tmp_path, "training"):
        raise error
    assert is_free(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_one_of_many_gets_it(tmp_path):
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(process(TRY, tmp_path)) for _ in range(6)]
        for other, said in many:
            assert said == "ready"
            other.stdin.write("go\n")
            other.stdin.flush()
        assert sorted(other.stdout.readline() for other, _ in many) == [
            "locked\n",
            *["refused\n"] * 5,
        ]
        assert not is_free(tmp_path)


def test_a_removed_file_is_made_again(tmp_path):
    with locked(tmp_path, "training"):
        (tmp_path / LOCK).unlink()
        assert is_free(tmp_path)  # what no lock can help
    with locked(tmp_path, "training"):
        assert not is_free(tmp_path)


def test_a_file_that_goes_while_it_is_locked_does_not_count(tmp_path, monkeypatch):
    """The lock is on the file that is there in the end, not on one that nobody finds any more."""
    import fcntl

    real, removed = fcntl.flock, []

    def flock(handle, how):
        real(handle, how)
        if not removed:
            removed.append((tmp_path / LOCK).unlink())

    monkeypatch.setattr(fcntl, "flock", flock)
    with locked(tmp_path, "training"):
        assert removed
        assert not is_free(tmp_path)


def test_a_folder_copied_by_links_has_a_lock_of_its_own(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    assert is_free(one)
    shutil.copytree(one, other, copy_function=os.link)
    with locked(one, "training"), locked(other, "training"):
        assert not is_free(one)
        assert not is_free(other)
    # Copied while the first is locked, the copy waits: a lock too many, never one too few.
    shutil.rmtree(other)
    with locked(one, "training"):
        shutil.copytree(one, other, copy_function=os.link)
        assert not is_free(other)
        assert not is_free(one)
    assert is_free(other)


def test_a_folder_that_is_filled_aside_keeps_its_lock(tmp_path):
    path = tmp_path / "run"
    with contextlib.ExitStack() as stack:
        with replaced_folder(path) as aside:
            stack.enter_context(locked(aside, "training"))
        assert not is_free(path)
    assert is_free(path)


@pytest.mark.parametrize(
    "words", ["", "12", "x training\n", "1 \x1b[2J\n", "1 a\x1b[2J\n", "\xff" * 9999]
)
def test_what_others_wrote_to_the_file_is_not_shown(tmp_path, words):
    with locked(tmp_path, "training"):
        (tmp_path / LOCK).write_text(words, encoding="latin-1")
        with (
            pytest.raises(RunError, match="another process is using this folder") as caught,
            locked(tmp_path, "training"),
        ):
            pass
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "missing", "file"])
def test_where_there_can_be_no_lock_is_one_error(tmp_path, kind):
    folder = tmp_path / "run"
    if kind != "missing":
        folder.touch() if kind == "file" else folder.mkdir()
    {
        "folder": lambda: (folder / LOCK).mkdir(),
        "pipe": lambda: os.mkfifo(folder / LOCK),
        "link": lambda: (folder / LOCK).symlink_to(tmp_path / "elsewhere"),
    }.get(kind, lambda: None)()
    with (
        pytest.raises(RunError, match=r"run/\.lock: cannot be locked \(.+\)\. Use a folder"),
        locked(folder, "training"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
    assert folder.exists() == (kind != "missing")
