"""Programs of before the MQRFH2 in the small world of ``scenario``: they put MQRFH strings and PCF.

world = OlderScenario()
world.rfh1("MQPSCommand RegSub MQPSTopic Sport/*", reply_to="SUB.Q")
world.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "Sport/*"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfin, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import COMMAND_NAMES
from rfh2.rfh1 import Rfh1
from streams.topic_objects import QUEUE_NAMELIST, Namelist, TopicObject, Wildcard
from tests.commands.scenario import MSG_ID, Received, Result, Scenario

SPORT = "SPORT.STREAM"
STREAMS = ("SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.ADMIN.STREAM", SPORT)


@dataclass(frozen=True)
class Group:
    """One group of an MQRFH response, or one MQCFH of a PCF response with what it says."""

    comp_code: int
    reason: int
    text: str | None = None
    details: tuple[tuple[str, str], ...] = ()


class OlderScenario(Scenario):
    """A world with one named stream, SPORT.STREAM, whose topics lie below ``Sport``."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.objects.put(TopicObject(name=SPORT, topic_string="Sport", wildcard=Wildcard.BLOCK))
        self.objects.put(Namelist(QUEUE_NAMELIST, STREAMS))

    def rfh1(
        self,
        string: str | bytes,
        queue: str | None = None,
        data: bytes = b"",
        *,
        user: str | None = "app1",
        reply_to: str = "REPLY.Q",
        request: bool = True,
        fmt: str = "MQSTR",
        order: ByteOrder = "little",
        charset: str = "latin-1",
        codec: str | None = None,
        body_ccsid: int = -2,
        **mqmd: Any,
    ) -> Result:
        """Put one MQRFH. queue: the default stream for a publication and its deletion, else the control queue.

        codec: of the string, where it is not that of the fixed part. Bytes are put as they are.
        """
        if isinstance(string, str):
            written = (string + "\0").encode(codec or charset)
            written += bytes(-len(written) % 4)
        else:
            written = string
        header = Rfh1(written, 273 if order == "big" else 546, body_ccsid, fmt if data else "", 0, order, charset)
        settings = self._settings(user, reply_to, request, order, {"coded_char_set_id": 819, **mqmd})
        described = Mqmd(**{"format": "MQHRF", **settings})
        if queue is None:
            text = string if isinstance(string, str) else ""
            queue = DEFAULT_STREAM if "Publish" in text or "DeletePub" in text else CONTROL_QUEUE
        return self.put(queue, described.encode(), encode(Message(described, (header,), data)), user=user)

    def pcf(
        self,
        word: str | int,
        *parameters: Parameter,
        queue: str | None = None,
        data: bytes = b"",
        user: str | None = "app1",
        reply_to: str = "REPLY.Q",
        request: bool = True,
        order: ByteOrder = "little",
        kind: int = 1,
        **mqmd: Any,
    ) -> Result:
        """Put one PCF message. queue: as for ``rfh1``."""
        number = word if isinstance(word, int) else COMMANDS[word]
        body = Pcf(number, parameters, kind, order=order, rest=data).encode()
        settings = self._settings(user, reply_to, request, order, {"coded_char_set_id": 819, **mqmd})
        if queue is None:
            queue = DEFAULT_STREAM if word in ("Publish", "DeletePub") else CONTROL_QUEUE
        described = Mqmd(**{"format": "MQPCF", **settings})
        return self.put(queue, described.encode(), body, user=user)

    @staticmethod
    def _settings(
        user: str | None, reply_to: str, request: bool, order: ByteOrder, mqmd: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "msg_type": MQMT_REQUEST if request else MQMT_DATAGRAM,
            "msg_id": MSG_ID,
            "priority": 0,
            "persistence": 0,
            "reply_to_q": reply_to,
            "user_identifier": user or "",
            "encoding": 273 if order == "big" else 546,
            **mqmd,
        }


COMMANDS = {
    "DeletePub": 60,
    "DeregPub": 61,
    "DeregSub": 62,
    "Publish": 63,
    "RegPub": 64,
    "RegSub": 65,
    "ReqUpdate": 66,
}
assert all(number in COMMAND_NAMES for number in COMMANDS.values())


def nvs(received: Received) -> str:
    """The NameValueString of a message, up to its null."""
    header = received.message.rfh1
    assert header is not None
    return header.text


def pairs(received: Received) -> list[tuple[str, str]]:
    """Names and values of a message's MQRFH."""
    header = received.message.rfh1
    assert header is not None
    return header.pairs()


def rfh1_groups(received: Received) -> list[Group]:
    """The groups of an MQRFH response."""
    found: list[Group] = []
    names = pairs(received)
    for at, (name, value) in enumerate(names):
        if name == "MQPSCompCode":
            assert [n for n, _ in names[at : at + 3]] == ["MQPSCompCode", "MQPSReason", "MQPSReasonText"]
            found.append(Group(int(value), int(names[at + 1][1]), names[at + 2][1]))
        elif name not in ("MQPSReason", "MQPSReasonText"):
            found[-1] = replace(found[-1], details=(*found[-1].details, (name, value)))
    return found


def pcf_of(received: Received) -> Pcf:
    """The PCF message in a body."""
    return decode_pcf(received.message.body, received.message.body_ccsid)


def pcf_values(pcf: Pcf) -> list[tuple[int, str | int]]:
    """Parameter and value of each string and integer."""
    found: list[tuple[int, str | int]] = []
    for parameter in pcf.parameters:
        assert isinstance(parameter, Cfin | Cfst)
        found.append((parameter.parameter, parameter.text if isinstance(parameter, Cfst) else parameter.value))
    return found


def pcf_groups(received: Received) -> list[tuple[int, int, list[tuple[int, str | int]]]]:
    """CompCode, Reason and parameters of each MQCFH of a PCF response."""
    found = []
    body = received.message.body
    while body:
        pcf = decode_pcf(body, received.message.body_ccsid)
        assert pcf.type == 2
        found.append((pcf.comp_code, pcf.reason, pcf_values(pcf)))
        body = pcf.rest
    return found


def rfh1_refused(result: Result, reason: int, *details: tuple[str, str]) -> None:
    """Assert that a request was refused in an MQRFH: one group, failed, that reason, those details, no other put."""
    groups = rfh1_groups(result.response)
    assert [(group.comp_code, group.reason, group.details) for group in groups] == [(2, reason, details)]
    assert len(result.puts) == 1
    assert not result.outcome.effects


def rfh1_done(result: Result) -> None:
    """Assert that a request was answered with ok in an MQRFH."""
    assert nvs(result.response) == "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE"


def string(parameter: int, *texts: str) -> Sequence[Cfst]:
    """PCF string parameters."""
    return [Cfst.of(parameter, text) for text in texts]
