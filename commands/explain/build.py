"""A command message made from what a person types: folder, or string of names and values, and descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from commands.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2.captured import CapturedMessage
from rfh2.ccsid import ByteOrder, text_codec
from rfh2.chain import Header
from rfh2.constants import MQENC_NATIVE, MQFMT_STRING
from rfh2.errors import EncodeError
from rfh2.explain.folder_text import folder_text
from rfh2.folders import Folder, write
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.mqps import MQPS_DELETE_PUBLICATION, MQPS_PUBLISH
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

_ON_STREAM: Final = (MQPS_PUBLISH, MQPS_DELETE_PUBLICATION)
_OPTION_TAGS: Final = {MQPS_PUBLISH: "PubOpt", MQPS_DELETE_PUBLICATION: "DelOpt"}
_ENCODINGS: Final[dict[ByteOrder, int]] = {"big": 273, "little": MQENC_NATIVE}
_RFH2_ONLY: Final = ("SubPoint", "Filter")
_RFH1_ONLY: Final = ("StreamName",)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for.

    word: the command. topics, options: in order. tags: further tags of psc by name (``QName``, ``SubName``); those
    without a value are left out. usr: properties, typed by their Python type. data: text, in *ccsid* and *format*.
    rfh1: an MQRFH instead of an MQRFH2. queue: where it is put, empty for where the command belongs.
    """

    word: str
    topics: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tags: Mapping[str, str | None] = field(default_factory=dict)
    usr: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    ccsid: int = 1208
    format: str = MQFMT_STRING
    order: ByteOrder = "little"
    rfh1: bool = False
    mqmd: Mqmd = field(default_factory=Mqmd)
    queue: str = ""
    qmgr: str | None = None
    user: str | None = None
    time: datetime | None = None
    seq: int = 1


def command_message(wanted: Wanted) -> CapturedMessage:
    """The captured message with the command that *wanted* asks for.

    Nothing is checked but what has no bytes: a message that a queue manager refuses can be made, to see it refused.
    Raises EncodeError.
    """
    header = _rfh1(wanted) if wanted.rfh1 else _rfh2(wanted)
    mqmd = replace(wanted.mqmd, format=header.own_format, encoding=_ENCODINGS[wanted.order], order=wanted.order)
    message = Message(mqmd, (header,), _data(wanted))
    return CapturedMessage(
        seq=wanted.seq,
        time=wanted.time,
        qmgr=wanted.qmgr,
        queue=wanted.queue or (DEFAULT_STREAM if wanted.word in _ON_STREAM else CONTROL_QUEUE),
        user=wanted.user,
        md_hex=mqmd.encode().hex(),
        body_hex=encode(message).hex(),
    )


def _pairs(wanted: Wanted, not_taken: tuple[str, ...]) -> list[tuple[str, str]]:
    option = _OPTION_TAGS.get(wanted.word, "RegOpt")
    pairs = [("Command", wanted.word)]
    pairs += [(option, word) for word in wanted.options]
    pairs += [("Topic", topic) for topic in wanted.topics]
    pairs += [(tag, value) for tag, value in wanted.tags.items() if value is not None]
    for tag, _ in pairs:
        if tag in not_taken:
            raise EncodeError(f"{tag} does not exist in an {'MQRFH' if wanted.rfh1 else 'MQRFH2'}")
    return pairs


def _rfh2(wanted: Wanted) -> Header:
    folders = [Folder.of(write("psc", _pairs(wanted, _RFH1_ONLY)))]
    if wanted.usr:
        folders.append(Folder.of(folder_text("usr", wanted.usr)))
    described = _described(wanted)
    return Rfh2(tuple(folders), *described, order=wanted.order)


def _rfh1(wanted: Wanted) -> Header:
    if wanted.usr:
        raise EncodeError("an MQRFH has no usr folder")
    pairs = [(_mqps(tag), value) for tag, value in _pairs(wanted, _RFH2_ONLY)]
    encoding, ccsid, fmt = _described(wanted)
    blank = Rfh1(encoding=encoding, coded_char_set_id=ccsid, format=fmt, order=wanted.order)
    return blank.with_pairs(pairs)


def _mqps(tag: str) -> str:
    return f"MQPS{tag}s" if tag.endswith("Opt") else f"MQPS{tag}"


def _described(wanted: Wanted) -> tuple[int, int, str]:
    """Encoding, CodedCharSetId and Format of the data."""
    return _ENCODINGS[wanted.order], wanted.ccsid, wanted.format if wanted.data else ""


def _data(wanted: Wanted) -> bytes:
    codec = text_codec(wanted.ccsid, _ENCODINGS[wanted.order])
    if codec is None:
        raise EncodeError(f"CCSID {wanted.ccsid} is not known")
    try:
        return wanted.data.encode(codec)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{wanted.data[error.start]!r} has no form in CCSID {wanted.ccsid}") from error
