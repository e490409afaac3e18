"""A real TensorBoard on the loopback interface, for tests that ask it by HTTP."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

DEADLINE = 120.0
"""Seconds until a server that does not answer counts as broken."""


@contextlib.contextmanager
def tensorboard(logs):
    """Serves the logs below a folder; gives the address."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logs), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--load_fast", "false", "--reload_interval", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(DEADLINE, process.kill)
    watchdog.start()
    try:
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                # Nobody reads what it says from here on, and a full pipe would stop it.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                yield found.group()
                return
        raise AssertionError(f"TensorBoard ended: {said}")
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stderr.close()


def fetch(address, path):
    """The bytes of an answer."""
    with urllib.request.urlopen(address + path, timeout=DEADLINE) as answer:
        return answer.read()


def fetch_until(address, path, ready):
    """The JSON of an answer, asked again until `ready` accepts it: logs load in the background."""
    end = time.monotonic() + DEADLINE
    while True:
        try:
            value = json.loads(fetch(address, path))
        except urllib.error.HTTPError as error:
            value = str(error)
        else:
            if ready(value):
                return value
        assert time.monotonic() < end, f"{path} still says {value}"
        threading.Event().wait(0.2)
