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

from dsa_keras.commands.cli import (
    add_hyper_parameters,
    example,
    given_hyper_parameters,
    load_tensorflow,
)
from dsa_keras.commands.train_settings import (
    check_agreement,
    configs,
    data_options,
    machine_options,
)
from dsa_keras.config import DEMO_TASKS, ENCODERS, PAPER_TASKS
from dsa_keras.errors import ConfigError, RunError

if TYPE_CHECKING:
    from dsa_keras.data.dataset import Dataset
    from dsa_keras.inspection.probe import Probe
    from dsa_keras.training.run import Run

TASKS = (*PAPER_TASKS, "file", *DEMO_TASKS)

_EXAMPLE = """
python -m dsa_keras train sst2 --data-dir data --vectors glove.840B.300d.zip --run-dir runs/sst2
python -m dsa_keras train file --file reviews.csv --text-column review --label-column stars
python -m dsa_keras train snli --data-dir data --vectors glove.840B.300d.zip --seeds 5
python -m dsa_keras train sst2 --run-dir runs/sst2 --resume
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "train",
        help="train a model into a run folder",
        usage="python -m dsa_keras train TASK [options]",
        description="Trains a model into a run folder. The paper's recipe is the default.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("task", choices=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--encoder", choices=ENCODERS, help="default: dsa-single")
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="default: runs/TASK[-ENCODER]")
    parser.add_argument("--seeds", type=int, metavar="N", help="train N runs, DIR-seed0 and so on")
    parser.add_argument("--resume", action="store_true", help="go on from the last finished epoch")
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


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which data to train on."""
    data = parser.add_argument_group("data")
    data.add_argument("--data-dir", metavar="DIR", help="folder (or archive) of the data")
    data.add_argument(
        "--vectors",
        nargs="+",
        metavar="FILE",
        help="word vectors, .txt or .zip or .gz; without any, words get random vectors that are "
        "trained",
    )
    data.add_argument(
        "--on-bad-rows",
        choices=("error", "skip"),
        help="stop at a bad row (default), or leave it out and count it",
    )
    data.add_argument(
        "--sentences-only",
        action="store_true",
        default=None,
        help="SST: train on whole sentences, not on all phrases",
    )
    data.add_argument("--size", type=int, metavar="N", help="demo tasks: number of examples")
    file = parser.add_argument_group("TASK file: your own .csv, .tsv or .jsonl (also .gz, .zip)")
    file.add_argument("--file", metavar="FILE", help="one file with all the data")
    for split in ("train", "dev", "test"):
        file.add_argument(f"--{split}-file", metavar="FILE", help=f"file of the {split} split")
    file.add_argument("--text-column", metavar="NAME", help="the sentence (default: text)")
    file.add_argument("--pair-column", metavar="NAME", help="the second sentence, for pairs")
    file.add_argument("--label-column", metavar="NAME", help="the class (default: label)")
    file.add_argument("--split-column", metavar="NAME", help="says train, dev or test per row")
    file.add_argument(
        "--fractions",
        nargs=3,
        type=float,
        metavar=("TRAIN", "DEV", "TEST"),
        help="shares of one file (default: 0.8 0.1 0.1)",
    )


def run(args: argparse.Namespace) -> int:
    """Trains one run, or one per seed."""
    if args.resume and args.force:
        raise ConfigError("--resume goes on with a run, --force removes it", hint="Give one")
    if args.seeds is not None and args.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {args.seeds}")
    folder = _run_dir(args)
    given_hyper_parameters(args)
    data_options(args)
    load_tensorflow()
    from dsa_keras.training.run import Run

    if args.seeds is None:
        return _train_one(args, Run(folder))
    first = given_hyper_parameters(args).get("seed", 0)
    runs = [Run(f"{folder}-seed{first + number}") for number in range(args.seeds)]
    if not args.resume and not args.force:
        _refuse_existing(runs)
    for number, one in enumerate(runs):
        args.hyper_seed = first + number
        print(f"seed {args.hyper_seed}: {one.path}", flush=True)
        model = next((other for other in runs if other.config_file.exists()), None)
        if code := _train_one(args, one, like=model if args.resume else None):
            return code
    _print_summary(runs)
    return 0


def _run_dir(args: argparse.Namespace) -> Path:
    if args.run_dir is not None:
        return args.run_dir
    encoder = given_hyper_parameters(args).get("encoder", "dsa-single")
    return Path("runs") / (args.task if encoder == "dsa-single" else f"{args.task}-{encoder}")


def _refuse_existing(runs: list[Run]) -> None:
    """Before the first of many hours, not before the last of them."""
    for one in runs:
        if one.path.exists() and any(one.path.iterdir()):
            raise RunError(
                "the folder is not empty",
                where=one.path,
                hint="Choose another --run-dir, go on with --resume, or overwrite with --force",
            )


def _train_one(args: argparse.Namespace, one: Run, like: Run | None = None) -> int:
    """Trains or resumes a run; Ctrl-C and SIGTERM end it with a word on how to go on."""
    with _terminated_as_interrupted():
        try:
            if args.resume and (like is None or one.config_file.exists()):
                _resume(args, one)
            elif like is not None:
                _train_like(args, one, like)
            else:
                _train_new(args, one)
        except KeyboardInterrupt:
            _print_how_to_resume(args, one)
            return 130
    _print_result(one)
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


def _train_new(args: argparse.Namespace, one: Run) -> None:
    from dsa_keras.data.archives import check_file
    from dsa_keras.data.registry import load_dataset
    from dsa_keras.training.trainer import train

    model, training = configs(args)
    for path in args.vectors or ():
        check_file(path)
    options = data_options(args)
    dataset = load_dataset(args.task, args.data_dir, **options)
    for split, count in dataset.skipped.items():
        if count:
            print(f"{split}: {count:,} bad rows left out")
    if not args.vectors and args.task not in DEMO_TASKS:
        kind = "trained" if model.train_embeddings else "fixed"
        print(f"no --vectors given: words get random vectors that are {kind}", flush=True)
    probe = _probe(args, one, model.encoder, dataset)
    train(
        dataset,
        model,
        training,
        one.path,
        vectors=args.vectors or (),
        data={"data_dir": args.data_dir, "options": options},
        options=replace(machine_options(args), probe=probe),
        force=args.force,
    )


def _train_like(args: argparse.Namespace, one: Run, like: Run) -> None:
    """Trains the run of another seed with the settings of a sibling."""
    from dsa_keras.data.registry import load_dataset
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import train

    config = like.config()
    check_agreement(args, config, like, ignored=("seed", "epochs"))
    epochs = getattr(args, "hyper_epochs", config.training.epochs)
    dataset = load_dataset(config.task, config.data["data_dir"], **config.data["options"])
    probe = _probe(args, one, config.model.encoder, dataset)
    train(
        dataset,
        config.model,
        config.training.replace(seed=args.hyper_seed, epochs=epochs),
        one.path,
        vectors=config.vectors["files"],
        data={name: config.data[name] for name in ("data_dir", "options")},
        options=Options(histograms=args.histograms, probe=probe, **config.options),
    )


def _resume(args: argparse.Namespace, one: Run) -> None:
    from dsa_keras.data.registry import load_dataset
    from dsa_keras.training.fit import Options
    from dsa_keras.training.trainer import resume

    config = one.config()
    check_agreement(args, config, one, ignored=("epochs",))
    before = _epochs_done(one)
    epochs = getattr(args, "hyper_epochs", None)
    probe = None
    if args.probe is not None:
        dataset = load_dataset(config.task, config.data["data_dir"], **config.data["options"])
        probe = _probe(args, one, config.model.encoder, dataset)
    resume(one.path, epochs=epochs, options=Options(histograms=args.histograms, probe=probe))
    if before and _epochs_done(one) == before:
        print(
            f"nothing is left to do: {before} epochs are done"
            + (
                ", and the dev accuracy has not improved for long enough to stop early"
                if before < (epochs or config.training.epochs)
                else "; train longer with --epochs"
            )
        )


def _probe(args: argparse.Namespace, one: Run, encoder: str, dataset: Dataset) -> Probe | None:
    """What looks at the model after each epoch; refused before the training if it cannot."""
    if args.probe is None:
        return None
    from dsa_keras.inspection import check_attends
    from dsa_keras.inspection.probe import Probe, probe_texts

    check_attends(encoder)
    return Probe(probe_texts(args.probe, dataset), one.logs / "probe")


def _epochs_done(one: Run) -> int:
    return len(one.metrics()) if one.metrics_file.exists() else 0


def _print_how_to_resume(args: argparse.Namespace, one: Run) -> None:
    done = _epochs_done(one)
    if not one.config_file.exists():
        print("\nstopped before the training began; nothing was kept")
        return
    folder = _run_dir(args)
    command = f"python -m dsa_keras train {args.task} --run-dir {shlex.quote(str(folder))} --resume"
    if args.seeds is not None:
        command += f" --seeds {args.seeds}"
    after = f"after epoch {done}, which is saved" if done else "before the first epoch was finished"
    print(f"\nstopped {after}. Go on with:\n  {command}")


def _print_result(one: Run) -> None:
    best = max(one.metrics(), key=lambda record: record["dev_accuracy"])
    path = shlex.quote(str(one.path))
    pair = one.config().is_pair
    sentences = '"first sentence" "second sentence"' if pair else '"your sentence"'
    print(
        f"dev accuracy {best['dev_accuracy']:.4f} (epoch {best['epoch']}), run folder {path}\n"
        "next:\n"
        f"  python -m dsa_keras evaluate {path} --split test\n"
        f"  python -m dsa_keras predict {path} {sentences}\n"
        f"  tensorboard --logdir {path}/logs",
        flush=True,
    )


def _print_summary(runs: list[Run]) -> None:
    from dsa_keras.commands.compare import mean_and_deviation

    accuracies = [max(record["dev_accuracy"] for record in one.metrics()) for one in runs]
    print(
        f"{len(runs)} seeds: dev accuracy {mean_and_deviation(accuracies)}\n"
        f"  python -m dsa_keras compare {' '.join(shlex.quote(str(one.path)) for one in runs)}"
    )
