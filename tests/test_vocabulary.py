import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from dsa_keras.errors import ConfigError, DataError

WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f\0"), min_size=1
).filter(lambda word: word not in (PADDING, UNKNOWN))


def test_order_is_by_count_then_code_point():
    counts = {"b": 2, "a": 2, "é": 1, "B": 1, "c": 3}
    expected = [PADDING, UNKNOWN, "c", "a", "b", "B", "é"]
    assert list(Vocabulary.from_counts(counts)) == expected
    assert list(Vocabulary.from_counts(dict(reversed(counts.items())))) == expected


def test_special_names_among_counted_words_are_left_out():
    assert Vocabulary.from_counts({PADDING: 3, "a": 1, UNKNOWN: 2})[2:] == ("a",)


def test_limits_of_counted_words():
    counts = {"a": 3, "b": 2, "c": 1}
    assert Vocabulary.from_counts(counts, max_size=1)[2:] == ("a",)
    assert Vocabulary.from_counts(counts, min_count=2)[2:] == ("a", "b")
    assert len(Vocabulary.from_counts({})) == 2
    with pytest.raises(ConfigError, match="min_count is 0"):
        Vocabulary.from_counts(counts, min_count=0)
    with pytest.raises(ConfigError, match="max_size is -1"):
        Vocabulary.from_counts(counts, max_size=-1)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["a", "b", "a"], "id 4: the word 'a' is repeated"),
        (["a", ""], "id 3: the word is empty"),
        (["two words"], "white space"),
        (["line\n"], "white space"),
        (["nul\0"], "NUL"),
        (["\ud800"], "half a character"),
        ([PADDING], "special entry"),
    ],
)
def test_bad_words_are_refused(words, problem):
    with pytest.raises(DataError, match=problem):
        Vocabulary(words)


def test_it_is_an_immutable_sequence():
    vocabulary = Vocabulary(["a", "b"])
    assert (len(vocabulary), vocabulary[2], vocabulary[-1]) == (4, "a", "b")
    assert "a" in vocabulary
    assert "c" not in vocabulary
    assert vocabulary == Vocabulary(["a", "b"])
    assert hash(vocabulary) == hash(Vocabulary(["a", "b"]))
    assert vocabulary != Vocabulary(["b", "a"])


def test_extended_keeps_ids():
    small = Vocabulary(["b", "a"])
    large = small.extended(["c", "a", "c", PADDING])
    assert large[2:] == ("b", "a", "c")
    assert large.ids(["b", "a", "c"]) == [2, 3, 4]
    assert len(small) == 4


def test_ids_are_exact_and_special_names_are_unknown():
    vocabulary = Vocabulary(["film", "Film"])
    assert vocabulary.ids(["Film", "film", "FILM", PADDING, UNKNOWN]) == [3, 2, 1, 1, 1]


def test_lookup_in_and_out_of_graphs():
    import tensorflow as tf

    vocabulary = Vocabulary(["film", "ça", "Film"])
    sentences = [["ça", "Film"], [], [PADDING, "nope", "film"]]
    expected = [[3, 4], [], [1, 1, 2]]
    ragged = tf.ragged.constant(sentences)

    data = tf.data.Dataset.from_tensors(ragged).map(vocabulary.lookup)
    assert next(iter(data)).to_list() == expected

    in_function = tf.function(vocabulary.lookup)(ragged)
    assert in_function.dtype == tf.int32
    assert in_function.to_list() == expected
    assert vocabulary.lookup(tf.constant([["film"], ["x"]])).numpy().tolist() == [[2], [1]]


def test_lookup_in_an_empty_vocabulary():
    import tensorflow as tf

    assert Vocabulary([]).lookup(tf.constant(["a"])).numpy().tolist() == [1]


def test_tensorflow_reads_the_same_ids_from_the_file(tmp_path):
    import tensorflow as tf

    vocabulary = Vocabulary(["film", "ça", "2\u00a01/2", "x\u2028y"])
    path = tmp_path / "words.txt"
    vocabulary.save(path)
    entries = tf.lookup.TextFileInitializer(
        str(path),
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    table = tf.lookup.StaticHashTable(entries, default_value=1)
    assert table.lookup(tf.constant(list(vocabulary))).numpy().tolist() == [0, 1, 2, 3, 4, 5]


@given(words=st.lists(WORDS, unique=True))
def test_saved_and_loaded(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "words.txt"
    vocabulary = Vocabulary(words)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a\nb\n", "line 1: is not <pad>"),
        (b"<pad>\nb\n", "line 2: is not <unk>"),
        (b"<pad>\n", "line 2: is not <unk>"),
        (b"<pad>\n<unk>\na\nb\na\n", "line 5: the word 'a' is on line 3 already"),
        (b"<pad>\n<unk>\na\n\nb\n", "line 4: the word is empty"),
        (b"<pad>\n<unk>\na b\n", "line 3: the word 'a b' has white space"),
        (b"<pad>\r\n<unk>\r\na\r\n", "line 1: is not <pad>"),
        (b"<pad>\n<unk>\na\0\n", "line 3: .*NUL"),
        (b"<pad>\n<unk>\n<pad>\n", "line 3: .*special entry"),
        (b"<pad>\n<unk>\na\n\xe9t\xe9\n", "line 4: is not UTF-8"),
        (b"<pad>\n<unk>\na\nunfini", "line 4: the last line does not end"),
        (b"", "the file is empty"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path, content, problem):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"words\.txt(, |: ){problem}"):
        Vocabulary.load(path)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        Vocabulary.load(tmp_path / "words.txt")
    with pytest.raises(DataError, match="is a directory"):
        Vocabulary.load(tmp_path)
