"""Publications to IBM MQ's topic tree (``Sender``).

If the outgoing queue is IBM MQ's too, the sender puts them in the unit of work in which it got them.

PCF commands are in no unit of work: if the unit of work with its get is backed out, the sender does the clear again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from commands.links.engine.adapter import Prepared, Sent, Waiting
from commands.links.engine.message_for_tree import ForTree
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.publications import put_for
from commands.links.ibmmq.reasons import REFUSED, ConnectionLostError, MqError
from commands.links.ibmmq.tree import Tree
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import StoreError

_log = logging.getLogger("qpubsub.mq")

# Beside what a queue may say: the topic is inhibited (2051), not valid (2425), or nobody's (2502).
_TOPIC_REFUSED: Final = frozenset({2425, 2085, 2502, 2503, 2494})
# The properties are too large (2465, 2469, 2478, 2513), have a name that MQ does not allow (2442), or were malformed.
_PROPERTIES_REFUSED: Final = frozenset({2228, 2334, 2335, 2336, 2421, 2442, 2465, 2469, 2472, 2473, 2478, 2513, 2527})
_OF_THE_PUBLICATION: Final = frozenset(REFUSED) | _TOPIC_REFUSED | _PROPERTIES_REFUSED

MqPut = tuple[bytes, bytes, int]
"""The MQMD, the body and the MQPMO_* of an MQPUT to a topic; nothing of each for a clear."""


class MqSender:
    """For one thread. messages: the connection that publishes; own: for this sender alone, so that it commits there.

    tree: for PCF, which has a connection of its own: ibmmq 2.1.2 may mistake buffers where a queue that was read is
    closed while another one stays open.
    """

    def __init__(self, messages: MqMessages, own: bool, tree: Tree) -> None:
        self._messages, self._own, self._tree = messages, own, tree

    def prepare(self, wanted: ForTree) -> Prepared[MqPut]:
        if wanted.clear:
            return Prepared((b"", b"", 0))
        return Prepared(put_for(wanted, self._tree.bridge), wanted.other)

    def send(self, batch: Iterable[Waiting[MqPut]]) -> Iterator[Sent]:
        if not self._own:
            yield from map(self._sent, batch)
            return
        with self._messages.unit_of_work():
            yield from map(self._sent, batch)

    def done(self) -> None:
        """Nothing is remembered of a batch."""

    def close(self) -> None:
        self._tree.close()
        if self._own:
            self._messages.close()

    def _sent(self, waiting: Waiting[MqPut]) -> Sent:
        topic, message = waiting.wanted.topic, waiting.message
        try:
            if waiting.wanted.clear:
                self._tree.clear(topic, waiting.wanted.local)
            else:
                self._messages.connection.publish(topic, *waiting.item)
        except ConnectionLostError:
            raise
        except MqError as error:
            if error.reason not in _OF_THE_PUBLICATION:
                raise
            return Sent(message, error.reason, f"IBM MQ refuses what is to be done on topic {topic}: {error}")
        except StoreError:
            raise
        except Exception as error:
            # A fault of ours: it must not keep what is behind it waiting.
            _log.error("topic %s: a publication cannot be published", topic, exc_info=error)
            why = f"message {message.seq} on {message.queue}: it cannot be published"
            return Sent(message, MQRCCF_COMMAND_FAILED, why)
        return Sent(message)
