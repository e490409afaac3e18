"""Recipes: the paper's settings for sentences and pairs, and what own and generated data get.

A recipe starts from the setting of the paper's appendix; the encoder may then change what it is
known to want (`Encoder.recipe`). Data sets pick theirs; commands, searches and studies ask them.
"""

from __future__ import annotations

from typing import Any

from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.encoders import Encoder
from dsa_keras.heads import DEFAULT_HEAD, HEADS, Head
from dsa_keras.inputs import PAIR, SENTENCE, Inputs
from dsa_keras.objectives import Objective

AVERAGING = 0.999
"""The share of the average of the weights that a step keeps."""

_RANDOM_VECTORS_RANGE = 0.5
"""Random word vectors that are all a model has need the scale of real ones to be told apart."""


def paper_pairs(encoder: Encoder, objective: Objective) -> Recipe:
    """The paper on SNLI."""
    model = ModelConfig(encoder=encoder, head=_head(), objective=objective, inputs=PAIR)
    return encoder.recipe(Recipe(model, TrainingConfig(averaging=AVERAGING)))


def paper_sentences(encoder: Encoder, objective: Objective) -> Recipe:
    """The paper on SST."""
    model = ModelConfig(
        encoder=encoder,
        head=_head(num_hidden_layers=1, head_dropout=0.4),
        objective=objective,
        inputs=SENTENCE,
        embedding_dropout=0.4,
    )
    training = TrainingConfig(
        tokenizer="kim",
        oov_range=0.05,
        optimizer="adadelta",
        learning_rate=1.0,
        epsilon=1e-6,
        batch_size=128,
        plateau_patience=2,
        averaging=AVERAGING,
    )
    return encoder.recipe(Recipe(model, training))


def own_data(encoder: Encoder, objective: Objective, inputs: Inputs) -> Recipe:
    """A person's own sentences, trained like SST, or pairs, trained like SNLI.

    Both with `ptb`: `kim`, which was made for SST's tokenised text, leaves full stops and the like
    on the words of plain text.
    """
    recipe = (paper_pairs if inputs.is_pair else paper_sentences)(encoder, objective)
    return recipe.replace(tokenizer="ptb")


def generated(encoder: Encoder, objective: Objective, inputs: Inputs) -> Recipe:
    """Half the units, less dropout and smaller batches: for small data and random word vectors.

    Nothing ends it early, since the dev accuracy stays that of guessing for the first few epochs.
    """
    layers = 2 if inputs.is_pair else 1
    head = {"num_hidden_layers": layers, "hidden_units": 150, "head_dropout": 0.2}
    small = encoder.small()
    start = ModelConfig(encoder=small, head=_head(), objective=objective, inputs=inputs)
    base = small.recipe(Recipe(start)).model
    known = base.head.hints()
    model = base.replace(
        **{name: value for name, value in head.items() if name in known},
        embedding_dim=100,
        embedding_dropout=0.1,
    )
    training = TrainingConfig(
        tokenizer="whitespace", oov_range=0.5, batch_size=32, epochs=15, early_stopping=0
    )
    return Recipe(model, training)


def without_vectors(recipe: Recipe) -> Recipe:
    """Random word vectors are trained, and start at a scale that tells words apart."""
    return recipe.replace(train_embeddings=True, oov_range=_RANDOM_VECTORS_RANGE)


def own_words(recipe: Recipe) -> Recipe:
    """The same for a person's own data, in which case tells too few words apart to be learnt.

    Word vectors would know `Great` beside `great`; what own data alone must teach, it teaches once.
    """
    return without_vectors(recipe).replace(lowercase=True)


def _head(**settings: Any) -> Head:
    """The paper's head."""
    return HEADS.get(DEFAULT_HEAD).from_dict(settings)
