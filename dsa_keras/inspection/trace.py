"""The words of a sentence with the weights that each attention gave them, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dsa_keras.data.word_lookup import UNKNOWN_ID
from dsa_keras.progress import progress_bar

if TYPE_CHECKING:
    from dsa_keras.text_encoder import TextEncoder


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


def trace(
    text_encoder: TextEncoder,
    sentences: Sequence[str],
    batch_size: int = 256,
    show_progress_bar: bool = False,
) -> list[Trace]:
    """Encodes sentences and keeps what every attention did in every iteration.

    Args:
        text_encoder: whose encoder attends.
        sentences: the sentences.
        batch_size: sentences that are encoded at a time, at most.
        show_progress_bar: whether to show a bar on a terminal.

    Raises:
        ConfigError: if the encoder has no attention.
    """
    import tensorflow as tf

    from dsa_keras.text_encoder import length_batches

    encoder = text_encoder.network.traced_encoder
    words, ids = text_encoder.words(sentences), text_encoder.word_ids(sentences)
    found: dict[int, Trace] = {}
    with progress_bar(
        len(sentences), "looking at attention", show=show_progress_bar, unit=" sentences"
    ) as bar:
        for which in length_batches(ids, batch_size):
            rows = ids.padded(which)
            outputs = encoder(tf.constant(rows), training=False)
            weights, vectors = (outputs[name].numpy() for name in ("attention_weights", "vectors"))
            dynamic = outputs["weight_vectors"].numpy() if "weight_vectors" in outputs else None
            for row, number in enumerate(which):
                length = len(words[number])
                found[int(number)] = Trace(
                    words[number],
                    tuple(bool(one != UNKNOWN_ID) for one in rows[row, :length]),
                    weights[row, :, :, :length].astype(np.float32),
                    vectors[row].astype(np.float32),
                    None if dynamic is None else dynamic[row].astype(np.float32),
                )
            bar.update(len(which))
    return [found[number] for number in range(len(sentences))]
