"""What a real TensorBoard server tells about a run: scalars, pictures, the projector's data."""

from __future__ import annotations

import io
import urllib.parse

import numpy as np
import pytest

from dsa_keras.commands.main import main
from tests.runs import tiny_run
from tests.servers import fetch, fetch_until, tensorboard


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from dsa_keras.inspection.probe import Probe

    path = tmp_path_factory.mktemp("runs") / "run"
    probe = Probe(["not a dull moment"], path / "logs" / "probe")
    tiny_run(path, encoder="dsa-multiple", num_attentions=2, options={"probe": probe})
    assert main(["inspect", str(path), "--sentences", "15"]) == 0
    return path


@pytest.fixture(scope="module")
def address(run):
    with tensorboard(run / "logs") as address:
        yield address


def query(**values):
    return urllib.parse.urlencode(values)


def test_scalars_are_served(address):
    tags = fetch_until(
        address,
        "data/plugin/scalars/tags",
        lambda value: {"train", "dev", "inspection"} <= set(value),
    )
    assert {"loss", "accuracy"} <= set(tags["train"])
    assert "accuracy" in tags["dev"]
    tag = "entropy by iteration/attention 2"
    assert tag in tags["inspection"]
    points = fetch_until(
        address,
        "data/plugin/scalars/scalars?" + query(run="inspection", tag=tag),
        lambda value: len(value) == 2,
    )
    assert [step for _, step, _ in points] == [1, 2]
    assert points[0][2] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("run_name", "tag"),
    [
        ("inspection", "dynamic weight vectors"),
        ("inspection", "attention maps"),
        ("inspection", "attention score"),
        ("probe", "attention/sentence 1"),
        ("dev", "confusion matrix"),
    ],
)
def test_pictures_are_served(address, run_name, tag):
    from matplotlib.image import imread

    fetch_until(address, "data/plugin/images/tags", lambda value: tag in value.get(run_name, {}))
    where = query(run=run_name, tag=tag, sample=0)
    (one,) = fetch_until(address, f"data/plugin/images/images?{where}", lambda value: len(value))
    picture = imread(
        io.BytesIO(fetch(address, f"data/plugin/images/individualImage?{one['query']}"))
    )
    assert min(picture.shape[:2]) > 150
    assert picture[..., :3].std() > 0.01


def test_the_projector_serves_vectors_and_their_sentences(address, run):
    import dsa_keras

    runs = fetch_until(address, "data/plugin/projector/runs", lambda value: "inspection" in value)
    assert runs == ["inspection"]
    info = fetch_until(
        address, "data/plugin/projector/info?run=inspection", lambda value: value["embeddings"]
    )
    names = {one["tensorName"].split("/")[0]: one for one in info["embeddings"]}
    assert set(names) == {"sentence_embeddings", "dynamic_weight_vectors"}
    for one in names.values():
        assert one["tensorShape"] == [15, 16 if "embeddings" in one["tensorName"] else 8]
    name = names["sentence_embeddings"]["tensorName"]
    where = query(run="inspection", name=name)
    table = fetch(address, f"data/plugin/projector/metadata?{where}").decode().splitlines()
    assert table[0].split("\t") == ["sentence", "label", "prediction", "words"]
    sentences = [line.split("\t")[0] for line in table[1:]]
    data = fetch(address, f"data/plugin/projector/tensor?{where}")
    vectors = np.frombuffer(data, np.float32).reshape(15, 16)
    model = dsa_keras.load(run)
    np.testing.assert_allclose(vectors, model.encode(sentences), atol=1e-5)
    predictions = [one.label for one in model.predict(sentences)]
    assert [line.split("\t")[2] for line in table[1:]] == predictions
