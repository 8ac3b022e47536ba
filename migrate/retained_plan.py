"""Retained publications: each on its resolved topic, kept without being delivered to anybody.

The publisher's own message is kept as it is. A copy that the broker delivered becomes the publication that it was made
from, as far as the copy has its contents. If two publications get the same topic, neither replaces the other: the
second is reported, with the first one's name.

Publications that a broker delivered, and Publish commands made of them or of what a topic keeps.

A delivered publication has a header that the broker wrote, with options that no publisher may give: it is read for
itself, not as a command. To publish it again its header gets back what a publisher says: the topic as the publisher
named it, the subscription point, RetainPub. Everything else, other folders and the data above all, goes on byte for
byte.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from commands.broker.objects import ADMIN_STREAM
from commands.broker.times import tenths_until
from commands.headers.psc import split_psc
from commands.headers.psc_commands import is_user_tag
from commands.headers.registry import parse
from commands.model import Publish, PubOpt
from migrate.ledger import Severity
from migrate.legacy_state import Key, LegacyRetained
from migrate.plan import KeepRetained
from migrate.target import Draft
from rfh2 import rfh1
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import LARGEST_MQLONG, MQEI_UNLIMITED, MQMT_DATAGRAM, MQPER_PERSISTENCE_AS_Q_DEF, MQPER_PERSISTENT
from rfh2.errors import CommandError, QPubSubError
from rfh2.folders import Folder, write
from rfh2.message import Message, decode
from rfh2.mqmd import name_of
from rfh2.options import PUBLICATION
from rfh2.rfh2 import Rfh2
from streams.operations import Publication, RetainedPublication
from streams.patterns import check_publication_topic
from streams.topic_strings import add_prefix

_REWRITTEN = frozenset(
    {
        rfh1.MQPS_COMMAND,
        rfh1.MQPS_TOPIC,
        rfh1.MQPS_PUBLICATION_OPTIONS,
        rfh1.MQPS_REGISTRATION_OPTIONS,
        rfh1.MQPS_STREAM_NAME,
    }
    | {rfh1.MQPS_Q_NAME, rfh1.MQPS_Q_MGR_NAME}
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The contents of a publication's header. stream: "" if the header does not name it."""

    topics: tuple[str, ...]
    is_retained: bool
    stream: str = ""
    sub_point: str | None = None
    pub_time: str | None = None
    seq_num: str | None = None


def delivered_publication(message: Message) -> Delivered | None:
    """The publication in *message*; None if it is not a publication. Raises DecodeError."""
    if message.rfh2 is not None:
        commands, _ = split_psc(message.rfh2)
        if commands:
            return _of_pairs(commands[0].pairs(), "Topic", "PubOpt", "Command")
    if message.rfh1 is not None:
        pairs = [(name.removeprefix("MQPS"), value) for name, value in message.rfh1.pairs()]
        return _of_pairs(pairs, "Topic", "PubOpts", "Command")
    return None


def published_again(message: Message, topic: str, sub_point: str | None, *, local: bool = False) -> Message:
    """*message* as a publisher would put it: to be retained, on *topic*, at *sub_point*.

    Raises CommandError, DecodeError if it is not a publication.
    """
    delivered = delivered_publication(message)
    if delivered is None:
        raise CommandError(0, topic, "the message is not a publication in an MQRFH or MQRFH2")
    mqmd = replace(
        message.mqmd,
        msg_type=MQMT_DATAGRAM,
        report=0,
        reply_to_q="",
        reply_to_qmgr="",
        expiry=message.mqmd.expiry if message.mqmd.expiry > 0 else MQEI_UNLIMITED,
    )
    headers = list(message.headers)
    for at, header in enumerate(headers):
        if isinstance(header, Rfh2):
            headers[at] = _in_psc(header, delivered, topic, sub_point, local)
            break
        if isinstance(header, rfh1.Rfh1):
            headers[at] = _in_rfh1(header, topic, local)
            break
    return replace(message, mqmd=mqmd, headers=tuple(headers))


def is_retain_command(message: Message, topic: str) -> bool:
    """Whether *message*, put as it is, publishes to *topic* alone and has it retained."""
    command = parse(message)
    return isinstance(command, Publish) and command.has(PubOpt.RETAIN_PUB) and command.topics == (topic,)


def _of_pairs(pairs: list[tuple[str, str]], topic: str, options: str, command: str) -> Delivered | None:
    values: dict[str, str] = {}
    for name, value in pairs:
        values.setdefault(name, value)
    if values.get(command) != Publish.word:
        return None
    words = PUBLICATION.read([value for name, value in pairs if name == options]).words
    return Delivered(
        tuple(value for name, value in pairs if name == topic),
        PubOpt.IS_RETAINED_PUB in words,
        name_of(values.get("StreamName", "")),
        values.get("SubPoint") or None,
        values.get("PubTime"),
        values.get("SeqNum"),
    )


def _in_psc(header: Rfh2, delivered: Delivered, topic: str, sub_point: str | None, local: bool) -> Rfh2:
    commands, others = split_psc(header)
    pairs = [("Command", Publish.word), ("PubOpt", PubOpt.RETAIN_PUB.value)]
    if local:
        pairs.append(("PubOpt", PubOpt.LOCAL.value))
    pairs.append(("Topic", topic))
    if sub_point:
        pairs.append(("SubPoint", sub_point))
    pairs += [(tag, value) for tag, value in (("PubTime", delivered.pub_time), ("SeqNum", delivered.seq_num)) if value]
    pairs += [(tag, value) for folder in commands for tag, value in folder.pairs() if is_user_tag(tag)]
    charset = "utf-8" if header.name_value_ccsid == UTF8_CCSID else f"utf-16-{header.order[0]}e"
    return header.with_folders((Folder.of(write("psc", pairs), charset), *others))


def _in_rfh1(header: rfh1.Rfh1, topic: str, local: bool) -> rfh1.Rfh1:
    kept = [(name, value) for name, value in header.pairs() if name not in _REWRITTEN]
    own = [(rfh1.MQPS_COMMAND, rfh1.MQPS_PUBLISH), (rfh1.MQPS_PUBLICATION_OPTIONS, PubOpt.RETAIN_PUB.value)]
    if local:
        own.append((rfh1.MQPS_REGISTRATION_OPTIONS, PubOpt.LOCAL.value))
    return header.with_pairs([*own, (rfh1.MQPS_TOPIC, topic), *kept])


class _RefusedError(Exception):
    """The publication is not migrated."""

    def __init__(self, text: str, *ids: str, severity: Severity = Severity.ERROR) -> None:
        super().__init__(text)
        self.text, self.ids, self.severity = text, ids, severity


def plan_retained(draft: Draft) -> None:
    """The steps for all retained publications of the state."""
    latest = _without_older(draft)
    taken: dict[str, Key] = {}
    shared: dict[tuple[object, ...], Publication] = {}
    for number, legacy in enumerate(draft.state.retained, 1):
        key = (legacy.kind, number)
        if key in latest:
            try:
                _plan_one(draft, key, legacy, taken, shared)
            except _RefusedError as refusal:
                draft.ledger.report(key, refusal.text, *refusal.ids, severity=refusal.severity)
        draft.progress(1)


def carries_string_data(message: Message) -> bool:
    """Whether an MQRFH carries the data that a conversion to MQRFH2 would lose (guide 8.7)."""
    if message.rfh1 is None:
        return False
    try:
        return any(name in (rfh1.MQPS_STRING_DATA, rfh1.MQPS_INTEGER_DATA) for name, _ in message.rfh1.pairs())
    except QPubSubError:
        return False


def _without_older(draft: Draft) -> set[Key]:
    """The keys of those to keep; of several on one topic the latest, or the one with a body."""
    chosen: dict[tuple[str, str, str], tuple[Key, LegacyRetained]] = {}
    for number, legacy in enumerate(draft.state.retained, 1):
        key = (legacy.kind, number)
        place = (legacy.stream, legacy.sub_point or "", legacy.topic)
        known = chosen.get(place)
        if known is None:
            chosen[place] = (key, legacy)
            continue
        newer, older = ((key, legacy), known) if _is_newer(legacy, known[1]) else (known, (key, legacy))
        chosen[place] = newer
        what = f"retained publication {newer[0][1]}"
        if older[1].body_hex in (None, newer[1].body_hex):
            draft.ledger.becomes(older[0], what)
            draft.ledger.note(older[0], "the sources have it a second time")
        else:
            draft.ledger.report(older[0], f"{what} is on the same topic, and is the later one", severity=Severity.INFO)
    return {key for key, _ in chosen.values()}


def _is_newer(one: LegacyRetained, other: LegacyRetained) -> bool:
    if (one.body_hex is None) != (other.body_hex is None):
        return other.body_hex is None
    if one.published_at is not None and other.published_at is not None and one.published_at != other.published_at:
        return one.published_at > other.published_at
    return other.delivered and not one.delivered


def _plan_one(
    draft: Draft,
    key: Key,
    legacy: LegacyRetained,
    taken: dict[str, Key],
    shared: dict[tuple[object, ...], Publication],
) -> None:
    """taken: the topics that have one already. shared: publications by what they were made of."""
    topic_string = _topic_string(draft, legacy)
    message = _message(draft, key, legacy)
    earlier = taken.get(topic_string)
    if earlier is not None:
        why = f"retained publication {earlier[1]} has the same topic {topic_string}; choose another --prefix"
        raise _RefusedError(why, "P09", "D09")
    existing = draft.target.retained.get(topic_string)
    if existing is not None and not draft.options.overwrite:
        raise _RefusedError(f"{topic_string} has a retained publication already", "P08", severity=Severity.WARNING)
    if existing is not None:
        why = f"the retained publication that {topic_string} had was replaced"
        draft.ledger.change(key, why, "P08", severity=Severity.WARNING)
    publication = Publication(message, legacy.published_at or draft.now, legacy.expires_at, legacy.local)
    if not legacy.delivered:
        # A publication on several topics stays one publication, and is stored once.
        what = (legacy.md_hex, legacy.body_hex, publication.published_at, legacy.expires_at, legacy.local)
        publication = shared.setdefault(what, publication)
    taken[topic_string] = key
    retained = RetainedPublication(topic_string, publication)
    step = KeepRetained(retained, key[1], legacy.stream, legacy.sub_point, existing is not None)
    draft.steps.append(step)
    draft.ledger.becomes(key, step)


def _topic_string(draft: Draft, legacy: LegacyRetained) -> str:
    if legacy.topic.startswith("MQ/") or legacy.stream == ADMIN_STREAM:
        raise _RefusedError("the version 6 broker's own; version 7 publishes none", "D05", severity=Severity.INFO)
    stream = draft.streams.get(legacy.stream)
    if stream is None:
        raise _RefusedError(f"its stream {legacy.stream} has no place in the topic tree", "P10")
    prefix = stream.prefix
    if legacy.sub_point:
        point = draft.sub_points.get(legacy.sub_point)
        if point is None:
            raise _RefusedError(f"its subscription point {legacy.sub_point} has no place in the topic tree", "P19")
        prefix = add_prefix(prefix, point.prefix) if prefix else point.prefix
    try:
        return check_publication_topic(add_prefix(prefix, check_publication_topic(legacy.topic)))
    except CommandError as error:
        raise _RefusedError(f"version 7 accepts no publication on this topic: {error.why}", "D14") from error


def _message(draft: Draft, key: Key, legacy: LegacyRetained) -> Message:
    if legacy.body_hex is None:
        why = (
            "the source shows that it exists, and not its contents: get it with strmqbrk --extract, or publish it again"
        )
        raise _RefusedError(why)
    if legacy.expires_at is not None and legacy.expires_at <= draft.now:
        why = f"it expired at {legacy.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        raise _RefusedError(why, severity=Severity.INFO)
    if tenths_until(legacy.expires_at, draft.now) == LARGEST_MQLONG:
        why = f"its expiry is more than a message holds: files give it {LARGEST_MQLONG} tenths of a second"
        draft.ledger.change(key, why, "P26", severity=Severity.WARNING)
    try:
        descriptor = None if legacy.md_hex is None else bytes.fromhex(legacy.md_hex)
        message = decode(bytes.fromhex(legacy.body_hex), descriptor)
        if legacy.delivered:
            message = published_again(message, legacy.topic, legacy.sub_point)
            why = "a copy that the broker delivered: who published it and its own identifiers are not known"
            draft.ledger.change(key, why)
        elif not isinstance(parse(message), Publish):
            raise _RefusedError("its message is not a publication")
    except QPubSubError as error:
        raise _RefusedError(f"its message cannot be read: {error}") from error
    if name_of(message.mqmd.reply_to_qmgr) == draft.state.qmgr != draft.qmgr:
        # A program that replies to the publisher needs the present name of its queue manager.
        message = replace(message, mqmd=replace(message.mqmd, reply_to_qmgr=draft.qmgr))
    if message.mqmd.persistence == MQPER_PERSISTENCE_AS_Q_DEF:
        message = replace(message, mqmd=replace(message.mqmd, persistence=MQPER_PERSISTENT))
        why = "its persistence was that of its queue, which is not known; it is persistent now, to be safe"
        draft.ledger.change(key, why, "P11")
    elif message.mqmd.persistence != MQPER_PERSISTENT:
        why = "it is not persistent: a restart of the queue manager discards it (guide 8.5)"
        draft.ledger.note(key, why, "P11", "D28", severity=Severity.WARNING)
    if carries_string_data(message):
        why = "its MQRFH carries MQPSStringData or MQPSIntData: kept here, lost to subscribers with MQRFH2 (guide 8.7)"
        draft.ledger.note(key, why, "P01", severity=Severity.WARNING)
    return message
