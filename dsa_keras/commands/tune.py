"""`tune search | chief | worker | report`: searches for hyper-parameters with KerasTuner."""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path
from typing import Any

from dsa_keras.command_line import add_group, example, load_tensorflow, require_extra
from dsa_keras.datasets import DATASETS
from dsa_keras.errors import ConfigError
from dsa_keras.options import (
    add_data_options,
    add_encoder_option,
    add_hyper_parameters,
    add_import_option,
    add_task,
    data_options,
    given_hyper_parameters,
    import_words,
)
from dsa_keras.tuning.settings import TUNERS, SearchFolder, Settings
from dsa_keras.tuning.spaces import SPACES

PROGRAM = "dsa-keras tune"
ADDRESS = "127.0.0.1:8765"

_EXAMPLE = f"""
{PROGRAM} search demo-sentiment --size 600 --space small --epochs 3 --dir tuning_runs/demo
{PROGRAM} search sst2 --data-dir data --vectors glove.840B.300d.zip --tuner hyperband \\
    --max-parameters 2.1e6 --max-minutes 60 --dir tuning_runs/sst2
{PROGRAM} report tuning_runs/sst2
"""

_DISTRIBUTED = f"""
{PROGRAM} chief sst2 --data-dir data --dir /shared/sst2 --address 0.0.0.0:8765
{PROGRAM} worker --dir /shared/sst2 --address 10.0.0.5:8765
"""


def add_parser(subparsers: Any) -> None:
    """Adds the command; it loads neither TensorFlow nor KerasTuner."""
    commands = add_group(
        subparsers,
        "tune",
        help="search for hyper-parameters",
        description="Searches for hyper-parameters with KerasTuner. The same command goes on with\n"
        "a search that was stopped.",
        epilog=example(_EXAMPLE),
    )
    search = commands.add_parser(
        "search",
        help="search on this machine",
        description="Searches on this machine. The same command goes on with a stopped search.",
        epilog=example(_EXAMPLE),
    )
    _add_search_options(search)
    search.set_defaults(run=run_search)
    chief = commands.add_parser(
        "chief",
        help="lead a search on many machines",
        description="Chooses the candidates of a search on many machines, which share a folder.",
        epilog=example(_DISTRIBUTED),
    )
    _add_search_options(chief)
    chief.add_argument("--address", default=ADDRESS, help=f"HOST:PORT to listen on ({ADDRESS})")
    chief.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="without a sign of life a worker counts as dead and its trial goes to another (60)",
    )
    chief.set_defaults(run=run_chief)
    worker = commands.add_parser(
        "worker",
        help="train the candidates of a chief",
        description="Trains what a chief chooses. Settings and data are those of the chief.",
        epilog=example(_DISTRIBUTED),
    )
    worker.add_argument("--dir", type=Path, required=True, help="folder of the search, shared")
    worker.add_argument("--address", default=ADDRESS, help=f"HOST:PORT of the chief ({ADDRESS})")
    worker.add_argument("--id", help="name of this worker (default: host and process number)")
    add_import_option(worker)
    worker.set_defaults(run=run_worker)
    report = commands.add_parser(
        "report",
        help="tables, pictures and the command line of the winner",
        description="Says what a search found: the best trials, what mattered, the winner.",
        epilog=example(f"{PROGRAM} report tuning_runs/sst2 --top 5"),
    )
    report.add_argument("dir", type=Path, metavar="DIR", help="folder of the search")
    report.add_argument("--out", type=Path, metavar="DIR", help="default: DIR/report")
    report.add_argument("--top", type=int, default=10, metavar="N", help="best trials to list (10)")
    add_import_option(report)
    report.set_defaults(run=run_report)


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("--dir", type=Path, required=True, help="folder of the search")
    parser.add_argument("--tuner", choices=TUNERS, default="hyperband", help="default: hyperband")
    parser.add_argument("--space", choices=tuple(SPACES), default="paper", help="default: paper")
    parser.add_argument(
        "--trials", type=int, metavar="N", help="at most N (default: 20, or Hyperband's whole plan)"
    )
    parser.add_argument(
        "--max-parameters",
        type=float,
        metavar="X",
        help="larger candidates are not trained, such as 2.1e6",
    )
    parser.add_argument(
        "--max-minutes", type=float, metavar="X", help="of searching, all sessions together"
    )
    add_encoder_option(parser)
    add_import_option(parser)
    add_data_options(parser)
    add_hyper_parameters(parser)


def settings_of(args: argparse.Namespace) -> Settings:
    """The search that the options describe."""
    task, fixed = DATASETS.get(args.task).name, given_hyper_parameters(args)
    epochs, seed = fixed.pop("epochs", Settings.epochs), fixed.pop("seed", Settings.seed)
    return Settings(
        task=task,
        data_dir=args.data_dir,
        data_options=data_options(args, task),
        vectors=tuple(args.vectors or ()),
        space=args.space,
        tuner=args.tuner,
        trials=args.trials,
        epochs=epochs,
        seed=seed,
        max_parameters=None if args.max_parameters is None else int(args.max_parameters),
        max_minutes=args.max_minutes,
        fixed=fixed,
        imports=tuple(word for word in import_words(args) if word != "--import"),
    )


def run_search(args: argparse.Namespace) -> int:
    """`search`."""
    folder, settings = _open(args)
    _load()
    from dsa_keras.tuning.session import search_alone

    try:
        search_alone(folder, settings)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from the last finished epoch")
        return 130
    print(f"next:\n  {PROGRAM} report {folder.path}")
    return 0


def run_chief(args: argparse.Namespace) -> int:
    """`chief`."""
    from dsa_keras.tuning.workers import set_role

    if args.patience <= 0:
        raise ConfigError(f"--patience must be positive, got {args.patience}")
    set_role("chief", args.address)
    folder, settings = _open(args)
    _load()
    from dsa_keras.tuning.session import search_as_chief

    search_as_chief(folder, settings, args.address, args.patience)
    print(f"next:\n  {PROGRAM} report {folder.path}")
    return 0


def run_worker(args: argparse.Namespace) -> int:
    """`worker`."""
    from dsa_keras.tuning.workers import check_worker_id, set_role, wait_for_chief

    host = socket.gethostname().replace("chief", "c")
    worker = args.id or f"{host}-{os.getpid()}"
    check_worker_id(worker)
    set_role(worker, args.address)
    folder = SearchFolder(args.dir)
    wait_for_chief(folder)
    _load()
    from dsa_keras.tuning.session import search_as_worker

    search_as_worker(folder, worker)
    return 0


def run_report(args: argparse.Namespace) -> int:
    """`report`."""
    if args.top < 1:
        raise ConfigError(f"--top must be at least 1, got {args.top}")
    folder = SearchFolder(args.dir)
    folder.settings()
    load_tensorflow()
    from dsa_keras.tuning.report import write_report

    print(write_report(folder, args.out or folder.report_dir, args.top))
    return 0


def _open(args: argparse.Namespace) -> tuple[SearchFolder, Settings]:
    folder, settings = SearchFolder(args.dir), settings_of(args)
    if folder.open(settings):
        print(f"going on with the search in {folder.path}", flush=True)
    return folder, settings


def _load() -> None:
    """Loads TensorFlow and KerasTuner, or says what is missing."""
    require_extra("tuning", "keras_tuner", "scipy", "sklearn")
    load_tensorflow()
