"""`predict`: labels and probabilities for sentences from arguments, a file or standard input."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.commands.streams import (
    CHUNK,
    check_readable,
    in_chunks,
    read_lines,
    refuse_existing,
    split_pair,
    text_output,
)
from dsa_keras.errors import ConfigError

if TYPE_CHECKING:
    from dsa_keras.data.dataset import Text
    from dsa_keras.sentence_model import Prediction

_EXAMPLE = """
python -m dsa_keras predict runs/sst2 "a gripping , funny film" "far from good"
python -m dsa_keras predict runs/snli "A man sleeps." "Nobody is awake."
python -m dsa_keras predict runs/sst2 --file reviews.txt --format csv --output labels.csv
cat reviews.txt | python -m dsa_keras predict runs/sst2 --format jsonl
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "predict",
        help="label sentences, with probabilities",
        description="Labels sentences given as arguments, in a file, or on standard input, one a "
        "line.\nFor a model of pairs: two arguments a pair, or two sentences a line with a tab "
        "between.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run")
    parser.add_argument("sentences", metavar="SENTENCE", nargs="*", help="what to label")
    parser.add_argument("--file", metavar="FILE", help="sentences, one a line; - standard input")
    parser.add_argument("--format", choices=tuple(_WRITERS), default="text")
    parser.add_argument("--output", metavar="FILE", type=Path, help="default: standard output")
    parser.add_argument("--force", action="store_true", help="overwrite the output")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: 256")


def run(args: argparse.Namespace) -> None:
    """Labels what it is given, some thousand texts at a time."""
    if args.sentences and args.file:
        raise ConfigError("both sentences and --file are given", hint="Give one of them")
    refuse_existing(args.output, args.force)
    check_readable(args.file)
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    texts = _texts(args.sentences, args.file or "-", model.is_pair)
    typed = not args.sentences and not args.file and sys.stdin.isatty()
    if typed:
        print("type a sentence a line; Ctrl-D ends", file=sys.stderr)
    with text_output(args.output) as file:
        writer = _WRITERS[args.format](file, model.class_names, model.is_pair)
        for chunk in in_chunks(texts, 1 if typed else CHUNK):
            writer(chunk, model.predict(chunk, args.batch_size))
            file.flush()


def _texts(sentences: Sequence[str], path: str, pair: bool) -> Iterator[Text]:
    if not sentences:
        for number, line in enumerate(read_lines(path), start=1):
            yield split_pair(line, number, path) if pair else line
        return
    if not pair:
        yield from sentences
        return
    if len(sentences) % 2:
        raise ConfigError(
            f"{len(sentences)} sentences, but this model takes pairs",
            hint="Give the premise and the hypothesis as two arguments",
        )
    yield from zip(sentences[::2], sentences[1::2], strict=True)


class _TextWriter:
    """Label, probability and text, separated by tabs."""

    def __init__(self, file: IO[str], class_names: Sequence[str], pair: bool) -> None:
        self.file, self.class_names = file, class_names
        self.columns = ["premise", "hypothesis"] if pair else ["text"]
        self.start()

    def start(self) -> None:
        """Writes what stands above the rows."""

    def __call__(self, texts: Sequence[Text], predictions: Sequence[Prediction]) -> None:
        for text, prediction in zip(texts, predictions, strict=True):
            self.write((text,) if isinstance(text, str) else text, prediction)

    def write(self, sentences: Sequence[str], prediction: Prediction) -> None:
        """Writes a row."""
        row = [prediction.label, f"{prediction.probability:.4f}", *sentences]
        self.file.write("\t".join(row) + "\n")


class _JsonWriter(_TextWriter):
    """An object per line."""

    def write(self, sentences: Sequence[str], prediction: Prediction) -> None:
        """Writes a row."""
        row = {
            **dict(zip(self.columns, sentences, strict=True)),
            "label": prediction.label,
            "probability": prediction.probability,
            "probabilities": prediction.probabilities,
        }
        self.file.write(json.dumps(row, ensure_ascii=False) + "\n")


class _CsvWriter(_TextWriter):
    """A header, then a row per text with a column for the probability of every class."""

    def start(self) -> None:
        """Writes the header."""
        self.csv = csv.writer(self.file, lineterminator="\n")
        names = (f"probability of {name}" for name in self.class_names)
        self.csv.writerow([*self.columns, "label", "probability", *names])

    def write(self, sentences: Sequence[str], prediction: Prediction) -> None:
        """Writes a row."""
        of_classes = (prediction.probabilities[name] for name in self.class_names)
        self.csv.writerow([*sentences, prediction.label, prediction.probability, *of_classes])


_WRITERS = {"text": _TextWriter, "jsonl": _JsonWriter, "csv": _CsvWriter}
