"""Figures of Matplotlib as pixels and as PNG files."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
