"""Who may connect: channels, addresses, users, passwords, TLS; and what peers that mean harm can do.

Rows of docs/conformance.md: LSN-6.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commands.config.settings import ChannelRule, ConfigError, ConnAuth, ListenerConfig
from commands.listener.passwords import in_users_file, is_password, password_hash
from commands.listener.security import Security
from commands.listener.server import listener_of
from commands.qmgr.store import Durability, QueueManagerStore
from rfh2.channel.layouts import CAUT, SOCKET_ACTION
from rfh2.channel.segments import SegmentHeader, SegmentType, Structure
from rfh2.mqi_constants import MQOO_INPUT_SHARED, MQOO_OUTPUT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient, StatusError
from tests.waiting import PATIENCE_S

RULES = {
    "OPEN": ChannelRule(),
    "AS.APP": ChannelRule(mcauser="app"),
    "FAR": ChannelRule(addresses=("10.0.0.0/8",)),
    "NEAR": ChannelRule(addresses=("10.0.0.0/8", "127.0.0.0/8")),
    "NO.BOB": ChannelRule(block_users=("bob",)),
    "SECRET": ChannelRule(password=True),
}

AT_ONCE = ConnAuth(faildlay=0)
NO_SUCH_CHANNEL = 1


@pytest.mark.rule("LSN-6")
@pytest.mark.parametrize(
    ("channel", "user", "password", "reason"),
    [
        ("OPEN", "alice", "", 0),
        ("OPEN", "mqm", "", 2035),
        ("OPEN", "", "", 2035),
        ("AS.APP", "alice", "", 0),
        ("AS.APP", "mqm", "", 2035),
        ("FAR", "alice", "", 2035),
        ("NEAR", "alice", "", 0),
        ("NO.BOB", "Bob", "", 2035),
        ("NO.BOB", "mqm", "", 2035),
        ("NO.BOB", "mqm", "admin", 0),
        ("OPEN", "alice", "wrong", 2035),
        ("OPEN", "alice", "right", 0),
        ("SECRET", "alice", "", 2035),
        ("SECRET", "alice", "wrong", 2035),
        ("SECRET", "nobody", "right", 2035),
        ("SECRET", "alice", "right", 0),
    ],
)
def test_who_may_connect(home: Path, channel: str, user: str, password: str, reason: int) -> None:
    users = home / "users"
    users.write_text(f"# who\nalice: {password_hash('right')}\nmqm:{password_hash('admin')}\n", encoding="utf-8")
    security = Security(RULES, in_users_file(users), AT_ONCE)
    with listener_at(home, security) as port, MqiClient(port, channel=channel) as client:
        assert client.connect(user, password=password) == reason


def conauth(client: MqiClient, user: str, password: str) -> None:
    """CONAUTH_INFO, and its answer."""
    caut = Structure.new(CAUT, client.order)
    caut["StrucId"], caut["UserLength"], caut["PasswordLength"] = b"CAUT", len(user), len(password)
    text = (user + password).encode()
    client.send(client.header(SegmentType.CONAUTH_INFO).write(bytes(caut) + text + bytes(-len(text) % 4)))
    received = client.receive()
    assert received is not None
    assert received[0].kind == SegmentType.STATUS


@pytest.fixture
def compared() -> Security:
    """One user, alice; no password need be given."""
    right = {("alice", "right")}
    return Security({"*": ChannelRule()}, lambda user, password: (user, password) in right, AT_ONCE)


@pytest.mark.rule("LSN-21")
@pytest.mark.parametrize(("password", "reason"), [("right", 0), ("wrong", 2035)])
@pytest.mark.parametrize("userid", ["before", "after", "both"])
def test_a_password_must_be_right_whatever_comes_after_it(
    home: Path, compared: Security, userid: str, password: str, reason: int
) -> None:
    with listener_at(home, compared) as port, MqiClient(port) as client:
        if userid in ("before", "both"):
            client.user("alice")
        conauth(client, "alice", password)
        if userid == "before":
            client.user = lambda *_: None  # type: ignore[assignment]
        assert client.connect("alice") == reason


@pytest.mark.rule("LSN-21")
def test_a_wrong_password_ends_the_connection(home: Path, compared: Security) -> None:
    with listener_at(home, compared) as port, MqiClient(port) as client:
        assert client.connect("alice", password="wrong") == 2035
        assert client.receive() is None


def test_it_does_not_end_a_connection_on_which_a_program_is_connected(home: Path, compared: Security) -> None:
    with listener_at(home, compared) as port, MqiClient(port, sharing=10) as client:
        client.conversation = 1
        assert client.connect("alice", password="right") == 0
        begin_conversation(client, 3)
        client.conversation = 3
        assert client.connect("alice", password="wrong") == 2035
        client.conversation = 1
        assert client.commit() == 0


def begin_conversation(client: MqiClient, number: int) -> None:
    body = Structure.new(SOCKET_ACTION, client.order)
    body["ConversationId"], body["Type"] = number, 1
    client.send(SegmentHeader(SegmentType.SOCKET_ACTION, of_connection=True).write(bytes(body)))
    answered = client.receive()
    assert answered is not None
    assert (answered[0].kind, answered[0].conversation) == (SegmentType.SOCKET_ACTION, number)


def test_a_user_of_more_than_12_characters_is_nobody(home: Path) -> None:
    """The first 12 of "mqm         x", as a descriptor has them, would be mqm."""
    with listener_at(home) as port, MqiClient(port) as client:
        assert client.connect("mqm" + 9 * " " + "x") == 2035
        assert client.connect("alice") == 0


def test_a_channel_that_is_not_there(home: Path) -> None:
    with listener_at(home, Security(RULES)) as port, pytest.raises(StatusError) as refused:
        MqiClient(port, channel="UNKNOWN")
    assert refused.value.code == NO_SUCH_CHANNEL


def test_who_may_not_connect_is_logged_with_what_an_audit_needs(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    users = home / "users"
    users.write_text(f"alice: {password_hash('right')}\n", encoding="utf-8")
    security = Security(RULES, in_users_file(users), AT_ONCE)
    with listener_at(home, security) as port:
        with MqiClient(port, channel="SECRET") as client:
            client.connect("alice", password="mistyped")
        with MqiClient(port, channel="SECRET") as client:
            client.connect("bob")
        with pytest.raises(StatusError):
            MqiClient(port, channel="UNKNOWN")
    logged = [record for record in caplog.records if getattr(record, "numbers", ())]
    about = [[getattr(each, name, None) for name in ("numbers", "address", "channel", "user")] for each in logged]
    assert about == [
        [(5534,), "127.0.0.1", "SECRET", "alice"],
        [(5540,), "127.0.0.1", "SECRET", "bob"],
        [(9519,), None, None, None],
    ]
    texts = [each.getMessage() for each in logged]
    refused = "user 'alice', with a password, may not connect by channel 'SECRET': reason 2035, the password is missing"
    assert refused in texts[0]
    assert "user 'bob', without a password" in texts[1]
    assert "UNKNOWN" in texts[2]
    assert not any("mistyped" in text for text in texts)


def test_programs_work_as_the_users_of_their_channel(home: Path) -> None:
    with listener_at(home, Security(RULES)) as port, MqiClient(port, channel="AS.APP") as client:
        client.connect("alice")
        handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        client.put(handle, b"")
        assert client.get(handle).mqmd.user_identifier == "app"


def test_a_hash_is_of_one_password() -> None:
    stored = password_hash("right")
    assert is_password("right", stored)
    assert not is_password("Right", stored)
    assert stored != password_hash("right")
    assert not is_password("x", "scrypt$1$2")


@pytest.mark.parametrize(
    ("table", "listen", "why"),
    [
        ({}, "0.0.0.0:1414", "say in \\[listener.channels\\] who may connect"),
        ({}, "here", "not HOST:PORT"),
        ({}, "127.0.0.1:99999", "not HOST:PORT"),
        ({"channels": {"A": {"password": True}}}, "1414", "no users_file"),
        ({"channels": {"A": {"addresses": ["10.0.0.0/99"]}}}, "1414", "10.0.0.0/99"),
        ({"channels": {"A": {"password": True}}, "users_file": "/u"}, "10.1.2.3:1414", "add \\[listener.tls\\]"),
        ({"tls": {"cert_file": "/none", "key_file": "/none"}}, "1414", "cannot be used"),
    ],
)
def test_a_configuration_that_is_refused(tmp_path: Path, table: dict[str, object], listen: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listener_of(ListenerConfig.model_validate(table), listen, tmp_path, "QM1", Durability.FULL)


def test_tls(home: Path, certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    trusts = ssl.create_default_context(cafile=str(certificate[0]))
    with listener_at(home, tls=server) as port:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.settimeout(PATIENCE_S)
            plain.sendall(b"TSH " + bytes(40))
            assert plain.recv(100)[:1] != b"T"
        with MqiClient(port, tls=trusts) as client:
            assert client.connect() == 0
            handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
            body = bytes(300_000)
            client.put(handle, body)
            assert client.get(handle).body == body


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"TSH \xff\xff\xff\xff", b"TSH \0\0\0\4", bytes(5_000), b"TSHM" + bytes(40), b""],
    ids=["http", "long", "short", "zeros", "unknown-order", "nothing"],
)
def test_what_is_no_client_is_sent_away(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.settimeout(PATIENCE_S)
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(1000):
            pass
    with MqiClient(port) as client:
        assert client.connect() == 0


@pytest.mark.parametrize("number", [3, 2**31, 2**32 - 1])
def test_a_conversation_may_have_any_number(port: int, number: int) -> None:
    """Found by hostile segments: numbers with the highest bit set ended the connection with an error of the program."""
    with MqiClient(port, sharing=10) as client:
        body = Structure.new(SOCKET_ACTION, client.order)
        body["ConversationId"], body["Type"] = number - 2**32 if number >= 2**31 else number, 1
        client.send(client.header(SegmentType.SOCKET_ACTION).write(bytes(body)))
        answered = client.receive()
        assert answered is not None
        assert (answered[0].kind, answered[0].conversation) == (SegmentType.SOCKET_ACTION, number)


def segments_of_a_program(client: MqiClient) -> list[bytes]:
    """What a program sends, a segment each: recorded by the client itself."""
    sent: list[bytes] = []
    send = client.send
    client.send = lambda data: (sent.append(data), send(data))[1]  # type: ignore[method-assign]
    client.connect()
    handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    client.put(handle, b"0123456789" * 10, format="MQSTR")
    client.get(handle)
    client.inquire(handle, 3)
    client.commit()
    client.set(handle, {10: 0})
    client.status()
    client.subscribe(0, "Sport/Soccer", "scores", SubUserData="mine")
    client.request_retained(handle)
    client.shut(handle)
    client.call(SegmentType.SPI, client.long(1) + client.long(1) + client.long(256))
    return sent


CHANGES = st.lists(st.tuples(st.integers(0, 9_999), st.integers(0, 255)), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    is_connected=st.booleans(),
    plan=st.lists(
        st.tuples(st.integers(0, 99), CHANGES, st.floats(0.1, 1)),
        min_size=1,
        max_size=6,
    ),
)
def test_mutated_segments_end_one_connection_at_most(
    port: int, is_connected: bool, plan: list[tuple[int, list[tuple[int, int]], float]]
) -> None:
    """Bytes changed, cut and repeated: the peer may be sent away, others are served as before.

    ``python -m tests.reliability.segments`` does it a million times.
    """
    with MqiClient(port) as model:
        sent = segments_of_a_program(model)
    with MqiClient(port) as peer, suppress(OSError):
        if is_connected:
            peer.connect()
        for which, changes, share in plan:
            segment = bytearray(sent[which % len(sent)])
            for at, value in changes:
                segment[at % len(segment)] = value
            peer.send(bytes(segment[: int(share * len(segment)) + 1]))
    with MqiClient(port) as client:
        assert client.connect() == 0


def test_the_store_is_whole_after_a_client_is_cut_off(home: Path) -> None:
    with listener_at(home) as port:
        client = MqiClient(port)
        client.connect()
        handle = client.opened("Q", MQOO_OUTPUT)
        client.put(handle, b"uncommitted", 0x2)
        client.close()
    with QueueManagerStore.open(home, "QM1") as store:
        assert store.depth("Q") == 0
        assert store.end_lost_connections() == 0
