"""`dsa-keras export onnx`: the network on word ids as ONNX, and a tokeniser without TensorFlow.

tf2onnx writes an invalid model and only logs it when it meets an operation that it does not know,
so the model is checked, opened and compared with Keras before any file gets its name.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.command_line import example, load_tensorflow, require_extra
from dsa_keras.data import MAX_WORDS
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.export.arguments import add_data_dir
from dsa_keras.export.outputs import new_file
from dsa_keras.files import write_json, write_text, written_aside
from dsa_keras.inputs import Inputs
from dsa_keras.options import add_run

if TYPE_CHECKING:
    from dsa_keras.export.quantization import Change
    from dsa_keras.sentence_model import SentenceModel

OPSET = 18
"""The newest that tf2onnx writes."""
TOLERANCE = 1e-5
"""How far float32 answers may be from those of Keras, see `export.reference.difference`."""
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
    """Writes `out`, and beside it `dsa_onnx.py`, its `.vocabulary.txt` and at last its `.json`.

    The `.json` has the sha256 of the model and its vocabulary, so that what reads them knows that
    they belong together.

    Args:
        run_dir: the run folder.
        out: the file to write, which must not exist.
        quantize: `int8` stores and multiplies the weights in 8 bits.
        data_dir: folder of the data, if it moved; its dev split measures what `quantize` costs.

    Raises:
        RunError: if the ONNX model does not answer as Keras does; nothing is written.
    """
    out = new_file(out, ".onnx")
    import dsa_keras

    model = dsa_keras.load(run_dir)
    size = sum(int(np.prod(weight.shape)) * 4 for weight in model.network.model.weights)
    if size > _LIMIT:
        raise ConfigError(
            f"the weights take {size / 1e9:.1f} GB, an ONNX file at most 2.1",
            where=run_dir,
            hint="Train with fewer words, or export a SavedModel",
        )
    from dsa_keras.export import onnx_runtime, reference
    from dsa_keras.export.rules import python_rules

    settings = {
        "format": 2,
        "task": model.config.task,
        "inputs": _inputs(model.inputs),
        "answers": model.objective.for_runner(),
        "max_words": MAX_WORDS,
        "quantized": quantize,
        "tokenizer": python_rules(model.tokenizer, model.text_encoder.lowercase),
    }
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        _write(plain, _converted(model).SerializeToString(), settings, model)
        difference = _difference(model, plain)
        if not difference <= TOLERANCE:
            raise RunError(
                f"the ONNX model differs from Keras by {difference:.1e}, more than {TOLERANCE:.0e}",
                where=run_dir,
                hint="No file was written; please report this",
            )
        chosen, change = plain, None
        if quantize is not None:
            from dsa_keras.export.quantization import Change

            chosen = Path(scratch) / "quantized.onnx"
            _quantize(plain, chosen)
            _write(chosen, chosen.read_bytes(), settings, model)
            dev = reference.dev_split(model.config, data_dir)
            before = reference.numbers(model, dev.texts)
            after = onnx_runtime.OnnxModel(chosen).numbers(dev.texts)
            change = Change.measured(model.objective, before, after, dev.targets)
        write_text(out.parent / RUNNER, Path(onnx_runtime.__file__).read_text(encoding="utf-8"))
        _write(out, chosen.read_bytes(), settings, model)
    return OnnxFile(out, out.stat().st_size, difference, change)


def _inputs(inputs: Inputs) -> list[dict[str, str]]:
    """What the runner needs to know of each sentence of a text."""
    vectors = inputs.by_prefix(inputs.names)
    return [
        {"name": name, "ids": ids, "vector": f"{prefix}vector"}
        for ids, (prefix, name) in zip(inputs.ids, vectors.items(), strict=True)
    ]


def _converted(model: SentenceModel) -> Any:
    """The ONNX model of the network on ids, checked by onnx."""
    import onnx
    import tensorflow as tf
    import tf2onnx

    from dsa_keras.export.graph import ServedNetwork, ids_function

    function, specs = ids_function(ServedNetwork(model.network))
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    converted, _ = tf2onnx.convert.from_function(
        tf.function(function, input_signature=specs, autograph=False),
        input_signature=specs,
        opset=OPSET,
    )
    onnx.checker.check_model(converted, full_check=True)
    return converted


def _write(path: Path, content: bytes, settings: dict[str, Any], model: SentenceModel) -> None:
    """Writes the model and what stands beside it, the `.json` last."""
    model.vocabulary.save(path.with_suffix(".vocabulary.txt"))
    with written_aside(path) as aside:
        aside.write_bytes(content)
    sums = {}
    for suffix in (path.suffix, ".vocabulary.txt"):
        with path.with_suffix(suffix).open("rb") as file:
            sums[suffix] = hashlib.file_digest(file, "sha256").hexdigest()
    write_json(path.with_suffix(".json"), {**settings, "files": sums})


def _difference(model: SentenceModel, path: Path) -> float:
    """The largest difference from Keras on sentences of many lengths."""
    from dsa_keras.export import reference
    from dsa_keras.export.onnx_runtime import OnnxModel
    from dsa_keras.export.verify import example_texts

    texts = example_texts(model.vocabulary, model.inputs)
    exported, expected = OnnxModel(path), reference.answers_on_ids(model, texts)
    sentences = model.inputs.columns(texts)[model.inputs.signature[0]]
    output, vector = model.objective.output, f"{model.inputs.prefixes[0]}vector"
    return max(
        reference.difference(exported.numbers(texts), expected[output]),
        reference.difference(exported.encode(sentences), expected[vector]),
    )


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
        epilog=example("dsa-keras export onnx runs/demo --out onnx/demo.onnx"),
    )
    add_run(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL.onnx")
    parser.add_argument(
        "--quantize",
        choices=("int8",),
        help="weights in 8 bits; what it costs is measured on the dev split and printed",
    )
    add_data_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    require_extra("export", "onnx", "onnxruntime", "tf2onnx")
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
