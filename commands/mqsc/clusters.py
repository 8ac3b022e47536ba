"""Clusters and their channels: REFRESH QMGR and CLUSTER, SUSPEND and RESUME, DISPLAY CLUSQMGR (guide 8.6).

As in IBM MQ, CLUSTER and CLUSNL are not given both.

Of the members of clusters, DISPLAY CLUSQMGR shows:

QMTYPE    REPOS: the queue managers of one home know everything of each other, so each is a full repository
DEFTYPE   CLUSRCVR of this queue manager; of others CLUSSDRA, or CLUSSDRB where a CLUSSDR channel is defined for it
STATUS    RUNNING once the two have joined, STARTING until then; INACTIVE before a command processor has worked. Of
          this queue manager: RUNNING once it has joined another one
CHANNEL   the CLUSRCVR channel of the member; blank for the moment until it has been looked up
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from commands.broker.attribute_kinds import Name, Shown
from commands.broker.objects import CLUSRCVR, CLUSSDR, ClusterChannel, Objects
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionStored, displayed, done, matches_name, select
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.channel_attributes import CHANNEL
from commands.mqsc.script import Command
from commands.mqsc.values import read, single, word_of
from commands.network.cluster_topics import RepositoryEntry
from commands.network.topology import NeighbourStatus
from rfh2.pcf_admin_names import MQRCCF_CLUSTER_NAME_CONFLICT

_TYPES: Final = ("PROXYSUB", "CONFIGEV", "EXPIRY", "EARLY")
_OPTIONS: Final = {"CLUSTER", "CLUSNL", "MODE", "CMDSCOPE", "FACILITY", "LOG"}


def refresh_qmgr(command: Command, administration: Administration) -> Answer:
    """REFRESH QMGR TYPE(PROXYSUB): the neighbours get all proxy subscriptions again. Other types do nothing."""
    for keyword in command.keywords:
        if keyword.name not in {"TYPE", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    given = command.keyword("TYPE")
    if given is None:
        raise answers.missing_keyword("TYPE")
    kind = word_of(given, *_TYPES)
    if kind != "PROXYSUB":
        return Answer(True, None, f"The bridge has nothing to refresh for TYPE({kind}).")
    count = administration.neighbours.refresh_proxies()
    if not count:
        return Answer(True, None, "No links to other queue managers are kept up: there is nothing to refresh.")
    to = "1 queue manager" if count == 1 else f"{count} queue managers"
    return Answer(True, None, f"Proxy subscriptions are sent to {to} again.")


def suspend_or_resume(command: Command, administration: Administration) -> Answer:
    """SUSPEND QMGR and RESUME QMGR, of a cluster or a namelist of clusters.

    Publications on a topic with CLROUTE(TOPICHOST) go to other hosts where there are any. Raises MqscError.
    """
    for keyword in command.keywords:
        if keyword.name not in _OPTIONS:
            raise unexpected_keyword(command, keyword)
    objects = administration.objects
    named = _clusters(command, objects)
    for cluster in named:
        _require_member(cluster, objects)
    suspended = set(objects.qmgr.suspended)
    if command.verb == "SUSPEND":
        suspended.update(named)
    else:
        suspended.difference_update(named)
    made = replace(objects.qmgr, suspended=tuple(sorted(suspended)))
    objects.put(made)
    return done(answers.SUSPENDED if command.verb == "SUSPEND" else answers.RESUMED, DefinitionStored(made))


def refresh_cluster(command: Command, administration: Administration) -> Answer:
    """REFRESH CLUSTER: members get all proxy subscriptions, and what is retained for them, again. Raises MqscError.

    ``*`` is all clusters.
    """
    for keyword in command.keywords:
        if keyword.name not in {"REPOS", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    if command.name is None:
        raise answers.missing_keyword("CLUSTER")
    objects = administration.objects
    cluster = command.name.text.rstrip(" ")
    if cluster != "*":
        _require_member(cluster, objects)
    count = sum(administration.neighbours.refresh_cluster(each) for each in objects.clusters if cluster in (each, "*"))
    members = "1 member" if count == 1 else f"{count} members"
    return done(answers.CLUSTER_REFRESHED, notes=(f"sent again to {members}",))


def _clusters(command: Command, objects: Objects) -> tuple[str, ...]:
    cluster, namelist = command.keyword("CLUSTER"), command.keyword("CLUSNL")
    if cluster is not None and namelist is None:
        return (str(read(Name(), cluster)),)
    if namelist is None or cluster is not None:
        raise answers.missing_keyword("CLUSTER or CLUSNL")
    found = objects.namelists.get(name := str(read(Name(), namelist)))
    if found is None:
        raise answers.not_found(name)
    return found.names


def _require_member(cluster: str, objects: Objects) -> None:
    if cluster not in objects.clusters:
        known = " ".join(objects.clusters)
        where = f"is in: {known}" if known else "is in no cluster"
        why = f"queue manager {objects.qmgr.name} is not in cluster {cluster}; it {where}: this command was not done."
        raise answers.failed(why)


def channel_notes(channel: ClusterChannel, objects: Objects) -> tuple[str, ...]:
    """What to say of a channel that is to be kept. Raises MqscError AMQ8404 where it gives CLUSTER and CLUSNL."""
    if channel.cluster and channel.cluster_namelist:
        why = f"Channel {channel.name}: CLUSTER and CLUSNL cannot both be given; set one of them to ' '."
        raise answers.failed(why, MQRCCF_CLUSTER_NAME_CONFLICT)
    if channel.channel_type == CLUSSDR:
        return (f"{CLUSSDR} has no effect here: the members of a cluster in one home find each other",)
    if channel.cluster_namelist and channel.cluster_namelist not in objects.namelists:
        return (f"there is no namelist {channel.cluster_namelist}",)
    if not channel.cluster and not channel.cluster_namelist:
        return (f"{channel.name} is in no cluster: neither CLUSTER nor CLUSNL is given",)
    return ()


def namelist_deleted_notes(namelist: str, objects: Objects) -> tuple[str, ...]:
    """What to say where a namelist was deleted: which channels were in its clusters."""
    found = [each.name for each in objects.channels.values() if each.cluster_namelist == namelist]
    return tuple(f"channel {name} is in no cluster any more: its CLUSNL is gone" for name in sorted(found))


_MEMBER: Final = ("CLUSQMGR", "CHANNEL", "CLUSTER")
_OF_MEMBER: Final = frozenset({*_MEMBER, "QMTYPE", "DEFTYPE", "STATUS", "SUSPEND", "CONNAME", "DESCR"})
_NOT_OF_MEMBER: Final = CHANNEL.without_effect | {"CLUSDATE", "CLUSTIME", "QMID", "VERSION"}
_CHOOSING: Final = ("CHANNEL", "CLUSTER")
_STATUS: Final = {NeighbourStatus.ACTIVE.value: "RUNNING", NeighbourStatus.STARTING.value: "STARTING"}


def display_members(command: Command, administration: Administration) -> Answer:
    """DISPLAY CLUSQMGR by name or generic name, and by CLUSTER and CHANNEL. Raises MqscError."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    given = [each for each in map(command.keyword, _CHOOSING) if each is not None and each.values is not None]
    chosen = [(each.name, single(each).text.rstrip(" ")) for each in given]
    rows = [
        row
        for row in _member_rows(administration)
        if matches_name(pattern, str(row["CLUSQMGR"]))
        and all(matches_name(wanted, str(row[keyword])) for keyword, wanted in chosen)
    ]
    passed_over = frozenset(keyword for keyword, _ in chosen)
    found = select(command, rows, _MEMBER, known=_OF_MEMBER, without_effect=_NOT_OF_MEMBER, passed_over=passed_over)
    return displayed(answers.CLUSQMGR_DISPLAY, found)


def _member_rows(administration: Administration) -> Iterator[dict[str, Shown]]:
    repository = administration.repository()
    joined = {
        (each.qmgr, each.cluster): _STATUS.get(each.status, "INACTIVE") for each in administration.neighbours.members()
    }
    for entry in repository.entries:
        for cluster in entry.clusters:
            if cluster not in repository.own.clusters:
                continue
            is_own = entry is repository.own
            running = any(of == cluster and status == "RUNNING" for (_, of), status in joined.items())
            status = ("RUNNING" if running else "INACTIVE") if is_own else joined.get((entry.qmgr, cluster), "INACTIVE")
            yield {
                "CLUSQMGR": entry.qmgr,
                "CHANNEL": entry.channel(cluster),
                "CLUSTER": cluster,
                "QMTYPE": "REPOS",
                **_definition(administration, entry, cluster, is_own),
                "STATUS": status,
                "SUSPEND": "YES" if cluster in entry.suspended else "NO",
            }


def _definition(administration: Administration, entry: RepositoryEntry, cluster: str, is_own: bool) -> dict[str, Shown]:
    """What is defined here of the channel."""
    channel = administration.objects.channels.get(entry.channel(cluster))
    if channel is None or channel.channel_type != (CLUSRCVR if is_own else CLUSSDR):
        return {"DEFTYPE": "CLUSSDRA", "CONNAME": "", "DESCR": ""}
    kind = CLUSRCVR if is_own else "CLUSSDRB"
    return {"DEFTYPE": kind, "CONNAME": channel.connection_name, "DESCR": channel.description}
