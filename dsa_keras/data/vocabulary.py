"""The words a model knows, each with an id: plain text, one word a line, the line number is the id.

Id 0 is padding and id 1 is any unknown word. A model's word vectors are fixed in training, so a
trained model can be given a larger vocabulary (`Vocabulary.extended`) together with its vectors:
the ids it was trained with do not move. Words are looked up exactly as written. The names of the
two special entries only mark their lines in the file: found in a sentence, the text "<pad>" is an
unknown word like any other, never padding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from dsa_keras.data.archives import check_file
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.files import write_text

PADDING = "<pad>"
"""Name of id 0."""
UNKNOWN = "<unk>"
"""Name of id 1."""

_SPECIAL = (PADDING, UNKNOWN)
# Only what ends a line or splits tokens; the no-break space inside "2\u00a01/2" of SST is part of
# a word.
_FORBIDDEN = re.compile(r"[ \t\n\r\v\f\0\ud800-\udfff]")


class Vocabulary(Sequence[str]):
    """An immutable sequence of distinct words, the position of a word being its id.

    Args:
        words: the words from id 2 on, without the two special entries.

    Raises:
        DataError: if a word is empty, repeated, special, or has ASCII white space, NUL or a lone
            surrogate in it.

    Example:
    ```python
    vocabulary = Vocabulary.from_counts({"a": 2, "bad": 1, "film": 2, "good": 1})
    vocabulary.ids(["a", "great", "film"])  # [2, 1, 3]
    ```
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = (*_SPECIAL, *words)
        self._ids: dict[str, int] = {}
        for number, word in enumerate(self._words[2:], start=2):
            problem = _problem_with(word)
            if problem is None and self._ids.setdefault(word, number) != number:
                problem = f"the word {word!r} is repeated"
            if problem is not None:
                raise DataError(problem, where=f"vocabulary, id {number}")
        self._table: Any = None

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, max_size: int | None = None, min_count: int = 1
    ) -> Vocabulary:
        """The vocabulary of the words in `counts`, the most frequent first.

        Words with the same count are in code point order, so the result does not depend on the
        order of the counts.

        Args:
            counts: how often each word occurs.
            max_size: how many words to keep, besides the two special entries; None keeps all.
            min_count: leaves out words that occur less often than this.
        """
        if max_size is not None and max_size < 0:
            raise ConfigError(f"max_size is {max_size}", hint="Give a number from 0, or None")
        if min_count < 1:
            raise ConfigError(f"min_count is {min_count}", hint="Give a number from 1")
        kept = sorted(
            (-count, word)
            for word, count in counts.items()
            if count >= min_count and word not in _SPECIAL
        )
        return cls(word for _, word in kept[:max_size])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads a vocabulary that `save` wrote.

        Raises:
            DataError: with the line, if the file is not a whole and valid vocabulary.
        """
        data = check_file(path).read_bytes()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise DataError(
                "is not UTF-8", where=path, line=line, hint="Save it as UTF-8"
            ) from None
        *lines, rest = text.split("\n")
        for number, name in enumerate(_SPECIAL, start=1):
            if len(lines) < number or lines[number - 1] != name:
                hint = f"The first two lines of a vocabulary are {PADDING} and {UNKNOWN}"
                raise DataError(f"is not {name}", where=path, line=number, hint=hint)
        if rest:
            raise DataError(
                "the last line does not end: the file is cut short",
                where=path,
                line=len(lines) + 1,
                hint="Write the file again",
            )
        seen: dict[str, int] = {}
        for number, word in enumerate(lines[2:], start=3):
            problem = _problem_with(word)
            if problem is None and (first := seen.setdefault(word, number)) != number:
                problem = f"the word {word!r} is on line {first} already"
            if problem is not None:
                hint = "Each line has one word, each word once"
                raise DataError(problem, where=path, line=number, hint=hint)
        return cls(lines[2:])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes UTF-8 text, the word with id `n` on line `n` counted from 0.

        `tf.lookup.TextFileInitializer` with `WHOLE_LINE` as key and `LINE_NUMBER` as value gives
        the same ids for all words.
        """
        write_text(path, "".join(f"{word}\n" for word in self._words))

    def extended(self, more_words: Iterable[str]) -> Vocabulary:
        """A larger vocabulary: the same ids for its words, new ids for the new ones."""
        new = dict.fromkeys(word for word in more_words if word not in self)
        return Vocabulary((*self._words[2:], *new))

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word; 1 for those unknown."""
        return [self._ids.get(word, 1) for word in words]

    def lookup(self, words: Any) -> Any:
        """The ids of a string tensor or ragged tensor, int32 of the same shape.

        It is a graph operation: it works in `tf.data` and `tf.function`.
        """
        import tensorflow as tf

        if self._table is None:
            # The first call may be inside a graph, but the table must outlive it.
            with tf.init_scope():
                # UNKNOWN is among the keys only because a table may not be empty.
                keys = tf.constant(self._words[1:], tf.string)
                values = tf.range(1, len(self), dtype=tf.int32)
                entries = tf.lookup.KeyValueTensorInitializer(keys, values)
                self._table = tf.lookup.StaticHashTable(entries, default_value=1)
        return self._table.lookup(words)

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._words[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids or word in _SPECIAL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._words == other._words

    def __hash__(self) -> int:
        return hash(self._words)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} entries>"


def _problem_with(word: str) -> str | None:
    if not word:
        return "the word is empty"
    if word in _SPECIAL:
        return f"{word!r} is the name of a special entry"
    if _FORBIDDEN.search(word):
        return f"the word {word!r} has white space, NUL or half a character in it"
    return None
