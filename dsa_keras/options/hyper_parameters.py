"""The encoder and the hyper-parameters, from options and from files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import preset
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS
from dsa_keras.errors import ConfigError, nearest
from dsa_keras.heads import HEADS
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.options.catalogue import argument_of, hyper_parameter_groups, owners_of
from dsa_keras.options.data import data_options
from dsa_keras.options.defaults import RecipeDefault
from dsa_keras.options.parsed import HYPER, listed, options_given
from dsa_keras.settings import Settings


def add_encoder_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--encoder`."""
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help=f"{', '.join(ENCODERS.names())}, or package.module:Name for one of your own "
        f"(default: {DEFAULT_ENCODER})",
    )


def add_hyper_parameters(parser: argparse.ArgumentParser) -> None:
    """Adds an option for every hyper-parameter, and `--config` for a file of them.

    Call it last: a hyper-parameter that is named as another option can be set by `--config` only.
    """
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="hyper-parameters as JSON: an object of names and values, or a config.json of a run; "
        "options win over it",
    )
    for title, hyper_parameters in hyper_parameter_groups().items():
        group = parser.add_argument_group(title)
        for one in hyper_parameters.values():
            argument = argument_of(one.hints)
            flag = _flag(one.name)
            taken = {flag, f"--no-{flag[2:]}"} & parser._option_string_actions.keys()
            if argument is not None and not taken:
                action = group.add_argument(
                    flag,
                    dest=HYPER + one.name,
                    default=argparse.SUPPRESS,
                    help=one.help().replace("%", "%%") + "%(of_recipes)s",
                    **argument,
                )
                # The recipes are asked when a help is printed, not for every command.
                vars(action)["of_recipes"] = RecipeDefault(one.name)


def given_hyper_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The hyper-parameters that were given by `--config`, by options and by `--encoder`.

    Raises:
        ConfigError: if the file cannot be used, or there is no such encoder.
    """
    file = getattr(args, "config", None)
    given = _read_config(file) if file else {}
    of_file = given.get("encoder")
    given |= options_given(args, HYPER)
    if getattr(args, "encoder", None):
        given["encoder"] = ENCODERS.get(args.encoder).name
    if of_file is not None and given["encoder"] != of_file:
        given = _without_those_of(of_file, given, args)
    return given


def chosen_recipe(args: argparse.Namespace, task: str) -> Recipe:
    """The recipe of a data set with the changes that were given.

    Raises:
        ConfigError: if the chosen encoder has no such hyper-parameter, or it cannot be so.
    """
    given = given_hyper_parameters(args)
    encoder = given.pop("encoder", DEFAULT_ENCODER)
    recipe = preset(task, encoder, data_options(args, task), vectors=bool(args.vectors))
    check_hyper_parameters(args, recipe, given)
    return recipe.replace(**given)


def check_hyper_parameters(
    args: argparse.Namespace, recipe: Recipe, given: Mapping[str, Any]
) -> None:
    """Raises ConfigError if a recipe does not have the hyper-parameters that were given."""
    known = {"encoder", *recipe.model.choosable(), *TrainingConfig.choices()}
    options = options_given(args, HYPER)
    for name in given:
        if name not in known:
            typed = name in options
            owners = owners_of(name)
            raise ConfigError(
                f"{_flag(name) if typed else name} is no hyper-parameter of "
                f"{recipe.model.encoder.name} and {recipe.model.objective.name}",
                where=None if typed else args.config,
                hint=f"It belongs to {listed(owners)}" if owners else None,
            )


def _without_those_of(
    encoder: str, given: Mapping[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Leaves out what a file says of its encoder if `--encoder` chose another without such."""
    chosen, options = ENCODERS.get(given["encoder"]).choices(), options_given(args, HYPER)
    its_own = set(ENCODERS.get(encoder).choices()) - set(chosen)
    others = (*HEADS, *OBJECTIVES, TrainingConfig)
    shared = {name for one in others for name in one.choices()}
    dropped = its_own - shared - options.keys()
    return {name: value for name, value in given.items() if name not in dropped}


def _read_config(path: Path) -> dict[str, Any]:
    """The hyper-parameters in a flat object, in the config of a run or in a result of a search."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("no such file", where=path, hint="Give a JSON file") from None
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", where=path) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be read as JSON ({error})", where=path) from None
    if not isinstance(values, dict):
        raise ConfigError("is not a JSON object of names and values", where=path)
    try:
        return _chosen_in(values)
    except ConfigError as error:
        raise ConfigError(error.problem, where=path, hint=error.hint) from None


def _chosen_in(values: dict[str, Any]) -> dict[str, Any]:
    from dsa_keras.runs.config import RunConfig
    from dsa_keras.runs.format_1 import hyper_parameters

    if "format" in values:
        return RunConfig.from_dict(values).recipe.hyper_parameters()
    if isinstance(values.get("model"), dict) and isinstance(values.get("training"), dict):
        try:
            return hyper_parameters(values)
        except (KeyError, TypeError) as error:
            raise ConfigError(f"its model has no {error}") from None
    parts = (*ENCODERS, *HEADS, *OBJECTIVES)
    kinds: tuple[type[Settings], ...] = (ModelConfig, TrainingConfig, *parts)
    # What the data decides is not a choice.
    of_data = {name for kind in kinds for name in kind.of_data()}
    known = ["encoder", *(one for group in hyper_parameter_groups().values() for one in group)]
    for name in values:
        if name not in known and name not in of_data:
            raise ConfigError(f"unknown hyper-parameter {name!r}", hint=nearest(name, known))
    chosen = {name: value for name, value in values.items() if name not in of_data}
    if "encoder" in chosen:
        chosen["encoder"] = ENCODERS.registered(str(chosen["encoder"])).name
    return chosen


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
