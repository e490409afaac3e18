"""The grammar of `demo-nli`: picture captions, and statements that follow, may hold, or cannot.

A caption fixes some facts about a picture: who, how many, what they do and wear, where, when,
their mood and company. Every phrase stands for the set of cases it allows ("a child": boy or girl;
no word about the place: all places). A statement is entailed if every case the caption allows
makes it true, a contradiction if none does, and neutral otherwise; "not" takes the other cases. As
in SNLI, both sentences are about the same people, who do one thing only. So "the man is outdoors"
follows from "... in a park", contradicts "... in a kitchen", and is neutral where the caption names
no place: the same statements go with all three labels, and the hypothesis alone gives little away.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsa_keras.datasets.demo_grammar import (
    Part,
    Word,
    fill_pattern,
    has_held_out,
    pick,
    with_articles,
)

ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)

Cases = frozenset[str]
Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Caption:
    """A generated premise.

    Attributes:
        text: words and punctuation separated by single spaces.
        facts: the cases it allows for each question it answers.
        plural: whether it shows more than one person.
        pairs: the (person, activity) and (activity, place) phrases it combines.
    """

    text: str
    facts: Mapping[str, Cases]
    plural: bool
    pairs: Pairs

    @property
    def is_unseen_combination(self) -> bool:
        """Whether it combines two phrases that training never shows in one sentence."""
        return has_held_out(self.pairs)


@dataclass(frozen=True)
class Hypothesis:
    """A generated hypothesis.

    Attributes:
        text: words separated by single spaces.
        decisive: the indices of the words that decide the label.
        pairs: as in `Caption`.
    """

    text: str
    decisive: tuple[int, ...]
    pairs: Pairs


@dataclass(frozen=True)
class _Claim:
    """What a hypothesis can say: an answer to one question.

    Attributes:
        topic: the kind of question, which also decides the subject ("it is", "there are").
        question: the key of the answer in `Caption.facts`.
        cases: the cases in which the claim is true.
        one: what follows "is", with the words that matter starred: "wearing a *red *hat".
        many: what follows "are".
    """

    topic: str
    question: str
    cases: Cases
    one: str
    many: str

    def label(self, caption: Caption, negated: bool) -> int:
        """How the claim, or its negation, relates to the caption."""
        allowed = caption.facts.get(self.question)
        if allowed is None:
            return NEUTRAL
        if allowed <= self.cases:
            return CONTRADICTION if negated else ENTAILMENT
        if not allowed & self.cases:
            return ENTAILMENT if negated else CONTRADICTION
        return NEUTRAL


_PEOPLE = {
    "man": ("men", "man"),
    "woman": ("women", "woman"),
    "boy": ("boys", "boy"),
    "girl": ("girls", "girl"),
    "adult": ("adults", "man woman"),
    "child": ("children", "boy girl"),
    "person": ("people", "man woman boy girl"),
}
_NUMBERS = {
    "*two people": "two",
    "*three people": "three",
    "*four people": "four",
    "*more than *two people": "three four",
    "*fewer than *four people": "two three",
}
_COLOURS = ("red", "blue", "green", "yellow", "black")
_GARMENTS = {"shirt": "shirts", "hat": "hats", "jacket": "jackets"}
_ACTIVITIES = {
    "playing *music": ("the", "playing", "guitar violin flute"),
    "playing a *game": ("", "playing", "chess cards dominoes"),
    "*eating": ("", "eating", "pizza cake soup"),
    "*reading": ("a", "reading", "novel letter newspaper"),
    "*painting": ("a", "painting", "portrait landscape flower"),
}
_POSTURES = ("standing", "sitting", "waiting", "relaxing")
_PLACES = {
    "outdoors": ("in a *park", "on a *beach", "in a *garden", "on a *street"),
    "indoors": ("in a *kitchen", "in a *library", "in a *classroom", "in an *office"),
}
_MOODS = {
    "happy": ("smiling", "laughing", "cheerful"),
    "sad": ("crying", "tearful", "weeping"),
    "angry": ("furious", "fuming", "scowling"),
}
_COMPANY = {
    "alone": ("alone", "without company"),
    "with someone": ("with a friend", "with a cousin", "with a neighbor"),
}
_TIMES = {
    "morning": ("in the morning", "after sunrise"),
    "noon": ("at noon", "around lunchtime"),
    "night": ("at night", "after dark"),
}


def _claims(topic: str, table: Mapping[str, str | Sequence[str]]) -> list[_Claim]:
    """Claims on one question, from what follows the verb to the cases it stands for."""
    split = {
        rest: cases.split() if isinstance(cases, str) else cases for rest, cases in table.items()
    }
    return [_Claim(topic, topic, frozenset(cases), rest, rest) for rest, cases in split.items()]


def _activities(general: str) -> list[str]:
    article, verb, objects = _ACTIVITIES[general]
    return [" ".join(f"*{verb} {article} *{thing}".split()) for thing in objects.split()]


_WHO = [
    _Claim("who", "who", frozenset(cases.split()), f"a *{person}", f"*{people}")
    for person, (people, cases) in _PEOPLE.items()
]
# By topic, then from exact claims to general ones: "in a park", "outdoors".
_CLAIMS: dict[str, tuple[list[_Claim], ...]] = {
    "who": (_WHO[:4], _WHO[4:6]),
    "number": (_claims("number", _NUMBERS)[:3], _claims("number", _NUMBERS)[3:]),
    "clothes": (
        [
            _Claim(
                "clothes",
                garment,
                frozenset([colour]),
                f"wearing a *{colour} *{garment}",
                f"wearing *{colour} *{garments}",
            )
            for garment, garments in _GARMENTS.items()
            for colour in _COLOURS
        ],
    ),
    "activity": (
        _claims("activity", {each: [each] for kind in _ACTIVITIES for each in _activities(kind)}),
        _claims("activity", {kind: _activities(kind) for kind in _ACTIVITIES}),
    ),
    "place": (
        _claims("place", {place: [place] for places in _PLACES.values() for place in places}),
        _claims("place", {f"*{side}": places for side, places in _PLACES.items()}),
    ),
    "mood": (
        _claims("mood", {f"*{mood}": mood for mood in _MOODS}),
        _claims("mood", {"in a *good *mood": "happy", "in a *bad *mood": "sad angry"}),
    ),
    "company": (_claims("company", {"*alone": ["alone"], "*with *someone": ["with someone"]}),),
    "time": (
        _claims("time", {f"*{time}": time for time in _TIMES}),
        _claims("time", {"*daytime": "morning noon", "*nighttime": "night"}),
    ),
}


def caption(rng: random.Random) -> Caption:
    """Generates one caption; each question stays open in about four captions of ten."""
    facts: dict[str, Cases] = {}
    plural = rng.random() < 0.45

    def told(question: str, phrases: Mapping[str, Sequence[str]]) -> list[str]:
        """A phrase that answers the question, or nothing."""
        case, told = pick(rng, tuple(phrases)), rng.random() < 0.6
        phrase = pick(rng, phrases[case])
        if told:
            facts[question] = frozenset([case])
        return phrase.split() if told else []

    exact = rng.random() < 0.55
    person = pick(rng, tuple(_PEOPLE)[:4] if exact else ("adult", "child", "person", "person"))
    people, cases = _PEOPLE[person]
    if person != "person":
        facts["who"] = frozenset(cases.split())
    name = people if plural else person
    number = pick(rng, ("two", "three", "four", "some", "some", "a group of")) if plural else "a"
    if number in _NUMBERS.values():
        facts["number"] = frozenset([number])
    words = [*number.split(), *told("mood", _MOODS), name]
    garment = pick(rng, tuple(_GARMENTS))
    clothes = told(garment, {colour: (colour,) for colour in _COLOURS})
    if clothes:
        words += ["in", *clothes, _GARMENTS[garment]] if plural else ["in", "a", *clothes, garment]
    activity, place = (_told_exactly_or_not(rng, facts, topic) for topic in ("activity", "place"))
    activity = activity or pick(rng, _POSTURES)
    words += ["are" if plural else "is", *activity.split(), *place.split()]
    if not plural:
        words += told("company", _COMPANY)
    when = told("time", _TIMES)
    if when:
        words = [*when, ",", *words] if rng.random() < 0.5 else [*words, *when]
    return Caption(_joined(map(Word, words)), facts, plural, _pairs({name}, activity, place))


def hypothesis(rng: random.Random, caption: Caption, label: int) -> Hypothesis | None:
    """Generates one statement with this label, or None if the topic drawn cannot give it."""
    topic = pick(rng, tuple(_CLAIMS))
    negated, wants_more = rng.random() < 0.15, rng.random() < 0.3
    claim = _claim(rng, caption, topic, label, negated)
    if claim is None:
        return None
    # Something true beside the claim, so that not every word of a hypothesis counts.
    other = pick(rng, [name for name in ("activity", "place", "mood") if name != topic])
    extra = _claim(rng, caption, other, ENTAILMENT, negated=False) if wants_more else None
    known = caption.facts.get("who", _WHO[-1].cases)
    person = pick(rng, [who for who in _WHO if known <= who.cases and topic != "who"] or _WHO[-1:])

    be = "are" if caption.plural else "is"
    true_too = label == ENTAILMENT
    # Pieces of the sentence and whether their starred words decide the label.
    if topic == "who" and extra and not negated:
        person = claim
        pieces = [(f"the *{_name(person, caption)}", True), (f"{be} {extra.one}", true_too)]
    else:
        people = f"the {_name(person, caption)} {be}"
        start = {"time": "it is", "number": "there are"}.get(topic, people)
        rest = claim.many if caption.plural else claim.one
        pieces = [(f"{start} *not {rest}" if negated else f"{start} {rest}", True)]
        if extra:
            link = f"and {be}" if start == people else f"and {people}"
            if (topic, extra.topic, negated) == ("activity", "place", False):
                link = ""
            pieces.append((f"{link} {extra.one}", true_too))
    words = [
        word
        for piece, decides in pieces
        for word in _words(piece, Part.VALUE if decides else Part.FILLER)
    ]
    named = {_name(who, caption) for who in (person, claim) if who.topic == "who"}
    said = {part.topic: part.one.replace("*", "") for part in (claim, extra) if part}
    return Hypothesis(
        text=_joined(words),
        decisive=tuple(i for i, word in enumerate(words) if word.part is Part.VALUE),
        pairs=_pairs(named, said.get("activity", ""), said.get("place", "")),
    )


def _claim(
    rng: random.Random, caption: Caption, topic: str, label: int, negated: bool
) -> _Claim | None:
    if topic == ("company" if caption.plural else "number"):
        return None
    claims = pick(rng, _CLAIMS[topic])
    fitting = [claim for claim in claims if claim.label(caption, negated) == label]
    return pick(rng, fitting) if fitting else None


def _told_exactly_or_not(rng: random.Random, facts: dict[str, Cases], topic: str) -> str:
    level = rng.random()
    if level > 0.65:
        return ""
    claim = pick(rng, _CLAIMS[topic][0 if level < 0.5 else 1])
    facts[topic] = claim.cases
    return claim.one.replace("*", "")


def _name(person: _Claim, caption: Caption) -> str:
    return (person.many if caption.plural else person.one).split("*")[1]


def _pairs(people: Iterable[str], activity: str, place: str) -> Pairs:
    if not activity:
        return frozenset()
    placed = [(activity, place)] if place else []
    return frozenset([*((person, activity) for person in people), *placed])


def _words(pattern: str, starred: Part) -> list[Word]:
    return fill_pattern(pattern, lambda slot, before: (), starred)


def _joined(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in with_articles(list(words)))
