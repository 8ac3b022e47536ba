"""From a captured message to rows: whether it is an agent's, by its queue, its topic, or what it holds.

A message put to the stream queue SYSTEM.FTE has the stream's topic string before its topic (guide 6.1), one that a
subscriber got may have it or not, and what a program of today got may have no header at all. The last two are an
agent's where the document says so: it names TransferLog.xsd or TransferStatus.xsd, or has the property ``agentName``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree

from commands.headers.registry import parse
from commands.model import Publish
from commands.replay.file_transfer.rows import AgentRow, ItemRow, Rows, TransferRow
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.message import Message

# TransferLog, TransferStatus and agent status, from XML to rows.
#
# The elements are those of TransferLog.xsd, TransferStatus.xsd and fteutils.xsd, which IBM publishes. What a document
# has beside them (metadata, exits, calls of programs) is left alone; what it lacks is an empty column.
#
# The XML of a message is read safely: no DTD is loaded, no entity expanded and nothing fetched. An agent's status is a
# Java properties document: it names java.sun.com's DTD in a DOCTYPE, which is passed over. A DOCTYPE with declarations
# of its own is refused, since no agent writes one.

MAX_LENGTH: Final = 16_000_000
"""In characters. SYSTEM.FTE is delivered with MAXMSGL(4194304); an administrator can raise it."""

_DECLARATION: Final = re.compile(r"<\?xml[^>]*\?>\s*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


class DocumentError(QPubSubError):
    """Text that is not a document that an agent could have written."""


class Document:
    """One message's XML. problems: values that are not what their place asks for, in words."""

    def __init__(self, text: str) -> None:
        """Raises DocumentError."""
        if len(text) > MAX_LENGTH:
            raise DocumentError(f"{len(text):,} characters; at most {MAX_LENGTH:,} are read")
        # The declaration names the encoding of the bytes, but the text is already decoded.
        body = text.strip()
        declaration = _DECLARATION.match(body)
        body = body if declaration is None else body[declaration.end() :]
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            huge_tree=False,
            encoding="utf-8",
        )
        try:
            self.root = etree.fromstring(body.encode(), parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise DocumentError(f"not well-formed XML: {getattr(error, 'msg', error)}") from error
        dtd: Any = self.root.getroottree().docinfo.internalDTD
        if dtd is not None and (any(dtd.iterentities()) or any(dtd.iterelements())):
            raise DocumentError("the DOCTYPE has declarations of its own; they are not read")
        self.problems: list[str] = []

    def integer(self, element: etree._Element | None, name: str) -> int | None:
        """An attribute that is a whole number, None where there is none."""
        return self.as_integer(attribute(element, name), name)

    def as_integer(self, text: str | None, name: str) -> int | None:
        """*text* as a whole number. name: what it is, for a problem."""
        if text is None or not text.strip():
            return None
        if _INTEGER.fullmatch(text.strip()):
            return int(text)
        self.problems.append(f"{name} is not a whole number: {text[:40]!r}")
        return None

    def decimal(self, element: etree._Element | None, name: str) -> float | None:
        """An attribute that is a number of seconds."""
        text = attribute(element, name)
        if text is None or not text.strip():
            return None
        if _DECIMAL.fullmatch(text.strip()):
            return float(text)
        self.problems.append(f"{name} is not a number: {text[:40]!r}")
        return None

    def moment(self, text: str | None, name: str) -> datetime | None:
        """*text*, an xsd:dateTime, in UTC; one without a zone is taken as UTC, as agents write it."""
        if text is None or not text.strip():
            return None
        try:
            found = datetime.fromisoformat(text.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            self.problems.append(f"{name} is not a date and time: {text[:40]!r}")
            return None


def local_name(element: etree._Element) -> str:
    """The tag without its namespace; empty for a comment or an entity."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    """The first child of that name, in whichever namespace."""
    if element is None:
        return None
    return next((each for each in element if local_name(each) == name), None)


def children(element: etree._Element | None, name: str) -> list[etree._Element]:
    """All children of that name."""
    return [] if element is None else [each for each in element if local_name(each) == name]


def attribute(element: etree._Element | None, name: str) -> str | None:
    """An attribute in no namespace."""
    found = None if element is None else element.get(name)
    return None if found is None else str(found)


def text_of(element: etree._Element | None) -> str | None:
    """The text of an element without the blanks around it, None where there is none."""
    found = None if element is None else (element.text or "").strip()
    return found or None


TRANSACTION: Final = "transaction"
PROPERTIES: Final = "properties"
OTHER_LOGS: Final = frozenset({"monitorLog", "schedulelog"})
"""Other documents on Log topics, which are not about a transfer."""

_SCHEMA: Final = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"
# IBM's examples have both spellings of the namespace.
_XSDS: Final = (_SCHEMA, _SCHEMA.replace("http:", "https:"))


def schema_of(root: etree._Element) -> str:
    """The schema that a document names, such as ``TransferLog.xsd``; empty where it names none."""
    return next((str(found) for name in _XSDS if (found := root.get(name)) is not None), "")


def is_status(root: etree._Element) -> bool:
    """Whether a ``transaction`` is a TransferStatus: by its schema, or where it names none, by its elements."""
    return schema_of(root) == "TransferStatus.xsd" or child(child(root, "transferSet"), "stats") is not None


def transfer_rows(document: Document, row: TransferRow) -> Rows:
    """The rows of a ``transaction``. row: what is known of the message; the document's ID replaces its transfer_id."""
    root = document.root
    source, destination = child(root, "sourceAgent"), child(root, "destinationAgent")
    originator, status, statistics = child(root, "originator"), child(root, "status"), child(root, "statistics")
    found = replace(
        row,
        kind="status" if is_status(root) else "log",
        transfer_id=(attribute(root, "ID") or "").lower() or row.transfer_id,
        version=attribute(root, "version"),
        agent_role=attribute(root, "agentRole"),
        source_agent=attribute(source, "agent"),
        source_qmgr=attribute(source, "QMgr"),
        destination_agent=attribute(destination, "agent"),
        destination_qmgr=attribute(destination, "QMgr"),
        originator_host=text_of(child(originator, "hostName")),
        originator_user=text_of(child(originator, "userID")),
        mqmd_user=text_of(child(originator, "mqmdUserID")),
        job=text_of(child(child(root, "job"), "name")),
        schedule_id=attribute(child(root, "scheduleLog"), "ID"),
        result_code=document.integer(status, "resultCode"),
        supplement=text_of(child(status, "supplement")),
        actual_start_time=document.moment(text_of(child(statistics, "actualStartTime")), "actualStartTime"),
        retries=document.as_integer(text_of(child(statistics, "retryCount")), "retryCount"),
        failures=document.as_integer(text_of(child(statistics, "numFileFailures")), "numFileFailures"),
        warnings=document.as_integer(text_of(child(statistics, "numFileWarnings")), "numFileWarnings"),
    )
    found, items = (_status if found.kind == "status" else _log)(document, found)
    if found.transfer_id is None:
        document.problems.append("the transaction has no ID")
    return Rows((replace(found, problem="; ".join(document.problems) or None),), tuple(items))


def _log(document: Document, row: TransferRow) -> tuple[TransferRow, list[ItemRow]]:
    action, transfers = child(document.root, "action"), child(document.root, "transferSet")
    named = children(transfers, "item")
    first = document.integer(transfers, "index")
    row = replace(
        row,
        action=text_of(action),
        action_time=document.moment(attribute(action, "time"), "action time"),
        start_time=document.moment(attribute(transfers, "startTime"), "startTime"),
        total=document.integer(transfers, "total"),
        bytes_sent=document.integer(transfers, "bytesSent"),
        first_item=first,
        items=len(named),
    )
    if row.action is None:
        document.problems.append("the transaction has no action")
    items = []
    for n, item in enumerate(named):
        status = child(item, "status")
        items.append(
            replace(
                _item(document, row, n, item),
                index=None if first is None else first + n,
                mode=attribute(item, "mode"),
                result_code=document.integer(status, "resultCode"),
                supplement=text_of(child(status, "supplement")),
            )
        )
    return row, items


def _status(document: Document, row: TransferRow) -> tuple[TransferRow, list[ItemRow]]:
    transfers = child(document.root, "transferSet")
    stats, current = child(transfers, "stats"), child(transfers, "current")
    row = replace(
        row,
        action_time=document.moment(attribute(transfers, "time"), "time"),
        bytes_sent=document.integer(stats, "bytes"),
        seconds=document.decimal(stats, "seconds"),
        current_item=document.integer(stats, "currentItem"),
        total=document.integer(stats, "totalItems"),
        items=0 if current is None else 1,
    )
    if current is None:
        return row, []
    item = replace(
        _item(document, row, 0, current),
        index=None if row.current_item is None else row.current_item - 1,
        source_size=document.integer(current, "size"),
        transferred=document.integer(current, "transferred"),
    )
    return row, [item]


def _item(document: Document, row: TransferRow, n: int, element: etree._Element) -> ItemRow:
    source, destination = child(element, "source"), child(element, "destination")
    from_what, to_what = _resource(source), _resource(destination)
    from_sum, to_sum = child(source, "checksum"), child(destination, "checksum")
    return ItemRow(
        seq=row.seq,
        n=n,
        time=row.time,
        qmgr=row.qmgr,
        kind=row.kind,
        transfer_id=row.transfer_id,
        source_type=_type(source, from_what),
        source=text_of(from_what),
        source_size=document.integer(from_what, "size"),
        source_last_modified=document.moment(attribute(from_what, "last-modified"), "last-modified"),
        source_checksum_method=attribute(from_sum, "method"),
        source_checksum=text_of(from_sum),
        source_disposition=attribute(source, "disposition"),
        destination_type=_type(destination, to_what),
        destination=text_of(to_what),
        destination_size=document.integer(to_what, "size"),
        destination_last_modified=document.moment(attribute(to_what, "last-modified"), "last-modified"),
        destination_checksum_method=attribute(to_sum, "method"),
        destination_checksum=text_of(to_sum),
        destination_exist=attribute(destination, "exist"),
    )


def _resource(place: etree._Element | None) -> etree._Element | None:
    """The child of a source or destination that names it: ``file``, ``queue`` or another, not the checksum."""
    if place is None:
        return None
    return next((each for each in place if local_name(each) not in ("", "checksum")), None)


def _type(place: etree._Element | None, resource: etree._Element | None) -> str | None:
    return attribute(place, "type") or (None if resource is None else local_name(resource))


def agent_rows(document: Document, row: AgentRow) -> Rows:
    """The row of a status: Java properties. row: what is known of the message; agentName replaces its agent."""
    found = {attribute(entry, "key") or "": text_of(entry) for entry in children(document.root, "entry")}
    if not found:
        document.problems.append("the properties are empty")
    row = replace(
        row,
        agent=found.get("agentName") or row.agent,
        agent_qmgr=found.get("queueManager"),
        description=found.get("agentDescription"),
        version=found.get("agentVersion"),
        operating_system=found.get("agentOsName"),
        time_zone=found.get("agentTimeZone"),
        type=found.get("agentType"),
        max_source_transfers=document.as_integer(found.get("maxSourceTransfers"), "maxSourceTransfers"),
        max_destination_transfers=document.as_integer(found.get("maxDestinationTransfers"), "maxDestinationTransfers"),
        max_queued_transfers=document.as_integer(found.get("maxQueuedTransfers"), "maxQueuedTransfers"),
        source_transfers=_states(found, "SourceTransferStates"),
        destination_transfers=_states(found, "DestinationTransferStates"),
        properties=json.dumps(found, ensure_ascii=False, sort_keys=True),
    )
    return Rows(agents=(replace(row, problem="; ".join(document.problems) or None),))


def _states(found: dict[str, str | None], key: str) -> int | None:
    """How many transfers a list of states (``id=state``, one after the other) names; None where there is no list."""
    return len((found[key] or "").split()) if key in found else None


STREAM: Final = "SYSTEM.FTE"
_LOG, _TRANSFERS, _AGENTS = "Log", "Transfers", "Agents"
_READ: Final = (_LOG, _TRANSFERS, _AGENTS)
_SCHEMAS: Final = ("TransferLog.xsd", "TransferStatus.xsd")
_AGENT_TOPICS: Final = f"{STREAM}/{_AGENTS}/"
_HEAD: Final = 4_000
_MARKS: Final = tuple(word.encode(codec) for word in _SCHEMAS for codec in ("ascii", "cp500"))
_ROOTS: Final = tuple(word.encode(codec) for word in (TRANSACTION, PROPERTIES) for codec in ("ascii", "cp500"))


def stream_topic(topic: str, queue: str, stream: str | None = None) -> str | None:
    """The whole topic string, SYSTEM.FTE before it, of a topic on that stream; None for any other topic.

    queue: where the message was put. stream: that the command names.
    """
    if topic == STREAM or topic.startswith(f"{STREAM}/"):
        return topic
    return f"{STREAM}/{topic}" if STREAM in (queue, stream) else None


def rows_of(message: CapturedMessage) -> Rows:
    """The rows about file transfers in *message*; none if it is not an agent's publication. Never raises.

    What is published on a Log, Transfers or Agents topic of SYSTEM.FTE and cannot be read is a row with a problem.
    """
    if not may_be_of_agent(message.queue, message.body):
        return Rows()
    try:
        decoded = message.decode()
        command = parse(decoded) if decoded.headers else None
    except QPubSubError as error:
        if message.queue == STREAM:
            return _with_problem(_transfer(message, None), str(error))
        return _without_command(message)
    if command is None:
        return _by_content(message, decoded, None)
    if not isinstance(command, Publish):
        return Rows()
    for topic in command.topics:
        whole = stream_topic(topic, message.queue, command.stream_name)
        if whole is not None:
            return _published(message, decoded, whole)
    read = next((topic for topic in command.topics if topic.partition("/")[0] in _READ), None)
    return Rows() if read is None else _by_content(message, decoded, f"{STREAM}/{read}")


def may_be_of_agent(queue: str | None, body: bytes) -> bool:
    """Whether ``rows_of`` may have rows for a message. Fast; never false where it has rows."""
    if queue == STREAM:
        return True
    head = body[:_HEAD]
    return any(word in head for word in _ROOTS)


def _without_command(message: CapturedMessage) -> Rows:
    """Of headers that hold no command: message properties, as a subscription of today has them."""
    try:
        return _by_content(message, message.decode(), None)
    except QPubSubError:
        return Rows()


def _published(message: CapturedMessage, decoded: Message, topic: str) -> Rows:
    kind = topic.removeprefix(f"{STREAM}/").partition("/")[0]
    if kind not in _READ:
        return Rows()
    row = _agent(message, topic) if kind == _AGENTS else _transfer(message, topic)
    try:
        document = Document(_text(decoded))
        name = local_name(document.root)
        if name in OTHER_LOGS:
            return Rows()
        wanted = PROPERTIES if kind == _AGENTS else TRANSACTION
        if name != wanted:
            raise DocumentError(f"the document is <{name[:40]}>, not <{wanted}>")
    except DocumentError as error:
        return _with_problem(row, str(error))
    return agent_rows(document, row) if isinstance(row, AgentRow) else transfer_rows(document, row)


def _by_content(message: CapturedMessage, decoded: Message, topic: str | None) -> Rows:
    """Of a document whose stream is not known. A damaged one is recognized by its beginning."""
    try:
        document = Document(_text(decoded))
    except DocumentError as error:
        head = message.body[:_HEAD]
        if any(mark in head for mark in _MARKS):
            return _with_problem(_transfer(message, topic), str(error))
        return (
            _with_problem(_agent(message, topic), str(error)) if topic and topic.startswith(_AGENT_TOPICS) else Rows()
        )
    name = local_name(document.root)
    if name == TRANSACTION and schema_of(document.root) in _SCHEMAS:
        return transfer_rows(document, _transfer(message, topic))
    keys = (attribute(entry, "key") for entry in children(document.root, "entry"))
    if name == PROPERTIES and "agentName" in keys:
        return agent_rows(document, _agent(message, topic))
    return Rows()


def _transfer(message: CapturedMessage, topic: str | None) -> TransferRow:
    """The values known before the document is read: the transfer of ``SYSTEM.FTE/Log/agent/transfer``."""
    levels = (topic or "").split("/")
    known = levels[3].lower() if len(levels) == 4 and len(levels[3]) == 48 else None
    kind = "status" if len(levels) > 1 and levels[1] == _TRANSFERS else "log"
    return TransferRow(message.seq, message.time, message.qmgr, topic, kind, known)


def _agent(message: CapturedMessage, topic: str | None) -> AgentRow:
    levels = (topic or "").split("/")
    agent = levels[2] if len(levels) > 2 and levels[2] else None
    return AgentRow(message.seq, message.time, message.qmgr, topic, agent)


def _with_problem(row: TransferRow | AgentRow, problem: str) -> Rows:
    if isinstance(row, AgentRow):
        return Rows(agents=(replace(row, problem=problem),))
    return Rows((replace(row, problem=problem),))


def _text(message: Message) -> str:
    """The body in characters, by its CCSID; else in UTF-8, as the document's own declaration says."""
    text = message.body_text
    if text is not None:
        return text
    try:
        return message.body.decode().rstrip("\0")
    except UnicodeDecodeError as error:
        raise DocumentError(f"the text is not in CCSID {message.body_ccsid}, nor in UTF-8") from error
