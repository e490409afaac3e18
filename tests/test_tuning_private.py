"""What the tuner uses of KerasTuner's private parts is still there; a failure names what moved."""

from __future__ import annotations

import importlib

import keras_tuner
import pytest
from keras_tuner.engine.trial import Trial

from dsa_keras.tuning.oracles import PRIVATE


def _made(kind):
    """An instance where one can be made of nothing, since some of the names are set in it."""
    if isinstance(kind, type) and issubclass(kind, keras_tuner.Oracle):
        return kind(objective=keras_tuner.Objective("dev_accuracy", "max"))
    return kind(keras_tuner.HyperParameters()) if kind is Trial else kind


@pytest.mark.parametrize("place", PRIVATE)
def test_private_parts_of_keras_tuner_are_where_they_were(place, tmp_path):
    module, _, name = place.partition(":")
    kind = getattr(importlib.import_module(module), name, None)
    assert kind is not None, f"KerasTuner {keras_tuner.__version__} has no {place}"
    made = _made(kind)
    if isinstance(made, keras_tuner.Oracle):
        made._set_project_dir(str(tmp_path), "tuner")
    moved = [one for one in PRIVATE[place] if not hasattr(made, one)]
    assert not moved, f"KerasTuner {keras_tuner.__version__} has no {moved} in {place} any more"
