"""The colour of a weight, the same in terminal, page and picture.

A single hue from white to deep blue (ColorBrewer's Blues): its order is that of lightness, so it
survives colour blindness and a grey printer.
"""

from __future__ import annotations

import numpy as np

COLOR_MAP = "Blues"
"""Matplotlib's name of the map."""

_BLUES = np.array(
    [
        (247, 251, 255),
        (222, 235, 247),
        (198, 219, 239),
        (158, 202, 225),
        (107, 174, 214),
        (66, 146, 198),
        (33, 113, 181),
        (8, 81, 156),
        (8, 48, 107),
    ],
    float,
)


def darkest(weights: np.ndarray) -> float:
    """The weight that gets the darkest shade in a map of one sentence.

    It is the largest weight, but at least twice the uniform one: words that all weigh the same
    are half dark, not black.
    """
    words = weights.shape[-1]
    return max(float(weights.max(initial=0.0)), min(1.0, 2 / max(words, 1)))


def percent_decimals(words: int) -> int:
    """Decimals that a weight in percent needs in a sentence of so many words.

    The more words, the smaller their weights: those around the uniform one keep a digit that tells
    them apart, up to 0.1 for 100 words, 0.01 for 1,000.
    """
    return max(0, len(str(max(words - 1, 1))) - 1)


def background(share: float) -> tuple[int, int, int]:
    """Red, green and blue of a share of the darkest weight, in [0, 1]."""
    position = np.clip(share, 0, 1) * (len(_BLUES) - 1)
    red, green, blue = (
        round(float(np.interp(position, range(len(_BLUES)), _BLUES[:, channel])))
        for channel in range(3)
    )
    return red, green, blue


def foreground(color: tuple[int, int, int]) -> tuple[int, int, int]:
    """Black or white, whichever has more contrast with the colour (WCAG luminance)."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in color)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (0, 0, 0) if luminance > 0.179 else (255, 255, 255)
