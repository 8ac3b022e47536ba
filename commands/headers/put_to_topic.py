"""From a message that a program puts on a topic to the equivalent Publish command (guide 7.7).

The command is an MQRFH2 before the message. If the message itself begins with an MQRFH2, as those of JMS do, psc
becomes its first folder, so that subscribers find the other folders at the usual place. Its own psc or pscr folder is
removed, because the queue determines the topic. The message becomes a datagram, because its program did not ask the
broker for a response.

A tag of its own says what no tag of a command says: PubLevel, then R for MQPMO_SUPPRESS_REPLYTO, then the identifiers
of the subscriptions that MQPMO_NOT_OWN_SUBS leaves out. It is there only if the program said such a thing, or gave a
ReplyToQ, which its subscribers get. Subscribers do not get the tag.

    <MQPut>8</MQPut>      <MQPut>9 R</MQPut>      <MQPut>9 414D5120... 414D5120...</MQPut>
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from commands.model import Publish, PubOpt, TopicPut
from rfh2.ccsid import UTF8_CCSID
from rfh2.chain import decode_chain
from rfh2.constants import MQENC_NATIVE, MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQRC_RFH_PARM_ERROR
from rfh2.errors import CommandError, DecodeError
from rfh2.folders import Folder, write
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2

PUT_TAG: Final = "MQPut"
_PLAIN: Final = TopicPut()
_SUPPRESSES: Final = "R"
_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})
_PUT: Final = re.compile(r"([0-9])( R)?((?: [0-9A-F]{48})*)")


def format_put(put: TopicPut) -> str:
    """The text of the tag."""
    return " ".join((str(put.level), *((_SUPPRESSES,) if put.suppress_reply_to else ()), *put.own_subs))


def parse_put(text: str) -> TopicPut:
    """What the tag says. Raises CommandError 2337."""
    found = _PUT.fullmatch(text)
    if found is None:
        why = "it is not PubLevel, R, and identifiers of subscriptions"
        raise CommandError(MQRC_RFH_PARM_ERROR, why=why, tags=((PUT_TAG, text),))
    level, suppresses, own = found.groups()
    return TopicPut(level=int(level), suppress_reply_to=suppresses is not None, own_subs=tuple(own.split()))


def publish_command(
    topic: str, mqmd: Mqmd, body: bytes, retain: bool = False, local: bool = False, put: TopicPut = _PLAIN
) -> tuple[Mqmd, bytes]:
    """The descriptor and the bytes of the command that publishes a message on *topic*. Raises EncodeError.

    retain, local: MQPMO_RETAIN, MQPMO_SCOPE_QMGR (guide 7.2, tables of options).
    """
    chosen = ((retain, PubOpt.RETAIN_PUB), (local, PubOpt.LOCAL))
    options = [("PubOpt", option.value) for is_set, option in chosen if is_set]
    if put != _PLAIN or name_of(mqmd.reply_to_q):
        options.append((PUT_TAG, format_put(put)))
    psc = Folder.of(write("psc", (("Command", Publish.word), ("Topic", topic), *options)))
    first = _first_header(mqmd, body)
    datagram = replace(mqmd, msg_type=MQMT_DATAGRAM, report=0)
    if first is not None:
        others = tuple(folder for folder in first.folders if folder.name not in _COMMAND_FOLDERS)
        return datagram, first.with_folders((psc, *others)).encode() + body[first.length :]
    header = Rfh2(
        (psc,), encoding=mqmd.encoding, coded_char_set_id=mqmd.coded_char_set_id, format=mqmd.format.rstrip(" \0")
    )
    described = replace(datagram, format=MQFMT_RF_HEADER_2, encoding=MQENC_NATIVE, coded_char_set_id=UTF8_CCSID)
    return described, header.encode() + body


def _first_header(mqmd: Mqmd, body: bytes) -> Rfh2 | None:
    """The MQRFH2 at the start of *body*, if a folder in UTF-8 can be added to it."""
    try:
        headers, _ = decode_chain(body, mqmd.format, mqmd.coded_char_set_id)
    except DecodeError:
        return None
    first = headers[0] if headers else None
    return first if isinstance(first, Rfh2) and first.name_value_ccsid == UTF8_CCSID else None
