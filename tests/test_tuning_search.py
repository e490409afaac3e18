"""Searches that train: failures, the clock, Hyperband's promotions, pairs, and the report."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.inputs import PAIR
from dsa_keras.runs import Run
from dsa_keras.tuning.importance import explained, importances
from dsa_keras.tuning.records import COMPLETED, INVALID, CandidateRecord, Outcome, TrialFolder
from dsa_keras.tuning.results import Results, Trained, read_results, winner_command
from dsa_keras.tuning.settings import SearchFolder, Settings
from tests.tuning_helpers import error_objective, extra_spaces, settings

pytestmark = pytest.mark.filterwarnings(
    "ignore:currentThread:DeprecationWarning", "ignore:getName:DeprecationWarning"
)

GOLDEN = Path(__file__).parent / "golden" / "tuning_best.json"


@pytest.fixture(scope="module", autouse=True)
def _spaces():
    with extra_spaces():
        yield


def _search(path, **changes):
    from dsa_keras.tuning.session import search_alone

    folder = SearchFolder(path)
    of = settings(**changes)
    folder.open(of)
    search_alone(folder, of)
    return folder


def _trial(folder, number):
    return TrialFolder(folder.trials_dir / f"{number:04d}")


@pytest.fixture(scope="module")
def fragile(tmp_path_factory):
    """A search of three candidates, the second of which cannot be trained."""
    path = tmp_path_factory.mktemp("tuning") / "fragile"
    fixed = {"optimizer": "adam"}
    return _search(path, space="fragile", tuner="grid", trials=3, fixed=fixed)


def test_a_failed_trial_is_recorded_and_the_search_goes_on(fragile):
    trials = [_trial(fragile, number) for number in range(3)]
    rates = [trial.candidate().searched["learning_rate"] for trial in trials]
    assert rates == [0.01, 1e30, 0.01]
    assert [trial.outcome().status for trial in trials] == [COMPLETED, "FAILED", COMPLETED]
    assert "the loss became" in trials[1].outcome().reason
    for trial in trials[::2]:
        epochs = trial.run.metrics()
        assert trial.outcome().figure == max(epoch["dev_accuracy"] for epoch in epochs)
        assert trial.outcome().epochs == len(epochs) == 2
        record = trial.candidate()
        config = trial.run.config()
        assert config.model == ModelConfig.from_dict(record.model)
        assert config.training == TrainingConfig.from_dict(record.training)


def test_a_finished_search_does_nothing_again(fragile, capsys):
    from dsa_keras.tuning.session import search_alone

    before = {file: file.stat().st_mtime_ns for file in fragile.trials_dir.rglob("*.json")}
    search_alone(fragile, fragile.settings())
    after = {file: file.stat().st_mtime_ns for file in fragile.trials_dir.rglob("*.json")}
    assert before == after
    assert "2 trials finished, 1 failed: 3 trials are done" in capsys.readouterr().out


def test_runs_of_a_search_share_their_vectors(fragile):
    shared = fragile.path / "vectors.npy"
    for number in (0, 2):
        run = _trial(fragile, number).run
        assert shared.samefile(run.vectors_file)
        run.manifest.check_all(ignore=["logs/*"])


def test_report_of_a_search_and_the_command_that_trains_its_winner(fragile, tmp_path, monkeypatch):
    from one_command import tune as main

    from dsa_keras.commands.main import main as train_main

    out = tmp_path / "report"
    assert main(["report", str(fragile.path), "--out", str(out)]) == 0
    text = (out / "report.md").read_text()
    assert "2 candidates trained to their end, 1 failed" in text
    assert "- 0001: the loss became" in text
    for name in ("parallel.png", "pareto.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert (out / name).stat().st_size < 200_000
    best = read_results(fragile).trained[0]
    (line,) = (line for line in text.splitlines() if line.startswith("dsa-keras"))
    monkeypatch.chdir(tmp_path)
    assert train_main(shlex.split(line)[1:]) == 0
    again = Run(tmp_path / "runs" / "demo-sentiment-best")
    assert [one["dev_accuracy"] for one in again.metrics()] == [
        one["dev_accuracy"] for one in best.epochs
    ]
    assert again.config().training == TrainingConfig.from_dict(best.record.training)


def test_a_trial_cut_by_the_clock_goes_on_from_its_last_epoch(tmp_path, capsys):
    from dsa_keras.tuning.clock import Clock
    from dsa_keras.tuning.oracles import build_oracle
    from dsa_keras.tuning.progress import Progress
    from dsa_keras.tuning.session import search_alone
    from dsa_keras.tuning.tuner import SearchTuner, load_task

    of = settings(trials=1, epochs=3, max_minutes=1.0)
    folder = SearchFolder(tmp_path / "s")
    folder.open(of)
    clock, task = Clock(folder.clock_file, of.max_minutes), load_task(of)

    def a_minute_after_the_first_epoch():
        clock.before += 60
        return clock.is_up()

    oracle = build_oracle(of, task.hypermodel, folder, clock)
    progress = Progress(folder, of.goal, clock, 1, 3, alone=True)
    tuner = SearchTuner(folder, of, task, oracle, a_minute_after_the_first_epoch, progress)
    tuner.search()
    trial = _trial(folder, 0)
    (first,) = trial.epochs()
    assert trial.outcome() is None
    assert "stopped by the clock" in capsys.readouterr().out

    clock.save()
    search_alone(folder, of)
    assert len(trial.epochs()) == 1
    assert "0 trials finished: the 1 minutes are used up" in capsys.readouterr().out

    more = settings(trials=1, epochs=3, max_minutes=100.0)
    folder.open(more)
    search_alone(folder, more)
    assert trial.epochs()[0] == first
    assert (len(trial.epochs()), trial.outcome().status) == (3, COMPLETED)
    assert "goes on after epoch 1" in capsys.readouterr().out


@pytest.mark.slow
def test_hyperband_goes_on_with_the_run_it_promotes(tmp_path):
    folder = _search(tmp_path / "s", tuner="hyperband", epochs=3, trials=4)
    promoted = _trial(folder, 3)
    past = TrialFolder(folder.trials_dir / promoted.candidate().continues)
    firsts = [_trial(folder, number).outcome().figure for number in range(3)]
    assert past.outcome().figure == max(firsts)
    assert promoted.epochs()[0] == past.epochs()[0]
    assert (len(past.epochs()), len(promoted.epochs())) == (1, 3)
    for trial in (past, promoted):
        trial.run.manifest.check_all(ignore=["logs/*"])
    assert promoted.outcome().seconds == pytest.approx(
        sum(epoch["seconds"] for epoch in promoted.epochs()[1:])
    )
    results = read_results(folder)
    assert len(results.trained) == 3
    assert results.same_epochs == 1


@pytest.mark.slow
def test_pairs_and_a_process_that_keeps_dying(tmp_path):
    folder = SearchFolder(tmp_path / "s")
    of = settings(task="demo-nli", trials=2, epochs=1)
    folder.open(of)
    # As if the process had died in the first epoch of the first trial three times.
    trial = _trial(folder, 0)
    trial.path.mkdir(parents=True)
    trial.starts_file.write_text(json.dumps({"epochs": 0, "starts": 3}))
    from dsa_keras.tuning.session import search_alone

    search_alone(folder, of)
    assert trial.outcome().reason == "the process died 3 times in epoch 1, out of memory?"
    assert _trial(folder, 1).outcome().status == COMPLETED
    assert _trial(folder, 1).run.config().model.inputs == PAIR


_OWN_ENCODER = """
from dataclasses import dataclass

import keras

from dsa_keras.encoders import Encoder, register_encoder


@register_encoder("mean-of-words")
@dataclass(frozen=True)
class MeanOfWords(Encoder):
    packs = False

    def layers(self):
        return [keras.layers.GlobalAveragePooling1D(name="mean")]

    def encode(self, layers, words):
        return layers["mean"](words)
"""


def test_a_search_for_numbers_with_an_encoder_of_ones_own(tmp_path, monkeypatch, capsys):
    from one_command import tune as main

    from dsa_keras.encoders import ENCODERS

    (tmp_path / "my_encoder.py").write_text(_OWN_ENCODER)
    rows = [f"{'good ' * (number % 5)}bad,{number % 5}" for number in range(60)]
    (tmp_path / "stars.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["search", "file", "--file", "stars.csv", "--target", "number", "--dir", "s"]
    words += ["--import", "my_encoder", "--encoder", "mean-of-words", "--space", "small"]
    words += ["--tuner", "random", "--trials", "2", "--epochs", "1", "--embedding-dim", "8"]
    try:
        assert main(words) == 0
        assert "2 trials finished: 2 trials are done; best so far" in capsys.readouterr().out
        assert main(["report", "s"]) == 0
        text = capsys.readouterr().out
        assert "| trial | dev spearman | best epoch |" in text
        command = "dsa-keras train file --import my_encoder --file stars.csv --target"
        assert command in text
        record = _trial(SearchFolder("s"), 0).candidate()
        searched = ["embedding_dropout", "head_dropout", "learning_rate", "initial_scale"]
        assert list(record.searched) == searched
        assert _trial(SearchFolder("s"), 0).run.config().model.encoder.name == "mean-of-words"
    finally:
        ENCODERS._found.pop("mean-of-words", None)
    # Nothing imports a module because a file names it.
    assert main(["report", "s"]) == 2
    assert "unknown encoder 'mean-of-words'" in capsys.readouterr().err


def test_importance_by_hand():
    # Groups 1, 2, 3 and 5, 6, 7: SSW = 2 + 2 = 4, SST = 28, n = 6, k = 2: 1 - 5/4 * 4/28.
    values, codes = np.array([1.0, 2, 3, 5, 6, 7]), np.array([0, 0, 0, 1, 1, 1])
    assert explained(values, codes) == pytest.approx(1 - 5 / 4 * 4 / 28)
    # Groups that differ less than chance would make them: cut off at 0.
    assert explained(np.array([1.0, 3, 1, 3]), np.array([0, 0, 1, 1])) == 0.0
    assert explained(np.array([1.0, 2]), np.array([0, 1])) is None
    assert explained(np.array([1.0, 1, 1]), np.array([0, 1, 1])) is None


def test_importances_of_a_search():
    searched = [{"units": units, "l2": l2} for units in (4, 8) for l2 in (0.1, 0.2, 0.3)]
    searched[0]["num_attentions"] = 2
    accuracies = [0.1, 0.2, 0.3, 0.5, 0.6, 0.7]
    units, l2, attentions = importances(searched, accuracies)
    assert (units.name, units.trials) == ("units", 6)
    assert units.share == pytest.approx(1 - 5 / 4 * 4 / 28)
    assert [(group.label, group.trials) for group in units.groups] == [("4", 3), ("8", 3)]
    assert [group.mean for group in units.groups] == pytest.approx([0.2, 0.6])
    # 2 of the 20 ways to deal six accuracies into two threes part them as well as this.
    assert units.chance == pytest.approx(0.1, abs=0.03)
    assert (l2.name, l2.share) == ("l2", 0.0)
    assert (attentions.share, attentions.trials) == (None, 1)


def test_many_values_are_grouped_by_thirds():
    rates = [10.0**-power for power in range(9)]
    (found,) = importances([{"learning_rate": rate} for rate in rates], [1.0] * 3 + [0.0] * 6)
    assert [group.trials for group in found.groups] == [3, 3, 3]
    assert [group.mean for group in found.groups] == [0.0, 0.0, 1.0]
    assert found.share == 1.0


@pytest.fixture
def written(tmp_path):
    """A search whose trials are written by hand: five candidates and one over the budget."""
    folder = SearchFolder(tmp_path / "search")
    of = Settings(
        "sst2",
        data_dir="my data",
        data_options={"phrases": False},
        vectors=("glove.zip",),
        space="small",
        epochs=3,
        max_parameters=1_400_000,
    )
    folder.open(of)
    base = of.base("dsa-single")
    paper = {"units": 600, "num_iterations": 2, "num_dense_layers": 4, "embedding_dropout": 0.4}
    paper |= {"head_dropout": 0.4, "learning_rate": 1.0, "initial_scale": "rate"}
    for number, (units, size, accuracies, continues) in enumerate(
        [
            (600, 1_200_000, [0.70], None),
            (300, 900_000, [0.74], None),
            (150, 600_000, [0.71], None),
            (300, 900_000, [0.74, 0.78, 0.77], "0001"),
            (600, 1_500_000, [], None),
        ]
    ):
        files = TrialFolder(folder.trials_dir / f"{number:04d}")
        searched = {**paper, "units": units}
        model = base.model.replace(units=units).to_dict()
        record = CandidateRecord(
            files.id, {}, searched, model, base.training.to_dict(), size, continues
        )
        files.save_candidate(record)
        if not accuracies:
            files.save_outcome(Outcome(INVALID, "over the parameter budget: 1,500,000 > 1,400,000"))
            continue
        best = int(np.argmax(accuracies))
        files.save_outcome(
            Outcome(COMPLETED, None, accuracies[best], best + 1, len(accuracies), 60.0)
        )
        files.run.path.mkdir()
        lines = [
            json.dumps({"epoch": epoch, "dev_accuracy": accuracy})
            for epoch, accuracy in enumerate(accuracies, 1)
        ]
        files.run.metrics_file.write_text("\n".join(lines) + "\n")
    return folder


def test_results_by_hand(written):
    results = read_results(written)
    assert [one.record.trial for one in results.trained] == ["0003", "0002", "0000"]
    assert results.infeasible == 1
    assert results.same_epochs == 1
    assert [one.figure_within(1) for one in results.trained] == [0.74, 0.71, 0.70]
    assert [one.is_paper for one in results.trained] == [False, False, True]
    # 0000 is larger and worse than 0003, so it is not on the front.
    assert [one.record.trial for one in results.front()] == ["0002", "0003"]


def test_report_text_and_config(written, tmp_path):
    from dsa_keras.tuning.report import write_report

    text = write_report(written, tmp_path / "out", top=2)
    assert "## The best 2 of 3 candidates" in text
    assert "| 0003 | 0.7800 | 2 of 3 | 900,000 | 300 |" in text
    assert "| units | - | - | 3 | 150: 0.7100 (1), 300: 0.7400 (1), 600: 0.7000 (1) |" in text
    assert (
        "Of the 3 candidates with at least 1 epoch(s), compared within these, it has place 3"
        in text
    )
    assert "1 over the budget of 1,400,000 parameters and not trained" in text
    best = written.settings().base("dsa-single").replace(units=300)
    assert json.loads((tmp_path / "out" / "best.json").read_text()) == best.hyper_parameters()


def _recipe_of(config):
    """The recipe of SST-2 with `--config` as `train` makes it."""
    from dsa_keras.command_line import Parser
    from dsa_keras.options import (
        add_data_options,
        add_encoder_option,
        add_hyper_parameters,
        chosen_recipe,
    )

    parser = Parser()
    for add in (add_encoder_option, add_data_options, add_hyper_parameters):
        add(parser)
    args = parser.parse_args(["--config", str(config), "--vectors", "glove.zip"])
    return chosen_recipe(args, "sst2")


def test_configs_of_the_winner_are_read_those_of_older_versions_too(written, tmp_path):
    from dsa_keras.tuning.report import write_report

    write_report(written, tmp_path / "out", top=2)
    expected = written.settings().base("dsa-single").replace(units=300)
    assert _recipe_of(tmp_path / "out" / "best.json") == expected
    assert _recipe_of(GOLDEN) == expected


def test_trials_of_an_older_version_are_read(written):
    """Their model is flat, and their figure an accuracy."""
    old = json.loads(GOLDEN.read_text())
    before = read_results(written).trained
    for files in (_trial(written, number) for number in range(4)):
        candidate = json.loads(files.candidate_file.read_text())
        units = candidate["searched"]["units"]
        flat = {**old["model"], "units": units, "vocabulary_size": 2, "num_classes": 2}
        candidate["model"] = flat
        files.candidate_file.write_text(json.dumps(candidate))
        outcome = json.loads(files.outcome_file.read_text())
        outcome["dev_accuracy"] = outcome.pop("figure")
        files.outcome_file.write_text(json.dumps(outcome))
    after = read_results(written).trained
    assert [one.outcome for one in after] == [one.outcome for one in before]
    assert [one.is_paper for one in after] == [one.is_paper for one in before]
    for one, other in zip(after, before, strict=True):
        old, now = one.record.hyper_parameters(), other.record.hyper_parameters()
        assert old.items() <= now.items()
        assert now.keys() - old.keys() == {"class_weights"}  # which came later


@pytest.fixture
def error_data():
    """Options of the data for which less of the monitored figure is better."""
    with error_objective():
        yield {"path": "a.csv", "target": "error"}


@pytest.fixture
def errors(error_data):
    """Three candidates scored by an error."""
    of = Settings("file", data_options=error_data, epochs=2)
    goal = of.goal
    recipe = of.base("dsa-single").hyper_parameters()
    found = []
    for number, (units, size, figures) in enumerate(
        [(300, 900, [0.5, 0.6]), (150, 600, [0.9, 0.7]), (600, 1200, [0.8, 0.75])]
    ):
        epochs = [{"epoch": n, "dev_mae": one} for n, one in enumerate(figures, 1)]
        record = CandidateRecord(f"{number:04d}", {}, {"units": units}, recipe, {}, size)
        outcome = Outcome(COMPLETED, None, min(figures), 1, 2, 60.0)
        found.append(Trained(record, outcome, tuple(epochs), goal, is_paper=units == 600))
    return Results(of, tuple(found), (), 0, ())


def test_less_of_an_error_is_better(errors, tmp_path):
    from dsa_keras.tuning.pictures import parallel_coordinates, pareto
    from dsa_keras.tuning.report import report_text

    assert [one.figure_within(2) for one in errors.trained] == [0.5, 0.7, 0.75]
    assert [one.record.trial for one in errors.front()] == ["0001", "0000"]
    text = report_text(errors, tmp_path, 60.0, top=3)
    assert "| trial | dev mae | best epoch |" in text
    assert "compared within these, it has place 3 with 0.7500" in text
    assert "accurac" not in text
    lines = parallel_coordinates(errors).axes[0].lines
    # The best one is drawn with the thick line, and is the one with the least error.
    thick = [line for line in lines if line.get_linewidth() > 2]
    assert [line.get_ydata()[-1] for line in thick] == [0.0]
    assert pareto(errors).axes[0].get_title() == "Mae against size, file"


def test_an_oracle_minimises_what_should_be_little(error_data, tmp_path):
    from tests.tuning_helpers import Driven

    of = settings(task="file", data_options=error_data, tuner="hyperband", epochs=3)
    driven = Driven(tmp_path / "s", of)
    driven.run(lambda values: values["units"])
    assert driven.oracle.objective.name == "dev_mae"
    scores = {key: trial.score for key, trial in driven.oracle.trials.items()}
    firsts = {key: scores[key] for key in ("0000", "0001", "0002")}
    promoted = driven.oracle.trials["0003"].hyperparameters.values["tuner/trial_id"]
    assert firsts[promoted] == min(firsts.values())
    assert min(firsts.values()) < max(firsts.values())
    (driven.folder.tuner_dir / "trial_0001" / "trial.json").write_text("")
    again = Driven(tmp_path / "s", of)
    assert again.oracle.trials["0001"].metrics.get_direction("dev_mae") == "min"


def test_winner_command_names_the_data_as_the_search_did(written):
    command = winner_command(written.settings(), Path("out/best.json"))
    assert command == (
        "dsa-keras train sst2 --data-dir 'my data' --vectors glove.zip --sentences-only "
        "--config out/best.json --run-dir runs/sst2-best"
    )
    of = Settings("file", data_options={"path": "a.csv", "text_column": "t", "fractions": [1, 2]})
    assert "--file a.csv --text-column t --fractions 1 2" in winner_command(of, Path("b"))
    own = Settings("sst2", imports=("my_package.encoder",))
    assert "train sst2 --import my_package.encoder --config" in winner_command(own, Path("b"))


def test_board_holds_hyper_parameters_scores_and_pictures(written, tmp_path):
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    from dsa_keras.tuning.report import write_report

    write_report(written, tmp_path / "out", top=3)
    write_report(written, tmp_path / "out", top=3)
    board = tmp_path / "out" / "board"
    top = EventAccumulator(str(board)).Reload()
    assert set(top.Tags()["tensors"]) >= {"parallel", "pareto"}
    assert len(list(board.glob("events*"))) == 1
    one = EventAccumulator(str(board / "0003")).Reload()
    scores = [tf.make_ndarray(event.tensor_proto).item() for event in one.Tensors("dev_accuracy")]
    assert scores == pytest.approx([0.74, 0.78, 0.78])
    content = one.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    info = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
    assert info.hparams["units"].number_value == 300
    assert info.hparams["initial_scale"].string_value == "rate"


def test_a_report_of_nothing_says_so(tmp_path, capsys):
    from one_command import tune as main

    SearchFolder(tmp_path / "s").open(settings())
    assert main(["report", str(tmp_path / "s")]) == 2
    assert "no trial has been trained to its end yet" in capsys.readouterr().err
