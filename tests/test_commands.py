"""The command line as a new user meets it: what it prints, refuses and leaves alone."""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runs import SMALL_OPTIONS, shared_run

import dsa_keras
from dsa_keras.commands import streams, train
from dsa_keras.commands.cli import (
    Parser,
    add_hyper_parameters,
    given_hyper_parameters,
    hyper_parameters,
)
from dsa_keras.commands.demo import _marked
from dsa_keras.commands.main import COMMANDS, build_parser, main
from dsa_keras.commands.train_settings import configs
from dsa_keras.config import preset
from dsa_keras.data import DATASETS
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.training.run import Run

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


@pytest.fixture
def run(capsys):
    """Runs the command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def refused(run):
    """Runs a command that must fail with one line and exit code 2; gives that line."""

    def call(*arguments):
        code, _, error = run(*arguments)
        assert code == 2, error
        assert error.count("\n") == 1, error
        return error

    return call


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_has_an_example(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "example:\n  python -m dsa_keras" in out


def test_help_loads_nothing_heavy():
    script = (
        "import sys\n"
        "from dsa_keras.commands.main import build_parser\n"
        "build_parser().format_help()\n"
        "print([name for name in ('tensorflow', 'keras', 'numpy', 'matplotlib') "
        "if name in sys.modules])"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_command_prints_help(run):
    code, out, _ = run()
    assert code == 2
    assert "COMMAND" in out


def test_tasks_are_those_of_the_data():
    assert set(train.TASKS) == set(DATASETS)


# Hyper-parameters ---------------------------------------------------------------------------------


def parsed(*arguments):
    return build_parser().parse_args([str(argument) for argument in arguments])


def test_the_paper_is_the_default():
    args = parsed("train", "sst2", "--vectors", "glove.zip")
    recipe = preset("sst2")
    assert configs(args) == (recipe.model, recipe.training)


def test_options_and_config_files_change_it(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"batch_size": 7, "units": 20, "encoder": "dsa-multiple"}')
    args = parsed("train", "snli", "--vectors", "x", "--config", file, "--batch-size", 9)
    model, training = configs(args)
    assert (model.encoder, model.units, model.num_attentions) == ("dsa-multiple", 20, 8)
    assert (training.batch_size, training.optimizer) == (9, "adam")
    # --encoder wins over the file.
    args = parsed("train", "snli", "--config", file, "--encoder", "bilstm")
    assert configs(args)[0].encoder == "bilstm"


def test_the_config_of_a_run_is_a_config_file(single):
    model, training = configs(parsed("train", "sst2", "--config", single / "config.json"))
    of_run = Run(single).config()
    assert training == of_run.training
    # What the data decides is left to the data.
    assert model.replace(vocabulary_size=of_run.model.vocabulary_size) == of_run.model


def test_lists_and_switches():
    args = parsed("train", "sst2", "--kernel-sizes", 3, 5, 7, "--no-train-embeddings")
    model, _ = configs(args)
    assert model.kernel_sizes == (3, 5, 7)
    assert model.train_embeddings is False


def test_without_vectors_words_are_trained():
    model, training = configs(parsed("train", "sst2"))
    assert model.train_embeddings
    assert training.oov_range == 0.5
    assert configs(parsed("train", "sst2", "--oov-range", 0.1))[1].oov_range == 0.1
    assert not configs(parsed("train", "demo-sentiment"))[0].train_embeddings


def test_own_files_are_trained_like_the_papers_tasks():
    model, training = configs(parsed("train", "file", "--vectors", "x"))
    assert (training.optimizer, training.tokenizer) == ("adadelta", "ptb")
    assert model.num_hidden_layers == 1
    model, training = configs(parsed("train", "file", "--vectors", "x", "--pair-column", "b"))
    assert (training.optimizer, training.tokenizer) == ("adam", "ptb")
    assert model.num_hidden_layers == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learning-rat", "1"], "unknown option --learning-rat. Did you mean '--learning-rate'?"),
        (["--batch-size", "0"], "batch_size must be at least 1, got 0"),
        (["--optimizer", "sgd"], "invalid choice: 'sgd'"),
        (["--encoder", "lstm"], "invalid choice: 'lstm'"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--resume", "--force"], "Give one"),
        (["--file", "x.csv"], "--file is an option of the task file, not of demo-sentiment"),
        (["--sentences-only"], "--sentences-only is an option of the task sst2 and sst5"),
        (["--size", "3"], "size"),
        (["--vectors", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--config", "nowhere.json"], "nowhere.json: no such file"),
    ],
)
def test_wrong_options_are_refused(refused, tmp_path, arguments, message):
    run_dir = tmp_path / "run"
    assert message in refused("train", "demo-sentiment", "--run-dir", run_dir, *arguments)
    assert not run_dir.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"batchsize": 3}', "unknown hyper-parameter 'batchsize'. Did you mean 'batch_size'?"),
        ('{"batch_size": "many"}', "batch_size must be a whole number"),
        ("batch_size: 3", "cannot be read as JSON"),
        ("[3]", "not a JSON object"),
    ],
)
def test_wrong_config_files_are_refused(refused, tmp_path, text, message):
    file = tmp_path / "config.json"
    file.write_text(text)
    arguments = ("train", "demo-sentiment", "--run-dir", tmp_path / "run", "--config", file)
    assert message in refused(*arguments)


def test_hyper_parameters_serve_other_command_lines():
    parser = Parser()
    add_hyper_parameters(parser)
    args = parser.parse_args(["--units", "3"])
    recipe = preset("sst2")
    assert given_hyper_parameters(args) == {"units": 3}
    assert hyper_parameters(args, recipe.model, recipe.training) == (
        recipe.model.replace(units=3),
        recipe.training,
    )


# Train --------------------------------------------------------------------------------------------


def test_seeds_resume_and_compare(run, refused, tmp_path):
    base = tmp_path / "run"
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", base)
    tiny = ("--encoder", "cnn", "--epochs", 1, "--batch-size", 64, *SMALL_OPTIONS)
    code, out, error = run(*start, "--seeds", 2, *tiny)
    assert code == 0, error
    seeds = [Path(f"{base}-seed{number}") for number in range(2)]
    assert [Run(seed).config().training.seed for seed in seeds] == [0, 1]
    assert f"python -m dsa_keras evaluate {seeds[0]} --split test" in out
    assert f"tensorboard --logdir {seeds[1]}/logs" in out
    accuracies = [Run(seed).metrics()[0]["dev_accuracy"] for seed in seeds]
    deviation = abs(accuracies[0] - accuracies[1]) / 2**0.5
    summary = f"{np.mean(accuracies):.4f} ± {deviation:.4f}"
    assert f"2 seeds: dev accuracy {summary}" in out

    # What is there is not touched without --force.
    assert "not empty" in refused(*start, "--seeds", 2, *tiny)
    # A third seed has the settings of its siblings; finished ones are kept.
    kept = (seeds[0] / "last.npz").stat().st_mtime_ns
    code, out, error = run(*start, "--seeds", 3, "--resume")
    assert code == 0, error
    assert out.count("nothing is left to do: 1 epochs are done") == 2
    third = Run(f"{base}-seed2").config()
    assert (third.model.encoder, third.training.batch_size, third.training.seed) == ("cnn", 64, 2)
    assert (seeds[0] / "last.npz").stat().st_mtime_ns == kept
    # Resuming cannot change settings.
    resume = ("train", "demo-sentiment", "--run-dir", seeds[0], "--resume")
    assert "batch_size is 64 in this run" in refused(*resume, "--batch-size", 32)
    assert "task is demo-sentiment in this run" in refused(
        "train", "demo-nli", "--run-dir", seeds[0], "--resume"
    )
    code, out, error = run(*resume, "--batch-size", 64, "--epochs", 2)
    assert (code, len(Run(seeds[0]).metrics())) == (0, 2), error

    # Evaluated or not, they are one row, apart from the one that was trained longer.
    for seed in seeds:
        assert run("evaluate", seed)[0] == 0
    code, out, error = run("compare", *seeds, f"{base}-seed2")
    assert code == 0, error
    header, longer, rest = (line.split("  ") for line in out.splitlines())
    assert [cell.strip() for cell in header if cell][:4] == ["run", "task", "encoder", "seeds"]
    assert longer[0] == "run-seed0"
    assert [cell.strip() for cell in rest if cell][:4] == ["run", "demo-sentiment", "cnn", "2"]
    assert "(1 of 2)" in " ".join(rest)
    code, out, _ = run("compare", *seeds, "--markdown")
    assert out.splitlines()[0].startswith("| run | task | encoder | seeds | parameters |")
    assert out.splitlines()[1] == "|---|---|---|---:|---:|---:|---:|---:|---:|"


def test_own_data(run, refused, tmp_path):
    file = tmp_path / "mine.csv"
    rows = [f"a {word} film number {n},{word}" for n in range(20) for word in ("good", "bad")]
    file.write_text("\n".join(["review,stars", *rows]) + "\n")
    columns = ("--text-column", "review", "--label-column", "stars")
    start = ("train", "file", "--file", file, "--run-dir", tmp_path / "run", *columns)
    tiny = ("--encoder", "cnn", "--epochs", 1, *SMALL_OPTIONS)
    code, out, error = run(*start, *tiny)
    assert code == 0, error
    assert "no --vectors given: words get random vectors that are trained" in out
    config = Run(tmp_path / "run").config()
    assert config.class_names == ("bad", "good")
    assert config.model.train_embeddings
    code, out, error = run("evaluate", tmp_path / "run", "--json", "-")
    assert json.loads(out)["examples"] == 4, error
    assert "no dev examples" in refused(
        *("train", "file", "--train-file", file, "--run-dir", tmp_path / "other"), *columns
    )
    assert "Known: review, stars" in refused(
        "train", "file", "--file", file, "--run-dir", tmp_path / "other"
    )


def test_force_removes_an_old_run_and_nothing_else(copy, tmp_path):
    Run(copy).create(force=True, needed_bytes=1)
    assert list(copy.iterdir()) == []
    assert list(tmp_path.iterdir()) == [copy]


def test_sigterm_ends_training_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), train._terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


# Evaluate -----------------------------------------------------------------------------------------


def test_evaluate_prints_writes_and_keeps_figures(run, copy, tmp_path):
    code, out, error = run("evaluate", copy, "--json", tmp_path / "figures.json")
    assert code == 0, error
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["split"] == "test"
    assert figures["examples"] == 30
    assert f"accuracy {figures['accuracy']:.4f} on 30 examples" in out
    assert json.loads((copy / "evaluation-test.json").read_text()) == figures
    code, out, _ = run("evaluate", copy, "--split", "dev", "--json", "-")
    best = max(record["dev_accuracy"] for record in Run(copy).metrics())
    assert json.loads(out)["accuracy"] == pytest.approx(best)


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
    file = tmp_path / "pairs.tsv"
    file.write_text("a man sleeps\ta man is awake\nno tab here\n")
    output = tmp_path / "out.txt"
    error = refused("predict", pair, "--file", file, "--output", output)
    assert "line 2: 1 sentences where this model needs two" in error
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
    assert "must end in .npy or .jsonl" in refused(
        "encode", single, "--file", sentences, "--output", tmp_path / "vectors.pkl"
    )


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
        ("config.json", truncate, "config.json: cannot be read"),
        ("config.json", lambda path: path.write_text("{}"), "config.json: is not of format 1"),
        ("best.npz", truncate, "best.npz: the file is damaged"),
        ("best.npz", Path.unlink, "best.npz: the file is missing"),
        ("vocabulary.txt", drop_a_word, "Restore the vocabulary that belongs to this run"),
        ("vocabulary.txt", Path.unlink, "vocabulary.txt"),
    ],
)
def test_a_damaged_run_is_named(refused, copy, file, damage, message):
    damage(copy / file)
    assert message in refused("predict", copy, "a film")


def test_weights_of_another_model_are_refused(refused, copy, pair):
    shutil.copy(pair / "best.npz", copy / "best.npz")
    assert "best.npz: its weights are not those of the model" in refused("predict", copy, "a film")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "sst2", "--data-dir", "nowhere"), "nowhere"),
        (("train", "snli"), "snli"),
        (("train", "sst3"), "invalid choice: 'sst3'"),
        (("trian", "sst2"), "invalid choice: 'trian'"),
        (("train",), "TASK"),
        (("encode", "RUN", "--file", "nowhere.txt", "--output", "v.npy"), "nowhere.txt"),
        (("predict", "RUN", "--file", "EMPTY"), "the file is empty"),
        (("predict", "RUN", "a film", "--file", "EMPTY"), "Give one of them"),
        (("similar", "RUN", "a film", "--file", "."), "is a directory"),
        (("similar", "RUN", "a film", "--file", "EMPTY", "--top", "0"), "--top must be at least 1"),
        (("evaluate", "RUN", "--split", "all"), "invalid choice: 'all'"),
    ],
)
def test_mistakes_get_one_line(refused, single, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty.txt"
    empty.touch()
    names = {"RUN": single, "EMPTY": empty}
    assert message in refused(*(names.get(argument, argument) for argument in arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_a_folder_below_a_file_cannot_be_a_run(refused, tmp_path):
    (tmp_path / "file").touch()
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", tmp_path / "file" / "run")
    assert "cannot write there" in refused(*start)


def test_lines_must_be_text(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_bytes(b"one\r\n\xe9t\xe9\n")
    lines = streams.read_lines(str(file))
    assert next(lines) == "one"
    with pytest.raises(DataError, match=r"lines\.txt, line 2: the line is not UTF-8"):
        next(lines)


def test_agreeing_options_are_needed_for_seeds():
    with pytest.raises(ConfigError, match="Give one"):
        train.run(argparse.Namespace(resume=True, force=True))


# Demo ---------------------------------------------------------------------------------------------


def test_demo_trains_tests_and_explains(run, tmp_path):
    path = tmp_path / "demo"
    code, out, error = run("demo", "--run-dir", path, "--size", 150, "--epochs", 1)
    assert code == 0, error
    assert "test accuracy 0." in out
    assert "which words decided (in brackets)" in out
    assert "tensorboard --logdir" in out
    assert "train file --file your.csv" in out
    assert "\033" not in out
    assert (path / "evaluation-test.json").exists()


def test_demo_marks_words_by_their_share():
    words, weights = ["a", "dull", "film"], np.array([0.1, 0.7, 0.2])
    assert _marked(words, weights, colour=False) == "a [dull] film"
    assert _marked(words, weights, colour=True) == "a \033[1;30;43mdull\033[0m film"
