"""A search for TensorBoard: its HParams plugin, and the pictures."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from matplotlib.figure import Figure
from tensorboard.plugins.hparams import api as hparams

from dsa_keras.pictures import figure_image
from dsa_keras.tuning.importance import label
from dsa_keras.tuning.results import Results


def write_board(folder: Path, results: Results, pictures: Mapping[str, Figure]) -> None:
    """Writes the logs of a search anew.

    Args:
        folder: where TensorBoard will look; an old one is removed.
        results: of the search.
        pictures: by name.
    """
    shutil.rmtree(folder, ignore_errors=True)
    names = dict.fromkeys(name for one in results.trained for name in one.record.searched)
    domains = [
        hparams.HParam(name, _domain([one.record.searched.get(name) for one in results.trained]))
        for name in names
    ]
    goal = results.settings.goal
    metrics = [hparams.Metric(goal.key, display_name=goal.title), hparams.Metric("parameters")]
    with _writer(folder) as writer, writer.as_default(step=0):
        hparams.hparams_config(hparams=domains, metrics=metrics)
        for name, figure in pictures.items():
            tf.summary.image(name, figure_image(figure)[None])
    for one in results.trained:
        searched = {name: _plain(value) for name, value in one.record.searched.items()}
        with _writer(folder / one.record.trial) as writer, writer.as_default():
            hparams.hparams(searched, trial_id=one.record.trial)
            # HParams shows the last value of a metric: the best so far, not that of the epoch.
            for epoch in range(1, len(one.epochs) + 1):
                tf.summary.scalar(goal.key, one.figure_within(epoch), step=epoch)
            tf.summary.scalar("parameters", one.record.parameters, step=len(one.epochs))


def _writer(folder: Path) -> Any:
    return contextlib.closing(tf.summary.create_file_writer(str(folder)))


def _plain(value: Any) -> Any:
    return label(value) if isinstance(value, list | tuple) else value


def _domain(values: list[Any]) -> Any:
    plain = {_plain(value) for value in values if value is not None}
    if all(isinstance(value, float) for value in plain) and len(plain) > 1:
        return hparams.RealInterval(min(plain), max(plain))
    return hparams.Discrete(sorted(plain))
