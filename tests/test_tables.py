"""Commands that read tables: any delimiter, mark or line end; the other columns are kept."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from runs import shared_run

import dsa_keras
from dsa_keras.data.table_files import delimiter_of

TEXTS = [
    "the acting is superb",
    "dull; and long, too",
    'a "good" film',
    "one\ttab\r\ntwo lines",
    "",
]
NOTES = ["a", "b, c", "d;e", "", "é"]


@pytest.fixture(scope="module")
def single():
    return shared_run(encoder="cnn")


@pytest.fixture(scope="module")
def pair():
    return shared_run(pair=True)


def as_csv(delimiter=",", ending="\n", header=("id", "text", "note")):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=ending)
    writer.writerow(header)
    writer.writerows(
        [n, text, note] for n, (text, note) in enumerate(zip(TEXTS, NOTES, strict=True))
    )
    return file.getvalue()


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


# Delimiter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter):
    lines = as_csv(delimiter).splitlines(keepends=True)
    assert delimiter_of(lines) == delimiter
    assert delimiter_of(lines[:1], ["text"]) == delimiter


@pytest.mark.parametrize(
    ("lines", "columns", "delimiter"),
    [
        (["text\n", "a; b; c\n"], ["text"], ","),
        (["text;label, as given\n", "x, y;1\n"], ["text"], ";"),
        (["text;label, as given\n", "x;1\n"], [], ";"),
        (['"text, cleaned";label\n', "a, b;1\n"], [], ";"),
        (['"a', "b\n"], [], ","),
    ],
)
def test_what_decides_the_delimiter(lines, columns, delimiter):
    assert delimiter_of(lines, columns) == delimiter


# Predict ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
def test_a_table_keeps_its_columns_beside_the_answer(run, single, tmp_path, delimiter):
    file, output = tmp_path / "a.csv", tmp_path / "out.csv"
    file.write_bytes(b"\xef\xbb\xbf" + as_csv(delimiter, "\r\n").encode())
    arguments = ("predict", single, "--file", file, "--format", "csv", "--output", output)
    code, _, error = run(*arguments)
    assert code == 0, error
    rows = read_csv(output.read_bytes().decode())
    expected = dsa_keras.load(single).predict(TEXTS)
    assert list(rows[0])[:5] == ["id", "text", "note", "label", "probability"]
    assert [row["text"] for row in rows] == TEXTS
    assert [row["note"] for row in rows] == NOTES
    assert [row["label"] for row in rows] == [one.label for one in expected]


@pytest.mark.parametrize("packed", ["a.csv.gz", "a.zip", "a.CSV"])
def test_packed_tables(run, single, tmp_path, packed):
    content, file = as_csv(";").encode(), tmp_path / packed
    if packed.endswith(".zip"):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("folder/a.csv", content)
    else:
        file.write_bytes(gzip.compress(content) if packed.endswith(".gz") else content)
    code, out, error = run("predict", single, "--file", file, "--format", "jsonl")
    assert code == 0, error
    assert [json.loads(line)["note"] for line in out.splitlines()] == NOTES


def test_a_column_of_the_name_of_the_answer_stays(run, refused, single, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "dull", "label": 7, "tags": ["x"]}\n{"text": "superb"}\n')
    code, out, error = run("predict", single, "--file", file, "--format", "jsonl")
    assert code == 0, error
    first, second = map(json.loads, out.splitlines())
    assert (first["label"], first["tags"]) == (7, ["x"])
    label = dsa_keras.load(single).predict("dull").label
    assert first["predicted_label"] == label
    assert "label" not in second
    assert second["predicted_label"] in ("negative", "positive")
    _, out, _ = run("predict", single, "--file", file, "--format", "csv")
    rows = read_csv(out)
    assert [row["label"] for row in rows] == ["7", ""]
    assert rows[0]["tags"] == '["x"]'
    assert rows[0]["predicted_label"] == label
    file.write_text('{"text": "dull"}\n{"text": "superb", "label": 7}\n')
    error = refused("predict", single, "--file", file, "--format", "jsonl")
    assert "a.jsonl, line 2: the key 'label', which the first row has not" in error
    error = refused("predict", single, "--file", file, "--format", "csv")
    assert "line 2: the key 'label' is not one of the first row" in error


def test_a_table_as_text_has_a_line_a_row(run, single, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(as_csv().encode())
    code, out, error = run("predict", single, "--file", file)
    assert code == 0, error
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[2] for line in lines] == [*TEXTS[:3], "one tab two lines", ""]


def test_plain_text_stays_one_sentence_a_line(run, single, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("text,label\ndull,1\n")
    _, out, _ = run("predict", single, "--file", file)
    assert [line.split("\t")[2] for line in out.splitlines()] == ["text,label", "dull,1"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(file, "a.txt")
    assert run("predict", single, "--file", tmp_path / "a.zip")[1] == out


def test_pairs_of_a_table(run, refused, pair, tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("one\ttwo\tid\na man sleeps\ta man is awake\t7\n")
    error = refused("predict", pair, "--file", file)
    assert "a.tsv, line 1: no column 'premise'. Known: one, two, id." in error
    assert error.endswith("Name the columns by --text-column and --pair-column\n")
    columns = ("--text-column", "one", "--pair-column", "two")
    code, out, error = run("predict", pair, "--file", file, *columns, "--format", "jsonl")
    assert code == 0, error
    row = json.loads(out)
    assert row["id"] == "7"
    expected = dsa_keras.load(pair).predict(("a man sleeps", "a man is awake"))
    assert row["label"] == expected.label


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "txt,n\nx,1\n", (), "line 1: no column 'text'. Did you mean 'txt'?"),
        ("a.csv", "a,n\nx,1\n", ("--text-column", "b"), "Name the columns by --text-column"),
        ("a.csv", "text,n\nx,1\ny\n", (), "a.csv, line 3: 1 columns, not 2. Mend the row"),
        ("a.csv", 'text,n\n"x,1\n', (), "a.csv, line 2: unbalanced quotes"),
        ("a.csv", "text,n,n\nx,1,2\n", (), "more than one column 'n'"),
        ("a.csv", "text,n\n", (), "a.csv: there is no row to read"),
        ("a.jsonl", '{"text": 5}', (), "line 1: a sentence that is not a string: '5'"),
        ("a.txt", "x", ("--text-column", "x"), "--text-column names a column of a table"),
        ("a.csv", "text\nx\n", ("--pair-column", "x"), "--pair-column is for models of pairs"),
    ],
)
def test_tables_that_cannot_be_used(refused, single, tmp_path, name, content, options, message):
    (tmp_path / name).write_text(content)
    assert message in refused("predict", single, "--file", tmp_path / name, *options)


def test_the_columns_of_the_training_are_the_default(run, tmp_path):
    file = tmp_path / "a.csv"
    rows = "".join(f"{n};a film {n} {n % 2};{'no' if n % 2 else 'yes'}\n" for n in range(40))
    file.write_text("n;review;class\n" + rows)
    trained = (
        "train",
        "file",
        "--file",
        file,
        "--text-column",
        "review",
        "--label-column",
        "class",
    )
    small = ("--encoder", "cnn", "--epochs", 1, "--embedding-dim", 4, "--cnn-filters", 2)
    code, _, error = run(*trained, *small, "--run-dir", tmp_path / "run")
    assert code == 0, error
    code, out, error = run("predict", tmp_path / "run", "--file", file, "--format", "csv")
    assert code == 0, error
    rows = read_csv(out)
    assert len(rows) == 40
    assert list(rows[0])[:4] == ["n", "review", "class", "label"]


# Encode and similar -------------------------------------------------------------------------------


def test_encode_and_similar_read_tables(run, refused, single, tmp_path):
    file, output = tmp_path / "a.csv", tmp_path / "out.npy"
    file.write_text(as_csv("|", header=("text_id", "review", "vector")), newline="")
    assert "Did you mean 'text_id'?" in refused(
        "encode", single, "--file", file, "--output", output
    )
    column = ("--file", file, "--text-column", "review")
    code, _, error = run("encode", single, *column, "--output", output)
    assert code == 0, error
    expected = dsa_keras.load(single).encode(TEXTS)
    np.testing.assert_allclose(np.load(output), expected, rtol=1e-5, atol=1e-6)
    lines = tmp_path / "out.jsonl"
    assert run("encode", single, *column, "--output", lines)[0] == 0
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["vector"] for row in rows] == NOTES
    vectors = [row["predicted_vector"] for row in rows]
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
    code, out, error = run("similar", single, TEXTS[3], *column, "--top", 1)
    assert code == 0, error
    assert out == "1.0000\t5\tone tab two lines\n"


# Evaluate -----------------------------------------------------------------------------------------


def labelled(single, wrong=0):
    """Rows that the model is right about, but for the first few."""
    texts = [*TEXTS[:3], "the story is hardly convincing"]
    labels = [one.label for one in dsa_keras.load(single).predict(texts)]
    other = {"negative": "positive", "positive": "negative"}
    labels = [other[one] if n < wrong else one for n, one in enumerate(labels)]
    return list(zip(texts, labels, strict=True))


def write_rows(file, rows, header):
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, delimiter=";").writerows([header, *rows])


def test_evaluate_scores_any_labelled_file(run, refused, single, tmp_path):
    kept = {path.name: path.read_bytes() for path in single.glob("*.json")}
    file = tmp_path / "a.csv"
    write_rows(file, labelled(single, wrong=1), ("text", "label"))
    code, out, error = run("evaluate", single, "--file", file, "--json", tmp_path / "out.json")
    assert code == 0, error
    assert f"{file}\naccuracy 0.7500 on 4 examples" in out
    figures = json.loads((tmp_path / "out.json").read_text())
    assert (figures["file"], figures["accuracy"]) == (str(file), 0.75)
    assert figures["class_names"] == ["negative", "positive"]
    assert {path.name: path.read_bytes() for path in single.glob("*.json")} == kept
    write_rows(file, [*labelled(single), ("dull", "neutral")], ("review", "class"))
    columns = ("--text-column", "review", "--label-column", "class")
    error = refused("evaluate", single, "--file", file, *columns)
    assert "a.csv, line 6: label 'neutral' is in the file, never in the training split" in error
    skip = ("--on-bad-rows", "skip")
    code, out, error = run("evaluate", single, "--file", file, *columns, *skip)
    assert code == 0, error
    assert "accuracy 1.0000 on 4 examples" in out
    assert f"{file}: 1 bad rows left out" in error
    assert "Did you mean 'class'?" in refused(
        "evaluate", single, "--file", file, *columns[:3], "klass"
    )


def test_evaluate_pairs_of_a_file(run, refused, pair, tmp_path):
    label = dsa_keras.load(pair).predict(("a man sleeps", "a man is awake")).label
    file = tmp_path / "a.tsv"
    file.write_text(f"premise\thypothesis\tlabel\na man sleeps\ta man is awake\t{label}\n")
    code, out, error = run("evaluate", pair, "--file", file)
    assert code == 0, error
    assert "accuracy 1.0000 on 1 examples" in out


def test_options_of_evaluate_that_do_not_go_together(refused, single, tmp_path):
    error = refused("evaluate", single, "--file", tmp_path / "a.csv", "--split", "dev")
    assert "both --file and --split are given" in error
    error = refused("evaluate", single, "--label-column", "x")
    assert "--label-column says how a table is read. Name one by --file" in error


# Encoding -----------------------------------------------------------------------------------------

ACCENTS = ["caf\u00e9 cr\u00e8me", "na\u00efve"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "UTF-8-SIG"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl", "a.csv.gz"])
def test_another_encoding(run, single, tmp_path, encoding, name):
    rows = {
        "csv": ["text", *ACCENTS],
        "txt": ACCENTS,
        "jsonl": [json.dumps({"text": text}, ensure_ascii=False) for text in ACCENTS],
    }[name.split(".")[1]]
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    content = (mark + "\r\n".join(rows)).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    file = ("--file", tmp_path / name, "--encoding", encoding)
    code, out, error = run("predict", single, *file, "--format", "jsonl")
    assert code == 0, error
    assert [json.loads(line)["text"] for line in out.splitlines()] == ACCENTS


def test_standard_input_of_another_encoding(run, refused, single, monkeypatch):
    def standard_input(content):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    standard_input("\n".join(ACCENTS).encode("cp1252"))
    code, out, error = run("predict", single, "--encoding", "cp1252")
    assert code == 0, error
    assert [line.split("\t")[2] for line in out.splitlines()] == ACCENTS
    standard_input("\n".join(ACCENTS).encode("cp1252"))
    assert "standard input, line 1: the line is not UTF-8. Save it" in refused("predict", single)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_error_of_another_encoding_names_the_option(refused, single, tmp_path, name, encoding):
    first = "" if name in ("a.txt", "a.jsonl") else "text\n"
    text = json.dumps({"text": ACCENTS[0]}, ensure_ascii=False) if "json" in name else ACCENTS[0]
    (tmp_path / name).write_bytes(f"{first}{text}\n".encode(encoding))
    error = refused("predict", single, "--file", tmp_path / name)
    assert f"{name}, line " in error
    assert "not UTF-8" in error
    assert "by --encoding" in error


def test_encodings_that_cannot_be(refused, single, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"text\n\x81\n")
    arguments = ("predict", single, "--file", file, "--encoding")
    assert "--encoding: unknown encoding 'latin-99'" in refused(*arguments, "latin-99")
    assert "--encoding: unknown encoding 'base64'" in refused(*arguments, "base64")
    assert "a.csv: the text is not cp1252" in refused(*arguments, "cp1252")
    assert "Name another by --encoding" in refused(*arguments, "ascii")


def test_training_and_scoring_in_another_encoding(run, refused, tmp_path):
    file = tmp_path / "a.csv"
    labels = ["\u00e0", "b"]
    rows = "".join(f"un caf\u00e9 {n};{labels[n % 2]}\n" for n in range(40))
    file.write_bytes(f"text;label\n{rows}".encode("latin-1"))
    small = ("--encoder", "cnn", "--epochs", 1, "--embedding-dim", 4, "--cnn-filters", 2)
    trained = ("train", "file", "--file", file, *small, "--run-dir", tmp_path / "run")
    assert "bytes that are not UTF-8: name its encoding by --encoding" in refused(*trained)
    code, _, error = run(*trained, "--encoding", "latin-1")
    assert code == 0, error
    vocabulary = (tmp_path / "run" / "vocabulary.txt").read_text(encoding="utf-8")
    assert "caf\u00e9" in vocabulary.splitlines()
    scored = ("evaluate", tmp_path / "run", "--file", file, "--encoding", "latin-1")
    code, out, error = run(*scored)
    assert code == 0, error
    assert "on 40 examples" in out
    assert run("evaluate", tmp_path / "run")[0] == 0
