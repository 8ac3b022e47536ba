"""Messages of IBM MQ's queues for a capture: looked at and left there, or taken in units of work."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from commands.client.errors import MqError
from commands.config.settings import QueuesConfig
from commands.config.urls import Address
from commands.links.ibmmq.channel import connection_to
from commands.links.ibmmq.connection import Got
from commands.links.ibmmq.input_queues import InputQueues
from rfh2.captured import CapturedMessage
from rfh2.captures import put_time
from rfh2.mqi_constants import MQGMO_BROWSE_FIRST, MQOO_BROWSE, MQOO_INPUT_SHARED, MQRC_SYNCPOINT_LIMIT_REACHED
from rfh2.mqmd import Mqmd, name_of

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


class MqCapture:
    """The queues of one queue manager. Raises MqError from everything; connect again after a ConnectionLostError.

    queues: by queue, the name that its messages have in the capture. takes: whether messages are taken off the queues.
    Messages have ``seq`` 0.
    """

    def __init__(self, address: Address, config: QueuesConfig, queues: Mapping[str, str], *, takes: bool) -> None:
        self._connection = connection_to(address, config, "qpubsub capture")
        self._qmgr, self._names, self._takes = address.qmgr, dict(queues), takes
        self._handles: list[tuple[str, Any]] = []
        # What was seen and may be there: the queue, the message's token there, and its descriptor.
        self._seen: set[tuple[str, bytes, bytes]] = set()

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._connection.is_up

    def connect(self) -> None:
        """Connect and open the queues."""
        self._connection.connect()
        options = MQOO_BROWSE | (MQOO_INPUT_SHARED if self._takes else 0)
        self._handles = [(queue, self._connection.queue(queue, options)) for queue in self._names]

    def disconnect(self) -> None:
        """Disconnect; what was not committed is backed out."""
        self._handles = []
        self._connection.disconnect()

    def look(self) -> Iterator[CapturedMessage]:
        """The messages that the look before did not see, in the order in which they were put; each stays on its queue.

        It is a look only if it is read to its end.
        """
        there: set[tuple[str, bytes, bytes]] = set()
        queues = (self._look_at(queue, handle, there) for queue, handle in self._handles)
        yield from heapq.merge(*queues, key=lambda message: message.time or _NO_TIME)
        self._seen = there

    def _look_at(self, queue: str, handle: Any, there: set[tuple[str, bytes, bytes]]) -> Iterator[CapturedMessage]:
        connection, first = self._connection, True
        option = MQGMO_BROWSE_FIRST
        while (glance := connection.glance(handle, first)) is not None:
            first = False
            found = (queue, glance.token, glance.md)
            there.add(found)
            if found not in self._seen:
                got = connection.get(handle, option, token=glance.token)
                if got is not None:
                    self._seen.add(found)
                    yield self._captured(queue, got)

    def take(self, most: int, most_bytes: int) -> list[CapturedMessage]:
        """Take the next messages in a unit of work, until ``commit`` or ``backout``: in the order of their puts.

        most: messages. most_bytes: no other message is taken once they have so many bytes.
        """
        inputs, size = InputQueues(self._connection, self._handles), 0
        taken: list[CapturedMessage] = []
        while len(taken) < most and size < most_bytes:
            try:
                one = inputs.take()
            except MqError as error:
                if error.reason == MQRC_SYNCPOINT_LIMIT_REACHED and taken:
                    break  # the next unit of work goes on
                raise
            if one is None:
                break
            size += len(one[1].body)
            taken.append(self._captured(*one))
        return taken

    def commit(self) -> None:
        """Remove what was taken. BackedOutError: it is on the queues. ConnectionLostError: nobody knows yet."""
        self._connection.commit()

    def backout(self) -> None:
        """Leave on the queues what was taken."""
        self._connection.backout()

    def _captured(self, queue: str, got: Got) -> CapturedMessage:
        return CapturedMessage.model_construct(
            seq=0,
            time=put_time(got.md),
            qmgr=self._qmgr,
            queue=self._names[queue],
            user=name_of(Mqmd.decode(got.md).user_identifier) or None,
            md_hex=got.md.hex(),
            body_hex=got.body.hex(),
        )
