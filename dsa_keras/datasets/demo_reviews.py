"""The grammar of `demo-sentiment`: film reviews of one line, labelled by how they are built.

A clause has a value word ("dull", "charm", "shines") with a polarity of its own. In a plain clause
that polarity is the label; an operator ("not", "hardly", "lacks", "anything but") turns it round,
and two operators cancel out ("not without charm"). Of two contrasted clauses, always of opposite
polarity, the main one decides: the one after "but" or "yet", the one without "although", "while"
or "despite". Clauses joined by "and" agree. Every pattern is used for both labels equally often,
so function words alone say nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsa_keras.datasets.demo_grammar import (
    Part,
    Word,
    fill_pattern,
    has_held_out,
    is_held_out,
    pick,
    with_articles,
)


@dataclass(frozen=True)
class Review:
    """A generated review.

    Attributes:
        text: words and punctuation separated by single spaces.
        decisive: the indices of the words that decide the label.
        own_pairs: (operator, value) and (value, topic) pairs within one clause.
        all_pairs: the same over the whole sentence, whichever clauses the two words stand in.
        structure: the contrast it is built with and the pattern of its main clause, if it has one.
    """

    text: str
    decisive: tuple[int, ...]
    own_pairs: frozenset[tuple[str, str]]
    all_pairs: frozenset[tuple[str, str]]
    structure: tuple[str, str] | None

    @property
    def fits_training(self) -> bool:
        """Whether nothing in it is held out, not even across clauses."""
        if self.structure and is_held_out(*self.structure):
            return False
        return not has_held_out(self.all_pairs)

    @property
    def is_unseen_combination(self) -> bool:
        """Whether a clause of it combines two words that training never shows together."""
        return has_held_out(self.own_pairs)


# Value words, (negative, positive); "grad" has those that go with "very", "more" and "less".
_GRADABLE = (
    "dull boring clumsy tedious predictable forgettable annoying painful pretentious tiresome"
    " awkward confusing contrived shallow superficial",
    "charming gripping moving engaging elegant memorable touching enjoyable original convincing"
    " impressive compelling graceful believable inventive",
)
_OTHER_ADJECTIVES = (
    "bad awful terrible dreadful horrible lazy bland weak stale messy hollow silly lifeless"
    " pointless ugly sloppy dreary ridiculous wooden uninspired",
    "good great brilliant superb wonderful delightful thrilling funny clever fresh witty beautiful"
    " sharp warm tender excellent splendid lively hilarious masterful",
)
_VALUES: dict[str, tuple[str, str]] = {
    "adj": (
        f"{_GRADABLE[0]} {_OTHER_ADJECTIVES[0]}",
        f"{_GRADABLE[1]} {_OTHER_ADJECTIVES[1]}",
    ),
    "grad": _GRADABLE,
    "quality": (
        "nonsense padding noise boredom confusion filler bombast stupidity clutter gloom vanity"
        " sentimentality",
        "charm wit warmth energy heart depth tension imagination style suspense grace magic",
    ),
    "works": (
        "drags fails stumbles disappoints irritates suffers falters bores",
        "shines works delights sparkles soars succeeds impresses excels",
    ),
    "work": (
        "drag fail stumble disappoint irritate suffer falter bore",
        "shine work delight sparkle soar succeed impress excel",
    ),
    "liked": (
        "hated disliked loathed resented despised detested",
        "liked loved enjoyed adored admired treasured",
    ),
    "like": (
        "hate dislike loathe resent despise detest",
        "like love enjoy adore admire treasure",
    ),
}
_PARTS = (
    "plot cast ending score script story soundtrack opening villain hero finale premise screenplay"
    " storyline setting performance"
)
_TOPICS = {
    "part": _PARTS,
    "thing": f"{_PARTS} dialogue acting camerawork direction pacing editing scenery lighting"
    " narration photography choreography animation",
    "things": "jokes scenes characters songs costumes effects actors twists stunts monologues",
    "film": "film movie picture drama comedy thriller sequel remake documentary musical western",
}
_OPERATORS = {"not": "not never hardly scarcely", "never": "never hardly scarcely"}
_FILLERS = {
    "truly": "truly really simply quite absolutely genuinely thoroughly utterly",
    "very": "very rather extremely remarkably deeply so",
    "seems": "is seems feels looks",
    "seem": "are seem feel",
}
_SLOTS = {
    (slot, good): (Part.VALUE, words[good].split())
    for slot, words in _VALUES.items()
    for good in (False, True)
} | {
    (slot, good): (part, words.split())
    for part, slots in (
        (Part.TOPIC, _TOPICS),
        (Part.OPERATOR, _OPERATORS),
        (Part.FILLER, _FILLERS),
    )
    for slot, words in slots.items()
    for good in (False, True)
}
# In "not only", "far more", "from start to finish" or between clauses these do not negate, yet a
# held-out pair shall not meet in training in any way.
_OPERATORS_AT_TIMES = frozenset(["not", "far", "from", "but"])
_FILMS = frozenset(_TOPICS["film"].split())
_OPENINGS = (
    *("in the end ,", "from start to finish ,", "to my surprise ,", "if you ask me ,"),
    *("on a second viewing ,", "this time ,", "on the big screen ,", "as for the rest ,"),
    *("as everyone knows ,", "i must say that", "i think that", "after two hours , i think that"),
)
_CLOSINGS = (
    *("!", "throughout", "from the first minute", "in the second half", "by the end"),
    *("on the big screen", "in every way", ", as usual", ", if you ask me"),
)

PLAIN_CLAUSES = (
    "the {thing} is {truly} {adj}",
    "the {thing} {seems} {adj}",
    "the {things} {seem} {truly} {adj}",
    "the {things} in this {film} are {very} {grad}",
    "the {thing} {works}",
    "the {film} really {works}",
    "i {liked} the {thing}",
    "i {truly} {liked} this {film}",
    "the {film} is full of {quality}",
    "there is so much {quality} in the {thing}",
    "this is a {truly} {adj} {film}",
    "the {film} has a {adj} {part}",
    "i found the {thing} {very} {grad}",
    "the {thing} is far more {grad} than i expected",
    "the {thing} is not only {adj} but also {adj}",
    "the {film} is *not *without {quality}",
    "the {thing} *never *lacks {quality}",
)
NEGATED_CLAUSES = (
    "the {thing} is {not} {adj}",
    "the {thing} {seems} *hardly {adj}",
    "the {things} are {not} {adj}",
    "the {things} are *not very {grad}",
    "the {thing} {never} {works}",
    "the {film} does *not {work}",
    "i did *not {like} the {thing}",
    "i *never {liked} this {film}",
    "there is *no {quality} in the {film}",
    "the {film} unfolds *without {quality}",
    "the {film} *lacks {quality}",
    "this is {not} a {adj} {film}",
    "the {film} has *no {adj} {things}",
    "i did *not find the {thing} {adj}",
    "the {thing} is far *less {grad} than i expected",
    "the {thing} is *neither {adj} nor {adj}",
    "*nothing about the {thing} is {adj}",
    "*nobody could call the {thing} {adj}",
    "the {thing} is *anything *but {adj}",
    "the {thing} is *far *from {adj}",
)
PLAIN_FRAGMENTS = (
    "what a {adj} {film} !",
    "a {truly} {adj} {film}",
    "a {adj} {film} with a {adj} {part}",
    "{adj} {things} and a {adj} {part}",
    "a {film} full of {quality}",
    "{very} {grad} , {adj} and full of {quality}",
    "a {film} *not *without {quality}",
)
NEGATED_FRAGMENTS = (
    "{not} a {adj} moment",
    "*without a single {adj} scene",
    "{not} a {adj} {film}",
    "*no {adj} {things} in this {film}",
    "a {film} *without {quality}",
    "*anything *but a {adj} {film}",
    "{not} {adj} at all",
)
# {main} is the clause that decides, {side} the one it outweighs; a part is a half without a verb.
CONTRASTS = (
    "{side} , *but {main}",
    "{side} , *yet {main}",
    "*although {side} , {main}",
    "*while {side} , {main}",
    "*even *though {side} , {main}",
    "{main} , *although {side}",
    "{main} , *even *though {side}",
    "*despite {side-part} , {main}",
    "{main} , *despite {side-part}",
    "{side-bare-part} *but {main-part}",
    "{side-part} *but {main-part}",
)
_HALVES = {"part": "a {truly} {adj} {part}", "bare-part": "{adj} {part}"}
_ALONE = {
    "plain": PLAIN_CLAUSES + PLAIN_FRAGMENTS,
    "negated": NEGATED_CLAUSES + NEGATED_FRAGMENTS,
}
KINDS = ("plain", "plain", "negated", "negated", "contrast", "contrast", "agreement")
"""How a review is built, each kind as often as it should occur."""


def review(rng: random.Random, positive: bool, kind: str) -> Review:
    """Generates one review of the label and the kind (see `KINDS`) asked for."""
    frame = None
    if kind == "contrast":
        frame = pick(rng, CONTRASTS)
        clauses = _contrasted_clauses(rng, frame, positive)
        sentence = fill_pattern(frame, lambda slot, _: clauses[slot].words, Part.CONTRAST)
        deciding = [clause for slot, clause in clauses.items() if slot.startswith("main")]
    elif kind == "agreement":
        first = _clause(rng, positive)
        clauses = {"first": first, "second": _clause(rng, positive, beside=first)}
        sentence = [*first.words, Word("and"), *clauses["second"].words]
        deciding = list(clauses.values())
    else:
        patterns = _ALONE[kind]
        clause = _fill(rng, pick(rng, patterns), positive == (kind == "plain"))
        clauses, deciding, sentence = {"only": clause}, [clause], list(clause.words)
    decisive_words = {id(word) for clause in deciding for word in clause.words}
    before, after = _asides(rng, sentence)
    sentence = [*before, *sentence, *after]
    return Review(
        text=" ".join(word.text for word in with_articles(sentence)),
        decisive=tuple(
            index
            for index, word in enumerate(sentence)
            if word.part is Part.CONTRAST
            or (word.part in (Part.VALUE, Part.OPERATOR) and id(word) in decisive_words)
        ),
        own_pairs=frozenset().union(*(_pairs(clause.words) for clause in clauses.values())),
        all_pairs=_pairs(sentence),
        structure=(frame, deciding[0].pattern) if frame else None,
    )


@dataclass(frozen=True)
class _Clause:
    pattern: str
    words: list[Word]

    def clashes(self, other: _Clause) -> bool:
        """Whether both speak of the same thing, or of two films in one review."""
        mine, others = ({w.text for w in c.words if w.part is Part.TOPIC} for c in (self, other))
        return bool(mine & others or (mine & _FILMS and others & _FILMS))


def _contrasted_clauses(rng: random.Random, frame: str, positive: bool) -> dict[str, _Clause]:
    clauses: dict[str, _Clause] = {}
    for slot in re.findall(r"{(.*?)}", frame):
        role, _, half = slot.partition("-")
        first = next(iter(clauses.values()), None)
        patterns = (_HALVES[half],) if half else None
        clauses[slot] = _clause(rng, positive == (role == "main"), beside=first, patterns=patterns)
    return clauses


def _clause(
    rng: random.Random,
    positive: bool,
    *,
    beside: _Clause | None = None,
    patterns: Sequence[str] | None = None,
) -> _Clause:
    while True:
        negated = patterns is None and rng.random() < 0.3
        pattern = pick(rng, patterns or (NEGATED_CLAUSES if negated else PLAIN_CLAUSES))
        clause = _fill(rng, pattern, positive != negated)
        if beside is None or not clause.clashes(beside):
            return clause


def _fill(rng: random.Random, pattern: str, good: bool) -> _Clause:
    def fill(slot: str, before: Sequence[Word]) -> list[Word]:
        part, choices = _SLOTS[slot, good]
        used = {word.text for word in before}
        return [Word(pick(rng, [word for word in choices if word not in used]), part)]

    return _Clause(pattern, fill_pattern(pattern, fill))


def _asides(rng: random.Random, sentence: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Words before or after the sentence that say nothing, for about half of whole sentences."""
    place = rng.random()
    before = pick(rng, _OPENINGS) if place < 0.3 else ""
    after = pick(rng, _CLOSINGS) if place > 0.8 else ""
    if sentence[0].text not in ("the", "this", "i", "there"):
        return [], []
    return list(map(Word, before.split())), list(map(Word, after.split()))


def _pairs(words: Sequence[Word]) -> frozenset[tuple[str, str]]:
    values = [word.text for word in words if word.part is Part.VALUE]
    topics = [word.text for word in words if word.part is Part.TOPIC]
    operators = [
        word.text
        for word in words
        if word.part is Part.OPERATOR or word.text in _OPERATORS_AT_TIMES
    ]
    return frozenset(
        [(operator, value) for operator in operators for value in values]
        + [(value, topic) for value in values for topic in topics]
    )
