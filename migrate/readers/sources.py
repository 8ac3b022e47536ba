"""Read files into one state: recognize the kind of each file by its content, and combine the items.

Captures of all sources are replayed as one: what a command did may depend on one in another file. Everything else is
read file by file. A directory stands for the files in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from migrate import legacy_state as legacy
from migrate.assemble import assemble
from migrate.contents import disk
from migrate.readers import amqspsd, authorities, captures, reportproperties, state_json, wmb
from migrate.readers.jms_records import JmsRecords
from migrate.readers.text import SourceLine, decoded, lines_of, unread
from rfh2.captures import FORMATS, CaptureRecord, Numbering, detect, read_captures
from rfh2.errors import CaptureError, MigrationError

# Who is a group and who is in it: ``/etc/group``, or what ``getent group`` and ``getent passwd`` print.
#
#     traders:x:2001:anne,fred
#     staff:x:100:
#     anne:x:1001:100:Anne:/home/anne:/bin/sh
#
# A line of four fields is a group with its members, a line of seven fields a user with the number of the primary
# group. A file may hold both. The listing distinguishes users from groups in access control lists and says whose
# authority a user has; it is no state of the broker.

_GROUP: Final = re.compile(r"([^:\s#+-][^:\s]*):[^:]*:(\d+):([^:]*)")
_USER: Final = re.compile(r"([^:\s#+-][^:\s]*):[^:]*:\d+:(\d+):[^:]*:[^:]*:[^:]*")
# Lines of NIS, which stand for entries elsewhere.
_ELSEWHERE: Final = ("+", "-")


def is_group_file(text: str) -> bool:
    """Whether every line of *text* is one of a group or of a user, at least one of a group."""
    lines = _lines(text)
    return any(_GROUP.fullmatch(line.text) for line in lines) and all(
        _GROUP.fullmatch(line.text) or _USER.fullmatch(line.text) or line.text.startswith(_ELSEWHERE) for line in lines
    )


def read_groups(text: str, file: str) -> Iterator[legacy.Item]:
    """A Principal for each group, then for each user with the groups that the listing names."""
    groups: dict[str, int] = {}
    numbers: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    primary: dict[str, str] = {}
    first: dict[str, int] = {}
    for line in _lines(text):
        group, user = _GROUP.fullmatch(line.text), _USER.fullmatch(line.text)
        if group is not None:
            groups.setdefault(group[1], line.number)
            numbers.setdefault(group[2], group[1])
            for name in filter(None, (each.strip() for each in group[3].split(","))):
                first.setdefault(name, line.number)
                members.setdefault(name, []).append(group[1])
        elif user is not None:
            first.setdefault(user[1], line.number)
            primary[user[1]] = user[2]
        else:
            is_elsewhere = line.text.startswith(_ELSEWHERE)
            why = "it stands for entries of a directory service" if is_elsewhere else "it is neither a group nor a user"
            source = legacy.Source(file=file, position=line.number)
            yield legacy.Unread(source=source, text=line.text, why=why, is_state=False, warns=True)
    for name, number in groups.items():
        yield legacy.Principal(source=legacy.Source(file=file, position=number), name=name, type="group")
    for name, number in first.items():
        own = [numbers[primary[name]]] if primary.get(name) in numbers else []
        theirs = tuple(dict.fromkeys([*own, *members.get(name, [])]))
        yield legacy.Principal(source=legacy.Source(file=file, position=number), name=name, type="user", groups=theirs)


def _lines(text: str) -> list[SourceLine]:
    return [line for line in lines_of(text) if not line.text.startswith("#")]


# Listings that administrators collect with the sources and that have no state: named for what they are.
#
#     WebSphere MQ broker for queue manager QM1 running.        dspmqbrk
#     BIP1286I: Broker 'B' on queue manager 'QM1' is running.   mqsilist
#     AMQ8409: Display Queue details.                           runmqsc, DISPLAY
#
# Each is one item that is no state, with what to give instead. A text of no kind at all is a piece that was not read.

_LISTINGS: Final = (
    (
        re.compile(r"(AMQ58\d\d\w?:)?.*\bbroker (for|on) queue manager \S+ .*(running|active|ended|stopped)\b", re.I),
        "output of dspmqbrk: it says whether the broker runs, and has no state of it",
    ),
    (
        re.compile(r"BIP(8099|12\d\d|13\d\d)\w?:|-{5,}$|BIP8071"),
        "output of mqsilist: it names brokers, and has no state of them; mqsireportproperties has",
    ),
    (
        re.compile(r"AMQ8(4\d\d|864|5\d\d)\w?: *Display|\d+ : DISPLAY |\d+ : DIS ", re.I),
        "output of DISPLAY in runmqsc: give the script of dmpmqcfg -a or saveqmgr as --existing",
    ),
)  # fmt: skip
_RUNMQSC: Final = re.compile(r"\s*[A-Z]+\(.*\)|5724-\w+|Starting MQSC|\d+ MQSC commands|No commands|All valid|One ")


def is_without_source(text: str) -> bool:
    """Whether *text* is one of these listings."""
    return _why(text) is not None


def read_without_source(text: str, file: str) -> Iterator[legacy.Item]:
    """One item that says what it is."""
    first = next(lines_of(text))
    yield legacy.Unread(
        source=legacy.Source(file=file, position=first.number),
        text=first.text,
        why=_why(text) or "it is not a source",
        is_state=False,
        warns=True,
    )


def _why(text: str) -> str | None:
    """What the listing is; None unless each line is of it, or of runmqsc that printed it."""
    rows = [line.text for line in lines_of(text)]
    for pattern, why in _LISTINGS:
        if any(pattern.match(row) for row in rows[:20]) and all(
            pattern.match(row) or _RUNMQSC.match(row) for row in rows
        ):
            return why
    return None


# qm.ini: the Broker stanza with the attributes that became the queue manager's (guide 7.3), and what else matters.
#
#     Broker:
#        MaxMsgRetryCount=5
#        RoutingExitPath=/var/mqm/exits/route(Route)
#
# A stanza begins with its name and a colon; ``name=value`` lines follow; ``#`` begins a comment. The guide calls the
# stanza Brokers, version 6 Broker: both are read. Other stanzas do not concern publish/subscribe and are skipped,
# except for the queue manager's name if one gives it. On Windows the same is in the registry, where a key ends with the
# stanza's name: an export of regedit is read too.
#
#     [HKEY_LOCAL_MACHINE\SOFTWARE\IBM\MQSeries\CurrentVersion\Configuration\QueueManager\QM1\Broker]
#     "MaxMsgRetryCount"="5"

STANZAS: Final = ("broker", "brokers")
_KEY: Final = re.compile(r"\[HKEY_[^\]]*\\([^\\\]]+)\]", re.IGNORECASE)
_VALUE: Final = re.compile(r'"([^"]*)"=(?:"(.*)"|dword:([0-9a-f]+))', re.IGNORECASE)


def is_qm_ini(text: str) -> bool:
    """Whether *text* is made of stanzas, one of them the broker's."""
    return any(_stanza(line.text).lower() in STANZAS for line in lines_of(text))


def read_qm_ini(text: str, file: str) -> Iterator[legacy.Item]:
    """The attributes of the broker's stanza, each a StanzaAttribute."""
    stanza = ""
    for line in lines_of(text):
        if line.text.startswith(("#", "*", ";")):
            continue
        if started := _stanza(line.text):
            stanza = started
            continue
        if stanza.lower() not in STANZAS:
            continue
        name, equals, value = line.text.partition("=")
        if (found := _VALUE.fullmatch(line.text)) is not None:
            name = found[1]
            value = str(int(found[3], 16)) if found[3] else found[2].replace("\\\\", "\\")
        if not equals or not name.strip():
            yield unread(file, line.number, line.text, f"not an attribute of stanza {stanza}")
            continue
        source = legacy.Source(file=file, position=line.number)
        yield legacy.StanzaAttribute(source=source, stanza="Broker", name=name.strip(), value=value.strip())


def _stanza(row: str) -> str:
    """The name of the stanza or of the registry's key that begins with this row; "" for another row."""
    if (key := _KEY.fullmatch(row)) is not None:
        return key[1]
    return row[:-1].strip() if row.endswith(":") and "=" not in row else ""


Reader = Callable[[str, str], Iterable[legacy.Item]]

_TEXTS: Final[dict[str, tuple[Callable[[str], bool], Reader]]] = {
    "events": (wmb.looks_like, wmb.read),
    "reportproperties": (reportproperties.looks_like, reportproperties.read),
    "amqspsd": (amqspsd.looks_like, amqspsd.read),
    "authorities": (authorities.looks_like, authorities.read),
    "qm.ini": (is_qm_ini, read_qm_ini),
    "groups": (is_group_file, read_groups),
    "no-source": (is_without_source, read_without_source),
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


def read_sources(sources: Iterable[str], qmgr: str, product: legacy.Product = legacy.Product.MQ) -> legacy.LegacyState:
    """The legacy state of queue manager *qmgr* in *sources*.

    sources: paths, each with ``KIND=`` before it where content is not enough to know what it is. product: whose broker
    it was, which decides what wildcards mean. Raises MigrationError where a source is missing or a directory without
    files; what a source holds and nobody understands is in the state.
    """
    items: list[legacy.Item] = []
    notes: list[str] = []
    captured: list[tuple[Path, str]] = []
    times: list[datetime] = []
    for given in sources:
        kind, path = _split(given)
        for file in _files(path):
            if not _head(file).strip():
                items.append(
                    legacy.Unread(source=legacy.Source(file=str(file)), text=file.name, why="the file is empty")
                )
                continue
            detected = kind or _kind(file)
            if detected == _IN_EBCDIC:
                why = "its text is in EBCDIC: convert it, with iconv -f IBM-1047 -t UTF-8 for example"
                items.append(legacy.Unread(source=legacy.Source(file=str(file)), text=file.name, why=why))
            elif detected == _UNKNOWN:
                kinds = ", ".join(KINDS)
                why = f"the kind of this text is not known: put KIND= before its name, KIND being one of {kinds}"
                items.append(legacy.Unread(source=legacy.Source(file=str(file)), text=file.name, why=why))
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


def read_others(sources: Iterable[str], qmgr: str) -> list[legacy.LegacyState]:
    """The states of other queue managers in the state files among *sources*: the rest of a topology."""
    states_of_others: list[legacy.LegacyState] = []
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


def _states(file: Path, qmgr: str, times: list[datetime]) -> list[legacy.Item]:
    """The items of the state of *qmgr*. The states of other queue managers beside it are reported. times: gets its."""
    states, items = state_json.read(decoded(_bytes(file)), str(file))
    all_items: list[legacy.Item] = list(items)
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


def _of_others(items: Iterable[legacy.Item], file: str, qmgr: str) -> list[legacy.Item]:
    """*items* of one text; where it says that it is about another queue manager's broker alone, one item that says so.

    A listing has one broker, and everything in it is that broker's. Commands name their queue manager one by one.
    """
    all_items = _own_commands(list(items), file, qmgr)
    named = [item.qmgr for item in all_items if isinstance(item, legacy.BrokerItem) and item.qmgr]
    if not named or qmgr in named:
        return all_items
    unread = [item for item in all_items if isinstance(item, legacy.Unread)]
    count = len(all_items) - len(unread)
    return [_foreign(file, f"{count} items of queue manager {named[0]}", qmgr, named[0], count, count), *unread]


def _own_commands(items: list[legacy.Item], file: str, qmgr: str) -> list[legacy.Item]:
    """*items* without the commands for other queue managers; for each of these an item that counts its commands."""
    named = Counter(item.qmgr for item in items if isinstance(item, legacy.LegacyAuthority) and item.qmgr)
    own: list[legacy.Item] = []
    for item in items:
        if not isinstance(item, legacy.LegacyAuthority) or not item.qmgr:
            own.append(item)
        elif item.qmgr == qmgr:
            own.append(replace(item, qmgr=""))
    for other, count in named.items():
        if other != qmgr:
            text = f"{count} of {len(items)} commands are for queue manager {other}"
            own.append(_foreign(file, text, qmgr, other, count, len(items)))
    return own


def _foreign(file: str, text: str, qmgr: str, other: str, count: int, of_count: int) -> legacy.Unread:
    return legacy.Unread(
        source=legacy.Source(file=file),
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
    others: list[legacy.Item],
    qmgr: str,
    product: legacy.Product,
    times: list[datetime],
    *,
    is_sorted: bool,
) -> list[legacy.Item]:
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
