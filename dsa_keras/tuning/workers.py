"""One search on many machines: KerasTuner's chief and workers, and what they lack.

The chief holds the oracle and answers its workers over gRPC; all of them see one folder. KerasTuner
has no idea that a worker may die: its chief would wait for the lost trial for ever. So each worker
leaves a sign of life in the folder, and when it stays the same for too long the chief gives the
trial to the next worker, who goes on from its last epoch. Signs are compared with themselves and by
the chief's own clock, so that clocks need not agree.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from dsa_keras.errors import ConfigError, RunError
from dsa_keras.files import write_text
from dsa_keras.tuning.clock import Clock
from dsa_keras.tuning.settings import SearchFolder

_BEAT_SECONDS = 1.0


def set_role(worker: str, address: str) -> None:
    """Sets KerasTuner's environment variables.

    Args:
        worker: the name of this process; it is the chief if the name has "chief" in it.
        address: `HOST:PORT` of the chief.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise ConfigError(f"the address {address!r} is not HOST:PORT", hint="Such as 10.0.0.5:8000")
    os.environ["KERASTUNER_TUNER_ID"] = worker
    os.environ["KERASTUNER_ORACLE_IP"] = host
    os.environ["KERASTUNER_ORACLE_PORT"] = port


def check_worker_id(name: str) -> None:
    """Refuses names that cannot be a file's, and those that KerasTuner takes for the chief's."""
    if not re.fullmatch(r"[\w.-]+", name) or "chief" in name:
        raise ConfigError(
            f"{name!r} cannot be the name of a worker",
            where="--id",
            hint='Use letters, digits, "-", and not the word chief',
        )


def wait_for_chief(folder: SearchFolder) -> None:
    """Waits until the chief has written the settings of the search."""
    told = False
    while not folder.settings_file.exists():
        if not told:
            print(f"waiting for the chief to start the search in {folder.path}", flush=True)
            told = True
        time.sleep(0.2)


@contextlib.contextmanager
def signs_of_life(folder: SearchFolder, worker: str) -> Iterator[None]:
    """Leaves a sign of life every second while the block runs."""
    file, ended = _sign(folder, worker), threading.Event()

    def beat() -> None:
        count = 0
        while True:
            count += 1
            # A full disk or a folder that is away for a moment is no reason to stop beating.
            with contextlib.suppress(OSError):
                write_text(file, f"{os.getpid()} {count}\n")
            if ended.wait(_BEAT_SECONDS):
                return

    thread = threading.Thread(target=beat, name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        file.unlink(missing_ok=True)


class Watch:
    """The chief's eye on its workers.

    Args:
        folder: of the search.
        oracle: gives back the trials of workers that died.
        patience: seconds without a new sign of life after which a worker counts as dead.
    """

    def __init__(self, folder: SearchFolder, oracle: Any, patience: float) -> None:
        self.folder, self.oracle, self.patience = folder, oracle, patience
        self.seen: dict[str, tuple[str, float]] = {}

    def look(self) -> list[str]:
        """Looks at every worker once; returns what to tell the user."""
        notes = []
        for worker in sorted(set(self.oracle.tuner_ids) | set(self.oracle.ongoing_trials)):
            sign, now = _read(_sign(self.folder, worker)), time.monotonic()
            if self.seen.get(worker, ("", 0.0))[0] != sign or worker not in self.seen:
                self.seen[worker] = (sign, now)
            elif now - self.seen[worker][1] > self.patience:
                del self.seen[worker]
                trial = self.oracle.forget_worker(worker)
                lost = f", trial {trial} goes to the next one" if trial else ""
                notes.append(f"worker {worker} gave no sign of life{lost}")
        return notes


def serve(folder: SearchFolder, oracle: Any, clock: Clock, patience: float, address: str) -> None:
    """Answers workers until the search is over and the last of them has left."""
    import grpc
    from keras_tuner.src import protos
    from keras_tuner.src.distribute.oracle_chief import OracleServicer

    folder.stop_file.unlink(missing_ok=True)
    # One thread, as KerasTuner has it: its lock tells threads apart by name.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="oracle"))
    protos.get_service_grpc().add_OracleServicer_to_server(OracleServicer(oracle), server)
    try:
        server.add_insecure_port(address)
    except RuntimeError:
        raise RunError(
            f"cannot listen on {address}", hint="Is the port taken? Choose another --address"
        ) from None
    server.start()
    print(f"the chief listens on {address}", flush=True)
    watch, saved = Watch(folder, oracle, patience), clock.used
    while not (oracle.over and not oracle.tuner_ids and not oracle.ongoing_trials):
        for note in watch.look():
            print(note, flush=True)
        if clock.used > saved + 5:
            clock.save()
            saved = clock.used
        if clock.is_up() and not folder.stop_file.exists():
            write_text(folder.stop_file, "")
            oracle.over = oracle.over or "the time is used up"
        time.sleep(0.2)
    clock.save()
    server.stop(grace=5).wait()


def _sign(folder: SearchFolder, worker: str) -> Path:
    return folder.workers_dir / f"{worker}.sign"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
