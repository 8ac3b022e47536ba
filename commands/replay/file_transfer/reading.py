"""From a captured message to rows: whether it is an agent's, by its queue, its topic, or what it holds.

A message put to the stream queue SYSTEM.FTE has the stream's topic string before its topic (guide 6.1), one that a
subscriber got may have it or not, and what a program of today got may have no header at all. The last two are an
agent's where the document says so: it names TransferLog.xsd or TransferStatus.xsd, or has the property ``agentName``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from commands.headers.registry import parse
from commands.model import Publish
from commands.replay.file_transfer.documents import (
    OTHER_LOGS,
    PROPERTIES,
    TRANSACTION,
    Document,
    DocumentError,
    agent_rows,
    attribute,
    children,
    local_name,
    schema_of,
    transfer_rows,
)
from commands.replay.file_transfer.rows import AgentRow, Rows, TransferRow
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.message import Message

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
