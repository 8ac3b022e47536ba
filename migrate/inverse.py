"""What takes one object back, from three states of it: before the migration, as the migration left it, and now.

One rule for the embedded queue manager, whose objects are definitions, and for a live one, whose objects are what
DISPLAY shows (a row of attributes in both):

    before  left  now
    -       L     as L     the migration made it: it is deleted
    -       L     more     a list has what others added: what the migration put there is taken out, the object stays
    -       L     other    somebody altered it, or has made something that uses it: it is kept as it is
    B       L     as L     attributes that the migration changed have the values of B again, names that it added go
    B       L     other    an attribute that somebody else has changed since is kept; the others are taken back
    B       L     gone     somebody deleted it: it stays deleted
    B       gone  gone     the migration deleted it: it is there again

What the migration has not touched stays as it is. What others have changed is named, and is kept unless the undo is
forced; then the object is as before. Names and authorities that others added to what was there before stay even then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Row = Mapping[str, Any]
"""The attributes of an object. A list of names or authorities is a tuple or a list."""
Same = Callable[[str, Any, Row], bool]
"""Whether a row has this value of this attribute."""


@dataclass(frozen=True, slots=True)
class Inverse:
    """What to do with the object that is there now.

    deletes: it goes. makes: it has to be made anew with these attributes. alters: attributes to set, and their values.
    changed: what others have changed, a clause each; "kept", unless the undo is forced.
    """

    deletes: bool = False
    makes: Row | None = None
    alters: Row = field(default_factory=dict)
    changed: tuple[str, ...] = ()

    @property
    def does(self) -> bool:
        """Whether there is anything to do."""
        return self.deletes or self.makes is not None or bool(self.alters)


NOTHING: Final = Inverse()
ALTERED: Final = "it was altered"
"""What is said of an attribute without a name, which stands for a whole object."""


def equal(word: str, value: Any, row: Row) -> bool:
    """``Same`` for rows whose values are compared as they are."""
    return bool(row.get(word) == value)


def inverse(
    before: Row | None,
    left: Row | None,
    now: Row | None,
    *,
    same: Same = equal,
    force: bool = False,
    used_by: str = "",
    whole: bool = False,
) -> Inverse:
    """What takes the object back; None for one that is not there.

    before, left: of an object that was altered, at least the attributes that the migration set. used_by: what others
    have made that needs the object. whole: a list is one value, as any other.
    """
    if now is None:
        if before is None or left is None:
            return NOTHING if before is None else Inverse(makes=before)
        return Inverse(makes=before if force else None, changed=("it was deleted",))
    if left is None:
        return Inverse(changed=("somebody has defined it again",))
    if before is None:
        found = _made(left, now, same, force, whole)
        return Inverse(changed=(f"{used_by} uses it",)) if found.deletes and used_by and not force else found
    return _altered(before, left, now, same, force, whole)


def _made(left: Row, now: Row, same: Same, force: bool, whole: bool) -> Inverse:
    lists = {word: _names(left[word]) for word in left if _is_list(left[word]) and not whole}
    changed = [_changed(word, left, now) for word in left if word not in lists and not same(word, left[word], now)]
    alters = {}
    for word, mine in lists.items():
        if more := tuple(name for name in _names(now.get(word)) if name not in mine):
            alters[word] = more
            changed.append(f"{', '.join(more)} was added to {word}" if word else ALTERED)
    if force or not changed:
        return Inverse(deletes=True, changed=tuple(changed))
    # What was added stays, in an object that has nothing else; one with another attribute is somebody's work as it is.
    return Inverse(alters=alters if len(alters) == len(changed) else {}, changed=tuple(changed))


def _altered(before: Row, left: Row, now: Row, same: Same, force: bool, whole: bool) -> Inverse:
    alters: dict[str, Any] = {}
    changed: list[str] = []
    for word in (each for each in left if each in before):
        was, mine = before[word], left[word]
        if _is_list(mine) and not whole:
            kept = _merged(_names(was), _names(mine), _names(now.get(word)))
            if kept != _names(now.get(word)):
                alters[word] = kept
        elif was == mine or same(word, was, now):
            continue
        elif force or same(word, mine, now):
            alters[word] = was
            changed += [] if same(word, mine, now) else [_changed(word, left, now)]
        else:
            changed.append(_changed(word, left, now))
    return Inverse(alters=alters, changed=tuple(changed))


def _merged(before: tuple[str, ...], left: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """*now* without what the migration added, and with what it took out."""
    kept = [name for name in now if name in before or name not in left]
    return (*kept, *(name for name in before if name not in left and name not in now))


def _changed(word: str, left: Row, now: Row) -> str:
    if not word:
        return ALTERED
    return f"{word} is ({_text(now.get(word))}), the migration left ({_text(left[word])})"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _names(value: Iterable[str] | None) -> tuple[str, ...]:
    return () if value is None else tuple(value)
