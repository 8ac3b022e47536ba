"""Publications on version 6's metatopics, in PCF: who is subscribed, who publishes, which streams and neighbours.

    MQ/SA/<QMgr, 48 characters>/Subscribers/AllIdentities/<topic>     who is registered, with all options
    MQ/<QMgr, 48 characters>/StreamSupport | Parent | Children        on the administration stream

A new registration begins at each RegistrationQMgrName: the parameters behind it may be absent, so counting them across
registrations would mix them up. Messages of the forms that have less (Topics, Summary, Identities without options) are
kept as items where they announce more than they list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from migrate.legacy_state import BrokerItem, Item, Relation, Source, Stream, Unread
from migrate.readers.registrations import Registration, publisher_of, subscription_of
from rfh2 import pcf_names as pcf
from rfh2.errors import DecodeError
from rfh2.message import Message
from rfh2.pcf import FORMATS, Pcf, decode_pcf
from rfh2.pcf_parameters import Cfin, Cfsl, Cfst, Parameter
from streams.topic_objects import DEFAULT_STREAM

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
