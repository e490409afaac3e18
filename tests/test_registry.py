from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dsa_keras.data.registry import DATASETS, load_dataset
from dsa_keras.errors import ConfigError


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown data set: 'sst-2'\. Did you mean 'sst2'"):
        load_dataset("sst-2")
    with pytest.raises(ConfigError, match=", ".join(DATASETS)):
        load_dataset("imdb?")


@pytest.mark.parametrize(
    ("name", "option", "hint"),
    [
        ("sst2", "phrase", "unknown option of sst2: 'phrase'. Did you mean 'phrases'"),
        ("file", "text_colum", "Did you mean 'text_column'"),
        ("snli", "phrases", "It takes none"),
        ("demo-nli", "sizes", "Did you mean 'size'"),
    ],
)
def test_unknown_options_suggest_the_nearest(tmp_path, name, option, hint):
    with pytest.raises(ConfigError, match=hint):
        load_dataset(name, tmp_path, **{option: 1})


@pytest.mark.parametrize("name", ["demo-sentiment", "demo-nli"])
def test_generated_data_has_the_same_shape(name):
    data = load_dataset(name, size=300, seed=3)
    assert data.is_pair == (name == "demo-nli")
    for split in data.splits.values():
        assert len(split) == len(split.labels)
        assert split.labels.max() < len(data.class_names)
    again = load_dataset(name, size=300, seed=3)
    assert list(again["train"].texts) == list(data["train"].texts)
    np.testing.assert_array_equal(again["train"].labels, data["train"].labels)


def test_no_reader_needs_tensorflow(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\n")
    code = (
        "import sys; from dsa_keras.data.registry import load_dataset;"
        "load_dataset('file', sys.argv[1], path='a.csv', fractions=(1, 0, 0));"
        "import dsa_keras.data.sst, dsa_keras.data.snli;"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
