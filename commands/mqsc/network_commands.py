"""REFRESH QMGR (guide 8.6), and the commands about clusters, on a queue manager that is in none."""

from __future__ import annotations

from typing import Final

from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.model import Command, MqscError
from commands.mqsc.values import words

_TYPES: Final = words("PROXYSUB", "CONFIGEV", "EXPIRY", "EARLY")
_OPTIONS: Final = {"CLUSTER", "CLUSNL", "MODE", "CMDSCOPE", "FACILITY", "LOG"}


def refresh_qmgr(command: Command, administration: Administration) -> Answer:
    """REFRESH QMGR TYPE(PROXYSUB): the neighbours get all proxy subscriptions again. Other types do nothing."""
    for keyword in command.keywords:
        if keyword.name not in {"TYPE", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    given = command.keyword("TYPE")
    if given is None:
        raise answers.missing_keyword("TYPE")
    kind = _TYPES.read(given)
    if kind != "PROXYSUB":
        return Answer(True, None, f"The bridge has nothing to refresh for TYPE({kind}).")
    count = administration.neighbours.refresh_proxies()
    if not count:
        return Answer(True, None, "No links to other queue managers are kept up: there is nothing to refresh.")
    to = "1 queue manager" if count == 1 else f"{count} queue managers"
    return Answer(True, None, f"Proxy subscriptions are sent to {to} again.")


def suspend_or_resume(command: Command, administration: Administration) -> Answer:
    """SUSPEND QMGR and RESUME QMGR, of a cluster or a namelist of clusters. Raises MqscError: there is none."""
    for keyword in command.keywords:
        if keyword.name not in _OPTIONS:
            raise unexpected_keyword(command, keyword)
    if command.keyword("CLUSTER") is None and command.keyword("CLUSNL") is None:
        raise answers.missing_keyword("CLUSTER or CLUSNL")
    raise _in_no_cluster(administration)


def refresh_cluster(command: Command, administration: Administration) -> Answer:
    """REFRESH CLUSTER: an error, because the queue manager is in none. Raises MqscError."""
    for keyword in command.keywords:
        if keyword.name not in {"REPOS", "CMDSCOPE"}:
            raise unexpected_keyword(command, keyword)
    raise _in_no_cluster(administration)


def _in_no_cluster(administration: Administration) -> MqscError:
    name = administration.objects.qmgr.name
    return answers.failed(f"Queue manager {name} is in no cluster: this command was not done.")
