"""Plausible sentences, the same for the same seed."""

import re
from collections.abc import Sequence
from hashlib import blake2b

from gwd.demo import tokens

_OPENERS = (
    "Here is a short answer about {topic}.",
    "Let me take {topic} step by step.",
    "In brief, {topic} comes down to a few plain points.",
    "There is more than one way to look at {topic}.",
    "A good place to start with {topic} is what can be measured.",
)
_SUBJECTS = (
    "The first step",
    "A careful reader",
    "The simplest design",
    "Most of the work",
    "An early measurement",
    "The second look",
    "A small example",
    "Every later choice",
)
_VERBS = (
    "depends on",
    "explains",
    "is easier than",
    "follows from",
    "makes room for",
    "is kept honest by",
    "can be checked against",
    "rarely contradicts",
)
_OBJECTS = (
    "the numbers at hand",
    "a clear question",
    "what was agreed before",
    "the limits of the method",
    "one good counterexample",
    "the order of the steps",
    "a habit of writing things down",
    "the cost of being wrong",
)
_THOUGHTS = (
    "The request asks about {topic}.",
    "I should keep the answer short and correct.",
    "First I recall what is known about {topic}.",
    "Then I check whether anything contradicts it.",
    "A plain sentence will serve better than a long list.",
    "That settles the outline.",
)
_DIRECTIVE = re.compile(r"\[\[fault:.*?\]\]", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{2,}")
# fmt: off
_COMMON = frozenset((
    "about", "all", "also", "and", "answer", "any", "are", "but", "can", "could", "does", "each",
    "for", "from", "had", "has", "have", "hello", "how", "into", "its", "just", "like", "make",
    "not", "one", "our", "out", "please", "should", "some", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "use", "was", "what",
    "when", "where", "which", "who", "why", "will", "with", "would", "write", "you", "your",
))
# fmt: on
_MAX_TOPIC_WORDS = 3


class Picker:
    """An endless, repeatable row of choices made from a seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._turn = 0

    def number(self, below: int) -> int:
        self._turn += 1
        digest = blake2b(self._seed + self._turn.to_bytes(4, "big"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % below

    def choose(self, options: Sequence[str]) -> str:
        return options[self.number(len(options))]


def topic_of(text: str) -> str:
    """The last few telling words of a message; a fault asked for in it is no topic."""
    words = [
        word for word in _WORD.findall(_DIRECTIVE.sub("", text)) if word.lower() not in _COMMON
    ]
    return " ".join(words[-_MAX_TOPIC_WORDS:]).lower() or "this question"


def answer(seed: bytes, topic: str) -> str:
    picker = Picker(seed)
    parts = [picker.choose(_OPENERS).format(topic=topic)]
    parts += [_sentence(picker) for _ in range(2 + picker.number(3))]
    return " ".join(parts)


def answer_of_length(seed: bytes, topic: str, length: int) -> list[str]:
    """Exactly `length` tokens, cut in the middle of a sentence where need be."""
    picker = Picker(seed)
    pieces = tokens.split(picker.choose(_OPENERS).format(topic=topic))
    while len(pieces) < length:
        pieces += tokens.split(" " + _sentence(picker))
    return pieces[:length]


def thoughts_of_length(seed: bytes, topic: str, length: int) -> list[str]:
    """Reasoning of `length` tokens."""
    pieces: list[str] = []
    turn = Picker(seed).number(len(_THOUGHTS))
    while len(pieces) < length:
        thought = _THOUGHTS[turn % len(_THOUGHTS)].format(topic=topic)
        pieces += tokens.split(" " + thought if pieces else thought)
        turn += 1
    return pieces[:length]


def _sentence(picker: Picker) -> str:
    return f"{picker.choose(_SUBJECTS)} {picker.choose(_VERBS)} {picker.choose(_OBJECTS)}."
