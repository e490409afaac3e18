"""MultiNLI from its official files: two development sets, and a training set that may be absent."""

from __future__ import annotations

import json
import logging
import os
import zipfile

import pytest

from dsa_keras.datasets import load_dataset, preset
from dsa_keras.datasets.mnli import LAYOUT
from dsa_keras.errors import DataError
from dsa_keras.inputs import PAIR

ROWS = [
    ("neutral", "Yeah, I know.", 'He says "yes".', "telephone"),
    ("-", "You and your friends.", "Friends.", "slate"),
    ("contradiction", "Gays and lesbians.", "Nobody.", "government"),
    ("entailment", "Führung ist alles.", "It is led.", "travel"),
]
PAIRS = [row[1:3] for row in ROWS if row[0] != "-"]
COLUMNS = (
    *("gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse"),
    *("sentence2_parse", "sentence1", "sentence2", "promptID", "pairID", "genre"),
    *("label1", "label2", "label3", "label4", "label5"),
)


def jsonl(rows=ROWS):
    """Rows as in the official jsonl, with the keys that are not read."""
    return "".join(
        json.dumps(
            {
                "annotator_labels": [label, label],
                "genre": genre,
                "gold_label": label,
                "pairID": "1n",
                "promptID": "1",
                "sentence1": premise,
                "sentence1_binary_parse": "( ( a ) )",
                "sentence2": hypothesis,
            }
        )
        + "\n"
        for label, premise, hypothesis, genre in rows
    )


def txt(rows=ROWS):
    """Rows as in the official txt: those of the training set have one annotator's label only."""
    lines = [COLUMNS] + [
        (label, "(p)", "(p)", "(p)", "(p)", premise, hypothesis, "1", "1n", genre, label)
        for label, premise, hypothesis, genre in rows
    ]
    return "".join("\t".join(line) + "\n" for line in lines)


@pytest.fixture
def folder(tmp_path):
    """All three files, in both forms."""
    folder = tmp_path / "multinli_1.0"
    folder.mkdir()
    (folder / "multinli_1.0_train.txt").write_text(txt(ROWS[:1] * 5), encoding="utf-8")
    (folder / "multinli_1.0_dev_matched.jsonl").write_text(jsonl(), encoding="utf-8")
    (folder / "multinli_1.0_dev_mismatched.txt").write_text(txt(ROWS[2:]), encoding="utf-8")
    return folder


def test_both_forms_and_both_development_sets(folder, caplog):
    with caplog.at_level(logging.INFO, logger="dsa_keras"):
        data = load_dataset("mnli", folder)
    assert list(data.splits) == ["train", "dev", "dev-mismatched"]
    assert list(data["train"].texts) == PAIRS[:1] * 5
    assert list(data["dev"].texts) == PAIRS
    assert data["dev"].targets.tolist() == [1, 2, 0]
    assert list(data["dev-mismatched"].texts) == PAIRS[1:]
    assert data["dev-mismatched"].targets.tolist() == [2, 0]
    assert data.objective.class_names == ("entailment", "neutral", "contradiction")
    assert data.inputs is PAIR
    assert data.name == "mnli"
    assert data.skipped == {"train": 0, "dev": 0, "dev-mismatched": 0}
    # A row that the annotators did not agree about is no bad row.
    assert caplog.text.count("1 rows without a gold label dropped") == 1


def test_jsonl_goes_before_txt(folder):
    (folder / "multinli_1.0_dev_mismatched.jsonl").write_text(jsonl(ROWS[:1]))
    assert list(load_dataset("mnli", folder)["dev-mismatched"].texts) == PAIRS[:1]


def test_whichever_splits_are_there(folder):
    (folder / "multinli_1.0_train.txt").unlink()
    data = load_dataset("mnli", folder)
    assert list(data.splits) == ["dev", "dev-mismatched"]
    assert len(data.part("dev-mismatched")) == 2
    with pytest.raises(DataError, match=r"no train split.*dev, dev-mismatched"):
        data.part("train")
    (folder / "multinli_1.0_dev_matched.jsonl").unlink()
    assert list(load_dataset("mnli", folder).splits) == ["dev-mismatched"]


def test_training_says_that_there_is_nothing_to_train_on(folder, tmp_path):
    from dsa_keras.training.trainer import train

    (folder / "multinli_1.0_train.txt").unlink()
    with pytest.raises(DataError, match="mnli: the data has no train examples"):
        train(load_dataset("mnli", folder), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_same_from_every_place(folder, tmp_path):
    archive = tmp_path / "zips" / "multinli_1.0.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("multinli_1.0/", b"")
        for name in ("dev_matched", "dev_mismatched"):
            file.writestr(f"multinli_1.0/multinli_1.0_{name}.txt", txt(ROWS[:1]))
            file.writestr(f"multinli_1.0/multinli_1.0_{name}.jsonl", jsonl())
            file.writestr(f"__MACOSX/multinli_1.0/._multinli_1.0_{name}.jsonl", b"\0\5")
        file.writestr("multinli_1.0/paper.pdf", b"%PDF")
    for place in (tmp_path, folder, archive, archive.parent):
        assert list(load_dataset("mnli", place)["dev"].texts) == PAIRS
    assert list(load_dataset("mnli", archive).splits) == ["dev", "dev-mismatched"]


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("dev_matched.jsonl", jsonl() + "{}\n", 5, "no key 'gold_label'"),
        ("dev_matched.jsonl", jsonl([("maybe", "a", "b", "c")]), 1, "unknown label 'maybe'"),
        ("dev_matched.jsonl", jsonl([("neutral", "a", " ", "c")]), 1, "an empty sentence"),
        ("dev_mismatched.txt", txt() + "neutral\ta\n", 6, "2 columns, not 15"),
        ("dev_mismatched.txt", txt([("hidden", "a", "b", "c")]), 2, "unknown label 'hidden'"),
    ],
)
def test_a_bad_row_names_file_and_line_or_is_counted(folder, name, text, line, problem):
    path = folder / f"multinli_1.0_{name}"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_dataset("mnli", folder)
    assert str(caught.value).startswith(f"{path}, line {line}: {problem}")
    good = jsonl(ROWS[:1]) if name.endswith("jsonl") else txt(ROWS[:1]).split("\n", 1)[1]
    path.write_text(text + good)
    split = "dev" if name.startswith("dev_matched") else "dev-mismatched"
    assert load_dataset("mnli", folder, on_bad_rows="skip").skipped[split] == 1


def test_missing_data_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError) as caught:
        load_dataset("mnli", tmp_path)
    for part in (str(tmp_path / "multinli_1.0"), LAYOUT.url, "multinli_1.0_dev_matched.jsonl"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="MultiNLI needs a data_dir"):
        load_dataset("mnli")


def test_it_is_trained_as_snli_is():
    assert preset("mnli", "dsa-multiple") == preset("snli", "dsa-multiple")


@pytest.mark.skipif("DSA_DATA_DIR" not in os.environ, reason="DSA_DATA_DIR names no official data")
def test_published_sizes_of_the_development_sets():
    data = load_dataset("mnli", os.environ["DSA_DATA_DIR"])
    assert len(data["dev"]) == 9_815
    assert len(data["dev-mismatched"]) == 9_832
