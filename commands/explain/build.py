"""A command message made from what a person types: folders, string of names and values or PCF, and descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.headers import pcf
from commands.headers.publication import BY_TAG, COMMAND_IDS
from rfh2.captured import CapturedMessage
from rfh2.ccsid import ENCODINGS, UTF8_CCSID, ByteOrder, text_codec
from rfh2.constants import MQFMT_STRING
from rfh2.elements import folder_text
from rfh2.errors import EncodeError
from rfh2.folders import Folder, write
from rfh2.message import Header, Message, encode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfin, Cfst, Parameter, Pcf
from rfh2.rfh1 import MQPS_DELETE_PUBLICATION, MQPS_PUBLISH, Rfh1
from rfh2.rfh2 import Rfh2

_ON_STREAM: Final = (MQPS_PUBLISH, MQPS_DELETE_PUBLICATION)
_OPTION_TAGS: Final = {MQPS_PUBLISH: "PubOpt", MQPS_DELETE_PUBLICATION: "DelOpt"}
_RFH2_ONLY: Final = ("SubPoint", "Filter")
_RFH1_ONLY: Final = ("StreamName",)


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """The parts of the message that a person asks for.

    word: the command. topics, options: in order. tags: further tags of psc by name (``QName``, ``SubName``); those
    without a value are left out. mcd, jms, usr: properties in those folders, typed by their Python type. data: text, in
    *ccsid* and *format*. rfh1, pcf: an MQRFH, or PCF, instead of an MQRFH2. queue: where it is put, empty for where the
    command belongs.
    """

    word: str
    topics: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tags: Mapping[str, str | None] = field(default_factory=dict)
    usr: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    ccsid: int = UTF8_CCSID
    format: str = MQFMT_STRING
    order: ByteOrder = "little"
    rfh1: bool = False
    pcf: bool = False
    mqmd: Mqmd = field(default_factory=Mqmd)
    queue: str = ""
    qmgr: str | None = None
    user: str | None = None
    time: datetime | None = None
    seq: int = 1
    mcd: Mapping[str, Any] = field(default_factory=dict)
    jms: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folders(self) -> dict[str, Mapping[str, Any]]:
        """The folders beside psc, as far as there is something in them."""
        return {name: values for name, values in (("mcd", self.mcd), ("jms", self.jms), ("usr", self.usr)) if values}


def command_message(wanted: CommandSpec) -> CapturedMessage:
    """The captured message with the command that *wanted* asks for.

    It refuses only values that have no bytes: you can make a message that a queue manager refuses, to test that.
    Raises EncodeError.
    """
    mqmd = replace(wanted.mqmd, encoding=ENCODINGS[wanted.order], order=wanted.order)
    if wanted.pcf:
        mqmd = replace(mqmd, format=pcf.FORMAT)
        message = Message(mqmd, (), _pcf(wanted).encode())
    else:
        header = _rfh1(wanted) if wanted.rfh1 else _rfh2(wanted)
        message = Message(replace(mqmd, format=header.own_format), (header,), _data(wanted))
    return CapturedMessage(
        seq=wanted.seq,
        time=wanted.time,
        qmgr=wanted.qmgr,
        queue=wanted.queue or (DEFAULT_STREAM if wanted.word in _ON_STREAM else CONTROL_QUEUE),
        user=wanted.user,
        md_hex=message.mqmd.encode().hex(),
        body_hex=encode(message).hex(),
    )


def _pairs(wanted: CommandSpec, not_taken: tuple[str, ...]) -> list[tuple[str, str]]:
    option = _OPTION_TAGS.get(wanted.word, "RegOpt")
    pairs = [("Command", wanted.word)]
    pairs += [(option, word) for word in wanted.options]
    pairs += [("Topic", topic) for topic in wanted.topics]
    pairs += [(tag, value) for tag, value in wanted.tags.items() if value is not None]
    for tag, _ in pairs:
        if tag in not_taken:
            kind = "PCF" if wanted.pcf else "an MQRFH" if wanted.rfh1 else "an MQRFH2"
            raise EncodeError(f"{tag} does not exist in {kind}")
    return pairs


def _rfh2(wanted: CommandSpec) -> Header:
    folders = [Folder.of(write("psc", _pairs(wanted, _RFH1_ONLY)))]
    folders += [Folder.of(folder_text(name, values)) for name, values in wanted.folders.items()]
    described = _described(wanted)
    return Rfh2(tuple(folders), *described, order=wanted.order)


def _rfh1(wanted: CommandSpec) -> Header:
    _no_folders(wanted, "an MQRFH")
    pairs = [(_mqps(tag), value) for tag, value in _pairs(wanted, _RFH2_ONLY)]
    encoding, ccsid, fmt = _described(wanted)
    blank = Rfh1(encoding=encoding, coded_char_set_id=ccsid, format=fmt, order=wanted.order)
    return blank.with_pairs(pairs)


def _pcf(wanted: CommandSpec) -> Pcf:
    """The command as PCF; data stands behind its parameters."""
    _no_folders(wanted, "PCF")
    parameters: list[Parameter] = []
    for tag, value in _pairs(replace(wanted, options=()), _RFH2_ONLY)[1:]:
        known = BY_TAG[tag]
        parameters.append(Cfin(known.pcf, _number(tag, value)) if known.integer else Cfst.of(known.pcf, value))
    if wanted.options:
        known = BY_TAG[_OPTION_TAGS.get(wanted.word, "RegOpt")]
        assert known.options is not None
        found = known.options.read(wanted.options)
        if found.unknown:
            raise EncodeError(f"{found.unknown[0]} is not an option that PCF has a bit for")
        parameters.insert(0, Cfin(known.pcf, known.options.mask(found.words)))
    return Pcf(COMMAND_IDS[wanted.word], tuple(parameters), order=wanted.order, rest=_data(wanted))


def _number(tag: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise EncodeError(f"{tag}: {value!r} is not a number, as PCF has it") from error


def _no_folders(wanted: CommandSpec, kind: str) -> None:
    for name in wanted.folders:
        raise EncodeError(f"{kind} has no {name} folder")


def _mqps(tag: str) -> str:
    return f"MQPS{tag}s" if tag.endswith("Opt") else f"MQPS{tag}"


def _described(wanted: CommandSpec) -> tuple[int, int, str]:
    """Encoding, CodedCharSetId and Format of the data."""
    return ENCODINGS[wanted.order], wanted.ccsid, wanted.format if wanted.data else ""


def _data(wanted: CommandSpec) -> bytes:
    codec = text_codec(wanted.ccsid, ENCODINGS[wanted.order])
    if codec is None:
        raise EncodeError(f"CCSID {wanted.ccsid} is not known")
    try:
        return wanted.data.encode(codec)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{wanted.data[error.start]!r} cannot be written in CCSID {wanted.ccsid}") from error
