"""MQSC: which commands there are, and what each attribute of an object takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commands.broker.attribute_kinds import (
    Attribute,
    Choice,
    Custom,
    Hexadecimal,
    Kind,
    Name,
    Names,
    Number,
    Text,
    shown,
)
from commands.broker.objects import QueueManager
from commands.mqsc import attributes, channel_attributes, families
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.execute import objects_by_verb
from commands.mqsc.script import OBJECT_SYNONYMS, VERB_SYNONYMS
from commands.mqsc.values import MOST_NAMES
from extension.markdown import Table, code
from rfh2.constants import MQ_OBJECT_NAME_LENGTH

KINDS: dict[str, ObjectKind] = {
    **{word: family.kind for word, family in families.FAMILIES.items()},
    "SVRCONN": families.SERVER_CHANNEL.kind,
    "CHLAUTH": channel_attributes.CHLAUTH,
    "SUB": attributes.SUB,
    "QMGR": attributes.QMGR,
}
# By identity: the two kinds of channel have one word.
_MAKERS: dict[int, Callable[[str], object]] = {
    id(attributes.QMGR): QueueManager,
    **{id(family.kind): family.make for family in (*families.FAMILIES.values(), families.SERVER_CHANNEL)},
}


def commands() -> Table:
    """Verbs with the objects that they take, and the short forms of both."""
    rows = tuple(
        (code(verb), _codes(_short(VERB_SYNONYMS, verb)), ", ".join(_with_short_forms(objects)))
        for verb, objects in objects_by_verb().items()
    )
    return Table(("verb", "short", "objects"), rows)


def attributes_of(kind: ObjectKind) -> tuple[tuple[str, str, str], ...]:
    """Keyword, what it takes, and its value in a new object ("" where there is none)."""
    return tuple((_spelt(one), takes(one.kind), _initial(kind, one)) for one in kind.attributes)


def attribute_table(word: str) -> Table:
    kind = KINDS[word]
    rows = tuple((code(keyword), taken, initial) for keyword, taken, initial in attributes_of(kind))
    without = _codes(sorted(kind.without_effect))
    return Table(("attribute", "takes", "in a new object"), (*rows, (without, "anything: taken, no effect here", "")))


def takes(kind: Kind) -> str:
    """What a value may be, as Markdown."""
    match kind:
        case Choice():
            return _codes(kind.meanings)
        case Number():
            return ", ".join((f"{kind.low} to {kind.high}", *map(code, kind.meanings)))
        case Text():
            return f"text, up to {kind.longest} characters"
        case Name():
            return f"a name, up to {MQ_OBJECT_NAME_LENGTH} characters"
        case Names():
            return f"{'names' if kind.of_objects else 'texts'}, up to {MOST_NAMES}"
        case Hexadecimal():
            return f"up to {2 * kind.size} hexadecimal digits"
        case Custom():
            return "pairs `NAME(VALUE)`; `PSCTAGS(ANY)` or `PSCTAGS(STRICT)` has an effect"
    raise TypeError(f"{type(kind).__name__} has no words here")


def _initial(kind: ObjectKind, attribute: Attribute) -> str:
    make = _MAKERS.get(id(kind))
    if make is None:
        return ""
    value = shown(make("NAME"), attribute)
    return code(str(value)) if value not in ("", ()) else ""


def _spelt(attribute: Attribute) -> str:
    return ", ".join((attribute.keyword, *attribute.aliases))


def _short(synonyms: dict[str, str], word: str) -> list[str]:
    return [short for short, long in synonyms.items() if long == word]


def _with_short_forms(objects: Iterable[str]) -> list[str]:
    found = []
    for word in objects:
        short = _codes(_short(OBJECT_SYNONYMS, word))
        found.append(f"{code(word)} ({short})" if short else code(word))
    return found


def _codes(words: Iterable[str]) -> str:
    return ", ".join(map(code, words))
