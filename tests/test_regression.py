"""Numbers in place of classes, as a user trains them: `train file --target number`."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from runs import small_options
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dsa_keras
from dsa_keras.runs import Run

WORDS = {"awful": 1.0, "dull": 2.0, "fair": 3.0, "good": 4.0, "superb": 5.0}
TINY = ("--encoder", "cnn", "--batch-size", 16, "--averaging", 0, *small_options("cnn"))


def sentences():
    """Rows of texts and stars: a word in each text decides."""
    return [
        {"text": f"a {word} film number {n}", "label": value + n % 3 / 10}
        for n in range(60)
        for word, value in WORDS.items()
    ]


def pairs():
    """Rows of two texts and how far they are apart."""
    return [
        {"text": f"a {one} film number {n}", "other": f"a {two} film", "label": abs(a - b)}
        for n in range(12)
        for one, a in WORDS.items()
        for two, b in WORDS.items()
    ]


def written(path, rows):
    """The rows as a csv file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs on sentences and on pairs."""
    from dsa_keras.commands.main import main

    folder = tmp_path_factory.mktemp("numbers")
    for name, rows, options in (
        ("sentences", sentences(), ()),
        ("pairs", pairs(), ("--pair-column", "other")),
    ):
        file = written(folder / f"{name}.csv", rows)
        start = ("train", "file", "--target", "number", "--file", file, *options, "--epochs", 3)
        words = (*start, "--run-dir", folder / name, *TINY)
        assert main([str(word) for word in words]) == 0
    return folder


@pytest.mark.parametrize("name", ["sentences", "pairs"])
def test_it_is_evaluated(run, trained, name):
    code, out, error = run("evaluate", trained / name, "--json", trained / f"{name}.json")
    assert code == 0, error
    figures = json.loads((trained / f"{name}.json").read_text())
    assert {"examples", "spearman", "pearson", "mae"} <= figures.keys()
    assert figures["examples"] == 30
    assert f"Spearman {figures['spearman']:.4f} on 30 examples" in out
    assert f"mean absolute error {figures['mae']:.4f}" in out
    # It has learnt something: guessing has a correlation of 0.
    dev = Run(trained / name).best(Run(trained / name).config())
    assert dev["dev_spearman"] > 0.1


def test_answers_are_numbers_in_every_format(run, trained):
    texts = ["a superb film", "an awful film"]
    expected = [one.number for one in dsa_keras.load(trained / "sentences").predict(texts)]
    start = ("predict", trained / "sentences", *texts, "--format")
    _, out, _ = run(*start, "text")
    assert out.splitlines() == [
        f"{number:.4f}\t{text}" for number, text in zip(expected, texts, strict=True)
    ]
    _, out, _ = run(*start, "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [list(row) for row in rows] == [["text", "number", "words", "known_words", "cut"]] * 2
    assert [row["number"] for row in rows] == pytest.approx(expected, abs=1e-5)
    _, out, _ = run(*start, "csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert [row["text"] for row in rows] == texts
    assert [float(row["number"]) for row in rows] == pytest.approx(expected, abs=1e-5)
    assert expected[0] > expected[1]


def test_answers_of_pairs(run, trained):
    _, out, error = run(
        *("predict", trained / "pairs", "a good film", "a dull film", "--format", "csv")
    )
    assert out.splitlines()[0] == "premise,hypothesis,number,words,known_words,cut", error
    assert np.isfinite(float(out.splitlines()[1].split(",")[2]))


def test_it_is_resumed_and_compared_with_classes(run, trained, tmp_path):
    path = trained / "sentences"
    figure = Run(path).best(Run(path).config())["dev_spearman"]
    code, out, error = run("train", "file", "--run-dir", path, "--resume", "--epochs", 4)
    assert code == 0, error
    assert "epoch 4/4" in out
    assert "dev spearman" in out
    records = Run(path).metrics()
    best = Run(path).best(Run(path).config())
    assert best["dev_spearman"] == max(one["dev_spearman"] for one in records) >= figure
    code, out, error = run("compare", path, trained / "pairs")
    assert code == 0, error
    header, first, _ = out.splitlines()
    assert "dev spearman" in header
    assert "test spearman" in header
    assert f"{best['dev_spearman']:.4f}" in first
    # Beside a run of classes each figure has its name.
    classes = written(
        tmp_path / "classes.csv",
        [{"text": f"a {word} film number {n}", "label": word} for n in range(10) for word in WORDS],
    )
    start = ("train", "file", "--file", classes, "--run-dir", tmp_path / "classes")
    assert run(*start, "--epochs", 1, *TINY)[0] == 0
    code, out, error = run("compare", path, tmp_path / "classes", "--markdown")
    assert code == 0, error
    header, _, first, second = out.splitlines()
    assert "| dev | test |" in header
    assert f"| spearman {best['dev_spearman']:.4f} |" in first
    assert "| accuracy 0." in second


def test_tensorboard_has_a_picture_of_the_numbers(trained):
    log = EventAccumulator(str(trained / "pairs" / "logs" / "dev"), size_guidance={"tensors": 0})
    log.Reload()
    assert log.SummaryMetadata("numbers").plugin_data.plugin_name == "images"
    assert [event.step for event in log.Tensors("numbers")] == [1, 2, 3]


def test_cells_that_are_no_numbers_are_named(refused, tmp_path):
    rows = sentences()
    rows[7]["label"] = "five stars"
    file = written(tmp_path / "stars.csv", rows)
    start = ("train", "file", "--target", "number", "--run-dir", tmp_path / "run", "--file")
    assert "stars.csv, line 9: no usable number: 'five stars'" in refused(*start, file)
    for bad in ("nan", "inf", "1e99", ""):
        rows[7]["label"] = bad
        assert "line 9: no usable number" in refused(*start, written(file, rows))


def test_constant_numbers_are_refused(refused, tmp_path):
    file = written(tmp_path / "stars.csv", [{**row, "label": 4} for row in sentences()])
    start = ("train", "file", "--target", "number", "--file", file, "--run-dir", tmp_path / "run")
    error = refused(*start)
    assert "stars.csv: all numbers are 4 in the column 'label' of the training split" in error
    assert not (tmp_path / "run").exists()
