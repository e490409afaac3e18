"""ONNX and LiteRT: the same answers, and a tokeniser without TensorFlow, the graph's equal."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from exported import CASES, case, random_run
from hypothesis import given
from hypothesis import strategies as st
from one_command import export as main
from slow_parameters import some_slow

import dsa_keras
from dsa_keras.data import TOKENIZERS, tokenize
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.export.onnx_export import export_onnx
from dsa_keras.export.onnx_runtime import OnnxModel, Tokenizer

GOLDEN = Path(__file__).parent / "golden" / "tokenizers"

# tf2onnx asks NumPy and TensorFlow in ways they are about to drop.


_MADE = {}


def onnx_of(factory, name):
    if name not in _MADE:
        _MADE[name] = factory.mktemp("onnx") / f"{name}.onnx"
        export_onnx(case(factory, name).run, _MADE[name])
    return _MADE[name]


every_way_to_split = pytest.mark.parametrize(
    ("name", "lowercase"),
    [*((name, False) for name in TOKENIZERS), ("ptb", True), ("whitespace", True)],
)


@functools.cache
def python_tokenizer(name, lowercase=False):
    from dsa_keras.export.rules import python_rules

    return Tokenizer(json.loads(json.dumps(python_rules(name, lowercase))))


@pytest.mark.parametrize("name", CASES)
def test_onnx_answers_as_keras_does(name, tmp_path_factory):
    from dsa_keras.export import reference

    source = dsa_keras.load(case(tmp_path_factory, name).run)
    model = OnnxModel(onnx_of(tmp_path_factory, name))
    texts = case(tmp_path_factory, name).texts
    expected = reference.answers(source, texts)
    output = source.objective.output
    got = model.numbers(texts, batch_size=3)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected["serving_default"][output], atol=1e-5)
    first = [text if isinstance(text, str) else text[0] for text in texts]
    np.testing.assert_allclose(model.encode(first), expected["embed"]["vector"], atol=1e-5)
    answers = model.predict(texts)
    assert model.predict([]) == []
    assert model.encode([]).shape == (0, source.dimension)
    if output == "number":
        assert answers == [{"number": value} for value in model.numbers(texts).tolist()]
        return
    labels = [answer["label"] for answer in answers]
    assert labels == expected["serving_default"]["label"].tolist()
    assert [list(answer) for answer in answers] == [["label", "probabilities"]] * len(texts)
    assert list(answers[0]["probabilities"]) == list(source.objective.class_names)


@pytest.mark.parametrize(("name", "loops"), [("single", 1), ("pair", 0)])
def test_routing_stays_a_loop_and_shapes_are_free(name, loops, tmp_path_factory):
    import onnx

    model = onnx.load(onnx_of(tmp_path_factory, name))
    onnx.checker.check_model(model)
    assert sum(node.op_type == "Loop" for node in model.graph.node) == loops
    assert model.opset_import[0].version == 18
    for one in model.graph.input:
        assert not any(size.dim_value for size in one.type.tensor_type.shape.dim)


def test_the_files_beside_the_model_need_no_tensorflow(tmp_path_factory):
    path = onnx_of(tmp_path_factory, "single")
    names = {"dsa_onnx.py", "single.json", "single.onnx", "single.vocabulary.txt"}
    assert {one.name for one in path.parent.iterdir()} == names
    code = (
        "import sys, runpy\n"
        "for name in ('tensorflow', 'keras', 'dsa_keras', 'export', 'tf2onnx'):\n"
        "    sys.modules[name] = None\n"
        "sys.argv = ['dsa_onnx.py', 'single.onnx', 'a good film', '']\n"
        "runpy.run_path('dsa_onnx.py', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=path.parent, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == OnnxModel(path).predict(["a good film", ""])


def old_settings(settings):
    """What `MODEL.json` of format 1 held, written before there was anything but classifiers."""
    kept = ("task", "max_words", "quantized", "tokenizer")
    return {
        "format": 1,
        "class_names": settings["answers"]["names"],
        "is_pair": len(settings["inputs"]) == 2,
        **{name: settings[name] for name in kept},
    }


@pytest.fixture
def copied(tmp_path_factory, tmp_path):
    """Copies an exported ONNX model; gives the path of the model."""

    def copy(name):
        path = onnx_of(tmp_path_factory, name)
        shutil.copytree(path.parent, tmp_path / "onnx")
        return tmp_path / "onnx" / path.name

    return copy


@pytest.mark.parametrize("name", ["single", "pair"])
def test_files_of_older_exports_answer_as_before(name, tmp_path_factory, copied):
    texts = case(tmp_path_factory, name).texts
    first = [text if isinstance(text, str) else text[0] for text in texts]
    path = copied(name)
    expected = OnnxModel(path)
    settings = path.with_suffix(".json")
    settings.write_text(json.dumps(old_settings(json.loads(settings.read_text()))))
    model = OnnxModel(path)
    assert model.predict(texts) == expected.predict(texts)
    np.testing.assert_array_equal(model.encode(first), expected.encode(first))


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("suffix", [".onnx", ".vocabulary.txt"])
def test_a_flipped_bit_is_refused_in_one_line(suffix, copied, capsys):
    path = copied("single")
    OnnxModel(path)
    flip(path.with_suffix(suffix), len(path.with_suffix(suffix).read_bytes()) // 2)
    message = rf"single\{suffix.replace('.t', '[.]t')}: is not the file that was exported"
    with pytest.raises(ValueError, match=message) as error:
        OnnxModel(path)
    assert "\n" not in str(error.value)
    done = subprocess.run(
        [sys.executable, "dsa_onnx.py", "single.onnx", "a film"],
        cwd=path.parent,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{error.value}\n".replace(f"{path.parent}/", "")


def test_files_that_were_renamed_together_still_belong_together(copied):
    path = copied("single")
    expected = OnnxModel(path).predict(["a good film"])
    for suffix in (".onnx", ".json", ".vocabulary.txt"):
        path.with_suffix(suffix).rename(path.parent / f"other{suffix}")
    assert OnnxModel(path.parent / "other.onnx").predict(["a good film"]) == expected


def test_the_runner_makes_answers_of_what_the_settings_say(copied):
    """An objective that is added says how its answers are made; the runner needs no change."""
    path = copied("single")
    rows = OnnxModel(path).numbers(["a good film"]).tolist()
    settings = json.loads(path.with_suffix(".json").read_text())
    for answers, expected in (
        ({"output": "probabilities"}, {"probabilities": rows[0]}),
        (
            {"output": "probabilities", "names": ["x", "y"]},
            {"probabilities": {"x": rows[0][0], "y": rows[0][1]}},
        ),
        (
            {"output": "probabilities", "names": ["x", "y"], "highest": "winner"},
            {
                "winner": "x" if rows[0][0] > rows[0][1] else "y",
                "probabilities": {"x": rows[0][0], "y": rows[0][1]},
            },
        ),
    ):
        path.with_suffix(".json").write_text(json.dumps({**settings, "answers": answers}))
        assert OnnxModel(path).predict(["a good film"]) == [expected]


def test_the_runner_takes_pairs_from_a_shell(tmp_path_factory):
    path = onnx_of(tmp_path_factory, "pair-number")
    command = [sys.executable, "dsa_onnx.py", path.name]
    texts = ["a man runs", "he moves", "x", "y"]
    done = subprocess.run([*command, *texts], cwd=path.parent, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == OnnxModel(path).predict([("a man runs", "he moves"), ("x", "y")])
    done = subprocess.run([*command, *texts[:3]], cwd=path.parent, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "a text of this model is 2 sentences: premise, hypothesis\n"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_python_tokenizer_splits_the_golden_texts(name):
    tokenizer = python_tokenizer(name)
    files = [file.read_text(encoding="utf-8") for file in GOLDEN.glob("*.jsonl")]
    rows = [json.loads(line) for text in files for line in text.strip().split("\n")]
    assert len(rows) > 50
    for row in rows:
        assert tokenizer(row["text"]) == row[name], row["text"]


@every_way_to_split
def test_the_python_tokenizer_knows_every_kind_of_character(name, lowercase):
    points = [*range(0x3000), *range(0x3000, 0xD800, 41), *range(0xE000, 0x20000, 11)]
    texts = [f"a{chr(point)}B {chr(point)}" for point in points]
    tokenizer = python_tokenizer(name, lowercase)
    for text, words in zip(texts, tokenize(texts, name, lowercase), strict=True):
        assert tokenizer(text) == words, ascii(text)


TEXT = st.text(
    st.sampled_from(
        "aAnNtTsSdD\u03a3\u03c3\u0130\u2019'\"`.,-—…!?()[] \t\n"
        "\u200d\u200c\u00ad\U0001f469\U0001f1e9é\u0301"
    )
    | st.characters(),
    max_size=24,
)


@every_way_to_split
@given(texts=st.lists(TEXT, min_size=1, max_size=20))
def test_the_python_tokenizer_splits_any_text_as_the_graph_does(name, lowercase, texts):
    tokenizer = python_tokenizer(name, lowercase)
    assert [tokenizer(text) for text in texts] == tokenize(texts, name, lowercase)


def test_half_characters_are_replaced():
    assert python_tokenizer("whitespace")("a\ud83db") == tokenize(["a\ud83db"], "whitespace")[0]


def test_quantization_is_measured(tmp_path_factory, tmp_path, capsys):
    run = case(tmp_path_factory, "single").run
    out = tmp_path / "small.onnx"
    assert main(["onnx", str(run), "--out", str(out), "--quantize", "int8"]) == 0
    printed = capsys.readouterr().out
    assert "before quantisation" in printed
    assert "int8: dev accuracy" in printed
    assert json.loads((tmp_path / "small.json").read_text())["quantized"] == "int8"
    import onnx

    kinds = {node.op_type for node in onnx.load(out).graph.node}
    assert kinds & {"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear"}
    assert np.isfinite(OnnxModel(out).numbers(["a good film"])).all()


def test_quantization_of_a_regression_is_measured_by_its_figure(tmp_path_factory, tmp_path, capsys):
    run = case(tmp_path_factory, "number").run
    out = tmp_path / "small.onnx"
    assert main(["onnx", str(run), "--out", str(out), "--quantize", "int8"]) == 0
    assert "int8: dev spearman" in capsys.readouterr().out


def test_a_model_that_differs_is_not_written(tmp_path_factory, tmp_path, monkeypatch):
    import onnx

    other = onnx.load(onnx_of(tmp_path_factory, "single"))
    # The last bias of the model has an entry per class.
    last = [node for node in other.graph.node if node.op_type in ("Add", "Gemm")][-1]
    bias = next(one for one in other.graph.initializer if one.name == last.input[-1])
    assert list(bias.dims) == [2]
    bias.raw_data = np.array([1.0, 0.0], np.float32).tobytes()
    monkeypatch.setattr("dsa_keras.export.onnx_export._converted", lambda source: other)
    with pytest.raises(RunError, match="differs from Keras"):
        export_onnx(case(tmp_path_factory, "single").run, tmp_path / "m" / "model.onnx")
    assert not (tmp_path / "m").exists()


def test_nan_counts_as_a_difference_wherever_it_stands():
    from dsa_keras.export.reference import difference

    assert difference(np.array([np.nan, 1.0]), np.array([1.0, 1.0])) == np.inf
    assert difference(np.zeros((2, 1)), np.zeros((2, 2))) == np.inf
    assert difference(np.zeros((0, 2)), np.zeros((0, 2))) == 0
    assert difference(np.array([0.5, 0.25]), np.array([0.5, 0.75])) == 0.5
    # Above 1 it is a share of the largest.
    assert difference(np.array([400.0, 1.0]), np.array([400.0, 3.0])) == 0.005


def test_a_litert_model_that_says_nan_is_not_written(tmp_path_factory, tmp_path, monkeypatch):
    from dsa_keras.export import litert

    run = litert._run

    def broken(interpreter, inputs):
        return {name: value * np.nan for name, value in run(interpreter, inputs).items()}

    monkeypatch.setattr(litert, "_run", broken)
    with pytest.raises(RunError, match="differs from Keras by inf"):
        litert.export_litert(case(tmp_path_factory, "single").run, tmp_path / "model.tflite")
    assert not (tmp_path / "model.tflite").exists()


@pytest.mark.parametrize(("command", "suffix"), [("onnx", "onnx"), ("litert", "tflite")])
def test_names_are_checked_before_anything_is_read(command, suffix, tmp_path, capsys):
    assert main([command, "no-run", "--out", "model.bin"]) == 2
    assert f"must end in .{suffix}" in capsys.readouterr().err
    there = tmp_path / f"model.{suffix}"
    there.write_text("kept")
    assert main([command, "no-run", "--out", str(there)]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert there.read_text() == "kept"


@pytest.mark.parametrize("name", some_slow(CASES, {"pair", "number"}))
def test_litert_answers_as_keras_does(name, tmp_path_factory, tmp_path, capsys):
    run = case(tmp_path_factory, name).run
    out = tmp_path / "model.tflite"
    assert main(["litert", str(run), "--out", str(out)]) == 0
    assert "as Keras to" in capsys.readouterr().out
    assert out.stat().st_size > 1000


def test_a_litert_model_that_differs_is_not_written(tmp_path_factory, tmp_path, monkeypatch):
    from dsa_keras.export import litert

    keras.utils.set_random_seed(2)  # every test starts from 1
    other = random_run(tmp_path / "other", **CASES["single"])
    content = litert._converted(dsa_keras.load(other), other)
    monkeypatch.setattr(litert, "_converted", lambda model, run_dir: content)
    with pytest.raises(RunError, match="differs from Keras"):
        litert.export_litert(case(tmp_path_factory, "single").run, tmp_path / "model.tflite")
    assert not (tmp_path / "model.tflite").exists()


def test_too_large_a_model_is_refused(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setattr("dsa_keras.export.onnx_export._LIMIT", 1000)
    with pytest.raises(ConfigError, match="an ONNX file at most"):
        export_onnx(case(tmp_path_factory, "single").run, tmp_path / "model.onnx")
