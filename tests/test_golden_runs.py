"""Run folders that older code left: they load, give the same answers, and go on training.

Both were made at commit c3fad7c (format 1): `sentence` is a `dsa-single` on `kim` words with
Adadelta, `pair` a `dsa-multiple` with trained word vectors, three iterations and an average of the
weights. `expected.json` holds what that code answered, and how it went on for a second epoch.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden" / "runs"


@pytest.fixture(params=["sentence", "pair"])
def golden(request, tmp_path):
    """A copy of an old run folder, and what is expected of it."""
    run = tmp_path / request.param
    shutil.copytree(GOLDEN / request.param, run)
    expected = json.loads((run / "expected.json").read_text(encoding="utf-8"))
    (run / "expected.json").unlink()
    if request.param == "pair":
        expected["texts"] = [tuple(pair) for pair in expected["texts"]]
    return run, expected


def test_it_answers_as_it_did(golden):
    import dsa_keras

    run, expected = golden
    model = dsa_keras.load(run)
    sentences = [text if isinstance(text, str) else text[0] for text in expected["texts"]]
    np.testing.assert_allclose(model.encode(sentences), expected["vectors"], atol=1e-6)
    np.testing.assert_allclose(
        model.numbers(expected["texts"]), expected["probabilities"], atol=1e-6
    )
    for one, weights in zip(model.explain(expected["texts"]), expected["attention"], strict=True):
        for trace, wanted in zip(one.traces.values(), weights, strict=True):
            # JSON keeps no shape of a sentence without words.
            wanted = np.reshape(wanted, trace.weights[-1].shape)
            np.testing.assert_allclose(trace.weights[-1], wanted, atol=2e-6)


def test_it_goes_on_training_as_it_would_have(golden):
    import dsa_keras
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import resume

    run, expected = golden
    resume(run, epochs=2, options=Options(show_progress=False))
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    for record, wanted in zip(map(json.loads, lines), expected["resumed"], strict=True):
        assert record["epoch"] == wanted["epoch"]
        for name, value in wanted.items():
            np.testing.assert_allclose(record[name], value, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(
        dsa_keras.load(run).numbers(expected["texts"]),
        expected["resumed_probabilities"],
        atol=1e-4,
    )
