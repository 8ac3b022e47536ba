"""The one tree of errors: every failure that qpubsub foresees is a QPubSubError.

Constructor arguments equal ``args``, so that an error survives pickling on its way back from another process.
"""

from __future__ import annotations

from rfh2.constants import MQRC_RFH_ERROR


class QPubSubError(Exception):
    """Root of everything that qpubsub raises on purpose; its text is fit for a person to read."""


class DecodeError(QPubSubError):
    """Bytes that are not what their header says.

    offset: byte offset into the data that the caller gave. header: the structure being read (``MQRFH2``, ``psc``).
    why: one clause, lower case. code: the stable problem code that ``decode`` shows. reason: the MQRC_* with which a
    dead-letter header or a response names the failure.
    """

    def __init__(
        self, offset: int, header: str, why: str, code: str = "malformed-header", reason: int = MQRC_RFH_ERROR
    ) -> None:
        super().__init__(offset, header, why, code, reason)
        self.offset, self.header, self.why, self.code, self.reason = offset, header, why, code, reason

    def __str__(self) -> str:
        return f"{self.header} at byte {self.offset}: {self.why}"


class CommandError(QPubSubError):
    """A command that decodes but that a broker refuses; answered with *reason* (guide 6.7.7).

    reason: an MQRC_* or MQRCCF_* code. topic: the topic that is to blame, where one is. why: for people.
    tags: further psc properties that name the culprit in the response, as (tag, value) pairs.
    """

    def __init__(
        self, reason: int, topic: str | None = None, why: str = "", tags: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(reason, topic, why, tags)
        self.reason, self.topic, self.why, self.tags = reason, topic, why, tags

    def __str__(self) -> str:
        where = f" (topic {self.topic})" if self.topic is not None else ""
        return f"reason {self.reason}{where}: {self.why}" if self.why else f"reason {self.reason}{where}"


class EncodeError(QPubSubError):
    """A value that cannot be put on the wire: text outside its code page, or longer than its field."""


class CaptureError(QPubSubError):
    """A capture file that cannot be read.

    source: the file. position: line (text formats) or byte offset (binary formats), as *unit* says.
    """

    def __init__(self, source: str, position: int | None, why: str, unit: str = "line") -> None:
        super().__init__(source, position, why, unit)
        self.source, self.position, self.why, self.unit = source, position, why, unit

    def __str__(self) -> str:
        where = f", {self.unit} {self.position}" if self.position is not None else ""
        return f"{self.source}{where}: {self.why}"


class StoreError(QPubSubError):
    """The queue manager's directory or database cannot do what was asked."""


class MigrationError(QPubSubError):
    """A migration that cannot go on; nothing was changed."""


def system_words(error: BaseException) -> str:
    """What the operating system says is wrong, as the end of a sentence; Python puts an address before or after it."""
    words = (getattr(error, "strerror", None) or str(error)).rpartition("): ")[2].partition(" (while attempting")[0]
    return words[:1].lower() + words[1:]


class QueueError(StoreError):
    """A queue refuses a put, a get or a change. reason: the MQRC_* that MQ would give. why: one clause, for people.

    In the text of the error, the name of the queue stands for "it" at the beginning of *why*.
    """

    def __init__(self, reason: int, queue: str, why: str) -> None:
        super().__init__(reason, queue, why)
        self.reason, self.queue, self.why = reason, queue, why

    def __str__(self) -> str:
        of_it = self.why.removeprefix("it ")
        return f"queue {self.queue}{' ' if of_it != self.why else ': '}{of_it} (reason {self.reason})"


class MessageRefusedError(QueueError):
    """This one message cannot be put; another one could (2030, and faults of its MQMD)."""
