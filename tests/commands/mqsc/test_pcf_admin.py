"""PCF commands on SYSTEM.ADMIN.COMMAND.QUEUE: what each takes, does and answers.

Requests are tables of parameters; the responses are told as numbers, as programs see them. That the attributes do what
MQSC's do needs no telling: the same code carries them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import ADMIN_COMMAND_QUEUE, CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import pcf_admin_names as c
from rfh2.constants import MQMT_DATAGRAM, MQRO_NAN, MQRO_PAN, MQRO_PASS_CORREL_ID, MQRO_PASS_MSG_ID
from rfh2.folders import Folder
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfbf, Cfbs, Cfgr, Cfif, Cfil, Cfin, Cfsf, Cfsl, Cfst, Parameter, Pcf
from rfh2.pcf_names import MQBACF_SUB_ID, MQCA_Q_MGR_NAME, MQCA_Q_NAME, MQCA_TOPIC_STRING, MQCMD_CLEAR_TOPIC_STRING
from rfh2.rfh2 import Rfh2
from tests.commands.mqsc.pcf_desk import (
    LOCAL,
    MSG_ID,
    NOW,
    RECEIVER,
    REPLY,
    Desk,
    Value,
    channel,
    cluster,
    dest,
    namelist,
    profile,
    queue,
    sub,
    topic,
    topic_string,
)

Numbers = dict[int, Value]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: NOW) as store:
        yield Desk(store)


ALIAS = Cfin(c.MQIA_Q_TYPE, c.MQQT_ALIAS)
REPLACE = Cfin(c.MQIACF_REPLACE, c.MQRP_YES)
TOPIC_TYPE = Cfin(c.MQIACF_OBJECT_TYPE, c.MQOT_TOPIC)

CLIENTS = Cfin(c.MQIACH_CHANNEL_TYPE, c.MQCHT_SVRCONN)
AUTHINFO = Cfst.of(c.MQCA_AUTH_INFO_NAME, "A")
LISTENER = Cfst.of(c.MQCACH_LISTENER_NAME, "L")

Request = tuple[int, tuple[Parameter, ...]]

JOIN: Request = (c.MQCMD_CREATE_CHANNEL, (channel("C"), RECEIVER, cluster("SALES")))

# (id, what was done before, the command that is tried, the Inquire command that shows it, some of what that shows)
CHANGES: list[tuple[str, list[Request], Request, Request, list[Numbers]]] = [
    (
        "create-topic",
        [],
        (c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a/b"), Cfin(c.MQIA_INHIBIT_SUB, c.MQTA_SUB_INHIBITED))),
        (c.MQCMD_INQUIRE_TOPIC, (topic("T"),)),
        [{c.MQCA_TOPIC_NAME: "T", MQCA_TOPIC_STRING: "a/b", c.MQIA_INHIBIT_SUB: 1, c.MQIA_INHIBIT_PUB: 0}],
    ),
    (
        "create-topic-replace",
        [(c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), Cfst.of(c.MQCA_TOPIC_DESC, "old")))],
        (c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), REPLACE)),
        (c.MQCMD_INQUIRE_TOPIC, (topic("T"),)),
        [{c.MQCA_TOPIC_DESC: ""}],
    ),
    (
        "copy-topic",
        [(c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), Cfin(c.MQIA_WILDCARD_OPERATION, c.MQTA_BLOCK)))],
        (
            c.MQCMD_COPY_TOPIC,
            (Cfst.of(c.MQCACF_FROM_TOPIC_NAME, "T"), Cfst.of(c.MQCACF_TO_TOPIC_NAME, "U"), topic_string("b")),
        ),
        (c.MQCMD_INQUIRE_TOPIC, (topic("U"),)),
        [{MQCA_TOPIC_STRING: "b", c.MQIA_WILDCARD_OPERATION: 1}],
    ),
    (
        "change-topic",
        [(c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a")))],
        (c.MQCMD_CHANGE_TOPIC, (topic("T"), Cfin(c.MQIA_DEF_PRIORITY, 7), Cfin(c.MQIA_DURABLE_SUB, 2))),
        (c.MQCMD_INQUIRE_TOPIC, (topic("T"),)),
        [{c.MQIA_DEF_PRIORITY: 7, c.MQIA_DURABLE_SUB: 2}],
    ),
    (
        "create-queue",
        [],
        (
            c.MQCMD_CREATE_Q,
            (queue("Q"), LOCAL, Cfin(c.MQIA_MAX_Q_DEPTH, 10), Cfin(c.MQIA_DEF_PERSISTENCE, 1), Cfin(8, 1)),
        ),
        (c.MQCMD_INQUIRE_Q, (queue("Q"),)),
        [{c.MQIA_Q_TYPE: 1, c.MQIA_MAX_Q_DEPTH: 10, c.MQIA_DEF_PERSISTENCE: 1, c.MQIA_CURRENT_Q_DEPTH: 0}],
    ),
    (
        "create-alias",
        [],
        (c.MQCMD_CREATE_Q, (queue("A"), ALIAS, Cfst.of(c.MQCA_BASE_OBJECT_NAME, "Q"))),
        (c.MQCMD_INQUIRE_Q, (queue("A"),)),
        [{c.MQIA_Q_TYPE: 3, c.MQCA_BASE_OBJECT_NAME: "Q", c.MQIA_BASE_TYPE: 1}],
    ),
    (
        "copy-queue",
        [(c.MQCMD_CREATE_Q, (queue("Q"), LOCAL, Cfin(c.MQIA_MAX_Q_DEPTH, 10)))],
        (c.MQCMD_COPY_Q, (Cfst.of(c.MQCACF_FROM_Q_NAME, "Q"), Cfst.of(c.MQCACF_TO_Q_NAME, "R"), LOCAL)),
        (c.MQCMD_INQUIRE_Q, (queue("R"),)),
        [{c.MQIA_MAX_Q_DEPTH: 10}],
    ),
    (
        "change-queue-that-says-no-type",
        [(c.MQCMD_CREATE_Q, (queue("A"), ALIAS, Cfst.of(c.MQCA_BASE_OBJECT_NAME, "Q")))],
        (c.MQCMD_CHANGE_Q, (queue("A"), Cfst.of(c.MQCA_BASE_OBJECT_NAME, "R"))),
        (c.MQCMD_INQUIRE_Q, (queue("A"),)),
        [{c.MQCA_BASE_OBJECT_NAME: "R"}],
    ),
    (
        "create-namelist",
        [],
        (c.MQCMD_CREATE_NAMELIST, (namelist("N"), Cfsl.of(c.MQCA_NAMES, ("A.B", "LONGER.NAME")))),
        (c.MQCMD_INQUIRE_NAMELIST, (namelist("N"),)),
        [{c.MQCA_NAMES: ("A.B", "LONGER.NAME"), c.MQIA_NAME_COUNT: 2}],
    ),
    (
        "change-namelist",
        [(c.MQCMD_CREATE_NAMELIST, (namelist("N"), Cfsl.of(c.MQCA_NAMES, ("A.B",))))],
        (c.MQCMD_CHANGE_NAMELIST, (namelist("N"), Cfsl.of(c.MQCA_NAMES, ()))),
        (c.MQCMD_INQUIRE_NAMELIST, (namelist("N"),)),
        [{c.MQCA_NAMES: (), c.MQIA_NAME_COUNT: 0}],
    ),
    (
        "copy-namelist",
        [(c.MQCMD_CREATE_NAMELIST, (namelist("N"), Cfsl.of(c.MQCA_NAMES, ("A.B",))))],
        (
            c.MQCMD_COPY_NAMELIST,
            (Cfst.of(c.MQCACF_FROM_NAMELIST_NAME, "N"), Cfst.of(c.MQCACF_TO_NAMELIST_NAME, "M")),
        ),
        (c.MQCMD_INQUIRE_NAMELIST, (namelist("M"),)),
        [{c.MQCA_NAMES: ("A.B",)}],
    ),
    (
        "create-channel",
        [],
        (c.MQCMD_CREATE_CHANNEL, (channel("C"), RECEIVER, cluster("SALES"), Cfin(1502, 2))),
        (c.MQCMD_INQUIRE_CHANNEL, (channel("*"), RECEIVER)),
        [{c.MQCACH_CHANNEL_NAME: "C", c.MQIACH_CHANNEL_TYPE: c.MQCHT_CLUSRCVR, c.MQCA_CLUSTER_NAME: "SALES"}],
    ),
    (
        "create-channel-of-clients",
        [],
        (c.MQCMD_CREATE_CHANNEL, (channel("S"), CLIENTS, Cfst.of(c.MQCACH_MCA_USER_ID, "app"), Cfin(1615, 1))),
        (c.MQCMD_INQUIRE_CHANNEL, (channel("S"),)),
        [{c.MQIACH_CHANNEL_TYPE: c.MQCHT_SVRCONN, c.MQCACH_MCA_USER_ID: "app", c.MQIACH_SHARING_CONVERSATIONS: 1}],
    ),
    (
        "create-authinfo",
        [],
        (c.MQCMD_CREATE_AUTH_INFO, (AUTHINFO, Cfin(c.MQIA_AUTH_INFO_TYPE, 3), Cfin(c.MQIA_CHECK_CLIENT_BINDING, 3))),
        (c.MQCMD_INQUIRE_AUTH_INFO, (AUTHINFO,)),
        [{c.MQIA_CHECK_CLIENT_BINDING: c.MQCHK_REQUIRED, c.MQIA_ADOPT_CONTEXT: c.MQADPCTX_YES}],
    ),
    (
        "change-authinfo",
        [(c.MQCMD_CREATE_AUTH_INFO, (AUTHINFO, Cfin(c.MQIA_AUTH_INFO_TYPE, 3)))],
        (c.MQCMD_CHANGE_AUTH_INFO, (AUTHINFO, Cfin(c.MQIA_AUTHENTICATION_FAIL_DELAY, 9))),
        (c.MQCMD_INQUIRE_AUTH_INFO, (AUTHINFO,)),
        [{c.MQIA_AUTHENTICATION_FAIL_DELAY: 9}],
    ),
    (
        "copy-authinfo",
        [(c.MQCMD_CREATE_AUTH_INFO, (AUTHINFO, Cfin(c.MQIA_AUTH_INFO_TYPE, 3), Cfin(c.MQIA_ADOPT_CONTEXT, 0)))],
        (
            c.MQCMD_COPY_AUTH_INFO,
            (
                Cfst.of(c.MQCACF_FROM_AUTH_INFO_NAME, "A"),
                Cfst.of(c.MQCACF_TO_AUTH_INFO_NAME, "B"),
                Cfin(c.MQIA_AUTH_INFO_TYPE, 3),
            ),
        ),
        (c.MQCMD_INQUIRE_AUTH_INFO, (Cfst.of(c.MQCA_AUTH_INFO_NAME, "B"),)),
        [{c.MQIA_ADOPT_CONTEXT: c.MQADPCTX_NO}],
    ),
    (
        "create-listener",
        [],
        (c.MQCMD_CREATE_LISTENER, (LISTENER, Cfin(c.MQIACH_XMIT_PROTOCOL_TYPE, 2), Cfin(c.MQIACH_PORT, 1500))),
        (c.MQCMD_INQUIRE_LISTENER, (LISTENER,)),
        [{c.MQIACH_PORT: 1500, c.MQIACH_LISTENER_CONTROL: c.MQSVC_CONTROL_MANUAL}],
    ),
    (
        "change-listener",
        [(c.MQCMD_CREATE_LISTENER, (LISTENER, Cfin(c.MQIACH_XMIT_PROTOCOL_TYPE, 2)))],
        (c.MQCMD_CHANGE_LISTENER, (LISTENER, Cfin(c.MQIACH_LISTENER_CONTROL, c.MQSVC_CONTROL_Q_MGR))),
        (c.MQCMD_INQUIRE_LISTENER, (LISTENER,)),
        [{c.MQIACH_LISTENER_CONTROL: c.MQSVC_CONTROL_Q_MGR}],
    ),
    (
        "copy-listener",
        [(c.MQCMD_CREATE_LISTENER, (LISTENER, Cfin(c.MQIACH_XMIT_PROTOCOL_TYPE, 2), Cfin(c.MQIACH_PORT, 1500)))],
        (
            c.MQCMD_COPY_LISTENER,
            (
                Cfst.of(c.MQCACF_FROM_LISTENER_NAME, "L"),
                Cfst.of(c.MQCACF_TO_LISTENER_NAME, "M"),
                Cfin(c.MQIACH_XMIT_PROTOCOL_TYPE, 2),
            ),
        ),
        (c.MQCMD_INQUIRE_LISTENER, (Cfst.of(c.MQCACH_LISTENER_NAME, "M"),)),
        [{c.MQIACH_PORT: 1500}],
    ),
    (
        "set-chlauth",
        [],
        (
            c.MQCMD_SET_CHLAUTH_REC,
            (
                channel("S"),
                Cfin(c.MQIACF_CHLAUTH_TYPE, c.MQCAUT_USERMAP),
                Cfst.of(c.MQCACH_CLIENT_USER_ID, "bob"),
                Cfst.of(c.MQCACH_MCA_USER_ID, "app"),
                Cfin(c.MQIACF_ACTION, c.MQACT_ADD),
            ),
        ),
        (c.MQCMD_INQUIRE_CHLAUTH_RECS, (channel("S"),)),
        [{c.MQIACF_CHLAUTH_TYPE: c.MQCAUT_USERMAP, c.MQIACH_USER_SOURCE: c.MQUSRC_MAP, c.MQCACH_MCA_USER_ID: "app"}],
    ),
    (
        "change-channel",
        [JOIN],
        (c.MQCMD_CHANGE_CHANNEL, (channel("C"), RECEIVER, cluster(""), Cfst.of(c.MQCACH_DESC, "D"))),
        (c.MQCMD_INQUIRE_CHANNEL, (channel("C"),)),
        [{c.MQCA_CLUSTER_NAME: "", c.MQCACH_DESC: "D", c.MQCA_CLUSTER_NAMELIST: ""}],
    ),
    (
        "copy-channel",
        [JOIN],
        (
            c.MQCMD_COPY_CHANNEL,
            (Cfst.of(c.MQCACF_FROM_CHANNEL_NAME, "C"), Cfst.of(c.MQCACF_TO_CHANNEL_NAME, "D"), RECEIVER),
        ),
        (c.MQCMD_INQUIRE_CHANNEL, (channel("D"),)),
        [{c.MQCA_CLUSTER_NAME: "SALES"}],
    ),
    (
        "suspend-cluster",
        [JOIN],
        (c.MQCMD_SUSPEND_Q_MGR_CLUSTER, (cluster("SALES"), Cfin(c.MQIACF_MODE, c.MQMODE_QUIESCE))),
        (c.MQCMD_INQUIRE_CLUSTER_Q_MGR, (Cfst.of(c.MQCA_CLUSTER_Q_MGR_NAME, "*"), cluster("S*"))),
        [
            {
                c.MQCA_CLUSTER_Q_MGR_NAME: "QM1",
                c.MQCA_CLUSTER_NAME: "SALES",
                c.MQCACH_CHANNEL_NAME: "C",
                c.MQIACF_Q_MGR_TYPE: c.MQQMT_REPOSITORY,
                c.MQIACF_Q_MGR_DEFINITION_TYPE: c.MQQMDT_CLUSTER_RECEIVER,
                c.MQIACH_CHANNEL_STATUS: c.MQCHS_INACTIVE,
                c.MQIACF_SUSPEND: c.MQSUS_YES,
            }
        ],
    ),
    (
        "resume-cluster",
        [JOIN, (c.MQCMD_SUSPEND_Q_MGR_CLUSTER, (cluster("SALES"),))],
        (c.MQCMD_RESUME_Q_MGR_CLUSTER, (cluster("SALES"),)),
        (c.MQCMD_INQUIRE_CLUSTER_Q_MGR, (Cfst.of(c.MQCA_CLUSTER_Q_MGR_NAME, "QM1"),)),
        [{c.MQIACF_SUSPEND: c.MQSUS_NO}],
    ),
    (
        "refresh-cluster",
        [JOIN],
        (
            c.MQCMD_REFRESH_CLUSTER,
            (cluster("SALES"), Cfin(c.MQIACF_REFRESH_REPOSITORY, c.MQCFO_REFRESH_REPOSITORY_NO)),
        ),
        (0, ()),
        [],
    ),
    (
        "topics-of-clusters",
        [JOIN],
        (c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), cluster("SALES"))),
        (c.MQCMD_INQUIRE_TOPIC, (topic("T"), Cfin(c.MQIACF_CLUSTER_INFO, 0))),
        [
            {c.MQIA_TOPIC_TYPE: c.MQTOPT_LOCAL},
            {
                c.MQIA_TOPIC_TYPE: c.MQTOPT_CLUSTER,
                c.MQCA_CLUSTER_Q_MGR_NAME: "QM1",
                c.MQIA_CLUSTER_OBJECT_STATE: c.MQCLST_ACTIVE,
                c.MQCA_CLUSTER_NAME: "SALES",
            },
        ],
    ),
    (
        "topics-of-clusters-alone",
        [JOIN],
        (c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), cluster("SALES"))),
        (c.MQCMD_INQUIRE_TOPIC, (topic("*"), Cfin(c.MQIA_TOPIC_TYPE, c.MQTOPT_CLUSTER))),
        [{c.MQCA_TOPIC_NAME: "T", c.MQIA_CLUSTER_PUB_ROUTE: c.MQCLROUTE_DIRECT}],
    ),
    (
        "change-qmgr",
        [],
        (c.MQCMD_CHANGE_Q_MGR, (Cfin(c.MQIA_PUBSUB_NP_RESP, c.MQUNDELIVERED_SAFE), Cfst.of(c.MQCA_Q_MGR_DESC, "D"))),
        (c.MQCMD_INQUIRE_Q_MGR, ()),
        [{MQCA_Q_MGR_NAME: "QM1", c.MQIA_PUBSUB_NP_RESP: 1, c.MQCA_Q_MGR_DESC: "D"}],
    ),
    (
        "create-subscription",
        [],
        (
            c.MQCMD_CREATE_SUBSCRIPTION,
            (
                sub("S"),
                topic_string("a/#"),
                dest("D"),
                Cfbs.of(c.MQBACF_DESTINATION_CORREL_ID, b"c" * 24),
                Cfin(c.MQIACF_EXPIRY, 600),
                Cfin(c.MQIACF_REQUEST_ONLY, c.MQRU_PUBLISH_ON_REQUEST),
                Cfst.of(c.MQCACF_SUB_USER_DATA, "mine"),
                Cfin(c.MQIACF_PUB_PRIORITY, 3),
            ),
        ),
        (c.MQCMD_INQUIRE_SUBSCRIPTION, (sub("S"),)),
        [
            {
                c.MQCACF_SUB_NAME: "S",
                MQCA_TOPIC_STRING: "a/#",
                c.MQBACF_DESTINATION_CORREL_ID: b"c" * 24,
                c.MQIACF_EXPIRY: 600,
                c.MQIACF_REQUEST_ONLY: 1,
                c.MQCACF_SUB_USER_DATA: "mine",
                c.MQIACF_PUB_PRIORITY: 3,
                c.MQIACF_SUB_TYPE: c.MQSUBTYPE_ADMIN,
                c.MQIACF_DURABLE_SUBSCRIPTION: 1,
                c.MQCACF_SUB_USER_ID: "admin",
                c.MQCA_CREATION_DATE: "2026-01-02",
            }
        ],
    ),
    (
        "copy-subscription",
        [(c.MQCMD_CREATE_SUBSCRIPTION, (sub("S"), topic_string("a"), dest("D"), Cfin(c.MQIACF_SUB_LEVEL, 4)))],
        (
            c.MQCMD_COPY_SUBSCRIPTION,
            (Cfst.of(c.MQCACF_FROM_SUB_NAME, "S"), Cfst.of(c.MQCACF_TO_SUB_NAME, "U"), topic_string("b")),
        ),
        (c.MQCMD_INQUIRE_SUBSCRIPTION, (sub("U"),)),
        [{c.MQIACF_SUB_LEVEL: 4, MQCA_TOPIC_STRING: "b"}],
    ),
    (
        "change-subscription",
        [(c.MQCMD_CREATE_SUBSCRIPTION, (sub("S"), topic_string("a"), dest("D")))],
        (c.MQCMD_CHANGE_SUBSCRIPTION, (sub("S"), dest("E"), Cfin(c.MQIACF_PUBSUB_PROPERTIES, c.MQPSPROP_RFH2))),
        (c.MQCMD_INQUIRE_SUBSCRIPTION, (sub("S"),)),
        [{c.MQCACF_DESTINATION: "E", c.MQIACF_PUBSUB_PROPERTIES: 2}],
    ),
    (
        "set-auth-rec",
        [(c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a")))],
        (
            c.MQCMD_SET_AUTH_REC,
            (
                profile("T"),
                TOPIC_TYPE,
                Cfil(c.MQIACF_AUTH_ADD_AUTHS, (c.MQAUTH_PUBLISH, c.MQAUTH_SUBSCRIBE)),
                Cfsl.of(c.MQCACF_GROUP_ENTITY_NAMES, ("mqm",)),
                Cfsl.of(c.MQCACF_PRINCIPAL_ENTITY_NAMES, ("admin", "bob")),
            ),
        ),
        (
            c.MQCMD_INQUIRE_AUTH_RECS,
            (Cfin(c.MQIACF_AUTH_OPTIONS, c.MQAUTHOPT_NAME_ALL_MATCHING), profile(""), TOPIC_TYPE),
        ),
        [],
    ),
]


@pytest.mark.rule("PCF-1")
@pytest.mark.parametrize(
    ("before", "tried", "shows", "wanted"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_what_a_command_changes(
    desk: Desk, before: list[Request], tried: Request, shows: Request, wanted: list[Numbers]
) -> None:
    for command, parameters in before:
        desk.done(command, *parameters)
    desk.done(tried[0], *tried[1])
    if wanted:
        rows = desk.rows(shows[0], *shows[1])
        assert [{key: row[key] for key in some} for row, some in zip(rows, wanted, strict=True)] == wanted


@pytest.mark.rule("PCF-4")
def test_authority_records_are_set_told_and_deleted(desk: Desk) -> None:
    (_, before, tried, shows, _) = CHANGES[-1]
    for command, parameters in [*before, tried]:
        desk.done(command, *parameters)
    rows = desk.rows(shows[0], *shows[1], user="mqm")
    assert [(row[c.MQCACF_ENTITY_NAME], row[c.MQIACF_ENTITY_TYPE]) for row in rows] == [
        ("mqm", c.MQZAET_GROUP),
        ("admin", c.MQZAET_PRINCIPAL),
        ("bob", c.MQZAET_PRINCIPAL),
    ]
    assert {row[c.MQIACF_AUTHORIZATION_LIST] for row in rows} == {(c.MQAUTH_PUBLISH, c.MQAUTH_SUBSCRIBE)}
    bob = Cfsl.of(c.MQCACF_PRINCIPAL_ENTITY_NAMES, ("bob",))
    desk.done(c.MQCMD_DELETE_AUTH_REC, profile("T"), TOPIC_TYPE, bob, user="mqm")
    assert len(desk.rows(shows[0], *shows[1], user="mqm")) == 2
    entity = (Cfst.of(c.MQCACF_ENTITY_NAME, "admin"), Cfin(c.MQIACF_ENTITY_TYPE, c.MQZAET_PRINCIPAL))
    assert len(desk.rows(shows[0], *shows[1], *entity, user="mqm")) == 1


DELETIONS: list[tuple[str, Request, Request, Request, int]] = [
    (
        "topic",
        (c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"))),
        (c.MQCMD_DELETE_TOPIC, (topic("T"),)),
        (c.MQCMD_INQUIRE_TOPIC, (topic("T"),)),
        2085,
    ),
    (
        "queue",
        (c.MQCMD_CREATE_Q, (queue("Q"), LOCAL)),
        (c.MQCMD_DELETE_Q, (queue("Q"), LOCAL)),
        (c.MQCMD_INQUIRE_Q, (queue("Q"),)),
        2085,
    ),
    (
        "alias",
        (c.MQCMD_CREATE_Q, (queue("A"), ALIAS, Cfst.of(c.MQCA_BASE_OBJECT_NAME, "Q"))),
        (c.MQCMD_DELETE_Q, (queue("A"),)),
        (c.MQCMD_INQUIRE_Q, (queue("A"),)),
        2085,
    ),
    (
        "namelist",
        (c.MQCMD_CREATE_NAMELIST, (namelist("N"),)),
        (c.MQCMD_DELETE_NAMELIST, (namelist("N"),)),
        (c.MQCMD_INQUIRE_NAMELIST, (namelist("N"),)),
        2085,
    ),
    (
        "channel",
        (c.MQCMD_CREATE_CHANNEL, (channel("C"), RECEIVER, cluster("SALES"))),
        (c.MQCMD_DELETE_CHANNEL, (channel("C"), RECEIVER, Cfin(c.MQIACH_CHANNEL_TABLE, 1))),
        (c.MQCMD_INQUIRE_CHANNEL, (channel("C"),)),
        4032,
    ),
    (
        "subscription",
        (c.MQCMD_CREATE_SUBSCRIPTION, (sub("S"), topic_string("a"), dest("D"))),
        (c.MQCMD_DELETE_SUBSCRIPTION, (sub("S"),)),
        (c.MQCMD_INQUIRE_SUBSCRIPTION, (sub("S"),)),
        2428,
    ),
    (
        "authinfo",
        (c.MQCMD_CREATE_AUTH_INFO, (AUTHINFO, Cfin(c.MQIA_AUTH_INFO_TYPE, 3))),
        (c.MQCMD_DELETE_AUTH_INFO, (AUTHINFO,)),
        (c.MQCMD_INQUIRE_AUTH_INFO, (AUTHINFO,)),
        2085,
    ),
    (
        "listener",
        (c.MQCMD_CREATE_LISTENER, (LISTENER, Cfin(c.MQIACH_XMIT_PROTOCOL_TYPE, 2))),
        (c.MQCMD_DELETE_LISTENER, (LISTENER,)),
        (c.MQCMD_INQUIRE_LISTENER, (LISTENER,)),
        2085,
    ),
]


@pytest.mark.rule("DEREG-27", "PCF-1")
@pytest.mark.parametrize(
    ("made", "deleted", "shows", "reason"), [row[1:] for row in DELETIONS], ids=[row[0] for row in DELETIONS]
)
def test_what_is_deleted_is_not_there(desk: Desk, made: Request, deleted: Request, shows: Request, reason: int) -> None:
    desk.done(made[0], *made[1])
    assert len(desk.rows(shows[0], *shows[1])) == 1
    desk.done(deleted[0], *deleted[1])
    desk.refused(reason, shows[0], *shows[1])
    desk.refused(reason, deleted[0], *deleted[1])


@pytest.mark.parametrize(
    ("reason", "command", "parameters"),
    [
        (4042, *JOIN),
        (3034, c.MQCMD_CREATE_CHANNEL, (channel("D"), Cfin(c.MQIACH_CHANNEL_TYPE, c.MQCHT_SENDER))),
        (3034, c.MQCMD_CHANGE_CHANNEL, (channel("C"), Cfin(c.MQIACH_CHANNEL_TYPE, c.MQCHT_CLUSSDR))),
        (3088, c.MQCMD_CHANGE_CHANNEL, (channel("C"), RECEIVER, Cfst.of(c.MQCA_CLUSTER_NAMELIST, "N"))),
        (3019, c.MQCMD_CREATE_CHANNEL, (channel("D"), cluster("SALES"))),
        (4032, c.MQCMD_CHANGE_CHANNEL, (channel("D"), RECEIVER)),
        (3008, c.MQCMD_SUSPEND_Q_MGR_CLUSTER, (cluster("OTHER"),)),
    ],
)
def test_channels_are_refused_with_reasons_of_their_own(
    desk: Desk, reason: int, command: int, parameters: tuple[Parameter, ...]
) -> None:
    desk.done(JOIN[0], *JOIN[1])
    told = [response.pcf.reason for response in desk.ask(command, *parameters)]
    assert told == ([reason, 3008] if reason != 3008 else [3008])


def test_a_subscription_goes_by_its_identifier(desk: Desk) -> None:
    desk.done(c.MQCMD_CREATE_SUBSCRIPTION, sub("S"), topic_string("a"), dest("D"))
    (row,) = desk.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"))
    sub_id = row[MQBACF_SUB_ID]
    assert isinstance(sub_id, bytes)
    desk.done(c.MQCMD_CHANGE_SUBSCRIPTION, Cfbs.of(MQBACF_SUB_ID, sub_id), dest("E"))
    (again,) = desk.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, Cfbs.of(MQBACF_SUB_ID, sub_id))
    assert (again[c.MQCACF_SUB_NAME], again[c.MQCACF_DESTINATION]) == ("S", "E")
    desk.done(c.MQCMD_DELETE_SUBSCRIPTION, Cfbs.of(MQBACF_SUB_ID, sub_id))


@pytest.fixture
def busy(desk: Desk) -> Desk:
    """Three subscriptions, one of a program; a topic object; two retained publications; a message on a queue."""
    desk.done(c.MQCMD_CREATE_TOPIC, topic("T"), topic_string("a"))
    for name, text in (("S1", "a/x"), ("S2", "b/#")):
        desk.done(c.MQCMD_CREATE_SUBSCRIPTION, sub(name), topic_string(text), dest("D"))
    for text in ("a/x", "c"):
        publish(desk, f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{text}</Topic>", DEFAULT_STREAM)
    publish(desk, "<Command>RegSub</Command><Topic>a/#</Topic><QName>PROGRAM.Q</QName>", CONTROL_QUEUE)
    return desk


def publish(desk: Desk, psc: str, to: str) -> None:
    md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app")
    with desk.store.unit_of_work() as unit:
        unit.put(to, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode(), time=NOW)
    desk.processor.drain()


def pick(rows: list[Numbers], *numbers: int) -> list[tuple[Value, ...]]:
    return [tuple(row[number] for number in numbers) for row in rows]


@pytest.mark.rule("PCF-1")
def test_all_that_a_generic_name_means_is_told_one_message_each(busy: Desk) -> None:
    rows = busy.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"))
    assert pick(rows, c.MQCACF_SUB_NAME, MQCA_TOPIC_STRING, c.MQIACF_SUB_TYPE) == [
        ("", "a/#", c.MQSUBTYPE_API),
        ("S1", "a/x", c.MQSUBTYPE_ADMIN),
        ("S2", "b/#", c.MQSUBTYPE_ADMIN),
    ]
    assert pick(busy.rows(c.MQCMD_INQUIRE_SUB_STATUS, sub("S*")), c.MQCACF_SUB_NAME) == [("S1",), ("S2",)]
    api = Cfin(c.MQIACF_SUB_TYPE, c.MQSUBTYPE_API)
    assert pick(busy.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"), api), c.MQCACF_DESTINATION) == [("PROGRAM.Q",)]


@pytest.mark.rule("PCF-2")
def test_topic_status(busy: Desk) -> None:
    rows = busy.rows(c.MQCMD_INQUIRE_TOPIC_STATUS, topic_string("#"))
    told = (MQCA_TOPIC_STRING, c.MQCA_ADMIN_TOPIC_NAME, c.MQIACF_RETAINED_PUBLICATION, c.MQIA_SUB_COUNT)
    assert pick(rows, *told) == [
        ("a", "T", 0, 0),
        ("a/#", "", 0, 1),
        ("a/x", "", 1, 1),
        ("b", "", 0, 0),
        ("b/#", "", 0, 1),
        ("c", "", 1, 0),
    ]
    by_sub = Cfin(c.MQIACF_TOPIC_STATUS_TYPE, c.MQIACF_TOPIC_SUB)
    rows = busy.rows(c.MQCMD_INQUIRE_TOPIC_STATUS, topic_string("a/+"), by_sub)
    assert pick(rows, MQCA_TOPIC_STRING, c.MQIACF_SUB_TYPE) == [("a/#", 1), ("a/x", 2)]
    busy.refused(3308, c.MQCMD_INQUIRE_TOPIC_STATUS, topic_string("nowhere"))


@pytest.mark.rule("PCF-3")
def test_clear_topic_string(busy: Desk) -> None:
    retained = Cfin(c.MQIACF_CLEAR_TYPE, c.MQCLRT_RETAINED)
    for scope in (c.MQCLRS_LOCAL, c.MQCLRS_GLOBAL):
        busy.done(MQCMD_CLEAR_TOPIC_STRING, topic_string("a/x"), retained, Cfin(c.MQIACF_CLEAR_SCOPE, scope))
    rows = busy.rows(c.MQCMD_INQUIRE_TOPIC_STATUS, topic_string("#"))
    assert [row[MQCA_TOPIC_STRING] for row in rows if row[c.MQIACF_RETAINED_PUBLICATION]] == ["c"]


@pytest.mark.rule("PCF-2")
def test_queue_status_and_clear_queue(busy: Desk) -> None:
    status = c.MQCMD_INQUIRE_Q_STATUS
    (row,) = busy.rows(status, queue("D"))
    told = {MQCA_Q_NAME: "D", c.MQIACF_Q_STATUS_TYPE: c.MQIACF_Q_STATUS, c.MQIA_CURRENT_Q_DEPTH: 1}
    told |= {c.MQIA_OPEN_INPUT_COUNT: 0, c.MQIA_OPEN_OUTPUT_COUNT: 0, c.MQIACF_UNCOMMITTED_MSGS: c.MQQSUM_NO}
    told |= {c.MQIA_MONITORING_Q: c.MQMON_HIGH, c.MQIACF_OLDEST_MSG_AGE: 0}
    told |= {c.MQCACF_LAST_PUT_DATE: "2026-01-02", c.MQCACF_LAST_PUT_TIME: "03.04.05"}
    assert row == {**told, c.MQCACF_LAST_GET_DATE: "", c.MQCACF_LAST_GET_TIME: ""}
    busy.refused(2055, c.MQCMD_DELETE_Q, queue("D"), LOCAL)
    busy.done(c.MQCMD_CLEAR_Q, queue("D"))
    (row,) = busy.rows(status, queue("D"), Cfin(c.MQIACF_Q_STATUS_TYPE, c.MQIACF_Q_STATUS))
    assert row[c.MQIA_CURRENT_Q_DEPTH] == 0
    handle = c.MQIACF_Q_STATUS_TYPE
    busy.refused(4091, status, queue("D"), Cfin(handle, c.MQIACF_Q_HANDLE))


@pytest.mark.rule("PCF-2")
def test_names(busy: Desk) -> None:
    (row,) = busy.rows(c.MQCMD_INQUIRE_Q_NAMES, queue("*"), LOCAL)
    names, types = row[c.MQCACF_Q_NAMES], row[c.MQIACF_Q_TYPES]
    assert isinstance(names, tuple)
    assert isinstance(types, tuple)
    assert {"D", ADMIN_COMMAND_QUEUE} <= set(names)
    assert types == (c.MQQT_LOCAL,) * len(names)
    assert busy.rows(c.MQCMD_INQUIRE_TOPIC_NAMES, topic("T*")) == [{c.MQCACF_TOPIC_NAMES: ("T",)}]
    assert busy.rows(c.MQCMD_INQUIRE_NAMELIST_NAMES, namelist("X*")) == [{c.MQCACF_NAMELIST_NAMES: ()}]
    (row,) = busy.rows(c.MQCMD_INQUIRE_CHANNEL_NAMES, Cfst.of(c.MQCACH_CHANNEL_NAME, "SYSTEM.DEF.*"))
    assert row == {
        c.MQCACH_CHANNEL_NAMES: ("SYSTEM.DEF.SVRCONN",),
        c.MQIACH_CHANNEL_TYPES: (c.MQCHT_SVRCONN,),
    }


@pytest.mark.rule("PCF-2")
def test_publish_subscribe_status(busy: Desk) -> None:
    (row,) = busy.rows(c.MQCMD_INQUIRE_PUBSUB_STATUS)
    assert row == {
        MQCA_Q_MGR_NAME: "QM1",
        c.MQIACF_PS_STATUS_TYPE: c.MQPSST_LOCAL,
        c.MQIACF_PUBSUB_STATUS: c.MQPS_STATUS_ACTIVE,
        c.MQIA_SUB_COUNT: 3,
        c.MQIA_TOPIC_NODE_COUNT: 6,
    }
    busy.refused(3200, c.MQCMD_INQUIRE_PUBSUB_STATUS, Cfin(c.MQIACF_PS_STATUS_TYPE, c.MQPSST_CHILD))


def test_ping_and_refresh(desk: Desk) -> None:
    for command in (c.MQCMD_PING_Q_MGR, c.MQCMD_REFRESH_SECURITY):
        desk.done(command)


SELECTED: list[tuple[str, int, tuple[Parameter, ...], set[int]]] = [
    (
        "some",
        c.MQCMD_INQUIRE_TOPIC,
        (topic("T"), Cfil(c.MQIACF_TOPIC_ATTRS, (MQCA_TOPIC_STRING,))),
        {c.MQCA_TOPIC_NAME, c.MQIA_TOPIC_TYPE, MQCA_TOPIC_STRING},
    ),
    (
        "one-that-is-not-kept-here",
        c.MQCMD_INQUIRE_Q,
        (queue("D"), Cfil(c.MQIACF_Q_ATTRS, (MQCA_Q_NAME, c.MQIA_CURRENT_Q_DEPTH, 17))),
        {MQCA_Q_NAME, c.MQIA_Q_TYPE, c.MQIA_CURRENT_Q_DEPTH},
    ),
    (
        "summary",
        c.MQCMD_INQUIRE_SUBSCRIPTION,
        (sub("S1"), Cfil(c.MQIACF_SUB_ATTRS, (c.MQIACF_SUB_SUMMARY,))),
        {
            *(MQBACF_SUB_ID, c.MQCACF_SUB_NAME, MQCA_TOPIC_STRING, c.MQCACF_DESTINATION, c.MQCACF_DESTINATION_Q_MGR),
            *(c.MQBACF_DESTINATION_CORREL_ID, c.MQIACF_DURABLE_SUBSCRIPTION, c.MQIACF_SUB_TYPE, c.MQCACF_SUB_USER_ID),
        },
    ),
    (
        "none-that-is-kept-here",
        c.MQCMD_INQUIRE_Q_MGR,
        (Cfil(c.MQIACF_Q_MGR_ATTRS, (MQCA_Q_MGR_NAME, c.MQIA_PUBSUB_MODE)),),
        {MQCA_Q_MGR_NAME, c.MQIA_PUBSUB_MODE},
    ),
]


@pytest.mark.rule("PCF-6")
@pytest.mark.parametrize(
    ("command", "parameters", "wanted"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED]
)
def test_attributes_are_selected(busy: Desk, command: int, parameters: tuple[Parameter, ...], wanted: set[int]) -> None:
    (row,) = busy.rows(command, *parameters)
    assert set(row) == wanted


def test_all_is_what_is_told_without_selectors(busy: Desk) -> None:
    everything = busy.rows(c.MQCMD_INQUIRE_TOPIC, topic("*"))
    assert everything == busy.rows(c.MQCMD_INQUIRE_TOPIC, topic("*"), Cfil(c.MQIACF_TOPIC_ATTRS, (c.MQIACF_ALL,)))
    assert len(everything[0]) == 21


FILTERS: list[tuple[str, int, tuple[Parameter, ...], Parameter, list[str]]] = [
    (
        "integer",
        c.MQCMD_INQUIRE_Q,
        (queue("*"),),
        Cfif(c.MQIA_CURRENT_Q_DEPTH, c.MQCFOP_GREATER, 0),
        ["D", "PROGRAM.Q"],
    ),
    (
        "integer-for-a-word",
        c.MQCMD_INQUIRE_SUBSCRIPTION,
        (sub("*"),),
        Cfif(c.MQIACF_SUB_TYPE, c.MQCFOP_EQUAL, c.MQSUBTYPE_ADMIN),
        ["S1", "S2"],
    ),
    (
        "string",
        c.MQCMD_INQUIRE_SUBSCRIPTION,
        (sub("*"),),
        Cfsf(MQCA_TOPIC_STRING, c.MQCFOP_LIKE, b"a*"),
        ["", "S1"],
    ),
    (
        "string-without",
        c.MQCMD_INQUIRE_SUBSCRIPTION,
        (sub("S*"),),
        Cfsf(c.MQCACF_SUB_USER_ID, c.MQCFOP_NOT_EQUAL, b"nobody"),
        ["S1", "S2"],
    ),
    (
        "list",
        c.MQCMD_INQUIRE_NAMELIST,
        (namelist("*"),),
        Cfsf(c.MQCA_NAMES, c.MQCFOP_CONTAINS, DEFAULT_STREAM.encode()),
        ["SYSTEM.QPUBSUB.QUEUE.NAMELIST"],
    ),
    (
        "bytes",
        c.MQCMD_INQUIRE_SUB_STATUS,
        (sub("S*"),),
        Cfbf(c.MQBACF_CONNECTION_ID, c.MQCFOP_EQUAL, bytes(24)),
        ["S1", "S2"],
    ),
]


@pytest.mark.rule("PCF-6")
@pytest.mark.parametrize(
    ("command", "parameters", "condition", "wanted"), [row[1:] for row in FILTERS], ids=[row[0] for row in FILTERS]
)
def test_filters(
    busy: Desk, command: int, parameters: tuple[Parameter, ...], condition: Parameter, wanted: list[str]
) -> None:
    name = {
        c.MQCMD_INQUIRE_Q: MQCA_Q_NAME,
        c.MQCMD_INQUIRE_NAMELIST: c.MQCA_NAMELIST_NAME,
    }.get(command, c.MQCACF_SUB_NAME)
    rows = busy.rows(command, *parameters, condition)
    assert [row[name] for row in rows] == wanted


NO_HEADER: dict[str, Any] = {}
MQSC = Cfin(c.MQIACF_ESCAPE_TYPE, c.MQET_MQSC)


def text_of(command: str) -> Cfst:
    return Cfst.of(c.MQCACF_ESCAPE_TEXT, command)


# (id, reason, parameter in error, command, parameters, fields of the MQCFH)
REFUSED: list[tuple[str, int, int | None, int, tuple[Parameter, ...], dict[str, Any]]] = [
    ("command", 3007, None, 9999, (), NO_HEADER),
    ("no-performance-events", 3224, None, c.MQCMD_RESET_Q_STATS, (queue("D"),), NO_HEADER),
    ("no-escape-text", 3019, 3014, c.MQCMD_ESCAPE, (MQSC,), NO_HEADER),
    ("escape-type", 3054, None, c.MQCMD_ESCAPE, (Cfin(c.MQIACF_ESCAPE_TYPE, 2), text_of("PING QMGR")), NO_HEADER),
    ("type", 3001, None, c.MQCMD_PING_Q_MGR, (), {"type": 2}),
    ("sequence-number", 3004, None, c.MQCMD_PING_Q_MGR, (), {"msg_seq_number": 2}),
    ("control", 3005, None, c.MQCMD_PING_Q_MGR, (), {"control": 0}),
    ("no-name", 3019, 2092, c.MQCMD_INQUIRE_TOPIC, (), NO_HEADER),
    ("no-queue-type", 3019, 20, c.MQCMD_CREATE_Q, (queue("Q"),), NO_HEADER),
    ("no-source", 3019, 3150, c.MQCMD_COPY_TOPIC, (Cfst.of(c.MQCACF_TO_TOPIC_NAME, "U"),), NO_HEADER),
    ("no-topic-string", 3019, None, c.MQCMD_CREATE_TOPIC, (topic("U"),), NO_HEADER),
    ("twice", 3018, 2092, c.MQCMD_INQUIRE_TOPIC, (topic("T"), topic("T")), NO_HEADER),
    ("integer-twice", 3017, 6, c.MQCMD_CHANGE_TOPIC, (topic("T"), *[Cfin(6, 1)] * 2), NO_HEADER),
    ("name-as-an-integer", 3013, 2092, c.MQCMD_INQUIRE_TOPIC, (Cfin(2092, 1),), NO_HEADER),
    ("integer-as-a-string", 3013, 182, c.MQCMD_CREATE_TOPIC, (topic("T"), Cfst.of(182, "1")), NO_HEADER),
    ("string-of-another-command", 3015, 3154, c.MQCMD_INQUIRE_TOPIC, (topic("T"), dest("D")), NO_HEADER),
    ("integer-of-another-command", 3014, 1302, c.MQCMD_INQUIRE_TOPIC, (topic("T"), Cfin(1302, 1)), NO_HEADER),
    ("group", 3014, 8001, c.MQCMD_INQUIRE_TOPIC, (topic("T"), Cfgr(8001)), NO_HEADER),
    ("value", 4005, 182, c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a"), Cfin(182, 9)), NO_HEADER),
    ("range", 4005, None, c.MQCMD_CREATE_Q, (queue("Q"), LOCAL, Cfin(c.MQIA_MAX_Q_DEPTH, -5)), NO_HEADER),
    ("triggering", 4005, None, c.MQCMD_CREATE_Q, (queue("Q"), LOCAL, Cfin(24, 1)), NO_HEADER),
    ("length", 3011, None, c.MQCMD_CREATE_Q, (queue("Q"), LOCAL, Cfst.of(c.MQCA_Q_DESC, "x" * 65)), NO_HEADER),
    ("object-name", 4008, None, c.MQCMD_CREATE_Q, (queue("Q-1"), LOCAL), NO_HEADER),
    ("unknown-object", 2085, None, c.MQCMD_CHANGE_TOPIC, (topic("NONE"),), NO_HEADER),
    ("generic-that-is-nothing", 2085, None, c.MQCMD_INQUIRE_Q, (queue("NONE*"),), NO_HEADER),
    ("unknown-subscription", 2428, None, c.MQCMD_CHANGE_SUBSCRIPTION, (sub("NONE"),), NO_HEADER),
    ("object-exists", 4001, None, c.MQCMD_CREATE_TOPIC, (topic("T"), topic_string("a")), NO_HEADER),
    ("topic-string-exists", 3300, None, c.MQCMD_CREATE_TOPIC, (topic("U"), topic_string("a")), NO_HEADER),
    ("topic-string-fixed", 3213, None, c.MQCMD_CHANGE_TOPIC, (topic("T"), topic_string("z")), NO_HEADER),
    (
        "subscription-exists",
        *(3311, None, c.MQCMD_CREATE_SUBSCRIPTION),
        (sub("S1"), topic_string("q"), dest("D")),
        NO_HEADER,
    ),
    ("topic-not-alterable", 2510, None, c.MQCMD_CHANGE_SUBSCRIPTION, (sub("S1"), topic_string("z")), NO_HEADER),
    ("queue-type", 4002, None, c.MQCMD_CHANGE_Q, (queue("D"), ALIAS), NO_HEADER),
    ("in-use", 3160, None, c.MQCMD_DELETE_Q, (queue(CONTROL_QUEUE), LOCAL), NO_HEADER),
    ("selector", 3047, None, c.MQCMD_INQUIRE_TOPIC, (topic("T"), Cfil(c.MQIACF_TOPIC_ATTRS, (-7,))), NO_HEADER),
    ("selectors-as-an-integer", 3047, 1269, c.MQCMD_INQUIRE_TOPIC, (topic("T"), Cfin(1269, 1)), NO_HEADER),
    ("filter-parameter", 3243, 9999, c.MQCMD_INQUIRE_Q, (queue("*"), Cfif(9999, 1, 1)), NO_HEADER),
    ("filter-operator", 3242, 3, c.MQCMD_INQUIRE_Q, (queue("*"), Cfif(3, 99, 1)), NO_HEADER),
    ("two-filters", 3248, 3, c.MQCMD_INQUIRE_Q, (queue("*"), *[Cfif(3, 1, 1)] * 2), NO_HEADER),
    (
        "no-entity",
        *(3169, None, c.MQCMD_SET_AUTH_REC),
        (profile("T"), TOPIC_TYPE, Cfil(c.MQIACF_AUTH_ADD_AUTHS, (c.MQAUTH_PUBLISH,))),
        NO_HEADER,
    ),
    ("managed", 3008, None, c.MQCMD_CREATE_SUBSCRIPTION, (sub("M"), topic_string("m"), Cfin(1273, 1)), NO_HEADER),
]


@pytest.mark.rule("PCF-7", "PCF-12")
@pytest.mark.parametrize(
    ("reason", "culprit", "command", "parameters", "header"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_refused(
    busy: Desk,
    reason: int,
    culprit: int | None,
    command: int,
    parameters: tuple[Parameter, ...],
    header: dict[str, Any],
) -> None:
    """One message for the error, with the parameter in error, MQRCCF_COMMAND_FAILED as the last; nothing changes."""
    before = busy.store.load_state()
    replies = busy.ask(command, *parameters, header=header)
    told = [(r.pcf.comp_code, r.pcf.reason, r.pcf.msg_seq_number, r.pcf.control) for r in replies]
    wanted = [(2, reason, 1, 0), (2, 3008, 2, 1)]
    assert told == (wanted if reason != 3008 else [(2, 3008, 1, 1)])
    assert [reply.pcf.command for reply in replies] == [command] * len(replies)
    if reason == 3047 and culprit is None:
        assert replies[0].values == {c.MQIACF_SELECTOR: -7}
    else:
        assert replies[0].values == ({} if culprit is None else {1012: culprit})
    assert busy.store.load_state()[1] == before[1]


# Escape: MQSC as text, which runmqsc -c sends. (id, text, user, Command, CompCode, Reason, first lines)
ESCAPED: list[tuple[str, str, str, int, int, int, list[str]]] = [
    (
        "done",
        "ping qmgr",
        "admin",
        c.MQCMD_PING_Q_MGR,
        0,
        0,
        ["AMQ8415: Ping WebSphere MQ Queue Manager command complete."],
    ),
    (
        "a-response-an-object",
        "DISPLAY SUB(S*) TOPICSTR",
        *("admin", c.MQCMD_INQUIRE_SUBSCRIPTION, 0, 0),
        ["AMQ8096: WebSphere MQ subscription inquired.", "AMQ8096: WebSphere MQ subscription inquired."],
    ),
    (
        "unknown-object",
        "ALTER QLOCAL(NONE) MAXDEPTH(5)",
        *("admin", c.MQCMD_CHANGE_Q, 2, 2085),
        ["AMQ8147: WebSphere MQ object NONE not found."],
    ),
    (
        "no-command",
        "DISPLAI QMGR",
        *("admin", c.MQCMD_ESCAPE, 2, 3014),
        ["AMQ8405: Syntax error detected at or near end of command segment below:-"],
    ),
    (
        "two-commands",
        "PING QMGR; PING QMGR",
        *("admin", c.MQCMD_ESCAPE, 2, 3014),
        ["AMQ8405: Syntax error detected at or near end of command segment below:-"],
    ),
    ("not-authorized", "CLEAR QLOCAL(D)", "nobody", c.MQCMD_CLEAR_Q, 2, 2035, ["AMQ8135: Not authorized."]),
]


@pytest.mark.rule("PCF-11")
@pytest.mark.parametrize(
    ("text", "user", "command", "comp_code", "reason", "texts"),
    [row[1:] for row in ESCAPED],
    ids=[row[0] for row in ESCAPED],
)
def test_escape(busy: Desk, text: str, user: str, command: int, comp_code: int, reason: int, texts: list[str]) -> None:
    if user != "admin":
        busy.ask(c.MQCMD_ESCAPE, MQSC, text_of("SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('x') AUTHADD(DSP)"))
    replies = busy.ask(c.MQCMD_ESCAPE, MQSC, text_of(text), user=user)
    assert [(r.pcf.command, r.pcf.comp_code, r.pcf.reason) for r in replies] == [(command, comp_code, reason)] * len(
        texts
    )
    assert [r.pcf.control for r in replies] == [0] * (len(replies) - 1) + [1]
    assert all(r.values[c.MQIACF_ESCAPE_TYPE] == c.MQET_MQSC for r in replies)
    assert [str(r.values[c.MQCACF_ESCAPE_TEXT]).splitlines()[0] for r in replies] == texts


@pytest.mark.rule("PCF-11")
def test_what_escape_changes_is_kept_and_what_it_shows_is_what_mqsc_shows(busy: Desk) -> None:
    (reply,) = busy.ask(c.MQCMD_ESCAPE, MQSC, text_of("define qlocal(NEW) descr('of +QMNAME+')"))
    assert (reply.pcf.command, reply.pcf.comp_code) == (c.MQCMD_CREATE_Q, 0)
    (row,) = Desk(busy.store).rows(c.MQCMD_INQUIRE_Q, queue("NEW"))
    assert row[c.MQCA_Q_DESC] == "of QM1"
    (reply,) = busy.ask(c.MQCMD_ESCAPE, MQSC, text_of("DISPLAY QLOCAL(NEW) DESCR"))
    assert reply.values[c.MQCACF_ESCAPE_TEXT] == (
        "AMQ8409: Display Queue details.\n   QUEUE(NEW)                              TYPE(QLOCAL)\n   DESCR(of QM1)"
    )


# The messages themselves


@pytest.mark.rule("PCF-8")
def test_the_descriptor_of_a_response(desk: Desk) -> None:
    for order, encoding in (("little", 546), ("big", 273)):
        (reply,) = desk.ask(c.MQCMD_PING_Q_MGR, order=order, priority=3, persistence=1)
        md = reply.mqmd
        assert (md.format, md.msg_type, md.encoding, md.coded_char_set_id) == ("MQADMIN", 2, encoding, 1208)
        assert (md.correl_id, md.priority, md.persistence, md.user_identifier) == (MSG_ID, 3, 1, "admin")
        assert md.msg_id not in (MSG_ID, bytes(24))
        assert (reply.pcf.order, reply.pcf.type, reply.pcf.command, reply.pcf.version) == (order, 2, 40, 1)


@pytest.mark.rule("PCF-8")
def test_identifiers_as_report_says(desk: Desk) -> None:
    correl = b"mine".ljust(24)
    report = MQRO_PASS_MSG_ID | MQRO_PASS_CORREL_ID
    (reply,) = desk.ask(c.MQCMD_PING_Q_MGR, report=report, correl_id=correl)
    assert (reply.mqmd.msg_id, reply.mqmd.correl_id) == (MSG_ID, correl)


def test_expiry_is_passed_on_where_report_says(desk: Desk) -> None:
    """ibmmq asks for MQRO_PASS_DISCARD_AND_EXPIRY."""
    assert desk.ask(c.MQCMD_PING_Q_MGR, expiry=500)[0].mqmd.expiry == -1
    assert desk.ask(c.MQCMD_PING_Q_MGR, expiry=500, report=0x4000)[0].mqmd.expiry == 500


def test_a_command_that_is_no_request_is_done_and_answered_as_report_says(desk: Desk) -> None:
    own = {"msg_type": MQMT_DATAGRAM}
    parameters = (topic("T"), topic_string("a"))
    assert desk.ask(c.MQCMD_CREATE_TOPIC, *parameters, **own) == []
    assert len(desk.rows(c.MQCMD_INQUIRE_TOPIC, topic("T"))) == 1
    assert len(desk.ask(c.MQCMD_PING_Q_MGR, **own, report=MQRO_PAN)) == 1
    assert len(desk.ask(c.MQCMD_DELETE_TOPIC, topic("X"), **own, report=MQRO_NAN)) == 2
    assert desk.ask(c.MQCMD_DELETE_TOPIC, topic("X"), **own, report=MQRO_PAN) == []


def test_an_extended_command_has_standard_responses(desk: Desk) -> None:
    """What ibmmq and pymqi send: MQCFT_COMMAND_XR, Version 3."""
    (reply,) = desk.ask(c.MQCMD_PING_Q_MGR, header={"type": 16, "version": 3})
    assert (reply.pcf.type, reply.pcf.reason) == (2, 0)


def test_what_is_no_pcf_is_answered_and_without_a_reply_queue_a_dead_letter(desk: Desk) -> None:
    assert [r.pcf.reason for r in desk.put(b"DISPLAY QMGR", format="MQSTR")] == [3023, 3008]
    cut_short = Pcf(c.MQCMD_INQUIRE_TOPIC, (topic("T"),)).encode()[:-4]
    assert [r.pcf.reason for r in desk.put(cut_short)] == [3016, 3008]
    assert desk.put(b"DISPLAY QMGR", format="MQSTR", reply_to_q="", msg_type=MQMT_DATAGRAM) == []
    with desk.store.unit_of_work() as unit:
        assert unit.depth("SYSTEM.DEAD.LETTER.QUEUE") == 1


def test_strings_are_read_in_the_code_page_of_the_message(desk: Desk) -> None:
    name = Cfst(c.MQCA_TOPIC_NAME, "T".encode("cp500"), 0, tail=bytes(3))
    text = Cfst(MQCA_TOPIC_STRING, "Zürich".encode("cp500"), 0, tail=bytes(2))
    desk.done(c.MQCMD_CREATE_TOPIC, name, text, coded_char_set_id=500, order="big")
    assert pick(desk.rows(c.MQCMD_INQUIRE_TOPIC, topic("T")), MQCA_TOPIC_STRING) == [("Zürich",)]


def test_a_processor_without_a_command_server_leaves_commands_where_they_are(desk: Desk) -> None:
    """As with --queues ibmmq://, where the queue manager has a command server of its own."""
    desk.processor = Processor(desk.store, lambda: NOW)
    assert desk.ask(c.MQCMD_PING_Q_MGR) == []
    with desk.store.unit_of_work() as unit:
        assert unit.depth(ADMIN_COMMAND_QUEUE) == 1


# What a change means for the commands behind it


@pytest.mark.rule("PCF-9")
def test_what_is_defined_counts_for_the_next_message(desk: Desk) -> None:
    desk.done(c.MQCMD_CREATE_SUBSCRIPTION, sub("S"), topic_string("a"), dest("D"))
    publication = "<Command>Publish</Command><Topic>a</Topic>"
    for depth in (1, 2):
        publish(desk, publication, DEFAULT_STREAM)
        assert desk.rows(c.MQCMD_INQUIRE_Q_STATUS, queue("D"))[0][c.MQIA_CURRENT_Q_DEPTH] == depth
    inhibited = Cfin(c.MQIA_INHIBIT_PUB, c.MQTA_PUB_INHIBITED)
    desk.done(c.MQCMD_CREATE_TOPIC, topic("T"), topic_string("a"), inhibited)
    publish(desk, publication, DEFAULT_STREAM)
    assert desk.rows(c.MQCMD_INQUIRE_Q_STATUS, queue("D"))[0][c.MQIA_CURRENT_Q_DEPTH] == 2
    desk.done(c.MQCMD_DELETE_TOPIC, topic("T"))
    publish(desk, publication, DEFAULT_STREAM)
    assert desk.rows(c.MQCMD_INQUIRE_Q_STATUS, queue("D"))[0][c.MQIA_CURRENT_Q_DEPTH] == 3


def test_a_new_subscription_gets_what_is_retained(busy: Desk) -> None:
    busy.done(c.MQCMD_CREATE_SUBSCRIPTION, sub("LATE"), topic_string("c"), dest("LATE.Q"))
    assert busy.rows(c.MQCMD_INQUIRE_Q_STATUS, queue("LATE.Q"))[0][c.MQIA_CURRENT_Q_DEPTH] == 1


def test_the_command_server_works_while_publish_subscribe_is_disabled(desk: Desk) -> None:
    disabled = Cfin(c.MQIA_PUBSUB_MODE, c.MQPSM_DISABLED)
    desk.done(c.MQCMD_CHANGE_Q_MGR, disabled)
    publish(desk, "<Command>RegSub</Command><Topic>a</Topic><QName>Q</QName>", CONTROL_QUEUE)
    assert desk.rows(c.MQCMD_INQUIRE_Q_STATUS, queue(CONTROL_QUEUE))[0][c.MQIA_CURRENT_Q_DEPTH] == 1
    desk.done(c.MQCMD_CHANGE_Q_MGR, Cfin(c.MQIA_PUBSUB_MODE, c.MQPSM_ENABLED))
    assert len(desk.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"))) == 1


@pytest.mark.rule("PCF-9")
def test_what_is_kept_is_what_a_restart_finds(busy: Desk) -> None:
    objects, subscriptions, _ = busy.store.load_state()
    assert sorted(s.name or "" for s in subscriptions) == ["", "S1", "S2"]
    assert len({s.sub_id for s in subscriptions}) == 3
    assert objects.topics.get("T") is not None
    again = Desk(busy.store)
    assert busy.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*")) == again.rows(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"))


def test_responses_that_the_reply_queue_refuses_are_dead_letters(busy: Desk) -> None:
    busy.done(c.MQCMD_CREATE_Q, queue("SMALL.Q"), LOCAL, Cfin(c.MQIA_MAX_Q_DEPTH, 1))
    assert busy.ask(c.MQCMD_INQUIRE_SUBSCRIPTION, sub("*"), reply_to_q="SMALL.Q") == []
    (kept,) = busy.replies("SMALL.Q")
    assert (kept.pcf.msg_seq_number, kept.pcf.control) == (1, 0)
    with busy.store.unit_of_work() as unit:
        assert unit.depth("SYSTEM.DEAD.LETTER.QUEUE") == 2
    assert REPLY != "SMALL.Q"
