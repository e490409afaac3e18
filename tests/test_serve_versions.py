"""Versions come and go while requests are answered; broken ones change nothing."""

from __future__ import annotations

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from serving_models import ask, copy_version, direct, model_folder, serving, template, wait_until

from dsa_keras.errors import ConfigError, RunError
from dsa_keras.export.client import connect
from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.models import Model
from dsa_keras.export.server.signatures import Signature

BODY = {"signature_name": "embed", "instances": ["a fine film"]}


@pytest.fixture
def one(tmp_path_factory):
    return template(tmp_path_factory.getbasetemp(), "one")


@pytest.fixture
def two(tmp_path_factory):
    return template(tmp_path_factory.getbasetemp(), "two")


@pytest.fixture
def folder(tmp_path, one):
    return model_folder(tmp_path, one)


def states(server):
    _, answer = ask(f"{server.rest_url}/v1/models/demo")
    return {int(v["version"]): v["state"] for v in answer["model_version_status"]}


def vector(server, path=""):
    status, answer = ask(f"{server.rest_url}/v1/models/demo{path}:predict", BODY)
    assert status == 200, answer
    return answer["predictions"][0]


def answers_with(server, version):
    """Whether requests are answered by this version, whose vectors tell."""
    expected = direct(version, "embed", text=BODY["instances"])["vector"][0]
    return np.allclose(vector(server), expected)


def test_a_new_version_answers_without_dropping_a_request(folder, two):
    with serving(folder) as server, ThreadPoolExecutor(6) as clients:
        expected = [
            direct(version, "embed", text=BODY["instances"])["vector"][0]
            for version in (folder / "1", two)
        ]
        url = f"{server.rest_url}/v1/models/demo"
        finished, asked = threading.Event(), []

        def load(address):
            client = connect(address)
            while not finished.is_set() and len(asked) < 20_000:
                (answer,) = client.ask([{"text": BODY["instances"][0]}], "embed")
                asked.append(answer["vector"])

        tasks = [
            clients.submit(load, address)
            for address in (url, f"grpc://{server.grpc_address}/demo") * 2
        ]
        wait_until(lambda: len(asked) > 20)
        for number in (2, 3, 4):
            copy_version(two, folder / str(number))
            expected_states = dict.fromkeys(range(1, number), "END") | {number: "AVAILABLE"}
            wait_until(lambda: states(server) == expected_states)  # noqa: B023
        count = len(asked)
        wait_until(lambda: len(asked) > count + 20)
        finished.set()
        for task in tasks:
            task.result()
        which = [[np.allclose(found, one) for one in expected] for found in asked]
        assert all(any(match) for match in which)
        assert which[0] == [True, False]
        assert which[-1] == [False, True]


def test_a_request_under_way_is_finished_by_the_version_that_began_it(folder, two, monkeypatch):
    with serving(folder) as server, ThreadPoolExecutor(1) as client:
        old = direct(folder / "1", "embed", text=BODY["instances"])["vector"][0]
        held, opened, run = threading.Event(), threading.Event(), Signature.run

        def slow(signature, arrays):
            if not held.is_set():
                held.set()
                assert opened.wait(60)
            return run(signature, arrays)

        monkeypatch.setattr(Signature, "run", slow)
        task = client.submit(vector, server)
        assert held.wait(60)
        copy_version(two, folder / "2")
        wait_until(lambda: states(server) == {1: "UNLOADING", 2: "AVAILABLE"})
        assert answers_with(server, two)
        assert states(server)[1] == "UNLOADING"
        opened.set()
        np.testing.assert_allclose(task.result(), old, rtol=1e-6)
        wait_until(lambda: states(server) == {1: "END", 2: "AVAILABLE"})


@pytest.mark.parametrize("harm", ["empty", "graph cut", "no variables", "warm-up garbage"])
def test_a_broken_version_is_reported_and_repaired(folder, one, two, harm, tmp_path):
    with serving(folder) as server:
        broken = tmp_path / "broken"
        shutil.copytree(one, broken)
        if harm == "empty":
            shutil.rmtree(broken)
            broken.mkdir()
        elif harm == "graph cut":
            data = (broken / "saved_model.pb").read_bytes()
            (broken / "saved_model.pb").write_bytes(data[: len(data) // 2])
        elif harm == "no variables":
            shutil.rmtree(broken / "variables")
        else:
            (broken / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"garbage" * 9)
        copy_version(broken, folder / "2")
        wait_until(lambda: states(server).get(2) == "END")
        _, answer = ask(f"{server.rest_url}/v1/models/demo/versions/2")
        (status,) = answer["model_version_status"]
        assert status["status"]["error_code"] == "UNKNOWN"
        assert status["status"]["error_message"]
        assert states(server) == {1: "AVAILABLE", 2: "END"}
        assert answers_with(server, one)

        shutil.copytree(two, folder / "2", dirs_exist_ok=True)
        if harm == "warm-up garbage":
            shutil.rmtree(folder / "2" / "assets.extra")
        wait_until(lambda: states(server).get(2) == "AVAILABLE")
        assert answers_with(server, two)


def test_deleting_the_newest_version_goes_back(folder, one, two):
    copy_version(two, folder / "2")
    with serving(folder) as server:
        assert states(server) == {2: "AVAILABLE"}
        assert answers_with(server, two)
        shutil.rmtree(folder / "2")
        wait_until(lambda: states(server).get(1) == "AVAILABLE" and answers_with(server, one))


def test_deleting_every_version_keeps_the_last_one_answering(folder):
    async def main():
        with ThreadPoolExecutor(1) as loader:
            model = Model(folder, {}, loader, Metrics())
            await model.refresh()
            shutil.rmtree(folder)
            await model.refresh()
            with model.use() as (number, loaded):
                assert number == 1
                assert loaded.signature("embed")

    asyncio.run(main())


def test_labels_keep_versions_loaded(folder, one, two):
    copy_version(two, folder / "2")
    with serving(folder, labels={"stable": 1}) as server:
        assert states(server) == {1: "AVAILABLE", 2: "AVAILABLE"}
        assert answers_with(server, two)
        expected = direct(one, "embed", text=BODY["instances"])["vector"][0]
        for path in ("/labels/stable", "/versions/1"):
            np.testing.assert_allclose(vector(server, path), expected, rtol=1e-6)
        grpc_client = connect(f"grpc://{server.grpc_address}/demo/labels/stable")
        (answer,) = grpc_client.ask([{"text": BODY["instances"][0]}], "embed")
        np.testing.assert_allclose(answer["vector"], expected, rtol=1e-6)


def test_other_names_are_no_versions(folder):
    for name in ("tmp", ".aside-3", "-1", "1a", "٣"):
        (folder / name).mkdir()
    (folder / "9").write_text("a file")
    with serving(folder) as server:
        assert states(server) == {1: "AVAILABLE"}


def test_warm_up_can_be_skipped(folder):
    (folder / "1" / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"garbage" * 9)
    with serving(folder, warm_up=False) as server:
        assert states(server) == {1: "AVAILABLE"}
    with pytest.raises(RunError, match="no version of demo can be loaded"), serving(folder):
        pass


def test_folders_that_cannot_be_served(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for wrong, message in (
        (tmp_path / "nothing", "no such folder"),
        (tmp_path / "empty", "has no version folder"),
        (folder / "1", "is one version of a model"),
    ):
        with pytest.raises(ConfigError, match=message), serving(wrong):
            pass
    with pytest.raises(ConfigError, match="same name"), serving(folder, folder):
        pass
    with pytest.raises(ConfigError, match="names version 5"), serving(folder, labels={"x": 5}):
        pass
    shutil.rmtree(folder / "1" / "variables")
    with pytest.raises(RunError, match="no version of demo can be loaded"), serving(folder):
        pass


@pytest.mark.parametrize(
    "option",
    [
        {"max_batch_size": 0},
        {"batch_timeout_micros": -1},
        {"request_timeout": 0},
        {"poll_seconds": float("inf")},
        {"rest_port": 70_000},
    ],
)
def test_options_that_make_no_sense(folder, option):
    with pytest.raises(ConfigError), serving(folder, **option):
        pass
