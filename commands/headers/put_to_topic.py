"""From a message that a program puts on a topic to the equivalent Publish command (guide 7.7).

The command is an MQRFH2 before the message. If the message itself begins with an MQRFH2, as those of JMS do, psc
becomes its first folder, so that subscribers find the other folders at the usual place. Its own psc or pscr folder is
removed, because the queue determines the topic. The message becomes a datagram, because its program did not ask the
broker for a response.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.model import Publish, PubOpt
from rfh2.ccsid import UTF8_CCSID
from rfh2.chain import decode_chain
from rfh2.constants import MQENC_NATIVE, MQFMT_RF_HEADER_2, MQMT_DATAGRAM
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2

_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})


def publish_command(
    topic: str, mqmd: Mqmd, body: bytes, retain: bool = False, local: bool = False
) -> tuple[Mqmd, bytes]:
    """The descriptor and the bytes of the command that publishes a message on *topic*. Raises EncodeError.

    retain, local: MQPMO_RETAIN, MQPMO_SCOPE_QMGR (guide 7.2, tables of options).
    """
    chosen = ((retain, PubOpt.RETAIN_PUB), (local, PubOpt.LOCAL))
    options = tuple(("PubOpt", option.value) for is_set, option in chosen if is_set)
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
