"""Figures of merit against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dsa_keras.training.evaluation import Evaluation, confusion_matrix
from dsa_keras.training.figures import confusion_figure, figure_image, figure_png

LABELS = np.array([0, 0, 0, 0, 1, 1, 2])
PREDICTED = np.array([0, 0, 0, 1, 1, 0, 1])
NAMES = ("bad", "fair", "good")


@pytest.fixture
def evaluation():
    return Evaluation(confusion_matrix(LABELS, PREDICTED, 3), NAMES)


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


def test_no_examples_are_no_accuracy():
    assert Evaluation(np.zeros((2, 2), int), ("a", "b")).accuracy == 0


def test_table_has_every_figure(evaluation):
    lines = evaluation.table().splitlines()
    assert lines[0] == "accuracy 0.5714 on 7 examples"
    assert lines[4].split() == ["fair", "0.3333", "0.5000", "0.4000", "2"]
    assert [line.split() for line in lines[-3:]] == [
        ["bad", "3", "1", "0"],
        ["fair", "1", "1", "0"],
        ["good", "0", "1", "0"],
    ]


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
