"""Weights and training state as plain arrays in `.npz` files: no code, no pickle.

`best.npz` holds the weights of the best epoch. `last.npz` holds all that it takes to go
on: the weights, their average, the best ones, the optimizer's and the random generators' state, and
the schedule. It is one file because one rename makes it appear: a run that is killed at any moment
finds a `last.npz` that agrees with itself. Fixed word vectors do not change, so they are a file of
their own, written once.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.errors import RunError

if TYPE_CHECKING:
    import keras

    from dsa_keras.models import Network

_WEIGHTS, _OPTIMIZER, _SEEDS, _META = "weights/", "optimizer/", "seeds/", "meta"
_ASIDE = ("best", "average")
_HINT = "Restore the file that belongs to this run, or train again"


def weights_of(network: Network) -> dict[str, np.ndarray]:
    """The network's weights by name, without fixed word vectors."""
    return {name: np.array(variable) for name, variable in network.named_weights().items()}


def assign_weights(network: Network, weights: Mapping[str, np.ndarray], where: Path) -> None:
    """Puts weights into a network.

    Raises:
        RunError: if they are not the weights of such a network.
    """
    named = network.named_weights()
    _check(weights, named, where)
    for name, variable in named.items():
        variable.assign(weights[name])


def _check(weights: Mapping[str, np.ndarray], named: Mapping[str, Any], where: Path) -> None:
    """Raises RunError unless these are arrays for these variables."""
    if odd := sorted(named.keys() ^ weights.keys()):
        raise RunError(
            f"its weights are not those of the model in config.json (first difference: {odd[0]})",
            where=where,
            hint=_HINT,
        )
    for name, variable in named.items():
        if problem := _problem(weights[name], variable):
            raise RunError(f"{name} {problem}", where=where, hint=_HINT)


def _problem(value: np.ndarray, variable: Any) -> str | None:
    shape, kind = tuple(variable.shape), np.dtype(variable.dtype).kind
    if value.shape != shape:
        return f"has shape {value.shape}, the model needs {shape}"
    if value.dtype.kind != kind:
        return f"is of type {value.dtype}, the model needs {variable.dtype}"
    if kind == "f" and not np.isfinite(value).all():
        return "holds numbers that are not finite"
    return None


def weights_file(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a file of weights."""
    return {f"{_WEIGHTS}{name}": value for name, value in weights.items()}


def weights_in(data: bytes, where: Path) -> dict[str, np.ndarray]:
    """The weights in a file of weights or of a state, given as its bytes."""
    return _part(_arrays(data, where), _WEIGHTS)


def state_file(
    network: Network,
    model: keras.Model,
    aside: Mapping[str, Mapping[str, np.ndarray]],
    meta: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """The arrays of a file with all that it takes to go on with a training.

    Args:
        network: whose weights are written.
        model: the compiled model on it, whose optimizer and random generators are written.
        aside: the `best` weights and the `average`.
        meta: plain values.
    """
    arrays = weights_file(weights_of(network))
    for kind in _ASIDE:
        arrays |= {f"{kind}/{name}": value for name, value in aside[kind].items()}
    for prefix, variables in _unnamed(model):
        arrays |= {
            f"{prefix}{number}": np.array(variable) for number, variable in enumerate(variables)
        }
    arrays[_META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    return arrays


def restore_state(
    data: bytes, network: Network, model: keras.Model, where: Path
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
    """Puts a saved state into a compiled model; returns what `state_file` got besides."""
    arrays = _arrays(data, where)
    try:
        meta = json.loads(arrays[_META].tobytes())
    except (KeyError, ValueError) as error:
        raise RunError(f"the file is damaged ({error!r})", where=where, hint=_HINT) from None
    aside = {kind: _part(arrays, f"{kind}/") for kind in _ASIDE}
    for weights in filter(None, aside.values()):
        _check(weights, network.named_weights(), where)
    assign_weights(network, _part(arrays, _WEIGHTS), where)
    for prefix, variables in _unnamed(model):
        saved = _part(arrays, prefix)
        numbered = {str(number): variable for number, variable in enumerate(variables)}
        if saved.keys() != numbered.keys() or any(
            _problem(saved[number], variable) for number, variable in numbered.items()
        ):
            raise RunError("does not fit the model and its optimizer", where=where, hint=_HINT)
        for number, variable in numbered.items():
            variable.assign(saved[number])
    return aside, meta


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


def _arrays(data: bytes, where: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # NumPy raises whatever its parsers of a damaged header do
        raise RunError(
            f"the file is damaged ({error!r:.200})", where=where, hint="Restore it, or train again"
        ) from None
