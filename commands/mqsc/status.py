"""DISPLAY of topics, and of the state of topics, queues and the engine; CLEAR TOPICSTR (guide 2.5.3.1, 6.5.7, 6.5.8).

The tree that TPSTATUS shows is that of topic objects, subscriptions, retained publications, and topics published on of
which the counts are kept: until they were unused for TREELIFE (guide 2.5.3.1, ``commands.qmgr.observer``); with all
topics above them. Queued publishers hold nothing open. The one that publishes is the command processor: TYPE(PUB) shows
it once for each topic that it published on.

Of topic objects, as in IBM MQ, TYPE(LOCAL) is what this queue manager defines, and TYPE(CLUSTER) what the members of
its clusters define, itself included: a row for each definition, with its host. TYPE(ALL), the default, has the latter
only with CLUSINFO. So a definition with CLUSTER may be shown twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Final

from commands.broker.attribute_kinds import Shown, shown
from commands.broker.connections import open_counts
from commands.broker.counts import QueueCounts, TopicCounts
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed, matches_name, select
from commands.mqsc.attributes import TOPIC, unexpected_keyword
from commands.mqsc.connections import display_queue_handles
from commands.mqsc.definitions import rows_of
from commands.mqsc.families import TOPIC as TOPIC_FAMILY
from commands.mqsc.script import Command
from commands.mqsc.subscriptions import STATUS_BLANK, STATUS_KEYWORDS, counts_of_subscriptions, status_row
from commands.mqsc.values import shown_moment, single, word_of
from rfh2.errors import CommandError
from streams.operations import ClearRetained
from streams.patterns import LevelWalk, TopicPattern, parse_topic_pattern
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObject
from streams.topic_strings import SEPARATOR

# What TPSTATUS shows of a topic beside the tree itself: TOPIC's keywords whose values are inherited.
_RESOLVED: Final = tuple(
    attribute
    for attribute in TOPIC.attributes
    if attribute.keyword not in {"TOPICSTR", "DESCR", "CLROUTE", "PROXYSUB", "WILDCARD"}
)
_PUB_BLANK: Final = frozenset({"ACTCON", "MCASTREL"})
_ENGINE_STATUS: Final = {"ENABLED": "ACTIVE", "COMPAT": "COMPAT", "DISABLED": "INACTIVE"}


def display_pubsub(command: Command, administration: Administration) -> Answer:
    """DISPLAY PUBSUB: this queue manager, its parent and its children; LOCAL is the default, as in IBM MQ."""
    keyword = command.keyword("TYPE")
    given = keyword is not None and keyword.values is not None
    kind = word_of(keyword, "LOCAL", "PARENT", "CHILD", "ALL") if keyword is not None and given else "LOCAL"
    qmgr = administration.objects.qmgr
    rows: list[dict[str, Shown]] = [
        {
            "QMNAME": qmgr.name,
            "TYPE": "LOCAL",
            "STATUS": _ENGINE_STATUS[qmgr.psmode],
            "SUBCOUNT": len(administration.topic_space.subscriptions()),
            "TPCOUNT": sum(1 for _ in topic_tree(administration).walk()),
        }
    ]
    for other in administration.neighbours.of(qmgr):
        rows.append({"QMNAME": other.qmgr, "TYPE": other.relation.value, "STATUS": other.status})
    wanted = [row for row in rows if kind in ("ALL", row["TYPE"])]
    known = frozenset(rows[0])
    passed = frozenset({"TYPE"}) if given else frozenset[str]()
    found = select(command, wanted, ("QMNAME", "TYPE"), known=known, passed_over=passed, brief=True)
    return displayed(answers.PUBSUB_DISPLAY, found)


class TopicNode:
    """A topic of the tree: the topics below it, by their last level, and the subscriptions whose topic string it is."""

    __slots__ = ("children", "subscriptions")

    def __init__(self) -> None:
        self.children: dict[str, TopicNode] = {}
        self.subscriptions: list[Subscription] = []

    def at(self, topic_string: str) -> TopicNode:
        """The topic of this topic string below this one; made where it is not there."""
        node = self
        for level in topic_string.split(SEPARATOR):
            below = node.children.get(level)
            if below is None:
                below = node.children[level] = TopicNode()
            node = below
        return node

    def walk(self) -> Iterator[TopicNode]:
        """All topics below the root, which this is; an empty first level is no topic, only those below it are."""
        waiting = [*self.children.values()]
        unnamed = self.children.get("")
        while waiting:
            node = waiting.pop()
            waiting += node.children.values()
            if node is not unnamed:
                yield node

    def select(self, pattern: TopicPattern) -> Iterator[tuple[str, TopicNode]]:
        """The topics that a pattern selects, in the order of their levels, each with its topic string.

        The strings are made one by one: those of a topic of thousands of levels and of all topics above it are, all
        together, thousands of times as long as its own.
        """
        walk = LevelWalk(pattern)
        waiting = [("", self, walk.start)]
        while waiting:
            topic_string, node, state = waiting.pop()
            if topic_string and walk.is_whole(state):
                yield topic_string, node
            begin = topic_string + SEPARATOR if node is not self else ""
            for level, child in sorted(node.children.items(), reverse=True):
                after = walk.after(state, level)
                if after:
                    waiting.append((begin + level, child, after))


def topic_tree(administration: Administration) -> TopicNode:
    """The root of the tree of topics that something is known of."""
    now = administration.now
    root = TopicNode()
    for topic_object in administration.objects.topics:
        if topic_object.topic_string:
            root.at(topic_object.topic_string)
    for retained in administration.topic_space.retained_publications():
        expires_at = retained.publication.expires_at
        if expires_at is None or expires_at > now:
            root.at(retained.topic_string)
    for topic_string in counts_of_topics(administration):
        root.at(topic_string)
    for subscription in administration.topic_space.subscriptions():
        root.at(subscription.topic_string).subscriptions.append(subscription)
    return root


def display_topic_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY TPSTATUS with TYPE(TOPIC), TYPE(SUB) or TYPE(PUB); the topic string may hold ``#`` and ``+``."""
    pattern = _pattern(command)
    keyword = command.keyword("TYPE")
    kind = word_of(keyword, "TOPIC", "SUB", "PUB") if keyword is not None else "TOPIC"
    tree = topic_tree(administration).select(pattern)
    first = next(tree, None)
    if first is None and not pattern.is_wild:
        raise answers.not_found(pattern.text)
    if first is not None:
        tree = chain([first], tree)
    passed = frozenset({"TYPE"})
    if kind == "TOPIC":
        rows: Iterator[Mapping[str, Shown]] = _topic_rows(tree, administration)
        known = frozenset(a.keyword for a in _RESOLVED)
        known |= {"TOPICSTR", "ADMIN", "CLROUTE", "RETAINED", "PUBCOUNT", "SUBCOUNT"}
        blank = frozenset({"CAPEXPRY", "COMMINFO", "MCAST"})
        found = select(command, rows, ("TOPICSTR",), known=known, without_effect=blank, passed_over=passed, brief=False)
    elif kind == "SUB":
        counted = counts_of_subscriptions(administration)
        rows = (
            {"TOPICSTR": topic_string, **status_row(subscription, counted)}
            for topic_string, node in tree
            for subscription in node.subscriptions
        )
        known, blank = STATUS_KEYWORDS | {"TOPICSTR"}, STATUS_BLANK
        identity = ("TOPICSTR", "SUBID")
        found = select(command, rows, identity, known=known, without_effect=blank, passed_over=passed, brief=False)
    else:
        rows = _pub_rows(tree, counts_of_topics(administration))
        known, blank = frozenset({"TOPICSTR", "ACTCONN", "LPUBDATE", "LPUBTIME", "NUMPUBS"}), _PUB_BLANK
        found = select(command, rows, ("TOPICSTR",), known=known, without_effect=blank, passed_over=passed, brief=False)
    return displayed(answers.TPSTATUS_DISPLAY, found)


def clear_topic_string(command: Command, administration: Administration) -> Answer:
    """CLEAR TOPICSTR CLRTYPE(RETAINED): the topic string may hold ``#`` and ``+``; it is no error if nothing is there.

    WILDCARD(BLOCK) is about subscriptions and keeps nothing from being cleared. Guide 2.5.3.1 prints CLTRTYPE once,
    which is taken for CLRTYPE.
    """
    pattern = _pattern(command)
    kind = command.keyword("CLRTYPE") or command.keyword("CLTRTYPE")
    if kind is None:
        raise answers.missing_keyword("CLRTYPE")
    word_of(kind, "RETAINED")
    scope = command.keyword("SCOPE")
    if scope is not None:
        word_of(scope, "LOCAL")
    for keyword in command.keywords:
        if keyword.name not in {"CLRTYPE", "CLTRTYPE", "SCOPE", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    space, now = administration.topic_space, administration.now
    topics = [kept.topic_string for kept in space.retained_publications() if pattern.matches(kept.topic_string)]
    effects = [effect for topic in topics for effect in space.apply(ClearRetained(topic, local=True), now)]
    count = len(effects)
    text = f"Topic string cleared: {count} retained publication{'' if count == 1 else 's'} removed."
    return Answer(True, None, text, changes=tuple(effects), cleared=count)


def _pattern(command: Command) -> TopicPattern:
    if command.name is None:
        raise answers.missing_keyword(command.target)
    try:
        return parse_topic_pattern(command.name.text)
    except CommandError as error:
        raise answers.failed_with(error) from error


def _topic_rows(tree: Iterable[tuple[str, TopicNode]], administration: Administration) -> Iterator[dict[str, Shown]]:
    topics = administration.objects.topics
    now = administration.now
    retained = {
        kept.topic_string
        for kept in administration.topic_space.retained_publications()
        if kept.publication.expires_at is None or kept.publication.expires_at > now
    }
    published = counts_of_topics(administration)
    for topic_string, node in tree:
        topic_object = topics.at(topic_string)
        resolved = topics.resolve(topic_string)
        row: dict[str, Shown] = {
            "TOPICSTR": topic_string,
            "ADMIN": topic_object.name if topic_object is not None else "",
            "RETAINED": "YES" if topic_string in retained else "NO",
            "PUBCOUNT": int(topic_string in published),
            "SUBCOUNT": len(node.subscriptions),
            "CLROUTE": _route(topics.get(resolved.cluster_object)),
        }
        yield row | {
            attribute.keyword: attribute.kind.show(getattr(resolved, attribute.field)) for attribute in _RESOLVED
        }


def _route(clustered: TopicObject | None) -> str:
    """CLROUTE of the topic object that puts a topic in a cluster; NONE for a topic that is in none."""
    return "NONE" if clustered is None else clustered.cluster_route.value


def counts_of_topics(administration: Administration) -> Mapping[str, TopicCounts]:
    """What is counted of topics; nothing where nothing is."""
    counters = administration.queues.counters
    return {} if counters is None else counters.topics()


def _pub_rows(tree: Iterable[tuple[str, TopicNode]], counted: Mapping[str, TopicCounts]) -> Iterator[dict[str, Shown]]:
    for topic_string, _ in tree:
        if (counts := counted.get(topic_string)) is not None:
            moment = shown_moment("LPUBDATE", "LPUBTIME", counts.last)
            yield {"TOPICSTR": topic_string, **moment, "ACTCONN": "0" * 48, "NUMPUBS": counts.publications}


_MOST_S: Final = 999_999_999
_MONITORED: Final = frozenset(["LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME", "MSGAGE"])
_OF_QUEUE: Final = frozenset(["QUEUE", "TYPE", "CURDEPTH", "IPPROCS", "OPPROCS", "UNCOM", "MONQ"])
_NOT_OF_QUEUE: Final = frozenset(["CURFSIZE", "CURMAXFS", "MEDIALOG", "QTIME"])
_PASSED_OVER: Final = frozenset({"TYPE", "OPENTYPE", "MONITOR"})
_NOTHING_COUNTED: Final = QueueCounts()


def display_queue_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY QSTATUS by name or generic name. Raises MqscError AMQ8147 where there is no such local queue."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    kind = command.keyword("TYPE")
    names = [name for name in sorted(administration.objects.queues) if matches_name(pattern, name)]
    if kind is not None and word_of(kind, "QUEUE", "HANDLE") == "HANDLE":
        return display_queue_handles(command, pattern, administration)
    inputs, outputs = open_counts(administration.listeners.reports())
    counters = administration.queues.counters
    counted = {} if counters is None else counters.queues()
    rows = [
        _queue_row(name, administration, counted.get(name, _NOTHING_COUNTED))
        | {"IPPROCS": inputs[name], "OPPROCS": outputs[name]}
        for name in names
    ]
    found = select(
        command,
        rows,
        ("QUEUE", "TYPE"),
        known=_OF_QUEUE if counters is None else _OF_QUEUE | _MONITORED,
        without_effect=_NOT_OF_QUEUE | _MONITORED if counters is None else _NOT_OF_QUEUE,
        passed_over=_PASSED_OVER,
        brief=False,
    )
    return displayed(answers.QSTATUS_DISPLAY, found)


def _queue_row(name: str, administration: Administration, counts: QueueCounts) -> dict[str, Shown]:
    depth, counters = administration.queues.depth(name), administration.queues.counters
    row: dict[str, Shown] = {"QUEUE": name, "TYPE": "QUEUE", "CURDEPTH": depth, "IPPROCS": 0, "OPPROCS": 0}
    # The caller has a unit of work open, and there is only one at a time.
    row |= {
        "UNCOM": "YES" if administration.queues.has_uncommitted(name) else "NO",
        "MONQ": "OFF" if counters is None else "HIGH",
    }
    if counters is not None:
        oldest = counters.oldest(name) if depth else None
        age_s = 0 if oldest is None else int((administration.now - oldest).total_seconds())
        row |= shown_moment("LPUTDATE", "LPUTTIME", counts.last_put)
        row |= shown_moment("LGETDATE", "LGETTIME", counts.last_get) | {"MSGAGE": min(max(age_s, 0), _MOST_S)}
    return row


_OF_CLUSTERS: Final = frozenset({"CLSTATE", "CLUSQMGR"})
_OF_TOPIC: Final = frozenset({"TOPIC", "TYPE"} | {attribute.keyword for attribute in TOPIC.attributes}) | _OF_CLUSTERS
# Of a definition that is not looked at as one of a cluster, its state in the cluster is blank.
_NOT_OF_TOPIC: Final = TOPIC.without_effect | _OF_CLUSTERS | {"CLUSDATE", "CLUSTIME", "QMID"}


def display_topic(command: Command, administration: Administration) -> Answer:
    """DISPLAY TOPIC. Raises MqscError."""
    keyword = command.keyword("TYPE")
    given = keyword is not None and keyword.values is not None
    kind = word_of(keyword, "ALL", "LOCAL", "CLUSTER") if keyword is not None and given else "ALL"
    return _display_topics(command, administration, kind)


def display_cluster_topics(command: Command, administration: Administration) -> Answer:
    """DISPLAY TCLUSTER: the same as DISPLAY TOPIC TYPE(CLUSTER). Raises MqscError."""
    return _display_topics(command, administration, "CLUSTER")


def _display_topics(command: Command, administration: Administration, kind: str) -> Answer:
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    rows: list[dict[str, Shown]] = []
    if kind != "CLUSTER":
        rows += rows_of(administration, (TOPIC_FAMILY,), pattern)
    if kind == "CLUSTER" or (kind == "ALL" and command.keyword("CLUSINFO") is not None):
        rows += _cluster_rows(administration, pattern)
    identity: tuple[str, ...] = ("TOPIC", "TYPE")
    passed_over = frozenset({"TYPE"})
    cluster = command.keyword("CLUSTER")
    if cluster is not None and cluster.values is not None:
        name = single(cluster).text.rstrip(" ")
        rows = [row for row in rows if matches_name(name, str(row["CLUSTER"]))]
        identity = (*identity, "CLUSTER")
        passed_over |= {"CLUSTER"}
    rows.sort(key=itemgetter("TOPIC"))
    found = select(command, rows, identity, known=_OF_TOPIC, without_effect=_NOT_OF_TOPIC, passed_over=passed_over)
    return displayed(answers.TOPIC_DISPLAY, found)


def _cluster_rows(administration: Administration, pattern: str) -> Iterator[dict[str, Shown]]:
    repository = administration.repository()
    for each in repository.cluster_topics.topics:
        topic = each.topic
        if topic.cluster in repository.own.clusters and matches_name(pattern, topic.name):
            row: dict[str, Shown] = {"TOPIC": topic.name, "TYPE": "CLUSTER"}
            row |= {attribute.keyword: shown(topic, attribute) for attribute in TOPIC.attributes}
            yield row | {"CLUSQMGR": each.host, "CLSTATE": each.state.value}
