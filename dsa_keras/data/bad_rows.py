"""Rows of data files that cannot be used: what is wrong with one, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

from dsa_keras.data.text_files import MAX_WORDS, TextFile
from dsa_keras.errors import ConfigError, DataError

NOT_UTF_8 = "bytes that are not UTF-8"


class BadRows:
    """Stops at a bad row, or skips and counts it.

    Args:
        on_bad_rows: "error" raises at the first bad row, "skip" counts them.
    """

    def __init__(self, on_bad_rows: str) -> None:
        if on_bad_rows not in ("error", "skip"):
            raise ConfigError(
                f'on_bad_rows is {on_bad_rows!r}, not "error" or "skip"', where="on_bad_rows"
            )
        self.skips = on_bad_rows == "skip"
        self.count = 0

    def report(self, problem: str, source: TextFile, line: int) -> None:
        """Raises a `DataError` for this row, or counts it."""
        if not self.skips:
            raise DataError(
                problem,
                where=str(source),
                line=line,
                hint="Mend the row, or leave bad rows out and count them: --on-bad-rows skip",
            )
        self.count += 1


def text_problem(text: str) -> str | None:
    """What is wrong with a sentence, or None."""
    if problem := encoding_problem(text):
        return problem
    # A text no longer than the limit in characters cannot have more words than that.
    words = len(text.split()) if len(text) > MAX_WORDS else None
    if words is not None and words > MAX_WORDS:
        return f"a sentence of {words:,} words; the limit is {MAX_WORDS:,}"
    if words == 0 or not text or text.isspace():
        return "an empty sentence"
    return None


def encoding_problem(text: str) -> str | None:
    """NUL bytes, bytes that are not UTF-8 or lone surrogates in a text; None if it is sound."""
    if "\0" in text:
        return "a NUL byte"
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return NOT_UTF_8
    return None


def json_object(line: str) -> dict[str, Any]:
    """Parses a line of a jsonl file.

    Raises:
        ValueError: with the problem in words, if it is not UTF-8 or not one JSON object.
    """
    if problem := encoding_problem(line):
        raise ValueError(problem)
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"malformed JSON at column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"malformed JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object ({...})")
    return row


def check_not_empty(rows: int, source: TextFile, bad: BadRows) -> None:
    """Refuses a file without rows.

    Raises:
        DataError: if there are none.
    """
    if not rows:
        skipped = f" ({bad.count:,} bad rows skipped)" if bad.count else ""
        raise DataError(
            f"no usable rows{skipped}",
            where=str(source),
            hint="Check that this is the right file and format",
        )
