"""The share that a message is for. Pure.

    on a queue               the share of that queue
    on the control queue     the share of the subscriber queue that the command names, in QName or in ReplyToQ; where no
                             share has that, the one of the stream that it names

So a subscription is where its queue is: with the streams of the same share.
"""

from __future__ import annotations

from collections.abc import Iterator

from commands.broker.objects import CONTROL_QUEUE
from commands.headers.registry import parse
from commands.running.shares.shares_file import Share, Shares
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.mqmd import name_of


class NoShareError(QPubSubError):
    """A message that is for none of the shares. what: the queues that it names."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"no share has {self.what}: add a pattern that selects it to a [[share]]"


def share_of(message: CapturedMessage, shares: Shares) -> Share:
    """The share in whose queue manager *message* must be put. Raises NoShareError, DecodeError, CommandError."""
    names = [message.queue] if message.queue != CONTROL_QUEUE else list(_named(message))
    for name in names:
        found = shares.of_queue(name)
        if found is not None:
            return found
    raise NoShareError(" or ".join(names) if names else f"a queue for it: it is on {CONTROL_QUEUE}, and names none")


def _named(message: CapturedMessage) -> Iterator[str]:
    """The queues that a command on the control queue is about."""
    decoded = message.decode()
    command = parse(decoded)
    for name in (command.q_name, name_of(decoded.mqmd.reply_to_q), command.stream_name):
        if name:
            yield name
