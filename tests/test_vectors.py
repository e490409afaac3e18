import gzip
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.data.decimals import parse_decimals
from dsa_keras.data.vectors import load_vectors
from dsa_keras.data.vocabulary import PADDING, UNKNOWN, Vocabulary
from dsa_keras.errors import ConfigError, DataError

ROWS = "the 0.1 0.2 0.3\nfilm 1.5 -2.5 3.5\nParis 7.0 8.0 9.0\nparis 4.0 5.0 6.0\n"


@pytest.fixture
def file(tmp_path):
    def write(content=ROWS, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _load(paths, words, **options):
    return load_vectors(paths, words, show_progress=False, **options)


def test_as_written_then_lower_cased(file):
    vectors = _load(file(), ["Film", "Paris", "PARIS", "paris", "nope"])
    expected = [[1.5, -2.5, 3.5], [7, 8, 9], [4, 5, 6], [4, 5, 6]]
    np.testing.assert_array_equal(vectors.matrix[:4], np.array(expected, np.float32))
    assert vectors.matrix.dtype == np.float32
    assert vectors.found.tolist() == [True, True, True, True, False]
    assert vectors.coverage == 0.8
    assert vectors.report.splitlines() == [
        "4 of 5 words found (80.0%), 1 drawn",
        "vectors.txt: 2 words as written, 2 lower-cased",
    ]
    assert vectors.token_coverage([0, 1, 1, 1, 1]) == 0.75


def test_as_written_wins_even_if_it_comes_later(file):
    vectors = _load(file("paris 1.0\nParis 2.0\n"), ["Paris"])
    assert vectors.matrix.tolist() == [[2.0]]
    assert "1 words as written, 0 lower-cased" in vectors.report


def test_the_first_file_that_has_the_word_wins(file):
    first = file("b 1.0\nparis 1.0\n", "first.txt")
    second = file("a 2.0\nb 2.0\nParis 2.0\n", "second.txt")
    vectors = _load([first, second], ["a", "b", "Paris"])
    assert vectors.matrix.tolist() == [[2.0], [1.0], [1.0]]
    assert vectors.report.splitlines()[1:] == [
        "first.txt: 1 words as written, 1 lower-cased",
        "second.txt: 1 words as written, 0 lower-cased",
    ]


def test_the_first_of_two_rows_for_a_word_wins(file):
    assert _load(file("a 1.0\na 2.0\n"), ["a"]).matrix.tolist() == [[1.0]]


def test_repeated_words_all_get_their_vector(file):
    assert _load(file(), ["film", "film"]).found.all()


def test_plain_gz_and_zip_agree(tmp_path, file):
    words = ["film", "Paris", "nope"]
    archive = tmp_path / "vectors.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("vectors.txt", ROWS)
    plain = _load(file(), words).matrix
    np.testing.assert_array_equal(_load(archive, words).matrix, plain)
    packed = file(gzip.compress(ROWS.encode()), "vectors.txt.gz")
    np.testing.assert_array_equal(_load(packed, words).matrix, plain)


def test_words_with_spaces(file):
    path = file(". . . 1.0 2.0 3.0\nat x@y.z 4.0 5.0 6.0\nb 7.0 8.0 9.0\n")
    vectors = _load(path, [". . .", "at x@y.z", "at", "."])
    assert vectors.matrix[:2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert vectors.found.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    "content",
    [
        "2 3\na 1.0 2.0 3.0\nb 4.0 5.0 6.0\n",
        "a 1.0 2.0 3.0 \nb 4.0 5.0 6.0 \n",
        "a 1.0 2.0 3.0\r\nb 4.0 5.0 6.0\r\n",
        "\ufeffa 1.0 2.0 3.0\nb 4.0 5.0 6.0",
        "a 1 2e0 +3.\nb 4.0 .5e1 6.00000000000\n",
    ],
    ids=["header", "trailing space", "CRLF", "BOM and no last line end", "notations"],
)
def test_other_flavours_of_the_format(file, content):
    vectors = _load(file(content), ["a", "b", "2"])
    assert vectors.matrix[:2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert vectors.found.tolist() == [True, True, False]


def test_words_that_are_numbers(file):
    assert _load(file("1 5.0 6.0\n2 7.0 8.0\n"), ["2", "1"]).matrix.tolist() == [[7, 8], [5, 6]]


def test_a_large_file_gives_every_row(tmp_path):
    random = np.random.default_rng(0)
    matrix = random.normal(0, 0.4, (4000, 50)).round(5)
    words = [f"w{row}" if row % 7 else f"wörd . {row}x" for row in range(len(matrix))]
    with (tmp_path / "large.txt").open("w", encoding="utf-8") as file:
        for word, vector in zip(words, matrix.tolist(), strict=True):
            file.write(f"{word} {' '.join(map(str, vector))}\n")
    assert (tmp_path / "large.txt").stat().st_size > 2**20
    vectors = _load(tmp_path / "large.txt", words[::-1])
    np.testing.assert_array_equal(vectors.matrix[::-1], matrix.astype(np.float32))


def test_vocabulary_specials_are_never_looked_up(file):
    path = file("<pad> 1.0\n<unk> 2.0\na 3.0\n")
    vectors = _load(path, Vocabulary(["a"]), oov_range=0.05)
    assert vectors.matrix[0] == 0
    assert 0 < abs(vectors.matrix[1]) <= 0.05
    assert vectors.found.tolist() == [False, False, True]
    assert vectors.coverage == 1.0


def test_drawn_vectors_depend_on_seed_and_word_only(file):
    path = file("a " + " ".join(["0.5"] * 2000) + "\n")
    first = _load(path, ["x", "y"], seed=3, oov_range=0.005).matrix
    again = _load(path, ["z", "y", "x"], seed=3, oov_range=0.005).matrix
    other = _load(path, ["x"], seed=4, oov_range=0.005).matrix
    np.testing.assert_array_equal(first, again[[2, 1]])
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0], first[1])


def test_drawn_vectors_are_uniform(file):
    drawn = _load(file("a " + " ".join(["0.5"] * 20000) + "\n"), ["x"], oov_range=0.05).matrix
    assert np.abs(drawn).max() <= np.float32(0.05)
    counts, _ = np.histogram(drawn, bins=10, range=(-0.05, 0.05))
    # Five standard deviations of a bin that expects 2000 of 20000.
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(1800)


BAD = {
    "too few numbers": (b"b 1.0 2.0\n", "2 numbers instead of 3"),
    "two dimensions": (b"b 1.0 2.0 3.0 4.0 5.0\n", "5 numbers instead of 3"),
    "wrong encoding": (b"\xe9t\xe9 1.0 2.0 3.0\n", "is not UTF-8"),
    "NUL": (b"b\0 1.0 2.0 3.0\n", "NUL byte"),
    "NUL in a number": (b"b 1.0 2\x00.0 3.0\n", "NUL byte"),
    "text": (b"want 1.0 two 3.0\n", "'two' is not a number"),
    "nan": (b"want 1.0 nan 3.0\n", "'nan' is not a number"),
    "overflow": (b"want 1.0 2e99 3.0\n", "'2e99' is not a number"),
    "two spaces": (b"want 1.0  3.0\n", "'' is not a number"),
    "space for a number": (b"want 1.0 3.0 \n", "2 numbers instead of 3"),
    "empty line": (b"\n", "0 numbers instead of 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_stop_the_load_or_are_counted(file, name):
    row, problem = BAD[name]
    path = file(b"a 1.0 2.0 3.0\n" * 3 + row + b"last 1.0 2.0 3.0\n")
    with pytest.raises(DataError, match=rf"vectors\.txt, line 4: .*{problem}"):
        _load(path, ["a", "want", "last"])
    vectors = _load(path, ["a", "want", "last"], on_bad_rows="skip")
    assert vectors.found.tolist() == [True, False, True]
    assert "1 bad rows skipped" in vectors.report


def test_a_short_row_is_not_made_up_for_by_a_word_with_a_space(file):
    with pytest.raises(DataError, match="line 3: 2 numbers instead of 3"):
        _load(file("a 1.0 2.0 3.0\n. b 1.0 2.0 3.0\nc 1.0 2.0\n"), ["a"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        ("a 1.0 2.0\n".encode("utf-16"), "line 1: NUL byte"),
        (b"\n", "line 1: is no row"),
        (b"only words here\n", "line 1: is no row"),
        (b"a 1.0 " + b"2" * 2**21, "a line is over a megabyte long"),
    ],
)
@pytest.mark.parametrize("on_bad_rows", ["error", "skip"])
def test_files_that_are_no_vectors(file, content, problem, on_bad_rows):
    with pytest.raises(DataError, match=rf"vectors\.txt(, |: ){problem}"):
        _load(file(content), ["a"], on_bad_rows=on_bad_rows)


def test_a_file_of_bad_rows_only_is_not_skipped(file):
    with pytest.raises(DataError, match="no usable row"):
        _load(file("2 3\na 1.0\nb 2.0\n"), ["a"], on_bad_rows="skip")


def test_missing_file_and_directory(tmp_path, file):
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        _load([file(), tmp_path / "none.txt"], ["film"])
    with pytest.raises(DataError, match="is a directory"):
        _load(tmp_path, ["film"])


def test_truncated_archive(file):
    data = gzip.compress(ROWS.encode() * 1000)
    path = file(data[: len(data) // 2], "vectors.txt.gz")
    with pytest.raises(DataError, match=r"vectors\.txt\.gz: .*truncated"):
        _load(path, ["film"])


def test_dimensions_must_agree(file):
    with pytest.raises(DataError, match="line 1: has 3 numbers a row, not 300"):
        _load(file(), ["film"], dimension=300)
    other = file("a 1.0\n", "other.txt")
    with pytest.raises(DataError, match=r"other\.txt: has 1 numbers a row, but .* has 3"):
        _load([file(), other], ["film"])


def test_wrong_options(file):
    with pytest.raises(ConfigError, match="on_bad_rows is 'ignore'"):
        _load(file(), ["film"], on_bad_rows="ignore")
    with pytest.raises(ConfigError, match="oov_range is -1"):
        _load(file(), ["film"], oov_range=-1)
    with pytest.raises(ConfigError, match="no vector file"):
        _load([], ["film"])


NUMBERS = st.from_regex(r"-?[0-9]{1,8}\.[0-9]{1,7}", fullmatch=True)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=50))
def test_decimals_are_what_float_gives(numbers):
    parsed = parse_decimals(" ".join(numbers).encode())
    assert parsed is not None
    assert parsed.tolist() == [float(number) for number in numbers]


ODD = st.text(alphabet="0123456789.-+e /:\t", min_size=1, max_size=20)


@given(text=ODD)
def test_decimals_leave_all_else_to_float(text):
    parsed = parse_decimals(text.encode())
    if parsed is not None:
        assert parsed.tolist() == [float(field) for field in text.split(" ")]


@pytest.mark.parametrize(
    "text",
    ["12345678.12345678", "0.:", "?.0", "0./", "-.5", "1.", "+1.0", "1", "1 2.0.0", "1.0  2.0", ""],
)
def test_decimals_of_other_forms_are_left_to_float(text):
    assert parse_decimals(text.encode()) is None


def test_specials_without_a_vocabulary(file):
    assert (_load(file(), [PADDING, UNKNOWN]).matrix[0] == 0).all()
    assert _load(file(), [PADDING, UNKNOWN]).coverage == 0.0
