from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import TreebankWordTokenizer
from tensorflow.core.protobuf import saved_model_pb2

from benchmarks import tokenizer_agreement
from dsa_keras.data.tokenizers import TOKENIZERS, tokenize, tokenize_tensor
from dsa_keras.errors import ConfigError, DataError

GOLDEN = Path(__file__).parent / "golden" / "tokenizers"
NLTK = TreebankWordTokenizer()

every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS)
no_deadline = settings(deadline=None)


def golden(name):
    with (GOLDEN / name).open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def words_of(text, tokenizer):
    (words,) = tokenize([text], tokenizer)
    return words


@every_tokenizer
@pytest.mark.parametrize("name", ["ascii.jsonl", "unicode.jsonl"])
def test_golden_files(name, tokenizer):
    rows = golden(name)
    got = tokenize([row["text"] for row in rows], tokenizer)
    for row, words in zip(rows, got, strict=True):
        assert words == row[tokenizer], row["text"]


# --- against other implementations --------------------------------------------

WORDS = [
    "A",
    "man",
    "dogs",
    "dogs'",
    "man's",
    "can't",
    "DON'T",
    "they're",
    "we've",
    "I'm",
    "he'd",
    "She'll",
    "U.S.",
    "Mr.",
    "well-known",
    "3.5",
    "1990s",
    "$5",
    "50%",
    "cannot",
    "Cannot",
    "gonna",
    "wanna",
    "more'n",
    "AT&T",
    "O'Neil",
    "(two",
    "[three]",
    "--",
    "...",
    ";",
    "!",
    "?",
    "'so",
    "x/y",
    '"quoted"',
    '"Two',
    'words"',
]
SENTENCE = st.builds(
    lambda phrases, end: ", ".join(map(" ".join, phrases)) + end,
    st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=3),
    st.sampled_from([".", "", "!", '."', ".)", " .", "...", ".'"]),
)
PIECES = [
    "n't",
    "'s",
    "'ll",
    "'re",
    "'ve",
    "N'T",
    "gonna",
    "CANNOT",
    "cannot",
    "d'ye",
    "'tis",
    "wanna",
    "more'n",
    "...",
    "--",
    "a",
    "b",
    ".",
    ",",
    "'",
    '"',
    "`",
    "-",
    "(",
    ")",
    "?",
    "!",
    ":",
    ";",
    "&",
    "$",
    "s",
    "5",
    "<",
    "]",
]
FRAGMENTS = st.lists(st.sampled_from([*PIECES, *["  "] * 5]), max_size=14).map("".join)


def test_ptb_gives_the_words_of_nltk_on_the_golden_texts():
    unexplained = tokenizer_agreement.UNEXPLAINED
    texts = [row["text"] for row in golden("ascii.jsonl")]
    texts = [text for text in texts if tokenizer_agreement.kind_of(text) == unexplained]
    assert len(texts) >= 35
    assert tokenizer_agreement.differences(texts) == {}


@no_deadline
@given(SENTENCE)
def test_ptb_gives_the_words_of_nltk_on_plain_sentences(sentence):
    assume("''" not in sentence)
    assert words_of(sentence, "ptb") == NLTK.tokenize(sentence)


@settings(deadline=None, max_examples=300)
@given(FRAGMENTS)
def test_ptb_differs_from_nltk_for_known_reasons_only(text):
    if words_of(text, "ptb") != NLTK.tokenize(text):
        assert tokenizer_agreement.kind_of(text) != tokenizer_agreement.UNEXPLAINED


@no_deadline
@given(st.text(st.characters(max_codepoint=127)))
@example("It's a \"GREAT\" film (really!), isn't it? `yes`\x00\x1f\x7f\v")
def test_kim_is_the_published_rule_on_ascii(text):
    cleaned = re.sub(r"[^A-Za-z0-9(),!?'`]", " ", text)
    assert words_of(text, "kim") == re.sub(r"\s{2,}", " ", cleaned).strip().lower().split()


@no_deadline
@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs"))))
def test_whitespace_is_str_split(text):
    assert words_of(text, "whitespace") == text.split()


# --- for any text -------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=("Cn",))) | FRAGMENTS


@every_tokenizer
@no_deadline
@given(text=ANY_TEXT)
def test_a_word_is_never_empty_and_holds_no_white_space(tokenizer, text):
    for word in words_of(text, tokenizer):
        assert word.split() == [word]
        assert word.splitlines() == [word]
        assert not any(unicodedata.category(c) == "Cc" for c in word)


@pytest.mark.parametrize("tokenizer", ["kim", "whitespace"])
@no_deadline
@given(text=ANY_TEXT)
def test_tokenising_words_again_changes_nothing(tokenizer, text):
    words = words_of(text, tokenizer)
    assert words_of(" ".join(words), tokenizer) == words


@no_deadline
@given(SENTENCE)
def test_tokenising_a_ptb_sentence_again_changes_nothing(sentence):
    words = words_of(sentence, "ptb")
    assert words_of(" ".join(words), "ptb") == words


REWRITTEN = frozenset("'\"`.-‘’‚‛´“„‟”…–—―‐‑")  # noqa: RUF001
CLEANED_BY_KIM = frozenset(map(chr, range(128))) - frozenset(
    "(),!?0123456789abcdefghijklmnopqrstuvwxyz"
)


def visible(text, hidden=frozenset()):
    """What must survive: all but white space, control and format characters and `hidden`."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return "".join(
        c
        for c in text.casefold()
        if c not in hidden and unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Zl", "Zp")
    )


@pytest.mark.parametrize(
    ("tokenizer", "hidden"),
    [("ptb", REWRITTEN), ("kim", REWRITTEN | CLEANED_BY_KIM), ("whitespace", frozenset())],
)
@no_deadline
@given(text=ANY_TEXT)
@example(text="café ПРИВЕТ 你好。😀👨\u200d👩\u200d👧\ud800 €5 «x» ½")
def test_nothing_visible_vanishes(tokenizer, hidden, text):
    # Two lone surrogates side by side may be one character.
    assume(not re.search("[\ud800-\udbff][\udc00-\udfff]", text))
    assert visible("".join(words_of(text, tokenizer)), hidden) == visible(text, hidden)


# --- inside TensorFlow --------------------------------------------------------


@every_tokenizer
def test_no_texts_and_texts_without_words(tokenizer):
    assert tokenize([], tokenizer) == []
    assert tokenize(["", " \n\u3000", "a", ""], tokenizer) == [[], [], ["a"], []]
    empty = tokenize_tensor(tf.constant([], tf.string), tokenizer)
    assert empty.shape.as_list() == [0, None]
    assert empty.dtype == tf.string


@pytest.mark.parametrize(
    ("tokenizer", "words"),
    [
        ("ptb", ["caf", "\ufffd", "is", "ok", "."]),
        ("kim", ["caf", "\ufffd", "is", "ok"]),
        ("whitespace", ["caf\ufffd", "is", "ok."]),
    ],
)
def test_bytes_that_are_not_utf8_and_nul(tokenizer, words):
    ragged = tokenize_tensor(tf.constant([b"caf\xe9 is\x00ok."]), tokenizer)
    assert [word.decode() for word in ragged.to_list()[0]] == words


@every_tokenizer
def test_a_lone_surrogate_is_one_replacement_character(tokenizer):
    assert words_of("x \ud800 y \udc00\ud800", tokenizer)[1] == "\ufffd"
    assert "".join(words_of("x \ud800 y \udc00\ud800", tokenizer)) == "x\ufffdy\ufffd\ufffd"


@every_tokenizer
def test_a_text_of_a_hundred_thousand_words(tokenizer):
    assert words_of("isn't it, " * 50_000, tokenizer)[-2:] == (
        ["it", ","] if tokenizer == "ptb" else ["isn't", "it,"]
    )
    assert words_of("a" * 1_000_000, tokenizer) == ["a" * 1_000_000]


def test_texts_beyond_one_chunk_keep_their_order():
    texts = [f"Number {i}." for i in range(10_000)]
    assert tokenize(texts) == [["Number", str(i), "."] for i in range(10_000)]


@every_tokenizer
def test_the_same_words_in_a_data_pipeline_and_in_a_saved_model(tokenizer, tmp_path):
    texts = [row["text"] for row in golden("ascii.jsonl") + golden("unicode.jsonl")]
    expected = tokenize(texts, tokenizer)

    pipeline = tf.data.Dataset.from_tensor_slices(texts).batch(7)
    pipeline = pipeline.map(lambda batch: tokenize_tensor(batch, tokenizer))
    rows = [row for batch in pipeline for row in batch.to_list()]
    assert [[word.decode() for word in row] for row in rows] == expected

    module = tf.Module()
    module.serve = tf.function(
        lambda texts: {"words": tokenize_tensor(texts, tokenizer).to_tensor()},
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.serve)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](tf.constant(texts))
    rows = served["words"].numpy().tolist()
    assert [[word.decode() for word in row if word] for row in rows] == expected

    saved = saved_model_pb2.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes())
    functions = saved.meta_graphs[0].graph_def.library.function
    operations = {node.op for function in functions for node in function.node_def}
    assert "StringSplitV2" in operations
    assert not {op for op in operations if "PyFunc" in op or ">" in op}


def run_python(code, **environment):
    # Python itself must read and write UTF-8 whatever the locale.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUTF8": "1", **environment}
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_lower_case_does_not_follow_the_locale():
    code = "from dsa_keras.data.tokenizers import tokenize\nprint(tokenize(['I İI IT'], 'kim')[0])"
    assert run_python(code, LC_ALL="tr_TR.UTF-8").strip() == str(["i", "i\u0307i", "it"])


def test_the_names_are_known_without_tensorflow():
    code = (
        "import sys; from dsa_keras.data.tokenizers import TOKENIZERS as t; print(t, sys.modules)"
    )
    names, _, modules = run_python(code).partition(")")
    assert names == "('ptb', 'kim', 'whitespace'"
    assert "'tensorflow'" not in modules


# --- mistakes -----------------------------------------------------------------


@pytest.mark.parametrize(("wrong", "near"), [("ptbb", "ptb"), ("Kim", "kim"), ("white", "whitesp")])
def test_an_unknown_tokenizer_is_refused_with_the_nearest_name(wrong, near):
    with pytest.raises(ConfigError, match=f"no tokenizer '{wrong}'.*Did you mean '{near}"):
        tokenize(["a"], wrong)
    with pytest.raises(ConfigError, match="ptb, kim, whitespace"):
        tokenize_tensor(tf.constant(["a"]), "zzz")


@pytest.mark.parametrize("text", ["one text", b"one text"])
def test_a_lone_text_is_refused(text):
    with pytest.raises(ConfigError, match=r"texts: .*not one (str|bytes)\. .*\[text\]"):
        tokenize(text)


@pytest.mark.parametrize("missing", [None, 3, b"x", float("nan")])
def test_what_is_not_text_is_refused_with_its_place(missing):
    with pytest.raises(ConfigError, match=r"texts\[5000\]: expected str, not"):
        tokenize([*["a"] * 5000, missing])


@pytest.mark.parametrize("texts", ["a", [["a"]]])
def test_a_tensor_of_another_rank_is_refused(texts):
    with pytest.raises(ConfigError, match=r"not \(batch,\)"):
        tokenize_tensor(tf.constant(texts), "ptb")


# --- the agreement on SNLI ----------------------------------------------------


def write_snli(folder, split, sentences):
    path = folder / "snli_1.0" / f"snli_1.0_{split}.jsonl"
    path.parent.mkdir(exist_ok=True)
    rows = ({"sentence1": a, "sentence2": b} for a, b in sentences)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_agreement_report(tmp_path, capsys):
    write_snli(tmp_path, "dev", [("A man can't sleep.", "He sleeps .")])
    write_snli(tmp_path, "train", [("It is 7:00 now.", "It is late.")])
    assert tokenizer_agreement.main(["--data-dir", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "dev: 100.0000% identical (0 of 2 differ)" in out
    assert "train: 50.0000% identical (1 of 2 differ)" in out
    assert "1 x comma or colon before a digit" in out
    assert "ptb  It is 7 : 00 now ." in out
    assert "NLTK It is 7:00 now ." in out
    write_snli(tmp_path, "train", [("It is late.", "It is late.")])
    assert tokenizer_agreement.main(["--data-dir", str(tmp_path)]) == 0


def test_the_agreement_report_names_a_bad_file(tmp_path, capsys):
    assert tokenizer_agreement.main(["--data-dir", str(tmp_path)]) == 2
    assert "snli_1.0_dev.jsonl: cannot be read" in capsys.readouterr().err
    path = write_snli(tmp_path, "dev", [("a", "b")])
    path.write_text(path.read_text() + '{"sentence1": "a"}\n')
    with pytest.raises(DataError, match="line 2: not a JSON object"):
        tokenizer_agreement.read_sentences(tmp_path, "dev")


@pytest.mark.parametrize("split", ["dev", "train"])
@pytest.mark.skipif(
    "DSA_DATA_DIR" not in os.environ, reason="DSA_DATA_DIR names no folder with snli_1.0/"
)
def test_agreement_with_nltk_on_snli(split):
    sentences = tokenizer_agreement.read_sentences(Path(os.environ["DSA_DATA_DIR"]), split)
    found = tokenizer_agreement.differences(sentences)
    different = [sentence for sentence in sentences if sentence in found]
    assert 1 - len(different) / len(sentences) >= tokenizer_agreement.REQUIRED
    kinds = {tokenizer_agreement.kind_of(sentence) for sentence in different}
    assert tokenizer_agreement.UNEXPLAINED not in kinds
