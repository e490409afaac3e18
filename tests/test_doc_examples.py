"""Every `>>>` example in a docstring of the package runs as printed."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import dsa_keras

PACKAGE = Path(dsa_keras.__file__).parent
MODULES = sorted(
    ".".join(("dsa_keras", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    # A reader of an example has imported the package it is shown in.
    package = importlib.import_module(name.rpartition(".")[0])
    names = {"np": np, "keras": keras, "tf": tf, **vars(package), **vars(module)}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    tests = doctest.DocTestFinder().find(module, name, globs=names)
    report: list[str] = []
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.tries > 0, "an example that no docstring finder sees"
    assert runner.failures == 0, "".join(report)


def test_layers_models_and_data_have_examples():
    shown = ("config", "layers.dense_conv_block", "models.network", "datasets.loading")
    assert {f"dsa_keras.{name}" for name in shown} <= set(MODULES)
