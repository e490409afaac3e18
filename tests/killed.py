"""Processes that are killed before each step that changes a file system, one after another."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate")
# More steps than this would mean that nobody is ever killed, or that it never ends.
MANY = 300


def killed_at_every_step(act: Callable[[Path], None], before: Path, scratch: Path) -> list[Path]:
    """What is left of a folder whose process was killed before the n-th change, for every n.

    Args:
        act: a function of a test module; it gets the folder, in a process of its own.
        before: the folder as it is at first.
        scratch: where the copies are made.

    Returns:
        The folders, in the order of the steps. The last one is of the process that was not killed.
    """
    arguments = [act.__module__, act.__name__, str(before), str(scratch)]
    subprocess.run([sys.executable, __file__, *arguments], cwd=ROOT, check=True)
    return sorted(scratch.iterdir(), key=lambda one: int(one.name))


def _kill_at(step: int) -> None:
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        opened = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if event in CHANGES or opened:
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _main(module: str, name: str, before: str, scratch: str) -> None:
    act = getattr(importlib.import_module(module), name)
    for step in range(1, MANY):
        folder = Path(scratch) / str(step)
        shutil.copytree(before, folder, symlinks=True)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _kill_at(step)
                act(folder)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return
        assert code == -signal.SIGKILL, code
    raise AssertionError("there is no end to the steps")


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    _main(*sys.argv[1:])
