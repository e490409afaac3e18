from __future__ import annotations

import csv
import gzip
import itertools
import json
import zipfile
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.datasets import load_dataset, preset
from dsa_keras.datasets.fractions import apportioned, stratified
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import PAIR
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.objectives.classification import sorted_names
from dsa_keras.objectives.regression import Regression

NO_DRAW = (1, 0, 0)


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def load(path, **options):
    options = {"fractions": NO_DRAW, **options}
    return load_dataset("file", path=path, **options)


def rows_of(split):
    return list(zip(split.texts, split.targets.tolist(), strict=True))


FORMS = {
    "a.csv": 'id,label,text\n1,pos,"Good, ""really""\nfine"\n\n2,neg,bad\n',
    "a.tsv": 'id\tlabel\ttext\n1\tpos\tGood, "really" fine\n2\tneg\tbad\n',
    "a.jsonl": '{"text": "Good, \\"really\\"\\nfine", "label": "pos"}\n\n'
    '{"label": "neg", "text": "bad"}',
}


FIVE = "label,text\nok,a\nbad,b\ngreat,c\nawful,d\ngood,e\n"
ORDER = ("awful", "bad", "ok", "good", "great")


def test_classes_have_the_order_that_the_user_gives(tmp_path):
    path = write(tmp_path / "a.csv", FIVE)
    data = load(path, classes=ORDER)
    assert data.objective.class_names == ORDER
    assert data["train"].targets.tolist() == [2, 1, 4, 0, 3]
    assert load(path).objective.class_names == tuple(sorted(ORDER))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (ORDER[:4], r"a\.csv, line 4: label 'great' is none of --classes\. .*--on-bad-rows skip"),
        ((*ORDER, "best"), r"a\.csv: the training split has no example of 'best', which --classes"),
        (("ok", "bad", "ok"), "--classes: the class 'ok' is named twice"),
        (("ok",), "--classes: fewer than 2 classes are named"),
        (("ok", ""), "--classes: no usable label"),
    ],
)
def test_classes_that_do_not_fit_the_file_are_told(tmp_path, classes, message):
    path = write(tmp_path / "a.csv", FIVE)
    with pytest.raises((ConfigError, DataError), match=message):
        load(path, classes=classes)


def test_rows_of_other_classes_may_be_left_out(tmp_path):
    data = load(write(tmp_path / "a.csv", FIVE), classes=("ok", "bad"), on_bad_rows="skip")
    assert rows_of(data["train"]) == [("a", 0), ("b", 1)]
    assert data.skipped == {"train": 3}


def test_numbers_have_no_classes(tmp_path):
    path = write(tmp_path / "a.csv", "label,text\n1,a\n2,b\n")
    with pytest.raises(ConfigError, match="targets of regression have no names"):
        load(path, target="number", classes=("1", "2"))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_three_formats(tmp_path, name, ending):
    data = load(write(tmp_path / name, FORMS[name].replace("\n", ending)))
    texts = [" ".join(text.split()) for text in data["train"].texts]
    assert texts == ['Good, "really" fine', "bad"]
    assert data["train"].targets.tolist() == [1, 0]
    assert data.objective.class_names == ("neg", "pos")
    assert list(data.splits) == ["train"]


@pytest.mark.parametrize("name", FORMS)
def test_compressed_files_are_the_same(tmp_path, name):
    expected = rows_of(load(write(tmp_path / name, FORMS[name]))["train"])
    packed = write(tmp_path / f"{name}.gz", gzip.compress(FORMS[name].encode()))
    assert rows_of(load(packed)["train"]) == expected
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        file.writestr(f"folder/{name}", FORMS[name])
        file.writestr("readme.md", "hello")
    assert rows_of(load(tmp_path / "b.zip")["train"]) == expected


def test_a_quote_in_a_tsv_is_a_character(tmp_path):
    rows = 'text\tlabel\n"Good" it was\tpos\n"bad\tneg\n""\tneg\n'
    data = load(write(tmp_path / "a.tsv", rows))
    assert data["train"].texts == ['"Good" it was', '"bad', '""']


def test_pairs_and_named_columns(tmp_path):
    path = write(tmp_path / "a.csv", "first,second,class\nA b,c d,7\ne,f,-1\n")
    data = load(path, text_column="first", pair_column="second", label_column="class")
    assert data["train"].texts == [("A b", "c d"), ("e", "f")]
    assert data.inputs is PAIR
    assert data.objective.class_names == ("-1", "7")
    assert rows_of(data["train"]) == [(("A b", "c d"), 1), (("e", "f"), 0)]


def test_a_split_column(tmp_path):
    rows = ["x,1,train", "y,0,Validation", "z,0,train", "w,1,test", "v,1,dev"]
    path = write(tmp_path / "a.csv", "\n".join(["text,label,part", *rows]))
    data = load_dataset("file", path=path, split_column="part")
    assert {name: rows_of(split) for name, split in data.splits.items()} == {
        "train": [("x", 1), ("z", 0)],
        "dev": [("y", 0), ("v", 1)],
        "test": [("w", 1)],
    }
    write(path, "text,label,part\nx,1,train\ny,1,tset\n")
    with pytest.raises(DataError, match=r"a\.csv, line 3: unknown split 'tset'"):
        load_dataset("file", path=path, split_column="part")


def test_a_file_per_split_below_the_data_folder(tmp_path):
    write(tmp_path / "a.csv", "text,label\nx,b\ny,a\n")
    write(tmp_path / "b.jsonl", '{"text": "z", "label": "b"}')
    data = load_dataset("file", tmp_path, train="a.csv", test="b.jsonl")
    assert rows_of(data["train"]) == [("x", 1), ("y", 0)]
    assert rows_of(data["test"]) == [("z", 1)]
    assert list(data.splits) == ["train", "test"]


def test_a_label_seen_only_in_test(tmp_path):
    write(tmp_path / "a.csv", "text,label\nx,b\ny,a\n")
    write(tmp_path / "b.csv", "text,label\nz,b\nv,c\n")
    with pytest.raises(DataError, match=r"b\.csv, line 3: label 'c' is in the test split, never"):
        load_dataset("file", tmp_path, train="a.csv", test="b.csv")
    data = load_dataset("file", tmp_path, train="a.csv", test="b.csv", on_bad_rows="skip")
    assert data["test"].texts == ["z"]
    assert data.skipped == {"train": 0, "test": 1}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 9, -1], ("-1", "9", "10")),
        (["10", "9", "x"], ("10", "9", "x")),
        ([True, False], ("false", "true")),
        ([0.5, 2, 1.5], ("0.5", "1.5", "2")),
        ([" yes", "no "], ("no", "yes")),
        (["nan", "1", "b"], ("1", "b", "nan")),
        (["nan", "3", "20"], ("20", "3", "nan")),
    ],
)
def test_labels_of_any_type(tmp_path, labels, names):
    lines = [json.dumps({"text": f"t {label}", "label": label}) for label in labels]
    data = load(write(tmp_path / "a.jsonl", "\n".join(lines)))
    assert data.objective.class_names == names
    expected = [names.index(str(x).lower().strip()) for x in labels]
    assert data["train"].targets.tolist() == expected


BAD_ROWS = {
    "empty": ("a.csv", " ,pos", "an empty sentence"),
    "no label": ("a.csv", "x,", "no usable label"),
    "columns": ("a.csv", "x,pos,more", "3 columns, not 2"),
    "stray quote": ("a.csv", '"x" y,pos', "unbalanced quotes"),
    "NUL": ("a.csv", "x\0,pos", "a NUL byte"),
    "latin-1": ("a.csv", "caf\u00e9,pos".encode("latin-1"), "bytes that are not UTF-8"),
    "words": ("a.csv", "a " * 10_001 + ",pos", "a sentence of 10,001 words; the limit is 10,000"),
    "field": ("a.csv", "a " * 100_000 + ",pos", "a field of more than 131,072 characters"),
    "tsv": ("a.tsv", "x", "1 columns, not 2"),
    "tsv words": ("a.tsv", "a " * 50_000 + "\tpos", "a sentence of 50,000 words"),
    "json": ("a.jsonl", '{"text": "x", "label": }', "malformed JSON at column 24"),
    "json list": ("a.jsonl", "[]", "not a JSON object"),
    "key": ("a.jsonl", '{"txt": "x", "label": 1}', "Did you mean 'txt'?"),
    "null": ("a.jsonl", '{"text": "x", "label": null}', "no usable label: 'None'"),
    "NaN": ("a.jsonl", '{"text": "x", "label": NaN}', "no usable label"),
    "number": ("a.jsonl", '{"text": 5, "label": 1}', "a sentence that is not a string: '5'"),
}
GOOD = {
    "a.csv": ("text,label", "x,pos\ny,neg"),
    "a.tsv": ("text\tlabel", "x\tpos\ny\tneg"),
    "a.jsonl": ('{"text": "x", "label": "pos"}', '{"text": "y", "label": "neg"}'),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_names_file_and_line_or_is_counted(tmp_path, case):
    name, line, problem = BAD_ROWS[case]
    line = line if isinstance(line, bytes) else line.encode()
    first, good = (text.encode() for text in GOOD[name])
    path = write(tmp_path / name, b"\n".join([first, line, good]))
    with pytest.raises(DataError) as caught:
        load(path)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert len(str(caught.value)) < 400
    data = load(path, on_bad_rows="skip")
    assert data["train"].texts == ["x", "y"]
    assert data.skipped == {"train": 1}


@pytest.mark.parametrize("on_bad_rows", ["error", "skip"])
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('x,pos\n"y,pos\nz,pos\n', 3),
        ('x,pos\n"y\nz,pos\n"v",pos\n', 3),
        ('"y,pos\n' + "z,pos\n" * 30_000, 2),
    ],
)
def test_an_unclosed_quote_names_the_line_it_starts_on(tmp_path, rows, line, on_bad_rows):
    path = write(tmp_path / "a.csv", f"text,label\n{rows}")
    with pytest.raises(DataError, match=f"line {line}: unbalanced quotes"):
        load(path, on_bad_rows=on_bad_rows)


def test_a_broken_header_is_not_skipped(tmp_path):
    path = write(tmp_path / "a.csv", '"text"x,label\ntext,label\na,b\n')
    with pytest.raises(DataError, match="line 1: unbalanced quotes"):
        load(path, on_bad_rows="skip")


def test_the_field_limit_of_the_process_is_left_alone(tmp_path):
    before = csv.field_size_limit()
    load(write(tmp_path / "a.csv", FORMS["a.csv"]))
    assert csv.field_size_limit() == before


def test_missing_and_doubled_columns(tmp_path):
    path = write(tmp_path / "a.csv", "text,lable\nx,1\n")
    with pytest.raises(
        DataError, match=r"line 1: no column 'label'. Did you mean 'lable'\? Known: text, lable"
    ):
        load(path)
    write(path, "text,label,text\nx,1,y\n")
    with pytest.raises(DataError, match="line 1: more than one column 'text'"):
        load(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        load(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"a\.csv: the file is empty"):
        load(write(tmp_path / "a.csv", ""))
    with pytest.raises(DataError, match=r"a\.csv: no usable rows"):
        load(write(tmp_path / "a.csv", "text,label\n"))
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match=r"d\.csv: is a directory"):
        load(tmp_path / "d.csv")
    with pytest.raises(DataError, match=r"a\.xlsx: unknown format"):
        load(write(tmp_path / "a.xlsx", "x"))
    with pytest.raises(DataError, match="UTF-16"):
        load(write(tmp_path / "a.csv", FORMS["a.csv"].encode("utf-16")))


def test_broken_and_unsafe_archives(tmp_path):
    text = "".join(f"some text {number},{number * 7919 % 1000}\n" for number in range(3000))
    packed = gzip.compress(f"text,label\n{text}".encode())
    with pytest.raises(DataError, match=r"a\.csv\.gz: .*truncated"):
        load(write(tmp_path / "a.csv.gz", packed[: len(packed) // 2]))
    with zipfile.ZipFile(tmp_path / "up.zip", "w") as file:
        file.writestr("../a.csv", FORMS["a.csv"])
    with pytest.raises(DataError, match="points outside"):
        load(tmp_path / "up.zip")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as file:
        file.writestr("a.csv", FORMS["a.csv"])
        file.writestr("b.csv", FORMS["a.csv"])
    with pytest.raises(DataError, match="2 files of a known format"):
        load(tmp_path / "two.zip")
    with zipfile.ZipFile(tmp_path / "hollow.zip", "w") as file:
        file.writestr("a.csv", "")
    with pytest.raises(DataError, match=r"hollow\.zip/a\.csv: the file is empty"):
        load(tmp_path / "hollow.zip")


def test_a_decompression_bomb(tmp_path):
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(110):
            file.write(b" " * 2**20 + b"\n")
    with pytest.raises(DataError, match="bomb"):
        load(tmp_path / "a.jsonl.gz")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "file"),
        ({"path": "a.csv", "train": "b.csv"}, "file"),
        ({"test": "a.csv"}, "train-file"),
        ({"train": "a.csv", "fractions": NO_DRAW}, "fractions"),
        ({"path": "a.csv", "split_column": "s", "fractions": NO_DRAW}, "fractions"),
        ({"train": "a.csv", "split_column": "s"}, "split-column"),
        ({"path": "a.csv", "fractions": (0.5, 0.4)}, "fractions"),
        ({"path": "a.csv", "fractions": (0.5, 0.4, 0.4)}, "fractions"),
        ({"path": "a.csv", "fractions": (0, 0.5, 0.5)}, "fractions"),
        ({"path": "a.csv", "fractions": 0.8}, "fractions"),
    ],
)
def test_options_that_do_not_go_together(options, word):
    with pytest.raises(ConfigError, match=f"^--{word}: "):
        load_dataset("file", **options)


def test_drawn_splits_are_stratified_seeded_and_disjoint(tmp_path):
    lines = [f"t{number},{'ab'[number % 10 == 0]}" for number in range(200)]
    path = write(tmp_path / "a.csv", "\n".join(["text,label", *lines]))
    data = load_dataset("file", path=path)
    assert [len(data[name]) for name in ("train", "dev", "test")] == [160, 20, 20]
    assert [Counter(data[name].targets.tolist())[1] for name in data.splits] == [16, 2, 2]
    texts = [text for split in data.splits.values() for text in split.texts]
    assert sorted(texts) == sorted(f"t{number}" for number in range(200))
    again, other = (load_dataset("file", path=path, seed=seed) for seed in (0, 1))
    assert again["dev"].texts == data["dev"].texts
    assert other["dev"].texts != data["dev"].texts


def test_too_few_rows_to_draw_from(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\nx,1\ny,1\n")
    with pytest.raises(DataError, match="2 rows are too few to draw a dev split"):
        load_dataset("file", path=path)


_shares = st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.5, 0.0), (1.0, 0.0, 0.0), (0.05, 0.05, 0.9)])


@given(st.integers(1, 500), _shares)
def test_apportioned_is_near_and_complete(total, shares):
    sizes = apportioned(total, shares)
    assert sum(sizes) == total
    assert sizes[0] >= 1
    assert all(
        abs(size - total * share) < 1 or index == 0 or sizes[0] == 1
        for index, (size, share) in enumerate(zip(sizes, shares, strict=True))
    )
    assert all(size >= 0 and (share or not size) for size, share in zip(sizes, shares, strict=True))


@given(st.lists(st.sampled_from("abc"), min_size=40, max_size=80), st.integers(0, 5))
def test_every_row_is_drawn_once_and_every_class_is_in_train(labels, seed):
    chosen = stratified(labels, (0.5, 0.25, 0.25), seed, "file")
    assert sorted(itertools.chain(*chosen.values())) == list(range(len(labels)))
    assert {labels[index] for index in chosen["train"]} == set(labels)
    assert all(indices == sorted(indices) for indices in chosen.values())


def test_a_single_class_is_nothing_to_learn(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\nx,pos\ny,pos\n")
    message = r"a\.csv: only the class 'pos' occurs in the column 'label' of the training split"
    with pytest.raises(DataError, match=message):
        load(path)


# --- numbers ------------------------------------------------------------------

NUMBERS = {
    "a.csv": "text,label\nx,4.5\ny, -1 \nz,1e1\n",
    "a.tsv": "text\tlabel\nx\t4.5\ny\t-1\nz\t10.0\n",
    "a.jsonl": '{"text": "x", "label": 4.5}\n{"text": "y", "label": "-1"}\n'
    '{"text": "z", "label": 10}\n',
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_the_three_formats(tmp_path, name):
    data = load(write(tmp_path / name, NUMBERS[name]), target="number")
    assert rows_of(data["train"]) == [("x", 4.5), ("y", -1), ("z", 10)]
    assert data["train"].targets.dtype == np.float32
    assert isinstance(data.objective, Regression)
    assert data.objective.mean == pytest.approx(4.5)
    assert data.objective.deviation == pytest.approx(np.std([4.5, -1, 10]))


def test_numbers_are_classes_unless_asked_for(tmp_path):
    path = write(tmp_path / "a.csv", NUMBERS["a.csv"])
    for options in ({}, {"target": "class"}, {"target": "classification"}):
        assert load(path, **options).objective.class_names == ("-1", "4.5", "1e1")
    assert load(path, target="regression").objective == load(path, target="number").objective


NO_NUMBERS = {
    "words": ("a.csv", "x,four", "'four'"),
    "nothing": ("a.csv", "x,", "''"),
    "decimal comma": ("a.csv", 'x,"1,5"', "'1,5'"),
    "thousands": ("a.csv", "x,1_000", "'1_000'"),
    "NaN": ("a.csv", "x,nan", "'nan'"),
    "infinite": ("a.csv", "x,-inf", "'-inf'"),
    "beyond float32": ("a.csv", "x,1e39", "'1e39'"),
    "true": ("a.jsonl", '{"text": "x", "label": true}', "'True'"),
    "null": ("a.jsonl", '{"text": "x", "label": null}', "'None'"),
    "list": ("a.jsonl", '{"text": "x", "label": [1]}', r"'\[1\]'"),
    "NaN in JSON": ("a.jsonl", '{"text": "x", "label": NaN}', "'nan'"),
    "beyond all": ("a.jsonl", '{"text": "x", "label": 1%s}' % ("0" * 400), "'1000"),
}


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_a_cell_that_is_no_number_names_file_and_line_or_is_counted(tmp_path, case):
    name, line, told = NO_NUMBERS[case]
    rows = NUMBERS[name].splitlines()
    path = write(tmp_path / name, "\n".join([*rows[:2], line, *rows[2:]]))
    with pytest.raises(DataError, match=rf"a\.\w+, line 3: no usable number: {told}") as caught:
        load(path, target="number")
    assert str(caught.value).startswith(f"{path}, ")
    assert len(str(caught.value)) < 300
    data = load(path, target="number", on_bad_rows="skip")
    assert rows_of(data["train"]) == [("x", 4.5), ("y", -1), ("z", 10)]
    assert data.skipped == {"train": 1}


@pytest.mark.parametrize("number", ["3", "0.1", "16777217"])
def test_equal_numbers_are_nothing_to_learn(tmp_path, number):
    # The mean of many a tenth is not a tenth, and float32 does not tell 16777217 from 16777216.
    other = "16777216" if number == "16777217" else number
    lines = [f"t{row},{other if row else number}" for row in range(10)]
    path = write(tmp_path / "a.csv", "\n".join(["text,label", *lines]))
    with pytest.raises(DataError, match=r"a\.csv: all numbers are .* nothing to learn"):
        load(path, target="number")


def test_only_the_numbers_of_training_are_looked_at(tmp_path):
    write(tmp_path / "a.csv", "text,label\nx,1\ny,3\n")
    write(tmp_path / "b.csv", "text,label\nz,500\nv,500\n")
    data = load_dataset("file", tmp_path, train="a.csv", dev="b.csv", target="number")
    assert (data.objective.mean, data.objective.deviation) == (2, 1)
    # Unlike a class, a number need not occur in training.
    assert rows_of(data["dev"]) == [("z", 500), ("v", 500)]


def test_fractions_of_numbers(tmp_path):
    lines = [f"t{row},{row * row}" for row in range(200)]
    path = write(tmp_path / "a.csv", "\n".join(["text,label", *lines]))
    data = load_dataset("file", path=path, target="number")
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 160,
        "dev": 20,
        "test": 20,
    }
    rows = [row for split in data.splits.values() for row in rows_of(split)]
    assert sorted(rows) == sorted((f"t{row}", row * row) for row in range(200))
    again, other = (load_dataset("file", path=path, target="number", seed=s) for s in (0, 1))
    assert rows_of(again["dev"]) == rows_of(data["dev"])
    assert rows_of(other["dev"]) != rows_of(data["dev"])


def test_pairs_with_numbers_in_a_split_column(tmp_path):
    rows = ["a,b,1.5,train", "c,d,2.5,train", "e,f,0,dev"]
    path = write(tmp_path / "a.csv", "\n".join(["first,second,score,part", *rows]))
    columns = {"text_column": "first", "pair_column": "second", "label_column": "score"}
    data = load_dataset("file", path=path, split_column="part", target="number", **columns)
    assert data.inputs is PAIR
    assert rows_of(data["train"]) == [(("a", "b"), 1.5), (("c", "d"), 2.5)]
    assert rows_of(data["dev"]) == [(("e", "f"), 0)]


def test_an_unknown_target_suggests_the_nearest(tmp_path):
    path = write(tmp_path / "a.csv", NUMBERS["a.csv"])
    with pytest.raises(ConfigError, match=r"unknown target 'numbers'\. Did you mean 'number'\?"):
        load(path, target="numbers")


def test_an_objective_that_derives_from_another_is_asked_for_by_its_name(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Robust(Regression):
        name = "zz-robust"

    OBJECTIVES.names()
    monkeypatch.setitem(OBJECTIVES._found, Robust.name, Robust)
    path = write(tmp_path / "a.csv", NUMBERS["a.csv"])
    assert type(load(path, target="number").objective) is Regression
    assert type(load(path, target="zz-robust").objective) is Robust
    recipe = preset("file", options={"target": "zz-robust"})
    assert type(recipe.model.objective) is Robust


def test_names_of_equal_value_have_one_order():
    assert sorted_names({"1.0", "1", "01"}) == ("01", "1", "1.0")
