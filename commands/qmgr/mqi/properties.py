"""Message properties as MQGET gives them: in an MQRFH2, or not at all (IBM's description of MQGMO, property options).

A publication for a subscription of MQSUB has its properties in the first MQRFH2, with folder ``mqps``. Programs that do
not ask for them get the message as it was published, unless it has properties of its own, as JMS messages have:

    FORCE_MQRFH2, IN_HANDLE            the MQRFH2; a client makes properties of it
    COMPATIBILITY, AS_Q_DEF            the MQRFH2 if it has a folder other than mqps and mqpse
    NO_PROPERTIES                      none of the folders that hold properties; no MQRFH2 if it has no other folder

Queues have PROPCTL(COMPAT). Under the others an MQRFH2 without ``mqps`` is data: it is never taken off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rfh2.chain import ccsid_behind, decode_chain
from rfh2.constants import MQFMT_RF_HEADER_2
from rfh2.errors import DecodeError
from rfh2.mqi_constants import (
    MQGMO_NO_PROPERTIES,
    MQGMO_PROPERTIES_FORCE_MQRFH2,
    MQGMO_PROPERTIES_IN_HANDLE,
)
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2

_PUBLICATION: Final = b"<mqps>"
_OF_PUBLICATION: Final = frozenset({"mqps", "mqpse"})
# Folders whose content are message properties, whoever wrote them (IBM's description of property folders).
_OF_PROPERTIES: Final = _OF_PUBLICATION | frozenset(
    ["jms", "mcd", "usr", "mq", "mq_svc", "mq_usr", "mqema", "mqext", "mqtt", "sib", "sib_context", "sib_usr"]
)


def given(mqmd: Mqmd, body: bytes, options: int) -> tuple[Mqmd, bytes]:
    """The descriptor and the data that a program gets. options: MQGMO_*."""
    if options & (MQGMO_PROPERTIES_FORCE_MQRFH2 | MQGMO_PROPERTIES_IN_HANDLE):
        return mqmd, body
    takes_all = bool(options & MQGMO_NO_PROPERTIES)
    if name_of(mqmd.format) != name_of(MQFMT_RF_HEADER_2) or not (takes_all or _PUBLICATION in body):
        return mqmd, body
    try:
        headers, _ = decode_chain(body, mqmd.format, mqmd.coded_char_set_id)
    except DecodeError:
        return mqmd, body
    first = headers[0] if headers else None
    if not isinstance(first, Rfh2):
        return mqmd, body
    names = {folder.name for folder in first.folders}
    if takes_all:
        data = tuple(folder for folder in first.folders if folder.name not in _OF_PROPERTIES)
        if len(data) == len(first.folders):
            return mqmd, body
        if data:
            return mqmd, first.with_folders(data).encode() + body[first.length :]
    elif not "mqps" in names <= _OF_PUBLICATION:
        return mqmd, body
    described = replace(
        mqmd,
        format=first.format,
        encoding=first.encoding,
        coded_char_set_id=ccsid_behind(first, mqmd.coded_char_set_id),
    )
    return described, body[first.length :]
