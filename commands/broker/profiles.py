"""Generic profiles of authority records: which object names match a profile, and which of several profiles applies.

The rules are those of IBM MQ's object authority manager. A name's qualifiers are the parts between its dots.

    ?    exactly one character, no dot         AB.?D        AB.CD, not AB.CCD
    *    as a qualifier: exactly one           ABC.*.JKL    ABC.DEF.JKL, not ABC.JKL, not ABC.DEF.GHI.JKL
    *    in one: any characters, or none       ABC.DE*.JKL  ABC.DE.JKL, ABC.DEGH.JKL
    **   any number of qualifiers, or none     ABC.**       ABC, ABC.DEF, ABC.DEF.GHI; not ABCD

``**`` is a whole qualifier and occurs once in a profile: first, last, between two others, or alone for every name.

If several profiles match a name, only the most specific one applies. They are compared from left to right. At the first
difference, an ordinary character is more specific than ``?``, ``?`` than ``*``, and ``*`` than ``**``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from streams.fragments import Fragment, Wild, fragments_stand_in, read_fragments

MULTIPLE: Final = "**"
_DOT: Final = "."
_WILD: Final = {"*": Wild.MANY, "?": Wild.ONE}

# Specificity; a lower number is more specific. IBM's rule does not rank the end of a profile. Here it is less specific
# than a character that a longer profile has there (A*B beside A*), and more specific than a wildcard that may match
# nothing.
_LITERAL, _END, _DOT_BEFORE_MULTIPLE, _ONE, _MANY, _MULTIPLE = range(6)
_RANKS: Final = {"?": _ONE, "*": _MANY}

_Qualifier = tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile's name, generic or full.

    before, after: its qualifiers on both sides of ``**``; all are in *before* where has_multiple is False. specificity:
    if two profiles match one name, the profile with the lower value is more specific.
    """

    before: tuple[_Qualifier, ...]
    after: tuple[_Qualifier, ...]
    has_multiple: bool
    specificity: tuple[int, ...]

    def fits(self, name: str) -> bool:
        """Whether the profile matches the object of that name."""
        qualifiers = name.split(_DOT)
        spare = len(qualifiers) - len(self.before) - len(self.after)
        if spare < 0 or (spare and not self.has_multiple):
            return False
        beside = qualifiers[: len(self.before)] + qualifiers[len(self.before) + spare :]
        return all(map(fragments_stand_in, self.before + self.after, beside))


@lru_cache(maxsize=4096)
def parse_profile(text: str) -> Profile | None:
    """Read a profile's name; None for one that is not valid: ``**`` in part of a qualifier, or twice."""
    qualifiers = text.split(_DOT)
    if qualifiers.count(MULTIPLE) > 1 or any(MULTIPLE in each for each in qualifiers if each != MULTIPLE):
        return None
    at = qualifiers.index(MULTIPLE) if MULTIPLE in qualifiers else len(qualifiers)
    before, after = (tuple(map(_read, part)) for part in (qualifiers[:at], qualifiers[at + 1 :]))
    return Profile(before, after, at < len(qualifiers), tuple(_ranks(text)))


def is_generic_profile(text: str) -> bool:
    """Whether a profile's name holds wildcards."""
    return any(wild in text for wild in _WILD)


def _read(qualifier: str) -> _Qualifier:
    return read_fragments(_WILD.get(character, character) for character in qualifier)


def _ranks(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        if text.startswith(MULTIPLE, at):
            yield _MULTIPLE
            at += len(MULTIPLE)
            continue
        yield _DOT_BEFORE_MULTIPLE if text.startswith(_DOT + MULTIPLE, at) else _RANKS.get(text[at], _LITERAL)
        at += 1
    yield _END
