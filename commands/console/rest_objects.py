"""Queue managers, queues, subscriptions and channels as resources: JSON with sections, of what DISPLAY shows.

    {"queue": [{"name": "SPORT", "type": "local", "general": {"description": "", "inhibitPut": false, ...}}]}

Each row of the tables is one attribute: its place in the JSON, the keyword of MQSC, and the values that have other
words. What to show is asked for with ``attributes`` and ``status``: ``*``, or places with commas between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.mqsc.pcf.json_commands import JsonCommandError
from commands.mqsc.script import Command, Keyword, Value

Row = Mapping[str, Shown]
_YES: Final = {"YES": True, "NO": False}
_RESPONSES: Final = {"SYNC": "synchronous", "ASYNC": "asynchronous"}


@dataclass(frozen=True, slots=True)
class Field:
    """place: with dots. keyword: of DISPLAY. words: MQSC's words and what they are in JSON; others stay as they are."""

    place: str
    keyword: str
    words: Mapping[str, Any] | None = None

    def of(self, row: Row) -> Any:
        """The value in JSON."""
        value = row[self.keyword]
        if self.keyword in SWITCHES:
            return value == self.keyword
        return value if self.words is None or not isinstance(value, str) else self.words.get(value, value)

    def keyword_for(self, value: Any) -> Keyword:
        """The parameter that gives *value*. Raises JsonCommandError."""
        if self.keyword in SWITCHES and isinstance(value, bool):
            return Keyword(self.keyword if value else f"NO{self.keyword}", None)
        if self.words is not None:
            found = next((word for word, meaning in self.words.items() if meaning == value), None)
            if found is None:
                known = ", ".join(str(each) for each in self.words.values())
                raise JsonCommandError(self.place, f"{value} is not one of {known}")
            value = found
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise JsonCommandError(self.place, "a text or a whole number is expected")
        return Keyword(self.keyword, (Value(str(value), quoted=True),))


@dataclass(frozen=True, slots=True)
class Resource:
    """name: in the path, and of the list. target: of DISPLAY. always: shown without being asked for.

    status: the object of the DISPLAY that shows *of_status*; "" for none.
    """

    name: str
    target: str
    names: str
    always: tuple[Field, ...]
    attributes: tuple[Field, ...]
    status: str = ""
    of_status: tuple[Field, ...] = ()


_TYPES: Final = {"QLOCAL": "local", "QALIAS": "alias", "QMODEL": "model"}
_MESSAGES: Final = "applicationDefaults.message"

QUEUE: Final = Resource(
    "queue",
    "QUEUE",
    "QUEUE",
    (Field("name", "QUEUE"), Field("type", "TYPE", _TYPES)),
    (
        Field("general.description", "DESCR"),
        Field("general.inhibitPut", "PUT", {"ENABLED": False, "DISABLED": True}),
        Field("general.inhibitGet", "GET", {"ENABLED": False, "DISABLED": True}),
        Field("general.isTransmissionQueue", "USAGE", {"XMITQ": True, "NORMAL": False}),
        Field("alias.targetName", "TARGET"),
        Field("alias.targetType", "TARGTYPE", {"QUEUE": "queue", "TOPIC": "topic"}),
        Field(f"{_MESSAGES}Persistence", "DEFPSIST", {"YES": "persistent", "NO": "nonPersistent"}),
        Field(f"{_MESSAGES}Priority", "DEFPRTY"),
        Field(
            f"{_MESSAGES}PropertyControl",
            "PROPCTL",
            {"ALL": "all", "COMPAT": "compatible", "FORCE": "force", "NONE": "none", "V6COMPAT": "version6Compatible"},
        ),
        Field("applicationDefaults.putResponse", "DEFPRESP", _RESPONSES),
        Field("applicationDefaults.sharedInput", "DEFSOPT", {"SHARED": True, "EXCL": False}),
        Field("extended.allowSharedInput", "SHARE"),
        Field("extended.backoutRequeueQueueName", "BOQNAME"),
        Field("extended.backoutThreshold", "BOTHRESH"),
        Field("storage.maximumDepth", "MAXDEPTH"),
        Field("storage.maximumMessageLength", "MAXMSGL"),
        Field("storage.messageDeliverySequence", "MSGDLVSQ", {"PRIORITY": "priority", "FIFO": "fifo"}),
        Field("trigger.enabled", "TRIGGER"),
        Field("trigger.type", "TRIGTYPE", {"NONE": "none", "FIRST": "first", "EVERY": "every", "DEPTH": "depth"}),
        Field("trigger.depth", "TRIGDPTH"),
        Field("trigger.messagePriority", "TRIGMPRI"),
        Field("trigger.data", "TRIGDATA"),
        Field("trigger.initiationQueueName", "INITQ"),
        Field("trigger.processName", "PROCESS"),
    ),
    "QSTATUS",
    (
        Field("status.currentDepth", "CURDEPTH"),
        Field("status.openInputCount", "IPPROCS"),
        Field("status.openOutputCount", "OPPROCS"),
        Field("status.oldestMessageAge", "MSGAGE"),
    ),
)
SUBSCRIPTION: Final = Resource(
    "subscription",
    "SUB",
    "SUB",
    (Field("name", "SUB"), Field("id", "SUBID"), Field("resolvedTopicString", "TOPICSTR")),
    (
        Field("destination.name", "DEST"),
        Field("destination.qmgrName", "DESTQMGR"),
        Field("destination.correlationId", "DESTCORL"),
        Field("destination.isManaged", "DESTCLAS", {"MANAGED": True, "PROVIDED": False}),
        Field("extended.deliverOnRequest", "REQONLY", _YES),
        Field("extended.expiry", "EXPIRY", {"UNLIMITED": -1}),
        Field("extended.group", "GROUPSUB", _YES),
        Field("extended.level", "SUBLEVEL"),
        Field("extended.messagePriority", "PUBPRTY", {"ASPUB": "asPublished", "ASQDEF": "asQueue"}),
        Field(
            "extended.messagePropertyControl",
            "PSPROP",
            {"COMPAT": "compatible", "MSGPROP": "messageProperty", "NONE": "none", "RFH2": "rfh2"},
        ),
        Field("extended.networkScope", "SUBSCOPE", {"ALL": "all", "QMGR": "qmgr"}),
        Field("extended.wildcard", "WSCHEMA", {"TOPIC": "topic", "CHAR": "character"}),
        Field("extended.filterString", "SELECTOR"),
        Field("general.isDurable", "DURABLE", _YES),
        Field("general.type", "SUBTYPE", {"ADMIN": "administrative", "API": "api", "PROXY": "proxy"}),
        Field("topic.name", "TOPICOBJ"),
        Field("user.accountingToken", "PUBACCT"),
        Field("user.applicationIdentityData", "PUBAPPID"),
        Field("user.data", "USERDATA"),
        Field("user.name", "SUBUSER"),
        Field("user.override", "VARUSER", {"ANY": True, "FIXED": False}),
    ),
)
CHANNEL: Final = Resource(
    "channel",
    "CHANNEL",
    "CHANNEL",
    (
        Field("name", "CHANNEL"),
        Field(
            "type",
            "CHLTYPE",
            {"SVRCONN": "serverConnection", "CLUSRCVR": "clusterReceiver", "CLUSSDR": "clusterSender"},
        ),
    ),
    (
        Field("general.description", "DESCR"),
        Field("general.maximumMessageLength", "MAXMSGL"),
        Field("general.heartbeatInterval", "HBINT"),
        Field("general.transportType", "TRPTYPE", {"TCP": "tcp"}),
        Field("connectionManagement.maximumInstances", "MAXINST"),
        Field("connectionManagement.maximumInstancesPerClient", "MAXINSTC"),
        Field("connectionManagement.sharedConversations", "SHARECNV"),
        Field("connection.host", "CONNAME"),
        Field("cluster.name", "CLUSTER"),
        Field("receiverSecurity.channelAgentUserId", "MCAUSER"),
        Field("transportSecurity.cipherSpecification", "SSLCIPH"),
        Field("transportSecurity.certificatePeerName", "SSLPEER"),
        Field("transportSecurity.requirePartnerCertificate", "SSLCAUTH", {"REQUIRED": True, "OPTIONAL": False}),
    ),
    "CHSTATUS",
    (Field("status.state", "STATUS", {"RUNNING": "running"}), Field("status.connectionHost", "CONNAME")),
)
QMGR: Final = Resource(
    "qmgr",
    "QMGR",
    "QMNAME",
    (Field("name", "QMNAME"),),
    (
        Field("extended.description", "DESCR"),
        Field("extended.deadLetterQueueName", "DEADQ"),
        Field("extended.publishSubscribeMode", "PSMODE"),
        Field("extended.publishSubscribeParent", "PARENT"),
    ),
    "QMSTATUS",
    (Field("status.connectionCount", "CONNS"), Field("status.channelInitiatorState", "CHINIT")),
)
RESOURCES: Final = (QUEUE, SUBSCRIPTION, CHANNEL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the query of a GET asks for. name: full or generic. type: "" for all."""

    name: str = "*"
    type: str = ""
    attributes: str = ""
    status: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], name: str = "") -> Asked:
        """Raises JsonCommandError for a parameter that is not known, or two names."""
        known = ("name", "type", "attributes", "status")
        for key in query:
            if key not in known or (key == "name" and name):
                raise JsonCommandError(key, f"this query parameter is not known here; known are {', '.join(known)}")
        kind = query.get("type", "all")
        return cls(
            name or query.get("name", "*"),
            "" if kind == "all" else kind,
            query.get("attributes", ""),
            query.get("status", ""),
        )


def display(target: str, name: str | None = None) -> Command:
    """``DISPLAY target(name) ALL``."""
    return Command("DISPLAY", target, None if name is None else Value(name, quoted=True), (Keyword("ALL", None),))


def shown(resource: Resource, asked: Asked, rows: Sequence[Row], status: Sequence[Row] = ()) -> list[dict[str, Any]]:
    """The objects in JSON. status: rows of the DISPLAY of their status. Raises JsonCommandError."""
    attributes = list(_chosen(resource.attributes, asked.attributes, "attributes"))
    of_status = list(_chosen(resource.of_status, asked.status, "status"))
    by_name: dict[Shown, list[Row]] = {}
    for row in status:
        by_name.setdefault(row[resource.names], []).append(row)
    found = []
    for row in rows:
        made = _made((*resource.always, *attributes), row)
        if asked.type and made.get("type") != asked.type:
            continue
        if of_status:
            there = [_made(of_status, each)["status"] for each in by_name.get(row[resource.names], ())]
            if resource is CHANNEL:
                made["currentStatus"] = there
            elif there:
                made["status"] = there[0]
        found.append(made)
    return found


def _chosen(fields: Sequence[Field], asked: str, called: str) -> Iterator[Field]:
    """The fields that *asked* names: ``*``, a section, or places with commas between."""
    for word in filter(None, asked.split(",")):
        there = [field for field in fields if word == "*" or f"{field.place}.".startswith(f"{word}.")]
        if not there:
            raise JsonCommandError(called, f"{word} is not known; known are {', '.join(each.place for each in fields)}")
        yield from there


def _made(fields: Sequence[Field], row: Row) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in fields:
        if field.keyword not in row:
            continue
        *sections, last = field.place.split(".")
        at = made
        for section in sections:
            at = at.setdefault(section, {})
        at[last] = field.of(row)
    return made


def changed_queue(verb: str, name: str, body: object, kinds: Mapping[str, str]) -> Command:
    """DEFINE or ALTER of a queue. kinds: the type of each queue that is there, where *body* has none.

    Raises JsonCommandError.
    """
    given = dict(_places("", body))
    for key in ("name", "type"):
        if key in given and not isinstance(given[key], str):
            raise JsonCommandError(key, "a text is expected")
    kind = given.pop("type", kinds.get(name, "local"))
    target = next((word for word, meaning in _TYPES.items() if meaning == kind), None)
    if target is None:
        raise JsonCommandError("type", f"{kind} is not one of {', '.join(_TYPES.values())}")
    given.pop("name", None)
    by_place = {field.place: field for field in QUEUE.attributes}
    unknown = next((place for place in given if place not in by_place), None)
    if unknown is not None:
        raise JsonCommandError(unknown, "this attribute is not known here")
    keywords = tuple(by_place[place].keyword_for(value) for place, value in given.items())
    return Command(verb, target, Value(name, quoted=True), keywords)


def _places(above: str, body: object) -> Iterator[tuple[str, Any]]:
    """The values in *body*, each with its place."""
    if not isinstance(body, dict):
        raise JsonCommandError(above or "body", "a JSON object is expected")
    for key, value in body.items():
        place = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            yield from _places(place, value)
        else:
            yield place, value


def kinds_of(rows: Sequence[Row]) -> dict[str, str]:
    """The type of each queue of DISPLAY QUEUE."""
    return {str(row["QUEUE"]): _TYPES[str(row["TYPE"])] for row in rows}
