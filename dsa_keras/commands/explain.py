"""`explain`: which words the model attends to, in the terminal, as JSON, page or picture."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsa_keras.commands.cli import example, load_tensorflow
from dsa_keras.errors import ConfigError
from dsa_keras.files import write_text, written_aside

if TYPE_CHECKING:
    from dsa_keras.data.dataset import Text

_EXAMPLE = """
python -m dsa_keras explain runs/sst2 "not a dull moment"
python -m dsa_keras explain runs/sst2 "not a dull moment" --iterations --png dull.png
python -m dsa_keras explain runs/snli "A man sleeps." "Nobody is awake." --html nobody.html
"""


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "explain",
        help="show which words the model attends to",
        description="Shows the weight that each attention gives to each word. On a terminal words\n"
        "are shaded, the darker the more weight; in a pipe, or with NO_COLOR set, the weight\n"
        "stands in brackets. For a model of pairs: two arguments a pair.",
        epilog=example(_EXAMPLE),
    )
    parser.set_defaults(run=run)
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="folder of a run")
    parser.add_argument("sentences", metavar="SENTENCE", nargs="+", help="what to explain")
    parser.add_argument(
        "--iterations", action="store_true", help="every routing step, not the last only"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page that stands alone")
    parser.add_argument("--png", metavar="FILE", type=Path, help="write a picture")


def run(args: argparse.Namespace) -> None:
    """Explains the sentences in every form that is asked for."""
    load_tensorflow(args.run_dir)
    import dsa_keras
    from dsa_keras.inspection import check_attends, explain
    from dsa_keras.inspection.terminal import color_depth, rendered

    model = dsa_keras.load(args.run_dir)
    check_attends(model.config.model.encoder)
    explanations = explain(model, _texts(args.sentences, model.is_pair))
    title = "What the model attends to"
    if args.html:
        from dsa_keras.inspection.page import html_page

        write_text(args.html, html_page(explanations, title, iterations=args.iterations))
    if args.png:
        from dsa_keras.inspection.maps import map_figure, maps_of
        from dsa_keras.training.figures import figure_png

        maps = [one for each in explanations for one in maps_of(each, iterations=args.iterations)]
        picture = figure_png(map_figure(maps, title))
        with written_aside(args.png) as aside:
            aside.write_bytes(picture)
    if args.json:
        values = [one.to_dict(iterations=args.iterations) for one in explanations]
        print(json.dumps(values, indent=2, ensure_ascii=False))
    else:
        colors, width = color_depth(sys.stdout), shutil.get_terminal_size().columns
        shown = (
            rendered(one, iterations=args.iterations, colors=colors, width=width)
            for one in explanations
        )
        print("\n\n".join(shown))
    for path in (args.html, args.png):
        if path:
            print(f"wrote {path}", file=sys.stderr)


def _texts(sentences: Sequence[str], pair: bool) -> Sequence[Text]:
    if not pair:
        return sentences
    if len(sentences) % 2:
        raise ConfigError(
            f"{len(sentences)} sentences, but this model takes pairs",
            hint="Give the premise and the hypothesis as two arguments",
        )
    return list(zip(sentences[::2], sentences[1::2], strict=True))
