"""Publications on version 6's metatopics, in PCF: who is subscribed, who publishes, which streams and neighbours.

    MQ/SA/<QMgr, 48 characters>/Subscribers/AllIdentities/<topic>     who is registered, with all options
    MQ/<QMgr, 48 characters>/StreamSupport | Parent | Children        on the administration stream

A new registration begins at each RegistrationQMgrName: the parameters behind it may be absent, so counting them across
registrations would mix them up. Messages of the forms that have less (Topics, Summary, Identities without options) are
kept as items where they announce more than they list.

One registration as metatopics have it, in PCF or printed: from its fields to a subscription or a publisher.

Neither the header the subscriber registered with nor the expiry of the registration is there; both are in ``unknown``.
The options are the sum of MQREGO bits, as a number, or their words.

Times as the sources print them; all are UTC, and text that is no time gives None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from migrate.legacy_state import BrokerItem, Item, LegacySubscription, Publisher, Relation, Source, Stream, Unread
from rfh2 import pcf_names as pcf
from rfh2.errors import DecodeError
from rfh2.message import Message
from rfh2.options import NONE, REGISTRATION
from rfh2.pcf import FORMATS, Cfin, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from streams.topic_objects import DEFAULT_STREAM

_HUNDREDTHS = re.compile(r"\d{16}")
_PRINTED = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z?")


def of_hundredths(text: str) -> datetime | None:
    """YYYYMMDDHHMMSSTH, the time of registration in metatopics."""
    if not _HUNDREDTHS.fullmatch(text) or not text.isascii():
        return None
    try:
        moment = datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment + timedelta(milliseconds=10 * int(text[14:]))


def of_printed(text: str) -> datetime | None:
    """YYYY-MM-DD HH:MM:SS, as Message Broker prints it, or the same as ISO 8601 has it."""
    found = _PRINTED.fullmatch(text.strip())
    if found is None:
        return None
    *parts, fraction = found.groups()
    try:
        moment = datetime(*(int(part) for part in parts), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    return moment + timedelta(microseconds=int((fraction or "0").ljust(6, "0")))


_CORREL_ID = re.compile("[0-9A-Fa-f]{48}")
_NO_CORREL_ID = "0" * 48


@dataclass(slots=True)
class Registration:
    """Fields by the names of LegacySubscription; time and options as they stand there."""

    source: Source
    fields: dict[str, str] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)

    def set(self, name: str, value: str) -> None:
        """One field; ``identities`` may come several times."""
        if name == "identities":
            self.identities.append(value)
        else:
            self.fields[name] = value


def subscription_of(registration: Registration, topic: str, stream: str) -> LegacySubscription:
    """The subscription of *registration*."""
    options = REGISTRATION.read([registration.fields["options"]] if registration.fields.get("options") else [])
    words = tuple(word for word in options.words if word != NONE)
    unknown_options = list(options.unknown)
    correl_id = registration.fields.get("correl_id", "")
    if correl_id and not _CORREL_ID.fullmatch(correl_id):
        unknown_options.append(f"CorrelId {correl_id}")
        correl_id = ""
    as_identity = "CorrelAsId" in words or (
        "options" not in registration.fields and correl_id not in ("", _NO_CORREL_ID)
    )
    time = registration.fields.get("time", "")
    created = of_hundredths(time)
    if time and created is None:
        unknown_options.append(f"Time {time}")
    return LegacySubscription(
        source=registration.source,
        topic=topic,
        stream=stream,
        qmgr=registration.fields.get("qmgr", ""),
        queue=registration.fields.get("queue", ""),
        correl_id=correl_id if as_identity and correl_id else None,
        user=registration.fields.get("user", ""),
        name=registration.fields.get("name") or None,
        user_data=registration.fields.get("user_data"),
        identities=tuple(registration.identities),
        exclusive="JoinExcl" in words or "Locked" in words,
        options=words,
        unknown_options=tuple(unknown_options),
        created=created,
        unknown=("expires_at", "format"),
    )


def publisher_of(registration: Registration, topic: str, stream: str) -> Publisher:
    """The publisher of *registration*."""
    options = REGISTRATION.read([registration.fields["options"]] if registration.fields.get("options") else [])
    correl_id = registration.fields.get("correl_id", "")
    return Publisher(
        source=registration.source,
        topic=topic,
        stream=stream,
        qmgr=registration.fields.get("qmgr", ""),
        queue=registration.fields.get("queue", ""),
        correl_id=correl_id if _CORREL_ID.fullmatch(correl_id) else None,
        user=registration.fields.get("user", ""),
        options=(*(word for word in options.words if word != NONE), *options.unknown),
    )


_QMGR_NAME: Final = 48
_FIELDS: Final = {
    pcf.MQCACF_REG_Q_MGR_NAME: "qmgr",
    pcf.MQCACF_REG_Q_NAME: "queue",
    pcf.MQCACF_REG_CORREL_ID: "correl_id",
    pcf.MQCACF_REG_USER_ID: "user",
    pcf.MQIACF_REG_REG_OPTIONS: "options",
    pcf.MQCACF_REG_TIME: "time",
    pcf.MQCACF_REG_SUB_NAME: "name",
    pcf.MQCACF_SUBSCRIPTION_NAME: "name",
    pcf.MQCACF_REG_SUB_USER_DATA: "user_data",
    pcf.MQCACF_SUBSCRIPTION_USER_DATA: "user_data",
    pcf.MQCACF_REG_SUB_IDENTITY: "identities",
    pcf.MQCACF_SUBSCRIPTION_IDENTITY: "identities",
}


@dataclass(frozen=True, slots=True)
class Metatopic:
    """A metatopic taken apart. what: ``Subscribers``, ``Publishers``, ``StreamSupport`` ...; topic: None for all."""

    qmgr: str
    what: str
    detail: str = ""
    topic: str | None = None


def metatopic_of(text: str) -> Metatopic | None:
    """*text* as a metatopic, or None where it is none."""
    for head in ("MQ/SA/", "MQ/S/", "MQ/"):
        if text.startswith(head) and text[len(head) + _QMGR_NAME : len(head) + _QMGR_NAME + 1] == "/":
            qmgr = text[len(head) : len(head) + _QMGR_NAME].rstrip()
            what, _, rest = text[len(head) + _QMGR_NAME + 1 :].partition("/")
            detail, slash, topic = rest.partition("/")
            return Metatopic(qmgr, what, detail, topic if slash else None)
    return None


def pcf_of(message: Message) -> Pcf | None:
    """The PCF publication that *message* is or carries behind an MQRFH, if it is one. Raises DecodeError."""
    if message.body_format not in FORMATS:
        return None
    found = decode_pcf(message.body, message.body_ccsid, message.body_offset)
    return found if found.command == pcf.MQCMD_PUBLISH else None


def metatopic_published(publication: Pcf) -> Metatopic | None:
    """The metatopic that *publication* is on; None where it is on none, or that cannot be read."""
    try:
        topic = text_of(publication.first(pcf.MQCACF_TOPIC))
    except DecodeError:
        return None
    return None if topic is None else metatopic_of(topic)


def read(publication: Pcf, source: Source) -> Iterator[Item]:
    """The items in a publication on a metatopic; Unread where it is none."""
    try:
        topic = text_of(publication.first(pcf.MQCACF_TOPIC)) or ""
        stream = text_of(publication.first(pcf.MQCACF_STREAM_NAME)) or DEFAULT_STREAM
        metatopic = metatopic_of(topic)
        if metatopic is None:
            yield Unread(source=source, text=topic, why="a PCF publication that is not on a metatopic")
            return
        yield from _items_of(publication, metatopic, stream, source)
    except DecodeError as error:
        yield Unread(source=source, text="PCF publication", why=str(error))


def _items_of(publication: Pcf, metatopic: Metatopic, stream: str, source: Source) -> Iterator[Item]:
    if metatopic.what == "StreamSupport":
        for parameter in publication.all(pcf.MQCACF_SUPPORTED_STREAM_NAME):
            for name in _texts(parameter):
                yield Stream(source=source, name=name)
        yield BrokerItem(source=source, name=metatopic.qmgr, qmgr=metatopic.qmgr)
    elif metatopic.what == "Parent":
        for parameter in publication.all(pcf.MQCACF_PARENT_Q_MGR_NAME):
            for name in _texts(parameter):
                yield Relation(source=source, role="parent", qmgr=name)
    elif metatopic.what == "Children":
        for parameter in publication.all(pcf.MQCACF_CHILD_Q_MGR_NAME):
            for name in _texts(parameter):
                yield Relation(source=source, role="child", qmgr=name)
    elif metatopic.what in ("Subscribers", "Publishers") and metatopic.detail in ("AllIdentities", "Identities"):
        yield from _registrations(publication, metatopic, stream, source)
    else:
        name = "/".join(part for part in (metatopic.what, metatopic.detail) if part)
        why = "this metatopic has counts and topics, not the subscribers"
        yield Unread(source=source, text=name, why=why, is_state=False, warns=True)


def _registrations(publication: Pcf, metatopic: Metatopic, stream: str, source: Source) -> Iterator[Item]:
    if metatopic.topic is None:
        why = "it has the identities of all topics together, without options; ask for AllIdentities of each topic"
        yield Unread(source=source, text=f"{metatopic.what}/{metatopic.detail}", why=why)
        return
    registrations: list[Registration] = []
    for parameter in publication.parameters:
        if parameter.parameter == pcf.MQCACF_REG_Q_MGR_NAME:
            registrations.append(Registration(source))
        field = _FIELDS.get(parameter.parameter)
        if field is None or not registrations:
            continue
        registrations[-1].set(field, _value(parameter, padded=field not in ("user_data", "name", "identities")))
    make = subscription_of if metatopic.what == "Subscribers" else publisher_of
    for registration in registrations:
        yield make(registration, metatopic.topic, stream)
    announced = sum(_count(publication, number) for number in (pcf.MQIACF_APPL_COUNT, pcf.MQIACF_ANONYMOUS_COUNT))
    if announced > len(registrations):
        why = f"{announced} registrations are counted, {len(registrations)} are listed: the others are not known"
        yield Unread(source=source, text=f"{metatopic.what} of {metatopic.topic}", why=why)


def _value(parameter: Parameter, padded: bool) -> str:
    if isinstance(parameter, Cfin):
        return str(parameter.value)
    if not isinstance(parameter, Cfst):
        return ""
    return parameter.text.rstrip(" ") if padded else parameter.text


def _count(publication: Pcf, number: int) -> int:
    parameter = publication.first(number)
    return max(parameter.value, 0) if isinstance(parameter, Cfin) else 0


def text_of(parameter: Parameter | None) -> str | None:
    """The characters of a string parameter without what pads them. Raises DecodeError."""
    return parameter.text.rstrip(" \0") if isinstance(parameter, Cfst) else None


def _texts(parameter: Parameter) -> list[str]:
    if isinstance(parameter, Cfsl):
        return [text.rstrip(" \0") for text in parameter.texts]
    text = text_of(parameter)
    return [] if text is None else [text]
