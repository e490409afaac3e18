"""What every test starts from: quiet TensorFlow, the same random numbers, float32."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

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
