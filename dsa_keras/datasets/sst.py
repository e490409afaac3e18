r"""The Stanford Sentiment Treebank from its official trees, as Kim (2014) and the paper use it.

A line is a tree such as `(3 (2 It) (4 works))`: a label from 0 to 4 on every phrase. Development
and test examples are whole sentences. Training examples are all labelled phrases, or the sentences
alone.

Which phrases: the trees repeat themselves (318,582 nodes), so each phrase counts once, **compared
lower-cased, with the label of its first occurrence** reading the trees in order and each from its
root down. For SST-2 neutral phrases are dropped after that. On the official trees this gives the
row counts of the well-known files exactly: 156,817 for SST-5 and 76,961 for SST-2. The text keeps
the capitals of the first occurrence.

Texts are the words joined by spaces, with the treebank's escapes undone (`-LRB-` is "(", `-RRB-` is
")", `\/` is "/", `\*` is "*"). The quote tokens (two back-quotes, two apostrophes) stay: they are
words of the text. Blank lines are ignored.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dsa_keras import recipes
from dsa_keras.config import Recipe
from dsa_keras.data.bad_rows import BadRows, check_not_empty, text_problem
from dsa_keras.data.text_files import TextFile
from dsa_keras.datasets.dataset import Dataset, Split
from dsa_keras.datasets.entry import Entry
from dsa_keras.datasets.layout import Layout
from dsa_keras.datasets.loading import register_dataset
from dsa_keras.datasets.option import ON_BAD_ROWS, Option
from dsa_keras.encoders import Encoder
from dsa_keras.objectives.classification import Classification

CLASS_NAMES = {
    "sst2": ("negative", "positive"),
    "sst5": ("very negative", "negative", "neutral", "positive", "very positive"),
}
LAYOUT = Layout(
    title="The Stanford Sentiment Treebank",
    url="https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
    folders=("", "trees", "sst/trees", "sst"),
    files={"train": ("train.txt",), "dev": ("dev.txt",), "test": ("test.txt",)},
    complete=True,
)
_BINARY_LABELS = {0: 0, 1: 0, 3: 1, 4: 1}
_FINE_LABELS = {label: label for label in range(5)}
_TOKEN = re.compile(r"[()]|[^ \t\r\n()]+")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")"}


def load_sst(
    name: str,
    data_dir: str | os.PathLike[str] | None,
    *,
    phrases: bool = True,
    on_bad_rows: str = "error",
) -> Dataset:
    """Loads SST-2 or SST-5.

    Args:
        name: "sst2" (negative and positive; neutral left out) or "sst5".
        data_dir: the folder with `sst/trees/train.txt`, `trees/train.txt` or `train.txt` and its
            like, or the official archive or a folder that holds it.
        phrases: train on all labelled phrases (as the paper), or on whole sentences only.
        on_bad_rows: "error" stops at the first bad tree, "skip" counts them.
    """
    splits: dict[str, Split] = {}
    skipped: dict[str, int] = {}
    for split, source in LAYOUT.find(data_dir).items():
        bad = BadRows(on_bad_rows)
        splits[split] = _read_split(name, source, bad, phrases=phrases and split == "train")
        skipped[split] = bad.count
    return Dataset(name, splits, Classification(class_names=CLASS_NAMES[name]), skipped)


def parse_tree(line: str) -> list[tuple[int, str]]:
    """Gives (label, text) of every node of a tree, from the root down, left to right.

    Raises:
        ValueError: with the problem in words, if the line is not one whole tree.
    """
    tokens = _TOKEN.findall(line)
    if not tokens or tokens[0] != "(":
        raise ValueError("malformed tree: it does not start with a bracket")
    words: list[str] = []
    # Per node: label, index of its first word, index after its last; in the order the nodes open.
    nodes: list[list[int]] = []
    # Open nodes, and for each whether it holds a word of its own or nodes below it.
    open_nodes: list[int] = []
    holds: list[str] = []
    position, end = 0, len(tokens)
    while position < end:
        token = tokens[position]
        if nodes and not open_nodes:
            raise ValueError("malformed tree: text after the closing bracket")
        if token == "(":
            if holds:
                if holds[-1] == "word":
                    raise ValueError("malformed tree: a word and a phrase under one label")
                holds[-1] = "nodes"
            label = tokens[position + 1] if position + 1 < end else ""
            if label not in ("0", "1", "2", "3", "4"):
                raise ValueError(f"unknown label {label!r} in a tree: labels are 0 to 4")
            open_nodes.append(len(nodes))
            holds.append("")
            nodes.append([int(label), len(words), 0])
            position += 2
            continue
        if token == ")":
            if not holds.pop():
                raise ValueError("malformed tree: a label without a word")
            nodes[open_nodes.pop()][2] = len(words)
        else:
            if holds[-1]:
                raise ValueError("malformed tree: more than a word under one label")
            holds[-1] = "word"
            words.append(_unescape(token))
        position += 1
    if open_nodes:
        raise ValueError(f"malformed tree: unbalanced brackets, {len(open_nodes)} not closed")
    return [(label, " ".join(words[start:stop])) for label, start, stop in nodes]


def _unescape(word: str) -> str:
    if word in _ESCAPES:
        return _ESCAPES[word]
    word = word.replace("\\/", "/").replace("\\*", "*")
    # A few official words hold a no-break space ("8 1\/2"); elsewhere plain spaces part words.
    return word if word.isascii() else " ".join(word.split())


def _trees(source: TextFile, bad: BadRows) -> Iterator[list[tuple[int, str]]]:
    for number, line in source.lines():
        if not line.strip():
            continue
        try:
            tree = parse_tree(line)
        except ValueError as error:
            bad.report(str(error), source, number)
            continue
        if problem := text_problem(tree[0][1]):
            bad.report(problem, source, number)
            continue
        yield tree


def _read_split(name: str, source: TextFile, bad: BadRows, *, phrases: bool) -> Split:
    to_class = _BINARY_LABELS if name == "sst2" else _FINE_LABELS
    texts: list[str] = []
    labels: list[int] = []
    seen: set[str] = set()
    for tree in _trees(source, bad):
        for label, text in tree if phrases else tree[:1]:
            if phrases:
                key = text.lower()
                if key in seen:
                    continue
                seen.add(key)
            if label in to_class:
                texts.append(text)
                labels.append(to_class[label])
    check_not_empty(len(texts), source, bad)
    return Split(texts, np.array(labels, np.int32))


def _recipe(name: str, encoder: Encoder, _: Mapping[str, Any]) -> Recipe:
    return recipes.paper_sentences(encoder, Classification(class_names=CLASS_NAMES[name]))


SENTENCES_ONLY = Option(
    "--sentences-only",
    "phrases",
    "train on whole sentences, not on all phrases",
    constant=False,
)

for _name, _about in (
    ("sst2", "Stanford Sentiment Treebank, two classes"),
    ("sst5", "Stanford Sentiment Treebank, five classes"),
):
    register_dataset(
        Entry(
            _name,
            _about,
            functools.partial(load_sst, _name),
            functools.partial(_recipe, _name),
            (SENTENCES_ONLY, ON_BAD_ROWS),
        )
    )
