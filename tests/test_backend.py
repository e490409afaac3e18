"""Keras on another backend than TensorFlow is told at once, before Keras fails in its own words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def imported(statement: str, **environment: str) -> str:
    """The last line that a Python of its own writes on a failed import."""
    clean = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", statement],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "statement",
    [
        "import dsa_keras.layers",
        "from dsa_keras.models import Network",
        "import dsa_keras; dsa_keras.load",
        "import dsa_keras.training.trainer",
    ],
)
def test_another_backend_is_refused_with_what_to_do(statement):
    line = imported(statement, KERAS_BACKEND="jax")
    assert line.startswith("ImportError: dsa_keras needs Keras on TensorFlow")
    assert "runs on jax" in line
    assert "KERAS_BACKEND to tensorflow" in line


def test_the_file_of_keras_counts_too(tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "torch"}')
    line = imported("import dsa_keras.layers", KERAS_HOME=str(tmp_path))
    assert "runs on torch" in line
