"""Plain decimal numbers, thousands at a time: what `float` does in a loop, several times faster.

Vector files hold numbers like `-0.082752`. Each half of such a number, before and after the point,
is at most eight digits, so it fits in one 64-bit word, and NumPy turns the eight digits of many
words into integers with three multiplications (pairs of digits, then pairs of pairs). Mantissa and
power of ten are exact in float64 and divided once, so the result is correctly rounded, the same as
`float` gives. Text in any other form is left to the caller.
"""

from __future__ import annotations

import numpy as np

_ZEROS = np.uint64(0x3030303030303030)
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
# _KEEP[n] masks the last n of eight bytes, _FILL[n] has the digit 0 in all others.
_TENS = 10.0 ** np.arange(9)
_KEEP = np.array([(2**64 - 1) ^ (2 ** (64 - 8 * n) - 1) for n in range(9)], np.uint64)
_FILL = _ZEROS & ~_KEEP


def parse_decimals(text: bytes) -> np.ndarray | None:
    """The numbers of `text`, separated by single spaces, as float64.

    Returns:
        None if a number is not `digits.digits` with one to eight digits on each side, fifteen in
        all, and maybe a minus sign.
    """
    # Eight bytes in front, so that the eight bytes before any position exist.
    padded = b" " * 8 + text + b" "
    data = np.frombuffer(padded, np.uint8)
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    edges = np.flatnonzero(data[7:] == ord(" ")) + 7
    starts, ends = edges[:-1] + 1, edges[1:]
    points = np.flatnonzero(data == ord("."))
    if len(points) != len(starts):
        return None
    negative = data[starts] == ord("-")
    whole = points - starts - negative
    fraction = ends - points - 1
    if min(whole.min(), fraction.min()) < 1 or max(whole.max(), fraction.max()) > 8:
        return None
    if (whole + fraction).max() > 15:
        return None
    before = _eight_digits(words[points - 8], whole)
    after = _eight_digits(words[ends - 8], fraction)
    if before is None or after is None:
        return None
    scale = _TENS[fraction]
    numbers = (before * scale + after) / scale
    return np.where(negative, -numbers, numbers)


def _eight_digits(words: np.ndarray, counts: np.ndarray) -> np.ndarray | None:
    """The integers that the last `counts` bytes of each word spell; None if one is no digit."""
    words = (words & _KEEP[counts]) | _FILL[counts]
    if ((words & _HIGH_HALVES) != _ZEROS).any() or (
        ((words + _SIXES) & _HIGH_HALVES) != _ZEROS
    ).any():
        return None
    words = words - _ZEROS
    words = (words * np.uint64(10 * 2**8 + 1) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    words = (words * np.uint64(100 * 2**16 + 1) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    words = words * np.uint64(10_000 * 2**32 + 1) >> np.uint64(32)
    return words.astype(np.float64)
