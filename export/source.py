"""The trained model that is exported, and what Keras answers with it: the reference of all checks.

The reference runs the model as it was trained: batch norm as a layer of its own, float32 vectors,
words looked up in Python, sentences padded to the longest of a batch. An exported file differs in
all of this and has to give the same answers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dsa_keras.data import MAX_WORDS, Split, Vocabulary, load_dataset, tokenize
from dsa_keras.data.dataset import Text
from dsa_keras.errors import DataError, DsaError
from dsa_keras.training.run import Run, RunConfig

if TYPE_CHECKING:
    import keras

_BATCH = 64

Answers = dict[str, dict[str, Any]]
"""Outputs by name, by signature."""


@dataclass(frozen=True)
class Source:
    """A run, loaded.

    Attributes:
        run: its folder.
        config: its settings.
        vocabulary: the words it was trained with.
        classifier: the Keras model with its best weights.
    """

    run: Run
    config: RunConfig
    vocabulary: Vocabulary
    classifier: keras.Model

    @classmethod
    def load(cls, run_dir: str | os.PathLike[str]) -> Source:
        """Loads a run folder, or says what is wrong with it."""
        run = Run(run_dir)
        config = run.config()
        return cls(run, config, run.vocabulary(config), run.load_model(config))

    @property
    def encoder(self) -> keras.Model:
        """From word ids to sentence vectors."""
        return self.classifier.get_layer("encoder")

    @property
    def vectors(self) -> np.ndarray:
        """The word vectors, `(words, dimension)`."""
        return np.array(self.encoder.get_layer("embedding").vectors)

    def best_metrics(self) -> dict[str, Any]:
        """What was measured in the epoch whose weights these are."""
        records = self.run.metrics()
        return max(records, key=lambda record: record["dev_accuracy"], default={})

    def dev(self, data_dir: str | os.PathLike[str] | None = None) -> Split:
        """The dev split of the data that the run was trained on."""
        where = data_dir or self.config.data.get("data_dir")
        try:
            return load_dataset(self.config.task, where, **self.config.data["options"])["dev"]
        except (DsaError, OSError) as error:
            raise DataError(
                f"the dev split, which measures the loss of accuracy, cannot be read: {error}",
                hint="Give its folder with --data-dir",
            ) from None

    def padded(self, sentences: Sequence[str]) -> np.ndarray:
        """Word ids `(sentences, longest, at least 1)`, padded with 0."""
        return padded([self.vocabulary.ids(row[:MAX_WORDS]) for row in self.words(sentences)])

    def words(self, sentences: Sequence[str]) -> list[list[str]]:
        """The words of each sentence."""
        return tokenize(sentences, self.config.training.tokenizer)

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        """What Keras says of each text, `(texts, classes)`."""
        logits = [np.zeros((0, len(self.config.class_names)), np.float32)]
        for start in range(0, len(texts), _BATCH):
            inputs = self._inputs(texts[start : start + _BATCH])
            logits.append(np.array(self.classifier(inputs, training=False)))
        scores = np.concatenate(logits)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def answers(self, texts: Sequence[Text]) -> Answers:
        """What Keras gives for every signature of the exported model."""
        from dsa_keras.models import trace_encoder

        probabilities = self.probabilities(texts)
        names = np.array(self.config.class_names, object)
        default = {
            "label": names[probabilities.argmax(-1)],
            "probabilities": probabilities,
            "class_names": np.tile(names, (len(texts), 1)),
        }
        parts = parts_of(texts, self.config.is_pair)
        vectors = {
            name: np.array(self.encoder(self.padded(sentences), training=False))
            for name, sentences in parts.items()
        }
        prefixed = {f"{name}_" if name != "text" else "": name for name in parts}
        tokens = default | {f"{prefix}vector": vectors[n] for prefix, n in prefixed.items()}
        answers: Answers = {
            "serving_default": default,
            "embed": {"vector": next(iter(vectors.values()))},
            "tokens": tokens,
        }
        if any(layer.name == "attention" for layer in self.encoder.layers):
            trace = trace_encoder(self.encoder)
            answers["attention"] = {}
            for prefix, name in prefixed.items():
                outputs = trace(self.padded(parts[name]), training=False)
                words = [row[:MAX_WORDS] for row in self.words(parts[name])]
                width = max([1, *map(len, words)])
                answers["attention"] |= {
                    f"{prefix}tokens": np.array(
                        [row + [""] * (width - len(row)) for row in words], object
                    ),
                    f"{prefix}weights": np.array(outputs["attention_weights"]),
                    f"{prefix}lengths": np.array([len(row) for row in words]),
                }
        return answers

    def _inputs(self, texts: Sequence[Text]) -> Any:
        ids = {name: self.padded(part) for name, part in parts_of(texts, self.is_pair).items()}
        return ids if self.is_pair else ids["text"]

    @property
    def is_pair(self) -> bool:
        """Whether an example is two sentences."""
        return self.config.is_pair


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Rows of ids, `(rows, longest, at least 1)`, padded with 0."""
    ids = np.zeros((len(rows), max([1, *map(len, rows)])), np.int32)
    for row, one in zip(ids, rows, strict=True):
        row[: len(one)] = one
    return ids


def parts_of(texts: Sequence[Text], is_pair: bool) -> Mapping[str, list[str]]:
    """The sentences of the texts by the name of the input that takes them."""
    if not is_pair:
        return {"text": [str(text) for text in texts]}
    return {
        name: [text[number] for text in texts]
        for number, name in enumerate(("premise", "hypothesis"))
    }
