"""Attention maps: the words of a sentence above a row of shaded cells for each attention.

Each column is as wide as its word, and a sentence that is wider than the picture goes on in the
next line. The layout is worked out from the measured size of every text, so nothing is clipped and
nothing overlaps.
"""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dsa_keras.errors import ConfigError
from dsa_keras.inspection.explanation import Explanation, rows
from dsa_keras.inspection.shades import COLOR_MAP, background, darkest, foreground, percent_decimals
from dsa_keras.inspection.terminal import UNKNOWN_MARK
from dsa_keras.inspection.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_DPI = 150
_WIDTH, _MIN_WIDTH = 760.0, 540.0
_FONT, _SMALL, _TITLE = 11.0, 8.5, 13.0
_CELL, _WORD_LINE, _MARGIN = 20.0, 20.0, 16.0
_MAX_HEIGHT = 25_000.0
_MAX_LETTERS = 40
_LEGEND = "weight of each word in percent; the weights of an attention add up to 100"
_UNKNOWN = f"{UNKNOWN_MARK} the model does not know this word"


@dataclass(frozen=True)
class Map:
    """One sentence of a picture.

    Attributes:
        heading: what is said above it.
        words: its words.
        labels: of the rows.
        weights: `(rows, words)`.
        unknown: whether some of the words are not known to the model, and so are marked.
    """

    heading: str
    words: tuple[str, ...]
    labels: tuple[str, ...]
    weights: np.ndarray
    unknown: bool = False


def map_of(heading: str, one: Trace, *, iterations: bool = False) -> Map:
    """The map of a trace; unknown words are marked."""
    shown = list(rows(one, iterations=iterations))
    words = (
        word if known else word + UNKNOWN_MARK
        for word, known in zip(one.words, one.known, strict=True)
    )
    return Map(
        heading,
        tuple(words),
        tuple(row.label for row in shown),
        np.stack([row.weights for row in shown]),
        not all(one.known),
    )


def maps_of(explanation: Explanation, *, iterations: bool = False) -> list[Map]:
    """A map for each sentence of an explained text, under its prediction."""
    asides = "".join(f" ({one})" for one in explanation.answer.asides())
    answer = f"predicted: {explanation.answer.headline()}{asides}"
    several = len(explanation.traces) > 1
    return [
        map_of(f"{name}, {answer}" if several else answer, one, iterations=iterations)
        for name, one in explanation.traces.items()
    ]


def map_figure(maps: Sequence[Map], title: str, note: str = "") -> Figure:
    """Draws attention maps below one another.

    Args:
        maps: the sentences.
        title: what the picture shows.
        note: a remark below the title.

    Raises:
        ConfigError: if they do not fit into one picture.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    titles = _wrapped(title, _TITLE, _MIN_WIDTH - 2 * _MARGIN)
    notes = _wrapped(note, _SMALL, _MIN_WIDTH - 2 * _MARGIN) if note else []
    margin = 2 * _MARGIN + max(_width(label, _SMALL) for one in maps for label in one.labels)
    lines = [_lines(one.words, _WIDTH - _MARGIN - margin) for one in maps]
    headings = [_wrapped(one.heading, _SMALL, _MIN_WIDTH - 2 * _MARGIN) for one in maps]
    top = _MARGIN + 18 * len(titles) + 13 * len(notes) + 8
    heights = [
        13 * len(heading)
        + (len(parts) * (_WORD_LINE + _CELL * len(one.labels) + 6) or _WORD_LINE)
        + 12
        for one, parts, heading in zip(maps, lines, headings, strict=True)
    ]
    legends = [_LEGEND, *([_UNKNOWN] if any(one.unknown for one in maps) else [])]
    height = top + sum(heights) + 46
    widest = max((sum(width for *_, width in part) for parts in lines for part in parts), default=0)
    width = min(_WIDTH, max(margin + widest + _MARGIN, _MIN_WIDTH))
    if height > _MAX_HEIGHT:
        raise ConfigError(
            "the texts do not fit into one picture",
            hint="Explain fewer texts at a time, or write a page with --html",
        )
    figure = Figure(figsize=(width / 72, height / 72), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    text = functools.partial(axes.text, va="center", parse_math=False)
    y = _MARGIN
    for line in titles:
        text(_MARGIN, y + 6, line, fontsize=_TITLE)
        y += 18
    for line in notes:
        text(_MARGIN, y + 6, line, fontsize=_SMALL, color="0.3")
        y += 13
    y = top
    for one, parts, heading, taken in zip(maps, lines, headings, heights, strict=True):
        below = y
        for line in heading:
            text(_MARGIN, below + 6, line, fontsize=_SMALL, color="0.3")
            below += 13
        if not parts:
            text(margin, below + 10, "(no words)", fontsize=_FONT, color="0.3")
        scale, decimals = darkest(one.weights), percent_decimals(len(one.words))
        for part in parts:
            x = margin
            for column, word, cell in part:
                text(x + cell / 2, below + _WORD_LINE / 2, word, fontsize=_FONT, ha="center")
                for row, weight in enumerate(one.weights[:, column]):
                    back = background(float(weight) / scale)
                    corner = (x, below + _WORD_LINE + row * _CELL)
                    axes.add_patch(_cell(corner, cell, back))
                    text(
                        x + cell / 2,
                        corner[1] + _CELL / 2,
                        f"{100 * weight:.{decimals}f}",
                        fontsize=_SMALL - 1,
                        ha="center",
                        color=_unit(foreground(back)),
                    )
                x += cell
            for row, label in enumerate(one.labels):
                where = below + _WORD_LINE + (row + 0.5) * _CELL
                text(margin - 8, where, label, fontsize=_SMALL, ha="right")
            below += _WORD_LINE + _CELL * len(one.labels) + 6
        y += taken
    legend = figure.add_axes((_MARGIN / width, 26 / height, 130 / width, 8 / height))
    mappable = ScalarMappable(Normalize(0, 1), COLOR_MAP)
    shown = figure.colorbar(mappable, cax=legend, orientation="horizontal", ticks=[0, 1])
    shown.ax.set_xticklabels(["0", "most"], fontsize=_SMALL - 1)
    for number, line in enumerate(legends):
        text(_MARGIN + 148, height - 30 + 13 * number, line, fontsize=_SMALL, color="0.3")
    return figure


def _cell(corner: tuple[float, float], width: float, color: tuple[int, int, int]) -> Patch:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, _CELL, facecolor=_unit(color), edgecolor="white", linewidth=1)


def _unit(color: tuple[int, int, int]) -> tuple[float, ...]:
    return tuple(channel / 255 for channel in color)


def _lines(words: Sequence[str], width: float) -> list[list[tuple[int, str, float]]]:
    """Breaks words into lines: the number, the text and the width of each column."""
    lines: list[list[tuple[int, str, float]]] = []
    left = 0.0
    for column, word in enumerate(words):
        if len(word) > _MAX_LETTERS:
            word = word[: _MAX_LETTERS - 1] + "…"
        needed = max(_width(word, _FONT) + 10, 30.0)
        if needed > left:
            lines.append([])
            left = width
        lines[-1].append((column, word, min(needed, width)))
        left -= needed
    return lines


def _wrapped(text: str, size: float, width: float) -> list[str]:
    letters = max(20, int(width / (0.6 * size)))
    return textwrap.wrap(text, letters) or [""]


@functools.lru_cache(maxsize=20_000)
def _width(text: str, size: float) -> float:
    """Width of a text in points, as Matplotlib draws it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes, which is told when it is drawn.
        warnings.simplefilter("ignore", UserWarning)
        width, _, _ = text_to_path.get_text_width_height_descent(
            text, FontProperties(size=size), ismath=False
        )
    return float(width)
