"""`evaluate`: how well a run does on a split, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.files import write_json
from dsa_keras.options import add_run
from dsa_keras.runs import Run

_EXAMPLE = """
dsa-keras evaluate runs/sst2
dsa-keras evaluate runs/sst2 --split dev --json - | jq .accuracy
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "evaluate",
        help="accuracy, macro-F1 and confusion matrix of a run, or correlations",
        description="Scores a run on a split of the data it was trained with. The figures are\n"
        "also kept in the run folder, as evaluation-SPLIT.json, for `compare`.",
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
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the figures there; - prints them in place of the table",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the figures and keeps them in the run folder."""
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    dataset = model.config.dataset(args.data_dir)
    split = args.split or ("test" if dataset.splits.get("test") else "dev")
    evaluation = model.evaluate(dataset.part(split), show_progress_bar=True)
    figures = {"split": split, **evaluation.to_dict()}
    if args.json == "-":
        print(json.dumps(figures, indent=2, ensure_ascii=False), flush=True)
    else:
        if args.json:
            write_json(args.json, figures)
        print(f"{args.run_dir}, {split} split\n{evaluation.table()}", flush=True)
    for warning in evaluation.warnings():
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    # Last, since it is refused while the run is trained.
    Run(args.run_dir).save_evaluation(split, evaluation.to_dict())
