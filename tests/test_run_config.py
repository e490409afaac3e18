"""`config.json` is what was written, or an error in one line: whatever stands in it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from bare_runs import config_of, epoch, made, read, sealed

from dsa_keras.errors import RunError
from dsa_keras.runs import Run, RunConfig

GOLDEN = Path(__file__).parent / "golden" / "runs"


@pytest.fixture
def run(tmp_path):
    return Run(epoch(made(tmp_path / "run"), 7, 0.5))


@pytest.fixture
def older(tmp_path):
    """A run folder of format 1, which has no manifest."""
    path = shutil.copytree(GOLDEN / "sentence", tmp_path / "older")
    (path / "expected.json").unlink()
    return Run(path)


NONSENSE = (None, 5, [1], [], {}, "x", -1, 1.5, True, 10**400, float("nan"), [[[]]], {"a": {}})
TEXTS = {
    "null": "is not a JSON object",
    "5": "is not a JSON object",
    "[1]": "is not a JSON object",
    '"text"': "is not a JSON object",
    "": r"cannot be read \(Expecting value",
    "{": r"cannot be read \(",
    "[" * 100_000: r"cannot be read \(",
    '{"format": ' * 100_000: r"cannot be read \(",
    "9" * 5000: r"cannot be read \(Exceeds the limit",
    '{"format": ' + "9" * 5000 + "}": r"cannot be read \(Exceeds the limit",
    '{"format": ' + "9" * 4000 + "}": "is of format 999",
    '{"format": 3}': "is of format 3, which this version does not know",
    '{"format": null}': "is of format None",
    '{"format": [1]}': r"is of format \[1\]",
    '{"format": 1}': r"is not a whole config of format 1 \('class_names'\)",
    '{"format": 2}': "it has no 'task'",
    "{}": "is of format None",
    "\xff": r"cannot be read \('utf-8' codec",
    '{"a": "\\ud800", "format": 2}': "it has no 'task'",
}


@pytest.mark.parametrize("text", TEXTS, ids=lambda one: one[:20])
@pytest.mark.parametrize("manifest", [True, False])
def test_a_config_that_is_none_is_told(run, text, manifest):
    run.config_file.write_text(text, encoding="latin-1")
    sealed(run.path)
    if not manifest:
        run.manifest.path.unlink()
    with pytest.raises(RunError, match=rf"config\.json: {TEXTS[text]}") as caught:
        run.config()
    assert "\n" not in str(caught.value)


def places(value, path=()):
    """The places of all values in a JSON document."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from places(one, (*path, name))


def changed(document, path, value):
    document = json.loads(json.dumps(document))
    place = document
    for name in path[:-1]:
        place = place[name]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


CONFIG = config_of(
    3,
    vectors={"files": []},
    options={"jit": "off", "precision": "float32"},
    versions={"keras": "3"},
).to_dict()


@pytest.mark.parametrize("place", list(places(CONFIG)), ids="-".join)
def test_nonsense_in_a_config_is_refused_or_read(run, place):
    """Whatever stands anywhere in it, it is a config or a RunError in one line."""
    refused = 0
    for value in (*NONSENSE, ...):
        run.config_file.write_text(json.dumps(changed(CONFIG, place, value)))
        sealed(run.path)
        refused += told_in_one_line(run)
    free = place[0] in ("data", "vectors", "options", "versions", "made_by", "training", "task")
    assert refused or free, "anything passes there"


OLDER = json.loads((GOLDEN / "sentence" / "config.json").read_text())


@pytest.mark.parametrize("place", list(places(OLDER)), ids="-".join)
def test_nonsense_in_a_config_of_format_1_is_refused_or_read(older, place):
    for value in (*NONSENSE, ...):
        older.config_file.write_text(json.dumps(changed(OLDER, place, value)))
        told_in_one_line(older)


def told_in_one_line(run):
    """Whether a run is refused; in any case it is read or refused by a RunError in one line."""
    try:
        read(run)
    except RunError as error:
        lines = str(error).splitlines()
    else:
        return False
    assert len(lines) == 1
    return True


def test_class_names_of_format_1_are_as_many_as_the_classes(older):
    names = OLDER["class_names"]
    assert older.config().model.objective.class_names == tuple(names)
    for wrong in (names[:-1], [*names, "more"], [names[0]] * len(names), [], "ab"):
        older.config_file.write_text(json.dumps({**OLDER, "class_names": wrong}))
        with pytest.raises(RunError, match=r"config\.json: "):
            older.config()


def test_a_config_is_what_it_was(run):
    config = config_of(
        3, vectors={"files": ["a.txt"]}, options={"jit": "on"}, versions={"keras": "3"}
    )
    run.save_config(config)
    assert run.config() == config
    assert RunConfig.from_dict(json.loads(run.config_file.read_text())) == config
    assert run.config().vector_files == ["a.txt"]


def test_a_name_in_a_config_imports_nothing(run, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for place in (("task",), ("model", "encoder", "name"), ("model", "head", "name"),
                  ("model", "objective", "name")):  # fmt: skip
        run.config_file.write_text(json.dumps(changed(CONFIG, place, "evil:Name")))
        sealed(run.path)
        with pytest.raises(RunError, match=r"config\.json: .*'evil:Name'"):
            run.config()
    assert "evil" not in sys.modules
    assert not (tmp_path / "was here").exists()
