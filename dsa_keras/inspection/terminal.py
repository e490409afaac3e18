"""Explanations for the terminal: words on shaded backgrounds, or plain text with numbers."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from typing import TextIO

import numpy as np

from dsa_keras.inspection.explanation import Explanation, rows
from dsa_keras.inspection.shades import background, darkest, foreground, percent_decimals
from dsa_keras.inspection.trace import Trace

_STEPS = (0, 95, 135, 175, 215, 255)
UNKNOWN_MARK = "(?)"
"""Follows a word that the model does not know."""


def color_depth(stream: TextIO, environment: Mapping[str, str] | None = None) -> str:
    """How `stream` shows colours: `none` (a pipe, or NO_COLOR is set), `256` or `true`."""
    environment = os.environ if environment is None else environment
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb" or not stream.isatty():
        return "none"
    return "true" if environment.get("COLORTERM") in ("truecolor", "24bit") else "256"


def rendered(
    explanation: Explanation, *, iterations: bool = False, colors: str = "none", width: int = 80
) -> str:
    """The explanation as lines of text.

    Args:
        explanation: what to show.
        iterations: whether to show every routing step instead of the last.
        colors: `none` puts the weight in brackets behind each word; `256` and `true` shade it.
        width: columns of the terminal.
    """
    lines = ["  ".join([explanation.answer.headline(), *explanation.answer.asides()])]
    lines += [f"  note: {note}" for note in explanation.answer.notes()]
    for name, one in explanation.traces.items():
        if len(explanation.traces) > 1:
            lines.append(f"  {name}")
        lines += _sentence(one, iterations, colors, width)
    if any(not known for one in explanation.traces.values() for known in one.known):
        lines.append(f"  {UNKNOWN_MARK} the model does not know this word")
    return "\n".join(lines)


def _sentence(one: Trace, iterations: bool, colors: str, width: int) -> list[str]:
    if not one.words:
        return ["    (no words)"]
    shown = list(rows(one, iterations=iterations))
    margin = max(len(row.label) for row in shown) + 6
    scale = darkest(np.stack([row.weights for row in shown]))
    decimals = 2 + percent_decimals(len(one.words))
    lines = []
    for row in shown:
        start, used, line = f"    {row.label}".ljust(margin), 0, ""
        for word, known, weight in zip(one.words, one.known, row.weights, strict=True):
            text = word if known else word + UNKNOWN_MARK
            text = f" {text} " if colors != "none" else f"{text}[{weight:.{decimals}f}]"
            columns = _columns(text) + (colors == "none")
            if used and used + columns > max(width - margin, 20):
                lines.append(start + line.rstrip(" "))
                start, used, line = " " * margin, 0, ""
            line += text + " " if colors == "none" else _shaded(text, weight / scale, colors)
            used += columns
        lines.append(start + (line.rstrip(" ") if colors == "none" else line))
    return lines


def _shaded(text: str, share: float, colors: str) -> str:
    back = background(share)
    front = foreground(back)
    return f"\x1b[{_code(48, back, colors)};{_code(38, front, colors)}m{text}\x1b[0m"


def _code(layer: int, color: tuple[int, int, int], colors: str) -> str:
    if colors == "true":
        return f"{layer};2;{color[0]};{color[1]};{color[2]}"
    red, green, blue = (
        min(range(6), key=lambda step: abs(_STEPS[step] - channel)) for channel in color
    )
    return f"{layer};5;{16 + 36 * red + 6 * green + blue}"


def _columns(text: str) -> int:
    """How wide a terminal shows the text: East Asian wide characters take two columns."""
    return sum(
        0
        if unicodedata.combining(one) or unicodedata.category(one) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )
