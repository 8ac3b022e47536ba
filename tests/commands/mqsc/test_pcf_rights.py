"""Who may do what with PCF (guide 5): authority records decide, once there is one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from commands.broker.objects import AuthorityRecord, QueueManager
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.pcf import Cfin, Cfst, Parameter
from rfh2.pcf_names import MQCA_Q_NAME, MQCMD_CLEAR_TOPIC_STRING
from tests.commands.mqsc.pcf_desk import (
    LOCAL,
    NOW,
    RECEIVER,
    Desk,
    channel,
    cluster,
    dest,
    queue,
    sub,
    topic,
    topic_string,
)

DSP = ("QMGR", "QM1", ("DSP",))
CHG_QMGR = ("QMGR", "QM1", ("CHG", "DSP"))
Record = tuple[str, str, tuple[str, ...]]


def groups_of(user: str) -> Collection[str]:
    return {"ops": ("operators",), "root": ("mqm",)}.get(user, ())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Topic T at a/b, queue Q, subscription S at a/b/#, a channel that makes a member of SALES; then the first record.

    ``root``, of group mqm, may do all.
    """
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: NOW) as store:
        desk = Desk(store, groups_of)
        desk.done(c.MQCMD_CREATE_TOPIC, topic("T"), topic_string("a/b"))
        desk.done(c.MQCMD_CREATE_Q, queue("Q"), LOCAL)
        desk.done(c.MQCMD_CREATE_SUBSCRIPTION, sub("S"), topic_string("a/b/#"), dest("Q"))
        desk.done(c.MQCMD_CREATE_CHANNEL, channel("SALES.QM1"), RECEIVER, cluster("SALES"))
        grant(desk, "nobody-else", ("TOPIC", "NONE", ("PUB",)))
        yield desk


def grant(desk: Desk, group: str, *records: Record) -> None:
    with desk.store.unit_of_work() as unit:
        for object_type, profile, authorities in records:
            unit.save_definition(AuthorityRecord(object_type, profile, "GROUP", group, authorities))
    desk.processor = Desk(desk.store, groups_of).processor


RETAINED = Cfin(c.MQIACF_CLEAR_TYPE, c.MQCLRT_RETAINED)

# (id, command, parameters, the records that it needs beside DSP of the queue manager)
NEEDS: list[tuple[str, int, tuple[Parameter, ...], tuple[Record, ...]]] = [
    ("ping", c.MQCMD_PING_Q_MGR, (), ()),
    ("inquire-qmgr", c.MQCMD_INQUIRE_Q_MGR, (), ()),
    ("change-qmgr", c.MQCMD_CHANGE_Q_MGR, (Cfin(c.MQIA_TREE_LIFE_TIME, 1),), (CHG_QMGR,)),
    ("inquire-topic", c.MQCMD_INQUIRE_TOPIC, (topic("T"),), (("TOPIC", "T", ("DSP",)),)),
    ("create-topic", c.MQCMD_CREATE_TOPIC, (topic("N"), topic_string("n")), (("TOPIC", "N", ("CRT",)),)),
    (
        "replace-topic",
        c.MQCMD_CREATE_TOPIC,
        (topic("T"), topic_string("a/b"), Cfin(c.MQIACF_REPLACE, 1)),
        (("TOPIC", "T", ("CHG",)),),
    ),
    ("change-topic", c.MQCMD_CHANGE_TOPIC, (topic("T"),), (("TOPIC", "T", ("CHG",)),)),
    ("delete-topic", c.MQCMD_DELETE_TOPIC, (topic("T"),), (("TOPIC", "T", ("DLT",)),)),
    ("create-queue", c.MQCMD_CREATE_Q, (queue("N.Q"), LOCAL), (("QUEUE", "N.**", ("CRT",)),)),
    ("clear-queue", c.MQCMD_CLEAR_Q, (queue("Q"),), (("QUEUE", "Q", ("CLR",)),)),
    ("clear-topic-string", MQCMD_CLEAR_TOPIC_STRING, (topic_string("a/b/c"), RETAINED), (("TOPIC", "T", ("CLR",)),)),
    (
        "create-subscription",
        c.MQCMD_CREATE_SUBSCRIPTION,
        (sub("N"), topic_string("a/b/+"), dest("Q")),
        (("TOPIC", "T", ("CTRL",)), ("QUEUE", "Q", ("PUT",))),
    ),
    (
        "change-subscription",
        c.MQCMD_CHANGE_SUBSCRIPTION,
        (sub("S"), Cfst.of(c.MQCACF_SUB_USER_DATA, "u")),
        (("TOPIC", "T", ("CTRL",)),),
    ),
    ("create-channel", c.MQCMD_CREATE_CHANNEL, (channel("C"), RECEIVER), (CHG_QMGR,)),
    ("suspend", c.MQCMD_SUSPEND_Q_MGR_CLUSTER, (cluster("SALES"),), (CHG_QMGR,)),
    ("resume", c.MQCMD_RESUME_Q_MGR_CLUSTER, (cluster("SALES"),), (CHG_QMGR,)),
    ("refresh-cluster", c.MQCMD_REFRESH_CLUSTER, (cluster("SALES"),), (CHG_QMGR,)),
    ("change-channel", c.MQCMD_CHANGE_CHANNEL, (channel("SALES.QM1"), RECEIVER), (CHG_QMGR,)),
    ("inquire-channel", c.MQCMD_INQUIRE_CHANNEL, (channel("SALES.QM1"),), ()),
    ("inquire-members", c.MQCMD_INQUIRE_CLUSTER_Q_MGR, (Cfst.of(c.MQCA_CLUSTER_Q_MGR_NAME, "*"),), ()),
    ("delete-channel", c.MQCMD_DELETE_CHANNEL, (channel("SALES.QM1"),), (CHG_QMGR,)),
    ("delete-subscription", c.MQCMD_DELETE_SUBSCRIPTION, (sub("S"),), (("TOPIC", "T", ("CTRL",)),)),
    ("inquire-subscription", c.MQCMD_INQUIRE_SUBSCRIPTION, (sub("S"),), (("TOPIC", "T", ("DSP",)),)),
]


@pytest.mark.rule("PCF-4")
@pytest.mark.parametrize(
    ("command", "parameters", "records"), [row[1:] for row in NEEDS], ids=[row[0] for row in NEEDS]
)
def test_what_a_command_needs(
    desk: Desk, command: int, parameters: tuple[Parameter, ...], records: tuple[Record, ...]
) -> None:
    needed = records if any(record[0] == "QMGR" for record in records) else (DSP, *records)
    for missing in needed:
        others = [record for record in needed if record is not missing]
        grant(desk, "operators", *others, (missing[0], missing[1], ()))
        refused = 2428 if command == c.MQCMD_INQUIRE_SUBSCRIPTION and missing is not DSP else 2035
        assert [r.pcf.reason for r in desk.ask(command, *parameters, user="ops")] == [refused, 3008]
    grant(desk, "operators", *needed)
    assert {r.pcf.reason for r in desk.ask(command, *parameters, user="ops")} == {0}


def test_a_user_of_group_mqm_may_do_everything(desk: Desk) -> None:
    for _, command, parameters, _ in NEEDS[:5]:
        assert {r.pcf.reason for r in desk.ask(command, *parameters, user="root")} == {0}


@pytest.mark.rule("PCF-4")
def test_what_a_generic_name_means_is_told_as_far_as_it_may_be_seen(desk: Desk) -> None:
    """Selected attributes too: what a subscription is of is looked up, not read off the response."""
    desk.done(c.MQCMD_CREATE_SUBSCRIPTION, sub("HIDDEN"), topic_string("z"), dest("Q"), user="root")
    grant(desk, "operators", DSP, ("TOPIC", "T", ("DSP",)), ("QUEUE", "Q", ("DSP",)))
    queues = desk.rows(c.MQCMD_INQUIRE_Q, queue("*"), user="ops")
    assert [row[MQCA_Q_NAME] for row in queues] == ["Q"]
    rows = desk.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"), user="ops")
    assert [row[c.MQCACF_SUB_NAME] for row in rows] == ["S"]
    desk.refused(2085, c.MQCMD_INQUIRE_NAMELIST, Cfst.of(c.MQCA_NAMELIST_NAME, "*"), user="ops")
    names = desk.rows(c.MQCMD_INQUIRE_TOPIC_NAMES, topic("*"), user="ops")
    assert names == [{c.MQCACF_TOPIC_NAMES: ("T",)}]


def test_nobody_makes_a_subscription_that_delivers_where_he_may_not_put(desk: Desk) -> None:
    grant(desk, "operators", DSP, ("TOPIC", "T", ("CTRL",)))
    parameters = (sub("N"), topic_string("a/b/c"), dest("SYSTEM.BROKER.CONTROL.QUEUE"))
    desk.refused(2035, c.MQCMD_CREATE_SUBSCRIPTION, *parameters, user="ops")
    desk.refused(2035, c.MQCMD_CHANGE_SUBSCRIPTION, sub("S"), dest("SYSTEM.BROKER.CONTROL.QUEUE"), user="ops")
