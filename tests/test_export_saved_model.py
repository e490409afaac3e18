"""The SavedModel: the same answers as Keras for any string, stock operations, whole or absent."""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from exported import CASES, TEXTS, case, random_run
from hypothesis import given
from hypothesis import strategies as st
from one_command import export as main
from slow_parameters import some_slow

import dsa_keras
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError, DataError, RunError
from dsa_keras.export.saved_model import export_saved_model

ROOT = Path(__file__).parents[1]


@pytest.fixture(params=CASES)
def either(request, tmp_path_factory):
    return case(tmp_path_factory, request.param)


@pytest.fixture
def single(tmp_path_factory):
    return case(tmp_path_factory, "single")


@pytest.fixture
def pair(tmp_path_factory):
    return case(tmp_path_factory, "pair")


@functools.cache
def load(folder):
    import tensorflow as tf

    return tf.saved_model.load(str(folder)).signatures


@pytest.fixture
def served(single):
    return load(single.version)


def ask(signatures, name, **inputs):
    import tensorflow as tf

    values = {
        key: tf.constant(value, tf.string if not isinstance(value, np.ndarray) else None)
        for key, value in inputs.items()
    }
    return {key: value.numpy() for key, value in signatures[name](**values).items()}


def assert_same_answers(folder, run, texts):
    from dsa_keras.export import reference

    model = dsa_keras.load(run)
    expected = reference.answers(model, texts)
    signatures = load(folder)
    assert set(signatures) == set(expected)
    parts = model.inputs.columns(texts)
    ids = dict(zip(model.inputs.ids, reference.padded_ids(model, texts), strict=True))
    first = {"text": next(iter(parts.values()))}
    for name, outputs in expected.items():
        inputs = {"embed": first, "tokens": ids}.get(name, parts)
        got = ask(signatures, name, **inputs)
        assert set(got) == set(outputs)
        for key, value in outputs.items():
            assert len(got[key]) == len(texts)
            if value.dtype == object:
                decoded = [one.decode() for one in got[key].ravel()]
                assert decoded == value.ravel().tolist(), (name, key)
            else:
                np.testing.assert_allclose(got[key], value, atol=1e-5, err_msg=f"{name} {key}")


def test_every_signature_answers_as_keras_does(either):
    assert_same_answers(either.version, either.run, either.texts)


def test_case_is_ignored_where_training_did(tmp_path_factory):
    made = case(tmp_path_factory, "pair")
    model, signatures = dsa_keras.load(made.run), load(made.version)
    shouted, said = ["IT IS A GOOD FILM", "It Is A Good Film"], ["it is a good film"] * 2
    assert {"it", "good"} <= set(model.vocabulary)
    assert model.text_encoder.word_ids(shouted).known.tolist() == [5, 5]
    for texts in (shouted, said):
        vectors = ask(signatures, "embed", text=texts)["vector"]
        np.testing.assert_allclose(vectors, model.encode(said), atol=1e-5)
    cased = dsa_keras.load(case(tmp_path_factory, "pair-number").run)
    assert not np.allclose(*cased.encode(["GOOD FILM", "good film"]))


@pytest.mark.parametrize("name", ["single", "number"])
def test_the_model_of_python_answers_alike(name, tmp_path_factory):
    """The reference pads whole batches; `predict` and `encode` sort, and look words up once."""
    from dsa_keras.export import reference

    one = case(tmp_path_factory, name)
    model = dsa_keras.load(one.run)
    np.testing.assert_allclose(
        model.numbers(one.texts), reference.numbers(model, one.texts), atol=1e-5
    )
    expected = reference.answers(model, one.texts)["embed"]["vector"]
    np.testing.assert_allclose(model.encode(one.texts), expected, atol=1e-5)


NAMES = {
    "single": {
        "serving_default": ({"text"}, {"label": 1, "probabilities": 2, "class_names": 2}),
        "embed": ({"text"}, {"vector": 2}),
        "attention": ({"text"}, {"tokens": 2, "lengths": 1, "weights": 4}),
        "tokens": (
            {"word_ids"},
            {"label": 1, "probabilities": 2, "class_names": 2, "vector": 2},
        ),
    },
    "pair-number": {
        "serving_default": ({"premise", "hypothesis"}, {"number": 1}),
        "embed": ({"text"}, {"vector": 2}),
        "attention": (
            {"premise", "hypothesis"},
            {
                f"{part}_{name}": rank
                for part in ("premise", "hypothesis")
                for name, rank in {"tokens": 2, "lengths": 1, "weights": 4}.items()
            },
        ),
        "tokens": (
            {"premise_ids", "hypothesis_ids"},
            {"number": 1, "premise_vector": 2, "hypothesis_vector": 2},
        ),
    },
}
TYPES = {"label": 7, "class_names": 7, "tokens": 7, "lengths": 3, "word_ids": 3}
TYPES |= {"probabilities": 1, "number": 1, "vector": 1, "weights": 1}


@pytest.mark.parametrize("name", NAMES)
def test_names_types_and_ranks_are_those_of_the_documentation(name, tmp_path_factory):
    from dsa_keras.export.audit import read_saved_model

    found = read_saved_model(case(tmp_path_factory, name).version).signature_def
    assert found.keys() - {"__saved_model_init_op"} == NAMES[name].keys()
    for signature, (inputs, outputs) in NAMES[name].items():
        assert found[signature].inputs.keys() == inputs
        ranks = {key: len(one.tensor_shape.dim) for key, one in found[signature].outputs.items()}
        assert ranks == outputs
        for key, one in found[signature].outputs.items():
            assert one.dtype == TYPES[key.rpartition("_")[2] if "class" not in key else key], key


def test_a_number_is_in_the_unit_of_the_targets(tmp_path):
    """Stars by the thousand: float32 has 7 digits of them, so a fixed 1e-5 would be refused."""
    from dsa_keras.export import reference
    from dsa_keras.export.litert import export_litert
    from dsa_keras.export.onnx_export import export_onnx
    from dsa_keras.export.verify import verify

    run = random_run(tmp_path / "run", target="number", scale=5000.0)
    path = export_saved_model(run, tmp_path / "model").path
    numbers = ask(load(path), "serving_default", text=TEXTS)["number"]
    assert np.abs(numbers).max() > 5000
    model = dsa_keras.load(run)
    np.testing.assert_allclose(numbers, reference.numbers(model, TEXTS), rtol=1e-5, atol=0.05)
    written = export_onnx(run, tmp_path / "model.onnx")
    assert written.difference <= 1e-5
    assert export_litert(run, tmp_path / "model.tflite") <= 1e-5
    assert verify(path, run_dir=run, onnx=written.path, serve=False).holds


@pytest.mark.parametrize(
    "encoder",
    some_slow(
        [name for name in ENCODERS.names() if name != "dsa-single"],
        {"dsa-multiple", "bilstm", "bilstm-self-attention"},
    ),
)
def test_every_encoder_is_exported(encoder, tmp_path):
    run = random_run(tmp_path / "run", encoder=encoder, train_embeddings=False)
    exported = export_saved_model(run, tmp_path / "model")
    assert_same_answers(exported.path, run, TEXTS)
    assert ("attention" in load(exported.path)) == (encoder not in ("bilstm", "cnn"))


def test_an_encoder_of_ones_own_that_neither_packs_nor_attends(mean_of_words, tmp_path, capsys):
    from dsa_keras.export.litert import export_litert
    from dsa_keras.export.onnx_export import export_onnx

    run = random_run(tmp_path / "run", encoder="mean-of-words", embedding_dim=6)
    exported = export_saved_model(run, tmp_path / "model")
    assert set(load(exported.path)) == {"serving_default", "embed", "tokens"}
    assert_same_answers(exported.path, run, TEXTS)
    export_onnx(run, tmp_path / "model.onnx")
    export_litert(run, tmp_path / "model.tflite")
    arguments = [str(tmp_path / "model"), "--run", str(run)]
    assert main(["verify", *arguments, "--onnx", str(tmp_path / "model.onnx")]) == 0
    printed = capsys.readouterr().out
    assert "all agree" in printed
    assert "attention" not in printed
    # A command imports nothing that it was not told to.
    mean_of_words()
    again = ["saved-model", str(run), "--out", str(tmp_path / "model")]
    assert main(again) == 2
    assert "unknown encoder 'mean-of-words'" in capsys.readouterr().err
    assert main([*again, "--import", "mean_of_words"]) == 0
    mean_of_words()
    assert main(["verify", *arguments, "--no-serve", "--import", "mean_of_words"]) == 0
    assert main([*again, "--import", "no_such_module"]) == 2
    error = capsys.readouterr().err
    assert "no_such_module: cannot be imported" in error
    assert error.count("\n") == 1


def test_batch_norm_is_folded_exactly(single):
    from dsa_keras.export.graph import ServedNetwork

    model = dsa_keras.load(single.run)
    network = ServedNetwork(model.network)
    vectors = np.random.default_rng(0).normal(size=(50, network.units)).astype("float32")
    logits = np.array(model.network.head(vectors, training=False), np.float64)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True)
    assert np.ptp(expected[:, 0]) > 0.1
    np.testing.assert_allclose(network.numbers([vectors]).numpy(), expected, atol=1e-6)


def test_only_what_answers_is_stored(single):
    import tensorflow as tf

    names = tf.train.list_variables(str(single.version / "variables" / "variables"))
    stored = sum(int(np.prod(shape)) for name, shape in names if "saved" in name)
    weights = dsa_keras.load(single.run).network.model.weights
    norms = [one for one in weights if "batch_norm" in one.path]
    assert norms
    assert stored == sum(int(np.prod(one.shape)) for one in weights if "batch_norm" not in one.path)


ODD_TEXTS = [
    b"",
    b"   ",
    b"\xff\xfe bad \xc3",
    b"\x00",
    b"good\x00film",
    b"good " * 100_000,
    "\u2028\ufeff".encode(),
    b"<pad>",
    b"good",
]


def test_no_string_changes_the_answer_of_its_neighbours(served):
    together = ask(served, "serving_default", text=ODD_TEXTS)["probabilities"]
    vectors = ask(served, "embed", text=ODD_TEXTS)["vector"]
    assert np.isfinite(together).all()
    for number, text in enumerate(ODD_TEXTS):
        alone = ask(served, "serving_default", text=[text])["probabilities"][0]
        np.testing.assert_allclose(together[number], alone, atol=1e-5)
    assert not vectors[0].any()
    assert not vectors[1].any()
    assert vectors[-1].any()


def test_long_texts_are_cut_at_the_documented_length(served):
    from dsa_keras.data import MAX_WORDS

    limit = ["good " * MAX_WORDS, "good " * MAX_WORDS + "bad film " * 50]
    vectors = ask(served, "embed", text=limit)["vector"]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    short = ask(served, "embed", text=["good " * (MAX_WORDS - 1) + "bad"])["vector"]
    assert np.abs(short - vectors[:1]).max() > 0
    assert ask(served, "attention", text=limit[1:])["lengths"].tolist() == [MAX_WORDS]


def test_a_batch_of_none_is_answered_with_none(served):
    for name in ("serving_default", "embed", "attention"):
        for value in ask(served, name, text=[]).values():
            assert len(value) == 0
    answer = ask(served, "tokens", word_ids=np.zeros((0, 0), np.int32))
    assert answer["probabilities"].shape == (0, 2)


def test_padding_as_a_word_is_unknown_where_the_tokenizer_keeps_it(tmp_path):
    run = random_run(tmp_path / "run", tokenizer="whitespace")
    signatures = load(export_saved_model(run, tmp_path / "model").path)
    got = ask(signatures, "embed", text=["good <pad> film", "good nosuchword film", "good film"])
    np.testing.assert_allclose(got["vector"][0], got["vector"][1], atol=1e-6)
    assert np.abs(got["vector"][0] - got["vector"][2]).max() > 1e-4
    assert not ask(signatures, "embed", text=[" "])["vector"].any()


def test_ids_that_no_word_has_are_the_unknown_word(served):
    ids = np.array([[-5, 2, 10**9], [1, 2, 1]], np.int32)
    answer = ask(served, "tokens", word_ids=ids)
    np.testing.assert_allclose(answer["vector"][0], answer["vector"][1], atol=1e-6)


def test_padding_between_words_is_kept(single, served):
    ids = np.array([[2, 0, 0, 3, 0, 0], [2, 3, 4, 5, 6, 7]], np.int32)
    expected = np.array(dsa_keras.load(single.run).network.encoder(ids, training=False))
    got = ask(served, "tokens", word_ids=ids)["vector"]
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_a_batch_of_many_groups_keeps_its_order(single, served):
    rng = np.random.default_rng(5)
    texts = ["good bad film the " * rng.integers(0, 60) + f"{n}" for n in range(40)]
    together = ask(served, "attention", text=texts)
    for number in (0, 7, 39):
        alone = ask(served, "attention", text=texts[number : number + 1])
        words = alone["weights"].shape[-1]
        np.testing.assert_allclose(
            together["weights"][number, ..., :words], alone["weights"][0], atol=1e-5
        )
        assert not together["weights"][number, ..., words:].any()


@given(texts=st.lists(st.binary(max_size=40) | st.text(max_size=30), max_size=5))
def test_any_bytes_are_answered(served, texts):
    answer = ask(served, "serving_default", text=texts)
    assert answer["probabilities"].shape == (len(texts), 2)
    np.testing.assert_allclose(answer["probabilities"].sum(-1), 1, atol=1e-5)


def test_a_pair_needs_both_sentences(pair):
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match="as many"):
        ask(load(pair.version), "serving_default", premise=["a", "b"], hypothesis=["c"])


def test_every_operation_is_stock(single):
    from dsa_keras.export.audit import operations

    found = operations(single.version)
    assert {"LookupTableFindV2", "UnicodeTranscode", "MatMul"} <= found
    assert not any("PyFunc" in name or "Random" in name or "Dropout" in name for name in found)


@pytest.mark.parametrize("kind", ["python", "xla"])
def test_the_audit_finds_what_tf_serving_refuses(kind, tmp_path):
    import tensorflow as tf

    from dsa_keras.export.audit import operations

    def python(x):
        return tf.py_function(lambda y: y, [x], tf.float32)

    module = tf.Module()
    module.call = tf.function(
        python if kind == "python" else lambda x: x + 1,
        input_signature=[tf.TensorSpec([2], tf.float32)],
        jit_compile=kind == "xla",
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.call)
    with pytest.raises(RunError, match="EagerPyFunc" if kind == "python" else "XLA"):
        operations(tmp_path)


def test_the_manifest_accounts_for_every_file(either):
    from dsa_keras.export.versions import version_manifest

    version_manifest(either.version).check_all()
    manifest = json.loads((either.version / "assets.extra" / "manifest.json").read_text())
    files = {
        path.relative_to(either.version).as_posix()
        for path in either.version.rglob("*")
        if path.is_file()
    }
    assert set(manifest["files"]) == files - {"assets.extra/manifest.json"}
    assert "fingerprint.pb" in files
    config = dsa_keras.load(either.run).config
    assert manifest["run"]["model"]["encoder"]["name"] == "dsa-single"
    assert manifest["run"] == json.loads(json.dumps(config.to_dict()))
    assert manifest["metrics"][config.monitor.key] == 0.5
    assert manifest["name"] == either.version.parent.name
    assert manifest["precision"] == "float32"
    assert manifest["change"] is None
    assert manifest["max_words"] == 10_000
    lines = (either.version / "assets" / "vocabulary.txt").read_text().split("\n")
    assert manifest["vocabulary_size"] == len(lines) - 1
    assert manifest["versions"]["tensorflow"]
    assert manifest["version"] == 1


def test_a_changed_file_is_noticed(single, tmp_path):
    import shutil

    from dsa_keras.export.versions import version_manifest

    copy = tmp_path / "1"
    shutil.copytree(single.version, copy)
    manifest = version_manifest(copy)
    manifest.check_all()
    (copy / "assets" / "more.txt").write_text("more\n")
    with pytest.raises(RunError, match=r"more\.txt: does not belong here"):
        manifest.check_all()
    (copy / "assets" / "more.txt").unlink()
    with (copy / "assets" / "vocabulary.txt").open("a") as file:
        file.write("more\n")
    with pytest.raises(RunError, match=r"vocabulary\.txt: is not the file"):
        manifest.check_all()
    (copy / "assets" / "vocabulary.txt").unlink()
    with pytest.raises(RunError, match=r"vocabulary\.txt: is missing"):
        manifest.check_all()


def test_warm_up_requests_are_answered(either):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    from dsa_keras.export.warmup import SIZES, WARMUP

    signatures = load(either.version)
    records = list(tf.data.TFRecordDataset(str(either.version / WARMUP)).as_numpy_iterator())
    assert len(records) == 3 * len(SIZES) <= 1000
    seen = set()
    for record in records:
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == either.version.parent.name
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        name = request.model_spec.signature_name
        answer = ask(signatures, name, **inputs)
        size = len(next(iter(inputs.values())))
        assert all(len(value) == size for value in answer.values())
        seen.add((name, size))
    assert seen == {
        (name, batch) for name in ("serving_default", "embed", "attention") for batch, _ in SIZES
    }


def test_the_next_free_number_is_taken_and_none_is_overwritten(single, tmp_path, capsys):
    out = tmp_path / "model"
    (out / "7").mkdir(parents=True)
    (out / "9-old").mkdir()
    assert main(["saved-model", str(single.run), "--out", str(out)]) == 0
    assert f"{out / '8'}: " in capsys.readouterr().out
    before = (out / "8" / "saved_model.pb").stat().st_mtime_ns
    assert main(["saved-model", str(single.run), "--out", str(out), "--version", "8"]) == 2
    assert "the version exists" in capsys.readouterr().err
    assert (out / "8" / "saved_model.pb").stat().st_mtime_ns == before
    assert main(["saved-model", str(single.run), "--out", str(out), "--version", "0"]) == 2
    assert "Give a number from 1" in capsys.readouterr().err


def test_a_killed_export_leaves_no_version(single, tmp_path):
    out = tmp_path / "model"
    code = (
        "import os, signal, sys\n"
        "from dsa_keras.manifest import Manifest\n"
        "Manifest.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from dsa_keras.commands.main import main\n"
        "main(['export', 'saved-model', sys.argv[1], '--out', sys.argv[2]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, single.run, out], cwd=ROOT, check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == b""  # nor does TensorFlow speak of absent GPUs
    (left,) = out.iterdir()
    assert left.name.startswith(".1-")
    assert (left / "saved_model.pb").exists()
    assert export_saved_model(single.run, out).path == out / "1"
    assert [path.name for path in out.iterdir()] == ["1"]


@pytest.mark.parametrize(
    ("precision", "bytes_each"), some_slow([("float16", 2), ("int8", 1)], {("float16", 2)})
)
def test_word_vectors_in_fewer_bits(single, tmp_path, precision, bytes_each, capsys):
    import tensorflow as tf

    out = tmp_path / "model"
    arguments = ["saved-model", str(single.run), "--out", str(out), "--precision", precision]
    assert main(arguments) == 0
    assert f"{precision} word vectors: dev accuracy" in capsys.readouterr().out
    change = json.loads((out / "1" / "assets.extra" / "manifest.json").read_text())["change"]
    assert change["figure"] == "accuracy"
    assert 0 < change["largest"] < 0.1
    assert change["examples"] > 0
    reader = tf.train.load_checkpoint(str(out / "1" / "variables" / "variables"))
    kinds = set(reader.get_variable_to_dtype_map().values())
    assert tf.as_dtype(precision) in kinds
    assert tf.as_dtype(precision).size == bytes_each
    words = ["good film", "bad"]
    small = ask(load(out / "1"), "embed", text=words)["vector"]
    np.testing.assert_allclose(
        small, ask(load(single.version), "embed", text=words)["vector"], atol=0.05
    )


def test_what_fewer_bits_cost_a_regression_is_its_monitored_figure(tmp_path_factory, tmp_path):
    from dsa_keras.export.quantization import Change

    one = case(tmp_path_factory, "pair-number")
    change = export_saved_model(one.run, tmp_path / "model", precision="int8").change
    assert change.figure == "spearman"
    assert "dev spearman" in str(change)
    dev = dsa_keras.load(one.run).config.dataset()["dev"]
    assert change.examples == len(dev) > 0
    assert change.largest > 0
    objective = dsa_keras.load(one.run).objective
    same = Change.measured(objective, dev.targets, dev.targets, dev.targets)
    assert (same.before, same.after, same.largest) == (1, 1, 0)
    turned = Change.measured(objective, dev.targets, -dev.targets, dev.targets)
    assert turned.after == pytest.approx(-1)
    assert turned.largest == 2 * np.abs(dev.targets).max()
    assert change.before != 0.5  # that of the dev split as it is, not the one of the records


def test_more_words_than_were_trained_on(tmp_path):
    from dsa_keras.data import Vocabulary

    run = random_run(tmp_path / "run", files=True)
    model = dsa_keras.load(run)
    Vocabulary(["good", "shiny", "unseen"]).save(tmp_path / "more.txt")
    row = " ".join(["0.5"] * 8)
    (tmp_path / "vectors.txt").write_text(f"shiny {row}\ngood {row}\n")
    exported = export_saved_model(
        run,
        tmp_path / "model",
        vocabulary=tmp_path / "more.txt",
        vectors=[tmp_path / "vectors.txt"],
    )
    assert exported.words == len(model.vocabulary) + 2
    assert "1 of 2 words found" in exported.report
    signatures = load(exported.path)
    vectors = ask(signatures, "embed", text=["shiny", "unseen", "nosuchword", "good"])["vector"]
    assert len({tuple(row) for row in vectors}) == 4
    np.testing.assert_allclose(vectors[3:], model.encode(["good"]), atol=1e-5)
    shiny = np.full((1, 8), 0.5, np.float32)
    model.network.assign_vectors(np.repeat(shiny, len(model.vocabulary), 0))
    expected = np.array(model.network.encoder(np.array([[2]]), training=False))
    np.testing.assert_allclose(vectors[:1], expected, atol=1e-5)


def test_words_are_added_to_fixed_vectors_from_files_only(single, tmp_path):
    from dsa_keras.data import Vocabulary

    Vocabulary(["shiny"]).save(tmp_path / "more.txt")
    with pytest.raises(ConfigError, match="random word vectors"):
        export_saved_model(
            single.run, tmp_path / "m", vocabulary=tmp_path / "more.txt", vectors=["v.txt"]
        )
    with pytest.raises(ConfigError, match="--vocabulary FILE and --vectors FILE together"):
        export_saved_model(single.run, tmp_path / "m", vocabulary=tmp_path / "more.txt")
    assert not (tmp_path / "m").exists()


def test_precision_needs_the_dev_split(tmp_path):
    from dataclasses import replace

    from dsa_keras.runs import Run

    run = Run(random_run(tmp_path / "run"))
    config = run.config()
    for data, hint in (
        ({"data_dir": str(tmp_path), "options": {"path": "gone.csv"}}, "Give its folder with"),
        ({"data_dir": None, "options": None}, "made in Python. Leave out --precision"),
    ):
        run.save_config(replace(config, task="file", data=data))
        with pytest.raises(DataError, match=hint):
            export_saved_model(run.path, tmp_path / "model", precision="int8")
    assert not list((tmp_path / "model").glob("*"))


@pytest.mark.parametrize(
    ("command", "out"), [("saved-model", "new/model"), ("onnx", "m.onnx"), ("litert", "m.tflite")]
)
def test_a_folder_that_cannot_be_written_to_is_told_at_once(command, out, unwritable, capsys):
    assert main([command, "no-run", "--out", str(unwritable / out)]) == 2
    error = capsys.readouterr().err
    assert f"no permission to write to the folder {unwritable}" in error
    assert error.count("\n") == 1
    assert "no-run" not in error


def test_a_file_is_no_folder_to_write_to(tmp_path, capsys):
    (tmp_path / "file").touch()
    for command, out in (
        ("saved-model", "file"),
        ("saved-model", "file/m"),
        ("onnx", "file/m.onnx"),
    ):
        assert main([command, "no-run", "--out", str(tmp_path / out)]) == 2
        assert f"{tmp_path / 'file'}: is not a folder" in capsys.readouterr().err


@pytest.fixture
def unwritable():
    """A folder that this process may not write to, though it can look into it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        root = os.getuid() == 0
        if root:  # who may write anywhere
            os.setresuid(65534, 65534, 0)
        try:
            yield folder
        finally:
            if root:
                os.setresuid(0, 0, 0)
            folder.chmod(0o755)


MEAN_OF_WORDS = """
from dataclasses import dataclass

import keras
from keras import ops

from dsa_keras.encoders import Encoder, register_encoder


class Mean(keras.layers.Layer):
    def call(self, inputs, mask=None):
        flags = ops.expand_dims(ops.cast(mask, "float32"), -1)
        return ops.sum(inputs * flags, axis=1) / ops.maximum(ops.sum(flags, axis=1), 1)

    def compute_mask(self, inputs, mask=None):
        return None


@register_encoder("mean-of-words")
@dataclass(frozen=True)
class MeanOfWords(Encoder):
    packs = False
    attends = False
    units: int = 7

    def layers(self):
        return [Mean(name="mean"), keras.layers.Dense(self.units, name="dense")]

    def encode(self, layers, words):
        return layers["dense"](layers["mean"](words))
"""


@pytest.fixture
def mean_of_words(tmp_path, monkeypatch):
    """The module of an encoder that somebody else wrote; gives what forgets it."""
    (tmp_path / "mean_of_words.py").write_text(MEAN_OF_WORDS)
    monkeypatch.syspath_prepend(tmp_path)

    def forget():
        ENCODERS._found.pop("mean-of-words", None)
        sys.modules.pop("mean_of_words", None)

    importlib.import_module("mean_of_words")
    yield forget
    forget()


def test_int8_rows_have_a_scale_of_their_own():
    from dsa_keras.export.quantization import encode

    rows = np.array([[0.0, 0.0], [1e-3, -5e-4], [100.0, 50.0]])
    table, scales = encode(rows, "int8")
    assert table.dtype == np.int8
    assert table[:, 0].tolist() == [0, 127, 127]
    np.testing.assert_allclose(table * scales[:, None], rows, rtol=0.01)


@pytest.mark.slow
def test_saved_model_cli_as_the_readme_prints_it(single):
    tool = str(Path(sys.executable).parent / "saved_model_cli")
    shared = ["--dir", str(single.version), "--tag_set", "serve"]
    shown = subprocess.run(
        [tool, "show", *shared, "--signature_def", "serving_default"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in ("inputs['text']", "outputs['label']", "outputs['probabilities']"):
        assert name in shown
    ran = subprocess.run(
        [
            *(tool, "run", *shared, "--signature_def", "serving_default"),
            *("--input_exprs", "text=['a good film', 'a bad film']"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Result for output key label:" in ran
    assert "negative" in ran or "positive" in ran
