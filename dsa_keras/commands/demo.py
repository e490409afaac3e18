"""`demo`: trains on generated data in a minute or two, then shows what the model does."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.config import preset

if TYPE_CHECKING:
    import numpy as np

    from dsa_keras.sentence_model import SentenceModel

TASK = "demo-sentiment"

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
        "sentences which words decided. An older demo run is overwritten.",
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
    load_tensorflow()
    import dsa_keras
    from dsa_keras.commands.evaluate import evaluate_split
    from dsa_keras.data.registry import load_dataset
    from dsa_keras.training.trainer import train

    recipe = preset(TASK)
    training = recipe.training.replace(epochs=args.epochs or recipe.training.epochs)
    options = {"size": args.size}
    print(f"training {recipe.model.encoder} on {TASK}, generated film reviews", flush=True)
    train(
        load_dataset(TASK, **options),
        recipe.model,
        training,
        args.run_dir,
        data={"options": options},
        force=True,
    )
    model = dsa_keras.load(args.run_dir)
    evaluation = evaluate_split(model, args.run_dir, "test")
    print(f"\ntest accuracy {evaluation.accuracy:.4f} on {evaluation.examples:,} new sentences\n")
    _show_attention(model, _SENTENCES)
    _print_next_steps(args.run_dir)


def _show_attention(model: SentenceModel, sentences: Sequence[str]) -> None:
    """Prints each sentence with its label and the words that the attention looked at."""
    import numpy as np

    from dsa_keras.models import trace_encoder

    traced = trace_encoder(model.classifier.get_layer("encoder"))
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print("what it says, and which words decided" + ("" if colour else " (in brackets)"))
    for sentence, prediction in zip(sentences, model.predict(sentences), strict=True):
        words = sentence.split()
        trace = traced(np.array([model.vocabulary.ids(words)]))
        weights = trace["attention_weights"][0, -1].numpy().mean(axis=0)
        marked = _marked(words, weights, colour)
        print(f"  {prediction.label:<8}  {prediction.probability:4.0%}  {marked}")


def _marked(words: Sequence[str], weights: np.ndarray, colour: bool) -> str:
    """Marks the words that got more than their even share of the attention."""
    marked = []
    for word, weight in zip(words, weights * len(words), strict=True):
        if weight <= 1.2:
            marked.append(word)
        elif colour:
            style = "1;30;43" if weight > 2 else "30;43" if weight > 1.6 else "33"
            marked.append(f"\033[{style}m{word}\033[0m")
        else:
            marked.append(f"[{word}]")
    return " ".join(marked)


def _print_next_steps(run_dir: Path) -> None:
    path = shlex.quote(str(run_dir))
    print(f"""
what to do next
  python -m dsa_keras predict {path} "your sentence"
  tensorboard --logdir {path}/logs
  python -m dsa_keras train file --file your.csv --text-column text --label-column label
  python -m export --help""")
