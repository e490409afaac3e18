"""The client: sentences and pairs, text and JSON, REST and gRPC, one line for every mistake."""

from __future__ import annotations

import http.server
import io
import json
import socket
import threading

import numpy as np
import pytest
import tensorflow as tf
from fresh_python import loaded_after
from one_command import export as main
from serving_models import direct, model_folder, serving, template

SENTENCES = ["a fine film", "dull \u4e2d\u6587"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    base, folder = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("models")
    models = (
        model_folder(folder, template(base, "one")),
        model_folder(folder, template(base, "pair"), "nli"),
    )
    with serving(*models) as server:
        yield server


@pytest.fixture(params=["REST", "gRPC"])
def address(request, server):
    def address(name):
        if request.param == "REST":
            return f"{server.rest_url}/v1/models/{name}"
        return f"grpc://{server.grpc_address}/{name}"

    return address


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(["client", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def expected(tmp_path_factory):
    def expected(signature, template_name="one", **inputs):
        folder = template(tmp_path_factory.getbasetemp(), template_name)
        return direct(folder, signature, **inputs)

    return expected


def test_labels_as_text(run, address, expected):
    code, out, err = run("--url", address("demo"), *SENTENCES)
    answer = expected("serving_default", text=SENTENCES)
    lines = [
        f"{label.decode()}\t{probabilities.max():.4f}\t{sentence}"
        for label, probabilities, sentence in zip(
            answer["label"], answer["probabilities"], SENTENCES, strict=True
        )
    ]
    assert (code, out.splitlines(), err) == (0, lines, "")


def test_an_answer_loads_no_tensorflow(address):
    asked = ["client", "--url", address("demo"), "--json", "a fine film"]
    script = f"from dsa_keras.commands.main import main\nassert main({asked!r}) == 0"
    names = ["tensorflow", "keras", "dsa_keras.export.client"]
    assert loaded_after(script, names) == ["dsa_keras.export.client"]


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "bool", "object"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 0)])
def test_tensors_as_tensorflow_writes_them(kind, shape):
    from tensorflow_serving.apis import predict_pb2

    from dsa_keras.export.messages import outputs_of

    for equal in (False, True):
        array = (np.ones(shape) if equal else np.arange(np.prod(shape)).reshape(shape)).astype(kind)
        if kind == "object":
            array = np.array([b"caf\xc3\xa9"] * array.size, object).reshape(shape)
        response = predict_pb2.PredictResponse()
        dtype = tf.string if kind == "object" else None
        response.outputs["x"].CopyFrom(tf.make_tensor_proto(array, dtype=dtype, shape=shape))
        expected = np.full(shape, "café", object) if kind == "object" else array
        assert outputs_of(response.SerializeToString())["x"] == expected.tolist()


def test_equal_values_that_are_written_once():
    from tensorflow_serving.apis import predict_pb2

    from dsa_keras.export.messages import outputs_of

    response = predict_pb2.PredictResponse()
    tensor = response.outputs["x"]
    tensor.dtype, tensor.float_val[:] = tf.float32.as_datatype_enum, [1.0, 2.0]
    for size in (2, 2):
        tensor.tensor_shape.dim.add(size=size)
    assert outputs_of(response.SerializeToString())["x"] == tf.make_ndarray(tensor).tolist()


def test_an_answer_that_is_none():
    from dsa_keras.errors import RunError
    from dsa_keras.export.messages import outputs_of

    for broken in (b"\xff\xff", b"\x0a\x02\x0a"):
        with pytest.raises(RunError, match="the answer is not one of a model"):
            outputs_of(broken)


def test_json(run, address, expected):
    arguments = ("--url", address("demo"), "--json", "--signature", "embed", "--batch-size", "1")
    _, out, _ = run(*arguments, *SENTENCES)
    found = [json.loads(line)["vector"] for line in out.splitlines()]
    for row, vector in zip(found, expected("embed", text=SENTENCES)["vector"], strict=True):
        assert row == pytest.approx(vector.tolist(), rel=1e-6)


def test_attention_as_text(run, address):
    _, out, _ = run("--url", address("demo"), "--signature", "attention", "bb aa", "")
    assert out.splitlines() == ["bb:0.500 aa:0.500", ""]


def test_vectors_as_text(run, address):
    _, out, _ = run("--url", address("demo/versions/1"), "--signature", "embed", "")
    assert out == "[0 0 0 0]\t\n"


def test_pairs(run, address, expected):
    parts = {"premise": ["a man"], "hypothesis": ["he runs"]}
    label = expected("serving_default", "pair", **parts)["label"][0].decode()
    for sentences in (["--pair", "a man", "he runs"], ["a man\the runs"]):
        code, out, _ = run("--url", address("nli"), *sentences)
        assert code == 0
        assert out.startswith(f"{label}\t")
        assert out.endswith("\ta man\the runs\n")
    _, out, _ = run("--url", address("nli"), "--signature", "attention", "a b\tc")
    assert out == "a:0.500 b:0.500\tc:1.000\n"


def test_sentences_from_standard_input(run, server, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\r\n\n"))
    code, out, _ = run("--url", f"{server.rest_url}/v1/models/demo")
    assert code == 0
    assert [line.split("\t")[2] for line in out.splitlines()] == ["one", "two", ""]


def test_words_that_were_not_utf8_on_the_command_line(run, address):
    code, out, _ = run("--url", address("demo"), b"caf\xe9".decode(errors="surrogateescape"))
    assert code == 0
    assert out.endswith("\tcaf\ufffd\n")


def one_line(result, message):
    code, out, err = result
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_refusals_are_one_line(run, address):
    one_line(run("--url", address("other"), "a"), "Servable not found for request: Latest(other)")
    one_line(run("--url", address("demo"), "--signature", "x", "a"), '"x" not found')
    one_line(run("--url", address("demo/labels/x"), "a"), "Unrecognized servable version label: x")
    one_line(run("--url", address("demo"), "--pair", "a", "b"), "premise")


def test_nobody_listens(run):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/v1/models/demo", f"grpc://127.0.0.1:{port}/demo"):
        one_line(run("--url", url, "a"), "cannot be reached")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "127.0.0.1:8501", "a"], "not the address of a model"),
        (["--url", "http://127.0.0.1:8501", "a"], "not the address of a model"),
        (["--url", "grpc://127.0.0.1/demo", "a"], "not the address of a model"),
        (["--url", "http://127.0.0.1:x/v1/models/demo", "a"], "not an address"),
        (["--url", "grpc://127.0.0.1:1/demo/versions/x", "a"], "not a version"),
        (["--url", "grpc://127.0.0.1:1/demo", "--pair", "a"], "do not make pairs"),
        (["--url", "grpc://127.0.0.1:1/demo", "--timeout", "0", "a"], "--timeout"),
        (["--url", "grpc://127.0.0.1:1/demo", "--batch-size", "0", "a"], "--batch-size"),
    ],
)
def test_mistakes_are_one_line(run, arguments, message):
    one_line(run(*arguments), message)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>", "did not answer with JSON"),
        (200, b'{"predictions": []}', "something else than predictions"),
        (200, b"[]", "something else than predictions"),
        (502, b"<html>bad gateway</html>", "502: Bad Gateway"),
    ],
)
def test_a_server_of_another_kind(run, status, body, message):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as other:
        thread = threading.Thread(target=other.handle_request)
        thread.start()
        one_line(run("--url", f"http://127.0.0.1:{other.server_port}/v1/models/x", "a"), message)
        thread.join()
