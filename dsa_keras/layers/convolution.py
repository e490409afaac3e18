"""Convolution over words, computed as matrix products."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from dsa_keras.layers.checks import REGISTERED_PACKAGE


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordConvolution(keras.layers.Conv1D):
    """A faster `keras.layers.Conv1D` with stride 1 that keeps the number of words.

    Every word is multiplied with all k parts of the kernel at once, `(words, features) x (features,
    k * filters)`, and the products are then added up, each shifted to its place. Weights and
    outputs are those of `Conv1D(filters, kernel_size, padding="same")`; on a CPU the products run
    at the speed of a plain matrix product, forward and backward, where TensorFlow's convolutions of
    one long row reach half of it or less. Besides, sentences that lie side by side in a row can be
    kept apart without empty positions between them.

    Args:
        filters: number of output features per word.
        kernel_size: k, the number of words seen at once, odd.
        **kwargs: further arguments of `keras.layers.Conv1D`, except for strides, padding, groups,
            dilation and activation.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`.
        same_sentence: what the function `same_sentence` returns; None if each row is one sentence.
    """

    def __init__(self, filters: int, kernel_size: int, **kwargs: Any) -> None:
        super().__init__(filters, kernel_size, padding="same", **kwargs)
        self.supports_masking = True

    def call(self, inputs: Any, same_sentence: Any = None) -> Any:
        """Convolves `(batch, words, features)` to `(batch, words, filters)`."""
        convolved = _convolve(inputs, tf.convert_to_tensor(self.kernel), same_sentence)
        return tf.nn.bias_add(convolved, self.bias)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        config = super().get_config()
        for fixed in ("strides", "padding", "data_format", "dilation_rate", "groups", "activation"):
            config.pop(fixed)
        return config


@keras.saving.register_keras_serializable(package=REGISTERED_PACKAGE)
class WordProduct(keras.layers.Dense):
    """A `keras.layers.Dense` without activation that also takes the features in parts.

    The output for a list of parts is that for their concatenation, but nothing is copied for it,
    and a part that needs no gradient, such as fixed word vectors, costs none.

    Args:
        units: number of output features per word.
        **kwargs: further arguments of `keras.layers.Dense`, except for the activation.

    Call arguments:
        inputs: word vectors of shape `(batch, words, features)`, or a list of parts of their
            features.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.input_spec = None

    def build(self, input_shape: Any) -> None:
        """Creates the weights for the features of all parts together."""
        super().build(joined_shape(input_shape))
        self.input_spec = None

    def call(self, inputs: Any) -> Any:
        """Multiplies each part with its rows of the kernel and adds the products up."""
        parts = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        kernels = tf.split(tf.convert_to_tensor(self.kernel), [part.shape[-1] for part in parts])
        first, *others = [
            tf.reshape(part, [-1, part.shape[-1]]) @ kernel
            for part, kernel in zip(parts, kernels, strict=True)
        ]
        # Right after a product, TensorFlow adds the bias within it.
        products = tf.add_n([tf.nn.bias_add(first, self.bias), *others])
        shape = tf.concat([tf.shape(parts[0])[:-1], [self.units]], axis=0)
        return tf.ensure_shape(tf.reshape(products, shape), [*parts[0].shape[:-1], self.units])

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of a part, with `units` features."""
        return (*joined_shape(input_shape)[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the config from which the layer can be created again."""
        config = super().get_config()
        config.pop("activation")
        return config


def joined_shape(shape: Any) -> tuple[int | None, ...]:
    """Returns the shape of the concatenated parts, for one shape or a list of shapes."""
    if isinstance(shape[0], list | tuple):
        features = [one[-1] for one in shape]
        return (*shape[0][:-1], None if None in features else sum(features))
    return tuple(shape)


def same_sentence(segment_ids: Any, kernel_size: int, dtype: Any) -> Any:
    """1 where a word and the word that a part of the kernel sees from it are of one sentence.

    >>> same_sentence([[1, 1, 2]], 3, "float32")[0].numpy()
    array([[0., 1., 1.],
           [1., 1., 0.],
           [0., 1., 0.]], dtype=float32)

    Args:
        segment_ids: integers of shape `(batch, words)`, equal for the words of a sentence.
        kernel_size: number of parts of the kernel, odd.
        dtype: dtype of the result, which has shape `(batch, words, kernel_size)`.
    """
    segment_ids = tf.convert_to_tensor(segment_ids)
    length, half = tf.shape(segment_ids)[1], kernel_size // 2
    around = tf.pad(segment_ids, [[0, 0], [half, half]], constant_values=-1)
    parts = [around[:, part : part + length] == segment_ids for part in range(kernel_size)]
    return tf.cast(tf.stack(parts, axis=-1), dtype)


def all_parts(kernel: Any) -> Any:
    """Turns a kernel `(k, features, filters)` into one matrix, `(features, k * filters)`."""
    size, features, filters = kernel.shape
    return tf.reshape(tf.transpose(kernel, [1, 0, 2]), [features, size * filters])


def shifted_sum(products: Any, kernel_size: int, same_sentence: Any = None) -> Any:
    """Adds up the products of all parts, `(batch, words, k * filters)`, each at its place."""
    shape, size = tf.shape(products), products.shape[-1]
    # After all words, one whose products are zero.
    rows = tf.pad(tf.reshape(products, [-1, size]), [[0, 1], [0, 0]])
    added = added_parts(rows, places_seen(shape[:2], kernel_size, same_sentence))
    return tf.reshape(added, tf.stack([shape[0], shape[1], size // kernel_size]))


def added_parts(products: Any, seen: Any) -> Any:
    """For each word, adds up the products of the k parts at the places that they see.

    Args:
        products: products of every place with all parts, `(places, k * filters)`.
        seen: the place that each part sees, `(words, k)`.
    """
    size = seen.shape[-1]
    parts = tf.reshape(products, [-1, products.shape[-1] // size])
    return tf.reduce_sum(tf.gather(parts, seen * size + tf.range(size)), axis=1)


def _convolve(words: Any, kernel: Any, same_sentence: Any) -> Any:
    """The convolution, with a gradient that is two matrix products of the same shape."""
    size, features, filters = kernel.shape

    @tf.custom_gradient
    def convolve(words: Any, kernel: Any) -> tuple[Any, Any]:
        shape = tf.shape(words)
        rows, parts = tf.reshape(words, [-1, features]), all_parts(kernel)
        products = tf.reshape(rows @ parts, tf.stack([shape[0], shape[1], size * filters]))

        def gradient(upstream: Any) -> tuple[Any, Any]:
            # A word that a part sees from here sees this one by the opposite part.
            seeing = tf.reverse(places_seen(shape[:2], size, same_sentence), [-1])
            upstream = tf.pad(tf.reshape(upstream, [-1, filters]), [[0, 1], [0, 0]])
            shifted = tf.reshape(tf.gather(upstream, seeing), [-1, size * filters])
            by_words = tf.reshape(tf.matmul(shifted, parts, transpose_b=True), shape)
            by_parts = tf.matmul(rows, shifted, transpose_a=True)
            by_parts = tf.reshape(by_parts, [features, size, filters])
            return by_words, tf.transpose(by_parts, [1, 0, 2])

        return shifted_sum(products, size, same_sentence), gradient

    return convolve(words, kernel)


def places_seen(shape: Any, size: int, same: Any = None) -> Any:
    """The places that the parts of the kernel see from each word, counted through all rows.

    For a part that sees no word, because the sentence ends before it, it is the place after all
    others.

    Args:
        shape: number of rows, and of words in each.
        size: number of parts of the kernel.
        same: what `same_sentence` returns; None if each row is one sentence.
    """
    if same is None:
        same = same_sentence(tf.zeros(shape, tf.int32), size, tf.float32)
    count = shape[0] * shape[1]
    word = tf.range(count)[:, tf.newaxis] + (tf.range(size) - size // 2)
    return tf.where(tf.reshape(same, [-1, size]) > 0, word, count)
