"""A user and a group may have one name (guide 8.1), and an entry each in the access control list of a topic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from migrate.legacy_state import AclEntry, Item, Unread
from migrate.readers import reportproperties, wmb

LISTED = """
DynamicSubscriptionEngine
  Topic
    name='a'
    ACLEntry
      principalName='mquser'
      principalType='user'
      publish='true'
    ACLEntry
      principalName='mquser'
      principalType='group'
      publish='false'
    ACLEntry
      principalName='mquser'
      publish='inherit'
BIP8071I
"""


def _events(*changes: tuple[str, str, str]) -> str:
    entries = (
        f"<{action}><ACLEntry principalName='mquser' {kind} publish='{publish}'/></{action}>"
        for action, kind, publish in changes
    )
    return f"<Broker label='B'><Topic name='a'>{''.join(entries)}</Topic></Broker>"


def _entries(items: Sequence[Item]) -> list[tuple[str, str]]:
    return [(item.principal_type, item.publish.value) for item in items if isinstance(item, AclEntry)]


@pytest.mark.rule("MB-1", "MB-15")
def test_8_1_each_type_has_its_own() -> None:
    items = list(reportproperties.read(LISTED, "outfile.txt"))
    assert _entries(items) == [("user", "true"), ("group", "false"), ("unknown", "inherit")]
    assert not any(isinstance(item, Unread) for item in items)


USER, GROUP, NONE = "principalType='user'", "principalType='group'", ""
EVENTS = [
    ("a-denial-outlives-the-user", [("Create", USER, "true"), ("Create", GROUP, "false"), ("Delete", USER, "")],
     [("group", "false")], 0),
    ("type-not-told-one-entry", [("Create", USER, "true"), ("Delete", NONE, "")], [], 0),
    ("type-not-told-at-first", [("Create", NONE, "true"), ("Delete", USER, "")], [], 0),
    ("type-not-told-two-entries", [("Create", USER, "true"), ("Create", GROUP, "true"), ("Delete", NONE, "")],
     [("user", "true"), ("group", "true")], 1),
    ("other-type", [("Create", USER, "true"), ("Delete", GROUP, "")], [("user", "true")], 0),
    ("changed", [("Create", USER, "true"), ("Change", USER, "false")], [("user", "false")], 0),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "left", "lost"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS])
def test_8_1_events(changes: list[tuple[str, str, str]], left: list[tuple[str, str]], lost: int) -> None:
    items = list(wmb.read(_events(*changes), "events.xml"))
    assert _entries(items) == left
    assert sum(item.is_state for item in items if isinstance(item, Unread)) == lost


def test_what_deletes_nothing_is_said() -> None:
    items = list(wmb.read(_events(("Delete", USER, "")), "events.xml"))
    (item,) = [item for item in items if isinstance(item, Unread)]
    assert (item.is_state, item.warns, item.why) == (False, True, "it deletes an entry that is not there")


def test_the_same_entry_twice_is_said() -> None:
    items = list(wmb.read(_events(("Create", USER, "true"), ("Create", USER, "false")), "e"))
    assert _entries(items) == [("user", "false")]
    assert [item.why for item in items if isinstance(item, Unread)] == [
        "the same entry a second time; the later one is used"
    ]
