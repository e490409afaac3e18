"""What every data set has: a name, options that are told apart, sound splits, a way back to it."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.datasets import (
    DATASETS,
    Dataset,
    Entry,
    Option,
    Origin,
    Split,
    load_dataset,
    preset,
)
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import PAIR, SENTENCE
from dsa_keras.objectives.classification import Classification
from dsa_keras.objectives.regression import Regression

OURS = {"demo-nli", "demo-sentiment", "file", "mnli", "snli", "sst2", "sst5"}
NAMES = DATASETS.names()
POLAR = Classification(class_names=("bad", "good"))


def test_ours_are_registered():
    assert set(NAMES) >= OURS


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_says_what_it_is(name):
    one = DATASETS.get(name)
    assert one.name == name
    assert one.about.strip()
    for option in one.options:
        assert option.flag == f"--{option.flag[2:].strip().lower()}"
        assert option.help.strip()


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown data set 'sst-2'\. Did you mean 'sst2'"):
        load_dataset("sst-2")
    with pytest.raises(ConfigError, match=", ".join(DATASETS.names())):
        load_dataset("imdb?")


@pytest.mark.parametrize(
    ("name", "option", "hint"),
    [
        ("sst2", "phrase", "unknown option of sst2: 'phrase'. Did you mean 'phrases'"),
        ("file", "text_colum", "Did you mean 'text_column'"),
        ("snli", "phrases", "unknown option of snli: 'phrases'"),
        ("mnli", "phrases", "Known: on_bad_rows"),
        ("demo-nli", "sizes", "Did you mean 'size'"),
    ],
)
def test_unknown_options_suggest_the_nearest(tmp_path, name, option, hint):
    with pytest.raises(ConfigError, match=hint):
        load_dataset(name, tmp_path, **{option: 1})


@pytest.mark.parametrize("name", ["demo-sentiment", "demo-nli"])
def test_generated_data_has_the_same_shape(name):
    data = load_dataset(name, size=300, seed=3)
    assert data.inputs is (PAIR if name == "demo-nli" else SENTENCE)
    for split in data.splits.values():
        assert len(split) == len(split.targets)
        assert split.targets.max() < len(data.objective.class_names)
    again = load_dataset(name, size=300, seed=3)
    assert list(again["train"].texts) == list(data["train"].texts)
    np.testing.assert_array_equal(again["train"].targets, data["train"].targets)


def test_no_reader_needs_tensorflow(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\ny,0\n")
    code = (
        "import sys; from dsa_keras.datasets import DATASETS, load_dataset;"
        "load_dataset('file', sys.argv[1], path='a.csv', fractions=(1, 0, 0));"
        "DATASETS.names();"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


# Where a data set came from


def test_a_data_set_knows_how_to_load_it_again(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\ny,0\n")
    data = load_dataset("file", tmp_path, path=Path("a.csv"), fractions=(1, 0, 0))
    # Plain values: they stand in a run's config.json.
    assert data.origin == Origin(str(tmp_path), {"path": "a.csv", "fractions": (1, 0, 0)})
    assert isinstance(data.origin.options["path"], str)
    again = load_dataset(data.name, data.origin.data_dir, **data.origin.options)
    assert again["train"].texts == data["train"].texts
    assert again.objective == data.objective
    assert load_dataset("demo-nli", size=150).origin == Origin(None, {"size": 150})


def entry(read, **about):
    return Entry("mine", "for a test", read, lambda encoder, options: None, **about)


def told(*folder, **options):
    """A reader whose texts tell what it was given."""
    return Dataset("any", {"train": Split([f"{folder}", f"{options}"], [0, 1])}, POLAR)


def test_only_readers_of_files_get_a_folder():
    size = Option("--size", "size", "how many", kind=int)
    reads = entry(told, options=(size,))
    assert reads.load("there", {"size": 3})["train"].texts == ["('there',)", "{'size': 3}"]
    assert reads.load(Path("there"), {})["train"].texts == ["('there',)", "{}"]
    assert reads.load(None, {})["train"].texts == ["(None,)", "{}"]
    generates = entry(told, options=(size,), reads_files=False)
    assert generates.load("there", {"size": 3})["train"].texts == ["()", "{'size': 3}"]
    # It is called what it was asked for by, so that a run finds it again.
    assert generates.load(None, {}).name == "mine"
    with pytest.raises(ConfigError, match=r"unknown option of mine: 'seed'.*Known: size"):
        generates.load(None, {"seed": 1})
    with pytest.raises(ConfigError, match="It takes none"):
        entry(told).load(None, {"seed": 1})


# Options


def parameters(reader):
    """The parameters of a reader that are options: those that are given by name only."""
    found = inspect.signature(reader).parameters.values()
    return {one.name: one for one in found if one.kind is one.KEYWORD_ONLY}


@pytest.mark.parametrize("name", NAMES)
def test_the_options_of_a_data_set_are_the_arguments_of_its_reader(name):
    one = DATASETS.get(name)
    names = [option.name for option in one.options]
    assert sorted(names) == sorted(parameters(one.read))
    assert len({option.flag for option in one.options}) == len(names)
    # Every option may be left out.
    assert all(found.default is not found.empty for found in parameters(one.read).values())
    positional = len(inspect.signature(one.read).parameters) - len(names)
    assert positional == (1 if one.reads_files else 0)


def parsed(options, words):
    """The values that words of a command line stand for."""
    parser = argparse.ArgumentParser()
    for option in options:
        parser.add_argument(
            option.flag, dest=option.name, default=argparse.SUPPRESS, **option.argument()
        )
    return vars(parser.parse_args(words))


ODD = {str: "-b \"c=d'.csv", int: -3, float: 0.1 + 0.2}


def odd_value(option):
    """A value that is not easily said on a command line."""
    if option.constant is not None:
        return option.constant
    value = option.choices[-1] if option.choices else ODD[option.kind]
    if option.separator:
        return [value, "-", value]
    return value if option.count is None else [value] * option.count


@pytest.mark.parametrize("name", NAMES)
def test_options_are_the_same_after_a_command_line(name):
    one = DATASETS.get(name)
    values = {option.name: odd_value(option) for option in one.options}
    assert parsed(one.options, one.words(values)) == values
    for key, value in values.items():
        assert parsed(one.options, one.words({key: value})) == {key: value}


@given(st.text().filter(lambda text: "\0" not in text))
def test_any_name_of_a_column_survives_a_command_line(name):
    one = DATASETS.get("file")
    assert parsed(one.options, one.words({"label_column": name})) == {"label_column": name}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        (Option("--size", "size", "", kind=int), 5, ["--size", "5"]),
        (Option("--size", "size", "", kind=int), 0, ["--size", "0"]),
        (Option("--size", "size", "", kind=int), None, []),
        (Option("--name", "name", ""), "", ["--name", ""]),
        (Option("--name", "name", ""), "-x y", ["--name=-x y"]),
        (Option("--shares", "shares", "", kind=float, count=2), (0.5, 1), ["--shares", "0.5", "1"]),
        (Option("--bare", "full", "", constant=False), False, ["--bare"]),
        # What is so unless the flag is given needs no words.
        (Option("--bare", "full", "", constant=False), True, []),
        (Option("--bare", "full", "", constant=False), None, []),
    ],
)
def test_an_option_in_words(option, value, words):
    assert option.words(value) == words
    if words:
        got = parsed([option], words)[option.name]
        assert got == (list(value) if isinstance(value, tuple) else value)


def test_words_of_options_that_are_not_known():
    with pytest.raises(ConfigError, match="unknown option of sst2: 'size'"):
        DATASETS.get("sst2").words({"size": 3})
    sentences = {"phrases": False, "on_bad_rows": "skip"}
    assert DATASETS.get("sst2").words(sentences) == ["--sentences-only", "--on-bad-rows", "skip"]


# Recipes


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_has_a_recipe_for_every_encoder(name):
    for encoder in ENCODERS.names():
        assert preset(name, encoder).model.encoder.name == encoder
    without = preset(name, vectors=False)
    assert without.model.train_embeddings == DATASETS.get(name).vectors


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_recipe_is_about_what_the_data_is(name):
    recipe = preset(name, "cnn")
    assert recipe.model.inputs is (PAIR if name in ("snli", "mnli", "demo-nli") else SENTENCE)
    assert isinstance(recipe.model.objective, Classification)


def test_own_files_have_the_recipe_that_their_options_call_for():
    recipe = preset("file", options={"target": "number", "pair_column": "second"})
    assert recipe.model.inputs is PAIR
    assert isinstance(recipe.model.objective, Regression)


# Data sets made in Python


def test_targets_and_texts_as_people_have_them():
    data = Dataset(
        "mine",
        {
            "train": Split(np.array(["a film", "dull"]), [1, 0]),
            "dev": Split(("one",), np.array([0], np.int64)),
        },
        POLAR,
    )
    assert data.inputs is SENTENCE
    assert data["train"].texts == ["a film", "dull"]
    assert data["train"].targets.dtype == np.int32
    assert data["dev"].targets.dtype == np.int32
    pairs = Dataset("mine", {"train": Split([["a", "b"], ("c", "d")], [1, 2.5])}, Regression())
    assert pairs.inputs is PAIR
    assert pairs["train"].texts == [("a", "b"), ("c", "d")]
    assert pairs["train"].targets.tolist() == [1, 2.5]
    assert pairs["train"].targets.dtype == np.float32


def test_a_split_may_be_empty_but_is_no_part_to_work_with():
    data = Dataset("mine", {"train": Split(["a", "b"], [0, 1]), "test": Split([], [])}, POLAR)
    assert len(data.part("train")) == 2
    for split in ("test", "dev"):
        with pytest.raises(DataError, match=rf"mine: the data has no {split} split.*train, test"):
            data.part(split)


MADE_WRONG = {
    "too few": (["a", "b"], [0], POLAR, r"2 texts and targets of shape \(1,\)"),
    "too many": (["a"], [0, 1], POLAR, r"1 texts and targets of shape \(2,\)"),
    "one number": (["a"], 1, POLAR, "whole numbers from 0 to 1"),
    "above": (["a", "b"], [0, 2], POLAR, "labels must be whole numbers from 0 to 1"),
    "below": (["a", "b"], [0, -1], POLAR, "labels must be whole numbers from 0 to 1"),
    "floats": (["a", "b"], [0.0, 1.0], POLAR, "labels must be whole numbers from 0 to 1"),
    "names": (["a", "b"], ["bad", "good"], POLAR, "labels must be whole numbers from 0 to 1"),
    "NaN label": (["a", "b"], [0, float("nan")], POLAR, "labels must be whole numbers"),
    "one-hot": (["a", "b"], [[0, 1], [1, 0]], POLAR, "labels must be whole numbers"),
    "ragged": (["a", "b"], [[0, 1], [1]], POLAR, "inhomogeneous"),
    "NaN": (["a", "b"], [0.5, float("nan")], Regression(), "targets must be finite numbers"),
    "infinite": (["a", "b"], [0.5, float("inf")], Regression(), "targets must be finite numbers"),
    "too large": (["a", "b"], [0.5, 1e39], Regression(), "targets must be finite numbers"),
    "a column": (["a", "b"], [[0.5], [1.0]], Regression(), "targets must be .*numbers"),
    "words": (["a", "b"], ["0.5", "1"], Regression(), "targets must be .*numbers"),
    "no text": (["a", None], [0, 1], POLAR, "text 1 is not a sentence"),
    "pair": (["a", ("b", "c")], [0, 1], POLAR, "text 1 is not a sentence"),
    "single": ([("b", "c"), "a"], [0, 1], POLAR, "text 1 is not a pair"),
    "triple": ([("b", "c", "d")], [0], POLAR, "text 0 is not a pair"),
    "a sentence for a list": ("ab", [0, 1], POLAR, "texts must be a list, not one str"),
}


@pytest.mark.parametrize("case", MADE_WRONG)
def test_what_cannot_be_is_refused_with_the_split(case):
    texts, targets, objective, problem = MADE_WRONG[case]
    with pytest.raises(DataError, match=f"^mine, split train: .*{problem}"):
        Dataset("mine", {"train": Split(texts, targets)}, objective)


def test_the_splits_are_all_of_sentences_or_all_of_pairs():
    with pytest.raises(DataError, match="split train: text 0 is not a pair"):
        Dataset("mine", {"train": Split(["a"], [0]), "dev": Split([("b", "c")], [0])}, POLAR)


def test_decisive_words_belong_to_texts():
    with pytest.raises(DataError, match=r"split train: .*2 texts and decisive words of 1"):
        Dataset("mine", {"train": Split(["a", "b"], [0, 1], [(0,)])}, POLAR)
