"""Numbers in place of classes, on data made in Python: training, going on, answers."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
from runs import small

import dsa_keras
from dsa_keras.config import Recipe
from dsa_keras.datasets import Dataset, Split, recipe_for
from dsa_keras.errors import DataError, RunError
from dsa_keras.inputs import PAIR, SENTENCE
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.regression import Estimate, NumberEvaluation, Regression
from dsa_keras.runs import Run
from dsa_keras.training.fit import Options
from dsa_keras.training.trainer import resume, train

STARS = {"awful": -150.0, "dull": -120.0, "fair": -100.0, "good": -80.0, "superb": -50.0}
TIMES = ("time", "seconds", "train_words_per_second")
SAME_BITS = Options(show_progress=False, deterministic=True)


def dataset(pair=False):
    """A word in each text decides its number; of pairs the distance between two."""
    random = np.random.default_rng(1)
    words = list(STARS)

    def split(count):
        chosen = random.choice(words, (count, 2))
        noise = random.normal(size=count)
        if pair:
            texts = [(f"a {one} film", f"a {other} book") for one, other in chosen]
            numbers = [abs(STARS[one] - STARS[other]) for one, other in chosen]
        else:
            texts = [f"a {one} film number {n}" for n, (one, _) in enumerate(chosen)]
            numbers = [STARS[one] for one, _ in chosen]
        return Split(texts, np.array(numbers) + noise)

    splits = {"train": split(240), "dev": split(40)}
    objective = Regression.of_targets(splits["train"].targets.tolist())
    return Dataset("stars", splits, objective)


def recipe_of(data, epochs):
    recipe = recipe_for(data, "dsa-single", vectors=False)
    model = small(recipe.model, dropout=0.0, head_dropout=0.0, embedding_dropout=0.0)
    changes = {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 16, "averaging": 0.5}
    return Recipe(model, recipe.training).replace(epochs=epochs, **changes)


@pytest.fixture(scope="module")
def data():
    return dataset()


@pytest.fixture(scope="module")
def single(tmp_path_factory, data):
    """A run on sentences, stopped after its first epoch and resumed."""
    path = tmp_path_factory.mktemp("stars") / "run"
    train(data, path, recipe_of(data, 1), options=SAME_BITS)
    resume(path, epochs=4, dataset=data, options=SAME_BITS)
    return path


def test_the_recipe_is_that_of_own_data(data):
    recipe = recipe_for(data, vectors=False)
    assert recipe.model.inputs == SENTENCE
    assert recipe.model.objective == data.objective
    assert recipe.model.train_embeddings


def test_it_learns_and_keeps_the_epoch_of_the_best_order(single, data):
    run = Run(single)
    config, records = run.config(), run.metrics()
    assert config.model.objective == data.objective
    assert config.data["examples"] == {"train": 240, "dev": 40}
    assert len(records) == 4
    assert records[-1]["dev_spearman"] > 0.8
    assert records[-1]["train_loss"] < records[0]["train_loss"] < 2
    assert all(math.isfinite(record["train_mae"]) for record in records)
    assert all(-1 <= record["dev_pearson"] <= 1 for record in records)
    best = config.monitor.best(records)
    assert best == run.best(config)
    assert best["dev_spearman"] == max(record["dev_spearman"] for record in records)
    evaluation = dsa_keras.load(single).evaluate(data["dev"])
    assert isinstance(evaluation, NumberEvaluation)
    for name, value in evaluation.figures().items():
        assert value == pytest.approx(best[f"dev_{name}"], rel=1e-4)
    # In the unit of the targets, which lie 35 about their mean.
    assert evaluation.figures()["mae"] < 25
    assert f"dev spearman | {best['dev_spearman']:.4f}" in (single / "README.md").read_text()


def test_resumed_is_to_the_bit_never_stopped(single, data, tmp_path):
    train(data, tmp_path / "whole", recipe_of(data, 4), options=SAME_BITS)
    runs = [Run(single), Run(tmp_path / "whole")]
    stopped, whole = (
        [{k: v for k, v in record.items() if k not in TIMES} for record in run.metrics()]
        for run in runs
    )
    assert stopped == whole
    for name in ("best.npz", "last.npz"):
        with np.load(single / name) as one, np.load(tmp_path / "whole" / name) as other:
            assert one.files == other.files
            for key in set(one.files) - {"meta"}:
                np.testing.assert_array_equal(one[key], other[key], err_msg=f"{name}: {key}")


def test_answers_are_numbers_in_the_unit_of_the_targets(single):
    model = dsa_keras.load(single)
    best, worst = model.predict(["a superb film number 7", "a awful film number 7"])
    assert isinstance(best, Estimate)
    assert -200 < worst.number < -100 < best.number < 0
    assert model.numbers(["a superb film"]).shape == (1,)
    assert model.predict("a superb film number 7").number == pytest.approx(best.number, rel=1e-4)
    explained = model.explain("a superb film number 7")
    assert explained.answer.number == pytest.approx(best.number, rel=1e-4)
    assert explained.traces["sentence"].words == ("a", "superb", "film", "number", "7")
    assert explained.to_dict()["number"] == explained.answer.number


def test_pairs_train_load_and_are_explained(tmp_path):
    data = dataset(pair=True)
    recipe = recipe_of(data, 1)
    assert recipe.model.inputs == PAIR
    train(data, tmp_path / "run", recipe, options=Options(show_progress=False))
    assert "dev_spearman" in Run(tmp_path / "run").metrics()[0]
    model = dsa_keras.load(tmp_path / "run")
    answer = model.predict(("a good film", "a dull book"))
    assert math.isfinite(answer.number)
    explained = model.explain([("a good film", "a dull book")])
    assert list(explained[0].traces) == ["premise", "hypothesis"]
    assert explained[0].answer.number == pytest.approx(answer.number, rel=1e-4)


# Data made in Python is not loaded again.


def test_going_on_without_the_data_is_told_in_one_line(single):
    config = Run(single).config()
    assert config.origin is None
    message = (
        "^stars: the run was trained on a data set that was made in Python. "
        r"Give the data set itself, in Python$"
    )
    before = (single / "config.json").read_bytes()
    with pytest.raises(DataError, match=message):
        resume(single, epochs=9, options=SAME_BITS)
    with pytest.raises(DataError, match=message):
        config.dataset()
    assert (single / "config.json").read_bytes() == before


def changed(data, **splits):
    return Dataset(data.name, {**data.splits, **splits}, data.objective)


def as_classes(data):
    splits = {name: Split(one.texts, np.arange(len(one)) % 2) for name, one in data.splits.items()}
    return Dataset(data.name, splits, Classification(class_names=("bad", "good")))


@pytest.mark.parametrize(
    "other",
    [
        lambda data: changed(data, dev=Split(data["dev"].texts, data["dev"].targets[::-1])),
        lambda data: changed(data, train=Split(data["train"].texts[::-1], data["train"].targets)),
        lambda data: dataset(pair=True),
        as_classes,
    ],
    ids=["other targets", "another order", "pairs", "classes"],
)
def test_going_on_with_other_data_is_refused(single, data, tmp_path, other):
    path = shutil.copytree(single, tmp_path / "run")
    before = (path / "config.json").read_bytes()
    with pytest.raises(RunError, match="the data is not what the run was started with"):
        resume(path, epochs=9, dataset=other(data), options=SAME_BITS)
    assert (path / "config.json").read_bytes() == before
