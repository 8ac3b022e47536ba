"""What MQSC defines of clients counts for those that connect: at once, and in place of nothing else.

Rows of docs/conformance.md: LSN-61.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.authority import no_groups
from commands.broker.channel_objects import ServerChannel, TcpListener
from commands.broker.objects import Objects, QueueManager
from commands.config.settings import ChannelRule, ConfigError, ConnAuth, ListenerConfig
from commands.listener.security import Credentials, Identity, Security, tls_refusal
from commands.listener.server import ListenerThread, listener_of, place_of
from commands.mqsc.administration import Administration
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from streams import TopicSpace
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient, StatusError
from tests.waiting import PATIENCE_S, until

RIGHT = {("alice", "right"), ("admin", "secret"), ("app", "pass")}
BY_DEFINITIONS = Security({})

# As IBM's image for developers has it.
DEVELOPERS = """
DEFINE AUTHINFO('DEV.AUTHINFO') AUTHTYPE(IDPWOS) CHCKCLNT(REQDADM) CHCKLOCL(OPTIONAL) ADOPTCTX(YES) FAILDLAY(0)
ALTER QMGR CONNAUTH('DEV.AUTHINFO')
DEFINE CHANNEL('DEV.ADMIN.SVRCONN') CHLTYPE(SVRCONN)
DEFINE CHANNEL('DEV.APP.SVRCONN') CHLTYPE(SVRCONN) MCAUSER('app')
SET CHLAUTH('*') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS) ACTION(REPLACE)
SET CHLAUTH('DEV.APP.SVRCONN') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(CHANNEL) CHCKCLNT(REQUIRED) ACTION(REPLACE)
SET CHLAUTH('DEV.ADMIN.SVRCONN') TYPE(BLOCKUSER) USERLIST('nobody') ACTION(REPLACE)
SET CHLAUTH('DEV.ADMIN.SVRCONN') TYPE(USERMAP) CLNTUSER('admin') USERSRC(CHANNEL) ACTION(REPLACE)
"""
OWN = "DEFINE CHANNEL(A) CHLTYPE(SVRCONN)\nALTER AUTHINFO(SYSTEM.DEFAULT.AUTHINFO.IDPWOS) FAILDLAY(0) "

NO_BOB = "SET CHLAUTH(A) TYPE(USERMAP) CLNTUSER('bob') USERSRC(NOACCESS)"


def objects_after(script: str) -> Objects:
    objects = Objects(QueueManager("QM1"))
    administration = Administration.of(objects, TopicSpace(objects.topics), datetime(2026, 1, 1, tzinfo=UTC))
    for statement in parse(script):
        answer = execute(statement, administration)
        assert answer.ok, answer.lines
    return objects


def tell(home: Path, script: str) -> None:
    """What ``qpubsub mqsc`` does."""
    with QueueManagerStore.open(home, "QM1") as store:
        told = StatementRunner(store, "mqm", no_groups, utc_now).run(parse(script))
    assert all(answer.ok for _, answer in told), told


# Script; channel, address, asserted user, credentials; the user as which it works, or None where it may not connect.
ADMITTED = [
    ("", "ANY", "127.0.0.1", "alice", None, "alice"),
    ("", "ANY", "10.1.2.3", "alice", None, None),
    ("", "ANY", "127.0.0.1", "mqm", None, None),
    ("", "SYSTEM.DEF.SVRCONN", "127.0.0.1", "alice", None, None),
    (DEVELOPERS, "DEV.APP.SVRCONN", "10.1.2.3", "joe", ("app", "pass"), "app"),
    (DEVELOPERS, "DEV.APP.SVRCONN", "10.1.2.3", "joe", None, None),
    (DEVELOPERS, "DEV.ADMIN.SVRCONN", "10.1.2.3", "joe", ("admin", "secret"), "admin"),
    (DEVELOPERS, "DEV.ADMIN.SVRCONN", "10.1.2.3", "joe", ("admin", "guessed"), None),
    (DEVELOPERS, "DEV.ADMIN.SVRCONN", "10.1.2.3", "joe", ("alice", "right"), None),
    (DEVELOPERS, "OTHER", "127.0.0.1", "alice", None, None),
    (OWN + "ADOPTCTX(NO)", "A", "10.1.2.3", "bob", ("alice", "right"), "bob"),
    (OWN + "CHCKCLNT(NONE)", "A", "10.1.2.3", "bob", ("bob", "wrong"), "bob"),
    (OWN + "\nALTER QMGR CONNAUTH(' ')", "A", "10.1.2.3", "bob", ("alice", "wrong"), "bob"),
    (OWN + "\nSET CHLAUTH(A) TYPE(USERMAP) CLNTUSER('bob') MCAUSER('app')", "A", "1.1.1.1", "BOB", None, "app"),
    (f"{OWN}\n{NO_BOB}", "A", "1.1.1.1", "bob", None, None),
    (f"{OWN}\n{NO_BOB} WARN(YES)", "A", "::1", "bob", None, "bob"),
    (OWN + "\nSET CHLAUTH(A) TYPE(ADDRESSMAP) ADDRESS('10.*') MCAUSER('mqm')", "A", "10.1.1.1", "bob", None, None),
    (OWN + "\nSET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('bob')", "A", "1.1.1.1", "Bob", None, None),
    (OWN + "\nSET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('bob') WARN(YES)", "A", "1.1.1.1", "Bob", None, "bob"),
    (OWN + "\nSET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('x')\nALTER QMGR CHLAUTH(DISABLED)", "A", "::1", "x", None, "x"),
]  # fmt: skip


@pytest.mark.rule("LSN-61")
@pytest.mark.parametrize(
    ("script", "channel", "address", "user", "credentials", "works_as"),
    ADMITTED,
    ids=[f"{row[1]}-{row[3]}-{n}" for n, row in enumerate(ADMITTED)],
)
def test_who_may_connect_and_as_whom(
    script: str, channel: str, address: str, user: str, credentials: tuple[str, str] | None, works_as: str | None
) -> None:
    security = Security({}, lambda name, password: (name, password) in RIGHT)
    given = None if credentials is None else Credentials(*credentials)
    rules = security.rules(objects_after(script))
    admission = asyncio.run(security.admission(Identity(channel, address, user, given), rules))
    assert (admission.user if not admission.reason else None) == works_as, admission


def test_warnings_name_the_record(caplog: pytest.LogCaptureFixture) -> None:
    rules = BY_DEFINITIONS.rules(objects_after(f"{OWN}\n{NO_BOB} WARN(YES)"))
    asyncio.run(BY_DEFINITIONS.admission(Identity("A", "10.1.2.3", "bob"), rules))
    (warning,) = caplog.messages
    assert warning == "10.1.2.3: CHLAUTH(A) TYPE(USERMAP) would refuse user 'bob' at channel A"


def test_channels_of_the_configuration_take_the_place_of_those_defined() -> None:
    security = Security({"B": ChannelRule(mcauser="b")}, None, ConnAuth(chckclnt="optional"))
    rules = security.rules(objects_after(DEVELOPERS))
    assert list(rules.channels) == ["B"]
    assert rules.authentication is not None
    # What [listener.connauth] does not say, AUTHINFO does.
    assert (rules.authentication.check_client, rules.authentication.delay) == ("OPTIONAL", 0)


AES = ("ECDHE-RSA-AES256-GCM-SHA384", "TLSv1.2")
NEW = ("TLS_AES_256_GCM_SHA384", "TLSv1.3")
SUBJECT = (("CN", "till 7"),)


@pytest.mark.parametrize(
    ("words", "cipher", "subject", "refused"),
    [
        ({}, None, (), ""),
        ({"cipher": "ANY_TLS12_OR_HIGHER"}, None, (), "SSLCIPH"),
        ({"cipher": "ANY_TLS12_OR_HIGHER"}, AES, (), "SSLCAUTH"),
        ({"cipher": "ANY_TLS12_OR_HIGHER", "needs_certificate": False}, NEW, (), ""),
        ({"cipher": "ANY_TLS12"}, AES, SUBJECT, ""),
        ({"cipher": "ANY_TLS12"}, NEW, SUBJECT, "SSLCIPH"),
        ({"cipher": "ANY_TLS13"}, AES, SUBJECT, "SSLCIPH"),
        ({"cipher": "ECDHE_RSA_AES_256_GCM_SHA384"}, AES, SUBJECT, ""),
        ({"cipher": "ECDHE_RSA_AES_128_GCM_SHA256"}, AES, SUBJECT, "SSLCIPH"),
        ({"cipher": "TLS_RSA_WITH_AES_256_GCM_SHA384"}, ("AES256-GCM-SHA384", "TLSv1.2"), SUBJECT, ""),
        ({"cipher": "TLS_AES_256_GCM_SHA384"}, NEW, SUBJECT, ""),
        ({"peer": "CN=till*"}, AES, SUBJECT, ""),
        ({"peer": "CN=desk*"}, AES, SUBJECT, "SSLPEER"),
        ({"peer": "CN=desk*"}, None, (), "SSLPEER"),
    ],
)
def test_the_tls_that_a_channel_asks_for(
    words: dict[str, object], cipher: tuple[str, str] | None, subject: tuple[tuple[str, str], ...], refused: str
) -> None:
    why = tls_refusal(ServerChannel("A", **words), cipher, subject)  # type: ignore[arg-type]
    assert (refused in why, bool(refused)) == (True, bool(why))


@pytest.mark.rule("LSN-61")
def test_definitions_count_for_the_next_client(home: Path) -> None:
    with listener_at(home, BY_DEFINITIONS) as port:
        with MqiClient(port, channel="ANY") as client:
            assert client.connect("alice") == 0
        tell(home, "DEFINE CHANNEL(A) CHLTYPE(SVRCONN) MAXINST(1) SHARECNV(1)")
        with pytest.raises(StatusError):
            MqiClient(port, channel="ANY")
        with MqiClient(port, channel="A", sharing=10) as client:
            client.conversation = 1
            assert client.connect("alice") == 0
            with pytest.raises(StatusError):
                MqiClient(port, channel="A")
        tell(home, "SET CHLAUTH(A) TYPE(USERMAP) CLNTUSER('alice') USERSRC(NOACCESS)")
        with until_admitted(port) as client:
            assert client.connect("alice") == 2035
        tell(home, "SET CHLAUTH('*') TYPE(BLOCKADDR) ADDRLIST('127.*')")
        with pytest.raises((StatusError, OSError, AssertionError)):
            MqiClient(port, channel="A")


def until_admitted(port: int) -> MqiClient:
    """A client of A, once the listener has seen that the last one has gone."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return MqiClient(port, channel="A")
        except StatusError:
            if time.monotonic() > end:
                raise


def test_a_channel_with_sslciph_takes_no_client_without_tls(home: Path, certificate: tuple[Path, Path]) -> None:
    tell(home, "DEFINE CHANNEL(A) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLCAUTH(OPTIONAL)")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    with listener_at(home, BY_DEFINITIONS) as port, pytest.raises(StatusError):
        MqiClient(port, channel="A")
    trusts = ssl.create_default_context(cafile=str(certificate[0]))
    with listener_at(home, BY_DEFINITIONS, tls=server) as port, MqiClient(port, channel="A", tls=trusts) as client:
        assert client.connect("alice") == 0


# Listeners


def made(home: Path, **config: object) -> ListenerThread:
    factory = listener_of(ListenerConfig.model_validate(config), None, home, "QM1", Durability.FULL)
    assert factory is not None
    return ListenerThread(factory)


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.rule("LSN-61")
def test_listener_objects_say_where_run_listens(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qpubsub.listener")
    config = ListenerConfig()
    assert listener_of(config, None, home, "QM1", Durability.FULL) is None
    tell(home, "DEFINE LISTENER(L) TRPTYPE(TCP) PORT(0) CONTROL(QMGR)\nDEFINE LISTENER(M) TRPTYPE(TCP) PORT(0)")
    with ExitStack() as stack:
        port = stack.enter_context(made(home))
        with MqiClient(port, channel="ANY") as client:
            assert client.connect("alice") == 0
        tell(home, "STOP LISTENER(L)")
        until(lambda: not is_open(port))
        tell(home, "START LISTENER(M)")
        until(lambda: any("listener M:" in each for each in caplog.messages))
    # A STOP holds until run begins again: CONTROL(QMGR).
    caplog.clear()
    with made(home) as port:
        assert is_open(port)
    assert len([each for each in caplog.messages if "listening on" in each]) == 2


def test_a_port_that_is_taken_is_logged_and_the_others_are_served(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        tell(home, f"DEFINE LISTENER(L) TRPTYPE(TCP) PORT({port}) CONTROL(QMGR)")
        tell(home, "DEFINE LISTENER(M) TRPTYPE(TCP) PORT(0) CONTROL(STARTONLY)")
        with made(home) as served:
            assert is_open(served)
    assert any(f"listener L: cannot listen on 127.0.0.1:{port}" in each for each in caplog.messages)


@pytest.mark.parametrize(
    ("address", "accepts_any", "is_safe", "host"),
    [
        ("", True, True, "127.0.0.1"),
        ("10.1.2.3", True, True, "127.0.0.1"),
        ("::1", True, False, "::1"),
        ("", False, True, ""),
        ("", False, False, "127.0.0.1"),
        ("*", False, False, ""),
        ("10.1.2.3", False, False, "10.1.2.3"),
    ],
)
def test_where_a_listener_listens(address: str, accepts_any: bool, is_safe: bool, host: str) -> None:
    assert place_of(TcpListener("L", address=address), accepts_any, is_safe)[:2] == (host, 1414)


@pytest.mark.parametrize(
    ("script", "listen", "why"),
    [
        ("", "0.0.0.0:1414", "DEFINE CHANNEL"),
        (OWN + "CHCKCLNT(REQUIRED)", "1414", "no users_file"),
    ],
)
def test_what_listen_needs(home: Path, script: str, listen: str, why: str) -> None:
    tell(home, script)
    with pytest.raises(ConfigError, match=why):
        listener_of(ListenerConfig(), listen, home, "QM1", Durability.FULL)
    tell(home, OWN.replace("DEFINE CHANNEL(A)", "DEFINE CHANNEL(B)") + "CHCKCLNT(NONE)")
    assert listener_of(ListenerConfig(), "0.0.0.0:1414", home, "QM1", Durability.FULL) is not None
