"""REFRESH QMGR (guide 8.6), and the commands about the clusters that the queue manager is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.broker.attribute_kinds import Name
from commands.broker.objects import Objects
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionStored, done
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.model import Command
from commands.mqsc.values import read, word_of

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
