"""The command: one line when ready, one line for a mistake, 0 after the last answer."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fresh_python import loaded_after
from serving_models import ask, model_folder, template, wait_until

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-m", "dsa_keras")


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    return model_folder(tmp_path, template(tmp_path_factory.getbasetemp(), "one"))


@pytest.fixture
def start():
    processes = []

    def started(*arguments):
        process = subprocess.Popen(
            [*COMMAND, "serve", *map(str, arguments), "--rest-port", "0", "--grpc-port", "0"],
            cwd=ROOT,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def command(*arguments):
    """Runs the command in this process; exit code, output and errors are the caller's to see."""
    from one_command import export as main

    return main([*map(str, arguments)])


@pytest.mark.parametrize(
    "stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_serves_until_it_is_told_to_stop_and_finishes_what_it_began(folder, start, stop):
    # Long enough for the signal to come while the request waits; a stop must not cut it short.
    process = start(folder, "--batch-timeout-micros", 1_500_000)
    line = process.stdout.readline()
    pattern = (
        r"serving demo version 1: REST (http://127\.0\.0\.1:\d+)/v1/models, gRPC 127\.0\.0\.1:\d+\n"
    )
    match = re.fullmatch(pattern, line)
    assert match, line + process.stderr.read()
    url = match[1]

    def waiting():
        with urllib.request.urlopen(f"{url}/monitoring/prometheus/metrics") as response:
            return b"dsa_serving_waiting_rows 1.0" in response.read()

    with ThreadPoolExecutor(1) as client:
        task = client.submit(ask, f"{url}/v1/models/demo:predict", {"instances": ["a"]})
        wait_until(waiting)
        process.send_signal(stop)
        status, answer = task.result()
    assert status == 200
    assert answer["predictions"][0]["label"] in ("negative", "positive")
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest == ""
    assert errors.splitlines()[-1] == "demo version 1 answers"


def test_mistakes_are_one_line(folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for arguments, message in (
        ([tmp_path / "nothing"], "no such folder"),
        ([tmp_path / "empty"], "has no version folder"),
        ([folder, "--label", "stable"], "is not a label and a version number"),
        ([folder, "--rest-port", "8500", "--grpc-port", "8500"], "cannot both listen on port 8500"),
        ([folder, "--max-batch-size", "0"], "--max-batch-size: 0 is too small"),
    ):
        assert command("serve", *arguments) == 2
        errors = capsys.readouterr().err
        assert message in errors
        assert errors.count("\n") == 1


@pytest.mark.parametrize("option", ["--rest-port", "--grpc-port"])
def test_a_port_that_is_taken(folder, capsys, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        other = "--grpc-port" if option == "--rest-port" else "--rest-port"
        port = taken.getsockname()[1]
        assert command("serve", folder, other, 0, option, port) == 2
    errors = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in errors
    assert option in errors


@pytest.mark.parametrize("option", ["--rest-port", "--grpc-port"])
def test_a_taken_port_is_found_before_anything_is_loaded(folder, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = ["serve", str(folder), option, str(taken.getsockname()[1])]
        script = f"from dsa_keras.commands.main import main\nassert main({asked!r}) == 2"
        names = ["tensorflow", "dsa_keras.export.server.app", "dsa_keras.export.serve"]
        assert loaded_after(script, names) == ["dsa_keras.export.serve"]


def test_a_port_of_a_connection_that_lingers_is_free(folder):
    from dsa_keras.export.server.options import ServerOptions
    from dsa_keras.export.server.ports import check_ports

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # who closes first waits in TIME_WAIT
        client.close()
    check_ports(ServerOptions((folder,), rest_port=port, grpc_port=0))


def test_help_does_not_load_tensorflow():
    code = (
        "import sys\n"
        "from dsa_keras.commands.main import main\n"
        "for name in ('serve', 'client'):\n"
        "    try: main([name, '--help'])\n"
        "    except SystemExit as stop: assert stop.code == 0\n"
        "assert not {'tensorflow', 'grpc', 'aiohttp', 'keras'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--max-enqueued-batches" in done.stdout
    assert "--signature" in done.stdout
