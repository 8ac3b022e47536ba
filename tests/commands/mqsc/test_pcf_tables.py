"""The tables of PCF beside those of MQSC, and beside IBM's own constants in the ibmmq package (PCF-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.attribute_kinds import Attribute, Choice, Number
from commands.mqsc import attributes as mqsc, channel_attributes as channels
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.pcf import attributes as pcf
from commands.mqsc.pcf.commands import COMMANDS
from rfh2 import pcf_admin_names, pcf_names
from tests.rfh2.peers import IBMMQ, needs_ibmmq

# GROUPSUB is the bridge's own.
WITHOUT_A_PARAMETER = {"GROUPSUB"}
KINDS = [
    *(mqsc.TOPIC, mqsc.QLOCAL, mqsc.QMODEL, mqsc.QALIAS, mqsc.NAMELIST, mqsc.QMGR, mqsc.SUB),
    *(channels.CHANNEL, channels.SERVER_CHANNEL, channels.AUTHINFO, channels.LISTENER, channels.CHLAUTH),
]
TABLES = {
    "topic": pcf.TOPIC_SHOWN,
    "channel": pcf.CHANNEL,
    "member": pcf.CLUSTER_QMGR,
    "queue": pcf.QUEUE,
    "namelist": pcf.NAMELIST,
    "qmgr": pcf.QMGR,
    "subscription": pcf.SUBSCRIPTION,
    "sub-status": pcf.SUB_STATUS,
    "topic-status": pcf.TOPIC_STATUS,
    "topic-status-sub": pcf.TOPIC_STATUS_SUB,
    "pubsub": pcf.PUBSUB,
    "authinfo": pcf.AUTHINFO,
    "listener": pcf.LISTENER,
    "rule": pcf.CHANNEL_RULE,
    "authority": pcf.AUTHORITY_RECORD,
    "connection": pcf.CONNECTION,
    "queue-status": pcf.QUEUE_STATUS,
    "channel-status": pcf.CHANNEL_STATUS,
    "listener-status": pcf.LISTENER_STATUS,
    "qmgr-status": pcf.QMGR_STATUS,
}


@pytest.mark.rule("PCF-5")
@pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.word}-{len(kind.attributes)}" for kind in KINDS])
def test_every_attribute_of_mqsc_has_its_parameter_and_its_words(kind: ObjectKind) -> None:
    for attribute in kind.attributes:
        if attribute.keyword in WITHOUT_A_PARAMETER:
            continue
        assert attribute.number, attribute.keyword
        if isinstance(attribute.kind, Choice | Number):
            assert set(attribute.kind.meanings) <= set(attribute.kind.numbers), attribute.keyword


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_has_each_keyword_and_each_number_once(table: tuple[Attribute, ...]) -> None:
    assert len({attribute.keyword for attribute in table}) == len(table)
    assert len({attribute.number for attribute in table}) == len(table)


@pytest.mark.rule("PCF-5")
@needs_ibmmq
def test_the_numbers_are_ibms() -> None:
    """Of all constants; some names are defined only in the C header that no package has."""
    theirs = {**vars(IBMMQ.CMQC), **vars(IBMMQ.CMQXC), **vars(IBMMQ.CMQCFC)}
    ours = {
        name: value
        for module in (pcf_names, pcf_admin_names)
        for name, value in vars(module).items()
        if name.startswith("MQ") and isinstance(value, int)
    }
    unknown = {name for name in ours if name not in theirs}
    assert unknown <= {"MQZAET_PRINCIPAL", "MQZAET_GROUP", "MQIACF_Q_TYPES"}
    assert {name: value for name, value in ours.items() if name not in unknown and theirs[name] != value} == {}


def test_each_command_is_tried() -> None:
    tests = [Path(__file__).with_name("test_pcf_admin.py"), Path(__file__).parents[1] / "listener/test_connections.py"]
    tried = "".join(path.read_text() for path in tests)
    names = {value: name for name, value in vars(pcf_admin_names).items() if name.startswith("MQCMD_")}
    names |= {value: name for name, value in vars(pcf_names).items() if name.startswith("MQCMD_")}
    assert [names[number] for number in COMMANDS if names[number] not in tried] == []
