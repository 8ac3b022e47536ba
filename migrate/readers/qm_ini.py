"""qm.ini: the Broker stanza with the attributes that became the queue manager's (guide 7.3), and what else matters.

    Broker:
       MaxMsgRetryCount=5
       RoutingExitPath=/var/mqm/exits/route(Route)

A stanza begins with its name and a colon; ``name=value`` lines follow; ``#`` begins a comment. The guide calls the
stanza Brokers, version 6 Broker: both are read. Other stanzas do not concern publish/subscribe and are skipped,
except for the queue manager's name if one gives it. On Windows the same is in the registry, where a key ends with the
stanza's name: an export of regedit is read too.

    [HKEY_LOCAL_MACHINE\\SOFTWARE\\IBM\\MQSeries\\CurrentVersion\\Configuration\\QueueManager\\QM1\\Broker]
    "MaxMsgRetryCount"="5"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from migrate.legacy_state import Item, Source, StanzaAttribute
from migrate.readers.text import lines_of, unread

STANZAS: Final = ("broker", "brokers")
_KEY: Final = re.compile(r"\[HKEY_[^\]]*\\([^\\\]]+)\]", re.IGNORECASE)
_VALUE: Final = re.compile(r'"([^"]*)"=(?:"(.*)"|dword:([0-9a-f]+))', re.IGNORECASE)


def looks_like(text: str) -> bool:
    """Whether *text* is made of stanzas, one of them the broker's."""
    return any(_stanza(line.text).lower() in STANZAS for line in lines_of(text))


def read(text: str, file: str) -> Iterator[Item]:
    """The attributes of the broker's stanza, each a StanzaAttribute."""
    stanza = ""
    for line in lines_of(text):
        if line.text.startswith(("#", "*", ";")):
            continue
        if started := _stanza(line.text):
            stanza = started
            continue
        if stanza.lower() not in STANZAS:
            continue
        name, equals, value = line.text.partition("=")
        if (found := _VALUE.fullmatch(line.text)) is not None:
            name = found[1]
            value = str(int(found[3], 16)) if found[3] else found[2].replace("\\\\", "\\")
        if not equals or not name.strip():
            yield unread(file, line.number, line.text, f"not an attribute of stanza {stanza}")
            continue
        source = Source(file=file, position=line.number)
        yield StanzaAttribute(source=source, stanza="Broker", name=name.strip(), value=value.strip())


def _stanza(row: str) -> str:
    """The name of the stanza or of the registry's key that begins with this row; "" for another row."""
    if (key := _KEY.fullmatch(row)) is not None:
        return key[1]
    return row[:-1].strip() if row.endswith(":") and "=" not in row else ""
