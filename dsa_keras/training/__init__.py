"""Training: data as numbers, the paper's optimizers, `fit` with a state that can be resumed."""
