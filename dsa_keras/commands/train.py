"""`train`: data and settings in, a run folder out; `--seeds` makes several, `--resume` goes on.

The paper's recipe is the default. A run keeps its settings in `config.json`, so that `--resume`
needs nothing but the folder; what is given with it must agree with the run.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.train_settings import check_agreement, machine_options
from dsa_keras.data.archives import check_file
from dsa_keras.datasets import DATASETS, load_dataset
from dsa_keras.encoders import DEFAULT_ENCODER
from dsa_keras.errors import ConfigError
from dsa_keras.options import (
    add_data_options,
    add_encoder_option,
    add_hyper_parameters,
    add_import_option,
    add_task,
    chosen_recipe,
    data_options,
    given_hyper_parameters,
    import_words,
)
from dsa_keras.runs import Run

if TYPE_CHECKING:
    from dsa_keras.config import ModelConfig
    from dsa_keras.datasets import Dataset
    from dsa_keras.inspection.probe import Probe
    from dsa_keras.runs import RunConfig

_EXAMPLE = """
dsa-keras train sst2 --data-dir data --vectors glove.840B.300d.zip --run-dir runs/sst2
dsa-keras train file --file reviews.csv --text-column review --label-column stars
dsa-keras train snli --data-dir data --vectors glove.840B.300d.zip --seeds 5
dsa-keras train --resume runs/sst2
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "train",
        help="train a model into a run folder",
        usage="dsa-keras train TASK [options]\n       dsa-keras train --resume RUN [options]",
        description="Trains a model into a run folder. The paper's recipe is the default.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_task(parser, needed=False)
    add_encoder_option(parser)
    add_import_option(parser)
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="default: runs/TASK[-ENCODER]")
    parser.add_argument("--seeds", type=int, metavar="N", help="train N runs, DIR-seed0 and so on")
    parser.add_argument(
        "--resume",
        nargs="?",
        const=True,
        default=False,
        metavar="RUN",
        help="go on from the last finished epoch of the run in this folder, or in --run-dir",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an old run in the folder")
    add_data_options(parser)
    machine = parser.add_argument_group("how it runs")
    machine.add_argument(
        "--jit", choices=("auto", "on", "off"), help="XLA; auto (default): on with a GPU"
    )
    machine.add_argument(
        "--precision",
        choices=("float32", "mixed_float16", "mixed_bfloat16"),
        help="default: float32",
    )
    machine.add_argument(
        "--deterministic", action="store_true", default=None, help="same seed, same bits"
    )
    machine.add_argument(
        "--histograms", action="store_true", help="log histograms of the weights for TensorBoard"
    )
    machine.add_argument(
        "--probe",
        metavar="FILE|N",
        help="log attention maps of these sentences (a file, one a line) or of N sentences of the "
        "dev split after every epoch, for TensorBoard",
    )
    add_hyper_parameters(parser)


def run(args: argparse.Namespace) -> int:
    """Trains one run, or one per seed."""
    if args.resume and args.force:
        raise ConfigError("--resume goes on with a run, --force removes it", hint="Give one")
    if args.seeds is not None and args.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1. Received: {args.seeds}")
    _find_resumed(args)
    if args.task and ":" in args.task:
        args.imports = [*args.imports, args.task.partition(":")[0]]
        args.task = DATASETS.get(args.task).name
    runs = _runs(args)
    # What can be refused is refused before the first of many hours.
    like = None
    if args.resume:
        like = next((one for one in runs.values() if one.config_file.exists()), Run(_run_dir(args)))
        args.task = args.task or like.config().task
        check_agreement(args, like.config(), like, ignored=("seed", "epochs"))
    else:
        chosen_recipe(args, args.task)
        for path in args.vectors or ():
            check_file(path)
        for one in runs.values():
            one.check_free(force=args.force)
    load_tensorflow()
    for seed, one in runs.items():
        if args.seeds is not None:
            print(f"seed {seed}: {one.path}", flush=True)
        if code := _train_one(args, one, seed, like):
            return code
    if args.seeds is not None:
        _print_summary(list(runs.values()))
    return 0


def _find_resumed(args: argparse.Namespace) -> None:
    """Puts the folder after `--resume` where that of `--run-dir` is.

    Raises:
        ConfigError: if it is not said which run, or what to train.
    """
    if isinstance(args.resume, str):
        if args.task is None and args.run_dir is not None:
            # TASK stands behind the option: `train --resume sst2 --run-dir runs/sst2`.
            args.task = args.resume
        elif args.run_dir is not None:
            raise ConfigError(
                f"two run folders are given, {args.resume} and {args.run_dir}",
                where="--resume",
                hint="Give one of them",
            )
        else:
            args.run_dir = Path(args.resume)
        args.resume = True
    if args.task is None and not (args.resume and args.run_dir is not None):
        raise ConfigError(
            "it is not said which run to go on with" if args.resume else "TASK is missing",
            hint="Give its folder: --resume RUN"
            if args.resume
            else f"Name one of {', '.join(DATASETS.names())}, or go on with --resume RUN",
        )


def _run_dir(args: argparse.Namespace) -> Path:
    if args.run_dir is not None:
        return args.run_dir
    encoder = given_hyper_parameters(args).get("encoder", DEFAULT_ENCODER)
    return Path("runs") / (args.task if encoder == DEFAULT_ENCODER else f"{args.task}-{encoder}")


def _runs(args: argparse.Namespace) -> dict[int | None, Run]:
    """The runs to train by their seeds; a single one has that of its recipe."""
    folder = _run_dir(args)
    if args.seeds is None:
        return {None: Run(folder)}
    first = given_hyper_parameters(args).get("seed", 0)
    if not isinstance(first, int):
        raise ConfigError(f"seed must be a whole number. Received: {first!r}")
    return {seed: Run(f"{folder}-seed{seed}") for seed in range(first, first + args.seeds)}


def _train_one(args: argparse.Namespace, one: Run, seed: int | None, like: Run | None) -> int:
    """Trains or resumes a run; Ctrl-C and SIGTERM end it with a word on how to go on."""
    with _terminated_as_interrupted():
        try:
            if like is None:
                _train_new(args, one, seed)
            elif one.config_file.exists():
                _resume(args, one, seed)
            else:
                _train_like(args, one, seed, like.config())
        except KeyboardInterrupt:
            _print_how_to_resume(args, one)
            return 130
    _print_result(args, one)
    return 0


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Makes SIGTERM end the training as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _train_new(args: argparse.Namespace, one: Run, seed: int | None) -> None:
    from dsa_keras.training.task_data import prepare_task
    from dsa_keras.training.trainer import train

    recipe = chosen_recipe(args, args.task)
    if seed is not None:
        recipe = recipe.replace(seed=seed)
    dataset = load_dataset(args.task, args.data_dir, **data_options(args, args.task))
    for split, count in dataset.skipped.items():
        if count:
            print(f"{split}: {count:,} bad rows left out")
    vectors = args.vectors or ()
    if not vectors and DATASETS.get(args.task).vectors:
        kind = "trained" if recipe.model.train_embeddings else "fixed"
        print(f"no --vectors given: words get random vectors that are {kind}", flush=True)
    probe = _probe(args, one, recipe.model, dataset)
    dimension = given_hyper_parameters(args).get("embedding_dim")
    train(
        dataset,
        one.path,
        recipe,
        vectors=vectors,
        options=replace(machine_options(args), probe=probe),
        force=args.force,
        task_data=prepare_task(dataset, recipe, vectors, dimension=dimension),
    )


def _train_like(args: argparse.Namespace, one: Run, seed: int | None, config: RunConfig) -> None:
    """Trains the run of another seed with the settings of a sibling."""
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import resumed_options, train

    epochs = given_hyper_parameters(args).get("epochs", config.training.epochs)
    dataset = config.dataset()
    probe = _probe(args, one, config.model, dataset)
    train(
        dataset,
        one.path,
        config.recipe.replace(seed=seed, epochs=epochs),
        vectors=config.vector_files,
        options=resumed_options(config, Options(histograms=args.histograms, probe=probe)),
    )


def _resume(args: argparse.Namespace, one: Run, seed: int | None) -> None:
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import resume

    config = one.config()
    check_agreement(args, config, one, ignored=("epochs",) if seed is None else ("seed", "epochs"))
    before = len(one.records())
    epochs = given_hyper_parameters(args).get("epochs")
    dataset = probe = None
    if args.probe is not None:
        dataset = config.dataset()
        probe = _probe(args, one, config.model, dataset)
    shown = Options(histograms=args.histograms, probe=probe)
    resume(one.path, epochs=epochs, dataset=dataset, options=shown)
    if before and len(one.records()) == before:
        print(
            f"nothing is left to do: {before} epochs are done"
            + (
                f", and the {config.monitor.title} has not improved for long enough to stop early"
                if before < (epochs or config.training.epochs)
                else "; train longer with --epochs"
            )
        )


def _probe(
    args: argparse.Namespace, one: Run, model: ModelConfig, dataset: Dataset
) -> Probe | None:
    """What looks at the model after each epoch; refused before the training if it cannot."""
    if args.probe is None:
        return None
    from dsa_keras.inspection.probe import Probe, probe_texts
    from dsa_keras.models.network import check_attends

    check_attends(model)
    return Probe(probe_texts(args.probe, dataset), one.logs / "probe")


def _print_how_to_resume(args: argparse.Namespace, one: Run) -> None:
    if not one.config_file.exists():
        print("\nstopped before the training began; nothing was kept")
        return
    done = len(one.records())
    words = ["train", "--resume", str(_run_dir(args)), *import_words(args)]
    if args.seeds is not None:
        words += ["--seed", str(next(iter(_runs(args)))), "--seeds", str(args.seeds)]
    after = f"after epoch {done}, which is saved" if done else "before the first epoch was finished"
    print(f"\nstopped {after}. Go on with:\n  dsa-keras {shlex.join(words)}")


def _print_result(args: argparse.Namespace, one: Run) -> None:
    config = one.config()
    monitor, best = config.monitor, one.best(config)
    path = shlex.join([str(one.path), *import_words(args)])
    print(
        f"{monitor.title} {best[monitor.key]:.4f} (epoch {best['epoch']}), "
        f"run folder {shlex.quote(str(one.path))}\n"
        "next:\n"
        f"  dsa-keras evaluate {path}\n"
        f"  dsa-keras predict {path} {config.model.inputs.example_arguments}\n"
        f"  tensorboard --logdir {shlex.quote(str(one.logs))}",
        flush=True,
    )


def _print_summary(runs: list[Run]) -> None:
    from dsa_keras.commands.compare import mean_and_deviation

    monitor = runs[0].config().monitor
    figures = [one.best(one.config())[monitor.key] for one in runs]
    print(
        f"{len(runs)} seeds: {monitor.title} {mean_and_deviation(figures)}\n"
        f"  dsa-keras compare {shlex.join(str(one.path) for one in runs)}"
    )
