"""`python -m export onnx`: the network on word ids as ONNX, and a tokeniser without TensorFlow.

tf2onnx writes an invalid model and only logs it when it meets an operation that it does not know,
so the model is checked, opened and compared with Keras before any file gets its name.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.data import MAX_WORDS
from dsa_keras.data.dataset import Text
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.files import write_json, write_text, written_aside
from export.outputs import new_file

if TYPE_CHECKING:
    from export.quantization import Change
    from export.source import Source

OPSET = 18
"""The newest that tf2onnx writes."""
TOLERANCE = 1e-5
"""How far float32 answers may be from those of Keras."""
RUNNER = "dsa_onnx.py"
"""Name of the tokeniser and runner beside the model."""
_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class OnnxFile:
    """What was written.

    Attributes:
        path: the model.
        size: its bytes.
        difference: the largest from Keras, before quantisation.
        change: what quantisation changed, if it was asked for.
    """

    path: Path
    size: int
    difference: float
    change: Change | None


def export_onnx(
    run_dir: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    quantize: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> OnnxFile:
    """Writes `out`, and beside it its `.json`, its `.vocabulary.txt` and `dsa_onnx.py`.

    Args:
        run_dir: the run folder.
        out: the file to write, which must not exist.
        quantize: `int8` stores and multiplies the weights in 8 bits.
        data_dir: folder of the data, if it moved; its dev split measures what `quantize` costs.

    Raises:
        RunError: if the ONNX model does not answer as Keras does; nothing is written.
    """
    out = new_file(out, ".onnx")
    from export.source import Source

    source = Source.load(run_dir)
    size = sum(int(np.prod(weight.shape)) * 4 for weight in source.classifier.weights)
    if size > _LIMIT:
        raise ConfigError(
            f"the weights take {size / 1e9:.1f} GB, an ONNX file at most 2.1",
            where=run_dir,
            hint="Train with fewer words, or export a SavedModel",
        )
    from export import onnx_runtime
    from export.rules import python_rules

    model = _converted(source)
    settings = {
        "format": 1,
        "task": source.config.task,
        "class_names": list(source.config.class_names),
        "is_pair": source.is_pair,
        "max_words": MAX_WORDS,
        "quantized": quantize,
        "tokenizer": python_rules(source.config.training.tokenizer),
    }
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        plain.write_bytes(model.SerializeToString())
        _write_companions(plain, settings, source)
        difference = _difference(source, plain)
        chosen, change = plain, None
        if quantize is not None:
            chosen = Path(scratch) / "quantized.onnx"
            _quantize(plain, chosen)
            _write_companions(chosen, settings, source)
            dev = source.dev(data_dir)
            from export.quantization import Change

            before, after = source.probabilities(dev.texts), _probabilities(chosen, dev.texts)
            change = Change.measured(before, after, dev.labels)
        _write_companions(out, settings, source)
        runner = Path(onnx_runtime.__file__).read_text(encoding="utf-8")
        write_text(out.parent / RUNNER, runner)
        with written_aside(out) as aside:
            aside.write_bytes(chosen.read_bytes())
    return OnnxFile(out, out.stat().st_size, difference, change)


def _converted(source: Source) -> Any:
    """The ONNX model of the network on ids, checked by onnx."""
    import onnx
    import tensorflow as tf
    import tf2onnx

    from export.graph import Network, ids_function

    function, specs = ids_function(Network(source.classifier, source.vectors))
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    model, _ = tf2onnx.convert.from_function(
        tf.function(function, input_signature=specs, autograph=False),
        input_signature=specs,
        opset=OPSET,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _write_companions(path: Path, settings: dict[str, Any], source: Source) -> None:
    write_json(path.with_suffix(".json"), settings)
    source.vocabulary.save(path.with_suffix(".vocabulary.txt"))


def _difference(source: Source, path: Path) -> float:
    """The largest difference from Keras on sentences of many lengths."""
    from export.onnx_runtime import OnnxModel
    from export.verify import example_texts

    texts = example_texts(source.vocabulary, source.is_pair)
    model = OnnxModel(path)
    answers = source.answers(texts)
    sentences = [text if isinstance(text, str) else text[0] for text in texts]
    largest = max(
        float(np.abs(model.probabilities(texts) - answers["tokens"]["probabilities"]).max()),
        float(np.abs(model.encode(sentences) - answers["embed"]["vector"]).max()),
    )
    if not largest <= TOLERANCE:
        raise RunError(
            f"the ONNX model differs from Keras by {largest:.1e}, more than {TOLERANCE:.0e}",
            where=source.run.path,
            hint="No file was written; please report this",
        )
    return largest


def _probabilities(path: Path, texts: Sequence[Text]) -> np.ndarray:
    from export.onnx_runtime import OnnxModel

    return OnnxModel(path).probabilities(texts)


def _quantize(plain: Path, quantized: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().setLevel(logging.ERROR)
    quantize_dynamic(plain, quantized, weight_type=QuantType.QInt8)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "onnx",
        help="an ONNX file, with a tokeniser that needs no TensorFlow",
        description="Writes MODEL.onnx on word ids, and beside it MODEL.json, MODEL.vocabulary.txt "
        "and dsa_onnx.py, which runs it on plain text with numpy and onnxruntime alone.",
        epilog=example("python -m export onnx runs/demo --out onnx/demo.onnx"),
    )
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL.onnx")
    parser.add_argument(
        "--quantize",
        choices=("int8",),
        help="weights in 8 bits; what it costs is measured on the dev split and printed",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the dev split is, if the data moved"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    new_file(args.out, ".onnx")
    load_tensorflow(args.run_dir)
    written = export_onnx(args.run_dir, args.out, quantize=args.quantize, data_dir=args.data_dir)
    print(
        f"{written.path}: {written.size / 1e6:,.1f} MB, as Keras to {written.difference:.1e}"
        f"{' before quantisation' if written.change else ''}"
    )
    if written.change is not None:
        print(f"{args.quantize}: {written.change}")
    return 0
