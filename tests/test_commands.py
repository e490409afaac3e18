"""The command line as a new user meets it: what it prints, refuses and leaves alone."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fresh_python import ROOT, loaded_after
from runs import shared_run, small_options

import dsa_keras
from dsa_keras.commands import streams
from dsa_keras.commands.main import COMMANDS
from dsa_keras.errors import DataError
from dsa_keras.manifest import Manifest
from dsa_keras.runs import Run

SENTENCES = ["the acting is superb", "dull", "", "the story is hardly convincing", "dull"]


@pytest.fixture(scope="module")
def single():
    return shared_run(encoder="cnn")


@pytest.fixture(scope="module")
def pair():
    return shared_run(pair=True)


@pytest.fixture
def copy(single, tmp_path):
    """A run folder that a test may damage."""
    return Path(shutil.copytree(single, tmp_path / "copy"))


@pytest.fixture
def sentences(tmp_path):
    file = tmp_path / "sentences.txt"
    file.write_text("\n".join(SENTENCES) + "\n")
    return file


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_has_an_example(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "example:\n  dsa-keras" in out


def test_help_loads_nothing_heavy():
    script = "from dsa_keras.commands.main import build_parser\nbuild_parser().format_help()"
    assert loaded_after(script, ("tensorflow", "keras", "matplotlib")) == []


def test_what_is_not_there_is_told_before_tensorflow_loads(single, tmp_path):
    there, gone = str(single), str(tmp_path / "gone")
    commands = [
        ["predict", gone, "a film"],
        ["predict", there, "--file", gone],
        ["encode", there, "--file", gone, "--output", f"{gone}.npy"],
        ["similar", there, "a film", "--file", gone],
    ]
    script = (
        "from dsa_keras.commands.main import main\n"
        f"for command in {commands!r}:\n"
        "    assert main(command) == 2, command"
    )
    assert loaded_after(script, ("tensorflow", "keras")) == []


def test_a_command_loads_keras_without_what_it_would_not_use():
    script = (
        "from importlib.util import find_spec\n"
        "from dsa_keras.command_line import load_tensorflow\n"
        "load_tensorflow()\n"
        "assert find_spec('sklearn')  # who wants it later can have it"
    )
    names = ("tensorflow", "keras", "sklearn", "matplotlib.pyplot")
    assert loaded_after(script, names) == ["tensorflow", "keras"]


def test_another_backend_is_refused_in_one_line(single):
    done = subprocess.run(
        [sys.executable, "-m", "dsa_keras", "predict", str(single), "a film"],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "it runs on jax" in done.stderr


def test_no_command_prints_help(run):
    code, out, _ = run()
    assert code == 2
    assert "COMMAND" in out


# Evaluate -----------------------------------------------------------------------------------------


def test_evaluate_prints_writes_and_keeps_figures(run, copy, tmp_path):
    code, out, error = run("evaluate", copy, "--json", tmp_path / "figures.json")
    assert code == 0, error
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["split"] == "test"
    assert figures["examples"] == 30
    assert f"accuracy {figures['accuracy']:.4f} on 30 examples" in out
    kept = json.loads((copy / "evaluation-test.json").read_text())
    assert kept.pop("weights")
    assert kept == figures
    assert Run(copy).evaluation("test")["accuracy"] == figures["accuracy"]
    code, out, _ = run("evaluate", copy, "--split", "dev", "--json", "-")
    best = Run(copy).best(Run(copy).config())["dev_accuracy"]
    assert json.loads(out)["accuracy"] == pytest.approx(best)


def test_evaluate_warns_of_classes_that_are_never_predicted(run, copy):
    with np.load(copy / "best.npz") as weights:
        nothing = {name: np.zeros_like(weights[name]) for name in weights.files}
    with Run(copy).manifest.replacing() as files:
        files.write("best.npz", lambda path: np.savez(path, **nothing))
    code, out, error = run("evaluate", copy, "--json", "-")
    assert code == 0, error
    assert error == "warning: never predicted, though there are examples of it: positive\n"
    figures = json.loads(out)
    assert figures["never_predicted"] == ["positive"]
    assert figures["macro_f1"] == pytest.approx(figures["per_class"][0]["f1"] / 2)


def test_evaluate_takes_any_split_of_the_data(run, refused, copy):
    code, out, error = run("evaluate", copy, "--split", "train")
    assert code == 0, error
    assert "train split\naccuracy" in out
    assert "on 240 examples" in out
    assert "the data has no all split. It has train, dev, test: choose with --split" in refused(
        "evaluate", copy, "--split", "all"
    )


def test_figures_are_shown_while_the_run_is_trained_and_then_not_kept(run, copy):
    with Run(copy).training():
        code, out, error = run("evaluate", copy)
    assert code == 2
    assert "on 30 examples" in out
    assert error.count("\n") == 1, error
    assert not (copy / "evaluation-test.json").exists()


# Predict ------------------------------------------------------------------------------------------


def test_predict_arguments(run, single):
    code, out, error = run("predict", single, *SENTENCES[:2])
    assert code == 0, error
    expected = dsa_keras.load(single).predict(SENTENCES[:2])
    assert [line.split("\t") for line in out.splitlines()] == [
        [one.label, f"{one.probability:.4f}", sentence]
        for one, sentence in zip(expected, SENTENCES[:2], strict=True)
    ]


def test_predict_file_as_json_lines_and_csv(run, refused, single, sentences, tmp_path):
    expected = dsa_keras.load(single).predict(SENTENCES)
    _, out, _ = run("predict", single, "--file", sentences, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == SENTENCES
    assert [row["probabilities"] for row in rows] == [
        pytest.approx(one.probabilities) for one in expected
    ]
    output = tmp_path / "out" / "labels.csv"
    arguments = ("predict", single, "--file", sentences, "--format", "csv", "--output", output)
    assert run(*arguments)[0] == 0
    rows = list(csv.DictReader(io.StringIO(output.read_text(), newline="")))
    assert [row["label"] for row in rows] == [one.label for one in expected]
    assert float(rows[0]["probability of positive"]) == pytest.approx(
        expected[0].probabilities["positive"]
    )
    before = output.read_bytes()
    assert "the file exists" in refused(*arguments)
    assert output.read_bytes() == before
    assert run(*arguments, "--force")[0] == 0


def test_predict_says_that_no_word_is_known_or_a_text_was_cut(run, single, tmp_path):
    texts = ["dull", "", "zzz qqq", "dull " * 10_001, *["zzz"] * 7]
    file = tmp_path / "odd.txt"
    file.write_text("\n".join(texts) + "\n")
    _, out, error = run("predict", single, "--file", file)
    assert len(out.splitlines()) == len(texts)
    notes = error.splitlines()
    assert notes[0] == "note: text 2 (): there is no word in it"
    assert notes[1] == "note: text 3 (zzz qqq): no word of it is known to the model"
    assert notes[2].endswith("…): it was cut, only the first 10,000 words were read")
    assert notes[5:] == ["note: and 5 more such texts"]
    expected = [(1, 1, False), (0, 0, False), (2, 0, False), (10_000, 10_000, True)]
    _, out, _ = run("predict", single, "--file", file, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["words"], row["known_words"], row["cut"]) for row in rows[:4]] == expected
    _, out, _ = run("predict", single, "--file", file, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    found = [(row["words"], row["known_words"], row["cut"]) for row in rows[:4]]
    assert found == [tuple(json.dumps(value) for value in row) for row in expected]


def standard_input(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_predict_standard_input(run, refused, single, monkeypatch):
    standard_input(monkeypatch, "\ufeffdull\r\nsuperbe é\n".encode())
    code, out, _ = run("predict", single)
    assert code == 0
    assert [line.split("\t")[2] for line in out.splitlines()] == ["dull", "superbe é"]
    standard_input(monkeypatch, b"fine\n\xff\xfe\n")
    assert "standard input, line 2: the line is not UTF-8" in refused("predict", single)
    standard_input(monkeypatch, b"")
    assert "standard input: there is no line to read" in refused("predict", single)


def test_predict_pairs(run, refused, pair, tmp_path):
    code, out, error = run("predict", pair, "a man sleeps", "a man is awake", "--format", "jsonl")
    assert code == 0, error
    row = json.loads(out)
    assert (row["premise"], row["hypothesis"]) == ("a man sleeps", "a man is awake")
    assert "3 sentences, but this model takes pairs" in refused("predict", pair, "a", "b", "c")
    file = tmp_path / "pairs.txt"
    file.write_text("a man sleeps\ta man is awake\nno tab here\n")
    output = tmp_path / "out.txt"
    error = refused("predict", pair, "--file", file, "--output", output)
    assert "pairs.txt, line 2: 1 sentence where this model takes two" in error
    assert not output.exists()  # half a file is no file
    file.write_text("a man sleeps\ta man is awake\n")
    code, out, _ = run("predict", pair, "--file", file)
    assert out.split("\t")[0] == row["label"]


# Encode and similar -------------------------------------------------------------------------------


def test_encode_npy_and_jsonl(run, refused, single, sentences, tmp_path):
    expected = dsa_keras.load(single).encode(SENTENCES)
    output = tmp_path / "vectors.npy"
    code, out, error = run("encode", single, "--file", sentences, "--output", output)
    assert code == 0, error
    assert "5 vectors of 12 numbers" in out
    vectors = np.load(output, allow_pickle=False)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
    assert "the file exists" in refused("encode", single, "--file", sentences, "--output", output)
    lines = tmp_path / "vectors.jsonl"
    assert run("encode", single, "--file", sentences, "--output", lines, "--normalize")[0] == 0
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["text"] for row in rows] == SENTENCES
    norms = np.linalg.norm([row["vector"] for row in rows], axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0, 1, 1], atol=1e-6)
    assert "must end in .npy, .jsonl or .parquet" in refused(
        "encode", single, "--file", sentences, "--output", tmp_path / "vectors.pkl"
    )


def test_encode_arguments_and_standard_input(run, refused, single, tmp_path, monkeypatch):
    expected = dsa_keras.load(single).encode(SENTENCES[:2])
    code, out, error = run("encode", single, *SENTENCES[:2])
    assert code == 0, error
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == SENTENCES[:2]
    np.testing.assert_allclose([row["vector"] for row in rows], expected, rtol=1e-5, atol=1e-6)
    standard_input(monkeypatch, "\n".join(SENTENCES[:2]).encode())
    assert run("encode", single)[1] == out
    standard_input(monkeypatch, "\n".join(SENTENCES[:2]).encode())
    assert run("encode", single, "--output", tmp_path / "a.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, rtol=1e-5, atol=1e-6)
    assert run("encode", single, SENTENCES[0], "--output", tmp_path / "b.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), expected[:1], rtol=1e-5, atol=1e-6)
    assert "Give one of them" in refused("encode", single, "dull", "--file", tmp_path / "a.txt")


def test_encode_many_lines(run, single, tmp_path):
    file, output = tmp_path / "many.txt", tmp_path / "many.npy"
    file.write_text("".join(f"{SENTENCES[n % 4]}\n" for n in range(20_000)))
    assert run("encode", single, "--file", file, "--output", output)[0] == 0
    vectors = np.load(output, mmap_mode="r")
    assert vectors.shape == (20_000, 12)
    np.testing.assert_allclose(
        vectors[-4:], dsa_keras.load(single).encode(SENTENCES[:4]), rtol=1e-5, atol=1e-6
    )


def test_chunks_take_no_more_than_they_give():
    source = iter(range(10**9))
    chunks = streams.in_chunks(source, 1000)
    assert next(chunks) == list(range(1000))
    assert next(source) == 1000


def test_similar_lists_the_nearest_once(run, refused, single, sentences):
    code, out, error = run("similar", single, "dull", "--file", sentences, "--top", 2)
    assert code == 0, error
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["1.0000", "2", "dull"]
    assert len(rows) == 2
    model = dsa_keras.load(single)
    others = [SENTENCES[0], SENTENCES[3]]
    cosines = model.similarity(model.encode("dull"), model.encode(others))[0]
    assert rows[1][2] == others[cosines.argmax()]
    assert float(rows[1][0]) == pytest.approx(cosines.max(), abs=1e-4)
    assert "the query has no words" in refused("similar", single, " ", "--file", sentences)


# What goes wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["evaluate", "predict", "compare"])
def test_a_run_that_is_not_there(refused, tmp_path, command):
    assert "no such run folder" in refused(command, tmp_path / "nothing")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "config.json: the file is missing" in refused(command, empty)


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def drop_a_word(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("config.json", truncate, "config.json: "),
        ("config.json", lambda path: path.write_text("{}"), "config.json: "),
        ("best.npz", truncate, "best.npz: "),
        ("best.npz", Path.unlink, "best.npz: "),
        ("vocabulary.txt", drop_a_word, "vocabulary.txt: "),
        ("vocabulary.txt", Path.unlink, "vocabulary.txt: "),
        ("manifest.json", Path.unlink, "manifest.json: the file is missing"),
    ],
)
def test_a_damaged_run_is_named(refused, copy, file, damage, message):
    damage(copy / file)
    assert message in refused("predict", copy, "a film")


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("config.json", truncate, "config.json: cannot be read"),
        ("config.json", lambda path: path.write_text("{}"), "config.json: is of format None"),
        ("best.npz", truncate, "best.npz: the file is damaged"),
        ("vocabulary.txt", drop_a_word, "Restore the vocabulary that belongs to this run"),
    ],
)
def test_damage_that_a_manifest_vouches_for_is_named(refused, copy, file, damage, message):
    damage(copy / file)
    Manifest.of(copy, ignore=("logs/*",)).write({})
    assert message in refused("predict", copy, "a film")


def test_weights_of_another_model_are_refused(refused, copy, pair):
    shutil.copy(pair / "best.npz", copy / "best.npz")
    Manifest.of(copy, ignore=("logs/*",)).write({})
    assert "best.npz: its weights are not those of the model" in refused("predict", copy, "a film")


def test_a_name_in_a_run_folder_imports_nothing(refused, copy, tmp_path, monkeypatch):
    (tmp_path / "of_a_stranger.py").write_text("raise SystemExit('it ran')")
    monkeypatch.chdir(tmp_path)
    values = json.loads((copy / "config.json").read_text())
    for place in ("encoder", "objective"):
        changed = json.loads(json.dumps(values))
        changed["model"][place]["name"] = "of_a_stranger:Thing"
        (copy / "config.json").write_text(json.dumps(changed))
        Manifest.of(copy, ignore=("logs/*",)).write({})
        assert f"unknown {place} 'of_a_stranger:Thing'" in refused("predict", copy, "a film")
    (copy / "config.json").write_text(json.dumps({**values, "task": "of_a_stranger:Thing"}))
    Manifest.of(copy, ignore=("logs/*",)).write({})
    assert "its task is no name: 'of_a_stranger:Thing'" in refused("evaluate", copy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "sst2", "--data-dir", "nowhere"), "nowhere"),
        (("train", "snli"), "snli"),
        (("train", "sst3"), "unknown data set 'sst3'. Did you mean"),
        (("trian", "sst2"), "invalid choice: 'trian'"),
        (("train",), "TASK"),
        (("encode", "RUN", "--file", "nowhere.txt", "--output", "v.npy"), "nowhere.txt"),
        (("predict", "RUN", "--file", "EMPTY"), "the file is empty"),
        (("predict", "RUN", "a film", "--file", "EMPTY"), "Give one of them"),
        (("similar", "RUN", "a film", "--file", "."), "is a directory"),
        (("similar", "RUN", "a film", "--file", "EMPTY", "--top", "0"), "--top must be at least 1"),
        (("predict", "RUN", "a film", "--import", "nowhere_at_all"), "No module named"),
        (("predict", "RUN", "a film", "--import", ".relative"), ".relative: cannot be imported"),
        (("train", "demo-sentiment", "--encoder", "nowhere_at_all:X"), "No module named"),
        (("train", "demo-sentiment", "--encoder", "json:Nothing"), "there is no 'Nothing' in json"),
        (("train", "demo-sentiment", "--encoder", "json:loads"), "not registered as an encoder"),
    ],
)
def test_mistakes_get_one_line(refused, single, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty.txt"
    empty.touch()
    names = {"RUN": single, "EMPTY": empty}
    assert message in refused(*(names.get(argument, argument) for argument in arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_lines_must_be_text(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_bytes(b"one\r\n\xe9t\xe9\n")
    lines = streams.read_lines(str(file))
    assert next(lines) == "one"
    with pytest.raises(DataError, match=r"lines\.txt, line 2: the line is not UTF-8"):
        next(lines)


# Demo ---------------------------------------------------------------------------------------------


def test_demo_trains_tests_and_explains(run, tmp_path):
    path = tmp_path / "demo"
    code, out, error = run("demo", "--run-dir", path, "--size", 150, "--epochs", 1)
    assert code == 0, error
    assert "test accuracy 0." in out
    assert "which words it attends to (the weight in brackets)" in out
    assert "tensorboard --logdir" in out
    assert "train file --file your.csv" in out
    assert "\033" not in out
    assert (path / "evaluation-test.json").exists()


@pytest.fixture
def trained_runs(pair, tmp_path, run):
    """Runs that are not the demo's: of another task, and of its own task."""
    own = tmp_path / "own"
    tiny = ("--size", 150, "--epochs", 1, "--encoder", "cnn", *small_options("cnn"))
    code, _, error = run("train", "demo-sentiment", "--run-dir", own, *tiny)
    assert code == 0, error
    return [Path(shutil.copytree(pair, tmp_path / "pair")), own]


def test_demo_replaces_its_own_runs_only(run, refused, trained_runs, tmp_path):
    demo = ("--size", 150, "--epochs", 1)
    for path in trained_runs:
        before = {one.name: one.stat().st_mtime_ns for one in path.iterdir()}
        assert "that demo did not make, so it is not removed" in refused(
            "demo", "--run-dir", path, *demo
        )
        assert {one.name: one.stat().st_mtime_ns for one in path.iterdir()} == before
    path = tmp_path / "demo"
    for _ in range(2):
        code, _, error = run("demo", "--run-dir", path, *demo)
        assert code == 0, error
    assert Run(path).config().made_by == "demo"
