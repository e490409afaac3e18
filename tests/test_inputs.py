"""What a model takes, one sentence or two: every form of it that people and files have."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsa_keras.errors import ConfigError, DataError
from dsa_keras.inputs import PAIR, SENTENCE, Inputs

both = pytest.mark.parametrize("inputs", [SENTENCE, PAIR], ids=["sentence", "pair"])
PAIRS = st.tuples(st.text(), st.text())


def test_what_each_is():
    assert (SENTENCE.count, SENTENCE.is_pair, SENTENCE.looked_at) == (1, False, 0)
    assert (PAIR.count, PAIR.is_pair, PAIR.looked_at) == (2, True, 1)
    assert SENTENCE.names == ("sentence",)
    assert PAIR.names == ("premise", "hypothesis")


@both
def test_names_belong_together(inputs):
    for names in (inputs.names, inputs.signature, inputs.ids, inputs.prefixes):
        assert len(set(names)) == len(names) == inputs.count


# One text or many


@both
def test_the_round_trip_of_json(inputs):
    assert Inputs.from_json(json.loads(json.dumps(inputs.to_json()))) is inputs


@pytest.mark.parametrize("names", [[], ["text"], ["hypothesis", "premise"], "sentence", None, {}])
def test_inputs_that_are_not_known(names):
    with pytest.raises(ConfigError, match="inputs must be one of"):
        Inputs.from_json(names)


@given(st.text())
def test_a_sentence_is_one_text(sentence):
    assert SENTENCE.is_one(sentence)
    assert SENTENCE.is_one(np.array([sentence + "x"])[0])
    assert not SENTENCE.is_one([sentence])
    assert not SENTENCE.is_one((sentence,))
    assert not PAIR.is_one(sentence)


@given(PAIRS)
def test_a_tuple_of_two_is_one_pair(pair):
    assert PAIR.is_one(pair)
    # A list of two is many texts, as of any length.
    assert not PAIR.is_one(list(pair))
    assert not PAIR.is_one((*pair, "c"))
    assert not PAIR.is_one([pair])
    assert not SENTENCE.is_one(pair)


@pytest.mark.parametrize("value", [None, 5, ("a", 5), (None, "b"), b"ab", ("a",), ()])
def test_what_is_no_text_is_not_one(value):
    assert not SENTENCE.is_one(value)
    assert not PAIR.is_one(value)


@given(st.text(), st.text())
def test_a_text_is_its_sentences(first, second):
    for inputs, sentences in ((SENTENCE, (first,)), (PAIR, (first, second))):
        assert inputs.sentences(inputs.text(sentences)) == sentences
        assert inputs.is_one(inputs.text(list(sentences)))


# Checked


# NumPy cuts NULs from the end of a string.
@given(st.lists(st.text(st.characters(exclude_characters="\0"))))
def test_sentences_in_any_form(sentences):
    for form in (sentences, tuple(sentences), np.array(sentences, str), iter(sentences)):
        assert SENTENCE.checked(form) == sentences
    assert SENTENCE.checked(sentence for sentence in sentences) == sentences
    assert SENTENCE.checked(np.array(sentences, object)) == sentences


@given(st.lists(PAIRS))
@example([("a", "b")])
@example([("a", "b"), ("c", "d")])
def test_pairs_in_any_form(pairs):
    lists = [list(pair) for pair in pairs]
    for form in (pairs, tuple(pairs), lists, iter(pairs), map(list, pairs)):
        found = PAIR.checked(form)
        assert found == pairs
        assert all(type(pair) is tuple for pair in found)


def test_pairs_in_an_array():
    found = PAIR.checked(np.array([["a", "b"], ["c", "d"], ["e", "f"]]))
    assert found == [("a", "b"), ("c", "d"), ("e", "f")]
    assert all(isinstance(part, str) for pair in found for part in pair)
    assert PAIR.checked(np.array([["a", None]], object)[:0]) == []


@both
def test_nothing_is_a_list_of_nothing(inputs):
    for form in ([], (), np.array([], str), iter(())):
        assert inputs.checked(form) == []


@both
@pytest.mark.parametrize("value", [None, 5, 1.5, b"text", {"text": "a"}, ["a"], ("a", "b", "c")])
def test_what_is_no_text_is_refused_with_its_number(inputs, value):
    good = "a" if inputs is SENTENCE else ("a", "b")
    with pytest.raises(ConfigError, match=r"^text 2 is not a .*Received: .*Give a list of"):
        inputs.checked([good, good, value])


def test_each_refuses_what_the_other_takes():
    with pytest.raises(ConfigError, match=r"text 0 is not a sentence \(str\)\. Received: \('a',"):
        SENTENCE.checked([("a", "b")])
    with pytest.raises(ConfigError, match=r"text 0 is not a pair of sentences, .*Received: 'ab'"):
        PAIR.checked(["ab"])
    with pytest.raises(ConfigError, match="text 0 is not a pair"):
        PAIR.checked(("a", "b"))
    with pytest.raises(ConfigError, match="text 0 is not a pair"):
        PAIR.checked([("a", 5)])


def test_a_long_value_is_not_told_in_full():
    with pytest.raises(ConfigError) as caught:
        PAIR.checked(["word " * 1000])
    assert len(str(caught.value)) < 200


@both
@pytest.mark.parametrize("value", ["a film", "", None, 5])
def test_one_text_is_not_many(inputs, value):
    with pytest.raises(ConfigError, match=f"must be a list, not one {type(value).__name__}"):
        inputs.checked(value)


# Distinct


@given(st.lists(st.sampled_from(["a", "b", "c", ""])))
def test_distinct_sentences_in_order_of_appearance(texts):
    sentences, index = SENTENCE.distinct(texts)
    assert sentences == list(dict.fromkeys(texts))
    assert index.dtype == np.int32
    assert index.shape == (len(texts),)
    assert [sentences[number] for number in index] == texts


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("bcd"))))
def test_distinct_sentences_of_pairs(texts):
    sentences, index = PAIR.distinct(texts)
    assert sentences == list(dict.fromkeys(one for pair in texts for one in pair))
    assert index.shape == (len(texts), 2)
    assert [(sentences[first], sentences[second]) for first, second in index] == texts


# Lines and arguments


@given(st.text(st.characters(exclude_characters="\n\r")))
def test_a_line_is_a_sentence_tabs_included(line):
    assert SENTENCE.from_line(line, 1, "file") == line


@given(PAIRS.filter(lambda pair: "\t" not in "".join(pair)))
def test_a_line_with_a_tab_is_a_pair(pair):
    assert PAIR.from_line("\t".join(pair), 1, "file") == pair


@pytest.mark.parametrize(
    ("line", "problem"), [("a", "1 sentence"), ("a\tb\tc", "3 sentences"), ("", "1 sentence")]
)
def test_other_lines_are_refused_where_they_stand(line, problem):
    with pytest.raises(DataError, match=rf"^words\.txt, line 7: {problem} where .*takes two"):
        PAIR.from_line(line, 7, "words.txt")


@given(st.lists(st.text(), max_size=9))
def test_arguments_are_taken_one_by_one_or_in_twos(arguments):
    assert SENTENCE.from_arguments(arguments) == arguments
    if len(arguments) % 2:
        with pytest.raises(ConfigError, match=f"{len(arguments)} sentences, but .*takes pairs"):
            PAIR.from_arguments(arguments)
    else:
        pairs = PAIR.from_arguments(arguments)
        assert [one for pair in pairs for one in pair] == arguments
        assert PAIR.checked(pairs) == pairs


@both
def test_the_examples_are_what_it_takes(inputs):
    import ast
    import shlex

    assert len(inputs.from_arguments(shlex.split(inputs.example_arguments))) == 1
    assert len(inputs.checked(ast.literal_eval(inputs.example_python))) == 1


# By name


def test_columns_of_an_exported_model():
    assert SENTENCE.columns(["a", "b"]) == {"text": ["a", "b"]}
    assert PAIR.columns([("a", "b"), ("c", "d")]) == {
        "premise": ["a", "c"],
        "hypothesis": ["b", "d"],
    }
    assert PAIR.columns([]) == {"premise": [], "hypothesis": []}


def test_values_by_prefix():
    assert SENTENCE.by_prefix([5]) == {"": 5}
    assert PAIR.by_prefix([5, 6]) == {"premise_": 5, "hypothesis_": 6}
    assert PAIR.by_prefix({"premise": 5, "hypothesis": 6}) == {"premise_": 5, "hypothesis_": 6}
    with pytest.raises(ValueError, match="zip"):
        PAIR.by_prefix([5])
