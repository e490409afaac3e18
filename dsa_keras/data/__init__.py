"""Text in: tokenisers, vocabularies, word vectors, and the files that hold them.

Nothing here loads TensorFlow before it is needed.
"""

from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.data.tokenizers import TOKENIZERS, tokenize, tokenize_tensor
from dsa_keras.data.vectors import WordVectors, load_vectors
from dsa_keras.data.vocabulary import PADDING, UNKNOWN, Vocabulary

__all__ = [
    "MAX_WORDS",
    "PADDING",
    "TOKENIZERS",
    "UNKNOWN",
    "Vocabulary",
    "WordVectors",
    "load_vectors",
    "tokenize",
    "tokenize_tensor",
]
