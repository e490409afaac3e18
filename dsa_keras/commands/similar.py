"""`similar`: the sentences of a file that are nearest to a query, by cosine, in one pass."""

from __future__ import annotations

import argparse
import heapq
from typing import Any, NamedTuple

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.commands.answers import one_line
from dsa_keras.commands.texts import add_file_options, texts_of
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import SENTENCE
from dsa_keras.options import add_run
from dsa_keras.progress import progress_bar
from dsa_keras.runs import Run

_EXAMPLE = """
dsa-keras similar runs/sst2 --file reviews.txt "a gripping , funny film" --top 5
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "similar",
        help="find the sentences of a file that are nearest to a query",
        description="Prints the nearest sentences of a file by cosine: cosine, line and sentence,\n"
        "separated by tabs. A sentence that occurs twice is listed once.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    add_run(parser)
    parser.add_argument("query", metavar="QUERY", help="a sentence")
    add_file_options(parser, required=True)
    parser.add_argument("--top", type=int, default=10, metavar="N", help="default: 10")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N", help="default: 256")


class _Match(NamedTuple):
    """A sentence and how near it is; of equals the earlier line is the greater one."""

    cosine: float
    minus_line: int
    sentence: str


def run(args: argparse.Namespace) -> None:
    """Keeps the best in a heap while the file goes by."""
    if args.top < 1:
        raise ConfigError(f"--top must be at least 1. Received: {args.top}")
    texts = texts_of(args, Run(args.run_dir).config(), SENTENCE, keeps=False)
    texts.check()
    load_tensorflow(args.run_dir)
    import dsa_keras

    model = dsa_keras.load(args.run_dir)
    query = model.encode(args.query, normalize_embeddings=True)
    if not query.any():
        raise ConfigError("the query has no words", where="QUERY", hint="Give a sentence")
    best: list[_Match] = []
    with progress_bar(None, "comparing", unit=" sentences") as bar:
        for chunk in texts.chunks():
            vectors = model.encode(chunk.sentences, args.batch_size, normalize_embeddings=True)
            rows = zip(chunk.sentences, chunk.lines, vectors @ query, strict=True)
            for sentence, line, cosine in rows:
                if chunk.from_table:
                    sentence = one_line(sentence)
                if sentence.strip():
                    _keep(best, _Match(float(cosine), -line, sentence), args.top)
            bar.update(len(chunk))
    for match in sorted(best, reverse=True):
        print(f"{match.cosine:.4f}\t{-match.minus_line}\t{match.sentence}")


def _keep(best: list[_Match], match: _Match, top: int) -> None:
    """Adds a match if it belongs to the `top` best and its sentence is not there yet."""
    if len(best) == top and match <= best[0]:
        return
    if any(match.sentence == other.sentence for other in best):
        return
    if len(best) == top:
        heapq.heapreplace(best, match)
    else:
        heapq.heappush(best, match)
