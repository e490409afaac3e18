"""`explain`: which words the model attends to, in the terminal, as JSON, page or picture."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from dsa_keras.command_line import example, load_tensorflow
from dsa_keras.files import write_text, written_aside
from dsa_keras.options import add_run

_EXAMPLE = """
dsa-keras explain runs/sst2 "not a dull moment"
dsa-keras explain runs/sst2 "not a dull moment" --iterations --png dull.png
dsa-keras explain runs/snli "A man sleeps." "Nobody is awake." --html nobody.html
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
    add_run(parser)
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
    from dsa_keras.inspection.terminal import color_depth, rendered
    from dsa_keras.models.network import check_attends

    model = dsa_keras.load(args.run_dir)
    check_attends(model.config.model)
    explanations = model.explain(model.inputs.from_arguments(args.sentences))
    title = "What the model attends to"
    if args.html:
        from dsa_keras.inspection.page import html_page

        write_text(args.html, html_page(explanations, title, iterations=args.iterations))
    if args.png:
        from dsa_keras.inspection.maps import map_figure, maps_of
        from dsa_keras.pictures import figure_png

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
