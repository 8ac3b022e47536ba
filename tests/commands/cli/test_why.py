"""``qpubsub why``: its options, and its answers about a queue manager; tests/commands/explain/why has captures."""

from __future__ import annotations

import json
import time
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from commands.qmgr.store import QueueManagerStore
from tests.commands.cli.test_sub_pub import line_of, started
from tests.commands.cli_runs import run, working
from tests.waiting import PATIENCE_S

CAPTURE = str(Path(__file__).parents[3] / "fixtures" / "why" / "silent.jsonl")
SETUP = str(Path(__file__).parents[3] / "fixtures" / "why" / "silent.mqsc")

SCRIPT = """\
DEFINE QLOCAL(FULL) MAXDEPTH(1)
DEFINE QLOCAL(NOGET) GET(DISABLED)
DEFINE QLOCAL(NOPUT) PUT(DISABLED)
DEFINE QLOCAL(QM2) USAGE(XMITQ)
DEFINE TOPIC(DISABLED) TOPICSTR('Disabled') PUB(DISABLED)
DEFINE SUB(FULL) TOPICSTR('Sport/Soccer') DEST(FULL)
DEFINE SUB(NOGET) TOPICSTR('Sport/Soccer') DEST(NOGET)
DEFINE SUB(NOPUT) TOPICSTR('Sport/Soccer') DEST(NOPUT)
DEFINE SUB(CASE) TOPICSTR('sport/soccer') DEST(CASE)
DEFINE SUB(RED) TOPICSTR('Sport/#') DEST(RED) SELECTOR('Colour = ''red''')
DEFINE SUB(DISABLED) TOPICSTR('Disabled/News') DEST(DISABLED)
DEFINE SUB(REMOTE) TOPICSTR('Sport/#') DEST(REMOTE) DESTQMGR(QM2)
DEFINE SUB(ON.REQUEST) TOPICSTR('Sport/#') DEST(ON.REQUEST) REQONLY(YES)
DEFINE SUB(BOARD) TOPICSTR('Sport/#') DEST(BOARD)
"""

USAGE: list[tuple[tuple[str, ...], str]] = [
    (("--input", CAPTURE, "-m", "QM1"), "not both"),
    (("--input", CAPTURE, "--publish", "a"), "need -m QMGR"),
    (("--input", CAPTURE, "--follow"), "need -m QMGR"),
    (("-m", "QM1", "--setup", SETUP), "need --input FILE"),
    (("-m", "QM1", "--semantics", "v6"), "need --input FILE"),
    (("-m", "QM1", "--data", "x"), "need --publish TOPIC"),
    (("-m", "QM1", "--publish", "a", "--follow"), "not both"),
    (("-m", "QM1", "--limit", "1"), "without --follow, --limit need --input FILE"),
    (("--topic", "", "--input", CAPTURE), "topic"),
    (("--input", "no-such-file"), "no such file"),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path / "qmgrs"))
    monkeypatch.delenv("QPUBSUB_QMGR", raising=False)
    assert run("create", "QM1").code == 0
    assert run("mqsc", "-m", "QM1", stdin=SCRIPT).code == 0
    return tmp_path / "qmgrs"


def answers(*words: str) -> dict[str, str]:
    """The reason for each queue."""
    ran = run("why", "--json", *words)
    assert ran.code == 0, ran.talk
    return {line["queue"]: line["reason"] for line in map(json.loads, ran.lines)}


@pytest.mark.parametrize(("words", "says"), USAGE)
def test_usage(home: Path, words: tuple[str, ...], says: str) -> None:
    ran = run("why", *words)
    assert ran.code == 2
    assert says in ran.talk


def test_the_keys_of_an_answer(home: Path) -> None:
    line = json.loads(run("why", "BOARD", "--input", CAPTURE, "--setup", SETUP, "--json").out)
    assert list(line) == ["format", "seq", "topic", "queue", "sub_name", "delivered", "reason", "detail"]
    expected = (1, 37, "Sport/Soccer", "BOARD", None, True, "delivered", "")
    assert tuple(line.values()) == expected


def test_a_record_that_cannot_be_read_may_be_what_is_missed(tmp_path: Path) -> None:
    lines = Path(CAPTURE).read_text(encoding="utf-8").splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([*lines[:5], "{", *lines[5:]]), encoding="utf-8")
    ran = run("why", "NOBODY", "--input", str(broken), "--setup", SETUP, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["reason"] == "unknown"
    assert "1 record of the capture could not be read" in ran.out
    expired = run("why", "EXPIRED.SUBSCRIPTION", "--input", str(broken), "--setup", SETUP, "--json")
    assert json.loads(expired.out)["reason"] == "unknown"


PUBLISHED = {
    "FULL": "delivered",
    "NOGET": "delivered",
    "NOPUT": "dead-letter",
    "CASE": "case",
    "RED": "filter",
    "REMOTE": "transmission",
    "ON.REQUEST": "request-only",
    "BOARD": "delivered",
}


def test_a_publication_that_nobody_makes(home: Path) -> None:
    assert answers("-m", "QM1", "--publish", "Sport/Soccer") == PUBLISHED
    red = answers("-m", "QM1", "--publish", "Sport/Soccer", "--property", "Colour=red")
    assert red == {**PUBLISHED, "RED": "delivered"}
    with QueueManagerStore.open(home, "QM1") as store:
        assert all(not queue.depth for queue in store.overview().queues)


def test_what_the_present_state_keeps_back(home: Path) -> None:
    before = answers("-m", "QM1")
    expected = {**PUBLISHED, "CASE": "delivered", "RED": "delivered", "DISABLED": "publish-disabled"}
    assert before == expected
    assert run("pub", "-m", "QM1", "Sport/Soccer", "2 1").code == 0
    assert run("run", "-m", "QM1", "--once").code in (0, 1)
    assert answers("-m", "QM1") == {**expected, "FULL": "queue-full", "CASE": "case", "RED": "filter"}
    assert answers("-m", "QM1", "--publish", "Sport/Soccer")["FULL"] == "queue-full"


@pytest.mark.parametrize("more", [(), ("--publish", "Sport/Soccer")])
def test_a_subscription_that_has_expired(home: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("mqsc", "-m", "QM1", stdin="ALTER SUB(BOARD) EXPIRY(36000)\n").code == 0
    assert answers("-m", "QM1", "BOARD", *more) == {"BOARD": "delivered"}

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Later:
            return cls.fromtimestamp(time.time() + 3601, tz)

    monkeypatch.setattr("commands.running.why.datetime", Later)
    assert answers("-m", "QM1", "BOARD", *more) == {"BOARD": "expired-subscription"}


def test_a_queue_that_does_not_exist(home: Path) -> None:
    assert run("create", "QM9", "--strict").code == 0
    script = "DEFINE QLOCAL(SOON)\nDEFINE SUB(SOON) TOPICSTR('News') DEST(SOON)\nDELETE QLOCAL(SOON)\n"
    assert run("mqsc", "-m", "QM9", stdin=script).code == 0
    assert answers("-m", "QM9") == {"SOON": "queue-gone"}
    assert answers("-m", "QM9", "--publish", "News") == {"SOON": "queue-gone"}


def test_authority_records_that_let_nobody_publish(home: Path) -> None:
    record = "SET AUTHREC PROFILE(DISABLED) OBJTYPE(TOPIC) PRINCIPAL('somebody') AUTHADD(PUB)\n"
    assert run("mqsc", "-m", "QM1", stdin=record).code == 0
    assert answers("-m", "QM1", "BOARD") == {"BOARD": "authority"}
    assert answers("-m", "QM1", "DISABLED") == {"DISABLED": "publish-disabled"}


@pytest.mark.parametrize(
    ("topic", "says"),
    [("a/#", "wildcards are not allowed"), ("Nobody", "no subscription selects the topic")],
)
def test_a_publication_without_subscribers_says_so(home: Path, topic: str, says: str) -> None:
    assert says in run("why", "-m", "QM1", "--publish", topic).out


def test_every_subscription_of_a_queue_has_a_line(home: Path) -> None:
    more = "DEFINE SUB(STAR) TOPICSTR('Sport/*') DEST(BOARD)\nDEFINE SUB(SMALL) TOPICSTR('sport/Soccer') DEST(BOARD)\n"
    assert run("mqsc", "-m", "QM1", stdin=more).code == 0
    present = run("why", "-m", "QM1", "BOARD").lines
    assert present[0] == "3 subscriptions, 3 of them can receive publications"
    assert present[2] == "BOARD"
    assert [line.split()[:3] for line in present[3:]] == [
        ["delivered", "subscription", f"{name}:"] for name in ("BOARD", "STAR", "SMALL")
    ]
    assert "'*' and '?' are not wildcards of this subscription" in present[4]
    published = run("why", "-m", "QM1", "BOARD", "--publish", "Sport/Soccer").lines
    assert published[0] == "3 subscriptions, 1 of them gets it"
    assert published[3].split() == ["delivered", "subscription", "BOARD"]
    small, star = sorted(published[4:])
    assert small.endswith("the subscription to 'sport/Soccer' does not select 'Sport/Soccer': case differs")
    assert "'Sport/*' does not select 'Sport/Soccer': '*' and '?' are not wildcards of this subscription" in star


@pytest.mark.parametrize("more", [(), ("--publish", "Sport/Soccer")])
def test_a_subscriber_who_is_not_there(home: Path, more: tuple[str, ...]) -> None:
    ran = run("why", "-m", "QM1", "BORD", *more)
    assert ran.lines == ["BORD", "  no-match  there is no subscription for queue BORD; similar queues: BOARD"]
    (line,) = run("why", "-m", "QM1", "--sub", "NOBODY", "--json", *more).lines
    assert json.loads(line)["detail"] == "there is no subscription with the name NOBODY"


def test_the_next_publications(home: Path) -> None:
    with working(home):
        follower = started("why", "-m", "QM1", "--follow", "--json", "-C", "5")
        line_of(follower, "explaining each publication")
        assert run("pub", "-m", "QM1", "Sport/Tennis", "love", "--property", "Colour=blue").code == 0
        assert run("pub", "-m", "QM1", "Sport/Tennis", "all", "--property", "Colour=red").code == 0
        for topic in ("Sport/Soccer", "Sport/Soccer", "Elsewhere"):
            assert run("pub", "-m", "QM1", topic, "2 1").code == 0
        out, _ = follower.communicate(timeout=PATIENCE_S)
    lines = [json.loads(line) for line in out.splitlines()]
    reasons = [(line["topic"], line["reason"]) for line in lines if line["queue"] == "RED"]
    assert reasons[:2] == [("Sport/Tennis", "filter"), ("Sport/Tennis", "delivered")]
    # The first one filled the queue.
    assert [line["reason"] for line in lines if line["queue"] == "FULL"] == ["delivered", "queue-full"]
    assert [(line["topic"], line["reason"]) for line in lines if not line["queue"]] == [("Elsewhere", "no-match")]
    assert not any(line["queue"].startswith("QPUBSUB.SUB.") for line in lines)
    with QueueManagerStore.open(home, "QM1") as store:
        assert not any(s.dest_queue.startswith("QPUBSUB.SUB.") for s in store.load_state()[1])
