"""What ``qpubsub status`` shows of subscriptions and topics: a summary, and lists on request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from commands.broker.counts import QueueCounts, SubscriptionCounts, TopicCounts
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.overview import Totals


def summary(totals: Totals) -> dict[str, Any]:
    """All of them together."""
    delivered, published = totals.delivered, totals.published
    return {
        "published": published.publications,
        "last_publication": _iso(published.last),
        "topics": totals.topics,
        **_delivered(delivered),
        "subscriptions_reached": totals.reached,
    }


def of_queue(counts: QueueCounts) -> dict[str, Any]:
    """What was put on a queue and got from it."""
    return {
        "puts": counts.puts,
        "last_put": _iso(counts.last_put),
        "gets": counts.gets,
        "last_get": _iso(counts.last_get),
    }


def lists(store: QueueManagerStore, with_subscriptions: bool, with_topics: bool) -> dict[str, Any]:
    """The lists on request: each subscription, by topic string, and each topic that has counts."""
    out: dict[str, Any] = {}
    if not with_subscriptions and not with_topics:
        return out
    with store.one_moment():
        of_subscriptions, of_topics = store.counts()
        subscriptions = store.load_state()[1] if with_subscriptions else []
    if with_subscriptions:
        nothing = SubscriptionCounts()
        out["subscription_list"] = [
            {
                "sub_id": each.sub_id.hex(),
                "name": each.name,
                "topic": each.topic_string,
                "queue": each.dest_queue,
                "qmgr": each.dest_qmgr,
                **_delivered(of_subscriptions.get(each.sub_id, nothing)),
            }
            for each in sorted(subscriptions, key=lambda each: (each.topic_string, each.dest_queue, each.sub_id))
        ]
    if with_topics:
        out["topic_list"] = [{"topic": topic, **_published(counts)} for topic, counts in sorted(of_topics.items())]
    return out


def summary_lines(activity: dict[str, Any], subscriptions: int) -> Iterator[str]:
    """For a person, in two lines at most."""
    if activity["published"]:
        topics = f"{activity['topics']:,} topic{'' if activity['topics'] == 1 else 's'}"
        yield f"Published: {activity['published']:,} on {topics}, the last at {_short(activity['last_publication'])}"
    if activity["delivered"] or activity["filtered"] or activity["dead_letters"]:
        reached = f"{activity['subscriptions_reached']:,} of {subscriptions:,} subscriptions"
        at = f", the last at {_short(activity['last_delivery'])}" if activity["last_delivery"] else ""
        others = [f"{activity['filtered']:,} kept away by filters"] if activity["filtered"] else []
        others += [f"{activity['dead_letters']:,} dead letters"] if activity["dead_letters"] else []
        yield "; ".join([f"Delivered: {activity['delivered']:,} to {reached}{at}", *others])


def list_lines(status: dict[str, Any]) -> Iterator[str]:
    """The lists that *status* has, a row a line; control characters of topic strings are dots."""
    if (subscriptions := status.get("subscription_list")) is not None:
        yield ""
        yield "delivered  last                 filtered    dead  queue, topic string and name of each subscription"
        for row in subscriptions:
            name = f"  ({row['name']})" if row["name"] else ""
            counts = f"{row['delivered']:>9}  {_short(row['last_delivery']):<19}  {row['filtered']:>8}  "
            yield _printable(f"{counts}{row['dead_letters']:>6}  {row['queue']}  {row['topic']}{name}")
    if (topics := status.get("topic_list")) is not None:
        yield ""
        yield "published  last                 topic string"
        for row in topics:
            yield _printable(f"{row['published']:>9}  {_short(row['last_publication']):<19}  {row['topic']}")


def _delivered(counts: SubscriptionCounts) -> dict[str, Any]:
    return {
        "delivered": counts.delivered,
        "last_delivery": _iso(counts.last),
        "filtered": counts.filtered,
        "dead_letters": counts.dead_letters,
    }


def _published(counts: TopicCounts) -> dict[str, Any]:
    return {"published": counts.publications, "last_publication": _iso(counts.last)}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _short(moment: str | None) -> str:
    return "never" if moment is None else moment.replace("T", " ").removesuffix("Z")


def _printable(line: str) -> str:
    return line if line.isprintable() else "".join(c if c.isprintable() else "." for c in line)
