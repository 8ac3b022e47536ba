"""Topic strings, patterns of both schemes, the index over many of them, selection strings, authority profiles.

Each is compared with a plain form that is written for reading: guide 2.5.1, 2.5.4, 2.4.3, 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from commands.broker.authority import Action, RecordedAuthority
from commands.broker.objects import AuthorityRecord, Objects, QueueManager
from rfh2 import CommandError
from streams import (
    TopicObject,
    add_prefix,
    check_publication_topic,
    construct_topic_string,
    escape_char_pattern,
    is_within,
    join_levels,
    parse_char_pattern,
    parse_pattern,
    remove_prefix,
    split_levels,
    widen_to_topic_pattern,
)
from streams.blocking import BlockSet
from streams.index import SubscriptionIndex
from streams.selectors import compile_selector
from streams.selectors.compile import compile_condition
from streams.selectors.parse import parse as parse_selector
from streams.subscriptions import Subscription, WildcardScheme
from tests.reliability.trials import Json, Target
from tests.streams import plain_matchers

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LEVELS: Final = ("a", "b", "ab", "abcabc", "", "a+", "#a", "$x", " ", "é", "\U0001f600")


def _topic(random: Random, longest: int = 5) -> str:
    return "/".join(random.choices(_LEVELS[: random.choice((2, 5, 11))], k=random.randint(1, longest)))


def _pattern(random: Random) -> tuple[str, str]:
    if random.random() < 0.5:
        return "TOPIC", "/".join(random.choices(("a", "b", "ab", "", "+", "#", "a+"), k=random.randint(1, 6)))
    return "CHAR", "".join(
        random.choices((*"ab/*?", "abc", "%*", "%%", "%?", "%"), weights=(*[6] * 8, 1, 1), k=random.randint(1, 9))
    )


def _one(random: Random) -> Json:
    scheme, pattern = _pattern(random)
    topic = (
        _topic(random) if random.random() < 0.7 else pattern.replace("*", "ab").replace("?", "b").replace("#", "a/b")
    )
    return {"scheme": scheme, "pattern": pattern, "topic": topic}


def _matches(case: Json) -> str:
    scheme, topic = WildcardScheme[case["scheme"]], case["topic"]
    try:
        pattern = parse_pattern(case["pattern"], scheme)
    except CommandError:
        return "refused"
    if not topic:
        return "no topic"
    found = pattern.matches(topic)
    assert found is plain_matchers.selects(case["pattern"], scheme, topic)
    if scheme is WildcardScheme.CHAR:
        assert parse_char_pattern(escape_char_pattern(topic)).matches(topic)
        wider = widen_to_topic_pattern(case["pattern"])
        assert not found or not pattern.is_wild or plain_matchers.selects(wider, WildcardScheme.TOPIC, topic)
    assert pattern.is_wild or found is (pattern.literal == topic)
    plain_matchers.topic_selects.cache_clear()
    plain_matchers.char_selects.cache_clear()
    return "selected" if found else "not selected"


def _many(random: Random) -> Json:
    patterns = [_pattern(random) for _ in range(random.randint(1, 30))]
    topics = [_topic(random) for _ in range(6)]
    blocks = sorted({_topic(random, 3) for _ in range(random.randrange(3))} - {""})
    return {"patterns": patterns, "topics": topics, "blocks": blocks, "removed": random.randrange(30)}


def _index(case: Json) -> str:
    index, there = SubscriptionIndex(), {}
    blocks = BlockSet(frozenset(case["blocks"]))
    for number, (scheme, text) in enumerate(case["patterns"]):
        try:
            parse_pattern(text, WildcardScheme[scheme])
        except CommandError:
            continue
        there[number] = Subscription(
            number.to_bytes(24, "big"),
            text,
            dest_qmgr="QM1",
            dest_queue="Q",
            created=_NOW,
            wildcard=WildcardScheme[scheme],
        )
        index.add(there[number], blocks)
    found = 0
    for step in range(2):
        for topic in filter(None, case["topics"]):
            wanted = [
                n for n, s in there.items() if plain_matchers.reaches(s.topic_string, s.wildcard, topic, case["blocks"])
            ]
            assert [int.from_bytes(s.sub_id, "big") for s in index.match(topic)] == wanted, (step, topic)
            found += len(wanted)
        gone = there.pop(case["removed"], None)
        if gone is not None:
            index.remove(gone)
    plain_matchers.topic_selects.cache_clear()
    plain_matchers.char_selects.cache_clear()
    return "some" if found else "none"


def _string(random: Random) -> Json:
    return [
        _topic(random) if random.random() < 0.9 else random.choice(("", "\0", "\0a", "x" * 10_240, "x" * 10_241))
        for _ in range(2)
    ]


def _strings(case: Json) -> str:
    prefix, topic = case
    assert join_levels(split_levels(topic)) == topic
    whole = add_prefix(prefix, topic)
    assert is_within(prefix, whole)
    assert remove_prefix(prefix, whole) == topic
    try:
        constructed = construct_topic_string(prefix, topic)
        assert constructed in (prefix, topic, f"{prefix}/{topic}")
        check_publication_topic(topic)
    except CommandError as error:
        _refused_with(error, 2425, 3072)
        return "refused"
    assert not {"#", "+"} & set(split_levels(topic))
    return "a topic"


def _refused_with(error: CommandError, *reasons: int) -> None:
    assert error.reason in reasons, error


_NAMES: Final = ("a", "b", "Root.MQMD.Priority", "Body.x", "usr.a", "not.in", "ORDER", "é")
_OPERANDS: Final = (
    "1",
    "-1",
    "0",
    "1.5",
    "1e400",
    "0x1F",
    "9223372036854775807",
    "9223372036854775808",
    "'a'",
    "'a''b'",
    "''",
    '"0xFF"',
    '"0x"',
    "TRUE",
    "FALSE",
    "NULL",
    "1.",
    ".5",
    "1e",
    "'",
    "'%_'",
)


def _operand(random: Random, depth: int) -> str:
    if depth and random.random() < 0.3:
        return f"({_operand(random, depth - 1)} {random.choice('+-*/')} {_operand(random, depth - 1)})"
    return (
        random.choice(_NAMES[:3] if random.random() < 0.9 else _NAMES)
        if random.random() < 0.5
        else random.choice(_OPERANDS[:12])
    )


def _condition(random: Random, depth: int) -> str:
    no = random.choice(("", "NOT "))
    one, two = _operand(random, 2), _operand(random, 2)
    match random.randrange(8 if depth else 5):
        case 0:
            return f"{one} {random.choice(('=', '<>', '<', '<=', '>', '>='))} {two}"
        case 1:
            return f"{one} {no}BETWEEN {two} AND {_operand(random, 1)}"
        case 2:
            return f"{one} {no}IN ({', '.join(random.choices(_OPERANDS[:12], k=random.randint(1, 3)))})"
        case 3:
            return f"{one} {no}LIKE {random.choice(_OPERANDS[8:11])}" + random.choice(("", " ESCAPE '!'", " ESCAPE ''"))
        case 4:
            return f"{random.choice(_NAMES)} IS {no}NULL"
        case 5:
            return f"NOT ({_condition(random, depth - 1)})"
        case _:
            return f"({_condition(random, depth - 1)}) {random.choice(('AND', 'OR'))} {_condition(random, depth - 1)}"


def _selector(random: Random) -> Json:
    if random.random() < 0.15:
        soup = (
            *_NAMES,
            *_OPERANDS,
            "AND",
            "OR",
            "NOT",
            "IN",
            "(",
            ")",
            ",",
            "LIKE",
            "IS",
            "=",
            "-",
            "\n",
            "\0",
            "{",
            "é",
        )
        text = " ".join(random.choices(soup, k=random.randrange(12)))
    else:
        text = _condition(random, 4)
    values = (None, True, False, 0, 1, -1, 1.5, 2**63 - 1, "a", "a'b", "", "1", "%_", "\n" * 3)
    return {
        "text": text,
        "values": [
            {
                "usr.a": random.choice(values),
                "usr.b": random.choice(values),
                "Root.MQMD.Priority": random.choice(values),
            }
            for _ in range(3)
        ],
    }


def _selects(case: Json) -> str:
    try:
        selector = compile_selector(case["text"])
    except CommandError as error:
        _refused_with(error, 3150)
        return "refused"
    if not case["text"].strip():
        return "empty"
    condition, _ = parse_selector(case["text"])
    for values in case["values"]:
        lookup: Callable[[str], Any] = values.get
        is_true, is_false = (compile_condition(condition, wanted)(lookup) for wanted in (True, False))
        assert selector.matches(lookup) is is_true, values
        assert not (is_true and is_false), values
    return "compiled"


def _word(random: Random) -> str:
    return "".join(
        random.choices(
            ("A", "B", ".", "*", "?", "[", "]", "!", "-", "**"),
            weights=(6, 6, 3, 3, 2, 1, 1, 1, 1, 1),
            k=random.randint(1, 7),
        )
    )


def _records(random: Random) -> Json:
    records = [
        [
            random.choice(("TOPIC", "QUEUE")),
            _word(random),
            random.choice(("PRINCIPAL", "GROUP")),
            random.choice(("app", "staff", "nobody", "mqm")),
            random.sample(("PUB", "SUB", "PUT", "RESUME"), random.randrange(4)),
        ]
        for _ in range(random.randrange(8))
    ]
    names = [_word(random).replace("*", "A").replace("?", "B") for _ in range(3)]
    return {"records": records, "names": names, "groups": random.sample(("staff", "mqm"), random.choice((0, 1, 1)))}


def _authority(case: Json) -> str:
    objects = Objects(QueueManager("QM1"))
    for number, name in enumerate(dict.fromkeys(case["names"])):
        objects.topics.define(TopicObject(name, f"t{number}"))
    records = {}
    for object_type, profile, entity_type, entity, words in case["records"]:
        record = AuthorityRecord(object_type, profile, entity_type, entity, tuple(words))
        records[record.name] = record
        objects.put(record)
    authority = RecordedAuthority(objects, lambda _user: case["groups"])
    allowed = 0
    for number, name in enumerate(dict.fromkeys(case["names"])):
        for kind, word, ask in (
            ("TOPIC", "PUB", lambda: authority.may_use_topic("app", Action.PUBLISH, f"t{number}")),  # noqa: B023
            ("QUEUE", "PUT", lambda: authority.may_put("app", name)),  # noqa: B023
        ):
            wanted = _may(records.values(), case["groups"], kind, name, word)
            if kind == "TOPIC":
                wanted = _either(wanted, _may(records.values(), case["groups"], kind, "SYSTEM.BASE.TOPIC", word))
            found = ask()
            assert wanted in (found, None), (kind, name)
            allowed += found
    return "allowed" if allowed else "refused"


Truth = bool | None


def _either(one: Truth, other: Truth) -> Truth:
    return True if one or other else None if None in (one, other) else False


def _may(records: Any, groups: list[str], kind: str, name: str, word: str) -> Truth:
    """Whether an entity's most specific record that fits grants *word*; None where IBM does not say which that is."""
    if not records or "mqm" in groups:
        return True
    found: Truth = False
    for entity in (("PRINCIPAL", "app"), ("GROUP", "nobody"), *(("GROUP", group) for group in groups)):
        own = [r for r in records if (r.entity_type, r.entity) == entity and r.object_type == kind]
        fitting = [r for r in own if _fits(r.profile, name)]
        closest = [r for r in fitting if not any(_is_closer(other.profile, r.profile) for other in fitting)]
        grants = {word in r.authorities for r in closest}
        found = _either(found, None if len(grants) > 1 else grants == {True})
    return found


def _fits(profile: str, name: str) -> bool:
    qualifiers = profile.split(".")
    if qualifiers.count("**") > 1 or any("**" in each and each != "**" for each in qualifiers):
        return False
    return _qualifiers_fit(qualifiers, name.split("."))


def _qualifiers_fit(profile: list[str], name: list[str]) -> bool:
    if not profile:
        return not name
    if profile[0] == "**":  # any number of qualifiers, also none
        return any(_qualifiers_fit(profile[1:], name[taken:]) for taken in range(len(name) + 1))
    return bool(name) and _one_fits(profile[0], name[0]) and _qualifiers_fit(profile[1:], name[1:])


def _one_fits(profile: str, name: str) -> bool:
    if not profile:
        return not name
    if profile[0] == "*":
        return any(_one_fits(profile[1:], name[taken:]) for taken in range(len(name) + 1))
    return bool(name) and profile[0] in ("?", name[0]) and _one_fits(profile[1:], name[1:])


def _is_closer(one: str, other: str) -> bool:
    """Where two profiles first differ: no wildcard before ``?``, that before ``*``, that before ``**``."""
    ranks = {"?": 1, "*": 2, "**": 3}
    pieces = [re.findall(r"\*\*|.", profile) for profile in (one, other)]
    for left, right in zip(*pieces, strict=False):
        if left != right:
            return ranks.get(left, 0) < ranks.get(right, 0)
    return False


TARGETS: Final = (
    Target("patterns", "patterns of both schemes select what the guide's words say", _one, _matches, 60_000),
    Target("index", "the index finds what trying one by one finds, blocks and removals included", _many, _index, 2_500),
    Target(
        "topics", "topic strings: prefixes and levels come apart as they were put together", _string, _strings, 100_000
    ),
    Target(
        "selectors",
        "selection strings: refused with 3150, or compiled as the definition reads them",
        _selector,
        _selects,
        6_000,
    ),
    Target("authority", "profiles allow what a plain matcher allows", _records, _authority, 12_000),
)
