"""The topic tree, one level at a time: what is below a topic, found by seeking, however many topics there are.

All that has a topic string is in order by it: retained publications, counts of publications, subscriptions and topic
objects (``listing``). A child of ``a`` is the first topic string in ``a/`` to ``a0`` (0 follows / in ASCII); the next
child is sought behind all that is below that one. So a level costs two seeks or so for each child that is shown.

    Sport  Sport!  Sport/Golf  Sport/Soccer/A  Sport/Soccer/B
    below the root: Sport, Sport! (Sport/Golf is below Sport, which was found)    below Sport: Golf, Soccer (2 below)

A chain of levels at which nothing is, and which have one child each, is one node, as in ``streams.outline``.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from commands.qmgr.store.database import Database, translate_sqlite_errors
from commands.qmgr.store.listing import Listing
from streams.topic_strings import SEPARATOR

# What follows the separator: the topic strings below one end before it.
_BEHIND: Final = chr(ord(SEPARATOR) + 1)
# No topic string is greater; the last code point is no character.
_END: Final = "\U0010ffff"
_SOURCES: Final = ("main.retained", "main.topic_counts", "temp.listed", "temp.topic_objects")
_FIRST: Final = " UNION ALL ".join(
    f"SELECT * FROM (SELECT topic FROM {source} WHERE topic >= ?1 AND topic < ?2 ORDER BY topic LIMIT 1)"
    for source in _SOURCES
)
_LAST: Final = " UNION ALL ".join(
    f"SELECT * FROM (SELECT topic FROM {source} WHERE topic >= ?1 AND topic < ?2 ORDER BY topic DESC LIMIT 1)"
    for source in _SOURCES
)
_AT: Final = """SELECT EXISTS (SELECT 1 FROM main.retained WHERE topic = ?1),
    (SELECT publications FROM main.topic_counts WHERE topic = ?1),
    (SELECT count(*) FROM temp.listed WHERE topic = ?1),
    (SELECT group_concat(name, ', ') FROM temp.topic_objects WHERE topic = ?1)"""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A node. label: the levels that lead here from the node above. subscriptions: with exactly this topic string."""

    label: str
    topic: str
    retained: bool
    published: int
    subscriptions: int
    objects: str
    has_children: bool


class TopicLevels:
    """The tree of one listing. For one thread."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    @property
    def database(self) -> Database:
        """The database of the listing."""
        return self._listing.database

    @translate_sqlite_errors
    def below(self, under: str | None, after: str, most: int) -> tuple[list[TopicNode], str]:
        """At most *most* children of topic *under*, and where the next page begins; "" where there is none.

        under: None for the root. after: what the page before gave, "" for the first.
        """
        connection = self._listing.fresh()
        begin, end = ("", _END) if under is None else (under + SEPARATOR, under + _BEHIND)
        cursor = max(begin, after)
        nodes: list[TopicNode] = []
        while (found := _outermost(connection, _FIRST, cursor, end)) is not None:
            child = begin + found[len(begin) :].partition(SEPARATOR)[0]
            behind = child + _BEHIND
            if found == child:
                # What stands between a topic and what is below it is no child of it: "a!" between "a" and "a/b".
                cursor = found + "\0"
            elif _is_there(connection, child):
                cursor = behind
                continue
            else:
                cursor = behind
            # "a" is in the order before "a!", and "a/b" behind it: a child is shown where it is first met.
            if len(nodes) == most:
                return nodes, found
            nodes.append(self._node(connection, begin, child))
        return nodes, ""

    @translate_sqlite_errors
    def at(self, topic: str) -> TopicNode:
        """What is at a topic."""
        return self._node(self._listing.fresh(), "", topic, follows=False)

    def _node(self, connection: sqlite3.Connection, begin: str, topic: str, follows: bool = True) -> TopicNode:
        if follows and not _is_there(connection, topic):
            topic = _chain(connection, topic)
        retained, published, subscriptions, objects = connection.execute(_AT, (topic,)).fetchone()
        has_children = _outermost(connection, _FIRST, topic + SEPARATOR, topic + _BEHIND) is not None
        label = topic[len(begin) :]
        return TopicNode(label, topic, bool(retained), published or 0, subscriptions, objects or "", has_children)


def _outermost(connection: sqlite3.Connection, statement: str, begin: str, end: str) -> str | None:
    found = [topic for (topic,) in connection.execute(statement, (begin, end))]
    if not found:
        return None
    # Python compares code points, and SQLite their bytes in UTF-8: the order is the same.
    return str(min(found) if statement is _FIRST else max(found))


def _is_there(connection: sqlite3.Connection, topic: str) -> bool:
    return any(any(values) for values in connection.execute(_AT, (topic,)))


def _chain(connection: sqlite3.Connection, topic: str) -> str:
    """The topic where the chain of single levels from *topic* ends: what all topic strings below it begin with."""
    span = topic + SEPARATOR, topic + _BEHIND
    first, last = _outermost(connection, _FIRST, *span), _outermost(connection, _LAST, *span)
    assert first is not None
    assert last is not None
    common = []
    for one, other in zip(first.split(SEPARATOR), last.split(SEPARATOR), strict=False):
        if one != other:
            break
        common.append(one)
    chain = SEPARATOR.join(common)
    # "a!" stands between "a" and "a/b", which have "a" in common, and does not begin with it.
    if chain != topic and _outermost(connection, _FIRST, chain + "\0", chain + SEPARATOR) is not None:
        chain = SEPARATOR.join(common[:-1])
    return chain
