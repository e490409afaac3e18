"""The oracles by themselves: plans, budgets, restarts, damaged files; nothing is trained."""

from __future__ import annotations

import json

import pytest
from keras_tuner.engine.trial import Trial

from dsa_keras.tuning.records import TrialFolder, trial_folders
from dsa_keras.tuning.workers import Watch
from tests.tuning_helpers import Driven, by_units, extra_spaces, settings

pytestmark = pytest.mark.filterwarnings(
    "ignore:currentThread:DeprecationWarning", "ignore:getName:DeprecationWarning"
)


@pytest.fixture(autouse=True)
def _spaces():
    with extra_spaces():
        yield


PAPER = {"units": 8, "num_iterations": 2, "optimizer": "adam", "learning_rate/adam": 0.001}


def _outcomes(driven):
    return {files.id: files.outcome() for files in trial_folders(driven.folder.trials_dir)}


@pytest.mark.parametrize("tuner", ["random", "bayesian", "grid", "hyperband"])
def test_a_search_runs_its_trials_and_repeats_itself(tuner, tmp_path):
    # Four at random and one by the process are enough to see both.
    of = settings(tuner=tuner, trials=5 if tuner == "bayesian" else 8, epochs=3)
    first, second = Driven(tmp_path / "a", of), Driven(tmp_path / "b", of)
    done = first.run(by_units)
    planned = {"hyperband": 6, "bayesian": 5}.get(tuner, 8)
    assert len(done) == first.oracle.planned_trials() == planned
    second.run(by_units)
    assert first.values() == second.values()
    start = {name: value for name, value in first.values()[0].items() if "tuner/" not in name}
    assert start == PAPER
    points = [tuple(sorted(one.items())) for one in first.values()]
    assert len(set(points)) == len(points)


def test_hyperband_follows_its_plan(tmp_path):
    driven = Driven(tmp_path / "s", settings(tuner="hyperband", epochs=9))
    done = driven.run(by_units)
    # Brackets of 9, 5 and 3 candidates; the best third goes on three times as long.
    assert len(done) == driven.oracle.planned_trials() == 9 + 3 + 1 + 5 + 2 + 3
    values = driven.values()
    assert [one["tuner/epochs"] for one in values] == [1] * 9 + [3] * 3 + [9] + [3] * 5 + [9] * 5
    trained = sum(one["tuner/epochs"] - one["tuner/initial_epoch"] for one in values)
    assert trained == driven.oracle.planned_epochs() == 9 + 6 + 6 + 15 + 12 + 27
    promoted = [int(one["tuner/trial_id"]) for one in values[9:12]]
    best = sorted(range(9), key=lambda number: -by_units(values[number]))[:3]
    assert sorted(promoted) == sorted(best)


@pytest.mark.parametrize("tuner", ["random", "bayesian", "grid", "hyperband"])
def test_candidates_over_the_budget_are_neither_trained_nor_failures(tuner, tmp_path):
    free = Driven(tmp_path / "free", settings(tuner="grid", trials=30))
    free.run(by_units)
    sizes = {
        one["units"]: free.model.count_parameters(free.model.candidate(one).recipe.model)
        for one in free.values()
    }
    assert sizes[4] < sizes[6] < sizes[8]
    of = settings(tuner=tuner, trials=6, epochs=3, max_parameters=sizes[6])
    driven = Driven(tmp_path / "s", of)
    done = driven.run(by_units)
    assert len(done) == 6
    outcomes = _outcomes(driven)
    infeasible = [trial_id for trial_id in outcomes if trial_id not in done]
    assert infeasible
    for trial_id in infeasible:
        assert outcomes[trial_id].status == "INVALID"
        assert outcomes[trial_id].reason == (
            f"over the parameter budget: {sizes[8]:,} > {sizes[6]:,}"
        )
        assert driven.oracle.trials[trial_id].status == "INVALID"
    records = [TrialFolder(driven.folder.trials_dir / trial_id).candidate() for trial_id in done]
    assert max(record.parameters for record in records) <= sizes[6]
    if tuner == "hyperband":
        assert [record.training["epochs"] for record in records] == [1, 1, 1, 3, 3, 3]


def test_a_budget_that_nothing_meets_ends_the_search(tmp_path):
    driven = Driven(tmp_path / "s", settings(tuner="grid", max_parameters=10))
    assert driven.run(by_units) == []
    assert driven.oracle.over == "every candidate of the space has been tried"
    assert len(_outcomes(driven)) == 30
    random = Driven(tmp_path / "r", settings(space="wide", max_parameters=10))
    random.oracle.infeasible_in_a_row = 199
    assert random.run(by_units) == []
    assert "200 candidates in a row are over the parameter budget of 10" in random.oracle.over


def test_failures_do_not_end_a_search_unless_nothing_else_comes(tmp_path):
    driven = Driven(tmp_path / "s", settings(trials=8))
    scores = iter([None, 0.5, None, None, None, None, 0.6, 0.7])
    assert len(driven.run(lambda _: next(scores))) == 8
    hopeless = Driven(tmp_path / "h", settings(trials=8))
    assert len(hopeless.run(lambda _: None)) == 5
    assert hopeless.oracle.over == "the last 5 trials all failed"


def test_grid_tries_everything_once_over_a_restart(tmp_path):
    of = settings(tuner="grid", trials=30)
    assert len(Driven(tmp_path / "s", of).run(by_units, steps=7)) == 7
    again = Driven(tmp_path / "s", of)
    assert len(again.run(by_units)) == 23
    points = {tuple(sorted(one.items())) for one in again.values()}
    assert len(points) == 30


def test_no_time_no_trial_and_a_cut_trial_comes_back(tmp_path):
    driven = Driven(tmp_path / "s", settings(trials=3, max_minutes=1.0))
    trial = driven.oracle.create_trial("tuner0")
    driven.clock.before = 61.0
    trial.status = "STOPPED"
    driven.oracle.end_trial(trial)
    assert driven.oracle.create_trial("tuner0").status == "STOPPED"
    assert driven.oracle.over == "the 1 minutes are used up"
    again = Driven(tmp_path / "s", settings(trials=3, max_minutes=5.0))
    assert again.oracle.create_trial("tuner0").trial_id == trial.trial_id


@pytest.mark.parametrize("damage", ["oracle", "finished", "running", "all", "orphan"])
@pytest.mark.parametrize("tuner", ["hyperband", "random"])
def test_damaged_state_is_made_again(tuner, damage, tmp_path):
    of = settings(tuner=tuner, epochs=3, trials=6)
    whole = Driven(tmp_path / "whole", of)
    whole.run(by_units)
    driven = Driven(tmp_path / "s", of)
    driven.run(by_units, steps=3)
    running = driven.oracle.create_trial("tuner0").trial_id
    assert running == "0003"
    oracle_file, tuner_dir = driven.folder.oracle_file, driven.folder.tuner_dir
    files = {
        "oracle": [oracle_file],
        "finished": [tuner_dir / "trial_0001" / "trial.json"],
        "running": [tuner_dir / "trial_0003" / "trial.json"],
        "all": [oracle_file, *tuner_dir.glob("trial_*/trial.json")],
        "orphan": [],
    }[damage]
    for file in files:
        file.write_bytes(file.read_bytes()[:-40])
    if damage == "orphan":
        state = json.loads(oracle_file.read_text())
        state["ongoing_trials"], state["start_order"] = {}, state["start_order"][:-1]
        oracle_file.write_text(json.dumps(state))
    again = Driven(tmp_path / "s", of)
    assert len(again.notes) == len(files)
    for file, note in zip(sorted(files), sorted(again.notes), strict=True):
        assert note.startswith(f"{file}: was damaged, made again from")
        assert file.with_name(f"{file.name}.broken").exists()
    assert [one["units"] for one in again.values()] == [one["units"] for one in driven.values()]
    done = again.run(by_units)
    assert done == ["0003", "0004", "0005"]
    assert again.oracle.trials["0001"].score == driven.oracle.trials["0001"].score
    if tuner == "hyperband":
        plan = ("tuner/epochs", "tuner/round", "tuner/trial_id")
        assert [[one.get(name) for name in plan] for one in again.values()] == [
            [one.get(name) for name in plan] for one in whole.values()
        ]
    points = {tuple(sorted(one.items())) for one in again.values()}
    assert len(points) == 6


def test_a_trial_lost_before_it_began_is_dropped(tmp_path):
    driven = Driven(tmp_path / "s", settings(trials=3))
    driven.run(by_units, steps=1)
    driven.oracle.create_trial("tuner0")
    (driven.folder.trials_dir / "0001" / "candidate.json").unlink()
    (driven.folder.tuner_dir / "trial_0001" / "trial.json").write_text("")
    again = Driven(tmp_path / "s", settings(trials=3))
    assert any("the trial is dropped" in note for note in again.notes)
    assert again.run(by_units) == ["0001", "0002"]


def test_the_trial_of_a_dead_worker_goes_to_the_next(tmp_path):
    driven = Driven(tmp_path / "s", settings(trials=2))
    oracle = driven.oracle
    lost, other = oracle.create_trial("a"), oracle.create_trial("b")
    driven.end(other, 0.5)
    # Nothing is left to begin, but a trial is running: somebody must be there if its worker dies.
    assert oracle.create_trial("b").status == "IDLE"
    signs = driven.folder.workers_dir
    signs.mkdir()
    watch = Watch(driven.folder, oracle, patience=10.0)
    for beat in ("1", "2"):
        (signs / "a.sign").write_text(beat)
        (signs / "b.sign").write_text(beat)
        assert watch.look() == []
    watch.seen["a"] = ("2", watch.seen["a"][1] - 11)
    assert watch.look() == [
        f"worker a gave no sign of life, trial {lost.trial_id} goes to the next one"
    ]
    assert oracle.tuner_ids == {"b"}
    taken = oracle.create_trial("b")
    assert taken.trial_id == lost.trial_id
    # The dead worker was only slow: what it says now changes nothing.
    late = Trial(lost.hyperparameters, lost.trial_id, "FAILED")
    driven.end(taken, 0.7)
    oracle.end_trial(late)
    assert oracle.trials[lost.trial_id].status == "COMPLETED"
    assert oracle.create_trial("b").status == "STOPPED"
