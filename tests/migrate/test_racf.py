"""RACF commands for topics of a queue manager on z/OS (guide 5.1, IBM MQ's "Profiles for topic security")."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.terminal.console import ExitCode
from migrate import migmbbrk, strmqbrk
from migrate.cli.choices import racf_commands
from migrate.legacy_state import Access, AclEntry, LegacyAuthority, LegacyState, Source, Stream
from migrate.plan import Phase, PlanOptions
from migrate.target import Target
from tests.migrate.cases import LEGACY
from tests.migrate.legacy_messages import NOW
from tests.migrate.verbs import Ran

MADE = Source(file="made")
ALLOW = {"publish": Access.ALLOW, "subscribe": Access.ALLOW}
NAME = "MIGMBBRK.TOPIC.00001"
REFRESH = [
    "SETROPTS RACLIST(MXTOPIC) REFRESH",
    "/* Then, as a command to the queue manager: MQ01 REFRESH SECURITY(MXTOPIC) */",
]

LISTS = [
    ("guide-5.1.1-subscribe", {"subscribe": Access.ALLOW}, [
        f"RDEFINE MXTOPIC MQ01.SUBSCRIBE.{NAME} UACC(NONE)",
        f"PERMIT MQ01.SUBSCRIBE.{NAME} CLASS(MXTOPIC) ID(USER1) ACCESS(ALTER)", *REFRESH]),
    ("guide-5.1.5-publish", {"publish": Access.ALLOW}, [
        f"RDEFINE MXTOPIC MQ01.PUBLISH.{NAME} UACC(NONE)",
        f"PERMIT MQ01.PUBLISH.{NAME} CLASS(MXTOPIC) ID(USER1) ACCESS(UPDATE)", *REFRESH]),
    ("denied", {"subscribe": Access.DENY}, [
        f"/* DENIED: user1 on MQ01.SUBSCRIBE.{NAME}. By hand: a denial does not hold below a grant. */"]),
    ("everybody", {"publish": Access.ALLOW, "principal": "PublicGroup"}, [
        f"RDEFINE MXTOPIC MQ01.PUBLISH.{NAME} UACC(NONE)",
        f"/* PublicGroup is everybody: RALTER MXTOPIC MQ01.PUBLISH.{NAME} UACC(UPDATE) */", *REFRESH]),
    ("too-long-for-racf", {"publish": Access.ALLOW, "principal": "averylongusername"}, [
        f"RDEFINE MXTOPIC MQ01.PUBLISH.{NAME} UACC(NONE)",
        f"/* averylongusername cannot be a RACF user or group. By hand: UPDATE on MQ01.PUBLISH.{NAME} */",
        *REFRESH]),
    ("ends-a-comment", {"publish": Access.ALLOW, "principal": "a*/ DELUSER IBMUSER"}, [
        f"RDEFINE MXTOPIC MQ01.PUBLISH.{NAME} UACC(NONE)",
        f"/* a* / DELUSER IBMUSER cannot be a RACF user or group. By hand: UPDATE on MQ01.PUBLISH.{NAME} */",
        *REFRESH]),
    ("inherited", {}, []),
]  # fmt: skip


@pytest.mark.rule("MIG-33")
@pytest.mark.parametrize(("fields", "wanted"), [case[1:] for case in LISTS], ids=[case[0] for case in LISTS])
def test_entries_of_an_access_control_list(fields: dict[str, str], wanted: list[str]) -> None:
    entry = AclEntry(source=MADE, **({"topic": "a", "principal": "user1"} | fields))  # type: ignore[arg-type]
    plan = migmbbrk.plan(
        LegacyState(qmgr="MQ01", acl=(entry,)), Target.fresh("MQ01"), PlanOptions(), NOW, Phase.REHEARSE
    )
    assert racf_commands(plan, "MQ01")[2:] == wanted


def test_a_profile_is_defined_once() -> None:
    entries = tuple(AclEntry(source=MADE, topic="a", principal=f"U{n}", subscribe=Access.ALLOW) for n in range(3))
    plan = migmbbrk.plan(
        LegacyState(qmgr="MQ01", acl=entries), Target.fresh("MQ01"), PlanOptions(), NOW, Phase.REHEARSE
    )
    lines = racf_commands(plan, "QSG1")
    assert sum(line.startswith("RDEFINE") for line in lines) == 1
    assert [line for line in lines if line.startswith("PERMIT")] == [
        f"PERMIT QSG1.SUBSCRIBE.{NAME} CLASS(MXTOPIC) ID(U{n}) ACCESS(ALTER)" for n in range(3)
    ]


def test_authorities_of_a_version_6_stream() -> None:
    authority = LegacyAuthority(
        source=MADE,
        object_type="QUEUE",
        profile="Sport",
        entity_type="GROUP",
        entity="FANS",
        authorities=("PUT", "BROWSE"),
    )
    held = LegacyState(qmgr="QM1", streams=(Stream(source=MADE, name="Sport"),), authorities=(authority,))
    lines = racf_commands(strmqbrk.plan(held, Target.fresh("QM1"), PlanOptions(), NOW), "QM1")
    assert "PERMIT QM1.SUBSCRIBE.Sport CLASS(MXTOPIC) ID(FANS) ACCESS(ALTER)" in lines
    assert "PERMIT QM1.PUBLISH.Sport CLASS(MXTOPIC) ID(FANS) ACCESS(UPDATE)" in lines
    assert not any("MQQUEUE" in line for line in lines)


def test_the_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = next(str(path) for path in (LEGACY / "log-example").glob("outfile.txt"))
    given = ("-r", "-b", "TEST_BROKER", "--directory", str(tmp_path), "--target", "files", "--out", str(out), source)
    Ran("migmbbrk", tmp_path, *given, qmgr="TEST_QM")
    assert not (out / "authorities.racf").exists()
    Ran("migmbbrk", tmp_path, *given, "--racf", "MQ01", qmgr="TEST_QM")
    assert "PERMIT MQ01." in (out / "authorities.racf").read_text()


@pytest.mark.parametrize(
    "arguments", [("--racf", "MQ01"), ("--racf", "TOOLONG", "--out", "x")], ids=["no-out", "bad-name"]
)
def test_usage(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = Ran("strmqbrk", tmp_path, "--target", "files", *arguments, str(tmp_path / "x"))
    assert (ran.code, "--racf" in ran.err) == (ExitCode.USAGE, True)
