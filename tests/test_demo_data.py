"""The generated data sets: reproducible, balanced, honest splits, and no shortcut to the label."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from dsa_keras.datasets.demo_captions import CONTRADICTION, ENTAILMENT, NEUTRAL
from dsa_keras.datasets.demo_grammar import is_held_out
from dsa_keras.datasets.demo_nli import demo_nli
from dsa_keras.datasets.demo_sentiment import demo_sentiment
from dsa_keras.datasets.demo_splits import MIN_SIZE
from dsa_keras.errors import ConfigError
from dsa_keras.inputs import PAIR, SENTENCE

OPERATORS = {
    "not",
    "never",
    "hardly",
    "scarcely",
    "no",
    "without",
    "lacks",
    "less",
    "neither",
    "nothing",
    "nobody",
    "anything",
    "far",
}
CONTRASTS = {"but", "yet", "although", "while", "though", "despite"}

DIGESTS = {
    "demo-sentiment": "a93e329cc82dc6f8",
    "demo-nli": "4dd83a98139771c1",
}


@pytest.fixture(scope="module")
def reviews():
    return demo_sentiment()


@pytest.fixture(scope="module")
def pairs():
    return demo_nli()


@pytest.fixture(params=["reviews", "pairs"])
def data(request):
    return request.getfixturevalue(request.param)


def digest(data):
    rows = {
        name: [list(split.texts), split.targets.tolist(), list(split.decisive)]
        for name, split in data.splits.items()
    }
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


def sentences(split):
    """Every sentence of a split, premises and hypotheses alike."""
    return [
        text for texts in split.texts for text in ([texts] if isinstance(texts, str) else texts)
    ]


def words_met(split):
    """Every ordered pair of words that meets in one sentence of the split."""
    return {
        (first, second)
        for words in map(str.split, sentences(split))
        for first in words
        for second in words
    }


def naive_bayes_accuracy(train, train_labels, test, test_labels):
    """Accuracy of a bag-of-words naive Bayes classifier with add-one smoothing."""
    classes = sorted(set(train_labels))
    counts = {label: Counter() for label in classes}
    for text, label in zip(train, train_labels, strict=True):
        counts[label].update(set(text.split()))
    sizes = Counter(train_labels)

    def score(text, label):
        return sum(
            math.log((counts[label][word] + 1) / (sizes[label] + 2)) for word in set(text.split())
        )

    guesses = [max(classes, key=lambda label, text=text: score(text, label)) for text in test]
    return float(np.mean(np.array(guesses) == test_labels))


def test_the_data_never_change_unnoticed(data):
    assert digest(data) == DIGESTS[data.name]


def test_another_process_with_another_hash_seed_generates_the_same(data):
    program = (
        "from dsa_keras.datasets.demo_nli import demo_nli\n"
        "from dsa_keras.datasets.demo_sentiment import demo_sentiment\n"
        "for data in demo_sentiment(size=300), demo_nli(size=300):\n"
        "    print(data['test'].texts, data['train'].decisive)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop()


def test_another_seed_generates_other_sentences():
    assert (
        demo_sentiment(size=300, seed=1)["train"].texts != demo_sentiment(size=300)["train"].texts
    )
    assert demo_nli(size=300, seed=1)["train"].texts != demo_nli(size=300)["train"].texts


@pytest.mark.parametrize("make", [demo_sentiment, demo_nli])
@pytest.mark.parametrize("size", [150, 213, 999])
def test_sizes_are_honoured(make, size):
    splits = make(size=size).splits
    assert list(splits) == ["train", "dev", "test"]
    assert sum(map(len, splits.values())) == size
    for name, share in (("train", 0.8), ("dev", 0.1), ("test", 0.1)):
        assert abs(len(splits[name]) - share * size) < 7
        assert len(splits[name].targets) == len(splits[name].decisive) == len(splits[name])


@pytest.mark.parametrize("make", [demo_sentiment, demo_nli])
@pytest.mark.parametrize("size", [-3, 0, MIN_SIZE - 3])
def test_a_size_too_small_is_refused(make, size):
    with pytest.raises(ConfigError, match=f"at least {MIN_SIZE}"):
        make(size=size)


def test_pairs_come_in_threes():
    with pytest.raises(ConfigError, match="Use 999 or 1002"):
        demo_nli(size=1000)


def test_classes_and_kinds(reviews, pairs):
    assert reviews.objective.class_names == ("negative", "positive")
    assert reviews.inputs is SENTENCE
    assert pairs.objective.class_names == ("entailment", "neutral", "contradiction")
    assert pairs.inputs is PAIR
    assert pairs["train"].targets.dtype == reviews["train"].targets.dtype == np.int32


def test_labels_are_balanced(data):
    for split in data.splits.values():
        shares = np.bincount(split.targets, minlength=len(data.objective.class_names)) / len(split)
        np.testing.assert_allclose(shares, 1 / len(data.objective.class_names), atol=0.005)


def test_words_are_plain_for_every_tokeniser(data):
    for split in data.splits.values():
        for text in sentences(split):
            assert text == " ".join(text.split())
            assert all(word.isascii() and (word.islower() or word in ",!") for word in text.split())


def test_no_sentence_twice_and_no_premise_in_two_splits(reviews, pairs):
    everything = [text for split in reviews.splits.values() for text in split.texts]
    assert len(set(everything)) == len(everything)
    premises = {name: {text[0] for text in split.texts} for name, split in pairs.splits.items()}
    assert len(set.union(*premises.values())) == sum(map(len, premises.values()))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("make", [demo_sentiment, demo_nli])
def test_every_test_word_occurs_in_train_even_in_the_smallest_set(make, seed):
    assert_no_new_words(make(size=MIN_SIZE, seed=seed))


def test_every_test_word_occurs_in_train(data):
    assert_no_new_words(data)


def assert_no_new_words(data):
    known = {word for text in sentences(data["train"]) for word in text.split()}
    for name in ("dev", "test"):
        assert {word for text in sentences(data[name]) for word in text.split()} <= known


def test_every_test_review_has_a_pair_of_words_that_train_never_shows(reviews):
    met = words_met(reviews["train"])
    for name in ("dev", "test"):
        for text in reviews[name].texts:
            words = text.split()
            assert any(
                (first, second) not in met and is_held_out(first, second)
                for first in words
                for second in words
            ), text


def test_held_out_reviews_cover_negation_and_topics(reviews):
    met, test = words_met(reviews["train"]), reviews["test"]
    unseen_operator = unseen_topic = 0
    for text, decisive in zip(test.texts, test.decisive, strict=True):
        words = text.split()
        values = [words[index] for index in decisive if words[index] not in OPERATORS | CONTRASTS]
        unseen = {
            pair for value in values for word in words for pair in ((word, value), (value, word))
        }
        unseen -= met
        unseen_operator += any(pair[0] in OPERATORS for pair in unseen)
        unseen_topic += any(
            pair[0] not in OPERATORS and pair[1] not in OPERATORS for pair in unseen
        )
    assert unseen_operator > 0.15 * len(test)
    assert unseen_topic > 0.5 * len(test)


def test_every_test_premise_has_a_combination_that_train_never_shows(pairs):
    activities = (
        r"playing music|playing a game|playing(?: the)? \w+|eating (?!in|on|out|with|al|at|af)\w+"
        r"|eating|reading a \w+|reading|painting a \w+|painting"
        r"|standing|sitting|waiting|relaxing"
    )
    shape = re.compile(
        r".*\b(man|men|woman|women|boys?|girls?|adults?|child|children|person|people)\b"
        rf".*? (?:is|are) ({activities})\b(?: ((?:in|on) an? \w+|outdoors|indoors))?"
    )

    def combinations(text):
        match = shape.search(text)
        return {(match[1], match[2]), (match[2], match[3])} if match else set()

    met = set().union(*map(combinations, sentences(pairs["train"])))
    for name in ("dev", "test"):
        for premise in {text[0] for text in pairs[name].texts}:
            unseen = combinations(premise) - met
            assert any(is_held_out(*pair) for pair in unseen if pair[1]), premise


def test_each_premise_has_one_pair_of_each_label(pairs):
    for split in pairs.splits.values():
        by_premise = {}
        for (premise, _), label in zip(split.texts, split.targets.tolist(), strict=True):
            by_premise.setdefault(premise, []).append(label)
        assert all(sorted(labels) == [0, 1, 2] for labels in by_premise.values())


def test_decisive_words_exist_and_are_a_part_of_the_sentence(data):
    for split in data.splits.values():
        for text, decisive in zip(split.texts, split.decisive, strict=True):
            words = (text if isinstance(text, str) else text[1]).split()
            assert decisive
            assert list(decisive) == sorted(set(decisive))
            assert 0 <= decisive[0] <= decisive[-1] < len(words)
            assert not {words[i] for i in decisive} & {
                "the",
                "a",
                "an",
                "is",
                "are",
                ",",
                "!",
                "it",
            }


# Polarity as any reader would give it, written down independently of the grammar's word lists.
GOOD = {
    "good",
    "superb",
    "charming",
    "gripping",
    "funny",
    "clever",
    "moving",
    "elegant",
    "witty",
    "lively",
    "great",
    "warm",
}
BAD = {
    "dull",
    "bad",
    "awful",
    "boring",
    "lazy",
    "bland",
    "clumsy",
    "tedious",
    "silly",
    "stale",
    "weak",
    "messy",
    "dreary",
}

TRULY = "(?:truly|really|simply|quite|absolutely|genuinely|thoroughly|utterly)"


def rows(data):
    for split in data.splits.values():
        yield from zip(split.texts, split.targets.tolist(), split.decisive, strict=True)


@pytest.mark.parametrize(
    ("pattern", "turned", "least"),
    [
        (r"(not|hardly|never|scarcely) an? (?P<value>\w+) moment", True, 5),
        (r"(without) a single (?P<value>\w+) scene", True, 5),
        (r"(not|hardly|never|scarcely) (?P<value>\w+) at all", True, 5),
        (r"the \w+ is (anything) (but) (?P<value>\w+)", True, 5),
        (r"the \w+ is far (less) (?P<value>\w+) than i expected", True, 2),
        (r"the \w+ is far more (?P<value>\w+) than i expected", False, 2),
        (r"what an? (?P<value>\w+) \w+ !", False, 5),
        (r"(?:an? \w+ )?\w+ \w+ (but) an? \w+ (?P<value>\w+) \w+", False, 20),
        (rf"(despite) an? \w+ \w+ \w+ , the \w+ is {TRULY} (?P<value>\w+)", False, 1),
        (rf"(although|while) the .* , the \w+ is {TRULY} (?P<value>\w+)", False, 1),
        (rf"the \w+ (?:is {TRULY}|seems|looks) (?P<value>\w+) , (although) .*", False, 1),
    ],
)
def test_reviews_mean_what_their_label_says(reviews, pattern, turned, least):
    checked = 0
    for text, label, decisive in rows(reviews):
        match = re.fullmatch(pattern, text)
        if not match or match["value"] not in GOOD | BAD:
            continue
        assert label == ((match["value"] in GOOD) != turned), text
        words = text.split()
        assert {words[index] for index in decisive} == {group for group in match.groups() if group}
        checked += 1
    assert checked >= least


def test_contrasted_halves_have_opposite_polarity(reviews):
    checked = 0
    for text, label, _ in rows(reviews):
        words = text.split()
        match = re.fullmatch(r"(\w+) \w+ but an? \w+ \w+ \w+", text)
        if match and words[0] in GOOD | BAD:
            assert label == (words[0] in BAD), text
            checked += 1
    assert checked >= 10


OUTDOORS = {"park", "beach", "garden", "street", "field", "outdoors"}
INDOORS = {"kitchen", "library", "classroom", "office", "museum", "indoors"}
HAPPY = {"smiling", "laughing", "cheerful"}
UPSET = {"crying", "tearful", "weeping", "furious", "fuming", "scowling"}
DAY = {"morning", "sunrise", "noon", "lunchtime"}
DARK = {"night", "dark"}
YOUNG = {"boy", "boys", "girl", "girls", "child", "children"}
GROWN = {"man", "men", "woman", "women", "adult", "adults"}


@pytest.mark.parametrize(
    ("ending", "true", "false"),
    [
        (r"(is|are) outdoors", OUTDOORS, INDOORS),
        (r"(is|are) not indoors", OUTDOORS, INDOORS),
        (r"(is|are) in a good mood", HAPPY, UPSET),
        (r"it is daytime", DAY, DARK),
        (r"(is an adult|are adults)", GROWN, YOUNG),
        (r"(is not an adult|are not adults)", YOUNG, GROWN),
    ],
)
def test_pairs_mean_what_their_label_says(pairs, ending, true, false):
    labels = Counter()
    for (premise, hypothesis), label, _ in rows(pairs):
        if not re.fullmatch(rf"(the (person|people) )?{ending}", hypothesis):
            continue
        words = set(premise.split())
        assert not (words & true and words & false), premise
        expected = ENTAILMENT if words & true else CONTRADICTION if words & false else NEUTRAL
        assert label == expected, (premise, hypothesis)
        labels[label] += 1
    assert len(labels) == 3
    assert min(labels.values()) >= 2


def test_what_is_more_exact_than_the_caption_is_neutral(pairs):
    general = {"in a park": "outdoors", "in a kitchen": "indoors", "boys": "children"}
    checked = 0
    for (premise, hypothesis), label, _ in rows(pairs):
        for exact, more_general in general.items():
            if hypothesis == f"the people are {exact}" and more_general in premise.split():
                assert label == NEUTRAL, (premise, hypothesis)
                checked += 1
    assert checked >= 5


def test_colours_contradict_only_on_the_same_garment(pairs):
    worn = re.compile(r"(red|blue|green|yellow|black|white) (shirt|hat|jacket|scar)")
    checked = 0
    for (premise, hypothesis), label, decisive in rows(pairs):
        claim, seen = worn.search(hypothesis), worn.search(premise)
        if not claim or " not " in hypothesis or " and " in hypothesis:
            continue
        if not seen or seen[2] != claim[2]:
            assert label == NEUTRAL, (premise, hypothesis)
        else:
            assert label == (ENTAILMENT if seen[1] == claim[1] else CONTRADICTION)
        assert hypothesis.split()[decisive[0]] == claim[1]
        checked += 1
    assert checked > 500


def test_reviews_vary(reviews):
    texts = [text.split() for split in reviews.splits.values() for text in split.texts]
    assert len({word for words in texts for word in words}) > 280
    assert min(map(len, texts)) == 3
    assert max(map(len, texts)) >= 20


def test_a_bag_of_words_does_not_solve_the_reviews(reviews):
    train, test = reviews["train"], reviews["test"]
    accuracy = naive_bayes_accuracy(
        train.texts, train.targets.tolist(), test.texts, test.targets.tolist()
    )
    assert accuracy < 0.75


def test_the_hypothesis_alone_does_not_solve_the_pairs(pairs):
    train, test = pairs["train"], pairs["test"]
    accuracy = naive_bayes_accuracy(
        [text[1] for text in train.texts],
        train.targets.tolist(),
        [text[1] for text in test.texts],
        test.targets.tolist(),
    )
    assert accuracy < 0.5


def test_the_same_hypothesis_occurs_under_every_label(pairs):
    labels: dict[str, set[int]] = {}
    counts: Counter[str] = Counter()
    for (_, hypothesis), label, _ in rows(pairs):
        labels.setdefault(hypothesis, set()).add(label)
        counts[hypothesis] += 1
    common = [hypothesis for hypothesis, count in counts.items() if count >= 20]
    assert len(common) > 50
    assert np.mean([len(labels[hypothesis]) == 3 for hypothesis in common]) > 0.9
