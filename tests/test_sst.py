from __future__ import annotations

import os
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.data.text_files import MAX_WORDS
from dsa_keras.datasets import load_dataset
from dsa_keras.datasets.sst import LAYOUT, parse_tree
from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import SENTENCE

TRAIN = [
    "(3 (2 It) (4 (2 really) (4 works)))",
    "(2 (2 it) (2 (2 is) (2 a) (2 film)))",
    "(1 (2 A) (0 (1 bad) (2 film)))",
]
DEV = ["(4 (3 good) (2 film))", "(2 so-so)"]
TEST = ["(0 (1 bad) (2 (2 -LRB-) (2 (2 1\\/2) (2 -RRB-))))", "(3 fine)"]


@pytest.fixture
def trees(tmp_path):
    folder = tmp_path / "sst" / "trees"
    folder.mkdir(parents=True)
    for name, lines in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_sst5_trains_on_every_phrase_once_and_scores_sentences(trees):
    data = load_dataset("sst5", trees)
    # "it" is in the first tree as "It", and "a" in the third as "A": one row each, label and
    # capitals of the first occurrence; "film" in the third repeats the second.
    assert list(zip(data["train"].texts, data["train"].targets.tolist(), strict=True)) == [
        ("It really works", 3),
        ("It", 2),
        ("really works", 4),
        ("really", 2),
        ("works", 4),
        ("it is a film", 2),
        ("is a film", 2),
        ("is", 2),
        ("a", 2),
        ("film", 2),
        ("A bad film", 1),
        ("bad film", 0),
        ("bad", 1),
    ]
    assert data["dev"].texts == ["good film", "so-so"]
    assert data["dev"].targets.tolist() == [4, 2]
    assert data["test"].texts == ["bad ( 1/2 )", "fine"]
    assert data.objective.class_names[0] == "very negative"
    assert data.objective.class_names[4] == "very positive"
    assert data.inputs is SENTENCE


def test_sst2_drops_neutral_and_merges_the_degrees(trees):
    data = load_dataset("sst2", trees)
    assert list(zip(data["train"].texts, data["train"].targets.tolist(), strict=True)) == [
        ("It really works", 1),
        ("really works", 1),
        ("works", 1),
        ("A bad film", 0),
        ("bad film", 0),
        ("bad", 0),
    ]
    assert data["dev"].texts == ["good film"]
    assert data["test"].targets.tolist() == [0, 1]
    assert data["test"].targets.dtype == "int32"
    assert data.objective.class_names == ("negative", "positive")


def test_a_later_label_of_a_phrase_does_not_count(trees):
    (trees / "train.txt").write_text("(3 (2 Fun) (3 it))\n(3 (4 fun) (3 too))\n")
    assert load_dataset("sst2", trees)["train"].texts == ["Fun it", "it", "fun too", "too"]


def test_sentences_only(trees):
    data = load_dataset("sst5", trees, phrases=False)
    assert data["train"].texts == ["It really works", "it is a film", "A bad film"]
    assert load_dataset("sst2", trees, phrases=False)["train"].targets.tolist() == [1, 0]


def test_the_same_from_every_place(trees, tmp_path):
    expected = load_dataset("sst5", trees)["train"].texts
    archive = tmp_path / "zips" / "trainDevTestTrees_PTB.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__MACOSX/trees/._train.txt", b"\0\5\x16\7")
        for path in trees.iterdir():
            file.write(path, f"trees/{path.name}")
    for place in (tmp_path, tmp_path / "sst", archive, archive.parent):
        assert load_dataset("sst5", place)["train"].texts == expected


def test_quotes_stay_and_escapes_go():
    assert parse_tree("(2 (2 ``) (2 (2 and\\/or) (2 (2 ***) (2 (2 M\\*A) (2 ''))))) ")[0] == (
        2,
        "`` and/or *** M*A ''",
    )
    assert parse_tree("(2 8\u00a01\\/2)") == [(2, "8 1/2")]


BAD_TREES = [
    ("(3 (2 It) (4 works)", "unbalanced brackets, 1 not closed"),
    ("(3 (2 It) (4 works)))", "text after the closing bracket"),
    ("(3 (2 It) (4 works)) (2 x)", "text after the closing bracket"),
    ("(7 (2 It) (4 works))", "unknown label '7'"),
    ("(3 (2 It) (works))", "unknown label 'works'"),
    ("(3 (2 It) (", "unknown label ''"),
    ("(3 (2 ) (4 works))", "a label without a word"),
    ("(3 (2 It is) (4 works))", "more than a word"),
    ("(3 It (4 works))", "a word and a phrase"),
    ("(3 (4 works) It)", "more than a word"),
    ("It works", "does not start with a bracket"),
    (") (3 x)", "does not start with a bracket"),
    ("(3 (2 It) (4 wo\0rks))", "NUL"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_TREES)
def test_a_bad_tree_names_file_and_line_or_is_counted(trees, line, problem):
    path = trees / "dev.txt"
    path.write_text("\n".join([DEV[0], "", line, DEV[1]]))
    with pytest.raises(DataError) as caught:
        load_dataset("sst5", trees)
    assert problem in str(caught.value)
    assert f"{path}, line 3" in str(caught.value)
    data = load_dataset("sst5", trees, on_bad_rows="skip")
    assert data["dev"].texts == ["good film", "so-so"]
    assert data.skipped == {"train": 0, "dev": 1, "test": 0}


def test_latin_1_names_the_line(trees):
    (trees / "train.txt").write_bytes("(3 fine)\n(3 caf\u00e9)\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"train\.txt, line 2: bytes that are not UTF-8"):
        load_dataset("sst5", trees)
    assert load_dataset("sst5", trees, on_bad_rows="skip")["train"].texts == ["fine"]


def test_too_many_words(trees):
    words = " ".join("(2 a)" for _ in range(MAX_WORDS + 1))
    (trees / "test.txt").write_text(f"(3 fine)\n(2 {words})\n")
    with pytest.raises(DataError, match="line 2: a sentence of 10,001 words; the limit is 10,000"):
        load_dataset("sst5", trees)


def test_a_tree_deeper_than_any_recursion(trees):
    depth = 9000
    (trees / "test.txt").write_text("(2 (2 a) " * depth + "(2 b)" + ")" * depth)
    assert load_dataset("sst5", trees)["test"].texts[0].endswith("a a b")


def test_missing_data_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError) as caught:
        load_dataset("sst2", tmp_path)
    for part in (str(tmp_path / "sst" / "trees"), LAYOUT.url, "train.txt"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="needs a data_dir"):
        load_dataset("sst2")


def test_every_split_is_needed(trees):
    (trees / "dev.txt").unlink()
    with pytest.raises(DataError, match=r"no dev\.txt there"):
        load_dataset("sst2", trees)


def test_empty_file_and_directory(trees):
    (trees / "dev.txt").write_text("")
    with pytest.raises(DataError, match=r"dev\.txt: the file is empty"):
        load_dataset("sst2", trees)
    (trees / "dev.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"dev\.txt: no usable rows"):
        load_dataset("sst2", trees)
    (trees / "dev.txt").unlink()
    (trees / "dev.txt").mkdir()
    with pytest.raises(DataError, match=r"dev\.txt: is a directory"):
        load_dataset("sst2", trees)


def test_truncated_archive(trees, tmp_path):
    archive = tmp_path / LAYOUT.archive
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in trees.iterdir():
            file.write(path, f"trees/{path.name}")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(DataError, match=str(archive)):
        load_dataset("sst2", archive)


def test_unsafe_archive(trees, tmp_path):
    archive = tmp_path / LAYOUT.archive
    with zipfile.ZipFile(archive, "w") as file:
        file.write(trees / "train.txt", "../train.txt")
    with pytest.raises(DataError, match="points outside"):
        load_dataset("sst2", archive)


def test_bad_rows_has_two_ways_only(trees):
    with pytest.raises(ConfigError, match="on_bad_rows"):
        load_dataset("sst2", trees, on_bad_rows="ignore")


_words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1).filter(
    lambda word: not set(word) & set("()\\") and word not in ("-LRB-", "-RRB-")
)


@given(st.lists(_words, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_any_tree_gives_its_words_back(words, shape):
    def tree(start: int, stop: int) -> tuple[str, int]:
        label = shape.randrange(5)
        if stop - start == 1:
            return f"({label} {words[start]})", 1
        middle = shape.randrange(start + 1, stop)
        (left, left_nodes), (right, right_nodes) = tree(start, middle), tree(middle, stop)
        return f"({label} {left} {right})", left_nodes + right_nodes + 1

    line, nodes = tree(0, len(words))
    parsed = parse_tree(line)
    assert len(parsed) == nodes
    assert parsed[0] == (int(line[1]), " ".join(words))
    assert [text for _, text in parsed if " " not in text] == words


@given(st.text("() 0123ab\\-", max_size=60))
def test_any_line_parses_or_is_a_value_error(line):
    try:
        nodes = parse_tree(line)
    except ValueError:
        return
    assert line.count("(") == line.count(")") == len(nodes)


@pytest.mark.skipif("DSA_DATA_DIR" not in os.environ, reason="DSA_DATA_DIR names no official data")
@pytest.mark.parametrize(
    ("name", "phrases", "sizes"),
    [
        ("sst2", True, [76_961, 872, 1_821]),
        ("sst2", False, [6_920, 872, 1_821]),
        ("sst5", True, [156_817, 1_101, 2_210]),
        ("sst5", False, [8_544, 1_101, 2_210]),
    ],
)
def test_published_sizes(name, phrases, sizes):
    data = load_dataset(name, os.environ["DSA_DATA_DIR"], phrases=phrases)
    assert [len(data[split]) for split in ("train", "dev", "test")] == sizes
