"""qm.ini: the Broker stanza with the attributes that became the queue manager's (guide 7.3), and what else matters.

    Broker:
       MaxMsgRetryCount=5
       RoutingExitPath=/var/mqm/exits/route(Route)

A stanza begins with its name and a colon; ``name=value`` lines follow; ``#`` begins a comment. The guide calls the
stanza Brokers, version 6 Broker: both are read. Other stanzas do not concern publish/subscribe and are skipped,
except for the queue manager's name if one gives it.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.legacy_state import Item, Source, StanzaAttribute
from migrate.readers.text import lines_of, unread

STANZAS = ("Broker", "Brokers")


def looks_like(text: str) -> bool:
    """Whether *text* is made of stanzas, one of them the broker's."""
    return any(line.text.rstrip(": ") in STANZAS and line.text.endswith(":") for line in lines_of(text))


def read(text: str, file: str) -> Iterator[Item]:
    """The attributes of the broker's stanza, each a StanzaAttribute."""
    stanza = ""
    for line in lines_of(text):
        if line.text.startswith(("#", "*", ";")):
            continue
        if line.text.endswith(":") and "=" not in line.text:
            stanza = line.text[:-1].strip()
            continue
        if stanza not in STANZAS:
            continue
        name, equals, value = line.text.partition("=")
        if not equals or not name.strip():
            yield unread(file, line.number, line.text, f"no attribute of stanza {stanza}")
            continue
        source = Source(file=file, position=line.number)
        yield StanzaAttribute(source=source, stanza="Broker", name=name.strip(), value=value.strip())
