"""Encoding many sentences by tables of what depends on a word alone.

Without dropout, much of the encoder before the attention is a function of single words, however
often they occur: h^1 of both blocks, the products of X^1 with the kernels of all later layers
(added up over neighbours only afterwards), and what X^0 and X^1 bring into the compression. With
the paper's sizes that is half of all operations (630 of 1,260 thousand multiplications a word). A
`TabledEncoder` computes these rows once for each distinct word and looks them up for every
position; X^2 is then a sum of table rows, without any product. The answers are those of the encoder
up to the order of additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from dsa_keras.layers.compression import unit_vectors
from dsa_keras.layers.convolution import added_parts, all_parts, places_seen


class WordTables(NamedTuple):
    """What is known of some distinct words, and the rest of the kernels that it goes with.

    Attributes:
        compression: by word, what X^0 and X^1 bring into h^c with its bias: `(words, d_c)`.
        products: by block and dense layer, X^1 times the kernel: `(words, k * filters)`.
        kernels: by block and dense layer, all parts for X^2 and later: `(features, k * filters)`.
        dense_kernel: of h^c for X^2 and later of all blocks.
    """

    compression: Any
    products: list[list[Any]]
    kernels: list[list[Any]]
    dense_kernel: Any


class TabledEncoder:
    """The layers of an encoder with dense blocks, for inference on many sentences.

    It reads the weights when tables are made, and holds no weight of its own.

    Args:
        embedding: the `WordEmbedding`.
        blocks: the `DenseConvBlock` layers.
        compression: the `WordCompression`.
        attention: what follows it.

    Example:

    >>> from dsa_keras.datasets import preset
    >>> from dsa_keras.models import Network
    >>> network = Network(preset("sst2").model.replace(vocabulary_size=1000))
    >>> tabled = network.word_tables()
    >>> tables = tabled.tables(np.array([0, 5, 7]))   # row 0 is padding
    >>> tabled.encode(tables, np.array([[1, 2, 2, 0]])).shape
    TensorShape([1, 600])
    """

    def __init__(
        self,
        embedding: keras.Layer,
        blocks: Sequence[keras.Layer],
        compression: keras.Layer,
        attention: keras.Layer,
    ) -> None:
        self._embedding, self._blocks = embedding, list(blocks)
        self._compression, self._attention = compression, attention

    def tables(self, word_ids: Any) -> WordTables:
        """The tables of distinct words, of which the first must be padding (0)."""
        ids = tf.cast(tf.expand_dims(word_ids, 0), tf.int32)
        mask = ids != 0
        x0 = self._embedding(ids, training=False)
        # Under mixed precision words are of the compute dtype, weights are not.
        of_x0 = tf.cast(self._compression.h.kernel, x0.dtype)
        known, rest, products, kernels = tf.zeros([], x0.dtype), [], [], []
        for block in self._blocks:
            first = block.first_filters
            x1 = block.h[0](x0, mask=mask, training=False)[0]
            dense_kernels = [tf.cast(h.kernel, x0.dtype) for h in block.h[1:]]
            products.append([x1 @ all_parts(kernel[:, -first:]) for kernel in dense_kernels])
            kernels.append([all_parts(kernel[:, :-first]) for kernel in dense_kernels])
            size = block.num_layers * block.filters
            dense, of_x1, of_x0 = tf.split(of_x0, [size, first, -1])
            rest.append(dense)
            known += x1 @ of_x1
        known += x0[0] @ of_x0 + tf.cast(self._compression.h.bias, x0.dtype)
        return WordTables(known, products, kernels, tf.concat(rest, 0))

    def functions(self) -> tuple[Any, Any]:
        """`tables` and `encode` as graphs, for words and sentences of any number and length."""
        ids = tf.TensorSpec([None], tf.int32)
        make = tf.function(self.tables, input_signature=[ids], autograph=False)
        made = tf.nest.map_structure(
            tf.TensorSpec.from_tensor, make.get_concrete_function().structured_outputs
        )
        rows = tf.TensorSpec([None, None], tf.int32)
        return make, tf.function(self.encode, input_signature=[made, rows], autograph=False)

    def encode(self, tables: WordTables, rows: Any) -> Any:
        """Vectors of padded sentences, given as rows of the tables: `(batch, words)`."""
        rows = tf.cast(rows, tf.int32)
        shape = tf.shape(rows)
        # All words in one column, and one place of padding more: what a sentence's end sees.
        words = tf.pad(tf.reshape(rows, [-1]), [[0, 1]])
        real = tf.cast(tf.expand_dims(words != 0, -1), tables.compression.dtype)
        features = []
        for block, products, kernels in zip(
            self._blocks, tables.products, tables.kernels, strict=True
        ):
            seen = places_seen(shape, block.kernel_size)
            seen = tf.concat([seen, tf.fill([1, block.kernel_size], tf.size(rows))], axis=0)
            x = None
            for h, known, kernel in zip(block.h[1:], products, kernels, strict=True):
                if x is None:
                    new = added_parts(known, tf.gather(words, seen))
                else:
                    new = added_parts(tf.gather(known, words) + x @ kernel, seen)
                bias = tf.cast(h.bias, new.dtype)
                new = tf.nn.leaky_relu(tf.nn.bias_add(new, bias), block.negative_slope) * real
                x = new if x is None else tf.concat([new, x], axis=-1)
            features.append(x)
        compressed = tf.concat(features, axis=-1) @ tables.dense_kernel
        compressed = (compressed + tf.gather(tables.compression, words))[:-1]
        compressed = tf.nn.leaky_relu(compressed, self._compression.negative_slope)
        compressed = tf.reshape(unit_vectors(compressed), [shape[0], shape[1], -1])
        compressed.set_shape([*rows.shape, tables.compression.shape[-1]])
        return self._attention(compressed, mask=rows != 0)
