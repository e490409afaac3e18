"""What Keras answers: the reference of all checks.

The reference runs the model as it was trained: batch norm as a layer of its own, float32 vectors,
sentences padded to the longest of a batch. An exported file differs in all of this and has to give
the same answers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.errors import DataError, DsaError
from dsa_keras.inputs import Text

if TYPE_CHECKING:
    from dsa_keras.datasets import Split
    from dsa_keras.runs import RunConfig
    from dsa_keras.sentence_model import SentenceModel

_BATCH = 64

Answers = dict[str, dict[str, Any]]
"""Outputs by name, by signature."""


def numbers(model: SentenceModel, texts: Sequence[Text]) -> np.ndarray:
    """What Keras says of each text in numbers; of a classifier `(texts, classes)`."""
    found = []
    for start in range(0, max(len(texts), 1), _BATCH):
        ids = padded_ids(model, texts[start : start + _BATCH])
        named = dict(zip(model.inputs.signature, ids, strict=True))
        fed = named if model.inputs.is_pair else ids[0]
        found.append(np.array(model.network.model(fed, training=False)))
    return model.objective.numbers_of(np.concatenate(found))


def answers(model: SentenceModel, texts: Sequence[Text]) -> Answers:
    """What Keras gives for every signature of the exported model."""
    found = numbers(model, texts)
    served, vectors = model.objective.served_of(found), _vectors(model, texts)
    every: Answers = {
        "serving_default": served,
        "embed": {"vector": vectors[0]},
        "tokens": served | _prefixed(model, "vector", vectors),
    }
    if model.config.model.encoder.attends:
        every["attention"] = _attention(model, texts)
    return every


def answers_on_ids(model: SentenceModel, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """What Keras gives for the plain network on ids, see `export.graph.ids_function`."""
    named = {model.objective.output: numbers(model, texts)}
    return named | _prefixed(model, "vector", _vectors(model, texts))


def padded_ids(model: SentenceModel, texts: Sequence[Text]) -> list[np.ndarray]:
    """The word ids of each input in order, padded to its longest sentence."""
    columns = model.inputs.columns(texts).values()
    return [model.text_encoder.word_ids(sentences).padded() for sentences in columns]


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, as a share of the largest number if that is above 1.

    Numbers of a regression may be of any size, and float32 has 7 digits. NaN, and arrays of
    different shapes, are infinitely different.
    """
    if found.shape != expected.shape:
        return float("inf")
    expected = expected.astype(np.float64)
    off = float(np.abs(found - expected).max(initial=0))
    return float("inf") if np.isnan(off) else off / float(np.abs(expected).max(initial=1))


def dev_split(config: RunConfig, data_dir: str | os.PathLike[str] | None = None) -> Split:
    """The dev split of the data that the run was trained on.

    Raises:
        DataError: if it cannot be read, or is another.
    """
    try:
        return config.dataset(data_dir).part("dev")
    except (DsaError, OSError) as error:
        told = error.problem if config.origin is None and isinstance(error, DsaError) else error
        raise DataError(
            f"the dev split, on which the loss is measured, cannot be read: {told}",
            hint="Give its folder with --data-dir"
            if config.origin
            else "Leave out --precision or --quantize",
        ) from None


def _vectors(model: SentenceModel, texts: Sequence[Text]) -> list[np.ndarray]:
    encoder = model.network.encoder
    return [np.array(encoder(ids, training=False)) for ids in padded_ids(model, texts)]


def _prefixed(model: SentenceModel, name: str, values: Sequence[Any]) -> dict[str, Any]:
    return {f"{prefix}{name}": one for prefix, one in model.inputs.by_prefix(values).items()}


def _attention(model: SentenceModel, texts: Sequence[Text]) -> dict[str, Any]:
    columns, ids = model.inputs.columns(texts).values(), padded_ids(model, texts)
    words = [model.text_encoder.words(sentences) for sentences in columns]
    weights = [
        np.array(model.network.traced_encoder(one, training=False)["attention_weights"])
        for one in ids
    ]
    tokens = [
        np.array([[*row, *[""] * (one.shape[1] - len(row))] for row in rows], object)
        for rows, one in zip(words, ids, strict=True)
    ]
    lengths = [np.array([len(row) for row in rows]) for rows in words]
    return (
        _prefixed(model, "tokens", tokens)
        | _prefixed(model, "weights", weights)
        | _prefixed(model, "lengths", lengths)
    )
