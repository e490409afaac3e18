"""`evaluate`: how well a run does on a split, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.files import write_json

if TYPE_CHECKING:
    from dsa_keras.data.dataset import Split
    from dsa_keras.sentence_model import SentenceModel
    from dsa_keras.training.evaluation import Evaluation

_EXAMPLE = """
python -m dsa_keras evaluate runs/sst2
python -m dsa_keras evaluate runs/sst2 --split dev --json - | jq .accuracy
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "evaluate",
        help="accuracy, precision, recall, F1 and confusion matrix of a run",
        description="Scores a run on a split of the data it was trained with. The figures are\n"
        "also kept in the run folder, as evaluation-SPLIT.json, for `compare`.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run")
    parser.add_argument("--split", choices=("train", "dev", "test"), default="test")
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
    evaluation = evaluate_split(model, args.run_dir, args.split, args.data_dir)
    figures = {"split": args.split, **evaluation.to_dict()}
    if args.json == "-":
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    if args.json:
        write_json(args.json, figures)
    print(f"{args.run_dir}, {args.split} split")
    print(evaluation.table())


def evaluate_split(
    model: SentenceModel, run_dir: Path, split: str, data_dir: str | None = None
) -> Evaluation:
    """Scores a model on a split of the data of its run, and keeps the figures in the folder."""
    evaluation = model.evaluate(run_split(model, split, data_dir), show_progress_bar=True)
    write_json(run_dir / f"evaluation-{split}.json", {"split": split, **evaluation.to_dict()})
    return evaluation


def run_split(model: SentenceModel, split: str, data_dir: str | None) -> Split:
    """A split of the data that a model was trained with, checked to be of the same classes."""
    from dsa_keras.data.registry import load_dataset

    config = model.config
    dataset = load_dataset(
        config.task, data_dir or config.data["data_dir"], **config.data["options"]
    )
    if dataset.class_names != config.class_names:
        raise ConfigError(
            f"the classes of the data are {', '.join(dataset.class_names)}, those of the run "
            f"{', '.join(config.class_names)}",
            where=data_dir or config.task,
            hint="Give the data that the run was trained with",
        )
    if split not in dataset.splits or not len(dataset[split]):
        raise DataError(
            f"the data has no {split} split",
            where=config.task,
            hint=f"It has {', '.join(dataset.splits)}: choose with --split",
        )
    return dataset[split]
