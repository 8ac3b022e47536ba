"""Which channel authentication record counts for a client: IBM's order of precedence, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.broker.channel_authentication import (
    ChannelRules,
    Client,
    distinguished_name,
    fits,
    is_address_pattern,
    is_peer,
    peer_pattern,
    specificity,
)
from commands.broker.channel_objects import (
    ADDRESSMAP,
    BLOCKADDR,
    BLOCKUSER,
    SSLPEERMAP,
    USERMAP,
    ChannelAuthentication as Record,
    ServerChannel,
)
from commands.broker.objects import Objects, QueueManager

SUBJECT = (("C", "UK"), ("O", "Acme"), ("OU", "Sales"), ("OU", "North"), ("CN", "till 7"))
CLIENT = Client("APP.SVRCONN", "10.1.2.3", "Alice", SUBJECT, (("CN", "The CA"),))


def mapped(profile: str, **of: str) -> Record:
    kind = SSLPEERMAP if "peer" in of else USERMAP if "client_user" in of else ADDRESSMAP
    return Record(profile, kind, mcauser="x", **of)  # type: ignore[arg-type]


# Of each two that are both for the client, the first counts.
ORDER = [
    ("channel before type", mapped("APP.SVRCONN", address="*"), mapped("APP.*", peer="CN=till 7")),
    ("more of the channel's name", mapped("APP.S*", address="*"), mapped("APP*", address="10.1.2.3")),
    ("no asterisk at all", mapped("APP.SVRCONN", address="*"), mapped("APP.SVRCONN*", address="*")),
    ("certificate before user", mapped("*", peer="O=Acme"), mapped("*", client_user="alice", address="10.1.2.3")),
    ("user before address", mapped("*", client_user="alice"), mapped("*", address="10.1.2.3")),
    ("more of the certificate", mapped("*", peer="CN=till 7,O=Acme"), mapped("*", peer="CN=till*,O=Acme")),
    ("its issuer too", mapped("*", peer="O=Acme", issuer="CN=The CA"), mapped("*", peer="O=Acme")),
    ("a user at an address", mapped("*", client_user="alice", address="10.*"), mapped("*", client_user="alice")),
    ("a whole address", mapped("*", address="10.1.2.3"), mapped("*", address="10.1.2.*")),
    ("a range before all", mapped("*", address="10.1.2.1-9"), mapped("*", address="10.1.2.*")),
    ("more of the address", mapped("*", address="10.1.*"), mapped("*", address="10.*")),
    ("from the left", mapped("*", address="10.1.*.3"), mapped("*", address="10.1-2.2.3")),
]


@pytest.mark.rule("LSN-60")
@pytest.mark.parametrize(("first", "second"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
def test_the_more_specific_record_counts(first: Record, second: Record) -> None:
    for records in ((first, second), (second, first)):
        assert ChannelRules({}, records).mapping(CLIENT) is first
    assert ChannelRules({}, (second,)).mapping(CLIENT) is second


OTHERS = [
    mapped("APP.SVRCON", address="*"),
    mapped("*.SVRCONN2", address="*"),
    mapped("*", address="10.1.2.4"),
    mapped("*", address="10.2.*"),
    mapped("*", client_user="bob"),
    mapped("*", client_user="alice", address="11.*"),
    mapped("*", peer="CN=till 8"),
    mapped("*", peer="CN=till 7", issuer="CN=Another"),
    Record("*", BLOCKUSER, user_list=("alice",)),
]


@pytest.mark.parametrize("record", OTHERS, ids=str)
def test_a_record_of_others_does_not_count(record: Record) -> None:
    assert ChannelRules({}, (record,)).mapping(CLIENT) is None


def test_a_client_without_a_certificate_is_nobody_s_peer() -> None:
    record = mapped("*", peer="CN=*")
    assert ChannelRules({}, (record,)).mapping(replace(CLIENT, subject=())) is None


def test_blocked_users_are_those_of_the_most_specific_profile() -> None:
    of_all, own = Record("*", BLOCKUSER, user_list=("*MQADMIN",)), Record("ADMIN.*", BLOCKUSER, user_list=("nobody",))
    rules = ChannelRules({}, (of_all, own))
    assert (rules.blocked_users("ADMIN.SVRCONN"), rules.blocked_users("APP.SVRCONN")) == (own, of_all)


def test_blocked_addresses_are_those_of_any_record() -> None:
    record = Record("*", BLOCKADDR, address_list=("10.9.*", "192.168.0.1"))
    rules = ChannelRules({}, (record,))
    assert [rules.blocking(each) for each in ("10.9.1.1", "192.168.0.1", "10.1.1.1")] == [record, record, None]


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*", "10.1.2.3 ::1", ""),
        ("10.1.2.3", "10.1.2.3 ::ffff:10.1.2.3", "10.1.2.4"),
        ("10.1.*", "10.1.0.0 10.1.255.255", "10.2.0.0 ::1"),
        ("10.1-3.*.9", "10.2.7.9", "10.2.7.8 10.4.7.9"),
        ("10.0.0.0/9", "10.1.2.3", "10.200.0.0 ::1"),
        ("fe80:*", "fe80::1", "fe81::1 10.1.2.3"),
        ("::1", "::1", "::2"),
    ],
)
def test_address_patterns(pattern: str, fitting: str, others: str) -> None:
    assert is_address_pattern(pattern)
    assert [fits(each, pattern) for each in fitting.split()] == [True] * len(fitting.split())
    assert [fits(each, pattern) for each in others.split()] == [False] * len(others.split())


@pytest.mark.parametrize("pattern", ["host.example", "10.1", "10.1.2.300", "*.example", "10.1.2.3.*", "10.1-x.*", ""])
def test_what_is_no_address_pattern(pattern: str) -> None:
    assert not is_address_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "is_it"),
    [
        ("CN=till 7", True),
        ('cn="till*", O=Acme', True),
        ("CN=till", False),
        ("OU=Sales", True),
        ("OU=Sales,OU=North", True),
        ("OU=North", False),
        ("OU=North,OU=Sales", False),
        ("L=York", False),
    ],
)
def test_peer_patterns(pattern: str, is_it: bool) -> None:
    assert is_peer(SUBJECT, pattern) == is_it


def test_names_of_certificates_are_read_as_ssl_gives_them() -> None:
    parts = ((("countryName", "UK"),), (("organizationName", "Acme"),), (("commonName", "x"),))
    assert distinguished_name(parts) == (("C", "UK"), ("O", "Acme"), ("CN", "x"))
    for wrong in ("", "till 7", "CN=a,b", "CN"):
        with pytest.raises(ValueError, match="distinguished name"):
            peer_pattern(wrong)


def test_a_pattern_without_asterisk_is_the_most_specific() -> None:
    assert sorted(["*", "A*", "AB*", "A"], key=specificity) == ["A", "AB*", "A*", "*"]


@pytest.mark.rule("LSN-60")
def test_until_a_channel_is_defined_any_name_is_one_for_programs_of_this_machine() -> None:
    objects = Objects(QueueManager("QM1"))
    rules = ChannelRules.of(objects)
    assert rules.channel("ANY", "127.0.0.1") == objects.server_channels["SYSTEM.DEF.SVRCONN"]
    assert rules.channel("ANY", "10.1.2.3") is None
    objects.put(ServerChannel("APP.SVRCONN"))
    rules = ChannelRules.of(objects)
    assert rules.channel("ANY", "127.0.0.1") is None
    assert rules.channel("APP.SVRCONN", "10.1.2.3") == ServerChannel("APP.SVRCONN")


@pytest.mark.rule("LSN-60")
@pytest.mark.parametrize(
    ("channel", "source"), [("SYSTEM.ADMIN.SVRCONN", "CHANNEL"), ("SYSTEM.DEF.SVRCONN", "NOACCESS"), ("A", None)]
)
def test_the_rules_of_a_new_queue_manager(channel: str, source: str | None) -> None:
    rules = ChannelRules.of(Objects(QueueManager("QM1")))
    record = rules.mapping(Client(channel, "10.1.2.3", "alice"))
    blocked = rules.blocked_users(channel)
    assert (None if record is None else record.user_source) == source
    assert blocked is not None
    assert blocked.user_list == ("*MQADMIN",)
    assert ChannelRules.of(Objects(QueueManager("QM1", chlauth=False))).records == ()
