"""Hyper-parameters: the paper's values, JSON and back, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras import recipes
from dsa_keras.config import ModelConfig, Recipe, TrainingConfig
from dsa_keras.datasets import Dataset, Split, preset, recipe_for
from dsa_keras.encoders import ENCODERS, Encoder
from dsa_keras.encoders.bilstm import BiLstm
from dsa_keras.encoders.cnn import Cnn
from dsa_keras.encoders.dsa_multiple import DsaMultiple
from dsa_keras.encoders.dsa_single import DsaSingle
from dsa_keras.errors import ConfigError
from dsa_keras.heads import HEADS
from dsa_keras.heads.mlp import Mlp
from dsa_keras.inputs import PAIR, SENTENCE, Inputs
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.regression import Regression

PAPER_TASKS = ("snli", "mnli", "sst2", "sst5")

# From the appendix of the paper and, where it leaves them to PyTorch, PyTorch's defaults.
EVERYWHERE = {
    "embedding_dim": 300,  # 300D GloVe
    "train_embeddings": False,  # "fix them during training"
    "kernel_sizes": (3, 5),  # k_1, k_2
    "first_filters": 150,  # d_1
    "filters": 75,  # d_l
    "num_dense_layers": 4,  # what the parameters of Table 1 need
    "compressed_units": 300,  # d_c
    "dropout": 0.2,  # in every h
    "batch_norm_momentum": 0.9,  # 0.1 in PyTorch's sense
    "initial_scale": "rate",  # "multiply them by square root of the dropout rate"
}
STATIC = {"units": 600, "num_attentions": 1}
DYNAMIC = {"num_iterations": 2, "stop_routing_gradient": False}  # r
SINGLE, MULTIPLE = {**STATIC, **DYNAMIC}, {"units": 300, "num_attentions": 8, **DYNAMIC}
SNLI = {"embedding_dropout": 0.3, "num_hidden_layers": 2, "num_classes": 3}
SST = {
    "embedding_dropout": 0.4,
    "num_hidden_layers": 1,
    "hidden_units": 300,
    "head_dropout": 0.4,
}
MODELS = {
    ("snli", "dsa-single"): {**SINGLE, **SNLI, "hidden_units": 300, "head_dropout": 0.3},
    ("snli", "dsa-multiple"): {**MULTIPLE, **SNLI, "hidden_units": 512, "head_dropout": 0.4},
    ("snli", "self-attention"): {**STATIC, **SNLI, "hidden_units": 300, "head_dropout": 0.3},
    ("sst2", "dsa-single"): {**SINGLE, **SST, "num_classes": 2},
    ("sst5", "dsa-single"): {**SINGLE, **SST, "num_classes": 5},
    ("sst5", "self-attention"): {**STATIC, **SST, "num_classes": 5},
}
PLATEAU = {"plateau_factor": 0.5, "plateau_min_delta": 1e-3}  # "halve learning rate"
ADAM = {"optimizer": "adam", "learning_rate": 1e-3, "epsilon": 1e-8}
ADADELTA = {"optimizer": "adadelta", "learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6}
TRAININGS = {
    "snli": {
        **PLATEAU,
        **ADAM,
        "tokenizer": "ptb",
        "oov_range": 0.005,
        "batch_size": 256,
        "l2": 1e-5,
        "plateau_patience": 5,
    },
    "sst2": {
        **PLATEAU,
        **ADADELTA,
        "tokenizer": "kim",
        "oov_range": 0.05,
        "batch_size": 128,
        "l2": 1e-5,
        "plateau_patience": 2,
    },
}
TRAININGS["sst5"] = TRAININGS["sst2"]


@pytest.mark.parametrize(("task", "encoder"), MODELS)
def test_presets_are_the_paper(task, encoder):
    found = preset(task, encoder)
    expected = {"encoder": encoder, **EVERYWHERE, **MODELS[task, encoder]}
    classes = expected.pop("num_classes")
    told = {**found.hyper_parameters(), "kernel_sizes": found.model.encoder.kernel_sizes}
    assert {name: told[name] for name in expected} == expected
    assert len(found.model.objective.class_names) == classes
    assert found.model.inputs == (PAIR if task == "snli" else SENTENCE)
    expected = TRAININGS[task]
    assert {name: getattr(found.training, name) for name in expected} == expected


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_every_encoder_has_a_preset(task, encoder):
    model = preset(task, encoder).model
    assert model.encoder.name == encoder
    assert model.train_embeddings == (encoder == "cnn")  # "CNN-non-static" in Table 2


SHARE = st.floats(0, 0.99)
WHOLE = st.integers(1, 5000)
SCALES = st.sampled_from(["rate", "keep", "none"])
NAMES = st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=5, unique=True).map(tuple)
of_paper = {
    "kernel_sizes": st.lists(st.sampled_from([1, 3, 5, 7]), min_size=1).map(tuple),
    "units": WHOLE,
    "num_iterations": WHOLE,
    "dropout": SHARE,
    "stop_routing_gradient": st.booleans(),
    "initial_scale": SCALES,
}
encoders = st.one_of(
    st.builds(DsaSingle, **of_paper),
    st.builds(DsaMultiple, **of_paper, num_attentions=WHOLE),
    st.builds(Cnn, cnn_widths=st.lists(WHOLE, min_size=1).map(tuple)),
    st.builds(BiLstm, lstm_units=WHOLE),
)
objectives = st.one_of(
    st.builds(Classification, class_names=NAMES),
    st.builds(
        Regression,
        mean=st.floats(allow_nan=False, allow_infinity=False),
        deviation=st.floats(1e-30, 1e30),
    ),
)
models = st.builds(
    ModelConfig,
    encoder=encoders,
    head=st.builds(
        Mlp, head_dropout=SHARE, batch_norm_momentum=SHARE, hidden_units=WHOLE, initial_scale=SCALES
    ),
    objective=objectives,
    inputs=st.sampled_from([SENTENCE, PAIR]),
    vocabulary_size=st.integers(2, 10**6),
    train_embeddings=st.booleans(),
)
trainings = st.builds(
    TrainingConfig,
    tokenizer=st.sampled_from(["ptb", "kim", "whitespace"]),
    optimizer=st.sampled_from(["adam", "adadelta"]),
    oov_range=st.floats(0, 1),
    learning_rate=st.floats(1e-12, 10),
    l2=st.floats(0, 1),
    batch_size=WHOLE,
    seed=st.integers(0, 2**31 - 1),
)


def types(config):
    """The types of all values, those of encoder and objective too."""
    values = [getattr(config, field.name) for field in dataclasses.fields(config)]
    return [types(one) if isinstance(one, ModelConfig | Encoder) else type(one) for one in values]


@given(st.one_of(models, trainings))
def test_json_and_back(config):
    again = type(config).from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert types(again) == types(config)
    assert type(config).from_dict(config.to_dict()) == config


def test_json_keeps_what_the_default_is_not():
    """Or else the test above would pass for a config that forgets what it was given."""
    config = ModelConfig(Cnn(cnn_filters=7), Mlp(hidden_units=5), Regression(mean=3.5), PAIR, 9)
    told = json.loads(json.dumps(config.to_dict()))
    assert told["encoder"] == {"name": "cnn", "cnn_widths": [3, 4, 5], "cnn_filters": 7}
    assert told["objective"] == {"name": "regression", "mean": 3.5, "deviation": 1.0}
    assert (told["head"]["name"], told["head"]["hidden_units"]) == ("mlp", 5)
    assert told["inputs"] == ["premise", "hypothesis"]
    assert told["vocabulary_size"] == 9


# Names, wherever they belong.


def test_replace_leaves_the_rest():
    before = preset("snli").model
    after = before.replace(units=7, kernel_sizes=[1], hidden_units=9, embedding_dropout=0)
    assert (after.encoder.units, after.encoder.kernel_sizes) == (7, (1,))
    assert (after.head.hidden_units, after.embedding_dropout) == (9, 0.0)
    assert after.inputs == PAIR
    back = {"units": before.encoder.units, "kernel_sizes": before.encoder.kernel_sizes}
    back |= {"hidden_units": 300, "embedding_dropout": 0.3}
    assert after.replace(**back) == before


def test_a_name_that_both_have_changes_both():
    model = ModelConfig().replace(initial_scale="keep")
    assert model.encoder.initial_scale == model.head.initial_scale == "keep"
    assert list(model.hyper_parameters()).count("initial_scale") == 1


def test_another_encoder_and_its_names_go_together():
    model = ModelConfig().replace(encoder=Cnn(), cnn_filters=7, hidden_units=9)
    assert (model.encoder, model.head.hidden_units) == (Cnn(cnn_filters=7), 9)
    for wrong in (
        lambda: model.replace(units=3),
        lambda: ModelConfig().replace(encoder=Cnn(), units=3),
    ):
        with pytest.raises(ConfigError, match="'units' is no hyper-parameter of cnn, mlp"):
            wrong()
    with pytest.raises(ConfigError, match=r"encoder must be of type Encoder\. .* 'cnn'"):
        ModelConfig().replace(encoder="cnn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": 3}, "'unit' is no hyper-parameter of dsa-single.* Did you mean 'units'"),
        (
            {"lstm_units": 3},
            "'lstm_units' is no hyper-parameter of dsa-single, mlp",
        ),
        ({"learning_rate": 3}, "'learning_rate' is no hyper-parameter of dsa-single"),
        ({"units": 0}, "units must be at least 1"),
        ({"head_dropout": 1}, r"head_dropout must be in \[0, 1\)"),
    ],
)
def test_what_replace_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        ModelConfig().replace(**change)


@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_all_that_can_be_chosen_is_told(encoder):
    recipe = preset("sst2", encoder)
    told = recipe.hyper_parameters()
    names = {*recipe.model.choosable(), *TrainingConfig.choices()}
    assert set(told) == {"encoder", *names}
    assert not {"class_names", "vocabulary_size", "objective", "inputs"} & set(told)
    encoder = ENCODERS.get(told.pop("encoder"))()
    again = Recipe(ModelConfig(encoder, objective=recipe.model.objective))
    assert again.replace(**told) == recipe
    described = {**type(recipe.model.encoder).described(), **Mlp.described()}
    described |= type(recipe.model.objective).described()
    described |= {**ModelConfig.described(), **TrainingConfig.described()}
    assert all(described[name] for name in names)


def test_a_recipe_takes_names_of_both():
    recipe = preset("sst2").replace(units=7, epochs=3)
    assert (recipe.model.encoder.units, recipe.training.epochs) == (7, 3)
    with pytest.raises(ConfigError, match="Did you mean 'units'"):
        recipe.replace(epochs=3, unit=7)


# Recipes.


def dataset(*texts):
    split = Split(texts, np.array([0, 1]))
    return Dataset("own", {"train": split, "dev": split}, TWO)


TWO = Classification(class_names=("bad", "good"))


def test_own_data_is_trained_like_the_papers():
    sentences, pairs = dataset("a b", "c"), dataset(("a", "b"), ("c", "d"))
    for own, paper in ((sentences, preset("sst2")), (pairs, preset("snli"))):
        recipe = recipe_for(own, vectors=True)
        assert recipe.model.inputs == own.inputs == paper.model.inputs
        assert recipe.model.objective.class_names == TWO.class_names
        names = paper.model.objective.class_names
        same = recipe.replace(class_names=names, tokenizer=paper.training.tokenizer)
        assert same == paper
        assert recipe.training.tokenizer == "ptb"


def test_random_vectors_are_trained():
    recipe = recipe_for(dataset("a b", "c"), "bilstm", vectors=False)
    assert recipe.model.encoder == BiLstm()
    assert recipe.model.train_embeddings
    assert recipe.training.oov_range == 0.5
    for task in ("sst2", "snli"):
        assert preset(task, vectors=False) == recipes.without_vectors(preset(task))
        assert not preset(task).model.train_embeddings
    # Generated data learns with random vectors that are fixed.
    assert preset("demo-nli", vectors=False) == preset("demo-nli")
    assert not preset("demo-nli").model.train_embeddings


def test_an_encoder_with_settings_of_ones_own_keeps_them():
    own = DsaSingle(units=31)
    assert preset("snli", own).model.encoder == own
    assert recipe_for(dataset("a", "b"), own).model.encoder == own
    loaded = dataclasses.replace(dataset("a", "b"), name="sst2")
    assert recipe_for(loaded, own).model.encoder == own


@pytest.mark.parametrize("encoder", ENCODERS.names())
def test_generated_data_gets_a_small_encoder(encoder):
    full, small = (preset(task, encoder).model.encoder for task in ("sst2", "demo-sentiment"))
    assert type(small) is type(full)
    assert small == full.small()


def test_numbers_take_the_type_of_their_field():
    config = TrainingConfig.from_dict({"learning_rate": 1, "epochs": 3.0})
    assert type(config.learning_rate) is float
    assert type(config.epochs) is int


# What is refused.

HUGE = 10**400


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (DsaSingle, {"unit": 3}, "unknown hyper-parameter 'unit'. Did you mean 'units'"),
        (DsaSingle, {"num_iteration": 3}, "Did you mean 'num_iterations'"),
        (ModelConfig, {"units": 3}, "unknown hyper-parameter 'units'"),
        (TrainingConfig, {"learning-rate": 1}, "Did you mean 'learning_rate'"),
        (TrainingConfig, {"zzz": 1}, "unknown hyper-parameter 'zzz'. Known: tokenizer, "),
        (
            ModelConfig,
            {"encoder": {"name": "dsa-singel"}},
            "unknown encoder 'dsa-singel'. Did you mean 'dsa-single'",
        ),
        (ModelConfig, {"encoder": {}}, "unknown encoder ''"),
        (ModelConfig, {"encoder": 3}, "encoder must be an object with a name .* Received: 3"),
        (ModelConfig, {"encoder": "cnn"}, "encoder must be an object with a name .*'cnn'"),
        (ModelConfig, {"encoder": [["name", "cnn"]]}, "encoder must be an object"),
        (ModelConfig, {"head": {"name": "mpl"}}, "unknown head 'mpl'. Did you mean 'mlp'"),
        (ModelConfig, {"head": 5}, "head must be an object with a name .* Received: 5"),
        (ModelConfig, {"objective": None}, "objective must be an object .* Received: None"),
        (ModelConfig, {"objective": {"name": "clasification"}}, "mean 'classification'"),
        (ModelConfig, {"inputs": "sentence"}, "inputs must be one of"),
        (ModelConfig, {"inputs": ["hypothesis", "premise"]}, "inputs must be one of"),
        (DsaSingle, {"units": "600"}, "units must be a whole number. Received: '600'"),
        (DsaSingle, {"units": 1.5}, "units must be a whole number. Received: 1.5"),
        (DsaSingle, {"units": True}, "units must be a whole number. Received: True"),
        (DsaSingle, {"units": None}, "units must be a whole number. Received: None"),
        (DsaSingle, {"units": float("inf")}, "units must be a whole number. Received: inf"),
        (DsaSingle, {"units": HUGE}, "units must be a whole number. Received: 1000"),
        (DsaSingle, {"dropout": HUGE}, "dropout must be a number. Received: 1000"),
        (DsaSingle, {"units": 0}, "units must be at least 1. Received: 0"),
        (DsaSingle, {"dropout": "0.2"}, "dropout must be a number. Received: '0.2'"),
        (DsaSingle, {"dropout": float("nan")}, "dropout must be a number. Received: nan"),
        (DsaSingle, {"dropout": 1.0}, r"dropout must be in \[0, 1\). Received: 1.0"),
        (ModelConfig, {"train_embeddings": 1}, "train_embeddings must be true or false. .* 1"),
        (DsaSingle, {"kernel_sizes": 3}, "kernel_sizes must be a list. Received: 3"),
        (DsaSingle, {"kernel_sizes": []}, "kernel_sizes must be a list"),
        (DsaSingle, {"kernel_sizes": [3, 4]}, "kernel_sizes must be odd numbers"),
        (DsaSingle, {"kernel_sizes": ["3"]}, "kernel_sizes must be a whole number. .*'3'"),
        (Cnn, {"cnn_widths": [0]}, "cnn_widths must be at least 1 each"),
        (DsaSingle, {"initial_scale": "half"}, "initial_scale must be one of rate, keep, none"),
        (DsaSingle, {"initial_scale": ["rate"]}, "initial_scale must be one of"),
        (ModelConfig, {"vocabulary_size": 1}, "vocabulary_size must be at least 2"),
        (Classification, {"class_names": ["a"]}, "class_names must be at least 2 names"),
        (Classification, {"class_names": ["a", "a"]}, "class_names must be different names"),
        (Classification, {"class_names": ["a", 1]}, "class_names must be a text. Received: 1"),
        (Mlp, {"hidden_units": 0}, "hidden_units must be at least 1"),
        (Regression, {"deviation": 0}, "deviation must be positive"),
        (TrainingConfig, {"optimizer": "sgd"}, "optimizer must be one of adam, adadelta"),
        (TrainingConfig, {"tokenizer": ["ptb"]}, "tokenizer must be one of"),
        (TrainingConfig, {"learning_rate": 0}, "learning_rate must be positive"),
        (TrainingConfig, {"learning_rate": float("inf")}, "learning_rate must be a number"),
        (TrainingConfig, {"l2": -1e-5}, "l2 must be at least 0"),
        (TrainingConfig, {"seed": -1}, "seed must be at least 0"),
        (TrainingConfig, {"batch_size": 0}, "batch_size must be at least 1"),
        (TrainingConfig, {"rho": 1}, r"rho must be in \[0, 1\)"),
    ],
)
def test_what_is_refused(config, values, message):
    with pytest.raises(ConfigError, match=message):
        config.from_dict(values)
    with pytest.raises(ConfigError, match=message):
        config.from_dict(json.loads(json.dumps(values)))


KINDS = (ModelConfig, TrainingConfig, *ENCODERS, *HEADS, *OBJECTIVES)


@pytest.mark.parametrize(("config", "name"), [(one, name) for one in KINDS for name in one.hints()])
def test_no_setting_takes_nonsense(config, name):
    with pytest.raises(ConfigError, match=name):
        config.from_dict({name: {"a": 1}})


@pytest.mark.parametrize("names", [["sentence", "sentence"], [], "sentence", None, {"sentence": 1}])
def test_inputs_are_known_by_their_names(names):
    assert Inputs.from_json(["sentence"]) is SENTENCE
    assert Inputs.from_json(["premise", "hypothesis"]) is PAIR
    with pytest.raises(ConfigError, match="inputs must be one of"):
        Inputs.from_json(names)


def test_unknown_presets():
    with pytest.raises(ConfigError, match=r"unknown data set 'sst3'\. Did you mean 'sst"):
        preset("sst3")
    with pytest.raises(ConfigError, match="unknown encoder 'dsa'"):
        preset("snli", "dsa")
