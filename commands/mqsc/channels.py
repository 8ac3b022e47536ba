"""What is particular to channels: CHLTYPE, and to which clusters a channel belongs.

As in IBM MQ, the type of a channel is never changed, and CLUSTER and CLUSNL are not given both. Channels of other types
carry messages between machines, or to clients; the bridge has none.
"""

from __future__ import annotations

from typing import Final

from commands.broker.objects import CLUSRCVR, CLUSSDR, ClusterChannel, Objects
from commands.mqsc import answers
from commands.mqsc.model import Command
from commands.mqsc.values import single
from rfh2.pcf_admin_names import MQRCCF_CHANNEL_TYPE_ERROR, MQRCCF_CLUSTER_NAME_CONFLICT

_OTHER_TYPES: Final = frozenset({"AMQP", "CLNTCONN", "MQTT", "RCVR", "RQSTR", "SDR", "SVR", "SVRCONN"})


def check_type(command: Command, existing: ClusterChannel | None) -> None:
    """Raise MqscError AMQ8404 where CHLTYPE is one that the bridge has not, or not that of the *existing* channel."""
    keyword = command.keyword("CHLTYPE")
    if keyword is None:
        return
    given = single(keyword).text.upper()
    if given in _OTHER_TYPES:
        why = f"The bridge has only channels of clusters, {CLUSRCVR} and {CLUSSDR}: this command was not done."
        raise answers.failed(why, MQRCCF_CHANNEL_TYPE_ERROR)
    if existing is not None and given != existing.channel_type:
        why = f"Channel {existing.name} has CHLTYPE({existing.channel_type}), which cannot be changed; delete it first."
        raise answers.failed(why, MQRCCF_CHANNEL_TYPE_ERROR)


def notes_on(channel: ClusterChannel, objects: Objects) -> tuple[str, ...]:
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


def notes_without(namelist: str, objects: Objects) -> tuple[str, ...]:
    """What to say where a namelist was deleted: which channels were in its clusters."""
    found = [each.name for each in objects.channels.values() if each.cluster_namelist == namelist]
    return tuple(f"channel {name} is in no cluster any more: its CLUSNL is gone" for name in sorted(found))
