"""Planned against live: every attribute that a plan fixes, and what is no difference."""

from __future__ import annotations

from datetime import timedelta

import pytest

from migrate.live.differences import Difference, compare
from migrate.live.snapshot import LiveState, read_live
from migrate.planned_state import PlannedHeading, PlannedObject
from tests.migrate.legacy_messages import NOW
from tests.migrate.live.memory import memory

HEADING = PlannedHeading(tool="strmqbrk", broker="QM1", qmgr="QM1", fingerprint="0", made=NOW)
SUB = {"TOPICSTR": "a/b", "WSCHEMA": "CHAR", "DEST": "A.Q", "PSPROP": "COMPAT", "VARUSER": "FIXED", "SUBUSER": "anne"}
MADE = "TOPICSTR('a/b') DEST(A.Q) WSCHEMA(CHAR) PSPROP(COMPAT) VARUSER(FIXED) SUBUSER('anne')"


def live_of(script: str) -> LiveState:
    return read_live(memory(script))


def sub(name: str | None = "s", **more: str | int) -> PlannedObject:
    given = {"own_name": "", "stream": ""} | {k: str(more.pop(k)) for k in ("own_name", "stream") if k in more}
    return PlannedObject(kind="SUB", name=name, attributes={**SUB, **more}, number=1, **given)


def differences(planned: PlannedObject, script: str, *, at: timedelta = timedelta(0)) -> list[Difference]:
    return compare(HEADING, [planned], live_of(script), NOW + at).differences


ATTRIBUTES = [
    ("DEST", "DEST(B.Q)", "B.Q"),
    ("DESTQMGR", "DESTQMGR(QM2)", "QM2"),
    ("SUBUSER", "SUBUSER('fred')", "fred"),
    ("USERDATA", "USERDATA('x')", "x"),
    ("SUBSCOPE", "SUBSCOPE(QMGR)", "QMGR"),
    ("REQONLY", "REQONLY(YES)", "YES"),
    ("VARUSER", "VARUSER(ANY)", "ANY"),
    ("PSPROP", "PSPROP(RFH2)", "RFH2"),
    ("PUBAPPID", "PUBAPPID('id')", "id"),
    ("PUBPRTY", "PUBPRTY(3)", "3"),
    ("SUBLEVEL", "SUBLEVEL(2)", "2"),
    ("EXPIRY", "EXPIRY(600)", "600"),
]


@pytest.mark.parametrize(("keyword", "changed", "live"), ATTRIBUTES, ids=[a[0] for a in ATTRIBUTES])
def test_each_attribute_of_a_subscription(keyword: str, changed: str, live: str) -> None:
    script = f"DEFINE SUB('s') {MADE}\n"
    assert differences(sub(), script) == []
    (found,) = differences(sub(), f"{script}ALTER SUB('s') {changed}\n")
    assert (found.how, found.attribute, found.live) == ("changed", keyword, live)
    assert f"{keyword} is ({live}), planned (" in str(found)


SAME = [
    ("no-user-planned", {"SUBUSER": ""}, MADE),
    ("expiry-counts-down", {"EXPIRY": 9_000}, f"{MADE} EXPIRY(3)"),
    ("no-wildcards-no-scheme", {"WSCHEMA": "TOPIC"}, MADE),
    ("correl-id", {"DESTCORL": "414D51".ljust(48, "0")}, f"{MADE} DESTCORL(414D51)"),
    ("own-qmgr", {"DESTQMGR": "QM1"}, MADE),
    ("own-token", {}, f"{MADE} PUBACCT(0A)"),
]


@pytest.mark.parametrize(("more", "live"), [s[1:] for s in SAME], ids=[s[0] for s in SAME])
def test_what_is_no_difference(more: dict[str, str | int], live: str) -> None:
    planned = sub(**more)
    if more.get("SUBUSER") == "":
        planned = planned.model_copy(update={"attributes": {k: v for k, v in SUB.items() if k != "SUBUSER"}})
    assert differences(planned, f"DEFINE SUB('s') {live}\n") == []


def test_an_accounting_token_that_a_source_said() -> None:
    (found,) = differences(sub(PUBACCT="0B"), f"DEFINE SUB('s') {MADE} PUBACCT(0A)\n")
    assert (found.attribute, found.planned, found.live) == ("PUBACCT", "0B", "0A".ljust(64, "0"))


def test_a_scheme_that_matters() -> None:
    wild = {"TOPICSTR": "a/*"}
    script = "DEFINE SUB('s') " + MADE.replace("a/b", "a/*").replace("(CHAR)", "(TOPIC)") + "\n"
    (found,) = differences(sub(**wild), script)
    assert (found.attribute, found.planned, found.live) == ("WSCHEMA", "CHAR", "TOPIC")


def test_one_without_a_name_is_found_by_its_place() -> None:
    script = f"DEFINE SUB('made-up') {MADE}\n"
    assert differences(sub(None), script) == []
    (found,) = differences(sub(None, DESTCORL="01".ljust(48, "0")), script.replace("A.Q", "B.Q"))
    assert found.how == "missing"


def test_a_second_subscription_delivers_twice() -> None:
    script = f"DEFINE SUB('s') {MADE}\nDEFINE SUB('twin') {MADE}\nDEFINE SUB('o') TOPICSTR('x') DEST(A.Q)\n"
    comparison = compare(HEADING, [sub()], live_of(script), NOW)
    (found,) = comparison.differences
    assert (found.how, found.what) == ("extra", "subscription twin to a/b")
    assert "second copy" in found.todo
    assert comparison.others == 1


def test_another_separator_is_one_difference() -> None:
    planned = sub("evening:Sport", own_name="evening", stream="Sport")
    (found,) = differences(planned, f"DEFINE SUB('evening/Sport') {MADE}\n")
    assert (found.how, found.planned, found.live) == ("named", "evening:Sport", "evening/Sport")
    assert "--probe-names" in found.todo
    (lost,) = differences(sub("evening"), f"DEFINE SUB('other') {MADE}\n")[:1]
    assert lost.how == "missing"


def test_what_has_expired_is_not_missed() -> None:
    planned = sub(EXPIRY=600)
    assert [d.how for d in differences(planned, "")] == ["missing"]
    comparison = compare(HEADING, [planned], live_of(""), NOW + timedelta(minutes=2))
    assert (comparison.differences, comparison.expired) == ([], 1)


OBJECTS = [
    (
        PlannedObject(kind="TOPIC", name="T", attributes={"TOPICSTR": "t", "WILDCARD": "BLOCK"}),
        "DEFINE TOPIC('T') TOPICSTR('t') WILDCARD(BLOCK)",
        "ALTER TOPIC('T') PUBSCOPE(QMGR)",
        "PUBSCOPE",
    ),
    (
        PlannedObject(kind="NAMELIST", name="N", attributes={"NAMES": ("A", "B")}),
        "DEFINE NAMELIST(N) NAMES(B, A)",
        "ALTER NAMELIST(N) NAMES(A, C)",
        "NAMES",
    ),
    (
        PlannedObject(
            kind="AUTHREC",
            name="TOPIC SYSTEM.BASE.TOPIC GROUP g",
            attributes={
                "PROFILE": "SYSTEM.BASE.TOPIC",
                "OBJTYPE": "TOPIC",
                "ENTTYPE": "GROUP",
                "ENTITY": "g",
                "AUTHLIST": ("PUB", "SUB"),
            },
        ),
        "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) GROUP('g') AUTHADD(SUB, PUB)",
        "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) GROUP('g') AUTHADD(CTRL)",
        "AUTHLIST",
    ),
    (
        PlannedObject(kind="QMGR", name="QM1", attributes={"PSRTYCNT": 7}),
        "ALTER QMGR PSRTYCNT(7)",
        "ALTER QMGR PSRTYCNT(8)",
        "PSRTYCNT",
    ),
]


LISTS = [
    ("as-planned", "N", "A, B", ""),
    ("somebody-elses", "N", "A, B, HIS", ""),
    ("lacks", "N", "A, HIS", "It lacks B."),
    ("taken-out", "N", "B, HIS", "It lacks A. Somebody has taken A out since the plan was made."),
    ("record", "QPUBSUB.MIGRATION.STRMQBRK", "A, B, HIS", "It records another migration."),
]


@pytest.mark.parametrize(("name", "live", "todo"), [each[1:] for each in LISTS], ids=[each[0] for each in LISTS])
def test_6_5_4_a_namelist_has_what_is_planned_and_what_others_put_there(name: str, live: str, todo: str) -> None:
    planned = PlannedObject(kind="NAMELIST", name=name, attributes={"NAMES": ("A", "B")}, before=("A",))
    found = differences(planned, f"DEFINE NAMELIST({name}) NAMES({live})\n")
    assert [each.todo for each in found] == ([todo] if todo else [])


@pytest.mark.parametrize(("planned", "made", "changed", "attribute"), OBJECTS, ids=[o[0].kind for o in OBJECTS])
def test_each_kind_of_object(planned: PlannedObject, made: str, changed: str, attribute: str) -> None:
    missing = differences(planned, "")
    assert [(d.how, d.kind) for d in missing] == [("changed" if planned.kind == "QMGR" else "missing", planned.kind)]
    assert differences(planned, f"{made}\n") == []
    (found,) = differences(planned, f"{made}\n{changed}\n")
    assert (found.how, found.attribute) == ("changed", attribute)


def test_queued_publish_subscribe_that_is_not_enabled() -> None:
    live = read_live(memory("", psmode="COMPAT"))
    (found,) = compare(HEADING, [], live, NOW).differences
    assert (found.attribute, found.live, found.planned) == ("PSMODE", "COMPAT", "ENABLED")
    initial = HEADING.model_copy(update={"is_complete": False})
    assert compare(initial, [], live, NOW).differences == []
