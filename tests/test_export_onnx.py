"""ONNX and LiteRT: the same answers, and a tokeniser without TensorFlow, the graph's equal."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from exported import CASES, case, random_run
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import some_slow

from dsa_keras.data import TOKENIZERS, tokenize
from dsa_keras.errors import ConfigError, RunError
from export.main import main
from export.onnx_export import export_onnx
from export.onnx_runtime import OnnxModel, Tokenizer

GOLDEN = Path(__file__).parent / "golden" / "tokenizers"

# tf2onnx asks NumPy and TensorFlow in ways they are about to drop.


_MADE = {}


def onnx_of(factory, name):
    if name not in _MADE:
        _MADE[name] = factory.mktemp("onnx") / f"{name}.onnx"
        export_onnx(case(factory, name).run, _MADE[name])
    return _MADE[name]


@functools.cache
def python_tokenizer(name):
    from export.rules import python_rules

    return Tokenizer(json.loads(json.dumps(python_rules(name))))


@pytest.mark.parametrize("name", CASES)
def test_onnx_answers_as_keras_does(name, tmp_path_factory):
    from export.source import Source

    source = Source.load(case(tmp_path_factory, name).run)
    model = OnnxModel(onnx_of(tmp_path_factory, name))
    texts = case(tmp_path_factory, name).texts
    expected = source.answers(texts)
    got = model.probabilities(texts, batch_size=3)
    np.testing.assert_allclose(got, expected["serving_default"]["probabilities"], atol=1e-5)
    first = [text if isinstance(text, str) else text[0] for text in texts]
    np.testing.assert_allclose(model.encode(first), expected["embed"]["vector"], atol=1e-5)
    answers = model.predict(texts)
    labels = [answer["label"] for answer in answers]
    assert labels == expected["serving_default"]["label"].tolist()
    assert list(answers[0]["probabilities"]) == list(source.config.class_names)
    assert model.predict([]) == []


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


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_python_tokenizer_splits_the_golden_texts(name):
    tokenizer = python_tokenizer(name)
    files = [file.read_text(encoding="utf-8") for file in GOLDEN.glob("*.jsonl")]
    rows = [json.loads(line) for text in files for line in text.strip().split("\n")]
    assert len(rows) > 50
    for row in rows:
        assert tokenizer(row["text"]) == row[name], row["text"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_python_tokenizer_knows_every_kind_of_character(name):
    points = [*range(0x3000), *range(0x3000, 0xD800, 41), *range(0xE000, 0x20000, 11)]
    texts = [f"a{chr(point)}B {chr(point)}" for point in points]
    tokenizer = python_tokenizer(name)
    for text, words in zip(texts, tokenize(texts, name), strict=True):
        assert tokenizer(text) == words, ascii(text)


TEXT = st.text(
    st.sampled_from(
        "aAnNtTsSdD\u03a3\u03c3\u0130\u2019'\"`.,-—…!?()[] \t\n"
        "\u200d\u200c\u00ad\U0001f469\U0001f1e9é\u0301"
    )
    | st.characters(),
    max_size=24,
)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(texts=st.lists(TEXT, min_size=1, max_size=20))
def test_the_python_tokenizer_splits_any_text_as_the_graph_does(name, texts):
    tokenizer = python_tokenizer(name)
    assert [tokenizer(text) for text in texts] == tokenize(texts, name)


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


def test_a_model_that_differs_is_not_written(tmp_path_factory, tmp_path, monkeypatch):
    import onnx

    other = onnx.load(onnx_of(tmp_path_factory, "single"))
    # The last bias of the model has an entry per class.
    last = [node for node in other.graph.node if node.op_type in ("Add", "Gemm")][-1]
    bias = next(one for one in other.graph.initializer if one.name == last.input[-1])
    assert list(bias.dims) == [2]
    bias.raw_data = np.array([1.0, 0.0], np.float32).tobytes()
    monkeypatch.setattr("export.onnx_export._converted", lambda source: other)
    with pytest.raises(RunError, match="differs from Keras"):
        export_onnx(case(tmp_path_factory, "single").run, tmp_path / "m" / "model.onnx")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(("command", "suffix"), [("onnx", "onnx"), ("litert", "tflite")])
def test_names_are_checked_before_anything_is_read(command, suffix, tmp_path, capsys):
    assert main([command, "no-run", "--out", "model.bin"]) == 2
    assert f"must end in .{suffix}" in capsys.readouterr().err
    there = tmp_path / f"model.{suffix}"
    there.write_text("kept")
    assert main([command, "no-run", "--out", str(there)]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert there.read_text() == "kept"


@pytest.mark.parametrize("name", some_slow(CASES, {"pair"}))
def test_litert_answers_as_keras_does(name, tmp_path_factory, tmp_path, capsys):
    run = case(tmp_path_factory, name).run
    out = tmp_path / "model.tflite"
    assert main(["litert", str(run), "--out", str(out)]) == 0
    assert "as Keras to" in capsys.readouterr().out
    assert out.stat().st_size > 1000


def test_a_litert_model_that_differs_is_not_written(tmp_path_factory, tmp_path, monkeypatch):
    from export import litert
    from export.source import Source

    keras.utils.set_random_seed(2)  # every test starts from 1
    other = random_run(tmp_path / "other", **CASES["single"])
    content = litert._converted(Source.load(other))
    monkeypatch.setattr(litert, "_converted", lambda source: content)
    with pytest.raises(RunError, match="differs from Keras"):
        litert.export_litert(case(tmp_path_factory, "single").run, tmp_path / "model.tflite")
    assert not (tmp_path / "model.tflite").exists()


def test_too_large_a_model_is_refused(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setattr("export.onnx_export._LIMIT", 1000)
    with pytest.raises(ConfigError, match="an ONNX file at most"):
        export_onnx(case(tmp_path_factory, "single").run, tmp_path / "model.onnx")
