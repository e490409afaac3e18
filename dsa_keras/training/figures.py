"""The confusion matrix as a picture."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def confusion_figure(confusion: np.ndarray, class_names: tuple[str, ...], title: str) -> Figure:
    """Rows are the true classes, columns the predicted ones; shades are shares of a row."""
    from matplotlib.figure import Figure

    size = max(4.0, 1.6 + 0.8 * len(class_names))
    figure = Figure(figsize=(size + 1, size), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="cividis", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)
    ticks = range(len(class_names))
    axes.set_xticks(ticks, class_names, rotation=30, ha="right")
    axes.set_yticks(ticks, class_names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(f"Confusion matrix, {title}")
    if len(class_names) <= 20:
        for row in ticks:
            for column in ticks:
                shade = "black" if shares[row, column] > 0.5 else "white"
                text = f"{confusion[row, column]:,}"
                axes.text(column, row, text, ha="center", va="center", color=shade)
    return figure


def figure_image(figure: Figure) -> np.ndarray:
    """The figure as pixels, `(height, width, 4)`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    with _any_script():
        canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


def figure_png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    buffer = io.BytesIO()
    with _any_script():
        figure.savefig(buffer, format="png")
    return buffer.getvalue()


@contextlib.contextmanager
def _any_script() -> Iterator[None]:
    """Draws letters that the font lacks as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
