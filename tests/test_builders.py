from __future__ import annotations

import json

import pytest

tfds = pytest.importorskip("tensorflow_datasets")

from dsa_keras.datasets import builders  # noqa: E402
from dsa_keras.datasets.builders import official  # noqa: E402
from dsa_keras.errors import DataError  # noqa: E402

# Nothing listens on the discard port of this machine: the address refuses at once.
DEAD_URL = "http://127.0.0.1:9/archive.zip"


def prepared(name, tmp_path, manual, **builder_kwargs):
    """The splits of a builder, prepared from the folder `manual`, as lists of examples."""
    builder = tfds.builder(name, data_dir=tmp_path / "tfds", **builder_kwargs)
    config = tfds.download.DownloadConfig(manual_dir=manual)
    builder.download_and_prepare(download_config=config)
    return builder, {
        split: sorted(
            tfds.as_numpy(builder.as_dataset(split=split)), key=lambda row: sorted(row.items())
        )
        for split in builder.info.splits
    }


@pytest.fixture
def trees(tmp_path):
    folder = tmp_path / "manual" / "trees"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("(3 (2 It) (4 works))\n(1 bad)\n")
    (folder / "dev.txt").write_text("(4 good)\n")
    (folder / "test.txt").write_text("(0 awful)\n(2 so-so)\n")
    return folder.parent


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "manual" / "snli_1.0"
    folder.mkdir(parents=True)
    rows = [("neutral", "a", "b"), ("-", "c", "d"), ("contradiction", "e", "f")]
    keys = ("gold_label", "sentence1", "sentence2")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in rows]
    (folder / "snli_1.0_dev.jsonl").write_text("\n".join(lines))
    return folder.parent


def test_sst_from_a_local_folder(trees, tmp_path):
    config = builders.SstConfig(
        name="tiny", classes="sst2", expected={"train": 3, "dev": 1, "test": 1}
    )
    builder, splits = prepared("dsa_sst", tmp_path, trees, config=config)
    assert {
        split: [(row["text"], row["label"]) for row in rows] for split, rows in splits.items()
    } == {
        "train": [(b"bad", 0), (b"It works", 1), (b"works", 1)],
        "dev": [(b"good", 1)],
        "test": [(b"awful", 0)],
    }
    assert builder.info.features["label"].names == ["negative", "positive"]


def test_a_part_of_snli_from_a_local_folder(pairs, tmp_path):
    config = tfds.download.DownloadConfig(manual_dir=pairs)
    options = {"download_config": config}
    loaded = tfds.load("dsa_snli/part", data_dir=tmp_path, download_and_prepare_kwargs=options)
    splits = {split: list(tfds.as_numpy(rows)) for split, rows in loaded.items()}
    rows = [(row["premise"], row["hypothesis"], row["label"]) for row in splits["dev"]]
    assert sorted(rows) == [(b"a", b"b", 1), (b"e", b"f", 2)]
    assert list(splits) == ["dev"]


@pytest.mark.parametrize("name", ["sst2", "sst5", "sst2_sentences", "sst5_sentences"])
def test_trees_of_another_size_are_refused_and_nothing_is_left(trees, tmp_path, name):
    with pytest.raises(DataError, match="not the published data: train has "):
        prepared(f"dsa_sst/{name}", tmp_path, trees)
    assert not list((tmp_path / "tfds").rglob("*.tfrecord*"))


def test_a_part_does_not_pass_for_snli(pairs, tmp_path):
    with pytest.raises(DataError, match=r"train has 0 examples, not 549,367.*dsa_snli/part"):
        prepared("dsa_snli", tmp_path, pairs)


def test_a_bad_row_stops_the_preparation(pairs, tmp_path):
    (pairs / "snli_1.0" / "snli_1.0_dev.jsonl").write_text('{"gold_label": "neutral"}')
    with pytest.raises(DataError, match=r"snli_1\.0_dev\.jsonl, line 1: no key 'sentence1'"):
        prepared("dsa_snli/part", tmp_path, pairs)


@pytest.mark.parametrize("name", ["dsa_sst", "dsa_snli"])
@pytest.mark.parametrize("manual", ["empty", "other", None])
def test_offline_without_data_says_at_once_what_to_put_where(tmp_path, monkeypatch, name, manual):
    module = builders.sst.sst if name == "dsa_sst" else builders.snli.snli
    layout = type(module.LAYOUT)(**{**vars(module.LAYOUT), "url": DEAD_URL})
    monkeypatch.setattr(module, "LAYOUT", layout)
    folder = None if manual is None else tmp_path / manual
    if folder is not None:
        folder.mkdir()
    if manual == "other":
        (folder / "readme.md").write_text("hello")
    with pytest.raises(DataError) as caught:
        prepared(name, tmp_path, folder)
    for part in (DEAD_URL, "does not answer", "manual_dir", "archive.zip"):
        assert part in str(caught.value)


def test_a_dead_address_is_a_problem_in_words():
    assert "refused" in (official.connection_problem(DEAD_URL) or "")
