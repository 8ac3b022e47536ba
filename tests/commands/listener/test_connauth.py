"""When passwords are compared, with what, and as which user a program then works: AUTHINFO's words, one by one.

Rows of docs/conformance.md: LSN-21.
"""

from __future__ import annotations

import asyncio
import ctypes.util
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.broker.authority import GroupsOf, no_groups
from commands.config.settings import ChannelRule, ConfigError, ConnAuth, ListenerConfig
from commands.listener.passwords import by_pam, changed_users, in_users_file, password_hash
from commands.listener.security import Admission, Credentials, Identity, Security
from commands.listener.server import listener_of
from commands.qmgr.store import Durability
from tests.waiting import PATIENCE_S

RIGHT = {("alice", "right"), ("mqm", "admin"), ("root2", "admin")}


def user_of(
    user: str,
    credentials: tuple[str, str] | None,
    *,
    compares: bool = True,
    rule: ChannelRule | None = None,
    **words: object,
) -> tuple[str, int]:
    """The user as whom the program works, and the reason for which it may not connect."""
    return admission(user, credentials, compares=compares, rule=rule, **words)[:2]


def admission(
    user: str,
    credentials: tuple[str, str] | None,
    *,
    compares: bool = True,
    rule: ChannelRule | None = None,
    groups_of: GroupsOf = no_groups,
    **words: object,
) -> Admission:
    connauth = ConnAuth.model_validate({"faildlay": 0, **words})
    is_right = (lambda user, password: (user, password) in RIGHT) if compares else None
    security = Security({"*": rule or ChannelRule(block_users=())}, is_right, connauth, groups_of)
    given = None if credentials is None else Credentials(*credentials)
    return asyncio.run(security.admission(Identity("A", "127.0.0.1", user, given)))


NONE, EMPTY, GOOD, BAD = None, ("alice", ""), ("alice", "right"), ("alice", "wrong")


@pytest.mark.rule("LSN-21")
@pytest.mark.parametrize(
    ("chckclnt", "user", "credentials", "reason"),
    [
        ("none", "bob", NONE, 0),
        ("none", "bob", BAD, 0),
        ("none", "mqm", NONE, 0),
        ("optional", "bob", NONE, 0),
        ("optional", "bob", EMPTY, 0),
        ("optional", "bob", GOOD, 0),
        ("optional", "bob", BAD, 2035),
        ("optional", "mqm", NONE, 0),
        ("reqdadm", "bob", NONE, 0),
        ("reqdadm", "bob", GOOD, 0),
        ("reqdadm", "bob", BAD, 2035),
        ("reqdadm", "mqm", NONE, 2035),
        ("reqdadm", "MQM ", NONE, 2035),
        ("reqdadm", "bob", ("mqm", ""), 2035),
        ("reqdadm", "bob", ("mqm", "admin"), 0),
        ("required", "bob", NONE, 2035),
        ("required", "bob", EMPTY, 2035),
        ("required", "bob", GOOD, 0),
        ("required", "bob", BAD, 2035),
        ("required", "bob", ("alice", "right\0"), 2035),
        ("required", "bob", ("alice", "x" * 257), 2035),
    ],
)
def test_when_a_password_is_compared(
    chckclnt: str, user: str, credentials: tuple[str, str] | None, reason: int
) -> None:
    assert user_of(user, credentials, chckclnt=chckclnt)[1] == reason


def test_a_channel_may_require_what_the_queue_manager_does_not() -> None:
    rule = ChannelRule(password=True)
    assert user_of("bob", NONE, rule=rule, chckclnt="none")[1] == 2035
    assert user_of("bob", GOOD, rule=rule, chckclnt="none") == ("alice", 0)


def test_where_nothing_compares_passwords_only_a_required_one_is_refused() -> None:
    assert user_of("bob", BAD, compares=False) == ("alice", 0)
    assert user_of("bob", GOOD, compares=False, rule=ChannelRule(password=True))[1] == 2035


@pytest.mark.rule("LSN-21")
@pytest.mark.parametrize(
    ("adoptctx", "rule", "works_as"),
    [
        (True, ChannelRule(), ("alice", 0)),
        (False, ChannelRule(), ("bob", 0)),
        (True, ChannelRule(mcauser="app"), ("app", 0)),
        (True, ChannelRule(block_users=("bob",)), ("alice", 0)),
        (False, ChannelRule(block_users=("bob",)), ("bob", 2035)),
        (True, ChannelRule(block_users=("alice",)), ("alice", 2035)),
    ],
)
def test_whether_the_program_works_as_the_user_of_the_password(
    adoptctx: bool, rule: ChannelRule, works_as: tuple[str, int]
) -> None:
    assert user_of("bob", GOOD, rule=rule, adoptctx=adoptctx) == works_as


def test_a_wrong_password_waits_for_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert user_of("bob", GOOD, faildlay=3)[1] == 0
    assert slept == []
    assert user_of("bob", BAD, faildlay=3)[1] == 2035
    assert slept == [3]


# Who is not a user, and who is privileged


@pytest.mark.rule("LSN-6")
@pytest.mark.parametrize(
    "user", ["mqm" + 9 * " " + "x", "mqm x", "m" * 13, "mqm\tx", "mqm\0x", "mqm\u3000x", "\u4e2d", ""]
)
def test_what_is_no_user_of_12_characters_is_refused_and_may_be_mapped(user: str) -> None:
    """The first 12 characters of it, as a descriptor has them, could be another user."""
    for rule in (ChannelRule(), ChannelRule(block_users=())):
        assert user_of(user, NONE, rule=rule)[1] == 2035
    assert user_of(user, NONE, rule=ChannelRule(mcauser="app")) == ("app", 0)
    assert user_of("bob", (user, "right"), rule=ChannelRule(), compares=False)[1] == 2035


def test_12_characters_are_a_user() -> None:
    assert user_of(" " + "A" * 12 + " ", NONE) == ("a" * 12, 0)


@pytest.mark.rule("LSN-6")
@pytest.mark.parametrize(
    ("user", "credentials", "block_users", "reason"),
    [
        ("root2", None, ("*MQADMIN",), 2035),
        ("ROOT2", None, ("*mqadmin",), 2035),
        ("root2", None, ("guest",), 2035),  # CHCKCLNT(REQDADM)
        ("root2", ("root2", "admin"), ("guest",), 0),
        ("root2", ("root2", "admin"), ("*MQADMIN",), 2035),
        ("bob", None, ("*MQADMIN",), 0),
    ],
)
def test_users_of_group_mqm_are_privileged(
    user: str, credentials: tuple[str, str] | None, block_users: tuple[str, ...], reason: int
) -> None:
    groups = {"root2": ("users", "mqm")}
    rule = ChannelRule(block_users=block_users)
    found = admission(user, credentials, rule=rule, groups_of=lambda each: groups.get(each, ()))
    assert found.reason == reason, found


# Guessing


@pytest.mark.rule("LSN-21")
def test_one_comparison_of_an_address_waits_and_others_take_their_turns() -> None:
    """Fifty guesses of one address, then one password of another: that is compared second at the latest."""
    compared: list[str] = []
    may_go, under_way = threading.Event(), threading.Event()

    def is_right(user: str, _password: str) -> bool:
        compared.append(user)
        under_way.set()
        assert may_go.wait(PATIENCE_S)
        return user == "alice"

    async def all_of_them() -> list[int]:
        security = Security({"*": ChannelRule()}, is_right, ConnAuth(faildlay=0))

        def asked(address: str, user: str) -> asyncio.Task[Admission]:
            identity = Identity("A", address, user, Credentials(user, "x"))
            return asyncio.create_task(security.admission(identity))

        guesses = [asked("10.0.0.1", f"guess{n}") for n in range(50)]
        await asyncio.to_thread(under_way.wait, 30)
        owner = asked("10.0.0.2", "alice")
        while len(compared) < 2:
            await asyncio.sleep(0)
        may_go.set()
        return [each.reason for each in await asyncio.gather(owner, *guesses)]

    assert asyncio.run(all_of_them()) == [0] + [2035] * 50
    assert compared.index("alice") == 1


# Where passwords are


def test_the_users_file_is_read_each_time(tmp_path: Path) -> None:
    users = tmp_path / "users"
    is_right = in_users_file(users)
    assert not is_right("alice", "right")
    users.write_text(f"# alice:{password_hash('no')}\nAlice : {password_hash('right')}\nbroken\nbob:x\n")
    assert is_right("alice", "right")
    assert not is_right("alice", "no")
    assert not is_right("bob", "x")
    assert not is_right("", "")
    users.write_bytes(b"\xff\xfe")
    assert not is_right("alice", "right")


@pytest.mark.parametrize(
    ("lines", "stored", "changed"),
    [
        ([], "h", ["a:h"]),
        (["# a:x", "b:y"], "h", ["# a:x", "b:y", "a:h"]),
        (["A: x", "b:y", "a:z"], "h", ["a:h", "b:y"]),
        (["a:x", "", "b:y"], None, ["", "b:y"]),
        (["b:y"], None, ["b:y"]),
    ],
)
def test_a_user_has_one_line(lines: list[str], stored: str | None, changed: list[str]) -> None:
    assert changed_users(lines, "a", stored) == changed


class _PamError(Exception):
    pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A PAM in which only alice's "right" is right; which services and users were asked for."""
    calls: list[tuple[str, str]] = []

    def authenticate(user: str, password: str, service: str, resetcred: int) -> None:
        calls.append((service, user))
        if (user, password) not in RIGHT:
            raise _PamError

    monkeypatch.setitem(sys.modules, "pamela", SimpleNamespace(PAMError=_PamError, authenticate=authenticate))
    return calls


def test_pam_is_asked_with_the_service_of_the_configuration(asked: list[tuple[str, str]], tmp_path: Path) -> None:
    table = {"connauth": {"authenmd": "pam", "pam_service": "ibmmq", "chckclnt": "required"}}
    assert listener_of(ListenerConfig.model_validate(table), "1414", tmp_path, "QM1", Durability.FULL) is not None
    is_right = by_pam("ibmmq")
    assert (is_right("alice", "right"), is_right("alice", "wrong")) == (True, False)
    assert asked == [("ibmmq", "alice"), ("ibmmq", "alice")]


def test_without_the_library_pam_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pamela", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[pam\]'"):
        by_pam("qpubsub")


@pytest.mark.skipif(ctypes.util.find_library("pam") is None, reason="this system has no PAM")
def test_the_systems_own_pam_refuses_a_user_that_it_does_not_know() -> None:
    pytest.importorskip("pamela", reason="the extra pam is not installed")
    assert not by_pam("qpubsub")("no-such-user", "password")
