"""What every test starts from: quiet TensorFlow, the same random numbers, float32."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Two test processes share two cores.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine; a failure prints what reproduces it.
settings.register_profile(
    "quick",
    deadline=None,
    derandomize=True,
    max_examples=15,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("quick")

# Whole files go to one of two processes: those that take longest first, so that neither waits in
# the end for the other's last file.
LONGEST = (
    "test_training.py",
    "test_models.py",
    "test_export_saved_model.py",
    "test_tuning_search.py",
    "test_resume.py",
    "test_tuning_processes.py",
    "test_layers.py",
    "test_export_verify.py",
    "test_inspection.py",
    "test_export_onnx.py",
    "test_contributing.py",
    "test_commands.py",
    "test_tensorboard.py",
    "test_averaging.py",
    "test_serve_command.py",
)


def pytest_collection_modifyitems(items):
    """Brings the `LONGEST` files forward."""
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


@pytest.fixture(autouse=True)
def _same_start():
    """Seeds Keras before, and restores its dtype policy after a test; others never load it."""
    keras = sys.modules.get("keras")
    if keras is not None:
        keras.utils.set_random_seed(1)
        keras.config.set_dtype_policy("float32")
    yield
    if keras is not None:
        keras.config.set_dtype_policy("float32")


@pytest.fixture
def run(capsys):
    """Runs `python -m dsa_keras`; gives exit code, standard output and standard error."""
    from dsa_keras.commands.main import main

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def refused(run):
    """Runs a command that must fail with one line and exit code 2; gives that line."""

    def call(*arguments):
        code, _, error = run(*arguments)
        assert code == 2, error
        assert error.count("\n") == 1, error
        return error

    return call
