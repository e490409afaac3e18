"""From the options of `train` to how it runs, and whether they agree with a run that is resumed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsa_keras.errors import ConfigError
from dsa_keras.options import check_hyper_parameters, data_options, given_hyper_parameters

if TYPE_CHECKING:
    from dsa_keras.runs import Run, RunConfig
    from dsa_keras.training.fit import Options

_MACHINE = ("jit", "precision", "deterministic")


def machine_options(args: argparse.Namespace) -> Options:
    """How the training runs on the machine."""
    from dsa_keras.training.fit import Options

    return Options(
        jit=args.jit or "auto",
        precision=args.precision or "float32",
        deterministic=bool(args.deterministic),
        histograms=args.histograms,
    )


def check_agreement(
    args: argparse.Namespace, config: RunConfig, run: Run, ignored: Sequence[str] = ("epochs",)
) -> None:
    """Refuses options that say something else than the run that is resumed.

    Args:
        args: the options.
        config: of the run.
        run: the run.
        ignored: what may differ.

    Raises:
        ConfigError: if one of them does.
    """
    if args.task != config.task:
        raise _disagreement("task", config.task, args.task, run)
    origin = config.origin
    hyper_parameters = given_hyper_parameters(args)
    check_hyper_parameters(args, config.recipe, hyper_parameters)
    of_run: dict[str, Any] = {
        **config.recipe.hyper_parameters(),
        **config.options,
        **(origin.options if origin else {}),
        "data_dir": origin and origin.data_dir,
        "vectors": config.vector_files,
    }
    names = (*_MACHINE, "data_dir", "vectors")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    given |= hyper_parameters
    given |= data_options(args, args.task) if origin else {}
    for name, value in given.items():
        found = of_run.get(name)
        if name not in ignored and _plain(value) != _plain(found):
            raise _disagreement(name, found, value, run)


def _disagreement(name: str, found: Any, given: Any, run: Run) -> ConfigError:
    return ConfigError(
        f"{name} is {found} in this run, --resume cannot change it to {given}",
        where=run.path,
        hint="Leave the option out (only --epochs may change), or start a new run",
    )


def _plain(value: Any) -> Any:
    """Lists of options are tuples of settings."""
    return list(value) if isinstance(value, tuple) else value
