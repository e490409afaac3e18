"""Requests that run together: the same answers as alone, a bounded queue, no bad neighbours."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_models import ask, model_folder, serving, template, wait_until

from dsa_keras.export.server.batching import Batcher
from dsa_keras.export.server.metrics import Metrics
from dsa_keras.export.server.options import ServerOptions
from dsa_keras.export.server.signatures import SavedModel, Signature
from dsa_keras.export.server.status import ServingError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return SavedModel(template(tmp_path_factory.getbasetemp(), "one"))


@pytest.fixture(scope="module")
def pair_model(tmp_path_factory):
    return SavedModel(template(tmp_path_factory.getbasetemp(), "pair"))


def texts(*values):
    return {"text": np.array([value.encode() for value in values], object)}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].shape == values.shape, name
        if values.dtype == object:
            assert found[name].tolist() == values.tolist()
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-6)


sentences = st.lists(st.text(alphabet="ab \u00e9", max_size=20), min_size=1, max_size=4)


@given(st.lists(sentences, min_size=2, max_size=4))
def test_merged_requests_get_what_they_would_have_got_alone(model, requests):
    for name in ("serving_default", "embed", "attention"):
        signature = model.signature(name)
        assert signature.mergeable
        merged = signature.run_merged([texts(*rows) for rows in requests])
        for rows, found in zip(requests, merged, strict=True):
            assert_equal(found, signature.run(texts(*rows)))


@given(st.lists(st.tuples(sentences, sentences), min_size=2, max_size=3))
def test_merged_pairs_are_cut_part_by_part(pair_model, requests):
    signature = pair_model.signature("attention")
    assert signature.mergeable
    inputs = []
    for premises, hypotheses in requests:
        rows = min(len(premises), len(hypotheses))
        inputs.append(
            {
                "premise": texts(*premises[:rows])["text"],
                "hypothesis": texts(*hypotheses[:rows])["text"],
            }
        )
    for request, found in zip(inputs, signature.run_merged(inputs), strict=True):
        assert_equal(found, signature.run(request))


def test_answers_that_could_not_be_parted_are_not_merged(model):
    assert not model.signature("letters").mergeable


class Gate:
    """Holds back a signature's runs until it is opened, and notes their sizes."""

    def __init__(self, monkeypatch):
        self.sizes, self.opened, run = [], threading.Event(), Signature.run

        def held(signature, arrays):
            self.sizes.append(len(next(iter(arrays.values()))))
            assert self.opened.wait(60)
            return run(signature, arrays)

        monkeypatch.setattr(Signature, "run", held)


def queue(options, test):
    """Runs an async test with a batcher on real threads."""

    async def main():
        settings = ServerOptions((), **{"num_batch_threads": 1, **options})
        with ThreadPoolExecutor(settings.num_batch_threads) as executor:
            await asyncio.wait_for(test(Batcher(settings, executor, Metrics())), 60)

    asyncio.run(main())


async def started(gate, batches):
    while len(gate.sizes) < batches:
        await asyncio.sleep(0.001)


def test_requests_that_wait_run_together(model, monkeypatch):
    gate = Gate(monkeypatch)
    signature = model.signature("embed")

    async def test(batcher):
        first = asyncio.create_task(batcher.run(signature, texts("one")))
        await started(gate, 1)
        rest = [asyncio.create_task(batcher.run(signature, texts(t))) for t in "abcdefg"]
        other = asyncio.create_task(batcher.run(model.signature("attention"), texts("z z")))
        await asyncio.sleep(0)
        gate.opened.set()
        answers = await asyncio.gather(first, *rest, other)
        assert gate.sizes == [1, 4, 3, 1]
        for text, answer in zip(["one", *"abcdefg"], answers, strict=False):
            assert_equal(answer, signature.run(texts(text)))

    queue({"max_batch_size": 4}, test)


def test_without_batching_every_request_runs_by_itself(model, monkeypatch):
    gate = Gate(monkeypatch)

    async def test(batcher):
        tasks = [
            asyncio.create_task(batcher.run(model.signature("embed"), texts(t))) for t in "abc"
        ]
        await started(gate, 1)
        gate.opened.set()
        await asyncio.gather(*tasks)
        assert gate.sizes == [1, 1, 1]

    queue({"batching": False, "batch_timeout_micros": 10**9}, test)


def test_a_full_batch_does_not_wait_and_a_lone_request_not_for_ever(model, monkeypatch):
    gate = Gate(monkeypatch)
    gate.opened.set()

    async def test_full(batcher):
        await asyncio.gather(
            *(batcher.run(model.signature("embed"), texts(t)) for t in "ab"),
        )
        assert gate.sizes == [2]

    async def test_lone(batcher):
        await batcher.run(model.signature("embed"), texts("a"))

    queue({"max_batch_size": 2, "batch_timeout_micros": 10**9}, test_full)
    queue({"max_batch_size": 2, "batch_timeout_micros": 1000}, test_lone)


def test_different_widths_do_not_share_a_batch(model, monkeypatch):
    gate = Gate(monkeypatch)
    signature = model.signature("tokens")

    async def test(batcher):
        blocker = asyncio.create_task(batcher.run(model.signature("embed"), texts("x")))
        await started(gate, 1)
        requests = [{"word_ids": np.ones((1, width), np.int32)} for width in (1, 2, 2)]
        tasks = [asyncio.create_task(batcher.run(signature, request)) for request in requests]
        await asyncio.sleep(0)
        gate.opened.set()
        answers = await asyncio.gather(*tasks)
        await blocker
        assert gate.sizes == [1, 1, 2]
        for request, answer in zip(requests, answers, strict=True):
            assert_equal(answer, signature.run(request))

    queue({}, test)


def test_a_bad_request_does_not_spoil_its_neighbours(model, monkeypatch):
    gate = Gate(monkeypatch)
    signature = model.signature("tokens")

    async def test(batcher):
        blocker = asyncio.create_task(batcher.run(model.signature("embed"), texts("x")))
        await started(gate, 1)
        tasks = [
            asyncio.create_task(batcher.run(signature, {"word_ids": np.int32([[number]])}))
            for number in (1, -5, 2)
        ]
        await asyncio.sleep(0)
        gate.opened.set()
        await blocker
        first, bad, last = await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.sizes == [1, 3, 1, 1, 1]
        assert isinstance(bad, ServingError)
        assert bad.code == "INVALID_ARGUMENT"
        assert "-5" in bad.message
        for number, answer in ((1, first), (2, last)):
            assert_equal(answer, signature.run({"word_ids": np.int32([[number]])}))

    queue({}, test)


def test_a_full_queue_refuses_and_a_request_given_up_makes_room(model, monkeypatch):
    gate = Gate(monkeypatch)
    signature = model.signature("embed")

    async def test(batcher):
        running = asyncio.create_task(batcher.run(signature, texts("a", "b")))
        await started(gate, 1)
        waiting = [asyncio.create_task(batcher.run(signature, texts("c", "d"))) for _ in range(2)]
        await asyncio.sleep(0)
        for request in (texts("e"), texts()):
            with pytest.raises(ServingError, match="is full") as error:
                await batcher.run(signature, request)
            assert error.value.code == "RESOURCE_EXHAUSTED"
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        late = asyncio.create_task(batcher.run(signature, texts("e")))
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(running, waiting[1], late)
        assert gate.sizes == [2, 2, 1]

    queue({"max_batch_size": 2, "max_enqueued_batches": 2}, test)


def test_a_full_server_says_429_and_recovers(tmp_path, tmp_path_factory, monkeypatch):
    folder = model_folder(tmp_path, template(tmp_path_factory.getbasetemp(), "one"))
    small = {"max_batch_size": 1, "max_enqueued_batches": 1, "num_batch_threads": 1}
    with serving(folder, **small) as server, ThreadPoolExecutor(2) as clients:
        gate = Gate(monkeypatch)
        url = f"{server.rest_url}/v1/models/demo:predict"
        body = {"signature_name": "embed", "instances": ["a"]}

        def waiting():
            return b"dsa_serving_waiting_rows 1.0" in server.metrics.text()

        running = clients.submit(ask, url, body)
        wait_until(lambda: gate.sizes)
        queued = clients.submit(ask, url, body)
        wait_until(waiting)
        status, answer = ask(url, body)
        assert status == 429
        assert "is full" in answer["error"]
        gate.opened.set()
        assert running.result()[0] == queued.result()[0] == 200
        assert ask(url, body)[0] == 200


def test_a_request_that_takes_too_long(tmp_path, tmp_path_factory, monkeypatch):
    folder = model_folder(tmp_path, template(tmp_path_factory.getbasetemp(), "one"))
    with serving(folder, request_timeout=0.5) as server:
        gate = Gate(monkeypatch)
        try:
            url = f"{server.rest_url}/v1/models/demo"
            status, answer = ask(f"{url}:predict", {"instances": ["a"]})
            assert (status, answer["error"]) == (504, "Timed out after 0.5 seconds")
            assert ask(url)[0] == 200
        finally:
            gate.opened.set()
