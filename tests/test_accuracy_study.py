"""The study behind results/accuracy.json: runs of several machines become one table."""

import json

import numpy as np

from benchmarks.accuracy import Study, StudyRow, recorded_runs, table
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.datasets import preset
from dsa_keras.runs import Run, RunConfig

ROW = StudyRow("sst2", "dsa-single", seeds=3, epochs=2, paper=0.885)


def finished_run(folder, row, seed, dev, test, log):
    """What `train` and `evaluate` leave of a run, as far as the study reads it."""
    path = folder / row.run_name(seed)
    recipe, vocabulary = preset(row.task, row.encoder), Vocabulary(["good"])
    model = recipe.model.replace(vocabulary_size=len(vocabulary))
    config, run = RunConfig(row.task, model, recipe.training), Run(path)
    records = [{"epoch": n, "dev_accuracy": one} for n, one in enumerate(dev, 1)]
    with run.made(config, vocabulary, None, force=False):
        run.save_epoch({}, {}, records, "")
    run.save_evaluation("test", {"accuracy": test})
    path.with_name(path.name + ".log").write_text(log)


def study_of(folder, recorded=None):
    return Study(folder, data=[], jobs=1, recorded=recorded or {})


def test_a_run_is_reported_with_its_best_epoch_and_its_origin(tmp_path):
    log = (
        "commit 1a2b on Some CPU avx2: python -m dsa_keras train sst2\n"
        "epoch 1/2  loss 0.4\n"
        "commit 3c4d-dirty on Some CPU avx2: python -m dsa_keras evaluate run\n"
    )
    finished_run(tmp_path, ROW, 1, dev=[0.8, 0.9, 0.85], test=0.7, log=log)
    [row] = study_of(tmp_path).report([ROW])
    assert row["runs"] == [
        {
            "seed": 1,
            "epochs": 3,
            "best_epoch": 2,
            "dev": 0.9,
            "dev_by_epoch": [0.8, 0.9, 0.85],
            "test": 0.7,
            "commits": ["1a2b", "3c4d-dirty"],
            "processors": ["Some CPU avx2"],
        }
    ]


def test_a_score_of_other_weights_is_no_score(tmp_path):
    finished_run(tmp_path, ROW, 0, dev=[0.8, 0.9], test=0.7, log="")
    run = Run(tmp_path / ROW.run_name(0))
    assert study_of(tmp_path).report([ROW])
    run.save_epoch({}, {"weights/other": np.ones(1)}, run.metrics(), "")
    assert study_of(tmp_path).report([ROW]) == []


def test_recorded_runs_join_those_of_the_folder_which_win(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for seed, test in ((0, 0.5), (1, 0.7)):
        finished_run(first, ROW, seed, dev=[0.8], test=test, log="")
    file = tmp_path / "accuracy.json"
    file.write_text(json.dumps({"rows": study_of(first).report([ROW])}))
    finished_run(second, ROW, 1, dev=[0.6], test=0.6, log="")
    finished_run(second, ROW, 2, dev=[0.9], test=0.7, log="")

    [row] = study_of(second, recorded_runs(file, [ROW])).report([ROW])
    assert [run["test"] for run in row["runs"]] == [0.5, 0.6, 0.7]
    assert row["test"]["mean"] == 0.6
    assert "| sst2 | dsa-single |  | 3 | 76.67 ± 15.28 | 60.00 ± 10.00 | 88.5 |" in table([row])
    [alone] = study_of(second).report([ROW])
    assert [run["seed"] for run in alone["runs"]] == [1, 2]


def test_runs_of_another_budget_are_not_of_the_row(tmp_path):
    finished_run(tmp_path, ROW, 0, dev=[0.8], test=0.5, log="")
    file = tmp_path / "accuracy.json"
    file.write_text(json.dumps({"rows": study_of(tmp_path).report([ROW])}))
    longer = StudyRow("sst2", "dsa-single", seeds=3, epochs=4)
    assert recorded_runs(file, [ROW]).keys() == {"sst2-dsa-single-seed0"}
    assert recorded_runs(file, [longer]) == {}
    assert recorded_runs(tmp_path / "none.json", [ROW]) == {}


def test_runs_are_trained_in_the_order_asked_for_and_recorded_ones_are_not(tmp_path):
    other = StudyRow("sst5", "dsa-single", seeds=2)
    study = study_of(tmp_path, recorded={"sst2-dsa-single-seed0": {}})
    assert study.open_runs([ROW, other], ("",)) == [(other, 0), (ROW, 1), (other, 1), (ROW, 2)]
    asked = ("sst5-dsa-single-seed1", "sst2", "sst5")
    assert study.open_runs([ROW, other], asked) == [(other, 1), (ROW, 1), (ROW, 2), (other, 0)]
    # A folder that is here is gone on with, though another machine has recorded the run.
    (tmp_path / "sst2-dsa-single-seed0").mkdir()
    assert (ROW, 0) in study.open_runs([ROW], ("sst2",))
