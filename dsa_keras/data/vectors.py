"""Pre-trained word vectors for a list of words, from GloVe, fastText or word2vec text files.

Files are taken in order and the first one that has a word settles it. Within a file a word is
looked up as written, then lower-cased; the first of two rows for the same word counts. A word in no
file gets a vector drawn uniformly from [-oov_range, oov_range]; it depends on the seed and the word
alone, so a vocabulary can grow without moving the vectors of its earlier words. Padding is zeros.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dsa_keras.data.archives import check_file
from dsa_keras.data.vector_file import VectorFile
from dsa_keras.data.vocabulary import PADDING, UNKNOWN
from dsa_keras.errors import ConfigError, DataError

_NOT_FOUND, _LOWER_CASED, _AS_WRITTEN = range(3)


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A vector for each word.

    Attributes:
        matrix: float32 array (number of words, dimension), in the order of the words.
        found: bool array, which words were found in a file.
        coverage: the share of the words, without padding and unknown, that were found.
        report: what was found where, in a few printable lines.
    """

    matrix: np.ndarray
    found: np.ndarray
    coverage: float
    report: str

    def token_coverage(self, counts: Sequence[int] | np.ndarray) -> float:
        """The share of running words that were found, given how often each word occurs."""
        weights = np.asarray(counts, np.float64)
        return float(weights[self.found].sum() / max(weights.sum(), 1.0))


def load_vectors(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    words: Sequence[str],
    *,
    dimension: int | None = None,
    oov_range: float = 0.05,
    seed: int = 0,
    on_bad_rows: Literal["error", "skip"] = "error",
    show_progress: bool = True,
) -> WordVectors:
    """Finds the vectors of `words` in text files of vectors: plain, `.gz` or `.zip`.

    Args:
        paths: one file, or several in order of preference. The first row of each tells its
            dimension (a word2vec header "rows dimension" is understood); all must agree. A zip
            archive is read without unpacking and has one `.txt` file in it.
        words: the words, such as a `Vocabulary`. `PADDING` gets zeros and `UNKNOWN` a drawn vector.
        dimension: the dimension the files must have; None takes what they have.
        oov_range: bound of the uniform draw for words in no file; the paper has 0.005 for SNLI and
            0.05 for SST.
        seed: seed of that draw.
        on_bad_rows: "error" stops at the first bad row, "skip" leaves bad rows out and counts them
            in the report.
        show_progress: whether to show a progress bar on a terminal.

    Raises:
        DataError: with file and line, if a file or row cannot be used.
        ConfigError: if an option is wrong.
    """
    if on_bad_rows not in ("error", "skip"):
        raise ConfigError(f"on_bad_rows is {on_bad_rows!r}", hint='Give "error" or "skip"')
    if not (math.isfinite(oov_range) and oov_range >= 0):
        raise ConfigError(f"oov_range is {oov_range}", hint="Give a finite number from 0")
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not paths:
        raise ConfigError("no vector file is given", hint="Give at least one path")
    files = [VectorFile(check_file(path), dimension, on_bad_rows == "skip") for path in paths]
    for file in files:
        if file.dimension != files[0].dimension:
            problem = f"has {file.dimension} numbers a row, but {files[0].path} has "
            raise DataError(
                f"{problem}{files[0].dimension}", where=file.path, hint="Use files of one dimension"
            )

    matrix, how, notes = _search(files, words, show_progress)
    for row in np.flatnonzero(how == _NOT_FOUND).tolist():
        if words[row] != PADDING:
            matrix[row] = _drawn(words[row], seed, oov_range, files[0].dimension)
    return _result(words, matrix, how, notes)


def _search(
    files: list[VectorFile], words: Sequence[str], show_progress: bool
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The matrix with the words found, how each was found, and a line of report per file."""
    matrix = np.zeros((len(words), files[0].dimension), np.float32)
    how = np.zeros(len(words), np.uint8)
    notes = []
    for file in files:
        wanted: dict[bytes, list[tuple[int, int]]] = {}
        for row in np.flatnonzero(how == _NOT_FOUND).tolist():
            word = words[row]
            if word and word not in (PADDING, UNKNOWN):
                wanted.setdefault(_encoded(word), []).append((row, _AS_WRITTEN))
                if (lowered := word.lower()) != word:
                    wanted.setdefault(_encoded(lowered), []).append((row, _LOWER_CASED))
        counts = [0, 0, 0]
        for key, vector in file.find(wanted, show_progress):
            for row, this_way in wanted[key]:
                if this_way > how[row]:
                    counts[how[row]] -= 1
                    counts[this_way] += 1
                    matrix[row], how[row] = vector, this_way
        notes.append(
            f"{file.path.name}: {counts[_AS_WRITTEN]} words as written, "
            f"{counts[_LOWER_CASED]} lower-cased"
            + (f", {file.bad_rows} bad rows skipped" if file.bad_rows else "")
        )
    return matrix, how, notes


def _result(
    words: Sequence[str], matrix: np.ndarray, how: np.ndarray, notes: list[str]
) -> WordVectors:
    found = how != _NOT_FOUND
    total = sum(word not in (PADDING, UNKNOWN) for word in words)
    coverage = float(found.sum() / total) if total else 0.0
    summary = f"{found.sum()} of {total} words found ({coverage:.1%}), {total - found.sum()} drawn"
    return WordVectors(matrix, found, coverage, "\n".join([summary, *notes]))


def _encoded(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def _drawn(word: str, seed: int, bound: float, dimension: int) -> np.ndarray:
    """A uniform draw from the seed and the word alone, the same on every platform."""
    stream = hashlib.shake_128(f"{seed}\n".encode() + _encoded(word)).digest(4 * dimension)
    unit = (np.frombuffer(stream, "<u4") + 0.5) / 2**32
    return (bound * (2.0 * unit - 1.0)).astype(np.float32)
