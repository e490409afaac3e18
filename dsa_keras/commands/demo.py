"""`demo`: trains on generated data in a minute or two, then shows what the model does."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.datasets import load_dataset, preset
from dsa_keras.inspection.terminal import color_depth, rendered
from dsa_keras.runs import Run

TASK = "demo-sentiment"

_MADE_BY = "demo"
"""What its runs say of themselves; only those are replaced."""

_EXAMPLE = """
python -m dsa_keras demo
"""

_SENTENCES = (
    "the acting is superb",
    "the plot is far from dull",
    "the music is lovely , but the story is hardly convincing",
)


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "demo",
        help="train on generated data and show what the model does; needs no download",
        description="Trains dsa-single on generated film reviews, tests it, and shows on three\n"
        "sentences which words it attends to. It replaces an older run of its own, and no\n"
        "other folder.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--run-dir", type=Path, default=Path("runs/demo"), metavar="DIR", help="default: runs/demo"
    )
    parser.add_argument("--size", type=int, default=6000, metavar="N", help="number of examples")
    parser.add_argument("--epochs", type=int, metavar="N", help="default: that of train " + TASK)


def run(args: argparse.Namespace) -> None:
    """Trains, tests, explains."""
    recipe = preset(TASK)
    if args.epochs is not None:
        recipe = recipe.replace(epochs=args.epochs)
    Run(args.run_dir).check_free(force=True, made_by=_MADE_BY)
    dataset = load_dataset(TASK, size=args.size)
    load_tensorflow()
    import dsa_keras
    from dsa_keras.training.trainer import train

    print(f"training {recipe.model.encoder.name} on {TASK}, generated film reviews", flush=True)
    train(dataset, args.run_dir, recipe, force=True, made_by=_MADE_BY)
    model = dsa_keras.load(args.run_dir)
    evaluation = model.evaluate(dataset.part("test"))
    Run(args.run_dir).save_evaluation("test", evaluation.to_dict())
    monitor = model.objective.monitor
    figure = f"{evaluation.figures()[monitor]:.4f}"
    print(f"\ntest {monitor} {figure} on {evaluation.examples:,} new sentences\n")
    colors, width = color_depth(sys.stdout), shutil.get_terminal_size().columns
    how = "the darker, the more weight" if colors != "none" else "the weight in brackets"
    print(f"what it says, and which words it attends to ({how})")
    for one in model.explain(_SENTENCES):
        print(rendered(one, colors=colors, width=width))
    _print_next_steps(args.run_dir)


def _print_next_steps(run_dir: Path) -> None:
    path = shlex.quote(str(run_dir))
    print(f"""
what to do next
  python -m dsa_keras predict {path} "your sentence"
  tensorboard --logdir {path}/logs
  python -m dsa_keras train file --file your.csv --text-column text --label-column label
  python -m export --help""")
