"""Topic strings and patterns of the queued interface as NATS subjects, and back, without collisions. Pure.

A level becomes a token, and `/` becomes `.`. White space, control characters, `.`, `*`, `>` and `=` become their UTF-8,
each byte as `=` and two hexadecimal digits. An empty level is `=` alone. A level that is `+` or `#` is escaped too. In
keys of a bucket, all but letters, digits, `-` and `_` of ASCII is escaped: clients of the key-value interface take no
others. Filters are those of ``commands.links.engine.log_adapter``.

    Sport/Soccer          mq.Sport.Soccer
    a.b/c d//é            mq.a=2Eb.c=20d.=.é, key a=2Eb.c=20d.=.=C3=A9
    /x                    mq.=.x
    Sport/#               mq.Sport and mq.Sport.>         # selects the topic itself too
    Sport/+/Arsenal       mq.Sport.*.Arsenal
    mq.a=2eb, mq.a/b      none: no topic string becomes these subjects

Each topic string has one subject and one key, and each subject or key at most one topic string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import MULTI_LEVEL, SINGLE_LEVEL

_SPACES: Final = "\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_FORBIDDEN: Final = re.compile(rf"[.*>={_SPACES}\ud800-\udfff]")
_FORBIDDEN_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_-]")
_BYTES: Final = re.compile("(?:=[0-9A-F]{2})+")
_EMPTY: Final = "="
_WILD: Final = (SINGLE_LEVEL, MULTI_LEVEL)
_NOTHING: Final = "=="
"""A token that no level becomes."""
# With more first levels than these, the server sends everything, and the bridge leaves out what it does not need.
_MOST_COVERED: Final = 50


def subject_of(topic: str, key: bool = False) -> str:
    """The subject of a topic string, without the prefix of all subjects. key: as a key of the bucket."""
    return ".".join(_token(level, key) for level in topic.split(SEPARATOR))


def topic_of(subject: str, key: bool = False) -> str | None:
    """The topic string of a subject without its prefix; None if no topic string becomes this subject."""
    try:
        topic = SEPARATOR.join(map(_level, subject.split(".")))
    except UnicodeDecodeError:
        return None
    return topic if subject_of(topic, key) == subject else None


def why_too_long(topic: str, longest: int) -> str | None:
    """Why the server takes no subject for *topic*, None where it does. longest: bytes of a subject, or of a key."""
    length = len(subject_of(topic, key=True))
    return None if length <= longest else f"a subject of {length} bytes is longer than longest_subject = {longest}"


def wildcards_of(topic_filter: str, prefix: str, key: bool = False) -> tuple[str, ...]:
    """The subjects with NATS wildcards that together select what a filter does. prefix: of all subjects."""
    tokens = [_selecting(each, key) for each in topic_filter.split(SEPARATOR)[1:]]
    below = prefix + ".".join(tokens)
    return (prefix + ".".join(tokens[:-1]), below) if tokens[-1] == ">" and len(tokens) > 1 else (below,)


def cover(filters: Iterable[str], prefix: str, key: bool = False) -> list[str]:
    """Subjects that select at least what *filters* do, and of which no two overlap, as a consumer must have them."""
    first = {each.split(SEPARATOR, 2)[1] for each in filters}
    if first & set(_WILD) or len(first) > _MOST_COVERED:
        return [f"{prefix}>"]
    tokens = [_selecting(each, key) for each in first]
    return sorted(prefix + token + below for token in tokens for below in ("", ".>")) or [prefix + _NOTHING]


def _token(level: str, key: bool = False) -> str:
    if not level:
        return _EMPTY
    if level in _WILD:
        return _escaped(level)
    return (_FORBIDDEN_IN_KEYS if key else _FORBIDDEN).sub(lambda found: _escaped(found[0]), level)


def _selecting(level: str, key: bool) -> str:
    return {SINGLE_LEVEL: "*", MULTI_LEVEL: ">"}.get(level) or _token(level, key)


def _escaped(text: str) -> str:
    return "".join(f"={byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _level(token: str) -> str:
    if token == _EMPTY:
        return ""
    return _BYTES.sub(lambda run: bytes.fromhex(run[0].replace("=", "")).decode("utf-8", "surrogatepass"), token)
