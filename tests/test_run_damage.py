"""A run folder gives the answers that it was trained to give, or an error: never other answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from bare_runs import epoch, made, sealed
from runs import tiny_run

import dsa_keras
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.errors import ConfigError, DsaError, RunError
from dsa_keras.objectives.regression import Regression
from dsa_keras.runs import Run
from dsa_keras.runs.weights import weights_in
from dsa_keras.training.callbacks import TrainingError
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import resume, resumed_options, train

QUIET = Options(show_progress=False)
TEXTS = ["the acting is superb", "the music is hardly convincing", "dull", ""]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run, and one of another seed that is like it in all shapes."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        tiny_run(folder / str(seed), size=150, training={"seed": seed}, kernel_sizes=[3])
    return folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy that may be damaged."""
    return Run(shutil.copytree(trained / "0", tmp_path / "run"))


@pytest.fixture
def other(trained):
    return Run(trained / "1")


@pytest.fixture
def older(tmp_path):
    """A run folder of format 1, which has no manifest."""
    golden = Path(__file__).parent / "golden" / "runs" / "sentence"
    path = shutil.copytree(golden, tmp_path / "older")
    (path / "expected.json").unlink()
    return Run(path)


def answers(run):
    model = dsa_keras.load(run.path)
    return np.concatenate([model.encode(TEXTS), model.numbers(TEXTS)], axis=1)


@pytest.fixture(scope="module")
def expected(trained):
    return answers(Run(trained / "0"))


def refused(run, name, problem="is not the file that belongs here"):
    with pytest.raises(RunError, match=rf"{name}: {problem}") as caught:
        dsa_keras.load(run.path)
    assert "\n" not in str(caught.value)


def test_the_two_runs_answer_differently(other, expected):
    """Or else nothing below would be noticed."""
    assert np.abs(answers(other) - expected).max() > 0.01


# What fits in shape and belongs to something else.


def test_a_vocabulary_with_two_words_swapped(run):
    lines = run.vocabulary_file.read_text(encoding="utf-8").splitlines()
    lines[5], lines[6] = lines[6], lines[5]
    run.vocabulary_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused(run, "vocabulary.txt")
    with pytest.raises(RunError, match=r"vocabulary\.txt: is not the file"):
        resume(run.path, epochs=2, options=QUIET)


@pytest.mark.parametrize("name", ["best.npz", "vectors.npy", "config.json"])
def test_a_file_of_another_seed(run, other, name):
    shutil.copy(other.path / name, run.path / name)
    refused(run, name)


def test_a_setting_that_no_weight_shows(run):
    """Another number of iterations has the same weights, and other answers."""
    values = json.loads(run.config_file.read_text())
    assert values["model"]["encoder"]["num_iterations"] == 2
    values["model"]["encoder"]["num_iterations"] = 3
    run.config_file.write_text(json.dumps(values))
    refused(run, "config.json")


def test_the_manifest_of_another_run(run, other):
    shutil.copy(other.manifest.path, run.manifest.path)
    refused(run, "config.json")


def test_a_whole_folder_may_be_moved(run, expected, tmp_path):
    moved = run.path.rename(tmp_path / "moved")
    np.testing.assert_array_equal(answers(Run(moved)), expected)


# Any byte.


def everything(run):
    """All that answers are made of, read as `load` reads it."""
    config = run.config()
    vectors, words = run.vectors(config), list(run.vocabulary(config))
    data = run.manifest.read_bytes("best.npz")
    weights = {name: one.tolist() for name, one in weights_in(data, run.best_file).items()}
    return config.to_dict(), words, vectors.tolist(), weights, run.best(config)


READ = ("config.json", "vocabulary.txt", "vectors.npy", "best.npz", "metrics.jsonl")


def test_no_flipped_byte_makes_another_answer(run, expected):
    """A sample of places in every file, the ends and the middle among them, three bits each."""
    random = np.random.default_rng(0)
    whole = everything(run)
    files = [path for path in run.path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert {*READ, "last.npz", "manifest.json", "README.md"} <= {path.name for path in files}
    flips, told = 0, dict.fromkeys((path.name for path in files), 0)
    for path in files:
        data = path.read_bytes()
        ends = [0, 1, len(data) // 2, len(data) - 2, len(data) - 1]
        for place in [*ends, *random.integers(0, len(data), 7)]:
            for bit in (1, 0x20, 0x80):
                flipped = bytearray(data)
                flipped[place] ^= bit
                path.write_bytes(flipped)
                flips += 1
                try:
                    assert everything(run) == whole, f"{path.name}, byte {place}"
                except RunError:
                    told[path.name] += 1
        path.write_bytes(data)
    assert flips >= 60
    assert all(told[name] == 12 * 3 for name in READ)
    assert told["manifest.json"] > 12
    assert told["last.npz"] == told["README.md"] == 0
    # What is read is what is answered with.
    np.testing.assert_array_equal(answers(run), expected)


def test_a_flipped_byte_of_the_state_is_not_trained_on(run):
    random = np.random.default_rng(0)
    data, before = run.last_file.read_bytes(), run.best_file.read_bytes()
    for place in random.integers(0, len(data), 10):
        flipped = bytearray(data)
        flipped[place] ^= 1
        run.last_file.write_bytes(flipped)
        with pytest.raises(RunError, match=r"last\.npz: is not the file that belongs here"):
            resume(run.path, epochs=2, options=QUIET)
    assert run.best_file.read_bytes() == before
    assert run.config().training.epochs == 1


# What no honest run holds, though its checksums agree, or where there are none.


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda value: np.full_like(value, np.nan), "holds numbers that are not finite"),
        (lambda value: np.full_like(value, -np.inf), "holds numbers that are not finite"),
        (lambda value: value.astype("int32"), "is of type int32, the model needs float32"),
        (lambda value: value.astype("complex64"), "is of type complex64, the model needs"),
        (lambda value: value.astype("S4"), r"is of type \|S4, the model needs"),
        (lambda value: value.astype(bool), "is of type bool, the model needs"),
        (lambda value: value[..., :-1], "has shape"),
        (lambda value: value[None], "has shape"),
    ],
)
def test_weights_that_cannot_be(run, change, problem):
    weights = arrays(run.best_file)
    name = next(name for name in weights if name.endswith("kernel"))
    np.savez(run.best_file, **{**weights, name: change(weights[name])})
    refused(Run(sealed(run.path)), "best.npz", f"{name.removeprefix('weights/')} {problem}")


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_weights_of_another_precision_are_the_same_weights(run, expected, dtype):
    weights = {name: value.astype(dtype) for name, value in arrays(run.best_file).items()}
    np.savez(run.best_file, **weights)
    np.testing.assert_allclose(answers(Run(sealed(run.path))), expected, atol=0.01)


def test_weights_that_are_missing_or_too_many(run):
    weights = arrays(run.best_file)
    first = sorted(weights)[0]
    fewer = {name: value for name, value in weights.items() if name != first}
    for changed in (fewer, {**weights, "weights/more": weights[first]}, {}):
        np.savez(run.best_file, **changed)
        refused(Run(sealed(run.path)), "best.npz", "its weights are not those of the model")


def test_files_that_are_no_weights(run):
    whole = run.best_file.read_bytes()
    np.savez(run.best_file, **{"weights/a": np.array([{}], object)})
    pickled = run.best_file.read_bytes()
    vectors = run.vectors_file.read_bytes()
    for data in (b"", b"text", whole[:1000], whole[:-100], whole[100:], pickled, vectors):
        run.best_file.write_bytes(data)
        refused(Run(sealed(run.path)), "best.npz", "the file is damaged")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda matrix: np.where(np.eye(*matrix.shape) > 0, np.nan, matrix), "not finite"),
        (lambda matrix: np.where(np.eye(*matrix.shape) > 0, np.inf, matrix), "not finite"),
        (lambda matrix: matrix.astype("float64"), "is no array of float32"),
        (lambda matrix: matrix.astype("float16"), "is no array of float32"),
        (lambda matrix: matrix.astype(">f4"), "is no array of float32"),
        (lambda matrix: matrix.astype("int32"), "is no array of float32"),
        (lambda matrix: matrix.astype("complex64"), "is no array of float32"),
        (lambda matrix: matrix.astype("S4"), "is no array of float32"),
        (lambda matrix: matrix[:-1], r"has shape \(4, 4\), the model needs \(5, 4\)"),
        (lambda matrix: matrix.ravel(), "has shape"),
        (lambda matrix: matrix[..., None], "has shape"),
        (lambda matrix: matrix.astype(object), "the file is damaged"),
    ],
)
@pytest.mark.parametrize("manifest", [True, False])
def test_vectors_that_cannot_be(tmp_path, change, problem, manifest):
    run = Run(made(tmp_path / "run"))
    config = run.config()
    np.save(run.vectors_file, change(np.load(run.vectors_file)), allow_pickle=True)
    sealed(run.path)
    if not manifest:
        run.manifest.path.unlink()
    with pytest.raises(RunError, match=rf"vectors\.npy: .*{problem}"):
        run.vectors(config)


def test_files_that_are_no_vectors(tmp_path):
    run = Run(made(tmp_path / "run"))
    config, whole = run.config(), run.vectors_file.read_bytes()
    huge = whole.replace(b"(5, 4), }" + 15 * b" ", b"(5, 4000000000000000), }")
    assert len(huge) == len(whole)
    assert huge != whole
    weights = epoch(tmp_path / "run", 1, 0.5) / "best.npz"
    unclosed = whole[:10] + b"{" * (len(whole) - 10)
    for data in (b"", b"text", whole[:40], whole[:-4], unclosed, huge, weights.read_bytes()):
        run.vectors_file.write_bytes(data)
        sealed(run.path)
        with pytest.raises(RunError, match=r"vectors\.npy: ") as caught:
            run.vectors(config)
        assert "\n" not in str(caught.value)


# Starting over, and going on.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"vectors": ["nothing.txt"]}, "nothing.txt"),
        ({"options": Options(jit="sometimes")}, "jit must be"),
        ({"options": Options(precision="float17")}, "precision must be"),
        ({"recipe": preset("demo-nli").replace(objective=Regression())}, "the recipe is one of"),
        ({"force": False}, "the folder is not empty"),
    ],
)
def test_what_cannot_be_trained_leaves_the_old_run(run, arguments, error):
    before = everything(run)
    data = load_dataset("demo-sentiment", size=150)
    with pytest.raises(DsaError, match=error):
        train(data, run.path, **{"force": True, "options": QUIET, **arguments})
    assert everything(run) == before
    run.manifest.check_all(ignore=["logs/*"])


def test_a_run_is_replaced_by_one_on_other_data(run):
    recipe = preset("demo-nli", "cnn").replace(cnn_filters=4, epochs=1)
    data = load_dataset("demo-nli", size=150)
    train(data, run.path, recipe, force=True, options=QUIET)
    assert run.config().task == "demo-nli"
    assert len(run.metrics()) == 1
    run.manifest.check_all(ignore=["logs/*"])
    assert len([path for path in run.logs.rglob("*") if path.is_file()]) == 2


@pytest.mark.parametrize("left", ["best.npz", "metrics.jsonl"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_run_whose_state_is_lost_does_not_start_over(run, left, clean):
    """Or else epochs that were trained would be overwritten by a first one."""
    gone = {"last.npz", "best.npz", "metrics.jsonl"} - {left}
    if clean:
        with run.manifest.replacing() as files:
            for name in gone:
                files.remove(name)
    else:
        for name in gone:
            (run.path / name).unlink()
    before = (run.path / left).read_bytes(), run.config_file.read_bytes()
    with pytest.raises(RunError, match=r"last\.npz: .* Restore it, or train again"):
        resume(run.path, epochs=2, options=QUIET)
    assert ((run.path / left).read_bytes(), run.config_file.read_bytes()) == before


def test_epochs_are_written_only_when_the_data_fits(run):
    values = json.loads(run.config_file.read_text())
    values["data"]["options"]["size"] = 300
    run.config_file.write_text(json.dumps(values))
    sealed(run.path)
    before = run.config_file.read_bytes()
    with pytest.raises(RunError, match="the data is not what the run was started with"):
        resume(run.path, epochs=7, options=QUIET)
    assert run.config_file.read_bytes() == before


@pytest.mark.parametrize("part", ["weights/", "best/", "optimizer/", "seeds/", "meta"])
@pytest.mark.parametrize("change", ["gone", "shape", "nan", "kind"])
def test_a_state_that_cannot_be_is_told_before_a_step(run, part, change):
    state = arrays(run.last_file)
    names = [name for name in state if name.startswith(part)]
    name = max(names, key=lambda one: state[one].size)
    value = state.pop(name)
    if change == "shape":
        state[name] = np.concatenate([value, value])
    elif change == "nan":
        state[name] = np.full(value.shape, np.nan)
    elif change == "kind":
        state[name] = value.astype("S3")
    np.savez(run.last_file, **state)
    sealed(run.path)
    best = run.best_file.read_bytes()
    with pytest.raises(RunError, match=r"last\.npz: ") as caught:
        resume(run.path, epochs=2, options=QUIET)
    assert "\n" not in str(caught.value)
    assert run.best_file.read_bytes() == best
    assert len(run.metrics()) == 1


def test_devices_are_those_of_the_run(tmp_path):
    path = tiny_run(
        tmp_path / "run",
        encoder="cnn",
        size=150,
        options={"devices": ("CPU:0",), "precision": "mixed_bfloat16"},
    )
    config = Run(path).config()
    assert config.options["devices"] == ["CPU:0"]
    shown = Options(show_progress=False, histograms=True)
    how = resumed_options(config, shown)
    assert how == Options(
        show_progress=False, histograms=True, devices=("CPU:0",), precision="mixed_bfloat16"
    )
    # Others may be asked for: the run may go on elsewhere.
    assert resumed_options(config, Options(devices=("GPU:1",))).devices == ("GPU:1",)
    resume(path, epochs=2, options=QUIET)
    assert Run(path).config().options == config.options


def test_a_run_of_format_1_is_left_alone_until_it_is_trained_on(older, tmp_path):
    def content():
        return {path.name: path.read_bytes() for path in older.path.iterdir()}

    before = content()
    dsa_keras.load(older.path).predict("a film")
    older.best(older.config())
    assert content() == before
    resume(older.path, epochs=2, options=QUIET)
    assert json.loads(older.config_file.read_text())["format"] == 2
    older.manifest.check_all(ignore=["logs/*"])


# Keras's policy.


@pytest.mark.parametrize("fails", [False, "jit", "loss"])
def test_the_policy_is_what_it_was(tmp_path, fails):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        if fails == "jit":
            with pytest.raises(ConfigError, match="XLA cannot compile the training of bilstm"):
                tiny_run(tmp_path / "run", encoder="bilstm", size=150, options={"jit": "on"})
        elif fails == "loss":
            steps = {"learning_rate": 1e30, "optimizer": "adadelta"}
            with pytest.raises(TrainingError, match="the loss became"):
                tiny_run(tmp_path / "run", encoder="cnn", size=150, training=steps)
        else:
            path = tiny_run(tmp_path / "run", encoder="cnn", size=150)
            assert dsa_keras.load(path).encode("a film").dtype == np.float32
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")
