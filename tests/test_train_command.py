"""`train` as a new user meets it: its settings, its run folders, what it refuses."""

from __future__ import annotations

import json
import shutil
import signal
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
from dsa_keras.runs import Run


def test_the_help_names_every_task_and_encoder(run):
    _, out, _ = run("train", "--help")
    words = " ".join(out.split()).replace("- ", "-")
    assert ", ".join(DATASETS.names()) in words
    assert ", ".join(ENCODERS.names()) in words


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
    assert "width of the head's hidden layers --num-hidden-layers" in words
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
