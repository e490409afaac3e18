"""`evaluate`: how well a run does on a split, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.texts import add_column_options, text_columns
from dsa_keras.datasets.file import load_labelled
from dsa_keras.datasets.option import ON_BAD_ROWS
from dsa_keras.datasets.table_rows import Columns
from dsa_keras.errors import ConfigError
from dsa_keras.files import write_json
from dsa_keras.options import add_run
from dsa_keras.runs import Run

if TYPE_CHECKING:
    from dsa_keras.datasets import Split
    from dsa_keras.runs import RunConfig

_EXAMPLE = """
dsa-keras evaluate runs/sst2
dsa-keras evaluate runs/sst2 --split dev --json - | jq .accuracy
dsa-keras evaluate runs/sst2 --file labelled.csv --text-column review --label-column class
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "evaluate",
        help="accuracy, macro-F1 and confusion matrix of a run, or correlations",
        description="Scores a run on a split of the data it was trained with. The figures are\n"
        "also kept in the run folder, as evaluation-SPLIT.json, for `compare`. With --file it\n"
        "scores the run on any labelled table instead, and keeps nothing.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument(
        "--split", metavar="SPLIT", help="default: test, or dev if the data has no test"
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of the data, if it has moved since the training"
    )
    parser.add_argument("--file", metavar="FILE", help="a labelled table, instead of a split")
    add_column_options(parser, pairs=True)
    parser.add_argument(
        "--label-column",
        metavar="NAME",
        help="the label in a table (default: the column it was trained with, or label)",
    )
    parser.add_argument(ON_BAD_ROWS.flag, **ON_BAD_ROWS.argument())
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the figures there; - prints them in place of the table",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the figures, and keeps those of a split in the run folder."""
    _check(args)
    config = Run(args.run_dir).config()
    part = _labelled(args, config) if args.file else None
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    if part is None:
        dataset = model.config.dataset(args.data_dir)
        split = args.split or ("test" if dataset.splits.get("test") else "dev")
        part, named, title = dataset.part(split), {"split": split}, f"{split} split"
    else:
        named, title = {"file": args.file}, args.file
    evaluation = model.evaluate(part, show_progress_bar=True)
    figures = {**named, **evaluation.to_dict()}
    if args.json == "-":
        print(json.dumps(figures, indent=2, ensure_ascii=False), flush=True)
    else:
        if args.json:
            write_json(args.json, figures)
        print(f"{args.run_dir}, {title}\n{evaluation.table()}", flush=True)
    for warning in evaluation.warnings():
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    if not args.file:
        # Last, since it is refused while the run is trained.
        Run(args.run_dir).save_evaluation(split, evaluation.to_dict())


_OF_FILE = ("text_column", "pair_column", "label_column", "on_bad_rows")


def _check(args: argparse.Namespace) -> None:
    """Refuses options that do not go together."""
    others = ("split", "data_dir") if args.file else _OF_FILE
    for name in others:
        if getattr(args, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            if args.file:
                raise ConfigError(
                    f"both --file and {flag} are given",
                    hint="A file is scored as it is: leave one of them out",
                )
            raise ConfigError(f"{flag} says how a table is read", hint="Name one by --file")


def _labelled(args: argparse.Namespace, config: RunConfig) -> Split:
    """The examples of a table."""
    text, pair = [*text_columns(args, config, config.model.inputs), None][:2]
    of_training = config.origin.options if config.origin else {}
    label = args.label_column or of_training.get("label_column", "label")
    columns = Columns(str(text), pair, label)
    part, skipped = load_labelled(
        args.file, columns, config.model.objective, args.on_bad_rows or "error", args.encoding
    )
    if skipped:
        print(f"{args.file}: {skipped:,} bad rows left out", file=sys.stderr)
    return part
