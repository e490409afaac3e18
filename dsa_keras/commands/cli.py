"""What the command lines share: parsers that help, one-line errors, hyper-parameters as options.

`run_command` is the whole life of a command: exit code 0 on success only, 2 for a user's mistake
with one line that says what was wrong and what to do, 130 after Ctrl-C. Commands import what they
need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import sys
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dsa_keras.config import JsonConfig, ModelConfig, TrainingConfig
from dsa_keras.errors import ConfigError, DsaError, nearest


class Parser(argparse.ArgumentParser):
    """An argument parser whose help keeps its layout and whose errors name the nearest option."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parses; an option that does not exist is refused with the nearest name."""
        values, rest = super().parse_known_args(*args, **kwargs)
        for word in rest:
            if word.startswith("--"):
                name = word.split("=")[0]
                hint = nearest(name, self._option_string_actions).split(" Known:")[0]
                near = f" {hint}" if hint.startswith("Did") else ""
                self.error(f"unknown option {name}.{near} See {self.prog} --help")
        return values, rest

    def error(self, message: str) -> NoReturn:
        """One line, exit code 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Parses and runs the command that the parser's `run` default names; returns the exit code."""
    args = parser.parse_args(arguments)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        return args.run(args) or 0
    except DsaError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away (head, less): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or error
        print(f"{parser.prog}: error: {place}{reason}", file=sys.stderr)
        return 2


_UNUSED = ("sklearn", "matplotlib.pyplot")
"""Loaded by Keras if they are installed, for functions that no command calls; it takes a third of
the time until a command begins."""


def load_tensorflow(run_dir: Path | None = None) -> None:
    """Loads TensorFlow and Keras, without notes on absent GPUs or, later, on retracing.

    Args:
        run_dir: a folder that is refused before that, which takes seconds, if it is no run.
    """
    if run_dir is not None:
        from dsa_keras.training.run import Run

        Run(run_dir).config()
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with _as_if_absent(_UNUSED):
            tensorflow = importlib.import_module("tensorflow")
            importlib.import_module("keras")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
    tensorflow.get_logger().setLevel("ERROR")


@contextlib.contextmanager
def _as_if_absent(names: Sequence[str]) -> Iterator[None]:
    """Lets imports of modules fail for the time of a `with` block, unless they are loaded."""
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def example(text: str) -> str:
    """The part of a `--help` that shows the command in use."""
    lines = "\n".join(f"  {line}" for line in text.strip().splitlines())
    return f"example:\n{lines}"


def add_hyper_parameters(parser: argparse.ArgumentParser) -> None:
    """Adds an option for every field of the configs, and `--config` for a file of them."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="hyper-parameters as JSON: an object of names and values, or a config.json of a run; "
        "options win over it",
    )
    for title, config in (("model", ModelConfig), ("training", TrainingConfig)):
        group = parser.add_argument_group(f"{title} hyper-parameters (default: the paper's)")
        described = _described(config)
        types = typing.get_type_hints(config)
        for field in dataclasses.fields(config):
            if field.name in ("encoder", "vocabulary_size", "num_classes"):
                continue
            group.add_argument(
                "--" + field.name.replace("_", "-"),
                dest=f"hyper_{field.name}",
                default=argparse.SUPPRESS,
                help=described[field.name],
                **_argument_of(types[field.name]),
            )


def hyper_parameters(
    args: argparse.Namespace, model: ModelConfig, training: TrainingConfig
) -> tuple[ModelConfig, TrainingConfig]:
    """The configs with the changes of `--config` and of the options, the latter winning."""
    changes = given_hyper_parameters(args)
    parts = [
        {name: value for name, value in changes.items() if name in _names(config)}
        for config in (ModelConfig, TrainingConfig)
    ]
    return model.replace(**parts[0]), training.replace(**parts[1])


def given_hyper_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The hyper-parameters that the user chose, by `--config`, by options and by `--encoder`."""
    changes = _read_config(args.config) if args.config else {}
    known = _names(ModelConfig) | _names(TrainingConfig)
    for name in changes:
        if name not in known:
            raise ConfigError(
                f"unknown hyper-parameter {name!r}", where=args.config, hint=nearest(name, known)
            )
    # What the data decides is not a choice.
    for name in ("vocabulary_size", "num_classes"):
        changes.pop(name, None)
    changes |= {
        name.removeprefix("hyper_"): value
        for name, value in vars(args).items()
        if name.startswith("hyper_")
    }
    if getattr(args, "encoder", None):
        changes["encoder"] = args.encoder
    return changes


def _read_config(path: Path) -> dict[str, Any]:
    """Reads a flat object, or the `model` and `training` parts of a run's config."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("no such file", where=path, hint="Give a JSON file") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"cannot be read as JSON ({error})", where=path) from None
    if not isinstance(values, dict):
        raise ConfigError("is not a JSON object of names and values", where=path)
    parts = values.get("model"), values.get("training")
    if isinstance(parts[0], dict) and isinstance(parts[1], dict):
        return {**parts[0], **parts[1]}
    return values


def _names(config: type[JsonConfig]) -> set[str]:
    return {field.name for field in dataclasses.fields(config)}  # type: ignore[arg-type]


def _described(config: type[JsonConfig]) -> dict[str, str]:
    """The description of each field, from the class's docstring: there is no second text."""
    texts: dict[str, str] = {}
    name = ""
    lines = (config.__doc__ or "").split("Attributes:")[1].splitlines()
    for line in lines:
        words = line.strip()
        start, colon, rest = words.partition(": ")
        if colon and line.startswith(" " * 8) and not line.startswith(" " * 9):
            name, texts[start] = start, rest
        elif words and name:
            texts[name] += " " + words
    return {name: text.replace("`", "").replace("%", "%%") for name, text in texts.items()}


def _argument_of(hint: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"choices": arguments}
    if origin is tuple:
        return {"type": arguments[0], "nargs": "+", "metavar": "N"}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    return {"type": hint, "metavar": {int: "N", float: "X"}.get(hint, "TEXT")}
