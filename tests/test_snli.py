from __future__ import annotations

import json
import logging
import os
import zipfile

import pytest

from dsa_keras.datasets import load_dataset
from dsa_keras.datasets.snli import LAYOUT
from dsa_keras.errors import DataError
from dsa_keras.inputs import PAIR

ROWS = [
    ("neutral", "A man eats .", 'He likes "it" .'),
    ("-", "A man eats .", ""),
    ("contradiction", "A man eats .", "Nobody eats ."),
    ("entailment", "Zwei Männer .", "Some men ."),
]
PAIRS = [row[1:] for row in ROWS if row[0] != "-"]
HEADER = "gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
COLUMNS = [*HEADER.split(), "sentence1", "sentence2", "captionID", "pairID", "label1", "label2"]


def jsonl(rows=ROWS):
    keys = ("gold_label", "sentence1", "sentence2")
    return "".join(
        json.dumps({**dict(zip(keys, row, strict=True)), "pairID": "x"}) + "\n" for row in rows
    )


def txt(rows=ROWS):
    lines = [COLUMNS] + [
        [r[0], "(p)", "(p)", "(p)", "(p)", r[1], r[2], "c", "p", r[0], ""] for r in rows
    ]
    return "".join("\t".join(line) + "\n" for line in lines)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "snli_1.0"
    folder.mkdir()
    (folder / "snli_1.0_train.jsonl").write_text(jsonl(), encoding="utf-8")
    (folder / "snli_1.0_dev.txt").write_text(txt(), encoding="utf-8")
    return folder


def test_both_forms_give_the_same_pairs(folder, caplog):
    with caplog.at_level(logging.INFO, logger="dsa_keras"):
        data = load_dataset("snli", folder)
    assert list(data.splits) == ["train", "dev"]
    for split in data.splits.values():
        assert list(split.texts) == PAIRS
        assert split.targets.tolist() == [1, 2, 0]
    assert data.objective.class_names == ("entailment", "neutral", "contradiction")
    assert data.inputs is PAIR
    assert data.skipped == {"train": 0, "dev": 0}
    assert caplog.text.count("1 rows without a gold label dropped") == 2


def test_the_same_from_every_place(folder, tmp_path):
    archive = tmp_path / "zips" / "snli_1.0.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("train", "dev", "test"):
            file.writestr(f"snli_1.0/snli_1.0_{name}.txt", txt(ROWS[:1]))
            file.writestr(f"snli_1.0/snli_1.0_{name}.jsonl", jsonl())
            file.writestr(f"__MACOSX/snli_1.0/._snli_1.0_{name}.jsonl", b"\0\5")
    for place in (tmp_path, folder, archive, archive.parent):
        assert list(load_dataset("snli", place)["train"].texts) == PAIRS
    assert list(load_dataset("snli", archive).splits) == ["train", "dev", "test"]


def row(**changes):
    return json.dumps(
        {"gold_label": "neutral", "sentence1": "a", "sentence2": "b", **changes}, ensure_ascii=True
    )


BAD_LINES = [
    ('{"gold_label": "neutral", ', "malformed JSON"),
    ("[1, 2]", "not a JSON object"),
    ("[" * 100_000, "malformed JSON"),
    (row(gold_label="maybe"), "unknown label 'maybe'"),
    (row(gold_label=["neutral"]), "unknown label"),
    ('{"gold_label": "neutral", "sentence1": "a"}', "no key 'sentence2'"),
    (row(sentence2=" \t"), "an empty sentence"),
    (row(sentence1=""), "an empty sentence"),
    (row(sentence1=7), "not a string"),
    (row(sentence1="word " * 100_000), "a sentence of 100,000 words; the limit is 10,000"),
    (row(sentence1="a\0b"), "NUL"),
    (row(sentence1="a\ud800b"), "not UTF-8"),
    (b'{"gold_label": "neutral", "sentence1": "caf\xe9", "sentence2": "b"}', "not UTF-8"),
    (b"\0\0\0", "NUL"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_LINES, ids=[text for _, text in BAD_LINES])
def test_a_bad_row_names_file_and_line_or_is_counted(folder, line, problem):
    path = folder / "snli_1.0_train.jsonl"
    line = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b"\n".join([row().encode(), line, row().encode()]))
    with pytest.raises(DataError) as caught:
        load_dataset("snli", folder)
    assert problem in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)
    data = load_dataset("snli", folder, on_bad_rows="skip")
    assert list(data["train"].texts) == [("a", "b"), ("a", "b")]
    assert data.skipped == {"train": 1, "dev": 0}


BAD_TXT = [
    (txt().splitlines()[1].rsplit("\t", 5)[0], "6 columns, not 11"),
    (txt().splitlines()[1] + "\tx", "12 columns, not 11"),
    (txt([("neutral", "a", " ")]).splitlines()[1], "an empty sentence"),
    (txt([("neutral", "a", "b\0")]).splitlines()[1], "NUL"),
    (txt([("none", "a", "b")]).splitlines()[1], "unknown label"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_TXT)
def test_a_bad_row_of_the_txt(folder, line, problem):
    path = folder / "snli_1.0_dev.txt"
    path.write_text(txt() + line + "\n")
    with pytest.raises(DataError) as caught:
        load_dataset("snli", folder)
    assert problem in str(caught.value)
    assert f"{path}, line 6" in str(caught.value)
    assert load_dataset("snli", folder, on_bad_rows="skip").skipped["dev"] == 1


def test_rows_shorter_than_the_header_are_fine_once_the_sentences_are_there(folder):
    (folder / "snli_1.0_dev.txt").write_text(txt()[: -len("entailment\t\n")] + "\n")
    assert len(load_dataset("snli", folder)["dev"]) == 3


def test_a_txt_without_its_header(folder):
    (folder / "snli_1.0_dev.txt").write_text(txt().split("\n", 1)[1])
    with pytest.raises(DataError, match=r"dev\.txt, line 1: no column 'gold_label'"):
        load_dataset("snli", folder)


def test_a_byte_order_mark_is_fine(folder):
    (folder / "snli_1.0_train.jsonl").write_text(jsonl(), encoding="utf-8-sig")
    assert list(load_dataset("snli", folder)["train"].texts) == PAIRS


def test_utf_16(folder):
    (folder / "snli_1.0_train.jsonl").write_text(jsonl(), encoding="utf-16")
    with pytest.raises(DataError, match="UTF-16, not UTF-8"):
        load_dataset("snli", folder, on_bad_rows="skip")


def test_no_row_left(folder):
    (folder / "snli_1.0_train.jsonl").write_text("{}\n{}\n")
    with pytest.raises(DataError, match=r"no usable rows \(2 bad rows skipped\)"):
        load_dataset("snli", folder, on_bad_rows="skip")


def test_missing_data_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError) as caught:
        load_dataset("snli", tmp_path / "none")
    for part in (str(tmp_path / "none" / "snli_1.0"), LAYOUT.url, "snli_1.0_train.jsonl"):
        assert part in str(caught.value)


def test_an_archive_of_something_else(tmp_path):
    archive = tmp_path / "snli_1.0.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("readme.md", "hello")
    with pytest.raises(DataError, match="there"):
        load_dataset("snli", tmp_path)


def test_truncated_archive(tmp_path):
    archive = tmp_path / "snli_1.0.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("snli_1.0/snli_1.0_train.jsonl", jsonl())
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(DataError, match=str(archive)):
        load_dataset("snli", tmp_path)


@pytest.mark.skipif("DSA_DATA_DIR" not in os.environ, reason="DSA_DATA_DIR names no official data")
def test_published_size_of_dev():
    assert len(load_dataset("snli", os.environ["DSA_DATA_DIR"])["dev"]) == 9_842
