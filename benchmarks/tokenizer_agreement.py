r"""How often the `ptb` tokeniser and NLTK's TreebankWordTokenizer give the same words on SNLI.

    python -m benchmarks.tokenizer_agreement --data-dir DIR

DIR holds `snli_1.0/snli_1.0_{dev,train}.jsonl`. Prints, for each split, the share of sentences with
identical words (the project asks for 99.5%), the kinds of difference with examples, and the share
of sentences that come back unchanged when their words are joined by spaces and tokenised again.
Writes nothing. The exit code is 1 if a share of identical sentences is below 99.5% or a difference
is of no known kind.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from nltk.tokenize import TreebankWordTokenizer  # type: ignore[import-untyped]

from dsa_keras.data.tokenizers import tokenize
from dsa_keras.errors import DataError, DsaError
from dsa_keras.progress import progress_bar

REQUIRED = 0.995

_CLITIC = r"(?:'(?:[sSmMdD]|ll|LL|re|RE|ve|VE)|n't|N'T)"

KINDS: dict[str, str] = {
    "non-ASCII text: NLTK has no rule for it, ptb has those of its documentation": r"[^\x00-\x7f]",
    "'' in the text: NLTK makes it an opening `` after a space and splits it off a word": r"''",
    "`` in the text: NLTK splits it off a word": r"``",
    "comma or colon before a digit: the sed rules split it, NLTK keeps the number whole": r"[,:]\d",
    "commas or colons in a row: NLTK may leave the last one on its neighbour": r"[,:][,:]",
    "cannot, gonna, d'ye, ...: NLTK splits them in capitals and beside a hyphen too": (
        r"(?i)(?:\b(?:cannot|gimme|gonna|gotta|lemme|wanna|d'ye|more'n)|'t(?:is|was))(?:\b|n't)"
    ),
    "clitics in a row, or beside a quote: NLTK splits the last one or none": (
        rf"{_CLITIC}(?:'|n't|N'T)|'{_CLITIC}"
    ),
}
"""Why a text may get other words from NLTK, and a pattern found in every such text."""

UNEXPLAINED = "unexplained"


def kind_of(text: str) -> str:
    """Why NLTK may give other words for `text`: the first of `KINDS` that fits."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), UNEXPLAINED)


def differences(texts: Iterable[str], *, show: bool = False) -> dict[str, list[list[str]]]:
    """The texts, each once, that get other words from NLTK: the words of `ptb` and of NLTK."""
    unique = list(dict.fromkeys(texts))
    nltk = TreebankWordTokenizer()
    found = {}
    with progress_bar(len(unique), "NLTK", show=show, unit="sentence") as bar:
        for text, ours in zip(unique, tokenize(unique, "ptb"), strict=True):
            theirs = nltk.tokenize(text)
            if ours != theirs:
                found[text] = [ours, theirs]
            bar.update()
    return found


def read_sentences(data_dir: Path, split: str) -> list[str]:
    """Both sentences of every row of an SNLI split.

    Raises:
        DataError: if the file is missing or a row is not what the official files hold.
    """
    path = data_dir / "snli_1.0" / f"snli_1.0_{split}.jsonl"
    sentences: list[str] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = json.loads(line)
                    sentences += [row["sentence1"], row["sentence2"]]
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(
                        "not a JSON object with sentence1 and sentence2",
                        where=path,
                        line=number,
                        hint="Take the file of the official SNLI 1.0 archive",
                    ) from error
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror})",
            where=path,
            hint="Unpack snli_1.0.zip in the folder given as --data-dir",
        ) from error
    if not sentences:
        raise DataError("has no row", where=path, hint="Take the file of the SNLI 1.0 archive")
    return sentences


def report(split: str, sentences: list[str], examples: int) -> bool:
    """Prints the figures of one split; returns whether they are as good as the project asks."""
    found = differences(sentences, show=True)
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    for sentence in sentences:
        if sentence in found:
            kinds[kind_of(sentence)].append(sentence)
    different = sum(map(len, kinds.values()))
    share = 1 - different / len(sentences)
    print(f"{split}: {share:.4%} identical ({different} of {len(sentences)} differ)")
    for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"  {len(members)} x {kind}")
        for sentence in list(dict.fromkeys(members))[:examples]:
            ours, theirs = found[sentence]
            print(f"      ptb  {' '.join(ours)}\n      NLTK {' '.join(theirs)}")
    words = tokenize(sentences, "ptb")
    again = tokenize([" ".join(row) for row in words], "ptb")
    stable = sum(map(list.__eq__, words, again)) / len(sentences)
    print(f"  tokenised again: {stable:.4%} unchanged")
    return share >= REQUIRED and UNEXPLAINED not in kinds


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer_agreement", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data-dir", type=Path, required=True, help="folder that holds snli_1.0/")
    parser.add_argument("--examples", type=int, default=2, help="examples per kind (default 2)")
    options = parser.parse_args(argv)
    try:
        splits = {name: read_sentences(options.data_dir, name) for name in ("dev", "train")}
    except DsaError as error:
        print(error, file=sys.stderr)
        return 2
    good = [report(name, sentences, options.examples) for name, sentences in splits.items()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
