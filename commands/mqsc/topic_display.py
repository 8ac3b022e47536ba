"""DISPLAY TOPIC and DISPLAY TCLUSTER: the topic objects that are defined here, and those of clusters.

As in IBM MQ, TYPE(LOCAL) is what this queue manager defines, and TYPE(CLUSTER) what the members of its clusters define,
itself included: a row for each definition, with its host. TYPE(ALL), the default, has the latter only with CLUSINFO.
So a definition with CLUSTER may be shown twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from commands.broker.attribute_kinds import Shown, shown
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed
from commands.mqsc.attributes import TOPIC
from commands.mqsc.definitions import TOPIC as FAMILY, rows_of
from commands.mqsc.display import matches_name, select
from commands.mqsc.model import Command
from commands.mqsc.values import single, word_of

_OF_CLUSTERS: Final = frozenset({"CLSTATE", "CLUSQMGR"})
_KNOWN: Final = frozenset({"TOPIC", "TYPE"} | {attribute.keyword for attribute in TOPIC.attributes}) | _OF_CLUSTERS
# Of a definition that is not looked at as one of a cluster, its state in the cluster is blank.
_BLANK: Final = TOPIC.without_effect | _OF_CLUSTERS | {"CLUSDATE", "CLUSTIME", "QMID"}


def display(command: Command, administration: Administration) -> Answer:
    """DISPLAY TOPIC. Raises MqscError."""
    keyword = command.keyword("TYPE")
    given = keyword is not None and keyword.values is not None
    kind = word_of(keyword, "ALL", "LOCAL", "CLUSTER") if keyword is not None and given else "ALL"
    return _display(command, administration, kind)


def display_cluster_topics(command: Command, administration: Administration) -> Answer:
    """DISPLAY TCLUSTER: the same as DISPLAY TOPIC TYPE(CLUSTER). Raises MqscError."""
    return _display(command, administration, "CLUSTER")


def _display(command: Command, administration: Administration, kind: str) -> Answer:
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    rows: list[dict[str, Shown]] = []
    if kind != "CLUSTER":
        rows += rows_of(administration, (FAMILY,), pattern)
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
    found = select(command, rows, identity, known=_KNOWN, without_effect=_BLANK, passed_over=passed_over)
    return displayed(answers.TOPIC_DISPLAY, found)


def _cluster_rows(administration: Administration, pattern: str) -> Iterator[dict[str, Shown]]:
    repository = administration.repository()
    for each in repository.cluster_topics.topics:
        topic = each.topic
        if topic.cluster in repository.own.clusters and matches_name(pattern, topic.name):
            row: dict[str, Shown] = {"TOPIC": topic.name, "TYPE": "CLUSTER"}
            row |= {attribute.keyword: shown(topic, attribute) for attribute in TOPIC.attributes}
            yield row | {"CLUSQMGR": each.host, "CLSTATE": each.state.value}
