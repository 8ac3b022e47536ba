"""The part of an adapter that all trees which are logs share (``Adapter``): names, filters, and calls.

A filter is text, as in the topic-based scheme, with ``#`` at the end only. Such trees have no topics of their own, so
wildcards select topic strings with ``$`` too: all topic strings and filters begin with ``/`` here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from commands.links.engine.adapter import Engine, Subscribed
from commands.links.engine.command_from_native import NativePublication
from commands.links.engine.filter_tree import levels_of, matcher_of
from commands.links.engine.followed_filters import FollowedFilters, selected
from commands.links.engine.log_receiver import LogReceiver
from commands.links.engine.logs import Logs
from commands.links.engine.retained import TreeRetained
from commands.links.engine.unconnected import Unconnected
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

M = TypeVar("M")


class LogAdapter(Unconnected, Generic[M]):
    """A tree that is logs. path: of the file in which the filters are kept. Raises StoreError if it cannot be used."""

    log: logging.Logger

    def __init__(self, logs: Logs[M], path: Path, default_format: str) -> None:
        self._logs, self._filters = logs, FollowedFilters(path)
        self._receiver = LogReceiver(logs, self._filters, default_format, self.log)

    # Names

    def filter_of(self, topic_string: str, wildcard: WildcardScheme) -> str | None:
        return filter_of(topic_string, wildcard)

    def pattern_of(self, topic_filter: str) -> tuple[str, WildcardScheme]:
        return topic_filter.removeprefix(SEPARATOR), WildcardScheme.TOPIC

    def matcher(self, filters: Sequence[str]) -> Callable[[str], Sequence[str]]:
        return matcher_of(filters, selected)

    def why_stays(self, topic_string: str) -> str | None:
        """None: the tree has a name for every topic string."""

    def why_not_carried(self, topic_string: str) -> str | None:
        """None: the tree has a name for every topic string."""

    # Its life

    def attach(self, engine: Engine[str]) -> None:
        self._receiver.kept = engine.position

    def stop(self) -> None:
        self._logs.close()
        self._filters.save()

    # Filters

    def remembered(self) -> Collection[str]:
        return self._filters.synced

    def held(self) -> Collection[str]:
        return self._filters.all()

    def synced(self, filters: Iterable[str]) -> None:
        self._filters.sync(filters)

    def save(self) -> None:
        self._filters.save(only_changes=True)

    # Calls

    def client(self) -> LogCalls[M]:
        return LogCalls(self._logs, self._receiver, self._filters)

    def receiver(self) -> LogReceiver[M]:
        return self._receiver


class LogCalls(Generic[M]):
    """The calls of one thread (``TreeClient``)."""

    def __init__(self, logs: Logs[M], receiver: LogReceiver[M], filters: FollowedFilters) -> None:
        self._logs, self._receiver, self._filters = logs, receiver, filters

    def prepare(self) -> None:
        self._logs.make_ready()

    def subscribe(self, filters: Sequence[str], urgent: bool) -> Iterator[Subscribed[str]]:
        del urgent  # one is as fast as another
        self._filters.follow(filters, self._logs.ends())
        self._logs.follow(self._filters.all)
        self._receiver.follow()
        yield from map(Subscribed, filters)

    def unsubscribe(self, topic_filter: str) -> None:
        self._filters.remove(topic_filter)

    def retained(self, filters: Sequence[str]) -> TreeRetained:
        matches, natives, topics = matcher_of(filters, selected), list[NativePublication](), set[str]()
        for message in self._logs.retained(filters):
            record = self._logs.record(message)
            if record.topic is None or record.clears or not matches(record.topic):
                continue
            is_own = record.bridge == self._logs.bridge
            native = None if is_own else self._receiver.native(record)
            if is_own or native is not None:
                topics.add(record.topic)
            if native is not None and not native.clears:
                natives.append(native)
        return TreeRetained(tuple(natives), frozenset(topics))

    def answers(self) -> bool:
        self._receiver.look()
        return True

    def close(self) -> None:
        """Nothing is held: the adapter disconnects."""


def filter_of(topic_string: str, scheme: WildcardScheme) -> str | None:
    """The narrowest filter that selects all that the pattern does; None if there is none.

    Raises CommandError 3072 where *topic_string* is no pattern of that scheme.
    """
    levels = levels_of(topic_string, scheme)
    return None if levels is None else selected(SEPARATOR.join(levels))
