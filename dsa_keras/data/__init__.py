"""Text in: tokenisers, vocabularies, word vectors, data sets and batches.

Nothing here loads TensorFlow before it is needed.
"""

from dsa_keras.data.batches import Prepared, pack, packed_batches, prepare
from dsa_keras.data.dataset import Dataset, Split
from dsa_keras.data.registry import DATASETS, load_dataset
from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.data.tokenizers import TOKENIZERS, tokenize, tokenize_tensor
from dsa_keras.data.vectors import WordVectors, load_vectors
from dsa_keras.data.vocabulary import PADDING, UNKNOWN, Vocabulary

__all__ = [
    "DATASETS",
    "MAX_WORDS",
    "PADDING",
    "TOKENIZERS",
    "UNKNOWN",
    "Dataset",
    "Prepared",
    "Split",
    "Vocabulary",
    "WordVectors",
    "load_dataset",
    "load_vectors",
    "pack",
    "packed_batches",
    "prepare",
    "tokenize",
    "tokenize_tensor",
]
