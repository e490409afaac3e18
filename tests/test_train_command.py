"""`train` as a new user meets it: its settings, its run folders, what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import termios
import threading
from pathlib import Path

import numpy as np
import pytest
from fresh_python import loaded_after
from runs import shared_run, small_options, tiny_run

from dsa_keras.command_line import Parser
from dsa_keras.commands import train
from dsa_keras.commands.main import build_parser
from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import DATASETS, load_dataset, preset
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError
from dsa_keras.heads import HEADS
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.options import (
    add_data_options,
    add_hyper_parameters,
    chosen_recipe,
    data_options,
    given_hyper_parameters,
)
from dsa_keras.options.defaults import told_defaults
from dsa_keras.runs import Run


def test_the_help_names_every_task_and_encoder(run):
    _, out, _ = run("train", "--help")
    words = " ".join(out.split()).replace("- ", "-")
    assert ", ".join(DATASETS.names()) in words
    assert ", ".join(ENCODERS.names()) in words


@pytest.mark.parametrize(
    ("flag", "default"),
    [
        ("--learning-rate X", "(default: 0.001; file, sst2, sst5: 1.0)"),
        ("--kernel-sizes N [N ...]", "(default: 3 5)"),
        ("--num-attentions N", "(default: 8 (dsa-multiple), 1 (dsa-single, self-attention))"),
        ("--oov-range X", "file, mnli, snli, sst2, sst5 without --vectors: 0.5)"),
        ("--class-weights {none,balanced}", "[classification] (default: none)"),
    ],
)
def test_the_help_has_the_numbers_of_the_recipes(run, flag, default):
    _, out, _ = run("train", "--help")
    _, _, rest = out.partition("hyper-parameters:")[2].partition(f"  {flag}")
    told = re.split(r"\n\n|\n  --", rest)[0]
    told = " ".join(told.split()).replace("- ", "-")
    assert told.endswith(default), told


def test_the_defaults_are_those_of_every_recipe():
    recipes = {task: preset(task).hyper_parameters() for task in DATASETS.names()}
    for name in TrainingConfig.choices():
        told = told_defaults(name)
        for task, values in recipes.items():
            value = values[name]
            if isinstance(value, bool):
                value = "yes" if value else "no"
            if value != "":
                assert str(value) in told, (name, task)
    assert told_defaults("monitor") == ""
    assert told_defaults("of_a_stranger") == ""


def test_the_defaults_are_told_without_tensorflow():
    script = (
        "from dsa_keras.commands.main import build_parser\n"
        "try:\n    build_parser().parse_args(['train', '--help'])\nexcept SystemExit:\n    pass"
    )
    assert loaded_after(script, ("tensorflow", "keras")) == []


# Hyper-parameters ---------------------------------------------------------------------------------


def parsed(*arguments):
    return build_parser().parse_args([str(argument) for argument in arguments])


def recipe_of(*arguments):
    args = parsed("train", *arguments)
    return chosen_recipe(args, args.task)


def test_there_is_an_option_for_everything_that_can_be_chosen():
    parser = Parser()
    add_hyper_parameters(parser)
    names = {name for kind in (*ENCODERS, *HEADS, *OBJECTIVES) for name in kind.choices()}
    names |= {*ModelConfig.own_choices(), *TrainingConfig.choices()}
    flags = {f"--{name.replace('_', '-')}" for name in names}
    found = {flag for flag in parser._option_string_actions if not flag.startswith("--no-")}
    assert found == flags | {"-h", "--help", "--config"}


def test_the_help_says_whose_a_hyper_parameter_is(run):
    _, out, _ = run("train", "--help")
    words = " ".join(out.split()).replace("- ", "-")
    assert "LSTM in each direction [bilstm, bilstm-self-attention]" in words
    assert "width of the head's hidden layers (default" in words
    assert "number of examples [demo-nli, demo-sentiment]" in words


def test_the_paper_is_the_default():
    assert recipe_of("sst2", "--vectors", "glove.zip") == preset("sst2")


def test_options_and_config_files_change_it(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"batch_size": 7, "units": 20, "encoder": "dsa-multiple"}')
    recipe = recipe_of("snli", "--vectors", "x", "--config", file, "--batch-size", 9)
    encoder = recipe.model.encoder
    assert (encoder.name, encoder.units, encoder.num_attentions) == ("dsa-multiple", 20, 8)
    assert (recipe.training.batch_size, recipe.training.optimizer) == (9, "adam")
    # --encoder wins over the file, and what the file says of its own encoder goes with that.
    recipe = recipe_of("snli", "--config", file, "--encoder", "bilstm")
    assert (recipe.model.encoder.name, recipe.training.batch_size) == ("bilstm", 7)
    recipe = recipe_of("snli", "--config", file, "--encoder", "self-attention")
    assert recipe.model.encoder.units == 20


def test_the_config_of_a_run_is_a_config_file():
    single = shared_run(encoder="cnn")
    recipe = recipe_of("sst2", "--config", single / "config.json")
    of_run = Run(single).config()
    assert recipe.training == of_run.training
    # What the data decides is left to the data.
    assert recipe.model.replace(vocabulary_size=of_run.model.vocabulary_size) == of_run.model


@pytest.mark.parametrize("folder", ["sentence", "pair"])
def test_older_configs_are_config_files(tmp_path, folder):
    file = Path(__file__).parent / "golden" / "runs" / folder / "config.json"
    values = json.loads(file.read_text())
    assert values["format"] == 1
    of_search = tmp_path / "best.json"
    of_search.write_text(json.dumps({"model": values["model"], "training": values["training"]}))
    of_run = Run(file.parent).config().recipe
    for given in (file, of_search):
        recipe = recipe_of("sst2", "--config", given)
        assert recipe.hyper_parameters() == of_run.hyper_parameters()


def test_lists_and_switches():
    recipe = recipe_of("sst2", "--kernel-sizes", 3, 5, 7, "--no-train-embeddings")
    assert recipe.model.encoder.kernel_sizes == (3, 5, 7)
    assert recipe.model.train_embeddings is False


def test_without_vectors_words_are_trained():
    recipe = recipe_of("sst2")
    assert recipe.model.train_embeddings
    assert recipe.training.oov_range == 0.5
    assert recipe_of("sst2", "--oov-range", 0.1).training.oov_range == 0.1
    assert not recipe_of("demo-sentiment").model.train_embeddings


def test_case_is_ignored_in_own_data_without_vectors():
    assert recipe_of("file").training.lowercase
    assert not recipe_of("file", "--vectors", "x").training.lowercase
    assert not recipe_of("file", "--no-lowercase").training.lowercase
    assert recipe_of("file", "--vectors", "x", "--lowercase").training.lowercase
    for task in DATASETS.names():
        assert recipe_of(task).training.lowercase == (task == "file")


def test_own_words_of_either_case_are_one(run, tmp_path):
    rows = [
        f"{word} film {n},{label}"
        for n in range(20)
        for word, label in (("Great", "good"), ("great", "good"), ("DULL", "bad"), ("dull", "bad"))
    ]
    file = tmp_path / "mine.csv"
    file.write_text("text,label\n" + "\n".join(rows) + "\n")
    start = ("train", "file", "--file", file, "--epochs", 1, "--encoder", "cnn")
    start = (*start, "--cnn-filters", 4)
    for words, expected in (
        ((), {"great", "dull"}),
        (("--no-lowercase",), {"great", "Great", "dull", "DULL"}),
    ):
        folder = tmp_path / f"run{len(words)}"
        code, _, error = run(*start, *words, "--run-dir", folder)
        assert code == 0, error
        found = Run(folder).vocabulary(Run(folder).config())
        assert {word for word in found if word.lower() in ("great", "dull")} == expected


def test_own_files_are_trained_like_the_papers_tasks():
    recipe = recipe_of("file", "--vectors", "x")
    assert (recipe.training.optimizer, recipe.training.tokenizer) == ("adadelta", "ptb")
    assert recipe.model.head.num_hidden_layers == 1
    recipe = recipe_of("file", "--vectors", "x", "--pair-column", "b")
    assert (recipe.training.optimizer, recipe.training.tokenizer) == ("adam", "ptb")
    assert recipe.model.head.num_hidden_layers == 2
    assert recipe_of("file", "--target", "number").model.objective.name == "regression"


def test_options_of_the_data_are_those_of_its_reader():
    args = parsed("train", "sst2", "--sentences-only", "--on-bad-rows", "skip")
    assert data_options(args, "sst2") == {"phrases": False, "on_bad_rows": "skip"}
    args = parsed("train", "file", "--file", "x.csv", "--fractions", 0.5, 0.3, 0.2)
    assert data_options(args, "file") == {"path": "x.csv", "fractions": [0.5, 0.3, 0.2]}
    assert data_options(parsed("train", "demo-nli", "--data-seed", 3), "demo-nli") == {"seed": 3}


def test_options_of_the_data_must_not_take_those_of_a_command():
    parser = Parser()
    parser.add_argument("--size")
    with pytest.raises(ConfigError, match="demo-nli has an option --size"):
        add_data_options(parser)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learning-rat", "1"], "unknown option --learning-rat. Did you mean '--learning-rate'?"),
        (["--batch-size", "0"], "batch_size must be at least 1. Received: 0"),
        (["--optimizer", "sgd"], "invalid choice: 'sgd'"),
        (["--encoder", "lstm"], "unknown encoder 'lstm'. Did you mean 'bilstm'?"),
        (
            ["--lstm-units", "3"],
            "--lstm-units is no hyper-parameter of dsa-single and classification. It belongs to "
            "bilstm and bilstm-self-attention",
        ),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--resume", "--force"], "Give one"),
        (["--file", "x.csv"], "--file is an option of file, not of demo-sentiment"),
        (["--sentences-only"], "--sentences-only is an option of sst2 and sst5, not of demo-senti"),
        (["--size", "3"], "size"),
        (["--vectors", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--config", "nowhere.json"], "nowhere.json: no such file"),
        (["--resume"], "no such run folder"),
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
        ('{"lstm_units": 3}', "config.json: lstm_units is no hyper-parameter of dsa-single and"),
        ('{"encoder": "lstm"}', "config.json: unknown encoder 'lstm'"),
        ('{"encoder": "json:loads"}', "config.json: unknown encoder 'json:loads'"),
        ('{"model": {}, "training": {}}', "config.json: its model has no 'encoder'"),
        ('{"format": 3}', "config.json: is of format 3"),
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
    assert given_hyper_parameters(parser.parse_args(["--units", "3"])) == {"units": 3}


def test_the_user_names_the_figure_that_chooses_the_epoch(run, refused, tmp_path):
    path = tmp_path / "run"
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", path, "--encoder", "cnn")
    assert "monitor is 'mae'" in refused(*start, "--monitor", "mae")
    small = (*small_options("cnn"), "--epochs", 2)
    code, out, error = run(*start, *small, "--monitor", "loss")
    assert code == 0, error
    records = Run(path).metrics()
    best = min(records, key=lambda record: record["dev_loss"])
    assert Run(path).best(Run(path).config()) == best
    assert [record["best"] for record in records] == [True, best["epoch"] == 2]
    assert f"dev loss {best['dev_loss']:.4f} (epoch {best['epoch']})" in out
    assert f"| dev loss | {best['dev_loss']:.4f} (epoch" in (path / "README.md").read_text()
    assert run("evaluate", path)[0] == 0
    code, out, error = run("compare", path)
    assert (code, error) == (0, "")
    accuracy = Run(path).evaluation("test")["accuracy"]
    assert "dev loss  test accuracy" in out.splitlines()[0]
    assert f"{best['dev_loss']:.4f}         {accuracy:.4f}" in out.splitlines()[1]


def test_the_order_of_classes_is_given_in_one_word():
    args = parsed("train", "file", "--file", "a.csv", "--classes", "awful, bad,ok")
    options = data_options(args, "file")
    assert options["classes"] == ["awful", "bad", "ok"]
    again = DATASETS.get("file").words(options)
    assert again == ["--file", "a.csv", "--classes", "awful,bad,ok"]
    assert data_options(parsed("train", "file", *again), "file") == options


def test_class_weights_are_those_of_the_training_split(run, tmp_path):
    rows = [f"{label},a {label} film" for label in ["bad"] * 90 + ["good"] * 10]
    (tmp_path / "a.csv").write_text("\n".join(["label,text", *rows]))
    start = ("train", "file", "--file", tmp_path / "a.csv", "--encoder", "cnn", "--epochs", 1)
    still = ("--learning-rate", 1e-30, "--averaging", 0, "--head-dropout", 0)
    still = (*still, "--embedding-dropout", 0, "--batch-size", 80, *small_options("cnn"))
    losses = {}
    for weights in ("none", "balanced"):
        path = tmp_path / weights
        code, _, error = run(*start, *still, "--run-dir", path, "--class-weights", weights)
        assert code == 0, error
        assert Run(path).config().model.objective.class_weights == weights
        (losses[weights],) = Run(path).metrics()
    assert losses["none"]["train_loss"] != pytest.approx(losses["balanced"]["train_loss"])
    assert losses["none"]["dev_loss"] == pytest.approx(losses["balanced"]["dev_loss"])


def test_a_small_dev_split_is_warned_of_when_training_begins(run, tmp_path):
    start = ("train", "demo-sentiment", "--encoder", "cnn", *small_options("cnn"), "--epochs", 1)
    code, _, error = run(*start, "--size", 990, "--run-dir", tmp_path / "few")
    assert (code, error) == (
        0,
        "warning: the dev split has 99 examples, fewer than 100: the epoch that is kept is chosen "
        "by them, and by chance\n",
    )
    code, _, error = run(*start, "--size", 1000, "--run-dir", tmp_path / "enough")
    assert (code, error) == (0, "")


# Train --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_seeds_resume_and_compare(run, refused, tmp_path):
    base = tmp_path / "run"
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", base)
    small = small_options("cnn")
    tiny = ("--encoder", "cnn", "--epochs", 1, "--batch-size", 64, *small)
    code, out, error = run(*start, "--seeds", 2, *tiny)
    assert code == 0, error
    seeds = [Path(f"{base}-seed{number}") for number in range(2)]
    assert [Run(seed).config().training.seed for seed in seeds] == [0, 1]
    assert f"dsa-keras evaluate {seeds[0]}\n" in out
    assert f"tensorboard --logdir {seeds[1]}/logs" in out
    accuracies = [Run(seed).metrics()[0]["dev_accuracy"] for seed in seeds]
    deviation = abs(accuracies[0] - accuracies[1]) / 2**0.5
    summary = f"{np.mean(accuracies):.4f} ± {deviation:.4f}"
    assert f"2 seeds: dev accuracy {summary}" in out

    # What is there is not touched without --force.
    assert "not empty" in refused(*start, "--seeds", 2, *tiny)
    # A third seed has the settings of its siblings; finished ones are kept.
    kept = (seeds[0] / "last.npz").stat().st_mtime_ns
    code, out, error = run("train", "--resume", base, "--seeds", 3)
    assert code == 0, error
    assert out.count("nothing is left to do: 1 epochs are done") == 2
    third = Run(f"{base}-seed2").config()
    assert (third.model.encoder.name, third.training.batch_size, third.training.seed) == (
        "cnn",
        64,
        2,
    )
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
    tiny = ("--encoder", "cnn", "--epochs", 1, *small_options("cnn"))
    code, out, error = run(*start, *tiny)
    assert code == 0, error
    assert "no --vectors given: words get random vectors that are trained" in out
    config = Run(tmp_path / "run").config()
    assert config.model.objective.class_names == ("bad", "good")
    assert config.model.train_embeddings
    code, out, error = run("evaluate", tmp_path / "run", "--json", "-")
    assert json.loads(out)["examples"] == 4, error
    # The data of a run must stay what it was.
    kept = file.read_text()
    file.write_text(kept.replace(",bad", ",fair"))
    error = refused("evaluate", tmp_path / "run")
    assert "Classes: fair, good. The run is" in error
    assert "Give the data that the run was trained with" in error
    file.write_text(kept.replace("a bad", "a very bad"))
    resume = ("train", "file", "--run-dir", tmp_path / "run", "--resume", "--epochs", 2)
    assert "the data is not what the run was started with" in refused(*resume)
    file.write_text(kept)
    assert "no dev examples" in refused(
        *("train", "file", "--train-file", file, "--run-dir", tmp_path / "other"), *columns
    )
    assert "Known: review, stars" in refused(
        "train", "file", "--file", file, "--run-dir", tmp_path / "other"
    )


def test_force_replaces_an_old_run_and_nothing_else(run, refused, tmp_path):
    copy = Path(shutil.copytree(shared_run(), tmp_path / "copy"))
    (copy / "figures").mkdir()
    start = ("train", "demo-sentiment", "--size", 150, "--epochs", 1, "--encoder", "cnn")
    start = (*start, *small_options("cnn"), "--force", "--run-dir")
    (copy / "notes.txt").write_text("of the user")
    assert "notes.txt is no file of a run, so the folder is not removed" in refused(*start, copy)
    (copy / "notes.txt").unlink()
    code, _, error = run(*start, copy)
    assert code == 0, error
    assert Run(copy).config().model.encoder.name == "cnn"
    assert not (copy / "figures").exists()
    assert list(tmp_path.iterdir()) == [copy]
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("of the user")
    assert "so nothing in it is removed" in refused(*start, other)
    assert (other / "thesis.txt").read_text() == "of the user"


@pytest.mark.parametrize("missing", [("last.npz",), ("last.npz", "metrics.jsonl")])
def test_what_was_trained_is_not_lost_for_want_of_its_state(refused, tmp_path, missing):
    copy = Path(shutil.copytree(shared_run(encoder="cnn"), tmp_path / "copy"))
    for name in missing:
        (copy / name).unlink()
    before = (copy / "best.npz").read_bytes()
    start = ("train", "demo-sentiment", "--run-dir", copy, "--resume", "--epochs", 2)
    assert "last.npz: " in refused(*start)
    assert (copy / "best.npz").read_bytes() == before


def test_the_coverage_of_word_vectors_is_told_when_training_begins(run, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2 3\nplot 4 5 6\n")
    start = ("train", "demo-sentiment", "--size", 1000, "--epochs", 1, "--encoder", "cnn")
    start = (*start, "--cnn-filters", 4, "--vectors", vectors, "--run-dir", tmp_path / "run")
    code, out, error = run(*start)
    assert (code, error) == (0, "")
    lines = out.splitlines()
    told = json.loads((tmp_path / "run" / "config.json").read_text())["vectors"]
    running = f"; {told['token_coverage']:.1%} of the running words"
    assert lines[0] == f"word vectors: {told['report'].splitlines()[0]}{running}"
    assert re.fullmatch(r"word vectors: 2 of \d+ words found .*", lines[0])
    assert lines[1] == "vectors.txt: 2 words as written, 0 lower-cased"
    assert lines[2].startswith("epoch 1/1  loss ")


def test_resume_needs_a_run_and_no_task(run, refused, tmp_path):
    copy = tmp_path / "copy"
    folder = ("--run-dir", copy)
    for form in (
        ("--resume", copy, "--epochs", 2),
        ("demo-sentiment", *folder, "--resume", "--epochs", 2),
        ("--resume", "demo-sentiment", *folder, "--epochs", 2),
        ("demo-sentiment", "--resume", copy, "--epochs", 2),
        (*folder, "--epochs", 2, "--resume"),
        ("--epochs", 2, "demo-sentiment", "--batch-size", 32, *folder, "--resume"),
    ):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(shared_run(encoder="cnn"), copy)
        code, out, error = run("train", *form)
        assert code == 0, error
        assert "epoch 2/2" in out
    assert "task is demo-sentiment in this run" in refused("train", "demo-nli", "--resume", copy)
    assert "two run folders are given" in refused(
        "train", "demo-sentiment", "--resume", copy, *folder
    )
    assert "batch_size is 32 in this run" in refused("train", "--resume", copy, "--batch-size", 64)
    assert "no such run folder" in refused("train", "--resume", tmp_path / "nothing")
    assert "Give its folder: --resume RUN" in refused("train", "--resume")
    assert "TASK is missing" in refused("train", "--run-dir", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_vectors_must_have_the_dimension_that_was_asked_for(refused, run, tmp_path):
    vectors, folder = tmp_path / "vectors.txt", tmp_path / "run"
    vectors.write_text("the 1 2 3\nplot 4 5 6\n")
    start = ("train", "demo-sentiment", "--size", 150, "--epochs", 1, "--encoder", "cnn")
    start = (*start, "--cnn-filters", 4, "--vectors", vectors, "--run-dir", folder)
    error = refused(*start, "--embedding-dim", 4)
    assert "vectors.txt" in error
    assert "4" in error
    assert "3" in error
    assert not folder.exists()
    code, _, error = run(*start)
    assert code == 0, error
    assert Run(folder).config().model.embedding_dim == 3


def test_runs_of_python_are_told_apart(refused, tmp_path):
    """What was made of data that no name tells cannot be loaded again by the commands."""
    from dataclasses import replace

    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import train as train_in_python

    dataset = replace(load_dataset("demo-sentiment", size=150), name="mine", origin=None)
    recipe = preset("demo-sentiment", "cnn").replace(
        cnn_filters=2, hidden_units=4, embedding_dim=4, epochs=1
    )
    assert isinstance(recipe, Recipe)
    train_in_python(dataset, tmp_path / "run", recipe, options=Options(show_progress=False))
    for command in (("evaluate",), ("train", "mine", "--resume", "--epochs", 2, "--run-dir")):
        assert "made in Python" in refused(*command, tmp_path / "run")


def test_an_evaluation_from_before_more_training_is_not_shown(run, tmp_path):
    path = tiny_run(tmp_path / "run", encoder="cnn", size=150)
    assert run("evaluate", path)[0] == 0
    _, out, error = run("compare", path)
    assert error == ""
    assert out.splitlines()[1].split("  ")[-2].strip() != "-"
    figure = json.loads((path / "evaluation-test.json").read_text())["accuracy"]
    assert f"{figure:.4f}" in out
    # The dev figure may not rise in an epoch, so a better one is not waited for.
    for epochs in range(2, 9):
        before = (path / "best.npz").read_bytes()
        start = ("train", "demo-sentiment", "--run-dir", path, "--resume", "--epochs", epochs)
        assert run(*start)[0] == 0
        if (path / "best.npz").read_bytes() != before:
            break
    else:
        pytest.fail("no epoch was better than the first")
    code, out, error = run("compare", path)
    assert code == 0
    assert "evaluation-test.json: the run has other weights by now" in error
    assert out.splitlines()[1].split()[-2] == "-"
    assert run("evaluate", path)[0] == 0
    _, out, error = run("compare", path)
    assert (error, out.splitlines()[1].split()[-2] == "-") == ("", False)


def test_sigterm_ends_training_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), train._terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_folder_below_a_file_cannot_be_a_run(refused, tmp_path):
    (tmp_path / "file").touch()
    start = ("train", "demo-sentiment", "--size", 150, "--run-dir", tmp_path / "file" / "run")
    assert "cannot write there" in refused(*start)


def test_a_folder_that_is_taken_is_told_before_tensorflow_loads(tmp_path):
    (tmp_path / "file.txt").touch()
    script = (
        "from dsa_keras.commands.main import main\n"
        f"assert main(['train', 'demo-sentiment', '--run-dir', {str(tmp_path)!r}]) == 2"
    )
    assert loaded_after(script, ("tensorflow", "keras")) == []


# Progress -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def terminal(monkeypatch):
    """A terminal of 120 columns as standard error; gives a list of what it shows in the end."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    written, shown = [], []

    def read():
        with contextlib.suppress(OSError):  # the end of a terminal whose other side is closed
            while part := os.read(ours, 65536):
                written.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w") as stream, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        yield shown
    reader.join()
    os.close(ours)
    shown.append(b"".join(written).decode())


PROGRESS = {"training": {"epochs": 2}, "options": {"show_progress": True}}


def test_a_terminal_shows_a_bar_with_the_time_left_in_the_epoch(tmp_path, capsys, monkeypatch):
    with terminal(monkeypatch) as written:
        tiny_run(tmp_path / "run", size=600, **PROGRESS)
    (shown,) = written
    for epoch in (1, 2):
        assert re.search(rf"epoch {epoch}/2 +\d+%\|.*\| \d+/\d+ .*\S+ left", shown), shown
    assert re.search(r"loss \d\.\d{4}, accuracy \d\.\d{4}, [\d,]+ words/s, \d\d:\d\d left", shown)
    # What is left on the terminal are the lines of the epochs.
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["1/2", "2/2"]


def test_a_pipe_gets_one_line_an_epoch_and_no_bar(tmp_path, capsys):
    tiny_run(tmp_path / "run", **{**PROGRESS, "size": 1000})
    out, error = capsys.readouterr()
    assert error == ""
    pattern = r"epoch (\d)/2  loss [\d.]+  accuracy [\d.]+  dev accuracy [\d.]+  [\d,]+ words/s.*"
    matches = [re.fullmatch(pattern, line) for line in out.splitlines()]
    assert [match and match[1] for match in matches] == ["1", "2"]
