"""Weights and training state as plain arrays in `.npz` files: no code, no pickle, whole or absent.

`best.npz` holds the weights with the best dev accuracy. `last.npz` holds all that it takes to go
on: the weights, their average, the best ones, the optimizer's and the random generators' state, and
the schedule. It is one file because one rename makes it appear: a run that is killed at any moment
finds a `last.npz` that agrees with itself. Fixed word vectors do not change, so they are a file of
their own, written once.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.errors import RunError
from dsa_keras.files import written_aside

if TYPE_CHECKING:
    import keras

_WEIGHTS, _OPTIMIZER, _SEEDS, _META = "weights/", "optimizer/", "seeds/", "meta"
_ASIDE = ("best", "average")


def weights_of(model: keras.Model) -> dict[str, np.ndarray]:
    """The model's weights by name, without fixed word vectors."""
    return {name: np.array(variable) for name, variable in named_weights(model).items()}


def assign_weights(model: keras.Model, weights: Mapping[str, np.ndarray], where: Path) -> None:
    """Puts weights into a model.

    Raises:
        RunError: if they are not the weights of such a model.
    """
    named = named_weights(model)
    if odd := sorted(named.keys() ^ weights.keys()):
        raise RunError(
            f"its weights are not those of the model in config.json (first difference: {odd[0]})",
            where=where,
            hint="Restore the file that belongs to this run, or train again",
        )
    for name, variable in named.items():
        if tuple(variable.shape) != weights[name].shape:
            raise RunError(
                f"{name} has shape {weights[name].shape}, the model needs {tuple(variable.shape)}",
                where=where,
                hint="Restore the file that belongs to this run, or train again",
            )
    for name, variable in named.items():
        variable.assign(weights[name])


def save_weights(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Writes weights by name."""
    _write(path, {f"{_WEIGHTS}{name}": value for name, value in weights.items()})


def load_weights(path: Path) -> dict[str, np.ndarray]:
    """Reads weights that `save_weights` or `save_state` wrote."""
    return _part(_read(path), _WEIGHTS)


def save_state(
    path: Path,
    model: keras.Model,
    aside: Mapping[str, Mapping[str, np.ndarray]],
    meta: Mapping[str, Any],
) -> None:
    """Writes all that it takes to go on with the training of a compiled model.

    Args:
        path: the file.
        model: whose weights, optimizer and random generators are written.
        aside: the `best` weights and the `average`.
        meta: plain values.
    """
    arrays = {f"{_WEIGHTS}{name}": value for name, value in weights_of(model).items()}
    for kind in _ASIDE:
        arrays |= {f"{kind}/{name}": value for name, value in aside[kind].items()}
    for prefix, variables in _unnamed(model):
        arrays |= {
            f"{prefix}{number}": np.array(variable) for number, variable in enumerate(variables)
        }
    arrays[_META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    _write(path, arrays)


def restore_state(
    path: Path, model: keras.Model
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
    """Puts a saved state into a compiled model; returns what `save_state` got besides."""
    arrays = _read(path)
    assign_weights(model, _part(arrays, _WEIGHTS), path)
    for prefix, variables in _unnamed(model):
        saved = _part(arrays, prefix)
        if len(saved) != len(variables):
            raise RunError("does not fit the model and its optimizer", where=path)
        for number, variable in enumerate(variables):
            variable.assign(saved[str(number)])
    aside = {kind: _part(arrays, f"{kind}/") for kind in _ASIDE}
    return aside, json.loads(arrays[_META].tobytes())


def named_weights(model: keras.Model) -> dict[str, Any]:
    """The weights by path, without the fixed vectors."""
    fixed = [
        id(variable)
        for layer in model._flatten_layers()
        if getattr(layer, "train_vectors", True) is False
        for variable in layer.weights
    ]
    return {variable.path: variable for variable in model.weights if id(variable) not in fixed}


def _unnamed(model: keras.Model) -> list[tuple[str, list[Any]]]:
    """Variables that have no lasting names, in the order in which the model always has them."""
    weights = {id(variable) for variable in model.weights}
    seeds = [variable for variable in model.variables if id(variable) not in weights]
    return [(_OPTIMIZER, model.optimizer.variables), (_SEEDS, seeds)]


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with written_aside(path) as aside:
        np.savez(aside, **arrays)  # type: ignore[arg-type]


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        # NumPy leaves a file that it opened itself open when it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise RunError(
            "the file is missing", where=path, hint="Is this the folder of a finished epoch?"
        ) from None
    except (ValueError, TypeError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise RunError(
            f"the file is damaged ({error})", where=path, hint="Restore it, or train again"
        ) from None
