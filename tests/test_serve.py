"""The server's two interfaces: TensorFlow Serving's paths, formats, messages and errors."""

from __future__ import annotations

import base64
import http.client
import urllib.request

import grpc
import numpy as np
import pytest
import tensorflow as tf
from serving_models import ask, direct, model_folder, serving, template
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

TEXTS = ["a fine film", "", "dull", "très  bien \u4e2d\u6587", "  "]
SIGNATURES = ("serving_default", "embed", "attention")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    return model_folder(tmp_path_factory.mktemp("models"), template(base, "one"))


@pytest.fixture(scope="module")
def pair_folder(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    return model_folder(tmp_path_factory.mktemp("models"), template(base, "pair"), "nli", 7)


@pytest.fixture(scope="module")
def server(folder, pair_folder):
    with serving(folder, pair_folder, max_body_bytes=100_000) as server:
        yield server


@pytest.fixture(scope="module")
def url(server):
    return f"{server.rest_url}/v1/models/demo"


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(server.grpc_address) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def readable(array):
    if isinstance(array, bytes):
        return array.decode()
    if array.dtype == object:
        decode = np.vectorize(lambda data: data.decode(), otypes=[object])
        return decode(array).tolist() if array.size else array.tolist()
    return array.tolist()


def assert_same(found, expected):
    """Equal text, and numbers equal as float32."""
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_array_equal(np.asarray(found, np.float32), expected)
    else:
        assert found == readable(expected)


def predict(name="demo", signature="", **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return request


def refused(call, request):
    with pytest.raises(grpc.RpcError) as error:
        call(request, timeout=30)
    return error.value.code().name, error.value.details()


@pytest.mark.parametrize("signature", SIGNATURES)
def test_rows_by_rest(url, folder, signature):
    status, answer = ask(f"{url}:predict", {"signature_name": signature, "instances": TEXTS})
    assert status == 200
    expected = direct(folder / "1", signature, text=TEXTS)
    for row, found in enumerate(answer["predictions"]):
        if len(expected) == 1:
            found = {next(iter(expected)): found}
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert_same(found[name], values[row])


@pytest.mark.parametrize("signature", SIGNATURES)
def test_columns_by_rest(url, folder, signature):
    status, answer = ask(f"{url}:predict", {"signature_name": signature, "inputs": {"text": TEXTS}})
    assert status == 200
    expected = direct(folder / "1", signature, text=TEXTS)
    found = {"vector": answer["outputs"]} if len(expected) == 1 else answer["outputs"]
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert_same(found[name], values)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_grpc(stub, folder, signature):
    response = stub.Predict(predict(signature=signature, text=TEXTS), timeout=30)
    assert response.model_spec.name == "demo"
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == signature
    expected = direct(folder / "1", signature, text=TEXTS)
    assert response.outputs.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(tf.make_ndarray(response.outputs[name]), values)


def test_word_ids_by_both(url, stub, folder):
    ids = [[1, 2, 0], [5, 0, 0]]
    expected = direct(folder / "1", "tokens", word_ids=tf.constant(ids, tf.int32))["probabilities"]
    _, answer = ask(f"{url}:predict", {"signature_name": "tokens", "instances": ids})
    assert_same([row["probabilities"] for row in answer["predictions"]], expected)
    response = stub.Predict(predict(signature="tokens", word_ids=np.int32(ids)), timeout=30)
    np.testing.assert_array_equal(tf.make_ndarray(response.outputs["probabilities"]), expected)


def test_pairs(server, pair_folder):
    url = f"{server.rest_url}/v1/models/nli/versions/7:predict"
    pairs = {"premise": ["a man runs", "x"], "hypothesis": ["he moves", "y z"]}
    expected = direct(pair_folder / "7", "serving_default", **pairs)["probabilities"]
    rows = [dict(zip(pairs, row, strict=True)) for row in zip(*pairs.values(), strict=True)]
    _, answer = ask(url, {"instances": rows})
    assert_same([row["probabilities"] for row in answer["predictions"]], expected)
    _, answer = ask(url, {"inputs": pairs})
    assert_same(answer["outputs"]["probabilities"], expected)
    for body, message in (
        ({"instances": ["only text"]}, "plain list"),
        ({"inputs": ["only text"]}, "plain value/list"),
        ({"inputs": {"premise": ["a"]}}, "Missing named input: hypothesis"),
        ({"instances": [{"premise": "a"}]}, "keys must be equal to: hypothesis,premise"),
        ({"inputs": {"premise": ["a"], "hypothesis": ["b", "c"]}}, "different numbers of rows"),
    ):
        status, answer = ask(url, body)
        assert (status, message in answer["error"]) == (400, True), answer


def test_bytes_go_in_and_out_as_base64(url):
    data = b"\xff\x00a"
    encoded = {"b64": base64.b64encode(data).decode()}
    for key, body in (("predictions", "instances"), ("outputs", "inputs")):
        _, answer = ask(f"{url}:predict", {"signature_name": "letters", body: [encoded]})
        letters = [base64.b64decode(letter["b64"]) for letter in answer[key][0]]
        assert letters == [b"\xff", b"\x00", b"a"]
    status, answer = ask(f"{url}:predict", {"instances": [encoded, "text"]})
    assert status == 200
    status, answer = ask(f"{url}:predict", {"signature_name": "attention", "instances": [encoded]})
    assert answer["predictions"][0]["tokens"] == ["\ufffd\x00a"]


def test_a_batch_of_zero(url, stub):
    status, answer = ask(f"{url}:predict", {"inputs": []})
    assert (status, answer["outputs"]["label"]) == (200, [])
    response = stub.Predict(predict(text=np.array([], object)), timeout=30)
    assert tf.make_ndarray(response.outputs["probabilities"]).shape == (0, 2)


def test_status(url):
    available = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    expected = {"model_version_status": [{"version": "1", **available}]}
    assert ask(url) == (200, expected)
    assert ask(f"{url}/versions/1") == (200, expected)


def test_status_by_grpc(server):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "demo"
    with grpc.insecure_channel(server.grpc_address) as channel:
        stub = model_service_pb2_grpc.ModelServiceStub(channel)
        (version,) = stub.GetModelStatus(request, timeout=30).model_version_status
        assert (version.version, version.State.Name(version.state)) == (1, "AVAILABLE")
        request.model_spec.name = "other"
        assert refused(stub.GetModelStatus, request)[0] == "NOT_FOUND"


def test_metadata(url, stub):
    status, answer = ask(f"{url}/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": "demo", "signature_name": "", "version": "1"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert signatures["embed"]["inputs"]["text"]["dtype"] == "DT_STRING"
    assert set(SIGNATURES) < signatures.keys()

    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "demo"
    response = stub.GetModelMetadata(request, timeout=30)
    found = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(found)
    assert found.signature_def.keys() == signatures.keys()
    request.metadata_field[:] = ["other"]
    assert refused(stub.GetModelMetadata, request)[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (":predict", b"", 400, "The document is empty"),
        (":predict", b"{", 400, "JSON Parse error"),
        (":predict", b"\xff\xfe\xfa", 400, "JSON Parse error"),
        (":predict", b"[" * 60_000, 400, "nested too deeply"),
        (":predict", b"9" * 10_000, 400, "JSON Parse error"),
        (":predict", b'{"instances": ["\\ud800"]}', 400, "surrogate"),
        (":predict", [], 400, "Is not object"),
        (":predict", {}, 400, "Missing 'inputs' or 'instances' key"),
        (":predict", {"inputs": ["a"], "instances": ["a"]}, 400, "only one of"),
        (":predict", {"instances": "a"}, 400, "to be an list/array"),
        (":predict", {"instances": []}, 400, "No values"),
        (":predict", {"instances": [1]}, 400, "not of expected type: string"),
        (":predict", {"instances": [None]}, 400, "not of expected type: string"),
        (":predict", {"instances": [["a"]]}, 400, "expected shape [-1], got [1,1]"),
        (":predict", {"instances": ["a", ["b"]]}, 400, "unexpected level"),
        (":predict", {"instances": [{"text": "a", "x": 1}]}, 400, "keys must be equal to: text"),
        (":predict", {"instances": [{"text": "a"}, "b"]}, 400, "Expecting object"),
        (":predict", {"instances": ["a", {"text": "b"}]}, 400, "Expecting value/list"),
        (":predict", {"inputs": "a"}, 400, "expected shape [-1], got []"),
        (":predict", {"instances": [{"b64": "?"}]}, 400, "Unable to base64 decode"),
        (":predict", {"signature_name": 1, "instances": ["a"]}, 400, "must be a string value"),
        (":predict", {"signature_name": "x", "instances": ["a"]}, 400, 'name: "x" not found'),
        (":predict", {"signature_name": "tokens", "instances": [[2**31]]}, 400, "int32"),
        (":predict", {"signature_name": "tokens", "instances": [[True]]}, 400, "int32"),
        (":predict", {"signature_name": "tokens", "instances": [[1.5]]}, 400, "int32"),
        (":predict", {"signature_name": "tokens", "instances": [[1], [1, 2]]}, 400, "size"),
        (":predict", {"signature_name": "tokens", "instances": [[-1]]}, 400, "-1"),
        (":predict", {"instances": ["a"] * 129}, 400, "larger than maximum input batch size 128"),
        (":classify", {"examples": [{}]}, 501, "use predict"),
        (":regress", {"examples": [{}]}, 501, "use predict"),
        ("x:predict", {"instances": ["a"]}, 404, "Servable not found for request: Latest(demox)"),
        ("/versions/9:predict", {"instances": ["a"]}, 404, "Specific(demo, 9)"),
        ("/labels/x:predict", {"instances": ["a"]}, 400, "Unrecognized servable version label: x"),
        ("/versions/x:predict", {"instances": ["a"]}, 400, "Malformed request: POST"),
        ("", {}, 400, "Malformed request: POST"),
        (":predict", None, 400, "Malformed request: GET"),
        ("x", None, 404, "Could not find any versions of model demox"),
        ("/versions/9", None, 404, "Could not find version 9 of model demo"),
        ("/labels/x", None, 400, "Unrecognized servable version label: x"),
        ("/versions/9/metadata", None, 404, "Specific(demo, 9)"),
        ("/other", None, 400, "Malformed request: GET"),
    ],
)
def test_errors_by_rest(url, path, body, status, message):
    found, answer = ask(url + path, body)
    assert found == status, answer
    assert message in answer["error"]
    assert answer.keys() == {"error"}


def test_a_path_outside_of_v1(server):
    assert ask(f"{server.rest_url}/other") == (404, {"error": "Not Found"})


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_that_no_path_has(url, method):
    status, answer = ask(url, b"{}", method=method)
    assert status == 405
    assert "Malformed request" in answer["error"]


@pytest.mark.parametrize(
    ("spec", "inputs", "code", "message"),
    [
        ({"name": "other"}, {"text": ["a"]}, "NOT_FOUND", "Latest(other)"),
        ({"name": ""}, {"text": ["a"]}, "INVALID_ARGUMENT", "Missing ModelSpec"),
        ({"version": {"value": 9}}, {"text": ["a"]}, "NOT_FOUND", "Specific(demo, 9)"),
        ({"version_label": "x"}, {"text": ["a"]}, "INVALID_ARGUMENT", "label: x"),
        ({"signature_name": "x"}, {"text": ["a"]}, "INVALID_ARGUMENT", "not found in signature"),
        ({}, {}, "INVALID_ARGUMENT", "missing text"),
        ({}, {"text": ["a"], "x": [1]}, "INVALID_ARGUMENT", "alias not found in signature: x"),
        ({}, {"text": [1.5]}, "INVALID_ARGUMENT", "expected string, got float32"),
        ({}, {"text": "a"}, "INVALID_ARGUMENT", "expected shape [-1], got []"),
        ({}, {"text": ["a"] * 129}, "INVALID_ARGUMENT", "larger than maximum"),
    ],
)
def test_errors_by_grpc(stub, spec, inputs, code, message):
    request = predict(**inputs)
    request.model_spec.MergeFrom(type(request.model_spec)(**spec))
    if spec.get("name") == "":
        request.model_spec.name = ""
    found, details = refused(stub.Predict, request)
    assert found == code
    assert message in details


def tensor(dtype=tf.string, sizes=(1,), **values):
    message = tf.make_tensor_proto(np.zeros(0, np.float32))
    message.Clear()
    message.dtype = dtype.as_datatype_enum
    for size in sizes:
        message.tensor_shape.dim.add(size=size)
    for name, value in values.items():
        field = getattr(message, name)
        field.extend(value) if isinstance(value, list) else setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "message",
    [
        tensor(sizes=[10**12], string_val=[b"a"]),
        tensor(sizes=[2**62, 2**62], string_val=[b"a"]),
        tensor(sizes=[-1], string_val=[b"a"]),
        tensor(sizes=[2], string_val=[b"a", b"b", b"c"]),
        tensor(tf.int32, sizes=[3], tensor_content=b"abc"),
        tensor(tf.resource, sizes=[1]),
        tensor(tf.variant, sizes=[1]),
    ],
)
def test_tensors_that_claim_what_they_do_not_hold(stub, message):
    request = predict()
    request.inputs["text"].CopyFrom(message)
    assert refused(stub.Predict, request)[0] == "INVALID_ARGUMENT"


def test_a_type_that_does_not_exist(stub):
    request = predict()
    request.inputs["text"].CopyFrom(tensor(string_val=[b"a"]))
    request.inputs["text"].dtype = 9999
    assert refused(stub.Predict, request)[0] == "INVALID_ARGUMENT"


def test_output_filter(stub):
    request = predict(text=["a"])
    request.output_filter.append("label")
    assert stub.Predict(request, timeout=30).outputs.keys() == {"label"}
    request.output_filter.append("other")
    assert "not found in signature: other" in refused(stub.Predict, request)[1]


def test_what_the_models_have_no_signature_for(stub):
    request = classification_pb2.ClassificationRequest()
    assert refused(stub.Classify, request)[0] == "UNIMPLEMENTED"


def test_bodies_that_are_too_long(server, url, stub):
    body = {"instances": ["a" * 200_000]}
    status, answer = ask(f"{url}:predict", body)
    assert (status, answer["error"]) == (413, "The body is longer than 100000 bytes")
    assert refused(stub.Predict, predict(text=["a" * 200_000]))[0] == "RESOURCE_EXHAUSTED"
    # Sent in chunks, a body does not say its length in advance.
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=30)
    connection.request("POST", "/v1/models/demo:predict", iter([b"a" * 50_000] * 3))
    assert connection.getresponse().status == 413
    connection.close()


def test_metrics(server, url):
    def count(text):
        prefix = 'dsa_serving_requests_total{code="NOT_FOUND",interface="REST"} '
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(prefix))

    def fetched():
        with urllib.request.urlopen(f"{server.rest_url}/monitoring/prometheus/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain")
            return response.read().decode()

    before = count(fetched())
    ask(f"{url}x")
    after = fetched()
    assert count(after) == before + 1
    assert 'dsa_serving_model_version{model="demo",version="1"} 1.0' in after
    assert "dsa_serving_waiting_rows 0.0" in after
