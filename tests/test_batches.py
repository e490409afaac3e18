"""Packed batches: nothing lost, nothing twice, labels with their sentences, orders that repeat."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from dsa_keras.config import TrainingConfig
from dsa_keras.data.batches import Prepared, num_batches, pack, packed_batches
from dsa_keras.data.vocabulary import Vocabulary
from dsa_keras.data.word_lookup import Sentences, TokenizedSentences, WordLookup
from dsa_keras.datasets import Dataset, Split
from dsa_keras.inputs import PAIR, SENTENCE
from dsa_keras.objectives.classification import Classification
from dsa_keras.training.task_data import prepare_splits

WORDS = [f"w{number}" for number in range(20)]
VOCABULARY = Vocabulary(WORDS)


def prepared_of(split):
    """A split as the numbers that train."""
    names = tuple(map(str, range(max(2, 1 + int(split.targets.max())))))
    dataset = Dataset("tests", {"train": split, "dev": split}, Classification(class_names=names))
    return prepare_splits(dataset, TrainingConfig(tokenizer="whitespace"), VOCABULARY)["train"]


def sentences_of(inputs):
    """The word ids of each segment of a packed batch, in the order of the segments."""
    words, segments = inputs["word_ids"].numpy()[0], inputs["segment_ids"].numpy()[0]
    return {
        int(segment): tuple(words[segments == segment].tolist()) for segment in set(segments) - {0}
    }


def examples_of(batch):
    """The (sentence or sentences, label) of each example of a packed batch."""
    inputs, labels = batch
    found = sentences_of(inputs)
    examples = []
    for index, label in zip(inputs["index"].numpy(), labels.numpy(), strict=True):
        words = tuple(found.get(int(one) + 1, ()) for one in np.atleast_1d(index))
        examples.append((words, int(label)))
    return examples


def ids_of(text):
    return tuple((text,) if isinstance(text, str) else text)


def expected_examples(split):
    return [
        (tuple(tuple(VOCABULARY.ids(s.split())) for s in ids_of(text)), int(label))
        for text, label in zip(split.texts, split.targets, strict=True)
    ]


def make_split(rng, examples, pair):
    def sentence():
        return " ".join(rng.choice(WORDS, rng.integers(0, 7)))

    texts = [(sentence(), sentence()) if pair else sentence() for _ in range(examples)]
    return Split(texts, np.arange(examples, dtype=np.int32) % 5)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(("examples", "batch_size"), [(1, 4), (37, 8), (64, 16), (10, 100)])
def test_every_example_comes_once_with_its_label(pair, examples, batch_size):
    split = make_split(np.random.default_rng(examples), examples, pair)
    prepared = prepared_of(split)
    ordered = list(packed_batches(prepared, batch_size))
    seen = [example for batch in ordered for example in examples_of(batch)]
    assert seen == expected_examples(split)
    shuffled = packed_batches(prepared, batch_size, seed=3)
    again = [example for batch in shuffled for example in examples_of(batch)]
    assert sorted(again) == sorted(seen)
    sizes = [len(labels) for _, labels in ordered]
    assert len(sizes) == num_batches(examples, batch_size) == len(list(shuffled))
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1


def test_rows_are_full_up_to_the_next_multiple():
    split = make_split(np.random.default_rng(0), 40, pair=False)
    prepared = prepared_of(split)
    for inputs, _ in packed_batches(prepared, 8):
        segments = inputs["segment_ids"].numpy()[0]
        assert segments.shape[0] % 32 == 0
        assert 0 <= np.count_nonzero(segments == 0) < 32
        np.testing.assert_array_equal(segments > 0, inputs["word_ids"].numpy()[0] > 0)


def orders(prepared, **options):
    return [labels.numpy().tolist() for _, labels in packed_batches(prepared, 8, **options)]


def test_order_depends_on_seed_and_epoch_only():
    split = Split(["a"] * 50, np.arange(50, dtype=np.int32))
    prepared = prepared_of(split)
    epoch = tf.Variable(0)
    pipeline = packed_batches(prepared, 8, seed=1, epoch=epoch)
    by_epoch = []
    for number in range(3):
        epoch.assign(number)
        by_epoch.append([labels.numpy().tolist() for _, labels in pipeline])
    assert by_epoch[0] != by_epoch[1] != by_epoch[2]
    # A pipeline that starts at epoch 2, as after a stop, has the order of epoch 2.
    assert orders(prepared, seed=1, epoch=2) == by_epoch[2]
    assert orders(prepared, seed=2, epoch=2) != by_epoch[2]
    assert orders(prepared) == [list(range(*np.array([n, n + 1]) * 50 // 7)) for n in range(7)]


def test_order_does_not_depend_on_the_global_seed():
    prepared = prepared_of(Split(["a"] * 50, np.arange(50, dtype=np.int32)))
    tf.random.set_seed(1)
    first = orders(prepared, seed=1)
    tf.random.set_seed(2)
    assert orders(prepared, seed=1) == first


def test_distinct_sentences_are_encoded_once():
    texts = [("w1 w2", "w3"), ("w1 w2", "w4"), ("w3", "w1 w2")]
    prepared = prepared_of(Split(texts, np.zeros(3, np.int32)))
    assert len(prepared.sentences) == 3
    [(inputs, _)] = packed_batches(prepared, 3, length_multiple=1)
    assert len(sentences_of(inputs)) == 3
    np.testing.assert_array_equal(inputs["index"], [[0, 1], [0, 2], [1, 0]])
    assert prepared.num_words == 9  # a sentence counts for every example


def test_groups_deal_out_each_batch():
    prepared = prepared_of(make_split(np.random.default_rng(5), 40, pair=False))
    whole = list(packed_batches(prepared, 20, seed=1))
    halves = list(packed_batches(prepared, 20, seed=1, groups=2))
    assert len(halves) == 2 * len(whole)
    for number, batch in enumerate(whole):
        parts = examples_of(halves[2 * number]) + examples_of(halves[2 * number + 1])
        assert parts == examples_of(batch)


def test_pack_by_hand():
    packed = pack(tf.ragged.constant([[7, 8], [9]], dtype=tf.int32), length_multiple=4)
    assert packed["word_ids"].numpy().tolist() == [[7, 8, 9, 0]]
    assert packed["segment_ids"].numpy().tolist() == [[1, 1, 2, 0]]


def test_pack_keeps_the_number_of_an_empty_sentence():
    packed = pack(tf.ragged.constant([[7], [], [9]], dtype=tf.int32))
    assert packed["word_ids"].numpy().tolist() == [[7, 9]]
    assert packed["segment_ids"].numpy().tolist() == [[1, 3]]


def test_pack_of_nothing_has_a_position():
    packed = pack(tf.ragged.constant([[], []], dtype=tf.int32))
    assert packed["word_ids"].numpy().tolist() == [[0]]
    assert packed["segment_ids"].numpy().tolist() == [[0]]


@given(
    st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=6),
    st.integers(1, 8),
)
def test_packed_sentences_can_be_read_back(sentences, multiple):
    packed = pack(tf.ragged.constant(sentences, tf.int32, ragged_rank=1), multiple)
    found = sentences_of(packed)
    assert [list(found.get(number + 1, ())) for number in range(len(sentences))] == sentences
    assert packed["word_ids"].shape[1] % multiple == 0


def test_distinct_keeps_the_order_of_appearance():
    sentences, index = SENTENCE.distinct(["b", "a", "b", "c"])
    assert sentences == ["b", "a", "c"]
    assert index.tolist() == [0, 1, 0, 2]
    sentences, index = PAIR.distinct([("b", "a"), ("a", "a")])
    assert sentences == ["b", "a"]
    assert index.tolist() == [[0, 1], [1, 1]]
    assert SENTENCE.distinct([])[1].shape == (0,)
    assert PAIR.distinct([])[1].shape == (0, 2)


def test_look_up_knows_words_and_empty_sentences():
    found = WordLookup("whitespace", VOCABULARY)(["w1 nobody", "", "w0"])
    assert found.ids.tolist() == [3, 1, 2]
    assert found.lengths.tolist() == [2, 0, 1]
    assert len(WordLookup("whitespace", VOCABULARY)([])) == 0


def test_padded_rows():
    sentences = Sentences(np.array([5, 6, 7], np.int32), np.array([0, 2, 2, 3]))
    assert sentences.padded([2, 0]).tolist() == [[7, 0], [5, 6]]
    assert sentences.padded([1]).tolist() == [[0]]


def test_counts_of_words():
    def counts(sentences, *which):
        return TokenizedSentences(sentences, "whitespace").counts(*which)

    assert counts(["a b", "b", ""]) == {"a": 1, "b": 2}
    assert counts(["a b", "b", ""], [1, 2]) == {"b": 1}
    # More than one chunk of the pipeline.
    assert counts(["a b"] * 10_000) == {"a": 10_000, "b": 10_000}


def test_a_batch_may_have_no_word_at_all():
    prepared = Prepared(
        Sentences(np.zeros(0, np.int32), np.zeros(3, np.int64)),
        np.array([0, 1], np.int32),
        np.array([1, 0], np.int32),
    )
    [(inputs, labels)] = packed_batches(prepared, 2)
    assert inputs["word_ids"].numpy().sum() == 0
    assert inputs["index"].numpy().tolist() == [0, 1]
    assert labels.numpy().tolist() == [1, 0]
