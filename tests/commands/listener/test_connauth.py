"""When passwords are compared, with what, and as which user a program then works: AUTHINFO's words, one by one.

Rows of docs/conformance.md: LSN-21.
"""

from __future__ import annotations

import asyncio
import ctypes.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.links.engine.config import ChannelRule, ConfigError, ConnAuth, ListenerConfig
from commands.listener.opening import listener_of
from commands.listener.passwords import by_pam, changed_users, in_users_file, password_hash
from commands.listener.security import Credentials, Identity, Security
from commands.qmgr.store import Durability

RIGHT = {("alice", "right"), ("mqm", "admin")}


def user_of(
    user: str,
    credentials: tuple[str, str] | None,
    *,
    compares: bool = True,
    rule: ChannelRule | None = None,
    **words: object,
) -> tuple[str, int]:
    """The user as whom the program works, and the reason for which it may not connect."""
    connauth = ConnAuth.model_validate({"faildlay": 0, **words})
    is_right = (lambda user, password: (user, password) in RIGHT) if compares else None
    security = Security({"*": rule or ChannelRule(block_users=())}, is_right, connauth)
    given = None if credentials is None else Credentials(*credentials)
    return asyncio.run(security.user_of(Identity("A", "127.0.0.1", user, given)))


NONE, EMPTY, GOOD, BAD = None, ("alice", ""), ("alice", "right"), ("alice", "wrong")


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
