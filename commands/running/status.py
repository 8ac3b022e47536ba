"""What a queue manager holds and what its processor is doing, at one moment: for ``status`` and the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from commands.broker.connections import ListenerReport, NotAnsweredError, programs
from commands.broker.counts import QueueCounts, SubscriptionCounts, TopicCounts
from commands.broker.objects import CONTROL_QUEUE, PREDEFINED, UNLIMITED_DEPTH, LocalQueue, Objects
from commands.headers.registry import parse
from commands.qmgr.admin import recorded, recorded_members
from commands.qmgr.delivery import is_stranding
from commands.qmgr.store import QueueManagerStore, QueueOverview
from commands.qmgr.store.listeners import AskedListeners
from commands.qmgr.store.queue_manager import Overview, Totals
from commands.running.journal import where_it_works
from commands.running.mqsc_scripts import definitions_as_files
from commands.running.tenure import instances
from rfh2.constants import MQAT_BROKER
from rfh2.dlh import decode_dlh
from rfh2.errors import DecodeError, QPubSubError
from rfh2.layouts import MQDLH
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from streams.topic_objects import QUEUE_NAMELIST

# What ``qpubsub status`` shows of subscriptions and topics: a summary, and lists on request.


def activity_summary(totals: Totals) -> dict[str, Any]:
    """All of them together."""
    delivered, published = totals.delivered, totals.published
    return {
        "published": published.publications,
        "last_publication": _iso(published.last),
        "topics": totals.topics,
        **_delivered(delivered),
        "subscriptions_reached": totals.reached,
    }


def activity_of_queue(counts: QueueCounts) -> dict[str, Any]:
    """What was put on a queue and got from it."""
    return {
        "puts": counts.puts,
        "last_put": _iso(counts.last_put),
        "gets": counts.gets,
        "last_get": _iso(counts.last_get),
    }


def activity_lists(store: QueueManagerStore, with_subscriptions: bool, with_topics: bool) -> dict[str, Any]:
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


def activity_lines(activity: dict[str, Any], subscriptions: int) -> Iterator[str]:
    """For a person, in two lines at most."""
    if activity["published"]:
        topics = f"{activity['topics']:,} topic{'' if activity['topics'] == 1 else 's'}"
        yield f"Published: {activity['published']:,} on {topics}, the last at {_short(activity['last_publication'])}"
    if activity["delivered"] or activity["filtered"] or activity["dead_letters"]:
        reached = f"{activity['subscriptions_reached']:,} of {subscriptions:,} subscriptions"
        at = f", the last at {_short(activity['last_delivery'])}" if activity["last_delivery"] else ""
        others = [f"{activity['filtered']:,} not selected by filters"] if activity["filtered"] else []
        others += [f"{activity['dead_letters']:,} dead letters"] if activity["dead_letters"] else []
        yield "; ".join([f"Delivered: {activity['delivered']:,} to {reached}{at}", *others])


def activity_list_lines(status: dict[str, Any]) -> Iterator[str]:
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


MOST_DEAD_LETTERS: Final = 1_000
"""So many dead letters are looked into; there may be millions."""

# A command's header is far shorter, and data may be cut off.
_LOOKED_AT_BYTES: Final = 16_384


def status_of(store: QueueManagerStore, now: datetime) -> dict[str, Any]:
    """What *store* holds and what its processor does, as ``status --json`` prints it. now: UTC. Raises StoreError."""
    seen = store.overview()
    objects = seen.objects
    inputs = [queue for queue in seen.queues if queue.definition.name in _inputs(objects)]
    oldest = [queue.oldest for queue in inputs if queue.oldest is not None]
    sessions, most = store.database.sessions()
    return {
        "qmgr": store.name,
        "psmode": objects.qmgr.psmode,
        "strict": objects.qmgr.strict,
        "authority_checked": bool(objects.authorities),
        "open_to_others": store.is_open_to_others,
        "subscriptions": seen.subscriptions,
        "retained": seen.retained,
        "activity": activity_summary(seen.totals),
        "input": {"waiting": sum(queue.depth for queue in inputs), "oldest_s": _age_s(min(oldest, default=None), now)},
        "queues": {
            queue.definition.name: {**_queue(queue, objects, now), "not_read": _is_unread_stream(queue, objects, store)}
            for queue in seen.queues
        },
        "owed": [
            {"queue": name or objects.qmgr.deadq, "count": count, "oldest_s": _age_s(since, now)}
            for name, count, since in seen.undelivered
        ],
        "neighbours": _neighbours(seen, now),
        "connections": _connected(store),
        "dead_letters": _dead_letters(store, objects.qmgr.deadq),
        "database": {
            "bytes": seen.file_bytes,
            "free_bytes": seen.free_bytes,
            "log_bytes": seen.log_bytes,
            "sessions": sessions,
            "most_sessions": most or None,
        },
        "definitions": definitions_as_files(store.directory, objects, now),
        "processor": _processor(store, now),
    }


def _connected(store: QueueManagerStore) -> dict[str, Any]:
    """How many programs are connected, in all and by each channel, and where listeners are; or why it is not known."""
    reports: Sequence[ListenerReport] = ()
    unknown = None
    try:
        reports = AskedListeners(store.database).reports()
    except NotAnsweredError as error:
        unknown = str(error)
    channels = Counter(each.channel for each in programs(reports))
    return {
        "listeners": [str(place) for report in reports for place in report.places],
        "programs": channels.total(),
        "channels": dict(channels.most_common()),
        "unknown": unknown,
    }


def _processor(store: QueueManagerStore, now: datetime) -> dict[str, Any]:
    running = store.has_processor()
    found = where_it_works(store.database)
    working = found["working"] if running else None
    status: dict[str, Any] = {**found["status"], "running": running, "working_on": None}
    if working is not None and not working["died"]:
        for_s = _age_s(datetime.fromisoformat(working["since"]), now)
        status["working_on"] = {**working["message"], "seq": working["seq"], "since": working["since"], "for_s": for_s}
    status["instances"] = instances(store.database)
    return status


def _neighbours(seen: Overview, now: datetime) -> list[dict[str, Any]]:
    """The parent, the children, and the members of clusters, with what waits on the transmission queue for each."""
    queues = {queue.definition.name: queue for queue in seen.queues}
    return [
        {
            "qmgr": each.qmgr,
            "relation": each.relation.value,
            **({"cluster": each.cluster} if each.cluster else {}),
            "status": each.status,
            "waiting": 0 if (queue := queues.get(each.qmgr)) is None else queue.depth,
            "oldest_s": None if queue is None else _age_s(queue.oldest, now),
        }
        for each in (*recorded(seen.objects.qmgr, seen.neighbours), *recorded_members(seen.neighbours))
    ]


def _inputs(objects: Objects) -> tuple[str, ...]:
    namelist = objects.namelists.get(QUEUE_NAMELIST)
    return (CONTROL_QUEUE, *(namelist.names if namelist is not None else ()))


def _queue(queue: QueueOverview, objects: Objects, now: datetime) -> dict[str, Any]:
    definition = queue.definition
    limited = definition.max_depth < UNLIMITED_DEPTH
    return {
        "depth": queue.depth,
        "oldest_s": _age_s(queue.oldest, now),
        "max_depth": definition.max_depth if limited else None,
        "role": "transmission" if definition.transmission else _role(definition, objects),
        "stranded": bool(queue.depth) and is_stranding(definition),
        "put_inhibited": not definition.put_enabled,
        "get_inhibited": not definition.get_enabled,
        **activity_of_queue(queue.counts),
    }


def _is_unread_stream(queue: QueueOverview, objects: Objects, store: QueueManagerStore) -> bool:
    """Whether publications wait on a queue that the namelist lacks: by the first message, as a processor would read it.

    A broker's own publications, on the queues of its subscribers, are not meant.
    """
    name = queue.definition.name
    if not queue.depth or queue.definition.transmission or _role(queue.definition, objects) is not None:
        return False
    for md, head in store.beginnings(name, _LOOKED_AT_BYTES, 1):
        try:
            message = decode(head, md)
            return message.mqmd.put_appl_type != MQAT_BROKER and not parse(message).on_control_queue
        except QPubSubError:
            return False
    return False


def _role(definition: LocalQueue, objects: Objects) -> str | None:
    name = definition.name
    if name == CONTROL_QUEUE:
        return "control"
    if name in _inputs(objects):
        return "stream"
    if name == objects.qmgr.deadq:
        return "dead letters"
    if definition.is_temporary:
        return "temporary dynamic"
    return None if definition.definition_type == PREDEFINED else "permanent dynamic"


def _age_s(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else round(max((now - moment).total_seconds(), 0.0), 1)


def _dead_letters(store: QueueManagerStore, queue: str) -> dict[str, Any]:
    """Why dead letters are dead: how many for each reason, of those that were looked into."""
    if store.find_queue(queue) is None:
        return {"queue": queue or None, "looked_into": 0, "reasons": []}
    reasons: Counter[tuple[int | None, str | None]] = Counter()
    for md, head in store.beginnings(queue, MQDLH.size, MOST_DEAD_LETTERS):
        try:
            mqmd = Mqmd.decode(md)
            header = decode_dlh(head, 0, mqmd.coded_char_set_id)
        except DecodeError:
            reasons[None, None] += 1
        else:
            reasons[header.reason, header.dest_q_name] += 1
    each = [{"reason": reason, "for": name, "count": count} for (reason, name), count in reasons.most_common()]
    return {"queue": queue, "looked_into": reasons.total(), "reasons": each}
