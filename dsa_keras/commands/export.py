"""`export`: files that serve, made of a run folder, and the proof that they answer alike."""

from __future__ import annotations

import importlib
from typing import Any

from dsa_keras.command_line import add_group, example

FORMS = ("saved_model", "onnx_export", "litert", "verify")
"""The modules of `dsa_keras.export` that are commands."""

_EXAMPLE = """
dsa-keras export saved-model runs/demo --out models/demo
dsa-keras export onnx runs/demo --out onnx/demo.onnx
dsa-keras export verify models/demo --run runs/demo --onnx onnx/demo.onnx
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    group = add_group(
        commands,
        "export",
        help="files for TF Serving, ONNX and LiteRT, and the proof that they answer alike",
        description="Turns a run folder into files that serve, and proves that they answer alike.",
        epilog=example(_EXAMPLE),
    )
    for name in FORMS:
        importlib.import_module(f"dsa_keras.export.{name}").add_parser(group)
