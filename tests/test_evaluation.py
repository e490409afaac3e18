"""Figures of merit against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dsa_keras.objectives.class_evaluation import (
    ClassEvaluation,
    confusion_figure,
    confusion_matrix,
)
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.regression import NumberEvaluation, Regression
from dsa_keras.pictures import figure_image, figure_png

LABELS = np.array([0, 0, 0, 0, 1, 1, 2])
PREDICTED = np.array([0, 0, 0, 1, 1, 0, 1])
NAMES = ("bad", "fair", "good")


@pytest.fixture
def evaluation():
    return ClassEvaluation(confusion_matrix(LABELS, PREDICTED, 3), NAMES)


def test_confusion_counts_true_by_predicted(evaluation):
    assert evaluation.confusion.tolist() == [[3, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert evaluation.examples == 7


def test_accuracy(evaluation):
    assert evaluation.accuracy == pytest.approx(4 / 7)


def test_precision_recall_and_f1(evaluation):
    bad, fair, good = evaluation.per_class()
    assert bad == {
        "class": "bad",
        "precision": pytest.approx(3 / 4),
        "recall": pytest.approx(3 / 4),
        "f1": pytest.approx(3 / 4),
        "examples": 4,
    }
    assert fair["precision"] == pytest.approx(1 / 3)
    assert fair["recall"] == pytest.approx(1 / 2)
    assert fair["f1"] == pytest.approx(2 / 5)
    # Never predicted: 0, not a division by zero.
    assert (good["precision"], good["recall"], good["f1"]) == (0, 0, 0)


def test_macro_f1_is_the_mean_over_the_classes_that_are_found(evaluation):
    assert evaluation.macro_f1 == pytest.approx((3 / 4 + 2 / 5 + 0) / 3)
    assert evaluation.figures()["macro_f1"] == evaluation.to_dict()["macro_f1"]
    # A class that the split does not have and the model does not name says nothing.
    without = ClassEvaluation(np.array([[1, 1, 0], [0, 2, 0], [0, 0, 0]]), NAMES)
    assert without.macro_f1 == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert without.warnings() == []


def test_classes_that_are_never_predicted_are_told(evaluation):
    assert evaluation.to_dict()["never_predicted"] == ["good"]
    (warning,) = evaluation.warnings()
    assert warning == "never predicted, though there are examples of it: good"
    sure = Classification(class_names=NAMES).evaluate(np.eye(3), np.arange(3))
    assert (sure.macro_f1, sure.warnings(), sure.never_predicted) == (1.0, [], [])


def test_no_examples_are_no_accuracy():
    assert ClassEvaluation(np.zeros((2, 2), int), ("a", "b")).accuracy == 0


TABLE = """\
accuracy 0.5714 on 7 examples
macro-F1 0.3833

class      precision  recall      F1  examples
bad           0.7500  0.7500  0.7500         4
fair          0.3333  0.5000  0.4000         2
good          0.0000  0.0000  0.0000         1

true \\ predicted
                 bad       fair       good
bad                3          1          0
fair               1          1          0
good               0          1          0"""


def test_table_has_every_figure(evaluation):
    assert evaluation.table() == TABLE


def test_table_has_room_for_long_names_and_large_numbers():
    table = ClassEvaluation(np.array([[12345, 0], [0, 1]]), ("a", "a long name indeed")).table()
    assert "accuracy 1.0000 on 12,346 examples" in table
    assert f"a long name indeed  {'0':>18}  {'1':>18}" in table
    assert f"{'a':<18}  {'12,345':>18}  {'0':>18}" in table


def test_figures_are_plain_values(evaluation):
    figures = evaluation.to_dict()
    assert figures["accuracy"] == pytest.approx(4 / 7)
    assert figures["confusion"] == [[3, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert figures["class_names"] == list(NAMES)


def test_picture_shades_by_share_of_the_true_class(evaluation):
    figure = confusion_figure(evaluation.confusion, NAMES, "test")
    image = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(image, [[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 1, 0]])
    assert [text.get_text() for text in figure.axes[0].texts[:3]] == ["3", "1", "0"]
    pixels = figure_image(figure)
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 4
    assert figure_png(figure).startswith(b"\x89PNG")


# Numbers.

TRUE, SAID = np.array([1.0, 2, 3, 4]), np.array([1.5, 2, 5, 4])


def test_figures_of_numbers_by_hand():
    evaluation = Regression().evaluate(SAID, TRUE)
    assert isinstance(evaluation, NumberEvaluation)
    figures = evaluation.figures()
    assert figures["mae"] == pytest.approx(0.625)
    assert figures["spearman"] == pytest.approx(0.8)  # ranks 1, 2, 4, 3
    assert figures["pearson"] == pytest.approx(5.25 / np.sqrt(5 * 8.1875))
    assert evaluation.to_dict() == {"examples": 4, **figures}


def test_table_of_numbers():
    assert Regression().evaluate(SAID, TRUE).table() == (
        "Spearman 0.8000 on 4 examples\nPearson 0.8205\nmean absolute error 0.6250"
    )


def test_no_numbers_have_figures():
    nothing = Regression().evaluate(np.zeros(0), np.zeros(0))
    assert nothing.figures() == {"spearman": 0.0, "pearson": 0.0, "mae": 0.0}
    assert nothing.examples == 0
    empty = Classification().evaluate(np.zeros((0, 2)), np.zeros(0, "int32"))
    assert (empty.examples, empty.figures()) == (0, {"accuracy": 0.0, "macro_f1": 0.0})


def test_pictures_of_evaluations(evaluation):
    (name, figure), *others = evaluation.pictures("dev").items()
    assert (name, others) == ("confusion matrix", [])
    assert "dev" in figure.axes[0].get_title()
    (name, figure), *others = Regression().evaluate(SAID, TRUE).pictures("dev").items()
    assert (name, others) == ("numbers", [])
    shown = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(shown, np.stack([TRUE, SAID], axis=1))
    assert figure_png(figure).startswith(b"\x89PNG")
    assert Regression().evaluate(np.zeros(0), np.zeros(0)).pictures("dev")
