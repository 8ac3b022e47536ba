"""Publications that a broker delivered, and Publish commands made of them or of what a topic keeps.

A delivered publication has a header that the broker wrote, with options that no publisher may give: it is read for
itself, not as a command. To publish it again its header gets back what a publisher says: the topic as the publisher
named it, the subscription point, RetainPub. Everything else, other folders and the data above all, goes on byte for
byte.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from commands.headers.psc import split_psc
from commands.headers.psc_commands import is_user_tag
from commands.headers.registry import parse
from commands.model import Publish, PubOpt
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQMT_DATAGRAM
from rfh2.errors import CommandError
from rfh2.folders import Folder, write
from rfh2.message import Message
from rfh2.mqmd import name_of
from rfh2.options import PUBLICATION
from rfh2.rfh1 import (
    MQPS_COMMAND,
    MQPS_PUBLICATION_OPTIONS,
    MQPS_PUBLISH,
    MQPS_Q_MGR_NAME,
    MQPS_Q_NAME,
    MQPS_REGISTRATION_OPTIONS,
    MQPS_STREAM_NAME,
    MQPS_TOPIC,
    Rfh1,
)
from rfh2.rfh2 import Rfh2

_REWRITTEN = frozenset(
    {MQPS_COMMAND, MQPS_TOPIC, MQPS_PUBLICATION_OPTIONS, MQPS_REGISTRATION_OPTIONS, MQPS_STREAM_NAME}
    | {MQPS_Q_NAME, MQPS_Q_MGR_NAME}
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The contents of a publication's header. stream: "" if the header does not name it."""

    topics: tuple[str, ...]
    is_retained: bool
    stream: str = ""
    sub_point: str | None = None
    pub_time: str | None = None
    seq_num: str | None = None


def delivered_publication(message: Message) -> Delivered | None:
    """The publication in *message*; None if it is not a publication. Raises DecodeError."""
    if message.rfh2 is not None:
        commands, _ = split_psc(message.rfh2)
        if commands:
            return _of_pairs(commands[0].pairs(), "Topic", "PubOpt", "Command")
    if message.rfh1 is not None:
        pairs = [(name.removeprefix("MQPS"), value) for name, value in message.rfh1.pairs()]
        return _of_pairs(pairs, "Topic", "PubOpts", "Command")
    return None


def published_again(message: Message, topic: str, sub_point: str | None, *, local: bool = False) -> Message:
    """*message* as a publisher would put it: to be retained, on *topic*, at *sub_point*.

    Raises CommandError, DecodeError if it is not a publication.
    """
    delivered = delivered_publication(message)
    if delivered is None:
        raise CommandError(0, topic, "the message is not a publication in an MQRFH or MQRFH2")
    mqmd = replace(
        message.mqmd,
        msg_type=MQMT_DATAGRAM,
        report=0,
        reply_to_q="",
        reply_to_qmgr="",
        expiry=message.mqmd.expiry if message.mqmd.expiry > 0 else MQEI_UNLIMITED,
    )
    headers = list(message.headers)
    for at, header in enumerate(headers):
        if isinstance(header, Rfh2):
            headers[at] = _in_psc(header, delivered, topic, sub_point, local)
            break
        if isinstance(header, Rfh1):
            headers[at] = _in_rfh1(header, topic, local)
            break
    return replace(message, mqmd=mqmd, headers=tuple(headers))


def is_retain_command(message: Message, topic: str) -> bool:
    """Whether *message*, put as it is, publishes to *topic* alone and has it retained."""
    command = parse(message)
    return isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB) and command.topics == (topic,)


def _of_pairs(pairs: list[tuple[str, str]], topic: str, options: str, command: str) -> Delivered | None:
    values: dict[str, str] = {}
    for name, value in pairs:
        values.setdefault(name, value)
    if values.get(command) != Publish.word:
        return None
    words = PUBLICATION.read([value for name, value in pairs if name == options]).words
    return Delivered(
        tuple(value for name, value in pairs if name == topic),
        PubOpt.IS_RETAINED_PUB in words,
        name_of(values.get("StreamName", "")),
        values.get("SubPoint") or None,
        values.get("PubTime"),
        values.get("SeqNum"),
    )


def _in_psc(header: Rfh2, delivered: Delivered, topic: str, sub_point: str | None, local: bool) -> Rfh2:
    commands, others = split_psc(header)
    pairs = [("Command", Publish.word), ("PubOpt", PubOpt.RETAIN_PUB.value)]
    if local:
        pairs.append(("PubOpt", PubOpt.LOCAL.value))
    pairs.append(("Topic", topic))
    if sub_point:
        pairs.append(("SubPoint", sub_point))
    pairs += [(tag, value) for tag, value in (("PubTime", delivered.pub_time), ("SeqNum", delivered.seq_num)) if value]
    pairs += [(tag, value) for folder in commands for tag, value in folder.pairs() if is_user_tag(tag)]
    charset = "utf-8" if header.name_value_ccsid == UTF8_CCSID else f"utf-16-{header.order[0]}e"
    return header.with_folders((Folder.of(write("psc", pairs), charset), *others))


def _in_rfh1(header: Rfh1, topic: str, local: bool) -> Rfh1:
    kept = [(name, value) for name, value in header.pairs() if name not in _REWRITTEN]
    own = [(MQPS_COMMAND, MQPS_PUBLISH), (MQPS_PUBLICATION_OPTIONS, PubOpt.RETAIN_PUB.value)]
    if local:
        own.append((MQPS_REGISTRATION_OPTIONS, PubOpt.LOCAL.value))
    return header.with_pairs([*own, (MQPS_TOPIC, topic), *kept])
