"""The publish/subscribe state of a queue manager of version 7 or later, from what its DISPLAY commands show.

    DISPLAY SUB                 subscriptions; one with PSPROP(COMPAT) below a stream is that stream's
    namelists of streams        streams, subscription points
    DISPLAY QMGR                the attributes that qm.ini had, the parent
    DISPLAY PUBSUB              children
    DISPLAY AUTHREC             authorities
    DISPLAY TPSTATUS            which topics have a retained publication; the embedded store has them, and copies
                                come through a connection

No DISPLAY shows persistence options, identity sets, InclStreamName and a few more: the state says so. Topic objects are
no part of the state: the target has them, or its script of dmpmqcfg (``--existing``).

Copies of what a queue manager of IBM MQ retains: a subscription to all topics asks for them (MQSUBRQ).

A copy has topic, data, persistence, expiry, user and properties; who published it first, and its identifiers, are those
of the copy. It becomes the command that publishes it again.

Asks a running version 6 broker for its state, by metatopics, and collects the answers (guide 7.5; ``extract``).

First the administration stream: which streams there are. Then each stream: subscribers, publishers, retained
publications. One question at a time, so that its answers are what arrives until its response. The answers to each are
kept in a directory: if a run is interrupted, or the broker refuses a question, the next run asks only what is missing.
The result is a capture, which ``strmqbrk`` reads.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from commands.broker.identity import name_without_stream
from commands.broker.objects import ADMIN_STREAM
from commands.broker.subscription_attributes import OPTIONS
from commands.client.errors import MqError
from commands.disk.files import make_directory, private, put_in_place, to_disk
from commands.headers.registry import parse
from commands.links.engine.inbound_writer import command_for, why_not_command
from commands.links.ibmmq.connection import Connection
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.tree import native_of
from commands.model import Publish
from commands.qmgr.store.port import StoredMessage
from commands.terminal.counted import counted
from migrate import legacy_state as legacy
from migrate.assemble import assemble
from migrate.contents import disk
from migrate.extract import Question, asking, questions_about_streams, questions_on_streams
from migrate.live.loading import Messages, answers_until_response
from migrate.live.snapshot import Administrator, LiveState, Row, authorities, names, read_live, text, word
from migrate.readers import metatopics
from migrate.readers.captures import retained_item
from rfh2 import mqi_constants as m
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.constants import MQRCCF_NO_RETAINED_MSG, MQRCCF_NOT_REGISTERED
from rfh2.errors import DecodeError, MigrationError, QPubSubError
from rfh2.message import encode
from rfh2.mqmd import Mqmd, name_of
from streams.operations import RetainedPublication
from streams.patterns import add_pattern_prefix, remove_pattern_prefix
from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import DEFAULT_STREAM, DEFAULT_SUB_POINT, QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.topic_strings import is_within, remove_prefix

Copies = dict[str, tuple[bytes, bytes]]
"""MQMD and body of the command that publishes it again, by topic string."""

_ANSWER_MS: Final = 30_000


def retained_copies(messages: MqMessages) -> Copies:
    """All that is retained. Raises MqError, and MigrationError where not all of it arrives."""
    connection = messages.connection
    if not connection.is_up:
        connection.connect()
    options = m.MQSO_CREATE | m.MQSO_MANAGED | m.MQSO_PUBLICATIONS_ON_REQUEST
    asked = connection.subscribe("#", "", options | m.MQSO_WILDCARD_TOPIC, None)
    found: Copies = {}
    try:
        queue = asked.queue
        for _ in range(_requested(connection, asked)):
            got = connection.get(queue, m.MQGMO_NO_SYNCPOINT, wait_ms=_ANSWER_MS)
            if got is None:
                raise MigrationError("IBM MQ has not sent all that it retains; run the same command again")
            with suppress(DecodeError):
                topic, copy = _command(got.md, got.body)
                found[topic] = copy
    finally:
        with suppress(MqError):
            connection.close_subscription(asked, 0, queue_too=True)
    return found


def _command(md: bytes, body: bytes) -> tuple[str, tuple[bytes, bytes]]:
    """Raises DecodeError for what is no publication, has no data, or is on a topic that no command can name."""
    native, _ = native_of(md, body)
    # A command without data would clear the topic.
    why = why_not_command(native.topic) or ("" if native.payload else "it has no data") or None
    if why is not None:
        raise DecodeError(0, "message", why, "no-command-header")
    user = name_of(Mqmd.decode(md).user_identifier)
    mqmd, command, _ = command_for(native._replace(retain=True), user)
    return native.topic, (mqmd.encode(), command)


def _requested(connection: Connection, asked: Any) -> int:
    try:
        return connection.request(asked)
    except MqError as error:
        if error.reason == m.MQRC_NO_RETAINED_MSG:
            return 0
        raise


NEVER_SHOWN: Final = "persistence options, identity sets, InclStreamName, InformIfRet, NewPubsOnly, DupsOK"
"""What subscriptions lose by DISPLAY."""
_LEVEL: Final = 900
_NO_CORREL_ID: Final = "0" * 48
_FORMATS: Final = {
    "COMPAT": PublicationFormat.RFH1,
    "RFH2": PublicationFormat.RFH2,
    "MSGPROP": PublicationFormat.PROPERTIES,
    "NONE": PublicationFormat.NONE,
}
_OBJECT_TYPES: Final = ("QUEUE", "TOPIC", "NAMELIST", "QMGR")
# PSNPRES as the two switches of qm.ini (guide 7.3).
_RESPONSES: Final = {
    "NORMAL": (("DLQNonPersistentResponse", "yes"), ("DiscardNonPersistentResponse", "yes")),
    "SAFE": (("DLQNonPersistentResponse", "yes"), ("DiscardNonPersistentResponse", "no")),
    "DISCARD": (("DLQNonPersistentResponse", "no"), ("DiscardNonPersistentResponse", "yes")),
    "KEEP": (("DLQNonPersistentResponse", "no"), ("DiscardNonPersistentResponse", "no")),
}


def state_of(
    administrator: Administrator,
    now: datetime,
    retained: Iterable[RetainedPublication] | None = None,
    copies: Copies | None = None,
) -> legacy.LegacyState:
    """The state. now: UTC. retained: all publications themselves; or copies of them. Raises AdministrationError."""
    return assemble(_Reading(administrator, now, retained, copies or {}).items(), administrator.qmgr, times=[now])


def remarks(state: legacy.LegacyState) -> tuple[str, ...]:
    """What is to be seen to before *state*, of ``state_of``, is used; not what DISPLAY shows of no queue manager."""
    without = sum(each.body_hex is None for each in state.retained)
    said = [f"{counted(without, 'retained publication')}: only the topics are known, not the contents"] * bool(without)
    return (*said, *(f"{item.text}: {item.why}" for item in state.unread if item.warns and item.text != NEVER_SHOWN))


class _Reading:
    def __init__(
        self,
        administrator: Administrator,
        now: datetime,
        retained: Iterable[RetainedPublication] | None,
        copies: Copies,
    ) -> None:
        self._administrator, self._now, self._publications, self._copies = administrator, now, retained, copies
        self._live: LiveState = read_live(administrator)
        self._streams = dict(self._places(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM)))
        self._points = {prefix: prefix for _, prefix in self._places(SUB_POINT_NAMELIST, (DEFAULT_SUB_POINT,))}

    def items(self) -> Iterator[legacy.Item]:
        yield from self._broker()
        yield from self._relations()
        for name, prefix in self._streams.items():
            yield legacy.Stream(source=self._source("NAMELIST"), name=name)
            if prefix != name:
                why = f"migrate with --prefix {name}={prefix}"
                said = f"stream {name} lies at topic string {prefix}"
                yield legacy.Unread(source=self._source("TOPIC"), text=said, why=why, is_state=False, warns=True)
        for point in self._points:
            yield legacy.SubPoint(source=self._source("NAMELIST"), name=point)
        for row in self._live.subscriptions:
            yield self._subscription(row)
        yield from self._retained()
        yield from self._authorities()
        if self._live.subscriptions:
            why = "DISPLAY SUB does not show them: the subscriptions have the defaults"
            yield legacy.Unread(source=self._source("SUB"), text=NEVER_SHOWN, why=why, is_state=False, warns=True)

    def _source(self, target: str) -> legacy.Source:
        return legacy.Source(file=f"{self._administrator.where}, DISPLAY {target}")

    def _places(self, namelist: str, born_with: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The names of a namelist, each with the topic string of its topic object."""
        row = self._live.namelists.get(namelist)
        for name in () if row is None else names(row, "NAMES"):
            if name not in born_with:
                topic = self._live.topics.get(name)
                yield name, name if topic is None else text(topic, "TOPICSTR")

    def _broker(self) -> Iterator[legacy.Item]:
        qmgr, source = self._live.qmgr, self._source("QMGR")
        level = text(qmgr, "CMDLEVEL")
        number = int(level) if level.isdecimal() else _LEVEL
        own = self._administrator.qmgr
        yield legacy.BrokerItem(source=source, name=own, qmgr=own, command_level=number)
        for name, value in self._attributes(qmgr):
            yield legacy.StanzaAttribute(source=source, stanza="Broker", name=name, value=value)

    @staticmethod
    def _attributes(qmgr: Row) -> Iterator[tuple[str, str]]:
        if retries := text(qmgr, "PSRTYCNT"):
            yield "MaxMsgRetryCount", retries
        if kept := word(qmgr, "PSNPMSG"):
            yield "DiscardNonPersistentInputMsg", "yes" if kept == "DISCARD" else "no"
        if sync_point := word(qmgr, "PSSYNCPT"):
            yield "SyncPointIfPersistent", "yes" if sync_point == "IFPER" else "no"
        yield from _RESPONSES.get(word(qmgr, "PSNPRES"), ())

    def _relations(self) -> Iterator[legacy.Item]:
        if parent := text(self._live.qmgr, "PARENT"):
            yield legacy.Relation(source=self._source("QMGR"), role="parent", qmgr=parent)
        for row in self._administrator.display("PUBSUB", TYPE="ALL"):
            if word(row, "TYPE") == "CHILD" and (child := text(row, "QMNAME")):
                yield legacy.Relation(source=self._source("PUBSUB"), role="child", qmgr=child)

    def _subscription(self, row: Row) -> legacy.Item:
        source, topic = self._source("SUB"), text(row, "TOPICSTR")
        if word(row, "DESTCLAS") == "MANAGED":
            why = "its destination is managed: a program made it with the MQI, and it is not a queued subscription"
            said = f"subscription {text(row, 'SUB')} to {topic}"
            return legacy.Unread(source=source, text=said, why=why, is_state=False, warns=True)
        scheme = WildcardScheme.CHAR if word(row, "WSCHEMA") == "CHAR" else WildcardScheme.TOPIC
        form = _FORMATS.get(word(row, "PSPROP"), PublicationFormat.PROPERTIES)
        stream, point = DEFAULT_STREAM, None
        if form is PublicationFormat.RFH1:
            stream, topic = self._below(self._streams, DEFAULT_STREAM, topic, scheme)
        elif form is PublicationFormat.RFH2:
            found, topic = self._below(self._points, "", topic, scheme)
            point = found or None
        correl_id = text(row, "DESTCORL").upper().ljust(48, "0")
        own = correl_id not in (_NO_CORREL_ID, text(row, "SUBID").upper())
        name = text(row, "SUB") or None
        return legacy.LegacySubscription(
            source=source,
            topic=topic,
            queue=text(row, "DEST"),
            qmgr=text(row, "DESTQMGR"),
            correl_id=correl_id if own else None,
            stream=stream,
            sub_point=point,
            scheme=scheme,
            format=form,
            user=text(row, "SUBUSER"),
            name=None if name is None else name_without_stream(name, None if stream == DEFAULT_STREAM else stream),
            user_data=text(row, "USERDATA") or None,
            filter=text(row, "SELECTOR") or None,
            options=tuple(_options(row, own)),
            created=_moment(text(row, "CRDATE"), text(row, "CRTIME")),
            expires_at=self._expires_at(text(row, "EXPIRY")),
            accounting_token=_token(text(row, "PUBACCT")),
            appl_identity_data=text(row, "PUBAPPID"),
        )

    @staticmethod
    def _below(places: dict[str, str], default: str, topic: str, scheme: WildcardScheme) -> tuple[str, str]:
        """The place that *topic* lies below, the deepest one, and the rest of it."""
        for name, prefix in sorted(places.items(), key=lambda place: -len(place[1])):
            rest = remove_pattern_prefix(prefix, topic, scheme)
            if prefix and rest != topic and add_pattern_prefix(prefix, rest, scheme) == topic:
                return name, rest
        return default, topic

    def _expires_at(self, expiry: str) -> datetime | None:
        return self._now + timedelta(milliseconds=100 * int(expiry)) if expiry.isdecimal() else None

    def _retained(self) -> Iterator[legacy.Item]:
        if self._publications is not None:
            for publication in self._publications:
                yield self._publication(publication)
            return
        for topic in sorted(self._live.retained):
            stream, rest = self._stream_of(topic)
            md, body = self._copies.get(topic, (None, None))
            yield legacy.LegacyRetained(
                source=self._source("TPSTATUS"),
                topic=rest,
                stream=stream,
                md_hex=None if md is None else md.hex(),
                body_hex=None if body is None else body.hex(),
                delivered=body is not None,
            )

    def _publication(self, retained: RetainedPublication) -> legacy.LegacyRetained:
        message = retained.publication.message
        stream, rest = self._stream_of(retained.topic_string)
        point = None
        with suppress(QPubSubError):
            command = parse(message)
            if isinstance(command, Publish):
                if rest not in command.topics and retained.topic_string in command.topics:
                    stream, rest = DEFAULT_STREAM, retained.topic_string
                point = command.sub_point
        texts = message.mqmd.encode().hex(), encode(message).hex()
        return retained_item(retained, self._source("TPSTATUS"), stream, rest, point, texts)

    def _stream_of(self, topic: str) -> tuple[str, str]:
        for name, prefix in sorted(self._streams.items(), key=lambda place: -len(place[1])):
            if prefix and is_within(prefix, topic) and topic != prefix:
                return name, remove_prefix(prefix, topic)
        return DEFAULT_STREAM, topic

    def _authorities(self) -> Iterator[legacy.Item]:
        passed_over = 0
        for row in self._administrator.display("AUTHREC"):
            kind, entity_type = word(row, "OBJTYPE"), word(row, "ENTTYPE")
            if kind not in _OBJECT_TYPES or entity_type not in ("PRINCIPAL", "GROUP"):
                passed_over += 1
                continue
            yield legacy.LegacyAuthority(
                source=self._source("AUTHREC"),
                object_type=kind,
                profile=text(row, "PROFILE"),
                entity_type="GROUP" if entity_type == "GROUP" else "PRINCIPAL",
                entity=text(row, "ENTITY"),
                authorities=tuple(sorted(authorities(row))),
            )
        if passed_over:
            why = "channels, processes and the like are not part of publish/subscribe"
            said = "authority records of other objects"
            yield legacy.Unread(source=self._source("AUTHREC"), text=said, why=why, count=passed_over, is_state=False)


def _options(row: Row, identified: bool) -> Iterator[str]:
    if identified:
        yield "CorrelAsId"
    for each in OPTIONS:
        if each.option is not None and each.keyword and word(row, each.keyword) == each.kind.show(True):
            yield each.option.value


def _moment(date: str, time: str) -> datetime | None:
    try:
        return datetime.strptime(f"{date} {time}", "%Y-%m-%d %H.%M.%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _token(hexadecimal: str) -> str:
    return hexadecimal.lower() if hexadecimal.strip("0") else ""


# Nothing is retained: that is an answer.
_NO_ERRORS: Final = frozenset({0, MQRCCF_NO_RETAINED_MSG})


@dataclass(slots=True)
class Interrogation:
    """One run. clock: UTC. wait_s: for each answer. say: called with what is asked. work: where answers are kept."""

    messages: Messages
    qmgr: str
    reply_queue: str
    work: Path
    wait_s: float
    clock: Callable[[], datetime]
    say: Callable[[str], None]

    def ask(self, streams: tuple[str, ...]) -> list[CapturedMessage]:
        """All answers, numbered in order. streams: those to ask about besides what the broker says.

        Raises MigrationError where a question was refused or not answered; the others need not be asked again.
        """
        with disk(self.work):
            make_directory(self.work)
        about = [answer for question in questions_about_streams(self.qmgr) for answer in self._answers(question)]
        found = [name for name in _streams_in(about) if name not in (DEFAULT_STREAM, ADMIN_STREAM)]
        if not found and not any(_is_metatopic(message) for message in about):
            why = "it publishes nothing on metatopics: it is not a version 6 broker. Run extract without --metatopics"
            raise MigrationError(f"queue manager {self.qmgr}: {why}")
        refused: list[str] = []
        answers = list(about)
        for question in questions_on_streams(self.qmgr, (*found, *streams)):
            try:
                answers += self._answers(question)
            except MigrationError as error:
                refused.append(str(error))
        if refused:
            raise MigrationError(f"{'; '.join(refused)}. Run the same command again: it asks only this once more")
        return [answer.model_copy(update={"seq": number}) for number, answer in enumerate(answers, 1)]

    def lines(self) -> bytes:
        """What ``ask`` returns for all streams, as JSON Lines. Raises MigrationError."""
        answers = BytesIO()
        write_captures(self.ask(()), answers, "jsonl")
        return answers.getvalue()

    def forget(self) -> None:
        """The answers are in the result: discard the directory."""
        shutil.rmtree(self.work, ignore_errors=True)

    def _answers(self, question: Question) -> list[CapturedMessage]:
        file = self.work / _file_name(question)
        if file.exists():
            lines = file.read_text(encoding="utf-8").splitlines()
            return [CapturedMessage.model_validate_json(line) for line in lines]
        self.say(f"{question.what} of {question.stream}")
        found = self._asked(question)
        partial = file.with_suffix(".partial")
        with disk(file):
            with open(partial, "w", encoding="utf-8", opener=private) as stream:
                stream.writelines(f"{answer.model_dump_json()}\n" for answer in found)
                to_disk(stream)
            put_in_place(partial, file)
        return found

    def _asked(self, question: Question) -> list[CapturedMessage]:
        self._drain()
        found: list[CapturedMessage] = []

        def take(message: StoredMessage) -> None:
            found.append(message.captured(self.qmgr))

        *asked, last = asking(question, self.qmgr, self.clock(), self.reply_queue)
        for command in (*asked, last):
            with self.messages.unit_of_work() as unit:
                unit.put(command.queue, command.md, command.body, application="qpubsub extract")
            try:
                reason = answers_until_response(self.messages, self.reply_queue, self.wait_s, take)
            except MigrationError as error:
                raise MigrationError(f"{question.what} of {question.stream}: {error}") from error
            # Not registered any more: an anonymous registration has ended. Before the end, nothing was answered.
            if reason not in _NO_ERRORS and not (command is last and reason == MQRCCF_NOT_REGISTERED):
                raise MigrationError(f"{question.what} of {question.stream}: the broker refuses with reason {reason}")
        return found

    def _drain(self) -> None:
        """Discard the answers to a question whose run was killed."""
        try:
            with self.messages.unit_of_work() as unit:
                while unit.get(self.reply_queue) is not None:
                    pass
        except QPubSubError as error:
            why = f"DEFINE QLOCAL({self.reply_queue}) on {self.qmgr} first, or name another queue with --reply-queue"
            raise MigrationError(f"{error}: {why}") from error


def _file_name(question: Question) -> str:
    plain = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{question.stream}-{question.what}")
    return f"{plain}.jsonl"


def _is_metatopic(message: CapturedMessage) -> bool:
    try:
        found = metatopics.pcf_of(message.decode())
    except QPubSubError:
        return False
    return found is not None and metatopics.metatopic_published(found) is not None


def _streams_in(answers: list[CapturedMessage]) -> Iterator[str]:
    for message in answers:
        if _is_metatopic(message):
            found = metatopics.pcf_of(message.decode())
            assert found is not None
            for item in metatopics.read(found, legacy.Source(file="answer")):
                if isinstance(item, legacy.Stream):
                    yield item.name
