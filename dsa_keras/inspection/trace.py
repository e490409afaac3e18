"""The words of a sentence with the weights that each attention gave them, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dsa_keras.data.batches import Sentences
from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.data.tokenizers import tokenize
from dsa_keras.errors import ConfigError
from dsa_keras.progress import progress_bar

if TYPE_CHECKING:
    from dsa_keras.sentence_model import SentenceModel

ATTENDING = ("dsa-single", "dsa-multiple", "self-attention", "bilstm-self-attention")
"""The encoders that have an attention to look at."""

_UNKNOWN_ID = 1


@dataclass(frozen=True)
class Trace:
    """What an encoder attended to in one sentence.

    Attributes:
        words: as the model's tokeniser split them.
        known: for each word, whether the model knows it.
        weights: `(iterations, attentions, words)`; over the words they sum to 1.
        vector: the sentence embedding.
        weight_vectors: the dynamic weight vectors z, `(iterations, attentions, units)`; None for
            static self-attention, which has one iteration.
    """

    words: tuple[str, ...]
    known: tuple[bool, ...]
    weights: np.ndarray
    vector: np.ndarray
    weight_vectors: np.ndarray | None


def check_attends(encoder: str) -> None:
    """Refuses an encoder that has no attention.

    Raises:
        ConfigError: if there is nothing to look at.
    """
    if encoder not in ATTENDING:
        raise ConfigError(
            f"the encoder {encoder} has no attention to look at",
            hint=f"Encoders with attention are {', '.join(ATTENDING)}",
        )


def trace(
    model: SentenceModel,
    sentences: Sequence[str],
    batch_size: int = 256,
    show_progress_bar: bool = False,
) -> list[Trace]:
    """Encodes sentences and keeps what every attention did in every iteration.

    Args:
        model: a model whose encoder attends.
        sentences: the sentences.
        batch_size: sentences that are encoded at a time, at most.
        show_progress_bar: whether to show a bar on a terminal.

    Raises:
        ConfigError: if the encoder has no attention.
    """
    import tensorflow as tf

    from dsa_keras.models import trace_encoder
    from dsa_keras.sentence_model import length_batches

    check_attends(model.config.model.encoder)
    encoder = trace_encoder(model.classifier.get_layer("encoder"))
    # Half characters (lone surrogates) become "?", as they do where sentences are encoded.
    texts = [one.encode("utf-8", errors="replace").decode() for one in sentences]
    words = [one[:MAX_WORDS] for one in tokenize(texts, model.tokenizer)]
    ids = [model.vocabulary.ids(one) for one in words]
    packed = Sentences(
        np.array([number for one in ids for number in one], np.int32),
        np.cumsum([0, *map(len, ids)]),
    )
    found: dict[int, Trace] = {}
    with progress_bar(
        len(texts), "looking at attention", show=show_progress_bar, unit=" sentences"
    ) as bar:
        for which in length_batches(packed, batch_size):
            outputs = encoder(tf.constant(packed.padded(which)), training=False)
            weights, vectors = (outputs[name].numpy() for name in ("attention_weights", "vectors"))
            dynamic = outputs["weight_vectors"].numpy() if "weight_vectors" in outputs else None
            for row, number in enumerate(which):
                found[int(number)] = Trace(
                    tuple(words[number]),
                    tuple(one != _UNKNOWN_ID for one in ids[number]),
                    weights[row, :, :, : len(words[number])].astype(np.float32),
                    vectors[row].astype(np.float32),
                    None if dynamic is None else dynamic[row].astype(np.float32),
                )
            bar.update(len(which))
    return [found[number] for number in range(len(texts))]
