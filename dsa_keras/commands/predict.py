"""`predict`: what a model says of sentences from arguments, a file or standard input."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.answers import FORMATS, answers_output, chosen_format
from dsa_keras.commands.notes import Notes
from dsa_keras.commands.streams import refuse_existing
from dsa_keras.commands.texts import add_file_options, texts_of
from dsa_keras.options import add_run
from dsa_keras.runs import Run

_EXAMPLE = """
dsa-keras predict runs/sst2 "a gripping , funny film" "far from good"
dsa-keras predict runs/snli "A man sleeps." "Nobody is awake."
dsa-keras predict runs/sst2 --file reviews.txt --output labels.csv
dsa-keras predict runs/sst2 --file reviews.csv --text-column review --format csv
cat reviews.txt | dsa-keras predict runs/sst2 --format jsonl
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "predict",
        help="labels of sentences with their probabilities, or numbers",
        description="Runs the model on sentences given as arguments, in a file, or on standard\n"
        "input, one a line. A model of pairs takes two arguments for each pair, or two\n"
        "sentences on a line with a tab between them. A table keeps its columns in csv,\n"
        "jsonl and parquet.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="*", help="a text to run the model on"
    )
    add_file_options(parser, pairs=True)
    parser.add_argument(
        "--format", choices=FORMATS, help="default: what the output ends in, or text"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="default: standard output")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: 256")


def run(args: argparse.Namespace) -> None:
    """Runs the model on what it is given, some thousand texts at a time."""
    form = chosen_format(args.format, args.output)
    refuse_existing(args.output, args.force)
    config = Run(args.run_dir).config()
    texts = texts_of(args, config, config.model.inputs, args.sentences)
    texts.check()
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    texts.greet()
    notes = Notes()
    with answers_output(form, args.output, model.inputs, model.objective) as writer:
        for chunk in texts.chunks():
            answers = model.predict(chunk.texts, args.batch_size)
            writer.write(chunk, answers)
            notes(chunk.texts, answers)
    notes.finish()
