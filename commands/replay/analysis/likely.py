"""The likeliest reason why a subscription never got anything, by the tables of an analysis alone.

The tables do not say when each publication was made, so this is a guess that needs no second replay; ``qpubsub why``
knows. Both engines have the same tables, and so the same guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from commands.broker.outcome import EPOCH
from commands.explain.why import Reason
from commands.explain.why.near import first_near_misses
from commands.model import RegOpt
from commands.replay.analysis.tables import Row
from streams.index import SubscriptionIndex
from streams.patterns import add_pattern_prefix
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import SEPARATOR

LIKELY_REASON: Final = "likely_reason"
LIKELY_DETAIL: Final = "likely_detail"
MOST_TOPICS: Final = 100_000
"""So many topics, those with most publications, are compared with the subscriptions."""

_Guess = tuple[str, str]


def with_likely_reasons(subscriptions: Sequence[Row], topics: Sequence[Row]) -> list[Row]:
    """The rows of ``never_matched``, each with a reason of ``qpubsub why`` and its sentence."""
    guesses: dict[str, dict[str, _Guess]] = {}
    topics_of = _by_qmgr(topics)
    for qmgr, ours in _by_qmgr(subscriptions).items():
        guesses[qmgr] = dict(_guesses(ours, topics_of.get(qmgr, ())))
    found = []
    for row in subscriptions:
        reason, detail = guesses[str(row["qmgr"])][str(row["sub_id"])]
        found.append({**row, LIKELY_REASON: reason, LIKELY_DETAIL: detail})
    return found


def _by_qmgr(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["qmgr"]), []).append(row)
    return found


def _guesses(rows: Sequence[Row], topics: Sequence[Row]) -> Iterator[tuple[str, _Guess]]:
    """Of one queue manager: sub_id, and the guess."""
    subscriptions = {str(row["sub_id"]): _subscription(row) for row in rows}
    selected = _selected(subscriptions.values(), topics)
    published = [str(topic["topic"]) for topic in topics if topic["publications"]]
    near = first_near_misses(list(subscriptions.values()), published, elsewhere=True)
    for row in rows:
        sub_id = str(row["sub_id"])
        topic = selected.get(sub_id)
        if RegOpt.PUB_ON_REQ_ONLY.value in str(row["options"]).split():
            yield sub_id, (Reason.REQUEST_ONLY.value, "it is registered with PubOnReqOnly")
        elif topic is not None:
            yield sub_id, _kept_back(row, topic)
        elif (miss := near.get(bytes.fromhex(sub_id))) is not None:
            yield sub_id, (miss.reason.value, miss.why)
        else:
            yield sub_id, (Reason.NO_MATCH.value, "nothing was published on a topic that it selects")


def _kept_back(row: Row, topic: Row) -> _Guess:
    """Why a topic that the subscription selects did not reach it."""
    published, registered = topic["last_time"], row["first_time"]
    if isinstance(published, datetime) and isinstance(registered, datetime) and published < registered:
        return Reason.NO_MATCH.value, f"{topic['topic']!r} was published on only before the subscription was registered"
    if row["filter"]:
        return Reason.FILTER.value, f"the filter {row['filter']} excluded what was published on {topic['topic']!r}"
    return "", f"what was published on {topic['topic']!r} was kept back: qpubsub why says by which rule"


def _subscription(row: Row) -> Subscription:
    topic_string, written = str(row["topic_string"]), str(row["topic"])
    # The prefix of a stream or a subscription point has no character that an escape would change, or nearly never.
    prefix = topic_string.removesuffix(f"{SEPARATOR}{written}") if topic_string != written else ""
    scheme = WildcardScheme(str(row["wildcards"]))
    if add_pattern_prefix(prefix, written, scheme) != topic_string:
        prefix = ""
    return Subscription(
        bytes.fromhex(str(row["sub_id"])),
        topic_string,
        str(row["subscriber"]),
        "",
        EPOCH,
        wildcard=scheme,
        prefix=prefix,
        stream=str(row["stream"]) or None,
        sub_point=str(row["sub_point"]) or None,
    )


def _selected(subscriptions: Iterable[Subscription], topics: Iterable[Row]) -> dict[str, Row]:
    """By sub_id the topic, of those that a subscription selects, on which something was published last."""
    index = SubscriptionIndex(1)
    for subscription in subscriptions:
        index.add(subscription)
    found: dict[str, Row] = {}
    for topic in topics:
        if not topic["publications"]:
            continue
        for subscription in index.match_uncached(str(topic["topic"])):
            sub_id = subscription.sub_id.hex()
            if sub_id not in found or _time(found[sub_id]) < _time(topic):
                found[sub_id] = topic
    return found


def _time(topic: Row) -> datetime:
    time = topic["last_time"]
    return time if isinstance(time, datetime) else EPOCH
