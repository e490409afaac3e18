"""Runs an exported ONNX model on plain text: numpy, onnxruntime and Python's `re`, no TensorFlow.

The exporter puts this file beside the model as `dsa_onnx.py`. Beside it stand `MODEL.json`, with
the tokeniser's rules and what the answers are, and `MODEL.vocabulary.txt`.

```python
from dsa_onnx import OnnxModel

model = OnnxModel("model.onnx")
model.predict(["a wonderful film"])  # [{"label": "positive", "probabilities": {...}}]
model.encode(["a wonderful film"])   # array of shape (1, units)
```

A model of sentence pairs predicts `(premise, hypothesis)` tuples, one that was trained on numbers
gives `{"number": ...}`. From a shell: `python dsa_onnx.py model.onnx "a wonderful film"`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PADDING_ID, UNKNOWN_ID = 0, 1
_PROPERTY = re.compile(r"\\p\{(\w+)\}")


class Tokenizer:
    r"""Splits texts into words by the rules of an exported model.

    Args:
        settings: the `tokenizer` part of `MODEL.json`: `rules` are patterns and replacements,
            applied in order; `classes` are the code points of each `\p{...}` in them, as first and
            last of ranges; `lower` are capital letters and their small ones, or empty.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        classes = {
            name: "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
            for name, ranges in settings["classes"].items()
        }
        self._rules = [
            (re.compile(_PROPERTY.sub(lambda found: classes[found[1]], pattern)), replacement)
            for pattern, replacement in settings["rules"]
        ]
        self._finish = [(re.compile(pattern), new) for pattern, new in settings["finish"]]
        capitals, small = settings["lower"]
        self._lower = str.maketrans(capitals, small)
        self._lowers = bool(capitals)

    def __call__(self, text: str) -> list[str]:
        """The words of a text."""
        # Half characters, as broken JSON escapes leave behind, become U+FFFD.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        if self._lowers:
            # A sigma at the end of a word has a form of its own, which str.lower knows.
            sigmas = text.lower() if "\N{GREEK CAPITAL LETTER SIGMA}" in text else ""
            text = text.translate(self._lower)
            if len(sigmas) == len(text):
                pairs = zip(text, sigmas, strict=True)
                text = "".join(b if b in "\u03c2" else a for a, b in pairs)
        for pattern, replacement in self._finish:
            text = pattern.sub(replacement, text)
        return [word for word in text.split(" ") if word]


class OnnxModel:
    """An exported model.

    Args:
        path: the `.onnx` file; its `.json` and `.vocabulary.txt` stand beside it.
        providers: of onnxruntime; None takes the CPU.

    Attributes:
        answers: how answers are made: the numbers are those of the output `output`; if they have
            `names`, they are given by name, and the name of the highest one under `highest`.
        inputs: for each sentence of a text its `name`, the input of its `ids`, and the output of
            its `vector`.
        quantized: what the weights were quantised to, or None.
        max_words: of a sentence; what follows is ignored.
        num_words: of the vocabulary.

    Raises:
        ValueError: if the files do not belong together.
    """

    def __init__(
        self, path: str | os.PathLike[str], providers: Sequence[str] | None = None
    ) -> None:
        import onnxruntime

        path = Path(path)
        settings = _current(json.loads(path.with_suffix(".json").read_text(encoding="utf-8")))
        for suffix, expected in settings["files"].items():
            _check(path.with_suffix(suffix), expected)
        vocabulary = path.with_suffix(".vocabulary.txt").read_text(encoding="utf-8")
        lines = vocabulary.split("\n")
        self._ids = {word: number for number, word in enumerate(lines[:-1]) if number > UNKNOWN_ID}
        self.num_words = len(lines) - 1
        self.tokenizer = Tokenizer(settings["tokenizer"])
        self.answers: dict[str, Any] = settings["answers"]
        self.inputs: list[dict[str, str]] = settings["inputs"]
        self.quantized: str | None = settings["quantized"]
        self.max_words: int = settings["max_words"]
        self.session = onnxruntime.InferenceSession(
            str(path), providers=list(providers or ["CPUExecutionProvider"])
        )

    def ids(self, sentences: Sequence[str]) -> np.ndarray:
        """Word ids `(sentences, longest, at least 1)`, padded with 0."""
        rows = [
            [self._ids.get(word, UNKNOWN_ID) for word in self.tokenizer(one)[: self.max_words]]
            for one in sentences
        ]
        padded = np.full((len(rows), max([1, *map(len, rows)])), PADDING_ID, np.int32)
        for row, one in zip(padded, rows, strict=True):
            row[: len(one)] = one
        return padded

    def numbers(self, texts: Sequence[Any], batch_size: int = 64) -> np.ndarray:
        """What the model says in numbers: of a classifier `(texts, classes)`."""
        places = range(len(self.inputs))
        many = len(self.inputs) > 1
        parts = [[text[place] if many else text for text in texts] for place in places]
        return self._run(parts, self.answers["output"], batch_size)

    def predict(self, texts: Sequence[Any], batch_size: int = 64) -> list[dict[str, Any]]:
        """The answer to each text: of a classifier `label` and `probabilities`."""
        return [self._answer(row) for row in self.numbers(texts, batch_size)]

    def encode(self, sentences: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """A vector for each sentence."""
        others = [[""] * len(sentences)] * (len(self.inputs) - 1)
        return self._run([sentences, *others], self.inputs[0]["vector"], batch_size)

    def _answer(self, row: np.ndarray) -> dict[str, Any]:
        output, values = self.answers["output"], row.tolist()
        if "names" not in self.answers:
            return {output: values}
        names: list[str] = self.answers["names"]
        answer: dict[str, Any] = {}
        if "highest" in self.answers:
            answer[self.answers["highest"]] = names[int(row.argmax())]
        return answer | {output: dict(zip(names, values, strict=True))}

    def _run(self, parts: Sequence[Sequence[str]], output: str, batch_size: int) -> np.ndarray:
        """Runs sentences of similar length together; the answers are in the order given."""
        count = len(parts[0])
        order = sorted(range(count), key=lambda place: len(parts[0][place]))
        shape = {one.name: one.shape for one in self.session.get_outputs()}[output]
        row = [size if isinstance(size, int) else 0 for size in shape[1:]]
        result = np.zeros((count, *row), np.float32)
        for start in range(0, count, batch_size):
            chosen = order[start : start + batch_size]
            feeds = {
                one["ids"]: self.ids([part[place] for place in chosen])
                for one, part in zip(self.inputs, parts, strict=True)
            }
            rows = self.session.run([output], feeds)[0]
            if not start:
                result = np.zeros((count, *rows.shape[1:]), rows.dtype)
            result[chosen] = rows
        return result


def _current(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of an older `MODEL.json` as today's say it: it knew classifiers only."""
    if "answers" in settings:
        return settings
    prefixes = ["premise_", "hypothesis_"] if settings["is_pair"] else [""]
    return {
        **settings,
        "files": {},
        "answers": {
            "output": "probabilities",
            "names": settings["class_names"],
            "highest": "label",
        },
        "inputs": [
            {
                "name": prefix.rstrip("_") or "sentence",
                "ids": f"{prefix}ids" if prefix else "word_ids",
                "vector": f"{prefix}vector",
            }
            for prefix in prefixes
        ],
    }


def _check(path: Path, expected: str) -> None:
    """Raises ValueError unless a file has this sha256."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    if digest.hexdigest() != expected:
        raise ValueError(
            f"{path}: is not the file that was exported with its .json (the checksum differs). "
            "Export the model again, or restore the file"
        )


def main() -> None:
    """Predicts the texts of the command line and prints a line of JSON for each."""
    if len(sys.argv) < 3:
        raise SystemExit('usage: python dsa_onnx.py model.onnx "sentence" ["sentence" ...]')
    try:
        model = OnnxModel(sys.argv[1])
    except ValueError as error:
        raise SystemExit(str(error)) from None
    texts: list[Any] = sys.argv[2:]
    count = len(model.inputs)
    if count > 1:
        if len(texts) % count:
            names = ", ".join(one["name"] for one in model.inputs)
            raise SystemExit(f"a text of this model is {count} sentences: {names}")
        texts = [tuple(texts[start : start + count]) for start in range(0, len(texts), count)]
    for answer in model.predict(texts):
        print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    main()
