"""Read files into one state: recognize the kind of each file by its content, and combine the items.

Captures of all sources are replayed as one: what a command did may depend on one in another file. Everything else is
read file by file. A directory stands for the files in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from migrate.assemble import assemble
from migrate.contents import disk
from migrate.legacy_state import BrokerItem, Item, LegacyAuthority, LegacyState, Product, Source, Unread
from migrate.readers import (
    amqspsd,
    authorities,
    captures,
    event_xml,
    groups,
    no_source,
    qm_ini,
    reportproperties,
    state_json,
)
from migrate.readers.jms_records import JmsRecords
from migrate.readers.text import decoded
from rfh2.captures import FORMATS, CaptureRecord, Numbering, detect, read_captures
from rfh2.errors import CaptureError, MigrationError

Reader = Callable[[str, str], Iterable[Item]]

_TEXTS: Final[dict[str, tuple[Callable[[str], bool], Reader]]] = {
    "events": (event_xml.looks_like, event_xml.read),
    "reportproperties": (reportproperties.looks_like, reportproperties.read),
    "amqspsd": (amqspsd.looks_like, amqspsd.read),
    "authorities": (authorities.looks_like, authorities.read),
    "qm.ini": (qm_ini.looks_like, qm_ini.read),
    "groups": (groups.looks_like, groups.read),
    "no-source": (no_source.looks_like, no_source.read),
}
KINDS: Final = ("captures", "state", *(kind for kind in _TEXTS if kind != "no-source"))
_UNKNOWN: Final = "unknown"
_RECONSTRUCTED: Final = {
    "amqspsd": "no listing of a real broker was available for the reader of amqspsd, which was made from the program's "
    "documentation and source; compare the counts with the broker's",
    "reportproperties": "no listing of a real broker was available for the reader of mqsireportproperties, which was "
    "made from IBM's documentation; compare the counts with the broker's",
}
"""Kinds of sources of which no real example was available."""
_EBCDIC: Final = "cp037"
_IN_EBCDIC: Final = "ebcdic"
_HEAD_BYTES: Final = 65_536
# No text source is longer; a longer file goes to the capture readers, which read one message at a time.
_MAX_TEXT_BYTES: Final = 1 << 30


def read_sources(sources: Iterable[str], qmgr: str, product: Product = Product.MQ) -> LegacyState:
    """The legacy state of queue manager *qmgr* in *sources*.

    sources: paths, each with ``KIND=`` before it where content is not enough to know what it is. product: whose broker
    it was, which decides what wildcards mean. Raises MigrationError where a source is missing or a directory without
    files; what a source holds and nobody understands is in the state.
    """
    items: list[Item] = []
    notes: list[str] = []
    captured: list[tuple[Path, str]] = []
    times: list[datetime] = []
    for given in sources:
        kind, path = _split(given)
        for file in _files(path):
            if not _head(file).strip():
                items.append(Unread(source=Source(file=str(file)), text=file.name, why="the file is empty"))
                continue
            detected = kind or _kind(file)
            if detected == _IN_EBCDIC:
                why = "its text is in EBCDIC: convert it, with iconv -f IBM-1047 -t UTF-8 for example"
                items.append(Unread(source=Source(file=str(file)), text=file.name, why=why))
            elif detected == _UNKNOWN:
                kinds = ", ".join(KINDS)
                why = f"the kind of this text is not known: put KIND= before its name, KIND being one of {kinds}"
                items.append(Unread(source=Source(file=str(file)), text=file.name, why=why))
            elif detected == "captures":
                captured.append((file, "auto"))
            elif detected == "state":
                items += _states(file, qmgr, times)
            else:
                if detected in _RECONSTRUCTED:
                    notes.append(f"{file}: {_RECONSTRUCTED[detected]}")
                items += _of_others(_TEXTS[detected][1](decoded(_bytes(file)), str(file)), str(file), qmgr)
    if captured:
        try:
            items += _captures(captured, items, qmgr, product, times, is_sorted=True)
        except captures.OutOfOrderError:
            items += _captures(captured, items, qmgr, product, times, is_sorted=False)
    return assemble(items, qmgr, product, notes, times)


def read_others(sources: Iterable[str], qmgr: str) -> list[LegacyState]:
    """The states of other queue managers in the state files among *sources*: the rest of a topology."""
    states_of_others: list[LegacyState] = []
    for given in sources:
        kind, path = _split(given)
        for file in _files(path):
            if (kind or _kind(file)) == "state":
                states, _ = state_json.read(decoded(_bytes(file)), str(file))
                states_of_others += (state for state in states if state.qmgr != qmgr)
    return states_of_others


def files_of(given: str) -> list[Path]:
    """The files of one source, as ``read_sources`` reads them. Raises MigrationError where there is none."""
    return _files(_split(given)[1])


def _split(given: str) -> tuple[str, Path]:
    kind, equals, path = given.partition("=")
    return (kind, Path(path)) if equals and kind in KINDS else ("", Path(given))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
        if not inside:
            raise MigrationError(f"{path}: there is no file in this directory; nothing was changed")
        return inside
    if not path.exists():
        raise MigrationError(f"{path}: no such file or directory")
    return [path]


def _bytes(file: Path) -> bytes:
    with disk(file):
        return file.read_bytes()


def _head(file: Path) -> bytes:
    with disk(file), file.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def _kind(file: Path) -> str:
    head = _head(file)
    if state_json.looks_like(decoded(head)):
        return "state"
    if detect(head) != "raw" or file.stat().st_size > _MAX_TEXT_BYTES:
        return "captures"
    data = _bytes(file)
    kind = _text_kind(decoded(data))
    if kind is None and _text_kind(data.decode(_EBCDIC).replace("\x85", "\n")) is not None:
        return _IN_EBCDIC
    return kind or (_UNKNOWN if _is_text(data) else "captures")


def _is_text(data: bytes) -> bool:
    """Whether it is a text and not a message, whose headers have numbers in binary."""
    return not any(byte < 32 and byte not in b"\t\n\f\r\x1a" for byte in data[:_HEAD_BYTES])


def _text_kind(text: str) -> str | None:
    return next((kind for kind, (looks_like, _) in _TEXTS.items() if looks_like(text)), None)


def _states(file: Path, qmgr: str, times: list[datetime]) -> list[Item]:
    """The items of the state of *qmgr*. The states of other queue managers beside it are reported. times: gets its."""
    states, items = state_json.read(decoded(_bytes(file)), str(file))
    all_items: list[Item] = list(items)
    sizes = [sum(1 for _ in state.items()) for state in states]
    is_there = any(state.qmgr == qmgr for state in states)
    for state, size in zip(states, sizes, strict=True):
        if state.qmgr == qmgr:
            all_items += (item for _, item in state.items())
            times += [] if state.until is None else [state.until]
            continue
        text = f"{size} items of queue manager {state.qmgr}"
        all_items.append(_foreign(str(file), text, qmgr, state.qmgr, size, 0 if is_there else max(sum(sizes), 1)))
    return all_items


def _of_others(items: Iterable[Item], file: str, qmgr: str) -> list[Item]:
    """*items* of one text; where it says that it is about another queue manager's broker alone, one item that says so.

    A listing has one broker, and everything in it is that broker's. Commands name their queue manager one by one.
    """
    all_items = _own_commands(list(items), file, qmgr)
    named = [item.qmgr for item in all_items if isinstance(item, BrokerItem) and item.qmgr]
    if not named or qmgr in named:
        return all_items
    unread = [item for item in all_items if isinstance(item, Unread)]
    count = len(all_items) - len(unread)
    return [_foreign(file, f"{count} items of queue manager {named[0]}", qmgr, named[0], count, count), *unread]


def _own_commands(items: list[Item], file: str, qmgr: str) -> list[Item]:
    """*items* without the commands for other queue managers; for each of these an item that counts its commands."""
    named = Counter(item.qmgr for item in items if isinstance(item, LegacyAuthority) and item.qmgr)
    own: list[Item] = []
    for item in items:
        if not isinstance(item, LegacyAuthority) or not item.qmgr:
            own.append(item)
        elif item.qmgr == qmgr:
            own.append(replace(item, qmgr=""))
    for other, count in named.items():
        if other != qmgr:
            text = f"{count} of {len(items)} commands are for queue manager {other}"
            own.append(_foreign(file, text, qmgr, other, count, len(items)))
    return own


def _foreign(file: str, text: str, qmgr: str, other: str, count: int, of_count: int) -> Unread:
    return Unread(
        source=Source(file=file),
        text=text,
        why=f"the broker that is migrated is that of {qmgr}",
        count=max(count, 1),
        is_state=False,
        warns=of_count > 0,
        qmgr=other,
        of_count=of_count,
    )


def _captures(
    files: list[tuple[Path, str]],
    others: list[Item],
    qmgr: str,
    product: Product,
    times: list[datetime],
    *,
    is_sorted: bool,
) -> list[Item]:
    """The items of all captures. others: those of the other sources. times: gets that of the last record.

    Raises OutOfOrderError, as ``captures.read``.
    """
    numbered = True
    for file, _ in files:
        with file.open("rb") as stream:
            fmt = FORMATS[detect(stream.read(_HEAD_BYTES), str(file))]
        numbered = numbered and "seq" in fmt.keeps
    jms = JmsRecords()
    records = _timed(_records(files, Numbering()), times)
    items = list(captures.read(records, numbered, qmgr, product, jms, is_sorted=is_sorted))
    return [*items, *jms.items([*others, *items], product)]


def _timed(records: Iterable[CaptureRecord], times: list[datetime]) -> Iterator[CaptureRecord]:
    last: datetime | None = None
    for record in records:
        if record.message is not None and record.message.time is not None:
            last = max(last or record.message.time, record.message.time)
        yield record
    times += [] if last is None else [last]


def _records(files: list[tuple[Path, str]], numbering: Numbering) -> Iterator[CaptureRecord]:
    for file, form in files:
        try:
            yield from read_captures(file, form, numbering=numbering)
        except CaptureError as error:
            yield CaptureRecord(str(file), 0, None, error, 0)
