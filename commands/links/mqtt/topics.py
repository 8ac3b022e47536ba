"""Topic strings and patterns of the queued interface as MQTT topic names and filters, where there are any.

Pure. MQTT (version 5, section 4.7) has the topic-based wildcards of MQ, ``+`` and ``#``, but for this:

* ``#`` may only be last, and neither character may be a part of a level at all;
* a filter that begins with a wildcard selects no topic that begins with ``$``;
* a topic is at most 65,535 bytes of UTF-8 without control characters, where MQ counts 10,240 characters.

    pattern                    filter            then
    Stock/+/IBM, Stock/#       the same
    Sport/#/Arsenal            Sport/#           the bridge leaves out what the pattern does not select
    a/b*c (characters)         a/#               the same (guide 3.1.3)
    USA+/x                     none              no MQTT topic has such a level: nothing can come
    $share/g/x                 none              to MQTT that is no topic
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commands.links.engine.filters import levels_of
from commands.links.engine.properties import Pairs
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR
from streams.topic_wildcards import MULTI_LEVEL, SINGLE_LEVEL

# Escapes text that MQTT cannot carry, so that user properties can carry it.
#
# Pure. A string of MQTT is UTF-8 of at most 65,535 bytes without a null; a broker may close the connection over
# control characters (U+0001 to U+001F, U+007F to U+009F), and over what Unicode has no characters for (MQTT 5,
# 1.5.4). The user properties of a publication that has any such are escaped, all of them, and ``mq.Escaped`` among
# them says so:
#
#     \u{9}     the character with this number, in hexadecimal
#     \\       a backslash
#     \+        at the end of a value: it goes on in the next property of the same name
#
#     Note = "line 1 (line feed) line 2"    ->    Note = "line 1\u{A}line 2", mq.Escaped = "1"
#
# A publication without such characters is sent as it is, backslashes and all.

MAX_BYTES: Final = 65_535
ESCAPED: Final = "mq.Escaped"

_NOT_CHARACTERS: Final = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_FORBIDDEN: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NOT_CHARACTERS}]")
_TO_ESCAPE: Final = re.compile(rf"\\|{_FORBIDDEN.pattern}")
_TOKEN: Final = re.compile(r"\\u\{([0-9A-F]{1,6})\}|\\(\\)|\\\+\Z|([^\\]+)")
_GOES_ON: Final = "\\+"
# Characters to a piece of a long value: an escape has up to 10 bytes, and it still fits.
_PIECE: Final = 6_000


def why_not_text(text: str) -> str | None:
    """Why MQTT cannot carry *text* as a string, None where it can."""
    if text.isprintable() and len(text) * 4 <= MAX_BYTES:
        return None
    found = _FORBIDDEN.search(text)
    if found is not None:
        return "MQTT allows no null" if found[0] == "\0" else f"MQTT does not allow character U+{ord(found[0]):04X}"
    size = len(text.encode())
    return f"it has {size} bytes, more than the {MAX_BYTES} that MQTT allows" if size > MAX_BYTES else None


def fits_name(name: str) -> bool:
    """Whether a user property may have this name, escaped if need be."""
    # An escape has up to 10 bytes.
    return len(name) * 10 <= MAX_BYTES or len(_escape(name).encode()) <= MAX_BYTES


def escaped(pairs: Pairs) -> Pairs:
    """*pairs* as MQTT carries them: the same where it can. Each name must be one that ``fits_name``."""
    if all(why_not_text(name) is None and why_not_text(value) is None for name, value in pairs):
        return pairs
    return ((ESCAPED, "1"), *((_escape(name), piece) for name, value in pairs for piece in _pieces(value)))


def unescaped(pairs: Pairs) -> Pairs:
    """What ``escaped`` was given; the same pairs where nothing says that they are escaped, or they are not."""
    if (ESCAPED, "1") not in pairs:
        return pairs
    found: list[tuple[str, str]] = []
    begun = ""
    for escaped_name, piece in pairs:
        if escaped_name == ESCAPED:
            continue
        name, text = _unescape(escaped_name), _unescape(piece)
        if name is None or text is None:
            return pairs
        begun += text[0]
        if not text[1]:
            found.append((name[0], begun))
            begun = ""
    return pairs if begun else tuple(found)


def _escape(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{{{ord(found[0]):X}}}", text)


def _pieces(value: str) -> Iterator[str]:
    whole = _escape(value)
    if len(whole) * 4 <= MAX_BYTES or len(whole.encode()) <= MAX_BYTES:
        yield whole
        return
    for at in range(0, len(value), _PIECE):
        goes_on = _GOES_ON if at + _PIECE < len(value) else ""
        yield _escape(value[at : at + _PIECE]) + goes_on


def _unescape(text: str) -> tuple[str, bool] | None:
    """The text, and whether it goes on in the next property; None where it has an escape that there is not."""
    parts: list[str] = []
    at, goes_on = 0, False
    for token in _TOKEN.finditer(text):
        if token.start() != at:
            return None
        at = token.end()
        number, backslash, plain = token.groups()
        if number is not None:
            if int(number, 16) > 0x10FFFF:
                return None
            parts.append(chr(int(number, 16)))
        elif backslash or plain:
            parts.append(backslash or plain)
        else:
            goes_on = True
    return ("".join(parts), goes_on) if at == len(text) else None


_RESERVED: Final = "$"


def why_not_shared(topic: str) -> str | None:
    """Why a publication on *topic* concerns no MQTT program, None where it does."""
    if MULTI_LEVEL in topic or SINGLE_LEVEL in topic:
        return "an MQTT topic has no + and no #"
    return "topics that begin with $ are the MQTT broker's own" if topic.startswith(_RESERVED) else None


def why_not_topic(topic: str) -> str | None:
    """Why MQTT cannot carry a publication on *topic*, None where it can."""
    return why_not_shared(topic) or (why_not_text(topic) if topic else "an MQTT topic is not empty")


def filter_of(topic_string: str, scheme: WildcardScheme) -> str | None:
    """The narrowest MQTT filter that selects all that the pattern does; None where nothing can come over MQTT.

    Raises CommandError 3072 where *topic_string* is no pattern of that scheme.
    """
    levels = levels_of(topic_string, scheme)
    if levels is None or any(level not in (MULTI_LEVEL, SINGLE_LEVEL) and _has_wildcard(level) for level in levels):
        return None
    found = SEPARATOR.join(levels)
    return None if found.startswith(_RESERVED) or why_not_text(found) else found


def _has_wildcard(level: str) -> bool:
    return MULTI_LEVEL in level or SINGLE_LEVEL in level
