"""From the options of `train` to its settings: configs, data, and how it runs on the machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dsa_keras.commands.cli import given_hyper_parameters, hyper_parameters
from dsa_keras.config import DEMO_TASKS, ModelConfig, TrainingConfig, preset
from dsa_keras.errors import ConfigError

if TYPE_CHECKING:
    from dsa_keras.training.fit import Options
    from dsa_keras.training.run import Run, RunConfig

_FILE_OPTIONS = {
    "file": "path",
    "train_file": "train",
    "dev_file": "dev",
    "test_file": "test",
    "text_column": "text_column",
    "pair_column": "pair_column",
    "label_column": "label_column",
    "split_column": "split_column",
    "fractions": "fractions",
}
"""Options of the task `file` and what `load_dataset` calls them."""

_RANDOM_VECTORS_RANGE = 0.5
"""Random word vectors that are all a model has need the scale of real ones to be told apart."""


def configs(args: argparse.Namespace) -> tuple[ModelConfig, TrainingConfig]:
    """The recipe of the task with the user's changes.

    Own files are trained like SST, pairs like SNLI, with `ptb` for both: `kim`, which was made for
    SST's tokenised text, leaves full stops and the like on the words of plain text. Without word
    vectors the random ones are trained, and start at a scale that tells words apart.
    """
    encoder = given_hyper_parameters(args).get("encoder", "dsa-single")
    task = args.task
    if task == "file":
        task = "sst2" if args.pair_column is None else "snli"
    recipe = preset(task, encoder)
    model, training = recipe.model, recipe.training
    if args.task == "file":
        training = training.replace(tokenizer="ptb")
    if not args.vectors and args.task not in DEMO_TASKS:
        model = model.replace(train_embeddings=True)
        training = training.replace(oov_range=_RANDOM_VECTORS_RANGE)
    return hyper_parameters(args, model, training)


def data_options(args: argparse.Namespace) -> dict[str, Any]:
    """What `load_dataset` gets beyond name and folder."""
    options: dict[str, Any] = {}
    for option, name in _FILE_OPTIONS.items():
        if (value := getattr(args, option)) is not None:
            _require_task(args, option, ("file",))
            options[name] = value
    if args.sentences_only:
        _require_task(args, "sentences_only", ("sst2", "sst5"))
        options["phrases"] = False
    if args.size is not None:
        _require_task(args, "size", DEMO_TASKS)
        options["size"] = args.size
    if args.on_bad_rows is not None:
        options["on_bad_rows"] = args.on_bad_rows
    return options


def _require_task(args: argparse.Namespace, option: str, tasks: tuple[str, ...]) -> None:
    if args.task not in tasks:
        raise ConfigError(
            f"--{option.replace('_', '-')} is an option of the task {' and '.join(tasks)}, not of "
            f"{args.task}"
        )


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
    args: argparse.Namespace, config: RunConfig, one: Run, ignored: tuple[str, ...]
) -> None:
    """Refuses options that say something else than the run that is resumed."""
    of_run: dict[str, Any] = {
        "task": config.task,
        **config.model.to_dict(),
        **config.training.to_dict(),
        **config.options,
        **config.data["options"],
        "data_dir": config.data["data_dir"],
        "vectors": list(config.vectors["files"]),
    }
    names = ("task", "jit", "precision", "deterministic", "data_dir", "vectors")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    given |= given_hyper_parameters(args) | data_options(args)
    for name, value in given.items():
        if name not in ignored and value != of_run.get(name):
            raise ConfigError(
                f"{name} is {of_run.get(name)} in this run, --resume cannot change it to {value}",
                where=one.path,
                hint="Leave the option out (only --epochs may change), or start a new run",
            )
