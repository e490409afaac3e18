"""What is searched, and from a point of a space to configs; nothing here needs TensorFlow twice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dsa_keras.config import PAPER_TASKS, ModelConfig, TrainingConfig, preset
from dsa_keras.errors import ConfigError, RunError
from tests.tuning_helpers import extra_spaces, settings
from tuning.commands import build_parser, settings_of
from tuning.settings import SearchFolder, Settings
from tuning.spaces import SPACES, LogRange, Row, rows_of


@pytest.fixture(autouse=True)
def _spaces():
    with extra_spaces():
        yield


def _applies(row: Row, values: dict[str, object]) -> bool:
    return all(values[name] in allowed for name, allowed in row.when.items())


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("encoder", ["dsa-single", "dsa-multiple", "self-attention"])
def test_paper_space_holds_the_papers_choices(task, encoder):
    found = preset(task, encoder)
    paper = {**vars(found.model), **vars(found.training)}
    applicable = [row for row in SPACES["paper"] if _applies(row, paper)]
    assert {row.name: paper[row.name] in row.values for row in applicable} == {
        row.name: True for row in applicable
    }
    names = {row.name for row in applicable}
    assert names >= {"encoder", "units", "kernel_sizes", "optimizer", "learning_rate", "l2"}
    assert ("num_attentions" in names) == (encoder == "dsa-multiple")


@pytest.mark.parametrize("space", ["small", "paper", "wide"])
def test_every_row_is_a_hyper_parameter_with_values_it_can_have(space):
    for row in SPACES[space]:
        values = (
            (row.values.low, row.values.high) if isinstance(row.values, LogRange) else row.values
        )
        assert len(set(values)) == len(values) > 1
        for value in values:
            config = ModelConfig if hasattr(ModelConfig, row.name) else TrainingConfig
            value = list(value) if isinstance(value, tuple) else value
            assert config.from_dict({row.name: value}).to_dict()[row.name] == value


def test_a_fixed_parent_settles_the_condition():
    rows = rows_of("paper", {"encoder": "dsa-single", "optimizer": "adam"})
    names = [row.name for row in rows]
    assert "encoder" not in names
    assert "num_attentions" not in names
    (rate,) = (row for row in rows if row.name == "learning_rate")
    assert rate.when == {}
    assert 0.001 in rate.values
    assert 1.0 not in rate.values


def test_two_rows_of_one_name_have_two_keys():
    keys = [row.key for row in Settings("sst2", space="paper").rows]
    assert len(set(keys)) == len(keys)
    assert {"learning_rate/adam", "learning_rate/adadelta"} <= set(keys)


def test_candidate_takes_what_belongs_to_its_optimizer():
    from tests.tuning_helpers import hypermodel

    model = hypermodel(settings())
    values = {"units": 4, "num_iterations": 1, "optimizer": "adadelta", "learning_rate/adam": 0.01}
    found = model.candidate({**values, "learning_rate/adadelta": 0.5, "tuner/epochs": 1})
    assert found.searched == {
        "units": 4,
        "num_iterations": 1,
        "optimizer": "adadelta",
        "learning_rate": 0.5,
    }
    assert (found.training.learning_rate, found.training.epsilon) == (0.5, 1e-6)
    other = model.candidate({**values, "optimizer": "adam"})
    assert (other.training.learning_rate, other.training.epsilon) == (0.01, 1e-8)
    assert (found.model.units, found.model.embedding_dim, found.model.num_classes) == (4, 8, 2)


def test_first_candidate_and_size_are_the_papers():
    import keras_tuner

    from tuning.candidates import ClassifierHyperModel, PairClassifierHyperModel

    for task, kind, classes, size in (
        ("sst2", ClassifierHyperModel, 2, 1_443_902),
        ("snli", PairClassifierHyperModel, 3, 2_078_703),
    ):
        of = Settings(task, vectors=("glove.txt",), space="paper")
        model = kind(of, num_classes=classes, vocabulary_size=20_000, embedding_dim=300)
        hp = keras_tuner.HyperParameters()
        model.declare(hp)
        found = model.candidate(hp.values)
        assert found.searched["kernel_sizes"] == (3, 5)
        assert found.training == preset(task).training.replace(epochs=of.epochs)
        assert model.count_parameters(found.model) == size
        trained = found.model.replace(train_embeddings=True)
        assert model.count_parameters(trained) == size + 20_000 * 300
        assert model.build(hp).count_params() > size


def test_settings_refuse_what_makes_no_sense():
    with pytest.raises(ConfigError, match="unknown space 'huge'"):
        settings(space="huge")
    with pytest.raises(ConfigError, match="trials must be positive"):
        settings(trials=0)
    everything = {"units": 4, "num_iterations": 1, "optimizer": "adam", "learning_rate": 0.1}
    with pytest.raises(ConfigError, match="nothing of the space tiny is left"):
        settings(fixed=everything)


def test_a_folder_keeps_to_its_search(tmp_path):
    folder = SearchFolder(tmp_path / "search")
    assert folder.open(settings(trials=3)) is False
    assert folder.open(settings(trials=5, max_minutes=2.0)) is True
    assert folder.settings().trials == 5
    with pytest.raises(ConfigError, match="started with seed 0, not 1"):
        folder.open(settings(seed=1))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty and no search"):
        SearchFolder(tmp_path / "other").open(settings())
    with pytest.raises(RunError, match="there is no search"):
        SearchFolder(tmp_path / "none").settings()


def test_command_line_becomes_settings():
    line = "search sst2 --dir d --data-dir data --sentences-only --max-parameters 2.1e6 --epochs 4"
    args = build_parser().parse_args([*line.split(), "--seed", "7", "--encoder", "dsa-single"])
    found = settings_of(args)
    assert (found.max_parameters, found.epochs, found.seed) == (2_100_000, 4, 7)
    assert found.fixed == {"encoder": "dsa-single"}
    assert found.data_options == {"phrases": False}
    assert found.base("dsa-single").training.epochs == 4


def test_help_is_light():
    code = (
        "import sys; from tuning.commands import build_parser; build_parser().format_help(); "
        "print([name for name in ('tensorflow', 'keras', 'keras_tuner') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
