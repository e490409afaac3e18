"""Runs an exported ONNX model on plain text: numpy, onnxruntime and Python's `re`, no TensorFlow.

The exporter puts this file beside the model as `dsa_onnx.py`. Beside it stand `MODEL.json`, with
the tokeniser's rules and the names of the classes, and `MODEL.vocabulary.txt`.

```python
from dsa_onnx import OnnxModel

model = OnnxModel("model.onnx")
model.predict(["a wonderful film"])  # [{"label": "positive", "probabilities": {...}}]
model.encode(["a wonderful film"])   # array of shape (1, units)
```

A model of sentence pairs predicts `(premise, hypothesis)` tuples. From a shell:
`python dsa_onnx.py model.onnx "a wonderful film"`.
"""

from __future__ import annotations

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
    """

    def __init__(
        self, path: str | os.PathLike[str], providers: Sequence[str] | None = None
    ) -> None:
        import onnxruntime

        path = Path(path)
        settings = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        lines = path.with_suffix(".vocabulary.txt").read_text(encoding="utf-8").split("\n")
        self._ids = {word: number for number, word in enumerate(lines[:-1]) if number > UNKNOWN_ID}
        self.num_words = len(lines) - 1
        self.tokenizer = Tokenizer(settings["tokenizer"])
        self.class_names: list[str] = settings["class_names"]
        self.is_pair: bool = settings["is_pair"]
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

    def probabilities(self, texts: Sequence[Any], batch_size: int = 64) -> np.ndarray:
        """Of every class, `(texts, classes)`."""
        if not self.is_pair:
            return self._run([texts], "probabilities", batch_size)
        return self._run(
            [[text[part] for text in texts] for part in (0, 1)], "probabilities", batch_size
        )

    def predict(self, texts: Sequence[Any], batch_size: int = 64) -> list[dict[str, Any]]:
        """The label and the probabilities of each text."""
        rows = self.probabilities(texts, batch_size)
        return [
            {
                "label": self.class_names[int(row.argmax())],
                "probabilities": dict(zip(self.class_names, row.tolist(), strict=True)),
            }
            for row in rows
        ]

    def encode(self, sentences: Sequence[str], batch_size: int = 64) -> np.ndarray:
        """A vector for each sentence."""
        if not self.is_pair:
            return self._run([sentences], "vector", batch_size)
        return self._run([sentences, [""] * len(sentences)], "premise_vector", batch_size)

    def _run(self, parts: list[Sequence[str]], output: str, batch_size: int) -> np.ndarray:
        """Runs sentences of similar length together; the answers are in the order given."""
        names = [one.name for one in self.session.get_inputs()]
        # tf2onnx may order inputs by name; premise_ids comes first for us.
        names.sort(key=lambda name: name.startswith("hypothesis"))
        count = len(parts[0])
        order = sorted(range(count), key=lambda place: len(parts[0][place]))
        width = {one.name: one.shape[-1] for one in self.session.get_outputs()}[output]
        result = np.zeros((count, width), np.float32)
        for start in range(0, count, batch_size):
            chosen = order[start : start + batch_size]
            inputs = [self.ids([part[place] for place in chosen]) for part in parts]
            feeds = dict(zip(names, inputs, strict=True))
            result[chosen] = self.session.run([output], feeds)[0]
        return result


def main() -> None:
    """Predicts the texts of the command line and prints a line of JSON for each."""
    if len(sys.argv) < 3:
        raise SystemExit('usage: python dsa_onnx.py model.onnx "sentence" ["sentence" ...]')
    model = OnnxModel(sys.argv[1])
    texts: list[Any] = sys.argv[2:]
    if model.is_pair:
        if len(texts) % 2:
            raise SystemExit("the model compares sentences: give a premise and a hypothesis")
        texts = list(zip(texts[::2], texts[1::2], strict=True))
    for answer in model.predict(texts):
        print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    main()
