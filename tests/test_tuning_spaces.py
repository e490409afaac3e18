"""What is searched, and from a point of a space to configs; nothing here needs TensorFlow twice."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import ClassVar

import keras
import pytest
from one_command import tune_arguments

from dsa_keras.commands.tune import settings_of
from dsa_keras.datasets import preset
from dsa_keras.encoders import DEFAULT_ENCODER, ENCODERS, LogRange, register_encoder
from dsa_keras.encoders.bilstm import BiLstm
from dsa_keras.encoders.dsa_single import DsaSingle
from dsa_keras.errors import ConfigError, RunError
from dsa_keras.heads import Head
from dsa_keras.objectives.monitor import Monitor
from dsa_keras.objectives.regression import Regression
from dsa_keras.tuning.goal import Goal
from dsa_keras.tuning.settings import SearchFolder, Settings
from dsa_keras.tuning.spaces import SPACES, SearchRow, Space, row, rows_of
from tests.tuning_helpers import extra_spaces, settings

PAPER_TASKS = ("sst2", "sst5", "snli")


@pytest.fixture(autouse=True)
def _spaces():
    with extra_spaces():
        yield


@pytest.fixture
def own_encoders():
    """Two encoders of a user's own: one with rows for a space, one without any."""

    @dataclasses.dataclass(frozen=True)
    class WithRows(BiLstm):
        spaces: ClassVar = {"own": {"lstm_units": (10, 20), "batch_size": (8, 16)}}

    @dataclasses.dataclass(frozen=True)
    class WithoutRows(BiLstm):
        spaces: ClassVar = {}

    common = (
        row("batch_size", (32, 64)),
        row("l2", LogRange(1e-6, 1e-3)),
        row("initial_scale", ("rate", "keep")),
    )
    names = {"with-rows": WithRows, "without-rows": WithoutRows}
    SPACES["own"] = Space(common, over_encoders=True)
    for name, kind in names.items():
        register_encoder(name)(kind)
    yield
    del SPACES["own"]
    for name in names:
        del ENCODERS._found[name]


@dataclasses.dataclass(frozen=True)
class Bare(Head):
    """A head without any hyper-parameter."""

    def layer(self, num_outputs):
        return keras.layers.Dense(num_outputs, name="head")


def _applies(row: SearchRow, values: dict[str, object]) -> bool:
    return all(values[name] in allowed for name, allowed in row.when.items())


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("encoder", ["dsa-single", "dsa-multiple", "self-attention"])
def test_paper_space_holds_the_papers_choices(task, encoder):
    of = Settings(task, vectors=("glove.txt",), space="paper")
    paper = preset(task, encoder).hyper_parameters()
    applicable = [row for row in of.rows if _applies(row, paper)]
    found = {row.name: paper[row.name] in map(_plain, row.values) for row in applicable}
    assert found == {row.name: True for row in applicable}
    names = {row.name for row in applicable}
    assert names >= {"encoder", "units", "kernel_sizes", "optimizer", "learning_rate", "l2"}
    assert ("num_attentions" in names) == (encoder == "dsa-multiple")
    assert ("num_iterations" in names) == (encoder != "self-attention")


@pytest.mark.parametrize("space", ["small", "paper", "wide"])
def test_every_row_is_a_hyper_parameter_with_values_it_can_have(space):
    of = Settings("sst2", space=space)
    assert {one.name for one in of.rows} >= {one.name for one in SPACES[space].rows}
    for one in of.rows:
        values = one.values
        values = (values.low, values.high) if isinstance(values, LogRange) else values
        assert len(set(values)) == len(values) > 1
        encoders = one.when.get("encoder", of.encoders)
        for encoder in encoders if one.name != "encoder" else ():
            for value in values:
                recipe = of.base(encoder).replace(**{one.name: value})
                assert recipe.hyper_parameters()[one.name] == _plain(value)


def test_encoders_that_have_rows_for_a_space_take_part_in_it():
    assert Settings("sst2", space="small").encoders == (DEFAULT_ENCODER,)
    paper = ("dsa-single", "dsa-multiple", "self-attention")
    assert Settings("sst2", space="paper").encoders == paper
    wide = Settings("sst2", space="wide")
    assert set(wide.encoders) == set(ENCODERS.names())
    assert wide.encoders[0] == DEFAULT_ENCODER
    (encoder,) = (row for row in wide.rows if row.name == "encoder")
    assert encoder.values == wide.encoders


def test_rows_that_encoders_share_become_one():
    keys = {row.key: row for row in Settings("sst2", space="wide").rows}
    # Names of rows stay, since searches that were begun know them.
    assert keys.keys() >= {
        "num_iterations/dsa-single+dsa-multiple",
        "units/dsa-single+dsa-multiple+self-attention",
        "lstm_units/bilstm+bilstm-self-attention",
        "cnn_filters/cnn",
        "num_attentions/dsa-multiple",
        "embedding_dropout",
    }
    assert (
        keys["units/dsa-single+dsa-multiple+self-attention"].values
        == (DsaSingle.spaces["wide"]["units"])
    )
    paper = [row.key for row in Settings("sst2", space="paper").rows]
    assert {"units", "dropout", "num_iterations/dsa-single+dsa-multiple"} <= set(paper)
    assert paper[0] == "encoder"


def test_rows_of_one_name_with_other_values_stay_apart(own_encoders):
    recipes = {name: preset("sst2", name) for name in ("with-rows", "without-rows")}
    rows = rows_of("own", recipes, {})
    assert [(row.key, row.values) for row in rows if row.name == "batch_size"] == [
        ("batch_size/with-rows", (8, 16)),
        ("batch_size/without-rows", (32, 64)),
    ]


def test_an_encoder_of_ones_own_brings_its_rows(own_encoders):
    of = Settings("sst2", space="own")
    assert of.encoders == ("with-rows",)
    assert [row.key for row in of.rows] == ["lstm_units", "batch_size", "l2", "initial_scale"]
    assert of.rows[1].values == (8, 16)


def test_an_encoder_without_rows_is_searched_by_the_common_ones(own_encoders):
    of = Settings("sst2", space="own", fixed={"encoder": "without-rows"})
    assert [row.key for row in of.rows] == ["batch_size", "l2", "initial_scale"]


def test_common_rows_that_a_recipe_does_not_have_are_left_out(own_encoders):
    recipe = preset("sst2", "without-rows")
    bare = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, head=Bare()))
    names = [row.name for row in rows_of("own", {"without-rows": bare}, {})]
    assert names == ["batch_size", "l2"]
    rows = rows_of("own", {"without-rows": bare, "dsa-single": preset("sst2")}, {})
    (scale,) = (row for row in rows if row.name == "initial_scale")
    assert scale.when == {"encoder": ("dsa-single",)}


@pytest.mark.parametrize("name", ["tokenizer", "no_such_thing"])
def test_rows_that_cannot_be_searched_are_refused(name, own_encoders):
    ENCODERS.get("with-rows").spaces = {"own": {name: ("kim", "ptb")}}
    with pytest.raises(ConfigError, match=f"the encoder with-rows has a row '{name}'"):
        Settings("sst2", space="own")


def test_a_fixed_parent_settles_the_condition():
    rows = Settings("sst2", fixed={"encoder": "dsa-single", "optimizer": "adam"}).rows
    names = [row.name for row in rows]
    assert "encoder" not in names
    assert "num_attentions" not in names
    (rate,) = (row for row in rows if row.name == "learning_rate")
    assert rate.when == {}
    assert 0.001 in rate.values
    assert 1.0 not in rate.values


def test_what_is_fixed_goes_to_the_encoders_that_have_it():
    of = Settings("sst2", space="wide", fixed={"lstm_units": 50, "batch_size": 64})
    assert of.base("bilstm").model.encoder.lstm_units == 50
    assert of.base("dsa-single").training.batch_size == 64
    assert "lstm_units" not in of.base("dsa-single").hyper_parameters()
    assert not {"lstm_units", "batch_size"} & {row.name for row in of.rows}
    with pytest.raises(ConfigError, match="'lstm_units' is no hyper-parameter of dsa-single"):
        Settings("sst2", space="small", fixed={"lstm_units": 50})


def test_goal_is_the_figure_of_the_objective():
    class Error(Regression):
        monitor = "mae"
        higher_is_better = False

    epochs = [{"dev_spearman": 0.1, "dev_mae": 0.5}, {"dev_spearman": 0.2, "dev_mae": 0.7}]
    most, least = Goal(Monitor(Regression())), Goal(Monitor(Error()))
    assert (most.key, most.title, most.direction) == ("dev_spearman", "dev spearman", "max")
    assert (least.key, least.direction) == ("dev_mae", "min")
    assert (most.best_figure(epochs), least.best_figure(epochs)) == (0.2, 0.5)
    assert least.merit(0.5) > least.merit(0.7)
    of = Settings("file", data_options={"path": "a.csv", "target": "number"})
    assert of.goal.key == "dev_spearman"
    assert Settings("sst2").goal.key == "dev_accuracy"


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
    training = found.recipe.training
    assert (training.learning_rate, training.epsilon) == (0.5, 1e-6)
    other = model.candidate({**values, "optimizer": "adam"}).recipe.training
    assert (other.learning_rate, other.epsilon) == (0.01, 1e-8)
    network = found.recipe.model
    assert (network.encoder.units, network.embedding_dim, network.vocabulary_size) == (4, 8, 50)
    assert network.objective.class_names == ("negative", "positive")


def test_a_point_of_another_space_is_refused():
    from tests.tuning_helpers import hypermodel

    with pytest.raises(RunError, match="has a hyper-parameter 'layers'"):
        hypermodel(settings()).candidate({"units": 4, "layers": 2})


def test_first_candidate_and_size_are_the_papers():
    import keras_tuner

    from tests.tuning_helpers import hypermodel

    for task, size in (("sst2", 1_443_902), ("snli", 2_078_703)):
        of = Settings(task, vectors=("glove.txt",), space="paper")
        model = hypermodel(of, size=20_000, dimension=300)
        hp = keras_tuner.HyperParameters()
        model.declare(hp)
        found = model.candidate(hp.values)
        assert found.searched["kernel_sizes"] == (3, 5)
        assert found.recipe.training == preset(task).training.replace(epochs=of.epochs)
        assert found.recipe.model == preset(task).model.replace(vocabulary_size=20_000)
        assert model.count_parameters(found.recipe.model) == size
        trained = found.recipe.model.replace(train_embeddings=True)
        assert model.count_parameters(trained) == size + 20_000 * 300
        assert model.build(hp).count_params() > size


def test_other_encoders_start_at_their_own_recipe():
    import keras_tuner

    from tests.tuning_helpers import hypermodel

    hp = keras_tuner.HyperParameters()
    hypermodel(Settings("sst2", space="paper")).declare(hp)
    defaults = {one.name: one.default for one in hp.space}
    assert defaults["encoder"] == DEFAULT_ENCODER
    assert defaults["num_attentions/dsa-multiple"] == 8


def test_settings_refuse_what_makes_no_sense():
    with pytest.raises(ConfigError, match="unknown space 'huge'"):
        settings(space="huge")
    with pytest.raises(ConfigError, match="trials must be positive"):
        settings(trials=0)
    with pytest.raises(ConfigError, match="'unitz' is no hyper-parameter of dsa-single"):
        settings(fixed={"unitz": 4})
    with pytest.raises(ConfigError, match="unknown encoder 'nobody'"):
        settings(fixed={"encoder": "nobody"})
    with pytest.raises(ConfigError, match="the encoder of a search is a registered name"):
        settings(fixed={"encoder": "os:path"})
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


def test_a_search_of_an_older_version_is_read(tmp_path):
    folder = SearchFolder(tmp_path / "search")
    folder.open(settings(trials=3))
    values = json.loads(folder.settings_file.read_text())
    del values["imports"]
    folder.settings_file.write_text(json.dumps(values))
    assert folder.settings() == settings(trials=3)
    values["fixed"]["encoder"] = "nobody"
    folder.settings_file.write_text(json.dumps(values))
    with pytest.raises(RunError, match=r"unknown encoder 'nobody'.*--import"):
        folder.settings()


def test_command_line_becomes_settings():
    line = "search sst2 --dir d --data-dir data --sentences-only --max-parameters 2.1e6 --epochs 4"
    args = tune_arguments([*line.split(), "--seed", "7", "--encoder", "dsa-single"])
    found = settings_of(args)
    assert (found.max_parameters, found.epochs, found.seed) == (2_100_000, 4, 7)
    assert found.fixed == {"encoder": "dsa-single"}
    assert found.data_options == {"phrases": False}
    assert found.base("dsa-single").training.epochs == 4


def test_help_is_light():
    code = (
        "import sys; from dsa_keras.commands.main import build_parser; "
        "build_parser().format_help(); "
        "print([name for name in ('tensorflow', 'keras', 'keras_tuner') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
