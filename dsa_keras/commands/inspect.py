"""`inspect`: figures of what a model attends to, into the run folder and its TensorBoard logs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.errors import ConfigError
from dsa_keras.options import add_run

if TYPE_CHECKING:
    from dsa_keras.sentence_model import SentenceModel

_EXAMPLE = """
dsa-keras inspect runs/snli --sentences 1000 --split dev
dsa-keras inspect runs/demo --compare runs/demo-self-attention
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "inspect",
        help="figures of attention and of the dynamic weight vectors",
        description="Looks at random sentences and writes figures, with the numbers behind them,\n"
        "into RUN/figures, and into RUN/logs/inspection for TensorBoard: dynamic weight\n"
        "vectors, attention maps, entropy by iteration, top words of each attention; and on\n"
        "the demo data the share of weight on the words that decide. TensorBoard's projector\n"
        "shows the sentence embeddings and the dynamic weight vectors.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument(
        "--sentences", type=int, default=1000, metavar="N", help="how many (default: 1000)"
    )
    parser.add_argument(
        "--split", default="dev", metavar="SPLIT", help="of the data of the run (default: dev)"
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="folder of the data, if it has moved since the training"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random choice")
    parser.add_argument(
        "--min-count",
        type=int,
        default=5,
        metavar="N",
        help="a top word occurs at least so often (default: 5)",
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="RUN",
        help="demo data: another run whose attention score is shown, such as self-attention",
    )


def run(args: argparse.Namespace) -> None:
    """Writes the figures and says where."""
    for name, least in (("sentences", 1), ("seed", 0), ("min_count", 1)):
        if getattr(args, name) < least:
            option, value = name.replace("_", "-"), getattr(args, name)
            raise ConfigError(f"--{option} must be at least {least}. Received: {value}")
    load_tensorflow(args.run_dir)
    import dsa_keras
    from dsa_keras.inspection.report import inspect_model, sample, write_inspection
    from dsa_keras.models.network import check_attends
    from dsa_keras.runs import Run

    model = dsa_keras.load(args.run_dir)
    check_attends(model.config.model)
    compared = _compared(args.compare, model)
    split = model.config.dataset(args.data_dir).part(args.split)
    source = f"{model.config.task} {args.split}"
    found = inspect_model(
        model,
        sample(split, args.sentences, args.seed, source),
        min_count=args.min_count,
        compared=compared,
        show_progress_bar=True,
    )
    one = Run(args.run_dir)
    for path in write_inspection(found, one.path / "figures", one.logs / "inspection"):
        print(f"wrote {path}")
    for name, reason in found.skipped.items():
        print(f"no {name.replace('_', ' ')}: {reason}")
    for name, score in found.numbers.get("attention_score", {}).items():
        print(f"attention score, {name}: {100 * score['mean']:.1f} %")
    print(f"next:\n  tensorboard --logdir {shlex.quote(str(one.logs))}")


def _compared(path: Path | None, model: SentenceModel) -> tuple[str, SentenceModel] | None:
    """Another model of the same task, and what to call it."""
    if path is None:
        return None
    import dsa_keras
    from dsa_keras.models.network import check_attends

    other = dsa_keras.load(path)
    check_attends(other.config.model)
    if other.config.task != model.config.task:
        raise ConfigError(
            f"is a run on {other.config.task}, not on {model.config.task}",
            where=path,
            hint="Compare with a run on the same data",
        )
    return other.config.model.encoder.name, other
