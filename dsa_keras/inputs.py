"""What a model takes, one sentence or two: names, order and prefixes are said here alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dsa_keras.errors import ConfigError, DataError

Text = str | tuple[str, str]
"""The text of one example: a sentence, or (premise, hypothesis)."""

T = TypeVar("T")


@dataclass(frozen=True)
class Inputs:
    """The sentences of an example, by name and in order.

    Attributes:
        names: of the sentences, as explanations and files call them.
        signature: the names of the inputs of an exported model that take them as text.
        ids: the names of those that take them as word ids.
        prefixes: what stands before the name of an output that belongs to one sentence.
    """

    names: tuple[str, ...]
    signature: tuple[str, ...]
    ids: tuple[str, ...]
    prefixes: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many sentences an example has."""
        return len(self.names)

    @property
    def is_pair(self) -> bool:
        """Whether an example has two sentences."""
        return self.count > 1

    def sentences(self, text: Text) -> tuple[str, ...]:
        """The sentences of a text, in order."""
        return (text,) if isinstance(text, str) else tuple(text)

    def text(self, sentences: Sequence[str]) -> Text:
        """The text of so many sentences."""
        return (sentences[0], sentences[1]) if self.is_pair else sentences[0]

    def columns(self, texts: Sequence[Text]) -> dict[str, list[str]]:
        """The sentences of many texts, by the name of the signature's input that takes them."""
        parts = [self.sentences(text) for text in texts]
        return {name: [part[n] for part in parts] for n, name in enumerate(self.signature)}

    def distinct(self, texts: Sequence[Text]) -> tuple[list[str], np.ndarray]:
        """The distinct sentences in order of appearance, and an index into them.

        Returns:
            The sentences, and an int32 array: `(texts,)`, or `(texts, 2)` for pairs.
        """
        numbers: dict[str, int] = {}
        flat = [
            numbers.setdefault(sentence, len(numbers))
            for text in texts
            for sentence in self.sentences(text)
        ]
        index = np.array(flat, np.int32)
        return list(numbers), index.reshape(len(texts), 2) if self.is_pair else index

    def is_one(self, value: Any) -> bool:
        """Whether a value is one text, and not many."""
        return self._is_text(value) and isinstance(value, str | tuple)

    def checked(self, texts: Iterable[Any]) -> list[Text]:
        """The texts as a list.

        Raises:
            ConfigError: if one of them is not what the model takes.
        """
        hint = f"Give a list of {'pairs' if self.is_pair else 'str'}"
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ConfigError(f"texts must be a list, not one {type(texts).__name__}", hint=hint)
        found: list[Text] = []
        for number, text in enumerate(texts):
            if not self._is_text(text):
                raise ConfigError(
                    f"text {number} is not {self.what}. Received: {text!r:.60}", hint=hint
                )
            found.append(tuple(text) if self.is_pair else text)
        return found

    def _is_text(self, value: Any) -> bool:
        # A NumPy array of strings holds `numpy.str_`, which is a str.
        if not self.is_pair:
            return isinstance(value, str)
        return (
            isinstance(value, tuple | list | np.ndarray)
            and len(value) == self.count
            and isinstance(value[0], str)
            and isinstance(value[1], str)
        )

    @property
    def what(self) -> str:
        """What one text is, in words."""
        return "a pair of sentences, (premise, hypothesis)" if self.is_pair else "a sentence (str)"

    def from_arguments(self, arguments: Sequence[str]) -> list[Text]:
        """The texts of a command line.

        Raises:
            ConfigError: if a sentence is left over.
        """
        if len(arguments) % self.count:
            raise ConfigError(
                f"{len(arguments)} sentences, but this model takes pairs",
                hint="Give the premise and the hypothesis as two arguments",
            )
        parts = [arguments[n : n + self.count] for n in range(0, len(arguments), self.count)]
        return [self.text(part) for part in parts]

    def from_line(self, line: str, number: int, where: str) -> Text:
        """The text on a line of a file: two sentences have a tab between them.

        Raises:
            DataError: if there are more or fewer than two.
        """
        if not self.is_pair:
            return line
        parts = line.split("\t")
        if len(parts) != self.count:
            raise DataError(
                f"{len(parts)} {'sentence' if len(parts) == 1 else 'sentences'} where this model "
                "takes two",
                where=where,
                line=number,
                hint="Write the premise and the hypothesis on one line with a tab between them",
            )
        return self.text(parts)

    @property
    def example_arguments(self) -> str:
        """What stands for a text in a command that is shown."""
        return '"first sentence" "second sentence"' if self.is_pair else '"your sentence"'

    @property
    def example_python(self) -> str:
        """What stands for a list of texts in Python that is shown."""
        return '[("a premise", "a hypothesis")]' if self.is_pair else '["your sentence"]'

    def by_prefix(self, values: Mapping[str, T] | Sequence[T]) -> dict[str, T]:
        """Values, one for each sentence, by the prefix of its outputs."""
        listed = list(values.values()) if isinstance(values, Mapping) else list(values)
        return dict(zip(self.prefixes, listed, strict=True))

    @property
    def looked_at(self) -> int:
        """Which sentence `inspect` looks at: of a pair the hypothesis, whose words decide."""
        return self.count - 1

    def to_json(self) -> list[str]:
        """The names, which tell one from the other."""
        return list(self.names)

    @classmethod
    def from_json(cls, names: Any) -> Inputs:
        """The inputs of these names.

        Raises:
            ConfigError: if there are none.
        """
        for known in (SENTENCE, PAIR):
            if isinstance(names, list) and tuple(names) == known.names:
                return known
        raise ConfigError(f"inputs must be one of {SENTENCE.to_json()}, {PAIR.to_json()}")


SENTENCE = Inputs(("sentence",), ("text",), ("word_ids",), ("",))
"""One sentence."""

PAIR = Inputs(
    ("premise", "hypothesis"),
    ("premise", "hypothesis"),
    ("premise_ids", "hypothesis_ids"),
    ("premise_", "hypothesis_"),
)
"""Two sentences, in this order."""
