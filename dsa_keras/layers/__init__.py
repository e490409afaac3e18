"""The paper's layers, each of which can be used on its own in any Keras model.

Every layer is registered for serialization under the package name `dsa_keras`, takes care of the
mask itself (padding never changes what is computed for a real word) and has no state except its
weights.
"""

from dsa_keras.backend import require_tensorflow

require_tensorflow()


from dsa_keras.layers.attention import AttentionLayer
from dsa_keras.layers.compression import WordCompression
from dsa_keras.layers.conv_max_pooling import ConvMaxPooling
from dsa_keras.layers.convolution import WordConvolution
from dsa_keras.layers.dense_conv_block import DenseConvBlock
from dsa_keras.layers.dropout import WordDropout
from dsa_keras.layers.dynamic_self_attention import DynamicSelfAttention, RoutingTrace
from dsa_keras.layers.gather_sentences import GatherSentences
from dsa_keras.layers.heuristic_matching import HeuristicMatching
from dsa_keras.layers.initializers import HeDropout
from dsa_keras.layers.mlp_head import MLPHead
from dsa_keras.layers.packed_bilstm import PackedBiLSTM
from dsa_keras.layers.self_attention import SelfAttention
from dsa_keras.layers.traced_attention import TracedAttention
from dsa_keras.layers.unpack_ids import UnpackIds
from dsa_keras.layers.word_embedding import WordEmbedding

__all__ = [
    "AttentionLayer",
    "ConvMaxPooling",
    "DenseConvBlock",
    "DynamicSelfAttention",
    "GatherSentences",
    "HeDropout",
    "HeuristicMatching",
    "MLPHead",
    "PackedBiLSTM",
    "RoutingTrace",
    "SelfAttention",
    "TracedAttention",
    "UnpackIds",
    "WordCompression",
    "WordConvolution",
    "WordDropout",
    "WordEmbedding",
]
