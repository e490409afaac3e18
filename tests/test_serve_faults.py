"""Garbage, half-open connections and huge bodies do not keep others from their answers."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from serving_models import ask, copy_version, direct, model_folder, serving, template, wait_until

from dsa_keras.export.client import connect

TEXT = "a fine film"
PREDICT = "/tensorflow.serving.PredictionService/Predict"


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    return model_folder(tmp_path, template(tmp_path_factory.getbasetemp(), "one"))


@contextlib.contextmanager
def good_clients(server, folder):
    """Clients of both interfaces that must get the right answer, all the time."""
    expected = direct(folder / "1", "embed", text=[TEXT])["vector"][0]
    finished, asked = threading.Event(), []

    def load(address):
        client = connect(address)
        while not finished.is_set() and len(asked) < 20_000:
            (answer,) = client.ask([{"text": TEXT}], "embed")
            np.testing.assert_allclose(answer["vector"], expected, rtol=1e-5)
            asked.append(1)

    addresses = f"{server.rest_url}/v1/models/demo", f"grpc://{server.grpc_address}/demo"
    with ThreadPoolExecutor(2) as clients:
        tasks = [clients.submit(load, address) for address in addresses]
        try:
            wait_until(lambda: len(asked) > 5)
            yield
            count = len(asked)
            wait_until(lambda: len(asked) > count + 5 or any(task.done() for task in tasks))
        finally:
            finished.set()
        for task in tasks:
            task.result()


def send(server, data, port=None, *, hang_up=False):
    """Sends bytes and returns what comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port or server.rest_port), timeout=30) as client:
        client.settimeout(30)
        answer = b""
        with contextlib.suppress(ConnectionError):
            client.sendall(data)
            if hang_up:
                client.shutdown(socket.SHUT_WR)
            while part := client.recv(65536):
                answer += part
        return answer


def post(body, path="/v1/models/demo:predict", length=None):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length or len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def fuzzed(rng, valid):
    """A valid message with a few bytes changed, cut, doubled or put in."""
    data = bytearray(valid)
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[place:] = b""
        elif kind == 1:
            data[place : place + 3] = rng.randbytes(3)
        elif kind == 2:
            data[place:place] = data[: rng.randrange(len(data) + 1)]
        else:
            data[place:place] = rng.choice([b"[", b"{", b'"', b"\x00", b"\xff", b"1e999", b"null"])
        if not data:
            break
    return bytes(data)


def refusal(call, data):
    """The code of a refused request; nothing for one that was answered."""
    try:
        call(data, timeout=30)
    except grpc.RpcError as error:
        return error.code().name
    return ""


def test_fuzzed_json_and_protobufs(folder):
    rng = random.Random(5)
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "demo", "attention"
    request.inputs["text"].dtype = 7
    request.inputs["text"].tensor_shape.dim.add(size=1)
    request.inputs["text"].string_val.append(TEXT.encode())
    proto = request.SerializeToString()
    text = json.dumps({"signature_name": "attention", "instances": [TEXT, {"b64": "YQ=="}]})
    with serving(folder) as server, good_clients(server, folder):
        codes = set()
        for _ in range(150):
            status, answer = ask(
                f"{server.rest_url}/v1/models/demo:predict", fuzzed(rng, text.encode())
            )
            assert (status == 200) == ("predictions" in answer)
            assert status in (200, 400), answer
            codes.add(status)
        assert 400 in codes
        with grpc.insecure_channel(server.grpc_address) as channel:
            call = channel.unary_unary(PREDICT)
            refused = [refusal(call, fuzzed(rng, proto)) for _ in range(150)]
        known = {"", "INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "UNKNOWN"}
        assert "INVALID_ARGUMENT" in refused
        assert set(refused) <= known


def test_bytes_that_are_no_http(folder):
    rng = random.Random(6)
    valid = post(json.dumps({"instances": [TEXT]}).encode())
    with serving(folder) as server, good_clients(server, folder):
        for _ in range(60):
            send(server, rng.randbytes(rng.randint(1, 400)), hang_up=True)
            send(server, fuzzed(rng, valid), hang_up=True)
            send(server, rng.randbytes(50), server.grpc_port, hang_up=True)
            start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            send(server, start + rng.randbytes(50), server.grpc_port, hang_up=True)
        assert send(server, valid).startswith(b"HTTP/1.1 200")


def test_half_open_connections_are_closed_and_block_nobody(folder):
    with serving(folder, request_timeout=4.0) as server, contextlib.ExitStack() as stack:
        silent = []
        for data in (b"", b"POST /v1/mod", post(b"{", length=1000), b"POST / HTTP/1.1\r\nHo") * 10:
            client = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.rest_port), timeout=60)
            )
            client.sendall(data)
            silent.append(client)
        for _ in range(10):
            quiet = socket.create_connection(("127.0.0.1", server.grpc_port), timeout=60)
            stack.enter_context(quiet).sendall(b"PRI * HTTP")
        with good_clients(server, folder):
            for client in silent:
                # Reading ends only when the server closes; a time-out would raise.
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(65536):
                        pass


def test_huge_bodies(folder):
    with serving(folder, max_body_bytes=1_000_000) as server, good_clients(server, folder):
        head = b"POST /v1/models/demo:predict HTTP/1.1\r\nHost: x\r\n"
        chunk = b"fffff\r\n" + b" " * 0xFFFFF + b"\r\n"
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2 + b"0\r\n\r\n"
        for _ in range(2):
            # The length may be true, only claimed, or not told in advance.
            assert b" 413 " in send(server, post(b"{", length=10**15)).partition(b"\r\n")[0]
            for data in (post(b"[" * 3_000_000), chunked):
                status = send(server, data, hang_up=data == chunked).partition(b"\r\n")[0]
                assert not status or b" 413 " in status


def test_a_small_body_that_unpacks_to_a_huge_one(folder):
    import gzip

    bomb = gzip.compress(b" " * 50_000_000)
    head = b"POST /v1/models/demo:predict HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
    head += f"Content-Length: {len(bomb)}\r\nConnection: close\r\n\r\n".encode()
    with serving(folder, max_body_bytes=1_000_000) as server, good_clients(server, folder):
        status = send(server, head + bomb).partition(b"\r\n")[0]
        assert b" 413 " in status or b" 400 " in status


def test_versions_change_under_load_and_garbage(folder, tmp_path_factory):
    source = template(tmp_path_factory.getbasetemp(), "one")
    rng = random.Random(8)
    with serving(folder) as server, good_clients(server, folder):
        url = f"{server.rest_url}/v1/models/demo"
        for number in (2, 3):
            copy_version(source, folder / str(number))
            (folder / str(number + 100)).mkdir()

            def changed():
                send(server, post(rng.randbytes(100)))
                _, answer = ask(f"{url}/versions/{number}")  # noqa: B023
                return answer.get("model_version_status", [{}])[0].get("state") == "AVAILABLE"

            wait_until(changed)
