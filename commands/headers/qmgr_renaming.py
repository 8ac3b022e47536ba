"""A captured message, changed to belong to another queue manager: its replies and publications go there.

A program gives the queue manager of its queues in ReplyToQMgr and, in a command, in QMgrName. Usually this is the queue
manager that it was connected to. If such a message is put on a queue manager with another name, its responses go
through a transmission queue to the first one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rfh2.captured import CapturedMessage
from rfh2.chain import Header
from rfh2.errors import QPubSubError
from rfh2.folders import Folder
from rfh2.message import encode
from rfh2.mqmd import name_of
from rfh2.rfh1 import MQPS_Q_MGR_NAME, Rfh1
from rfh2.rfh2 import Rfh2


def other_qmgr(message: CapturedMessage, qmgr: str) -> str | None:
    """The queue manager other than *qmgr* that *message* names: first for its replies, then where it was captured."""
    descriptor = message.descriptor()
    reply_to = "" if descriptor is None else name_of(descriptor.reply_to_qmgr)
    return next((name for name in (reply_to, message.qmgr) if name and name != qmgr), None)


def renamed(message: CapturedMessage, qmgr: str) -> CapturedMessage:
    """*message* as one of queue manager *qmgr*: in ReplyToQMgr, and in QMgrName of its command.

    What names a queue manager that it was not captured on stays as it is: it is elsewhere still. Where the capture does
    not say, ReplyToQMgr does. A command in PCF keeps its QMgrName. Headers that do not name it stay byte for byte.
    """
    descriptor = message.descriptor()
    reply_to = "" if descriptor is None else name_of(descriptor.reply_to_qmgr)
    old = message.qmgr or reply_to
    if not old or old == qmgr:
        return message
    update: dict[str, str] = {"qmgr": qmgr}
    if descriptor is not None and reply_to == old:
        update["md_hex"] = replace(descriptor, reply_to_qmgr=qmgr).encode().hex()
    try:
        decoded = message.decode()
    except QPubSubError:
        # It is put as it is, for the processor to say what is wrong with it.
        return message.model_copy(update=update)
    headers = tuple(_renamed_header(header, old, qmgr) for header in decoded.headers)
    if headers != decoded.headers:
        update["body_hex"] = encode(replace(decoded, headers=headers)).hex()
    return CapturedMessage(**message.model_dump() | update)


def _renamed_header(header: Header, old: str, new: str) -> Header:
    if isinstance(header, Rfh2):
        folders = tuple(_renamed_folder(folder, old, new) for folder in header.folders)
        return header if folders == header.folders else replace(header, folders=folders)
    if isinstance(header, Rfh1):
        pairs = header.pairs()
        changed = [(tag, new if tag == MQPS_Q_MGR_NAME and name_of(value) == old else value) for tag, value in pairs]
        return header if changed == pairs else header.with_pairs(changed)
    return header


def _renamed_folder(folder: Folder, old: str, new: str) -> Folder:
    try:
        text = folder.text
    except QPubSubError:
        return folder
    changed = re.sub(rf"(<QMgrName(?:\s[^>]*)?>\s*){re.escape(old)}(?=\s*</QMgrName\s*>)", rf"\g<1>{new}", text)
    return folder if changed == text else Folder.of(changed, folder.charset)
