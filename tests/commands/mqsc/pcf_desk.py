"""A queue manager whose command server is asked with PCF, and the answers as tables are written.

desk = Desk(store)
desk.ask(c.MQCMD_INQUIRE_TOPIC, Cfst.of(c.MQCA_TOPIC_NAME, "*"))
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.objects import ADMIN_COMMAND_QUEUE
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQMT_REQUEST
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfbs, Cfil, Cfin, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import MQCA_Q_NAME, MQCA_TOPIC_STRING

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REPLY = "REPLY.Q"
MSG_ID = b"request".ljust(24, b"\1")

Value = int | str | bytes | tuple[Any, ...]


@dataclass(frozen=True)
class Reply:
    """One response: its descriptor, what it is, and its parameters by number."""

    mqmd: Mqmd
    body: bytes
    pcf: Pcf

    @property
    def values(self) -> dict[int, Value]:
        """Each parameter's value; the blanks that fill names up are left out."""
        return {parameter.parameter: value_of(parameter) for parameter in self.pcf.parameters}


def value_of(parameter: Parameter) -> Value:
    """What a parameter says."""
    if isinstance(parameter, Cfin):
        return parameter.value
    if isinstance(parameter, Cfst):
        return parameter.text.rstrip(" ")
    if isinstance(parameter, Cfsl):
        return parameter.texts
    if isinstance(parameter, Cfil):
        return parameter.values
    assert isinstance(parameter, Cfbs)
    return parameter.data


class Desk:
    """Puts PCF commands and reads what is answered. user: who puts them."""

    def __init__(self, store: QueueManagerStore, groups_of: GroupsOf = no_groups) -> None:
        self.store, self.now = store, NOW
        self.processor = Processor(store, lambda: self.now, groups_of=groups_of, command_servers=[PcfCommandServer])

    def ask(self, command: int, *parameters: Parameter, user: str = "admin", **settings: Any) -> list[Reply]:
        """Put one command, run the processor, and take the answers off the reply queue."""
        order: ByteOrder = settings.pop("order", "little")
        body = Pcf(command, parameters, order=order, **settings.pop("header", {})).encode()
        return self.put(body, user=user, order=order, **settings)

    def put(self, body: bytes, *, user: str = "admin", order: ByteOrder = "little", **mqmd: Any) -> list[Reply]:
        """The same for any message."""
        described = Mqmd(
            **{
                "format": "MQADMIN",
                "msg_type": MQMT_REQUEST,
                "msg_id": MSG_ID,
                "reply_to_q": REPLY,
                "user_identifier": user,
                "encoding": 273 if order == "big" else 546,
                "coded_char_set_id": 1208,
                "priority": 0,
                "persistence": 0,
                **mqmd,
            }
        )
        with self.store.unit_of_work() as unit:
            unit.put(ADMIN_COMMAND_QUEUE, described.encode(), body, time=self.now, user=user)
        self.processor.drain()
        return self.replies()

    def replies(self, queue: str = REPLY) -> list[Reply]:
        """What is on the reply queue, which is empty then."""
        found = []
        with self.store.unit_of_work() as unit:
            while unit.find_queue(queue) is not None and (message := unit.get(queue)) is not None:
                read = decode(message.body, message.md)
                found.append(Reply(read.mqmd, message.body, decode_pcf(read.body, read.body_ccsid)))
        return found

    def later(self, **by: float) -> None:
        """Let time pass."""
        self.now += timedelta(**by)

    def reasons(self, command: int, *parameters: Parameter, **settings: Any) -> list[tuple[int, int, dict[int, Value]]]:
        """CompCode, Reason and parameters of each response."""
        return [(r.pcf.comp_code, r.pcf.reason, r.values) for r in self.ask(command, *parameters, **settings)]

    def done(self, command: int, *parameters: Parameter, **settings: Any) -> None:
        """A command that is done: one response without parameters says so."""
        assert self.reasons(command, *parameters, **settings) == [(0, 0, {})]

    def refused(
        self, reason: int, command: int, *parameters: Parameter, culprit: int | None = None, **settings: Any
    ) -> None:
        """A command that fails: the reason, with the parameter in error where there is one, and the summary."""
        told = {} if culprit is None else {1012: culprit}
        assert self.reasons(command, *parameters, **settings) == [(2, reason, told), (2, 3008, {})]

    def rows(self, command: int, *parameters: Parameter, **settings: Any) -> list[dict[int, Value]]:
        """What an Inquire command finds."""
        replies = self.ask(command, *parameters, **settings)
        assert [(r.pcf.comp_code, r.pcf.reason) for r in replies] == [(0, 0)] * len(replies)
        assert [r.pcf.msg_seq_number for r in replies] == list(range(1, len(replies) + 1))
        assert [r.pcf.control for r in replies] == [0] * (len(replies) - 1) + [1]
        return [r.values for r in replies]


def topic(name: str) -> Cfst:
    return Cfst.of(c.MQCA_TOPIC_NAME, f"{name:48}")


def topic_string(text: str) -> Cfst:
    return Cfst.of(MQCA_TOPIC_STRING, text)


def queue(name: str) -> Cfst:
    return Cfst.of(MQCA_Q_NAME, name)


def namelist(name: str) -> Cfst:
    return Cfst.of(c.MQCA_NAMELIST_NAME, name)


def sub(name: str) -> Cfst:
    return Cfst.of(c.MQCACF_SUB_NAME, name)


def dest(name: str) -> Cfst:
    return Cfst.of(c.MQCACF_DESTINATION, name)


def channel(name: str) -> Cfst:
    return Cfst.of(c.MQCACH_CHANNEL_NAME, f"{name:20}")


def cluster(name: str) -> Cfst:
    return Cfst.of(c.MQCA_CLUSTER_NAME, name)


def profile(name: str) -> Cfst:
    return Cfst.of(c.MQCACF_AUTH_PROFILE_NAME, name)


RECEIVER = Cfin(c.MQIACH_CHANNEL_TYPE, c.MQCHT_CLUSRCVR)
LOCAL = Cfin(c.MQIA_Q_TYPE, c.MQQT_LOCAL)
