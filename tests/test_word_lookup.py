"""One way from text to words and ids: training, use and explanations look the same words up."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsa_keras.config import ModelConfig, TrainingConfig
from dsa_keras.data import MAX_WORDS, TOKENIZERS, Vocabulary, tokenize
from dsa_keras.data.word_lookup import Sentences, TokenizedSentences, WordLookup
from tests.runs import small

WORDS = ("dull", "film", "dull?", "?", "\ufffd", "ça", "can", "n't", "電影", ".")
VOCABULARY = Vocabulary(WORDS)
LOOKUPS = {tokenizer: WordLookup(tokenizer, VOCABULARY) for tokenizer in TOKENIZERS}
LOOKUPS_OF_SMALL_LETTERS = {name: WordLookup(name, VOCABULARY, True) for name in TOKENIZERS}

every_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS)

# Any code point, lone surrogates included, and words that are known or special.
TEXTS = st.lists(
    st.text()
    | st.text(st.characters(categories=["Cs", "Ll", "Zs", "Cc"]))
    | st.lists(st.sampled_from((*WORDS, "<pad>", "<unk>", "\ud800", "x"))).map(" ".join)
)
ODD = [
    *(
        "",
        " ",
        "\u3000\n",
        "<pad>",
        "<unk> <pad>",
        "dull\ud800 film",
        "\udcff",
        "\ud83d\ude00 film",
    ),
    *("a\0b", "dull\u2028film", "can't", "dull film", "dull film"),
]


def assert_same(one: Sentences, other: Sentences) -> None:
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    assert (one.ids.dtype, one.offsets.dtype) == (other.ids.dtype, other.offsets.dtype)


def split(sentences: Sentences) -> list[list[int]]:
    """The ids of each sentence."""
    return [row.tolist() for row in np.split(sentences.ids, sentences.offsets[1:-1])]


@every_tokenizer
@given(TEXTS)
@example(ODD)
@example([])
def test_training_and_use_give_the_same_ids(tokenizer, texts):
    assert_same(TokenizedSentences(texts, tokenizer).ids(VOCABULARY), LOOKUPS[tokenizer](texts))


@every_tokenizer
@given(TEXTS)
@example(ODD)
def test_the_words_are_those_that_are_looked_up(tokenizer, texts):
    tokenized = TokenizedSentences(texts, tokenizer)
    words = tokenized.words()
    assert words == [tuple(row) for row in tokenize(texts, tokenizer)]
    found = LOOKUPS[tokenizer](texts)
    assert len(words) == len(found) == len(tokenized) == len(texts)
    flat = [word for row in words for word in row]
    assert VOCABULARY.ids(flat) == found.ids.tolist()
    assert [len(row) for row in words] == found.lengths.tolist()


@every_tokenizer
@given(TEXTS, st.data())
@example(ODD, None)
def test_counts_are_of_the_words_of_the_sentences(tokenizer, texts, data):
    tokenized = TokenizedSentences(texts, tokenizer)
    words = tokenized.words()
    assert tokenized.counts() == Counter(word for row in words for word in row)
    numbers = st.lists(st.integers(0, max(0, len(texts) - 1)))
    which = data.draw(numbers) if data and texts else []
    expected = Counter(word for number in which for word in words[number])
    # As dictionaries: a `Counter` takes a word that is missing for one that occurs 0 times.
    assert dict(tokenized.counts(which)) == dict(expected)
    assert dict(tokenized.counts(np.array(which, int))) == dict(expected)


@every_tokenizer
@given(TEXTS)
@example([*ODD, "DULL Film", "ÇA", "ΣΑΣ İI"])
def test_case_can_be_ignored_by_training_and_use_alike(tokenizer, texts):
    look_up = LOOKUPS_OF_SMALL_LETTERS[tokenizer]
    tokenized = TokenizedSentences(texts, tokenizer, lowercase=True)
    assert_same(tokenized.ids(VOCABULARY), look_up(texts))
    assert not [word for word in tokenized.distinct if re.search("[A-ZÀ-ÖØ-Þ]", word)]
    # Words are split as they are with their capital letters.
    lengths = TokenizedSentences(texts, tokenizer).ids(VOCABULARY).lengths
    np.testing.assert_array_equal(look_up(texts).lengths, lengths)


def test_great_is_great():
    for tokenizer, words in (("ptb", "ca n't dull ."), ("whitespace", "can't dull.")):
        found = TokenizedSentences(["Can't DULL.", "can't dull."], tokenizer, lowercase=True)
        assert found.words() == [tuple(words.split())] * 2
        assert len(TokenizedSentences(["Great", "great"], tokenizer).distinct) == 2


def test_more_sentences_than_are_tokenised_at_a_time():
    texts = [f"film w{number % 700} {'dull ' * (number % 3)}" for number in range(2 * 8192 + 5)]
    vocabulary = Vocabulary(["dull", *(f"w{number}" for number in range(0, 700, 2)), "film"])
    tokenized = TokenizedSentences(texts, "whitespace")
    assert tokenized.words() == [tuple(text.split()) for text in texts]
    ids = tokenized.ids(vocabulary)
    assert_same(ids, WordLookup("whitespace", vocabulary)(texts))
    # By hand: the first of the third chunk, and the last.
    last, chunk = len(texts) - 1, 2 * 8192
    for number in (chunk - 1, chunk, last):
        assert split(ids)[number] == vocabulary.ids(texts[number].split())
    assert tokenized.counts()["film"] == len(texts)
    assert len(tokenized.distinct) == len(set(tokenized.distinct)) == 702


def test_a_text_has_no_more_words_than_the_limit():
    texts = ["film " * (MAX_WORDS + 7), "dull"]
    tokenized = TokenizedSentences(texts, "whitespace")
    assert [len(words) for words in tokenized.words()] == [MAX_WORDS, 1]
    assert_same(tokenized.ids(VOCABULARY), LOOKUPS["whitespace"](texts))


def test_special_names_and_half_characters_are_unknown_words_and_never_padding():
    texts = ["<pad> film <unk>", "\ud800", "dull\ud800 \ufffd"]
    assert split(LOOKUPS["whitespace"](texts)) == [[1, 3, 1], [6], [1, 6]]
    tokenized = TokenizedSentences(texts, "whitespace")
    assert split(tokenized.ids(VOCABULARY)) == [[1, 3, 1], [6], [1, 6]]
    assert tokenized.words()[1:] == [("\ufffd",), ("dull\ufffd", "\ufffd")]


def test_one_tokenisation_serves_many_vocabularies():
    tokenized = TokenizedSentences(["dull film", "film"], "whitespace")
    assert split(tokenized.ids(Vocabulary(["film"]))) == [[1, 2], [2]]
    assert split(tokenized.ids(Vocabulary(["dull", "film"]))) == [[2, 3], [3]]
    assert split(tokenized.ids(Vocabulary([]))) == [[1, 1], [1]]


def test_a_graph_is_traced_once_however_often_sentences_come():
    from dsa_keras.data.word_lookup import _distinct_words

    for number in range(3):
        TokenizedSentences(["a film"] * number, "kim")
    assert _distinct_words("kim", False).experimental_get_tracing_count() == 1


# Sentences


ROWS = st.lists(st.lists(st.integers(1, 99), max_size=5), max_size=6)


def sentences_of(rows) -> Sentences:
    flat = np.array([one for row in rows for one in row], np.int32)
    return Sentences(flat, np.cumsum([0, *map(len, rows)]))


@given(ROWS, st.data())
def test_some_of_the_sentences_in_any_order(rows, data):
    numbers = st.lists(st.integers(0, len(rows) - 1)) if rows else st.just([])
    which = data.draw(numbers)
    found = sentences_of(rows).chosen(np.array(which, int))
    assert [row for row in split(found) if row] == [rows[n] for n in which if rows[n]]
    assert found.lengths.tolist() == [len(rows[number]) for number in which]


@given(ROWS)
def test_padded_rows_end_in_zeros(rows):
    longest = max([1, *map(len, rows)])
    expected = [row + [0] * (longest - len(row)) for row in rows]
    padded = sentences_of(rows).padded()
    assert padded.dtype == np.int32
    assert padded.shape == (len(rows), longest)
    assert padded.tolist() == expected
    if rows:
        assert sentences_of(rows).padded([len(rows) - 1]).tolist() == [rows[-1] or [0]]


# What a model says of such texts


@pytest.fixture(scope="module")
def model():
    """Random weights, and words that tell U+FFFD from a question mark."""
    from dsa_keras.models import Network
    from dsa_keras.runs import RunConfig
    from dsa_keras.sentence_model import SentenceModel
    from dsa_keras.text_encoder import TextEncoder

    config = small(ModelConfig()).replace(vocabulary_size=len(VOCABULARY))
    network = Network(config)
    network.assign_vectors(np.random.default_rng(0).normal(size=(len(VOCABULARY), 8)))
    training = TrainingConfig(tokenizer="ptb")
    encoder = TextEncoder(training.tokenizer, VOCABULARY, network)
    return SentenceModel(encoder, RunConfig("mine", config, training))


@pytest.mark.parametrize("text", ["dull\ud800 film", "\udcff film?", "film \ud83d\ude00", "<pad>"])
def test_an_explanation_is_of_the_vector_that_is_given(model, text):
    one = model.explain(text).traces["sentence"]
    np.testing.assert_allclose(one.vector, model.encode(text), atol=1e-6)
    assert one.words == model.text_encoder.words([text])[0]
    assert one.known == tuple(word in WORDS for word in one.words)


def test_half_characters_are_explained_as_they_are_encoded(model):
    one = model.explain("dull\ud800 film").traces["sentence"]
    assert one.words == ("dull", "\ufffd", "film")
    # With a question mark for the half character the vector is another.
    with_mark = model.encode("dull? film")
    assert np.abs(with_mark - one.vector).max() > 0.01
    np.testing.assert_allclose(one.vector, model.encode("dull\ufffd film"), atol=1e-6)


@given(texts=st.lists(st.text(st.characters(categories=["Cs", "Ll", "Po", "Zs"])), max_size=4))
def test_any_texts_are_explained_as_they_are_encoded(model, texts):
    explained = model.explain(texts)
    vectors = np.array([one.traces["sentence"].vector for one in explained]).reshape(-1, 8)
    np.testing.assert_allclose(vectors, model.encode(texts), atol=1e-5)
