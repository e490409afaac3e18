"""What is searched: rows of hyper-parameters, their values and when they apply.

A space holds the rows that do not depend on the encoder. Those of an encoder stand in its own file
(`Encoder.spaces`), under the name of the space: so an encoder of your own brings its rows along. A
space that searches over encoders takes all that have rows for it; rows that several of them share
become one.

A hyper-parameter that no row names keeps the value of the task's recipe, or the one the user gave;
one that the user gave is not searched. Rows with a condition apply to candidates that meet it: a
learning rate of 1 suits Adadelta and ruins Adam.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsa_keras.config import Recipe, TrainingConfig
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS, LogRange
from dsa_keras.encoders.encoder import Value
from dsa_keras.errors import ConfigError, nearest

Values = tuple[Value, ...] | LogRange

SHARED = ("tokenizer", "lowercase", "oov_range", "embedding_dim", "seed")
"""What the words and their vectors depend on, which all candidates of a search share."""


@dataclass(frozen=True)
class SearchRow:
    """One hyper-parameter of a space.

    Attributes:
        name: of the hyper-parameter.
        values: what it may be.
        when: the values of other hyper-parameters for which this row applies.
        key: the name in KerasTuner, which cannot have two rows of one name.
    """

    name: str
    values: Values
    when: Mapping[str, tuple[Value, ...]]

    @property
    def key(self) -> str:
        """The name, and the condition where there is one."""
        conditions = ["+".join(map(str, values)) for values in self.when.values()]
        return "/".join([self.name, *conditions])


@dataclass(frozen=True)
class Space:
    """What a search tries besides the rows of encoders.

    Attributes:
        rows: the rows; those whose hyper-parameter a recipe does not have are left out for it.
        over_encoders: whether the encoder is searched too.
    """

    rows: tuple[SearchRow, ...]
    over_encoders: bool = False


def row(name: str, values: Values, **when: Value | tuple[Value, ...]) -> SearchRow:
    """A row; a condition is one value, or several of which one must hold."""
    conditions = {
        parent: allowed if isinstance(allowed, tuple) else (allowed,)
        for parent, allowed in when.items()
    }
    return SearchRow(name, values, conditions)


# fmt: off
SPACES: dict[str, Space] = {
    # For a first look: what an hour on a laptop can tell apart.
    "small": Space((
        row("embedding_dropout", (0.2, 0.4)),
        row("head_dropout",      (0.2, 0.4)),
        row("learning_rate",     (5e-4, 1e-3, 2e-3),     optimizer="adam"),
        row("learning_rate",     (0.25, 0.5, 1.0),       optimizer="adadelta"),
        row("initial_scale",     ("rate", "keep")),
    )),
    # The paper's choices among their neighbours, so that a search can find them again.
    "paper": Space((
        row("embedding_dropout", (0.2, 0.3, 0.4)),
        row("head_dropout",      (0.2, 0.3, 0.4)),
        row("l2",                (0.0, 1e-6, 1e-5, 1e-4)),
        row("optimizer",         ("adam", "adadelta")),
        row("learning_rate",     (3e-4, 1e-3, 3e-3),     optimizer="adam"),
        row("learning_rate",     (0.3, 1.0, 3.0),        optimizer="adadelta"),
        row("batch_size",        (64, 128, 256)),
        row("initial_scale",     ("rate", "keep", "none")),
    ), over_encoders=True),
    # More encoders, and ranges instead of steps.
    "wide": Space((
        row("embedding_dropout", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        row("head_dropout",      (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        row("l2",                LogRange(1e-7, 1e-3)),
        row("optimizer",         ("adam", "adadelta")),
        row("learning_rate",     LogRange(1e-4, 1e-2),   optimizer="adam"),
        row("learning_rate",     LogRange(0.1, 5.0),     optimizer="adadelta"),
        row("batch_size",        (32, 64, 128, 256)),
        row("initial_scale",     ("rate", "keep", "none")),
    ), over_encoders=True),
}
# fmt: on


def encoders_of(space: str, fixed: Mapping[str, Any]) -> tuple[str, ...]:
    """The encoders that take part in a search: the fixed one, or all that have rows for the space.

    The default encoder comes first, the others are sorted.

    Args:
        space: a name in `SPACES`.
        fixed: values that are not searched.
    """
    if "encoder" in fixed:
        return (str(fixed["encoder"]),)
    if not SPACES[space].over_encoders:
        return (DEFAULT_ENCODER,)
    having = [name for name in ENCODERS.names() if space in ENCODERS.get(name).spaces]
    return tuple(sorted(having, key=lambda name: (name != DEFAULT_ENCODER, name)))


def rows_of(
    space: str, recipes: Mapping[str, Recipe], fixed: Mapping[str, Any]
) -> tuple[SearchRow, ...]:
    """What is searched when some hyper-parameters are fixed.

    Args:
        space: a name in `SPACES`.
        recipes: of the encoders that take part, by their names.
        fixed: values that are not searched. A row whose condition they break is dropped, a
            condition that they meet is no condition any more. What no row names is as good as
            fixed, to what the recipe has.

    Raises:
        ConfigError: if an encoder has a row for what it does not have, or what cannot be searched.
    """
    shared: dict[Any, tuple[SearchRow, list[str]]] = {}
    tables = {name: _rows_of_encoder(space, recipe) for name, recipe in recipes.items()}
    for part in (0, 1):
        for name, recipe in recipes.items():
            rows = [one for both in tables[name] for one in both]
            for one in _open_rows(tables[name][part], rows, recipe, fixed):
                same = (one.name, one.values, tuple(one.when.items()))
                shared.setdefault(same, (one, []))[1].append(name)
    found = [row("encoder", tuple(recipes))] if len(recipes) > 1 else []
    for one, encoders in shared.values():
        when = {} if len(encoders) == len(recipes) else {"encoder": tuple(encoders)}
        found.append(SearchRow(one.name, one.values, {**when, **one.when}))
    return tuple(found)


def _rows_of_encoder(space: str, recipe: Recipe) -> tuple[list[SearchRow], list[SearchRow]]:
    """The rows of an encoder, and those of the space that apply to its recipe."""
    encoder = recipe.model.encoder
    known = {*recipe.model.choosable(), *TrainingConfig.choices()}
    own = [row(name, values) for name, values in encoder.spaces.get(space, {}).items()]
    for one in own:
        if one.name not in known or one.name in SHARED:
            raise ConfigError(
                f"the encoder {encoder.name} has a row {one.name!r} in its space {space}, which "
                + ("all candidates share" if one.name in SHARED else "is none of its settings"),
                hint=nearest(one.name, sorted(known - set(SHARED))),
            )
    names = {one.name for one in own}
    common = [one for one in SPACES[space].rows if one.name in known and one.name not in names]
    return own, common


def _open_rows(
    rows: Iterable[SearchRow],
    of_encoder: Sequence[SearchRow],
    recipe: Recipe,
    fixed: Mapping[str, Any],
) -> Iterator[SearchRow]:
    """The rows that are left, with the conditions that are still open."""
    searched = {one.name for one in of_encoder} - fixed.keys()
    known = recipe.hyper_parameters()
    for one in rows:
        settled = {parent: known[parent] for parent in one.when if parent not in searched}
        if one.name in searched and all(settled[name] in one.when[name] for name in settled):
            still_open = {name: one.when[name] for name in one.when if name not in settled}
            yield SearchRow(one.name, one.values, still_open)
