"""Options that become settings: the data, the encoder, the hyper-parameters.

They are made from the registries: a new encoder, objective or data set brings its own. Those of a
user's own module do so too if `import_named` imports the module before the parser is made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import DATASETS, Entry, Option, preset
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS
from dsa_keras.errors import ConfigError, nearest
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.registry import import_module
from dsa_keras.settings import Settings

_DATA, _HYPER = "data_option ", "hyper_parameter "
"""What the names of these options start with among the parsed arguments."""


# Modules of the user's own


def add_import_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--import`, which imports a module when the arguments are parsed."""

    def imported(name: str) -> str:
        try:
            import_module(name)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return name

    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        type=imported,
        metavar="MODULE",
        help="import a module of your own that registers an encoder, an objective or a data set; "
        "may be repeated",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the positional argument `RUN`, and `--import` for what the run is made of."""
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run")
    add_import_option(parser)


def import_named(arguments: Sequence[str]) -> None:
    """Imports the modules that `--import` and `--encoder module:Name` name.

    Call it before the parser is made, which then has the options of what they register.

    Raises:
        ConfigError: if one of them cannot be imported.
    """
    for flag, value in _flags_with_values(arguments):
        if flag == "--import":
            import_module(value)
        elif flag == "--encoder":
            # A name that is not known is told when all is parsed.
            with contextlib.nullcontext() if ":" in value else contextlib.suppress(ConfigError):
                ENCODERS.get(value)


def import_words(args: argparse.Namespace) -> list[str]:
    """The words of a command line that import again what these arguments imported."""
    named = [*getattr(args, "imports", ()), *_module_of(getattr(args, "encoder", None))]
    return [word for name in dict.fromkeys(named) for word in ("--import", name)]


def _module_of(reference: str | None) -> list[str]:
    module, colon, _ = (reference or "").partition(":")
    return [module] if colon else []


def _flags_with_values(arguments: Sequence[str]) -> typing.Iterator[tuple[str, str]]:
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    for number, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if equals:
            yield flag, value
        elif number + 1 < len(words):
            yield flag, words[number + 1]


# Data


def add_task(parser: argparse.ArgumentParser) -> None:
    """Adds the positional argument `TASK`, the name of a data set."""
    parser.add_argument("task", metavar="TASK", help=", ".join(DATASETS.names()))


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--data-dir`, `--vectors`, and the options of every data set.

    Raises:
        ConfigError: if a data set has an option that the command has for something else.
    """
    data = parser.add_argument_group("data")
    data.add_argument("--data-dir", metavar="DIR", help="folder (or archive) of the data")
    data.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="word vectors, .txt or .zip or .gz; without any, words get random vectors that are "
        "trained",
    )
    groups = {"data": data}
    for flag, (option, owners) in _options_of_data().items():
        if flag in parser._option_string_actions:
            raise ConfigError(
                f"the data set {owners[0].name} has an option {flag}, which this command has for "
                "something else",
                hint="Give the option of the data set another flag",
            )
        titles = {entry.title or "data" for entry in owners}
        title = titles.pop() if len(titles) == 1 else "data"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        argument = option.argument()
        if title == "data":
            argument["help"] += f" [{', '.join(entry.name for entry in owners)}]"
        argument["help"] = argument["help"].replace("%", "%%")
        groups[title].add_argument(flag, dest=_DATA + flag, default=argparse.SUPPRESS, **argument)


def data_options(args: argparse.Namespace, task: str) -> dict[str, Any]:
    """The options of `load_dataset` that were given.

    Raises:
        ConfigError: if one of them is an option of other data sets only.
    """
    by_flag = {option.flag: option.name for option in DATASETS.get(task).options}
    options: dict[str, Any] = {}
    for flag, value in _given(args, _DATA).items():
        if flag not in by_flag:
            owners = [entry.name for entry in _options_of_data()[flag][1]]
            raise ConfigError(f"{flag} is an option of {_listed(owners)}, not of {task}")
        options[by_flag[flag]] = value
    return options


def _options_of_data() -> dict[str, tuple[Option, list[Entry]]]:
    """The options of all data sets by flag, and the data sets that have them."""
    found: dict[str, tuple[Option, list[Entry]]] = {}
    for entry in DATASETS:
        for option in entry.options:
            found.setdefault(option.flag, (option, []))[1].append(entry)
    return found


# Encoder and hyper-parameters


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
    for title, hyper_parameters in _hyper_parameters().items():
        group = parser.add_argument_group(f"{title} (default: those of the task's recipe)")
        for one in hyper_parameters.values():
            argument = _argument_of(one.hints)
            flag = _flag(one.name)
            taken = {flag, f"--no-{flag[2:]}"} & parser._option_string_actions.keys()
            if argument is not None and not taken:
                group.add_argument(
                    flag,
                    dest=_HYPER + one.name,
                    default=argparse.SUPPRESS,
                    help=one.help().replace("%", "%%"),
                    **argument,
                )


def given_hyper_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The hyper-parameters that were given by `--config`, by options and by `--encoder`.

    Raises:
        ConfigError: if the file cannot be used, or there is no such encoder.
    """
    file = getattr(args, "config", None)
    given = _read_config(file) if file else {}
    of_file = given.get("encoder")
    given |= _given(args, _HYPER)
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
    options = _given(args, _HYPER)
    for name in given:
        if name not in known:
            typed = name in options
            owners = _owners(name)
            raise ConfigError(
                f"{_flag(name) if typed else name} is no hyper-parameter of "
                f"{recipe.model.encoder.name} and {recipe.model.objective.name}",
                where=None if typed else args.config,
                hint=f"It belongs to {_listed(owners)}" if owners else None,
            )


def _without_those_of(
    encoder: str, given: Mapping[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Leaves out what a file says of its encoder if `--encoder` chose another without such."""
    chosen, options = ENCODERS.get(given["encoder"]).choices(), _given(args, _HYPER)
    its_own = set(ENCODERS.get(encoder).choices()) - set(chosen)
    shared = {name for one in OBJECTIVES for name in one.choices()} | set(TrainingConfig.choices())
    dropped = its_own - shared - options.keys()
    return {name: value for name, value in given.items() if name not in dropped}


@dataclass
class _HyperParameter:
    """What the option of a hyper-parameter needs.

    Attributes:
        name: of the field.
        hints: the types that it has in its owners.
        owners: by description the encoders or objectives that have it; empty if all have it.
    """

    name: str
    hints: list[Any] = field(default_factory=list)
    owners: dict[str, list[str]] = field(default_factory=dict)

    def help(self) -> str:
        """The descriptions, and to whom they apply if not to all."""
        parts = [
            f"{text.rstrip('.')} [{', '.join(owners)}]" if owners else text.rstrip(".")
            for text, owners in self.owners.items()
        ]
        return "; ".join(parts)


def _hyper_parameters() -> dict[str, dict[str, _HyperParameter]]:
    """The hyper-parameters of all that is registered, by the title of their group and by name."""
    own = {name: [ModelConfig] for name in ModelConfig.own_choices()}
    groups = {
        "encoder hyper-parameters": _collected(ENCODERS),
        "head hyper-parameters": _collected(OBJECTIVES),
        "word vector hyper-parameters": {
            name: _described(name, {"": ModelConfig}, 1) for name in own
        },
        "training hyper-parameters": {
            name: _described(name, {"": TrainingConfig}, 1) for name in TrainingConfig.choices()
        },
    }
    # What several groups have is in the last of them: its help names no encoder.
    seen: set[str] = set()
    for title in reversed(groups):
        groups[title] = {name: one for name, one in groups[title].items() if name not in seen}
        seen |= groups[title].keys()
    return groups


def _collected(registry: typing.Iterable[type[Settings]]) -> dict[str, _HyperParameter]:
    kinds = {kind.name: kind for kind in registry}  # type: ignore[attr-defined]
    names = dict.fromkeys(name for kind in kinds.values() for name in kind.choices())
    found = {}
    for name in names:
        owners = {key: kind for key, kind in kinds.items() if name in kind.choices()}
        found[name] = _described(name, owners, len(kinds))
    return found


def _described(name: str, owners: Mapping[str, type[Settings]], count: int) -> _HyperParameter:
    one = _HyperParameter(name)
    for owner, kind in owners.items():
        one.owners.setdefault(kind.described()[name], []).append(owner)
        if kind.hints()[name] not in one.hints:
            one.hints.append(kind.hints()[name])
    if len(owners) == count and len(one.owners) == 1:
        one.owners = {text: [] for text in one.owners}
    return one


def _owners(name: str) -> list[str]:
    return [one.name for kind in (ENCODERS, OBJECTIVES) for one in kind if name in one.choices()]


def _argument_of(hints: Sequence[Any]) -> dict[str, Any] | None:
    """The arguments of `add_argument` for a field; None for a type that is no plain value."""
    hint = hints[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and arguments[0] in _PLAIN:
        return {"type": arguments[0], "nargs": "+", "metavar": "N"}
    if len(hints) > 1:
        return {"type": _plain_value, "metavar": "VALUE"}
    if origin is typing.Literal:
        return {"type": _plain_value, "choices": arguments}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    return {"type": hint, "metavar": _PLAIN[hint]} if hint in _PLAIN else None


_PLAIN = {int: "N", float: "X", str: "TEXT"}


def _plain_value(text: str) -> Any:
    """A number, true, false, or else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _read_config(path: Path) -> dict[str, Any]:
    """The hyper-parameters in a flat object, in the config of a run or in a result of a search."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("no such file", where=path, hint="Give a JSON file") from None
    except (OSError, ValueError, RecursionError) as error:
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
    kinds: tuple[type[Settings], ...] = (ModelConfig, TrainingConfig, *ENCODERS, *OBJECTIVES)
    # What the data decides is not a choice.
    of_data = {name for kind in kinds for name in kind.of_data()}
    known = ["encoder", *(one for group in _hyper_parameters().values() for one in group)]
    for name in values:
        if name not in known and name not in of_data:
            raise ConfigError(f"unknown hyper-parameter {name!r}", hint=nearest(name, known))
    chosen = {name: value for name, value in values.items() if name not in of_data}
    if "encoder" in chosen:
        chosen["encoder"] = ENCODERS.get(str(chosen["encoder"])).name
    return chosen


def _given(args: argparse.Namespace, prefix: str) -> dict[str, Any]:
    """The parsed values of the options of a kind, those that were given."""
    return {
        name.removeprefix(prefix): value
        for name, value in vars(args).items()
        if name.startswith(prefix)
    }


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
