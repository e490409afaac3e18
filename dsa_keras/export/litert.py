"""`dsa-keras export litert`: the network on word ids for phones and small machines.

Native operations only, no Flex, with batch and length free. The model is run and compared with
Keras before the file gets its name.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.errors import RunError
from dsa_keras.export.outputs import new_file
from dsa_keras.files import written_aside
from dsa_keras.options import add_run

if TYPE_CHECKING:
    from dsa_keras.sentence_model import SentenceModel

TOLERANCE = 1e-5
"""How far answers may be from those of Keras, see `export.reference.difference`."""


def export_litert(run_dir: str | os.PathLike[str], out: str | os.PathLike[str]) -> float:
    """Writes `out` and returns the largest difference from Keras.

    Its signature `tokens` takes `word_ids` (or `premise_ids` and `hypothesis_ids`), int32 `(batch,
    words)` with at least one word, and gives the vectors and the numbers of the objective, such as
    `probabilities`.

    Raises:
        RunError: if the model cannot be converted or does not answer as Keras does.
    """
    out = new_file(out, ".tflite")
    import dsa_keras

    model = dsa_keras.load(run_dir)
    content = _converted(model, run_dir)
    largest = _difference(model, content)
    if not largest <= TOLERANCE:
        raise RunError(
            f"the LiteRT model differs from Keras by {largest:.1e}, more than {TOLERANCE:.0e}",
            where=run_dir,
            hint="No file was written; please report this",
        )
    with written_aside(out) as aside:
        aside.write_bytes(content)
    return largest


def _converted(model: SentenceModel, run_dir: str | os.PathLike[str]) -> bytes:
    import tensorflow as tf

    from dsa_keras.export.graph import ServedNetwork, ids_function

    network = ServedNetwork(model.network)
    function, specs = ids_function(network)
    module = tf.Module()
    module.saved = network.variables
    module.tokens = tf.function(function, input_signature=specs, autograph=False)
    concrete = module.tokens.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    try:
        return converter.convert()
    except Exception as error:
        raise RunError(
            f"LiteRT has no native operations for it ({str(error).splitlines()[0]})",
            where=run_dir,
            hint="Export the SavedModel or ONNX",
        ) from None


def _difference(model: SentenceModel, content: bytes) -> float:
    """The largest difference from Keras, on batches of several sizes and lengths."""
    import tensorflow as tf

    from dsa_keras.export import reference
    from dsa_keras.export.verify import example_texts

    with warnings.catch_warnings():
        # TensorFlow announces that this interpreter moves to a package of its own.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    off = [0.0]
    texts = example_texts(model.vocabulary, model.inputs)
    for chosen in (texts[:1], texts, texts[:3]):
        expected = reference.answers_on_ids(model, chosen)
        ids = reference.padded_ids(model, chosen)
        found = _run(interpreter, dict(zip(model.inputs.ids, ids, strict=True)))
        off += [reference.difference(found[name], expected[name]) for name in expected]
    return max(off)


def _run(interpreter: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    runner = interpreter.get_signature_runner()
    return runner(**inputs)


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "litert",
        help="a LiteRT (.tflite) file on word ids",
        description="Writes MODEL.tflite on word ids, with native operations only.",
        epilog=example("dsa-keras export litert runs/demo --out demo.tflite"),
    )
    add_run(parser)
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL.tflite")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    new_file(args.out, ".tflite")
    load_tensorflow(args.run_dir)
    largest = export_litert(args.run_dir, args.out)
    size = args.out.stat().st_size
    print(f"{args.out}: {size / 1e6:,.1f} MB, as Keras to {largest:.1e}")
    return 0
