"""Makes the queued command for a native publication, so that legacy subscribers receive it by the usual rules.

Pure. A publication becomes Publish; a retained one without data, which is how MQTT clears a topic, becomes DeletePub.
The command is put on the queue of the default stream and has ``NATIVE_MARK``. Subscribers get it like any other
publication, in the header that they registered with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from commands.headers.publication import has_room_for, user_folder
from commands.model import DeletePublication, Publish, PubOpt
from commands.qmgr.link_port import NATIVE_MARK
from rfh2.ccsid import UTF8_CCSID
from rfh2.chain import decode_chain
from rfh2.constants import (
    MQ_TOPIC_STR_LENGTH,
    MQEI_UNLIMITED,
    MQENC_NATIVE,
    MQFMT_NONE,
    MQFMT_RF_HEADER_2,
    MQPER_PERSISTENT,
)
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2

TENTHS: Final = 10
# The longest Expiry of a descriptor, in tenths of a second: nearly 7 years.
LONGEST_EXPIRY: Final = 0x7FFF_FFFF
_FORMAT_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class NativePublication:
    """A publication in the form of the tree.

    expiry_s: seconds left, None for never. properties: the user's, in order. stamps: publication time and sequence
    number, as (psc tag, value). format, encoding, ccsid: of *payload*, as far as they are known.
    """

    topic: str
    payload: bytes
    retain: bool = False
    persistent: bool = True
    expiry_s: float | None = None
    priority: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    stamps: tuple[tuple[str, str], ...] = ()
    format: str = ""
    encoding: int = MQENC_NATIVE
    ccsid: int = UTF8_CCSID

    @property
    def clears(self) -> bool:
        """Whether it only clears the retained publication on its topic."""
        return self.retain and not self.payload


def is_format(text: str) -> bool:
    """Whether *text* can be the Format of a message: eight bytes of Latin-1."""
    try:
        return len(text.encode("latin-1")) <= _FORMAT_BYTES
    except UnicodeEncodeError:
        return False


def format_of(native: NativePublication) -> str:
    """The Format of the payload; none if it names a header and the payload does not begin with that header."""
    try:
        decode_chain(native.payload, native.format, native.ccsid)
    except DecodeError:
        return MQFMT_NONE
    return native.format


def why_not_command(topic: str) -> str | None:
    """Why no command can name *topic*, None where one can."""
    if not topic:
        return "its topic is empty"
    if len(topic) > MQ_TOPIC_STR_LENGTH:
        return f"its topic has {len(topic):,} characters; {MQ_TOPIC_STR_LENGTH:,} is the limit"
    bad = next((character for character in topic if not has_room_for(character)), None)
    return None if bad is None else f"its topic has character U+{ord(bad):04X}, which XML does not allow"


def command_for(native: NativePublication, user: str) -> tuple[Mqmd, bytes, tuple[str, ...]]:
    """The descriptor and the bytes of the command, and the parts of the publication that a command has no field for.

    user: the user of the command. ``why_not_command`` must have returned None for the topic. An expiry that is too long
    for a descriptor becomes the longest one. A Format that names a header is left out if the payload does not begin
    with that header.
    """
    stamps = {tag: value for tag, value in reversed(native.stamps) if has_room_for(value)}
    unfit = tuple(dict.fromkeys(tag for tag, value in native.stamps if stamps.get(tag) != value))
    if native.clears:
        psc = write("psc", (("Command", DeletePublication.word), ("Topic", native.topic)))
    else:
        options = (("PubOpt", PubOpt.RETAIN_PUB.value),) if native.retain else ()
        psc = write("psc", (("Command", Publish.word), *options, ("Topic", native.topic), *stamps.items()))
    usr, lost = user_folder(native.properties)
    if (announced := format_of(native)) != native.format:
        native, unfit = replace(native, format=announced), (*unfit, "Format")
    header = Rfh2(
        tuple(Folder.of(text) for text in (psc, usr) if text),
        encoding=native.encoding,
        coded_char_set_id=native.ccsid,
        format=native.format,
    )
    expiry = MQEI_UNLIMITED
    if native.expiry_s is not None:
        expiry = min(max(int(native.expiry_s * TENTHS), 1), LONGEST_EXPIRY)
    mqmd = Mqmd(
        expiry=expiry,
        coded_char_set_id=UTF8_CCSID,
        format=MQFMT_RF_HEADER_2,
        priority=native.priority,
        persistence=MQPER_PERSISTENT if native.persistent else 0,
        user_identifier=user[:12],
        appl_origin_data=NATIVE_MARK,
    )
    return mqmd, header.encode() + (b"" if native.clears else native.payload), (*unfit, *lost)
