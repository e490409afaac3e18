"""One process at a time works in a folder; the others are told which process, and what it does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from dsa_keras.errors import RunError

LOCK = ".lock"
# What a lock file says is shown to people, so nothing but plain text is taken from it.
_OWNER = re.compile(r"(\d{1,10}) ([^\W_][\w .,'/-]{0,99})\n")

_held: set[int] = set()


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Keeps every other process, and every other use in this one, out of the same block.

    The lock is the kernel's, on the file `.lock` of the folder. It goes with the process, however
    that ends; nothing is left that has to be removed. The file stays, and says while the lock is
    held who has it. It is never removed, since a process that waits for one file and a process
    that makes another would both have a lock.

    It keeps out only those who ask for it. On a network file system it holds between the processes
    of one machine, and between machines only if that file system passes `flock` on (NFS 4 does;
    others have options for it, or refuse, which is an error here). If somebody removes the file
    or the folder, or moves another folder to its place, the next one gets a lock of its own. A
    folder that is filled aside and then renamed keeps its lock.

    Args:
        folder: an existing folder.
        doing: what the process does, as in "another process is training in this folder".

    Raises:
        RunError: at once, if the lock is taken or there can be none.

    Example:
    ```python
    with locked(run.path, "training"):
        fit()
    ```
    """
    folder = Path(folder)
    try:
        handle = _taken(folder, doing)
    except OSError as error:
        raise RunError(
            f"cannot be locked ({error.strerror})",
            where=folder / LOCK,
            hint="Use a folder that you may write to, on a disk of this machine",
        ) from None
    _held.add(handle)
    try:
        yield
    finally:
        # A forked child that comes here has closed its handle; the number may be another file's.
        if handle in _held:
            _held.remove(handle)
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
            os.close(handle)


def _taken(folder: Path, doing: str) -> int:
    path = folder / LOCK
    while True:
        # A pipe in its place must not keep us waiting, nor a link lead us elsewhere.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(path, flags, 0o666)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(None, "it is not a file")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _refusal(folder, handle) from None
            with contextlib.suppress(FileNotFoundError):
                # A folder copied by links has the file of the other one: it gets its own.
                if found.st_nlink > 1:
                    path.unlink()
                # Removed between the calls, the file would lock nothing: another one is made.
                if os.path.samestat(found, path.lstat()):
                    with contextlib.suppress(OSError):  # a full disk locks as well
                        os.ftruncate(handle, 0)
                        os.pwrite(handle, f"{os.getpid()} {doing}\n".encode(), 0)
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _refusal(folder: Path, handle: int) -> RunError:
    problem = "another process is using this folder"
    if owner := _OWNER.fullmatch(os.pread(handle, 1000, 0).decode(errors="replace")):
        problem = f"another process (pid {owner[1]}) is {owner[2]} in this folder"
        if int(owner[1]) == os.getpid():
            problem = f"this process is already {owner[2]} in this folder"
    return RunError(problem, where=folder, hint="Wait for it, or stop it")


def _leave_to_parent() -> None:
    """A forked child must not hold the lock on when its parent is gone."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
