"""Parquet in and out: types are kept, vectors are lists of one size, memory is bounded."""

from __future__ import annotations

import datetime
import json
import shutil

import numpy as np
import pyarrow
import pytest
from fresh_python import loaded_after
from pyarrow import parquet
from runs import shared_run

import dsa_keras
from dsa_keras.data.parquet_files import read_batches

TEXTS = ["the acting is superb", "dull", "", "one\ntwo lines"]
DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)]


@pytest.fixture(scope="module")
def single():
    return shared_run(encoder="cnn")


@pytest.fixture
def table():
    return pyarrow.table(
        {
            "id": pyarrow.array([1, 2, None, 4], pyarrow.int16()),
            "review": pyarrow.array(TEXTS).dictionary_encode(),
            "day": DAYS,
            "label": pyarrow.array([[1.5], [], None, [2.0]], pyarrow.list_(pyarrow.float32())),
        }
    )


@pytest.fixture
def file(table, tmp_path):
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    return tmp_path / "a.parquet"


def test_encode_adds_lists_of_one_size(run, single, table, file, tmp_path):
    output = tmp_path / "out.parquet"
    code, _, error = run(
        "encode", single, "--file", file, "--text-column", "review", "--output", output
    )
    assert code == 0, error
    found = parquet.read_table(output)
    assert found.column_names == [*table.column_names, "vector"]
    assert found.select(table.column_names).equals(table)
    assert found.schema.field("vector").type == pyarrow.list_(pyarrow.float32(), 12)
    expected = dsa_keras.load(single).encode(TEXTS)
    vectors = np.array(found["vector"].to_pylist())
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)


def test_predict_adds_answers(run, refused, single, table, file, tmp_path):
    column, output = ("--file", file, "--text-column", "review"), tmp_path / "out.parquet"
    code, _, error = run("predict", single, *column, "--output", output)
    assert code == 0, error
    found = parquet.read_table(output)
    assert found.select(table.column_names).equals(table)
    expected = dsa_keras.load(single).predict(TEXTS)
    assert found["predicted_label"].to_pylist() == [one.label for one in expected]
    assert found["probability"].type == pyarrow.float64()
    code, out, error = run("predict", single, *column, "--format", "jsonl")
    assert code == 0, error
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["day"] for row in rows] == [str(day) for day in DAYS]
    code, out, error = run("predict", single, *column, "--format", "csv")
    assert code == 0, error
    assert out.splitlines()[1].startswith("1,the acting is superb,2020-01-01,[1.5],")
    assert "Parquet goes to a file" in refused("predict", single, "dull", "--format", "parquet")
    error = refused("predict", single, *column, "--format", "csv", "--output", output)
    assert "--format csv and an --output that ends in '.parquet'" in error


def test_other_tables_and_lines_become_parquet(run, refused, single, tmp_path):
    lines, output = tmp_path / "a.txt", tmp_path / "out.parquet"
    lines.write_text("dull\nsuperb\n")
    code, _, error = run("encode", single, "--file", lines, "--output", output)
    assert code == 0, error
    assert parquet.read_table(output)["text"].to_pylist() == ["dull", "superb"]
    rows = tmp_path / "a.jsonl"
    rows.write_text('{"text": "dull", "n": 1, "x": null}\n' * 4096 + '{"text": "dull"}\n')
    code, _, error = run("predict", single, "--file", rows, "--output", output, "--force")
    assert code == 0, error
    found = parquet.read_table(output)
    assert found["n"].type == pyarrow.int64()
    assert found["n"].to_pylist() == [1] * 4096 + [None]
    before = output.read_bytes()
    rows.write_text('{"text": "dull", "n": 1}\n' * 4096 + '{"text": "dull", "n": "x"}\n')
    error = refused("predict", single, "--file", rows, "--output", output, "--force")
    assert "a.jsonl: the column 'n' has values of two kinds" in error
    rows.write_text('{"text": "dull"}\n' * 4096 + '{"text": "dull", "n": "x"}\n')
    error = refused("encode", single, "--file", rows, "--output", output, "--force")
    assert "'n' is no column of the first row" in error
    assert output.read_bytes() == before


def test_similar_and_evaluate_read_it(run, single, file, tmp_path):
    code, out, error = run(
        "similar", single, "dull", "--file", file, "--text-column", "review", "--top", 1
    )
    assert code == 0, error
    assert out == "1.0000\t2\tdull\n"
    label = dsa_keras.load(single).predict("dull").label
    parquet.write_table(pyarrow.table({"text": ["dull"], "label": [label]}), file)
    code, out, error = run("evaluate", single, "--file", file)
    assert code == 0, error
    assert "accuracy 1.0000 on 1 examples" in out


def test_a_row_group_at_a_time(tmp_path):
    file = tmp_path / "a.parquet"
    texts = pyarrow.table({"text": [f"text {n}" * 10 for n in range(20_000)]})
    parquet.write_table(texts, file, row_group_size=1000, compression="none")
    batches = read_batches(file, 400)
    assert len(next(batches)) == 400
    # The last row group is gone, and nobody has missed it yet.
    with file.open("r+b") as opened:
        group = parquet.read_metadata(file).row_group(19).column(0)
        opened.seek(group.dictionary_page_offset or group.data_page_offset)
        opened.write(b"\xff" * group.total_compressed_size)
    assert len(next(batches)) == 400
    with pytest.raises(dsa_keras.errors.DataError, match=r"a\.parquet: cannot be read as Parquet"):
        list(batches)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("txt", ["x"], "no column 'text'. Did you mean 'txt'? Known: txt. Name the columns by"),
        ("text", [None], "line 1: a sentence that is not a string: 'None'"),
        ("text", [5], "line 1: a sentence that is not a string: '5'"),
        ("text", pyarrow.array([], pyarrow.string()), "there is no row to read"),
    ],
)
def test_what_cannot_be_used(refused, single, file, column, values, message):
    parquet.write_table(pyarrow.table({column: values}), file)
    assert message in refused("predict", single, "--file", file)


def test_a_damaged_file(refused, single, file):
    file.write_bytes(file.read_bytes()[:-20])
    assert "a.parquet: cannot be read as Parquet" in refused("predict", single, "--file", file)


def test_without_pyarrow_it_is_told_what_to_install(single, tmp_path):
    file = shutil.copy(single / "config.json", tmp_path / "a.parquet")
    told = tmp_path / "told.txt"
    command = ["predict", str(single), "--file", str(file)]
    output = ["predict", str(single), "dull", "--output", str(tmp_path / "b.parquet")]
    script = (
        "import sys, contextlib\n"
        "sys.modules['pyarrow'] = None\n"
        "from dsa_keras.commands.main import main\n"
        f"with open({str(told)!r}, 'w') as file, contextlib.redirect_stderr(file):\n"
        f"    assert main({command!r}) == 2\n"
        f"    assert main({output!r}) == 2\n"
    )
    assert loaded_after(script, ("tensorflow",)) == []
    assert told.read_text().count("Install it: pip install 'dsa-keras[parquet]'") == 2
