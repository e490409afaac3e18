"""What was exported is served: regressions by both interfaces, and versions that were damaged."""

from __future__ import annotations

import json
import logging
import shutil

import numpy as np
import pytest
from exported import case
from one_command import export as main
from serving_models import ask, copy_version, serving, wait_until

import dsa_keras
from dsa_keras.errors import RunError
from dsa_keras.export.client import connect
from dsa_keras.export.versions import MANIFEST, version_manifest

NUMBERS = ("number", "pair-number")


def model_of(one, tmp_path, name="demo"):
    """A model of one version, copied."""
    folder = tmp_path / name
    folder.mkdir()
    copy_version(one.version, folder / "1")
    return folder


def rows_of(one):
    columns = one.inputs.columns(one.texts)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    folders = [model_of(case(tmp_path_factory, name), folder, name) for name in NUMBERS]
    with serving(*folders) as server:
        yield server


@pytest.fixture(params=NUMBERS)
def name(request):
    return request.param


@pytest.fixture(params=["REST", "gRPC"])
def address(request, server, name):
    if request.param == "REST":
        return f"{server.rest_url}/v1/models/{name}"
    return f"grpc://{server.grpc_address}/{name}"


@pytest.fixture
def one(name, tmp_path_factory):
    return case(tmp_path_factory, name)


@pytest.fixture
def expected(one):
    return dsa_keras.load(one.run).numbers(one.texts)


def test_a_number_for_each_text(one, address, expected):
    answers = connect(address).ask(rows_of(one))
    assert [list(answer) for answer in answers] == [["number"]] * len(answers)
    found = [answer["number"] for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(found) > 0.1


def test_the_client_prints_a_number_a_line(one, address, expected, capsys):
    texts = [one.inputs.sentences(text) for text in one.texts[:3]]
    sentences = [sentence for text in texts for sentence in text]
    pair = ["--pair"] * one.inputs.is_pair
    assert main(["client", "--url", address, *pair, *sentences]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(texts)
    for line, text, number in zip(lines, texts, expected, strict=False):
        printed, *rest = line.split("\t")
        assert float(printed) == pytest.approx(number, abs=1e-4)
        assert tuple(rest) == text


def test_the_client_prints_whole_answers_as_json(one, address, expected, capsys):
    sentences = one.inputs.sentences(one.texts[0])
    pair = ["--pair"] * one.inputs.is_pair
    assert main(["client", "--url", address, "--json", *pair, *sentences]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"number": pytest.approx(expected[0], abs=1e-4)}


def test_rows_and_columns_by_rest(one, server, name, expected):
    url = f"{server.rest_url}/v1/models/{name}:predict"
    status, answer = ask(url, {"inputs": one.inputs.columns(one.texts)})
    assert (status, list(answer)) == (200, ["outputs"])
    np.testing.assert_allclose(answer["outputs"], expected, atol=1e-5)
    status, answer = ask(url, {"instances": rows_of(one)})
    assert (status, list(answer)) == (200, ["predictions"])
    np.testing.assert_allclose(answer["predictions"], expected, atol=1e-5)


def test_merged_requests_for_numbers_get_what_they_would_have_got_alone(one):
    from dsa_keras.export.server.signatures import SavedModel

    columns = one.inputs.columns(one.texts)
    requests = [
        {name: np.array([text.encode() for text in part], object) for name, part in chunk.items()}
        for chunk in (
            {name: sentences[start : start + 2] for name, sentences in columns.items()}
            for start in (0, 2, 4)
        )
    ]
    signature = SavedModel(one.version).signature("serving_default")
    assert signature.mergeable
    for request, merged in zip(requests, signature.run_merged(requests), strict=True):
        alone = signature.run(request)
        assert merged.keys() == alone.keys() == {"number"}
        np.testing.assert_allclose(merged["number"], alone["number"], atol=1e-5)


# Versions that were damaged


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "file", ["assets/vocabulary.txt", "variables/variables.data-00000-of-00001"]
)
def test_a_flipped_bit_is_refused_and_the_version_before_goes_on(
    file, tmp_path_factory, tmp_path, caplog
):
    one = case(tmp_path_factory, "single")
    folder = model_of(one, tmp_path)
    body = {"instances": ["a good film"]}
    with serving(folder) as server, caplog.at_level(logging.INFO, "dsa_keras.export.serve"):
        url = f"{server.rest_url}/v1/models/demo"
        before = ask(f"{url}:predict", body)
        damaged = tmp_path / "damaged"
        shutil.copytree(one.version, damaged)
        flip(damaged / file)
        copy_version(damaged, folder / "2")

        def state():
            _, answer = ask(f"{url}/versions/2")
            return answer.get("model_version_status", [{}])[0]

        wait_until(lambda: state().get("state") == "END")
        problem = state()["status"]["error_message"]
        assert problem.startswith(f"{folder / '2' / file}: is not the file that belongs here")
        assert "\n" not in problem
        told = [one.getMessage() for one in caplog.records if "version 2" in one.getMessage()]
        assert told == [f"demo version 2 cannot be loaded: {problem}"]
        assert ask(f"{url}:predict", body) == before
        assert before[0] == 200

        shutil.copy(one.version / file, folder / "2" / file)
        wait_until(lambda: state().get("state") == "AVAILABLE")
        assert ask(f"{url}:predict", body) == before


def test_a_server_does_not_start_with_a_flipped_bit_alone(tmp_path_factory, tmp_path):
    folder = model_of(case(tmp_path_factory, "single"), tmp_path)
    flip(folder / "1" / "assets" / "vocabulary.txt")
    with pytest.raises(RunError, match=r"vocabulary\.txt: is not the file"), serving(folder):
        pass


def test_a_version_without_a_manifest_is_loaded(tmp_path_factory, tmp_path):
    folder = model_of(case(tmp_path_factory, "single"), tmp_path)
    (folder / "1" / MANIFEST).unlink()
    assert not version_manifest(folder / "1").exists
    with serving(folder) as server:
        status, _ = ask(f"{server.rest_url}/v1/models/demo:predict", {"instances": ["a film"]})
        assert status == 200


def test_files_that_the_manifest_does_not_list_do_no_harm(tmp_path_factory, tmp_path):
    folder = model_of(case(tmp_path_factory, "single"), tmp_path)
    (folder / "1" / "assets.extra" / "README.txt").write_text("a note of the operator's")
    with serving(folder) as server:
        status, _ = ask(f"{server.rest_url}/v1/models/demo:predict", {"instances": ["a film"]})
        assert status == 200
