"""What a command on the control queue can find and change, as far as its message says it.

The broker finds subscriptions in two ways only (``identity``): by name, and by traditional identity. So two commands
whose reaches share neither a name nor an identity never meet: no subscription that one of them makes, finds, changes or
removes is ever found by the other, whatever their streams, topics, users and times, and in versions 6 and 7 alike.

The queue manager is left out of the identity: that makes a reach wider, and never too narrow. A stream or a topic is no
part of it. Version 7 has one space of names for all streams. Version 6 asks for the owner of an identity in all
streams. An MQRFH2 subscriber names no stream, and one command can name topics anywhere.

One kind of command has a reach that its message does not show. A RegSub that finds its subscription by name moves it,
and takes from the subscription what the command does not give: the queue, or without RegOpt the correlation identifier.
So it can make an identity of which each half was given by another command of that name. ``mixes`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from commands.broker.reading import as_kept, decoded
from commands.broker.stream_names import name_in_stream
from commands.headers.registry import parse
from commands.model import DeregisterSubscriber, QueuedCommand, RegisterSubscriber, RegOpt, RequestUpdate
from rfh2.errors import QPubSubError
from rfh2.inherited_ccsids import is_resolved
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd, name_of
from streams.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class Reach:
    """What a message can find and change.

    names: of subscriptions. queue: the subscriber queue, empty where the command names none; correl_id: the other half
    of the identity. mixes: whether a subscription of these names may keep a half of its own identity.
    """

    names: tuple[str, ...] = ()
    queue: str = ""
    correl_id: bytes = MQCI_NONE
    mixes: bool = False


NOTHING = Reach()
"""That of a message that neither finds nor makes a subscription."""


def reach_of(md: bytes | None, body: bytes) -> Reach:
    """The reach of a message on the control queue; NOTHING where the broker would refuse to read it."""
    try:
        message = decoded(md, body)
        if not is_resolved(message):
            _, message = as_kept(body, message)
        return _reach_of_command(parse(message), message.mqmd)
    except QPubSubError:
        return NOTHING


def reach_of_subscription(subscription: Subscription) -> Reach:
    """The reach of a subscription that exists: whatever shares something with it may find it."""
    names = () if subscription.name is None else (subscription.name,)
    return Reach(names, subscription.dest_queue, subscription.correl_id)


def _reach_of_command(command: QueuedCommand, mqmd: Mqmd) -> Reach:
    if not isinstance(command, RegisterSubscriber | DeregisterSubscriber | RequestUpdate):
        return NOTHING
    queue = name_of(command.q_name or "") or name_of(mqmd.reply_to_q)
    correl_id = mqmd.correl_id if command.has(RegOpt.CORREL_AS_ID) else MQCI_NONE
    name, stream = command.sub_name, command.stream_name
    if name is None:
        return Reach((), queue, correl_id)
    # A name that migration has changed is found by either one (guide 7.6.1).
    names = (name,) if stream is None else (name, name_in_stream(name, stream))
    moves = isinstance(command, RegisterSubscriber) and not command.has(RegOpt.NO_ALTER)
    return Reach(names, queue, correl_id, moves and (not queue or command.options is None))
