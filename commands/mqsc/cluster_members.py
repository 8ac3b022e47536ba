"""DISPLAY CLUSQMGR: the members of the clusters that this queue manager is in, itself included.

QMTYPE    REPOS: the queue managers of one home know everything of each other, so each is a full repository
DEFTYPE   CLUSRCVR of this queue manager; of others CLUSSDRA, or CLUSSDRB where a CLUSSDR channel is defined for it
STATUS    RUNNING once the two have joined, STARTING until then; INACTIVE before a command processor has worked. Of
          this queue manager: RUNNING once it has joined another one
CHANNEL   the CLUSRCVR channel of the member; blank for the moment until it has been looked up
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.objects import CLUSRCVR, CLUSSDR
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed
from commands.mqsc.attributes import CHANNEL
from commands.mqsc.display import matches_name, select
from commands.mqsc.model import Command
from commands.mqsc.values import single
from commands.network.neighbours import NeighbourStatus
from commands.network.repository import RepositoryEntry

_IDENTITY: Final = ("CLUSQMGR", "CHANNEL", "CLUSTER")
_KNOWN: Final = frozenset({*_IDENTITY, "QMTYPE", "DEFTYPE", "STATUS", "SUSPEND", "CONNAME", "DESCR"})
_BLANK: Final = CHANNEL.without_effect | {"CLUSDATE", "CLUSTIME", "QMID", "VERSION"}
_CHOOSING: Final = ("CHANNEL", "CLUSTER")
_STATUS: Final = {NeighbourStatus.ACTIVE.value: "RUNNING", NeighbourStatus.STARTING.value: "STARTING"}


def display(command: Command, administration: Administration) -> Answer:
    """DISPLAY CLUSQMGR by name or generic name, and by CLUSTER and CHANNEL. Raises MqscError."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text.rstrip(" ")
    given = [each for each in map(command.keyword, _CHOOSING) if each is not None and each.values is not None]
    chosen = [(each.name, single(each).text.rstrip(" ")) for each in given]
    rows = [
        row
        for row in _rows(administration)
        if matches_name(pattern, str(row["CLUSQMGR"]))
        and all(matches_name(wanted, str(row[keyword])) for keyword, wanted in chosen)
    ]
    passed_over = frozenset(keyword for keyword, _ in chosen)
    found = select(command, rows, _IDENTITY, known=_KNOWN, without_effect=_BLANK, passed_over=passed_over)
    return displayed(answers.CLUSQMGR_DISPLAY, found)


def _rows(administration: Administration) -> Iterator[dict[str, Shown]]:
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
