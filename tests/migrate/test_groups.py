"""Groups of the operating system: /etc/group, getent group, getent passwd."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from migrate import migmbbrk
from migrate.legacy_state import Access, AclEntry, LegacyState, Principal, Source, Unread
from migrate.plan import Phase, PlanOptions
from migrate.readers.sources import is_group_file, read_groups, read_sources
from migrate.target import Target
from tests.migrate.legacy_messages import NOW
from tests.migrate.verbs import Ran, state

GROUP = "# groups\nroot:x:0:\ntraders:x:2001:anne,fred\nstaff:*:100:fred\n"
PASSWD = "anne:x:1001:100:Anne,,,:/home/anne:/bin/sh\njim:x:1003:999::/:/bin/false\n"

CASES = [
    ("group", GROUP, {"anne": ("traders",), "fred": ("traders", "staff")}, {"root", "traders", "staff"}),
    ("with-passwd", GROUP + PASSWD, {"anne": ("staff", "traders"), "fred": ("traders", "staff"), "jim": ()},
     {"root", "traders", "staff"}),
    ("blanks-and-crlf", "a:x:1: anne , fred\r\nb::2:\r\n", {"anne": ("a",), "fred": ("a",)}, {"a", "b"}),
    ("twice", "a:x:1:anne\na:x:1:anne\n", {"anne": ("a",)}, {"a"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "users", "found"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_users_and_groups(text: str, users: dict[str, tuple[str, ...]], found: set[str]) -> None:
    assert is_group_file(text)
    items = [item for item in read_groups(text, "group") if isinstance(item, Principal)]
    assert {item.name: item.groups for item in items if item.type == "user"} == users
    assert {item.name for item in items if item.type == "group"} == found


OTHERS = [
    ("passwd-alone", PASSWD),
    ("qm.ini", "Broker:\n   MaxMsgRetryCount=3\n"),
    ("no-number", "a:x:b:c\n"),
    ("one-line-of-another-kind", GROUP + "hello\n"),
    ("empty", ""),
]


@pytest.mark.parametrize("text", [case[1] for case in OTHERS], ids=[case[0] for case in OTHERS])
def test_what_is_not_taken_for_it(text: str) -> None:
    assert not is_group_file(text)


def test_entries_of_a_directory_service_are_said() -> None:
    assert is_group_file(GROUP + "+::0:\n")
    (item,) = (item for item in read_groups(GROUP + "+::0:\n", "group") if isinstance(item, Unread))
    assert (item.source.position, item.is_state, item.warns) == (5, False, True)


MADE = Source(file="made")
FORMS = [
    ("a-group", "traders", "unknown", ["-g"], []),
    ("a-user", "anne", "unknown", ["-p"], []),
    ("both", "both", "unknown", ["-p"], ["-g"]),
    ("not-in-the-listing", "jim", "user", ["-p"], []),
    ("not-in-the-listing-either", "jim", "unknown", ["-p"], ["-g"]),
]


@pytest.mark.parametrize(("name", "told", "run", "commented"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_8_1_a_name_that_is_known_gets_one_command(name: str, told: str, run: list[str], commented: list[str]) -> None:
    listing = "traders:x:1:anne,both\nboth:x:2:\n"
    entry = AclEntry(source=MADE, topic="a", principal=name, principal_type=told, publish=Access.ALLOW)  # type: ignore[arg-type]
    known = tuple(item for item in read_groups(listing, "group") if isinstance(item, Principal))
    plan = migmbbrk.plan(
        LegacyState(qmgr="QM1", acl=(entry,), principals=known), Target.fresh("QM1"), PlanOptions(), NOW, Phase.REHEARSE
    )
    lines = [line for line in plan.security if "setmqaut" in line]
    forms = [next(word for word in line.split() if word in ("-p", "-g")) for line in lines]
    assert [form for form, line in zip(forms, lines, strict=True) if line[0] != "#"] == run
    assert [form for form, line in zip(forms, lines, strict=True) if line[0] == "#"] == commented


def test_it_is_recognized_and_is_no_state(tmp_path: Path) -> None:
    """A migration from /etc/group alone would migrate nothing, and is refused."""
    (tmp_path / "group").write_text(GROUP)
    assert len(read_sources([str(tmp_path / "group")], "QM1").principals) == 5
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")):
        pass
    before = state(tmp_path / "home")
    ran = Ran("strmqbrk", tmp_path / "home", str(tmp_path / "group"))
    assert (ran.code, "no state of the broker at all" in ran.err) == (ExitCode.USAGE, True)
    assert state(tmp_path / "home") == before
