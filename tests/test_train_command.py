"""`train` as a new user meets it: its settings, its run folders, what it refuses."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from runs import SMALL_OPTIONS, shared_run

from dsa_keras.commands import train
from dsa_keras.commands.cli import (
    Parser,
    add_hyper_parameters,
    given_hyper_parameters,
    hyper_parameters,
)
from dsa_keras.commands.main import build_parser
from dsa_keras.commands.train_settings import configs
from dsa_keras.config import preset
from dsa_keras.data import DATASETS
from dsa_keras.errors import ConfigError
from dsa_keras.training.run import Run


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


def test_the_config_of_a_run_is_a_config_file():
    single = shared_run(encoder="cnn")
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


@pytest.mark.slow
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


def test_force_removes_an_old_run_and_nothing_else(tmp_path):
    copy = Path(shutil.copytree(shared_run(encoder="cnn"), tmp_path / "copy"))
    Run(copy).create(force=True, needed_bytes=1)
    assert list(copy.iterdir()) == []
    assert list(tmp_path.iterdir()) == [copy]


def test_sigterm_ends_training_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), train._terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_folder_below_a_file_cannot_be_a_run(refused, tmp_path):
    (tmp_path / "file").touch()
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", tmp_path / "file" / "run")
    assert "cannot write there" in refused(*start)


def test_agreeing_options_are_needed_for_seeds():
    with pytest.raises(ConfigError, match="Give one"):
        train.run(argparse.Namespace(resume=True, force=True))
