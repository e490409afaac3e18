"""What a model is trained to say: targets, losses, numbers and answers, against values by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from objective_checks import CHECKS
from own_encoders import forgotten

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import Dataset, Split
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.objectives import (
    OBJECTIVES,
    objective_of,
    register_objective,
)
from dsa_keras.objectives.classification import Classification, Prediction
from dsa_keras.objectives.monitor import Monitor
from dsa_keras.objectives.regression import Estimate, Regression, pearson, spearman

CLASSES = Classification(class_names=("bad", "fair", "good"))
STARS = Regression(mean=3.0, deviation=2.0)
BOTH = [CLASSES, STARS]
THIRDS = math.log(3)

random = np.random.default_rng(0)
RAW = {
    "classification": (3 * random.normal(size=(20, 3))).astype("float32"),
    "regression": random.normal(size=(20, 1)).astype("float32"),
}
TARGETS = {
    "classification": random.integers(0, 3, 20).astype("int32"),
    "regression": random.normal(3, 2, 20).astype("float32"),
}


def of(objective):
    """Raw outputs and targets."""
    return RAW[objective.name], TARGETS[objective.name]


def test_the_table_has_ours():
    assert set(OBJECTIVES.names()) >= {"classification", "regression"}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("objective", BOTH, ids=lambda one: one.name)
def test_every_objective(objective, check):
    CHECKS[check](objective, *of(objective))


# Numbers and losses.


def test_probabilities_by_hand():
    raw = np.array([[0, THIRDS, -np.inf], [1000, -1000, 1000]], "float32")
    np.testing.assert_allclose(CLASSES.numbers_of(raw), [[0.25, 0.75, 0], [0.5, 0, 0.5]])
    np.testing.assert_allclose(CLASSES.numbers(raw), [[0.25, 0.75, 0], [0.5, 0, 0.5]])


def test_cross_entropy_by_hand():
    raw = np.array([[0, THIRDS, -100], [1000, -1000, 1000]], "float32")
    expected = (-math.log(0.75) + math.log(2)) / 2
    assert CLASSES.loss_of(raw, np.array([1, 2])) == pytest.approx(expected)


def test_squared_error_by_hand():
    raw, targets = np.array([[1.0], [-1.0], [0.5]], "float32"), np.array([3.0, 3.0, 6.0], "float32")
    np.testing.assert_allclose(STARS.numbers_of(raw), [5, 1, 4])
    np.testing.assert_allclose(STARS.numbers(raw), [5, 1, 4])
    # In deviations: 1, -1, and 0.5 - 1.5.
    assert STARS.loss_of(raw, targets) == pytest.approx(1.0)
    assert STARS.evaluate(STARS.numbers_of(raw), targets).figures()["mae"] == pytest.approx(2.0)


def test_names_in_any_language_are_served():
    objective = Classification(class_names=("schön", "\N{WHITE SMILING FACE} naïve"))
    labels = objective.served(tf.constant([[0.9, 0.1], [0.2, 0.8]]))["label"].numpy()
    assert [label.decode() for label in labels] == list(objective.class_names)


# Targets of tables.


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        *(("good", "good"), (" good\n", "good"), (5, "5"), (5.0, "5.0"), (True, "true")),
        *((False, "false"), ("1_0", "1_0"), (10**30, str(10**30)), ("nan", "nan")),
    ],
)
def test_cells_that_name_a_class(cell, name):
    assert Classification.parsed(cell) == name


@pytest.mark.parametrize(
    "cell", ["", "  ", None, math.nan, math.inf, [1], {}, b"good", "a\0b", "\ud800"]
)
def test_cells_that_name_no_class(cell):
    with pytest.raises(ValueError, match="no usable label"):
        Classification.parsed(cell)


@pytest.mark.parametrize(
    ("cell", "number"),
    [(5, 5.0), ("5", 5.0), (" -3.5e2 ", -350.0), (0.1, 0.1), ("-0", 0.0), (10**30, 1e30)],
)
def test_cells_that_hold_a_number(cell, number):
    assert Regression.parsed(cell) == number
    assert type(Regression.parsed(cell)) is float


@pytest.mark.parametrize(
    "cell",
    [
        *("", "five", None, True, False, "nan", "inf", "-Infinity", math.nan, math.inf, "1_0"),
        *(10**400, -(10**400), "1e400", 1e39, "1,5", "0x10", [1], b"1", "--1"),
    ],
)
def test_cells_that_hold_no_number(cell):
    with pytest.raises(ValueError, match="no usable number"):
        Regression.parsed(cell)


def test_classes_are_those_that_occur():
    assert Classification.of_targets(["b", "a", "b"]).class_names == ("a", "b")
    assert Classification.of_targets(["10", "9", "-1.5"]).class_names == ("-1.5", "9", "10")
    assert Classification.of_targets(["10", "9", "nan"]).class_names == ("10", "9", "nan")
    for values, message in ((["a", "a"], "only the class 'a' occurs"), ([], "no class occurs")):
        with pytest.raises(ValueError, match=message):
            Classification.of_targets(values)


def test_mean_and_deviation_are_those_of_the_targets():
    found = Regression.of_targets([1.0, 2.0, 6.0])
    assert (found.mean, found.deviation) == (3.0, pytest.approx(math.sqrt(14 / 3)))
    for values, message in (
        ([0.1, 0.1, 0.1], r"all numbers are 0\.1"),
        ([2.0], "all numbers are 2"),
        ([], "no number occurs"),
    ):
        with pytest.raises(ValueError, match=message):
            Regression.of_targets(values)


def test_targets_stand_in_arrays():
    assert [CLASSES.encoded(name) for name in CLASSES.class_names] == [0, 1, 2]
    with pytest.raises(ValueError, match="label 'best'"):
        CLASSES.encoded("best")
    assert STARS.encoded(3.5) == 3.5
    assert (CLASSES.told(np.int32(2)), STARS.told(np.float32(2.5))) == ("good", "2.5")
    assert Classification.stratum("a") != Classification.stratum("b")
    assert Regression.stratum(1.0) == Regression.stratum(2.0)


@pytest.mark.parametrize(
    ("objective", "targets", "message"),
    [
        (CLASSES, [0, 3], "whole numbers from 0 to 2"),
        (CLASSES, [-1, 0], "whole numbers from 0 to 2"),
        (CLASSES, [0.0, 1.0], "whole numbers from 0 to 2"),
        (CLASSES, [True, False], "whole numbers from 0 to 2"),
        (CLASSES, ["bad", "good"], "whole numbers from 0 to 2"),
        (CLASSES, [[0], [1]], "whole numbers from 0 to 2"),
        (STARS, ["1", "2"], "must be numbers, one for each"),
        (STARS, [True, False], "must be numbers, one for each"),
        (STARS, [1j, 2], "must be numbers, one for each"),
        (STARS, [[1.0], [2.0]], "must be numbers, one for each"),
        (STARS, [1.0, math.nan], "finite numbers"),
        (STARS, [-math.inf, 1.0], "finite numbers"),
        (STARS, [1e39, 1.0], "finite numbers"),
        (STARS, [1.0], r"has 2 texts and targets of shape \(1,\)"),
        (CLASSES, [], "has 2 texts"),
    ],
)
def test_targets_from_python_are_checked(objective, targets, message):
    with pytest.raises(DataError, match=f"^own, split train: .*{message}"):
        Dataset("own", {"train": Split(["a", "b"], targets)}, objective)


def test_targets_from_python_get_their_type():
    data = Dataset("own", {"train": Split(["a", "b"], np.array([1, 5], "int64"))}, STARS)
    assert data["train"].targets.dtype == np.float32
    data = Dataset("own", {"train": Split(["a", "b"], [1, 0]), "test": Split([], [])}, CLASSES)
    assert data["train"].targets.dtype == data["test"].targets.dtype == np.int32


def test_what_fits():
    assert CLASSES.fits(Classification(class_names=CLASSES.class_names))
    assert not CLASSES.fits(Classification(class_names=("good", "fair", "bad")))
    assert STARS.fits(Regression(mean=-1.0))
    assert not STARS.fits(CLASSES)
    assert not CLASSES.fits(STARS)


def test_targets_in_groups():
    groups, names = CLASSES.grouped(np.array([2, 0]))
    assert [names[group] for group in groups] == ["good", "bad"]
    groups, names = STARS.grouped(np.arange(9.0))
    assert groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert names == ("up to 2", "up to 5", "above 5")


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ([1, 2, 3, 4, 5, 6], ("up to 2", "up to 4", "above 4")),
        ([0, 0, 0, 0, 1, 3], ("up to 0", "above 0")),
        ([0, 1, 5, 5, 5, 5], ("up to 1", "above 1")),
        ([2, 2], ("2",)),
        ([], ("all",)),
    ],
)
def test_no_group_of_numbers_is_empty(targets, names):
    groups, found = STARS.grouped(np.array(targets, np.float32))
    assert found == names
    assert len(groups) == len(targets)
    assert set(groups.tolist()) == (set(range(len(names))) if targets else set())


# Correlations.


def test_correlations_by_hand():
    one, other = np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 40, 30])
    assert spearman(one, other) == pytest.approx(0.8)
    assert spearman(one, -other) == pytest.approx(-0.8)
    assert pearson(one, 2 * one + 7) == pytest.approx(1)
    assert spearman(one, one**3) == pytest.approx(1)
    # Ranks with ties are 1, 2.5, 2.5, 4.
    expected = np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1]
    assert spearman(np.array([0.0, 5, 5, 9]), one) == pytest.approx(expected)


pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30)


@given(values=pairs)
def test_correlations_are_scipys(values):
    from scipy import stats

    one, other = np.array(values, float).T
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        assert spearman(one, other) == pearson(one, other) == 0
        return
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert pearson(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)


@pytest.mark.parametrize("correlation", [pearson, spearman])
@pytest.mark.parametrize(
    ("one", "other"), [([1, 1, 1], [1, 2, 3]), ([1, 2], [0.1, 0.1]), ([], []), ([1], [2])]
)
def test_what_shows_no_order_has_no_correlation(correlation, one, other):
    assert correlation(np.array(one, float), np.array(other, float)) == 0


# Answers.


def test_answers_of_a_classifier():
    answers = CLASSES.answers(np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]))
    assert answers[0] == Prediction("bad", 0.5, {"bad": 0.5, "fair": 0.25, "good": 0.25})
    assert answers[1].fields()["label"] == "good"
    assert answers[1].row() == ["good", 0.75, 0.125, 0.125, 0.75]
    assert CLASSES.columns() == [
        *("label", "probability", "probability of bad", "probability of fair"),
        "probability of good",
    ]
    assert answers[1].cells() == ["good", "0.7500"]
    assert (answers[1].headline(), answers[1].asides()) == ("good", ["0.750"])
    assert answers[1].details() == "bad 0.125, fair 0.125, good 0.750"
    assert CLASSES.summary() == "Classes: bad, fair, good."
    assert CLASSES.for_runner() == {
        "output": "probabilities",
        "names": ["bad", "fair", "good"],
        "highest": "label",
    }


def test_answers_of_a_regression():
    (answer,) = STARS.answers(np.array([3.25]))
    assert answer == Estimate(3.25)
    assert (answer.fields(), answer.row()) == ({"number": 3.25}, [3.25])
    assert (answer.cells(), answer.headline()) == (["3.2500"], "3.2500")
    assert (answer.asides(), answer.details()) == ([], "")
    assert STARS.columns() == ["number"]
    assert STARS.summary() == "A number: 3 in the mean of training, deviation 2."
    assert STARS.for_runner() == {"output": "number"}


# An objective of a user's own.

with forgotten(OBJECTIVES):

    @register_objective("own-error")
    @dataclass(frozen=True)
    class OwnError(Regression):
        """A regression judged by its error, of which less is better."""

        monitor: ClassVar[str] = "mae"
        higher_is_better: ClassVar[bool] = False


def test_less_is_better_where_it_says_so():
    assert Monitor(STARS).better(0.6, 0.5)
    assert not Monitor(STARS).better(0.5, 0.5)
    assert Monitor(OwnError()).better(0.5, 0.6)
    assert not Monitor(OwnError()).better(0.5, 0.5)
    assert Monitor(OwnError()).key == "dev_mae"
    assert Monitor(OwnError(), "spearman").better(0.6, 0.5)


def test_balanced_classes_weigh_the_loss_of_training_by_hand():
    train = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2, 2], "int32")
    balanced = Classification(class_names=("a", "b", "c", "d"), class_weights="balanced")
    # 10 examples of 3 classes that occur: 10 / (3 * 6), 10 / (3 * 2) twice; "d" never occurs.
    by_hand = [5 / 9, 5 / 3, 5 / 3]
    np.testing.assert_allclose(balanced.weights(train)[:3], by_hand)
    assert np.mean(balanced.weights(train)[train]) == pytest.approx(1)
    raw = np.log([[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125]]).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Identity()])
    targets = np.array([0, 2], "int32")
    expected = (5 / 9 * math.log(2) + 5 / 3 * math.log(8)) / 2
    model.compile(loss=balanced.training_loss(train))
    assert model.evaluate(raw, targets, verbose=0) == pytest.approx(expected, rel=1e-5)
    plain = balanced.replace(class_weights="none")
    model.compile(loss=plain.training_loss(train))
    told = model.evaluate(raw, targets, verbose=0)
    assert told == pytest.approx((math.log(2) + math.log(8)) / 2, rel=1e-5)
    # The dev split is judged without weights.
    assert balanced.loss_of(raw, targets) == pytest.approx(told, rel=1e-5)
    with pytest.raises(ConfigError, match="class_weights must be one of none, balanced"):
        balanced.replace(class_weights="rare")


@pytest.mark.parametrize(
    ("objective", "name", "key", "more"),
    [
        (Classification(), "", "dev_accuracy", True),
        (Classification(), "accuracy", "dev_accuracy", True),
        (Classification(), "macro-f1", "dev_macro_f1", True),
        (Classification(), "loss", "dev_loss", False),
        (Regression(), "", "dev_spearman", True),
        (Regression(), "mae", "dev_mae", False),
    ],
)
def test_the_user_may_name_the_figure_that_chooses_the_epoch(objective, name, key, more):
    monitor = Recipe(ModelConfig(objective=objective), TrainingConfig(monitor=name)).monitor
    assert (monitor.key, monitor.higher_is_better) == (key, more)
    assert monitor.better(*((0.6, 0.5) if more else (0.5, 0.6)))
    assert monitor.better(0.5, math.nan)
    assert not monitor.better(math.nan, 0.5)


def test_a_figure_that_the_objective_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="monitor is 'mae', which classification does not have"):
        Recipe().replace(monitor="mae")
    with pytest.raises(ConfigError, match="Did you mean 'macro-f1'"):
        Recipe().replace(monitor="macrof1")


def test_an_objective_that_is_not_registered_is_unknown():
    with pytest.raises(ConfigError, match="unknown objective 'own-error'"):
        objective_of(OwnError().to_json())
    with forgotten(OBJECTIVES):
        OBJECTIVES.add("own-error", OwnError)
        assert objective_of(OwnError(mean=2).to_json()) == OwnError(mean=2)
