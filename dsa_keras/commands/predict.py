"""`predict`: what a model says of sentences from arguments, a file or standard input."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.streams import (
    CHUNK,
    check_readable,
    in_chunks,
    read_lines,
    refuse_existing,
    source_name,
    text_output,
)
from dsa_keras.errors import ConfigError
from dsa_keras.objectives.reading import Reading
from dsa_keras.options import add_run

if TYPE_CHECKING:
    from dsa_keras.inputs import Inputs, Text
    from dsa_keras.objectives import Answer, Objective

_EXAMPLE = """
dsa-keras predict runs/sst2 "a gripping , funny film" "far from good"
dsa-keras predict runs/snli "A man sleeps." "Nobody is awake."
dsa-keras predict runs/sst2 --file reviews.txt --format csv --output labels.csv
cat reviews.txt | dsa-keras predict runs/sst2 --format jsonl
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "predict",
        help="labels of sentences with their probabilities, or numbers",
        description="Runs the model on sentences given as arguments, in a file, or on standard\n"
        "input, one a line. A model of pairs takes two arguments for each pair, or two\n"
        "sentences on a line with a tab between them.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="*", help="a text to run the model on"
    )
    parser.add_argument("--file", metavar="FILE", help="sentences, one a line; - standard input")
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text")
    parser.add_argument("--output", metavar="FILE", type=Path, help="default: standard output")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: 256")


def run(args: argparse.Namespace) -> None:
    """Runs the model on what it is given, some thousand texts at a time."""
    if args.sentences and args.file:
        raise ConfigError("both sentences and --file are given", hint="Give one of them")
    refuse_existing(args.output, args.force)
    check_readable(args.file)
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    texts = _texts(args.sentences, args.file or "-", model.inputs)
    typed = not args.sentences and not args.file and sys.stdin.isatty()
    if typed:
        print("type one sentence a line; Ctrl-D ends", file=sys.stderr)
    with text_output(args.output) as file:
        writer = _WRITERS[args.format](file, model.inputs, model.objective)
        notes = _Notes()
        for chunk in in_chunks(texts, 1 if typed else CHUNK):
            answers = model.predict(chunk, args.batch_size)
            writer(chunk, answers)
            file.flush()
            notes(chunk, answers)
        notes.finish()


def _texts(sentences: Sequence[str], path: str, inputs: Inputs) -> Iterator[Text]:
    if sentences:
        yield from inputs.from_arguments(sentences)
        return
    for number, line in enumerate(read_lines(path), start=1):
        yield inputs.from_line(line, number, source_name(path))


class _TextWriter:
    """The answer in a few columns and the text, separated by tabs."""

    def __init__(self, file: IO[str], inputs: Inputs, objective: Objective) -> None:
        self.file, self.inputs, self.objective = file, inputs, objective
        self.start()

    def start(self) -> None:
        """Writes what stands above the rows."""

    def __call__(self, texts: Sequence[Text], answers: Sequence[Answer]) -> None:
        for text, answer in zip(texts, answers, strict=True):
            self.write(self.inputs.sentences(text), answer)

    def write(self, sentences: Sequence[str], answer: Answer) -> None:
        """Writes a row."""
        self.file.write("\t".join([*answer.cells(), *sentences]) + "\n")


class _JsonWriter(_TextWriter):
    """An object per line."""

    def write(self, sentences: Sequence[str], answer: Answer) -> None:
        """Writes a row."""
        row = {**dict(zip(self.inputs.signature, sentences, strict=True)), **answer.to_dict()}
        self.file.write(json.dumps(row, ensure_ascii=False) + "\n")


class _CsvWriter(_TextWriter):
    """A header, then a row per text with a column for each number of its answer."""

    def start(self) -> None:
        """Writes the header."""
        self.csv = csv.writer(self.file, lineterminator="\n")
        self.csv.writerow([*self.inputs.signature, *self.objective.columns(), *Reading.columns()])

    def write(self, sentences: Sequence[str], answer: Answer) -> None:
        """Writes a row."""
        reading = answer.reading.to_dict().values() if answer.reading else ()
        self.csv.writerow([*sentences, *answer.row(), *map(_cell, reading)])


def _cell(value: Any) -> Any:
    """As JSON has it, which other programs read."""
    return json.dumps(value) if isinstance(value, bool) else value


class _Notes:
    """Says on standard error which answers mean little; of many, how many there are."""

    def __init__(self) -> None:
        self.texts = self.noted = 0

    def __call__(self, texts: Sequence[Text], answers: Sequence[Answer]) -> None:
        for text, answer in zip(texts, answers, strict=True):
            self.texts += 1
            if not (notes := answer.notes()):
                continue
            self.noted += 1
            if self.noted <= _NOTES:
                shown = text if isinstance(text, str) else " / ".join(text)
                shown = shown if len(shown) <= 40 else shown[:39] + "…"
                print(f"note: text {self.texts} ({shown}): {'; '.join(notes)}", file=sys.stderr)

    def finish(self) -> None:
        """Says how many were not told."""
        if self.noted > _NOTES:
            print(f"note: and {self.noted - _NOTES:,} more such texts", file=sys.stderr)


_NOTES = 5
"""Notes that are told one by one."""


_WRITERS = {"text": _TextWriter, "jsonl": _JsonWriter, "csv": _CsvWriter}
