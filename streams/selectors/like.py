"""LIKE patterns (guide 2.4.3): ``%`` is any characters, ``_`` exactly one.

streams.fragments matches them. Without ``_``, the time grows with the lengths of value and pattern, not with their
product. With it, the worst case is one walk along the value, about 0.1 s for each million characters and half a second
where the pattern is as long as a selection string can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from streams.fragments import Wild, fragments_stand_in, literal_texts, read_fragments, texts_stand_in
from streams.selectors.errors import Refusal

_WILD = {"%": Wild.MANY, "_": Wild.ONE}


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """A function that says whether a value is like *pattern*. The escape was checked by check_escapes."""
    fragments = read_fragments(_symbols(pattern, escape))
    texts = literal_texts(fragments)
    match texts:
        case ():
            return partial(fragments_stand_in, fragments)
        case (whole,):
            return whole.__eq__
        case _:
            return partial(texts_stand_in, texts)


def _symbols(pattern: str, escape: str | None) -> Iterator[str | Wild]:
    characters = iter(pattern)
    for character in characters:
        yield next(characters) if character == escape else _WILD.get(character, character)


def check_escapes(pattern: str, escape: str | None, at: int) -> None:
    """Raise Refusal where the escape character precedes anything but ``%``, ``_`` or itself, as SQL92 has it.

    at: position of the pattern in the selection string.
    """
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            raise Refusal(at, f"in the pattern the escape character {escape} has to be followed by %, _ or itself")
