"""Hyper-parameters: the paper's values, JSON and back, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.config import ENCODERS, PAPER_TASKS, ModelConfig, TrainingConfig, preset
from dsa_keras.errors import ConfigError

# From the appendix of the paper and, where it leaves them to PyTorch, PyTorch's defaults.
EVERYWHERE = {
    "embedding_dim": 300,  # 300D GloVe
    "train_embeddings": False,  # "fix them during training"
    "num_iterations": 2,  # r
    "kernel_sizes": (3, 5),  # k_1, k_2
    "first_filters": 150,  # d_1
    "filters": 75,  # d_l
    "num_dense_layers": 4,  # what the parameters of Table 1 need
    "compressed_units": 300,  # d_c
    "dropout": 0.2,  # in every h
    "batch_norm_momentum": 0.9,  # 0.1 in PyTorch's sense
    "initial_scale": "rate",  # "multiply them by square root of the dropout rate"
    "stop_routing_gradient": False,
}
SINGLE, MULTIPLE = {"units": 600, "num_attentions": 1}, {"units": 300, "num_attentions": 8}
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
    ("snli", "self-attention"): {**SINGLE, **SNLI, "hidden_units": 300, "head_dropout": 0.3},
    ("sst2", "dsa-single"): {**SINGLE, **SST, "num_classes": 2},
    ("sst5", "dsa-single"): {**SINGLE, **SST, "num_classes": 5},
    ("sst5", "self-attention"): {**SINGLE, **SST, "num_classes": 5},
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
    assert {name: getattr(found.model, name) for name in expected} == expected
    expected = TRAININGS[task]
    assert {name: getattr(found.training, name) for name in expected} == expected


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_has_a_preset(task, encoder):
    model = preset(task, encoder).model
    assert model.encoder == encoder
    assert model.train_embeddings == (encoder == "cnn")  # "CNN-non-static" in Table 2


SHARE = st.floats(0, 0.99)
WHOLE = st.integers(1, 5000)
models = st.builds(
    ModelConfig,
    encoder=st.sampled_from(ENCODERS),
    vocabulary_size=st.integers(2, 10**6),
    num_classes=st.integers(2, 9),
    train_embeddings=st.booleans(),
    kernel_sizes=st.lists(st.sampled_from([1, 3, 5, 7]), min_size=1).map(tuple),
    cnn_widths=st.lists(WHOLE, min_size=1).map(tuple),
    units=WHOLE,
    num_iterations=WHOLE,
    dropout=SHARE,
    head_dropout=SHARE,
    batch_norm_momentum=SHARE,
    stop_routing_gradient=st.booleans(),
    initial_scale=st.sampled_from(["rate", "keep", "none"]),
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


@given(st.one_of(models, trainings))
def test_json_and_back(config):
    again = type(config).from_json(config.to_json())
    assert again == config
    for field in dataclasses.fields(config):
        assert type(getattr(again, field.name)) is type(getattr(config, field.name))
    assert json.loads(config.to_json()) == config.to_dict()
    assert type(config).from_dict(config.to_dict()) == config


def test_replace_leaves_the_rest():
    before = preset("snli").model
    after = before.replace(units=7, kernel_sizes=[1])
    assert (after.units, after.kernel_sizes) == (7, (1,))
    assert after.replace(units=before.units, kernel_sizes=before.kernel_sizes) == before


def test_numbers_take_the_type_of_their_field():
    config = TrainingConfig.from_dict({"learning_rate": 1, "epochs": 3.0})
    assert type(config.learning_rate) is float
    assert type(config.epochs) is int


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (ModelConfig, {"unit": 3}, "unknown hyper-parameter 'unit'. Did you mean 'units'"),
        (ModelConfig, {"num_iteration": 3}, "Did you mean 'num_iterations'"),
        (TrainingConfig, {"learning-rate": 1}, "Did you mean 'learning_rate'"),
        (TrainingConfig, {"zzz": 1}, "unknown hyper-parameter 'zzz'. Known: tokenizer, "),
        (ModelConfig, {"encoder": "dsa-singel"}, "'dsa-singel'. Did you mean 'dsa-single'"),
        (ModelConfig, {"encoder": 3}, "encoder must be a text, got 3"),
        (ModelConfig, {"units": "600"}, "units must be a whole number, got '600'"),
        (ModelConfig, {"units": 1.5}, "units must be a whole number, got 1.5"),
        (ModelConfig, {"units": True}, "units must be a whole number, got True"),
        (ModelConfig, {"units": None}, "units must be a whole number, got None"),
        (ModelConfig, {"units": float("inf")}, "units must be a whole number, got inf"),
        (ModelConfig, {"units": 0}, "units must be at least 1, got 0"),
        (ModelConfig, {"dropout": "0.2"}, "dropout must be a number, got '0.2'"),
        (ModelConfig, {"dropout": float("nan")}, "dropout must be a number, got nan"),
        (ModelConfig, {"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        (ModelConfig, {"train_embeddings": 1}, "train_embeddings must be true or false, got 1"),
        (ModelConfig, {"kernel_sizes": 3}, "kernel_sizes must be a list of numbers, got 3"),
        (ModelConfig, {"kernel_sizes": []}, "kernel_sizes must be a list of numbers"),
        (ModelConfig, {"kernel_sizes": [3, 4]}, "kernel_sizes must be odd numbers"),
        (ModelConfig, {"kernel_sizes": ["3"]}, "kernel_sizes must be a whole number, got '3'"),
        (ModelConfig, {"cnn_widths": [0]}, "cnn_widths must be"),
        (ModelConfig, {"initial_scale": "half"}, "initial_scale must be one of rate, keep, none"),
        (ModelConfig, {"vocabulary_size": 1}, "vocabulary_size must be at least 2"),
        (ModelConfig, {"num_classes": 1}, "num_classes must be at least 2"),
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
        config.from_json(json.dumps(values))


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(ModelConfig)])
def test_no_model_setting_takes_nonsense(name):
    with pytest.raises(ConfigError, match=name):
        ModelConfig.from_dict({name: {"a": 1}})


@pytest.mark.parametrize(("text", "message"), [("{", "not JSON"), ("[1]", "not a JSON object")])
def test_text_that_is_no_config(text, message):
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_json(text)


def test_unknown_presets():
    with pytest.raises(ConfigError, match=r"unknown task 'sst3'\. Did you mean 'sst"):
        preset("sst3")
    with pytest.raises(ConfigError, match="unknown encoder 'dsa'"):
        preset("snli", "dsa")
