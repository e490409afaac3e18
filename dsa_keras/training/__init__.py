"""Training: data as numbers, the paper's optimizers, `fit` with a state that can be resumed."""

from dsa_keras.backend import require_tensorflow

require_tensorflow()
