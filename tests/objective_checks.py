"""What every objective promises, ours and one of your own: `check_objective` is one call for it.

A check takes an objective, raw outputs of a head and the targets, and says by an assertion what
does not hold.

```python
def test_my_objective():
    raw = np.array([[0.5], [-1.0]], "float32")
    check_objective(MyObjective(), raw, np.array([2.0, 3.0], "float32"))
```
"""

from __future__ import annotations

import json
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from dsa_keras.objectives import OBJECTIVES, Answer, Objective, objective_of
from dsa_keras.objectives.monitor import Monitor


def check_objective(objective: Objective, raw: np.ndarray, targets: np.ndarray) -> None:
    """Runs all checks."""
    for check in CHECKS.values():
        check(objective, raw, targets)


def check_settings(objective, raw, targets):
    """Its settings become JSON and are made of it again; the command line can explain them."""
    assert OBJECTIVES.registered(objective.name) is type(objective)
    again = objective_of(json.loads(json.dumps(objective.to_json())))
    assert again == objective
    assert type(again) is type(objective)
    for name, text in type(objective).described().items():
        assert text.strip(), f"the docstring does not describe {name}"
    # Recipes are made before the data is known.
    assert type(objective)().choices() == objective.choices()


def check_targets(objective, raw, targets):
    """Targets from Python are what they were; the same data fits."""
    np.testing.assert_array_equal(objective.checked_targets(targets), targets)
    assert objective.checked_targets(targets).dtype == objective.dtype
    assert objective.fits(objective)
    assert all(isinstance(objective.told(target), str) for target in targets)
    groups, names = objective.grouped(targets)
    assert len(groups) == len(targets)
    assert set(groups.tolist()) <= set(range(len(names)))


def check_loss(objective, raw, targets):
    """The loss and the metric are those that Keras computes, in batches of any size."""
    assert raw.shape == (len(targets), objective.num_outputs)
    model = keras.Sequential([keras.Input(raw.shape[1:]), keras.layers.Identity()])
    model.compile(loss=objective.loss(), metrics=objective.metrics())
    told = model.evaluate(raw, targets, verbose=0, batch_size=7, return_dict=True)
    np.testing.assert_allclose(objective.loss_of(raw, targets), told["loss"], rtol=1e-5)
    figures = objective.evaluate(objective.numbers_of(raw), targets).figures()
    np.testing.assert_allclose(figures[objective.watched], told[objective.watched], rtol=1e-5)


def check_graphs(objective, raw, targets):
    """Graphs and NumPy give the same numbers, and the same outputs of an exported model."""
    numbers = objective.numbers_of(raw)
    assert len(numbers) == len(raw)
    np.testing.assert_allclose(objective.numbers(tf.constant(raw)), numbers, rtol=1e-5)
    graph = tf.function(objective.served, autograph=False)(tf.constant(numbers, tf.float32))
    served = objective.served_of(numbers)
    assert graph.keys() == served.keys() >= {objective.output}
    for name, expected in served.items():
        got = graph[name].numpy()
        if expected.dtype == object:
            np.testing.assert_array_equal(np.vectorize(bytes.decode)(got), expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert objective.for_runner()["output"] == objective.output


def check_judgement(objective, raw, targets):
    """There is a figure to choose the epoch by, and all of it is plain values and pictures."""
    found = objective.evaluate(objective.numbers_of(raw), targets)
    assert found.examples == len(targets)
    assert objective.monitor in found.figures()
    monitor = Monitor(objective)
    assert monitor.key == f"dev_{objective.monitor}"
    assert objective.monitored().keys() <= {*found.figures(), "loss"}
    assert objective.watched in [metric.name for metric in objective.metrics()]
    assert json.loads(json.dumps(found.to_dict())).items() >= found.figures().items()
    assert found.table().strip()
    assert all(picture.axes for picture in found.pictures("dev").values())
    assert monitor.better(*((2.0, 1.0) if objective.higher_is_better else (1.0, 2.0)))


def check_answers(objective, raw, targets):
    """An answer for each text, of plain values, with a cell for each column."""
    answers = objective.answers(objective.numbers_of(raw).astype("float32"))
    assert len(answers) == len(raw)
    assert objective.answers(objective.numbers_of(raw[:0])) == []
    for answer in answers:
        assert isinstance(answer, Answer)
        assert json.loads(json.dumps(answer.fields())) == answer.fields()
        assert len(answer.row()) == len(objective.columns())
        json.dumps(answer.row())
        assert answer.headline()
        texts = [*answer.cells(), *answer.asides(), answer.details()]
        assert all(isinstance(text, str) for text in texts)


CHECKS: dict[str, Callable[[Objective, np.ndarray, np.ndarray], None]] = {
    "settings": check_settings,
    "targets": check_targets,
    "loss": check_loss,
    "graphs": check_graphs,
    "judgement": check_judgement,
    "answers": check_answers,
}
