"""Subscribers that get nothing, each for another reason: run this file to write fixtures/why again.

Each subscriber has a queue of its own, named for the reason, but for two that share a group. ``EXPECTED`` says which
reason ``qpubsub why`` must find for each. BOARD and INTERCEPTOR are ordinary subscribers, which get publications. Under
version 6 there are the subscribers of other versions' rules: scope, stream and subscription point.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import DEAD_LETTER_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival
from commands.broker.puts import DeadLetters
from commands.broker.times import EPOCH
from commands.explain.build import CommandSpec, command_message
from commands.explain.why import Reason, Verdict
from commands.explain.why.verdict import Summary, lines_of
from commands.mqsc.broker import Broker
from commands.replay.network.why import LocalWhy
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.results_service import as_lines

FIXTURES = Path(__file__).parents[2] / "fixtures" / "why"
OPENING = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
STOCK: Final = "STOCK.STREAM"
UNREAD: Final = "UNREAD.STREAM"

SETUP: Final = """\
* Where publications are kept back
DEFINE TOPIC(CLOSED.ROOM) TOPICSTR('Closed/Room') WILDCARD(BLOCK)
DEFINE TOPIC(DISABLED) TOPICSTR('Disabled') PUB(DISABLED)
* A stream, and a subscription point
DEFINE QLOCAL(STOCK.STREAM)
DEFINE TOPIC(STOCK.STREAM) TOPICSTR('Stock') WILDCARD(BLOCK)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) +
      NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, STOCK.STREAM)
DEFINE TOPIC(USD) TOPICSTR('USD') WILDCARD(BLOCK)
ALTER NAMELIST(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, USD)
* Levels and groups
DEFINE SUB(INTERCEPTOR) TOPICSTR('Level/News') DEST(INTERCEPTOR) SUBLEVEL(5)
DEFINE SUB(LEVEL) TOPICSTR('Level/News') DEST(LEVEL)
DEFINE SUB(GROUP.CLOSE) TOPICSTR('Group/News') DEST(GROUP) DESTCORL(AA) GROUPSUB(YES)
DEFINE SUB(GROUP.WIDE) TOPICSTR('Group/+') DEST(GROUP) DESTCORL(AA) GROUPSUB(YES)
* Who may do what: app may do everything that the programs do, stranger may put and nothing else
SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL('app') AUTHADD(PUB,SUB,RESUME)
SET AUTHREC PROFILE('**') OBJTYPE(QUEUE) PRINCIPAL('app') AUTHADD(PUT)
SET AUTHREC PROFILE('**') OBJTYPE(QUEUE) PRINCIPAL('stranger') AUTHADD(PUT)
"""

SETUP_V6: Final = """\
DEFINE QLOCAL(STOCK.STREAM)
"""

EXPECTED: Final[dict[str, Reason]] = {
    "NO.MATCH": Reason.NO_MATCH,
    "TOO.LATE": Reason.NO_MATCH,
    "SCHEME.STAR": Reason.WILDCARD_SCHEME,
    "SCHEME.HASH": Reason.WILDCARD_SCHEME,
    "CASE": Reason.CASE,
    "BLANK": Reason.BLANK,
    "BLANK.INSIDE": Reason.BLANK,
    "SLASH.FIRST": Reason.SLASH,
    "SLASH.LAST": Reason.SLASH,
    "STREAM": Reason.STREAM,
    "STREAM.NOT.READ": Reason.STREAM,
    "SUB.POINT": Reason.SUB_POINT,
    "SUB.POINT.UNKNOWN": Reason.SUB_POINT,
    "FILTER": Reason.FILTER,
    "FILTER.NOT.SET": Reason.FILTER,
    "BLOCKED": Reason.BLOCKED,
    "PUBLISH.DISABLED": Reason.PUBLISH_DISABLED,
    "OWN.PUBLICATION": Reason.OWN_PUBLICATION,
    "REQUEST.ONLY": Reason.REQUEST_ONLY,
    "NEW.ONLY": Reason.NEW_ONLY,
    "EXPIRED.SUBSCRIPTION": Reason.EXPIRED_SUBSCRIPTION,
    "EXPIRED.PUBLICATION": Reason.EXPIRED_PUBLICATION,
    "DEREGISTERED": Reason.DEREGISTERED,
    "REFUSED": Reason.REFUSED,
    "REFUSED.QUEUE": Reason.REFUSED,
    "LEVEL": Reason.LEVEL,
    "GROUP": Reason.GROUP,
    "AUTHORITY.PUBLISH": Reason.AUTHORITY,
    "AUTHORITY.SUBSCRIBE": Reason.AUTHORITY,
    "QUEUE.FULL": Reason.QUEUE_FULL,
    "QUEUE.GONE": Reason.QUEUE_GONE,
    "DEAD.LETTER": Reason.DEAD_LETTER,
    "TRANSMISSION": Reason.TRANSMISSION,
}
"""The one reason for each queue; of GROUP, for its subscription that is not chosen."""

EXPECTED_V6: Final[dict[str, Reason]] = {
    "SCOPE": Reason.SCOPE,
    "STREAM": Reason.STREAM,
    "SUB.POINT": Reason.SUB_POINT,
}

SERVED: Final = {"BOARD", "INTERCEPTOR", "GROUP"}
"""The queues of version 7 that get publications."""


@dataclass
class Session:
    """A capture while it is made, with a broker beside it, whose puts become dead letters of the capture."""

    setup: str
    semantics: str
    messages: list[CapturedMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._broker = Broker("QM1", self.setup, self.semantics)

    def put(self, word: str, *topics: str, queue: str = "", user: str = "app", **more: Any) -> None:
        """A program puts a command. queue: its own. The rest is as for CommandSpec, and of the descriptor."""
        expiry, reply_to_qmgr = more.pop("expiry", -1), more.pop("reply_to_qmgr", "")
        mqmd = Mqmd(reply_to_q=queue, reply_to_qmgr=reply_to_qmgr, expiry=expiry, user_identifier=user)
        wanted = CommandSpec(word, topics, queue=more.pop("to", ""), mqmd=mqmd, data=more.pop("data", ""), **more)
        self.add(command_message(wanted), user)

    def add(self, message: CapturedMessage, user: str = "app") -> None:
        """A message arrives, a second after the last one."""
        seq = len(self.messages) + 1
        made = message.model_copy(
            update={"seq": seq, "time": OPENING + timedelta(seconds=seq), "user": user, "qmgr": "QM1"}
        )
        self.messages.append(made)

    def dead(self, queue: str, reason: int) -> None:
        """The last publication for *queue* came back as a dead letter."""
        now = EPOCH
        broker, found = Broker("QM1", self.setup, self.semantics), None
        for each in self.messages:
            now = each.time or now
            outcome = broker.process(Arrival(each.seq, now, each.queue, each.md, each.body, each.user))
            found = next((put for put in outcome.puts if put.queue == queue), found)
        assert found is not None
        letter = DeadLetters("QM1", DEAD_LETTER_QUEUE).put(found.message.mqmd, found.body, reason, queue, now)
        md, body = letter.message.mqmd.encode(), letter.body
        self.add(CapturedMessage(seq=0, queue=DEAD_LETTER_QUEUE, md_hex=md.hex(), body_hex=body.hex()), "QM1")


def version_7() -> list[CapturedMessage]:
    """The programs of version 7, one after another."""
    session = Session(SETUP, "v7")
    put = session.put
    put("Publish", "Past/News")
    put("Publish", "Retained/Once", options=("RetainPub",))
    put("Publish", "Retained/Brief", options=("RetainPub",), expiry=20)
    put("RegSub", "Sport/Soccer", queue="BOARD")
    put("RegSub", "Weather/Tomorrow", queue="NO.MATCH")
    put("RegSub", "Past/News", queue="TOO.LATE")
    put("RegSub", "Sport/*", queue="SCHEME.STAR")
    put("RegSub", "Sport/#", queue="SCHEME.HASH", rfh1=True)
    put("RegSub", "sport/soccer", queue="CASE")
    put("RegSub", "Sport/Soccer ", queue="BLANK")
    put("RegSub", "Sport/Final  Score", queue="BLANK.INSIDE")
    put("RegSub", "/Sport/Soccer", queue="SLASH.FIRST")
    put("RegSub", "Sport/Soccer/", queue="SLASH.LAST")
    put("RegSub", "Price/IBM", queue="STREAM")
    put("RegSub", "Price/Unread", queue="STREAM.NOT.READ")
    put("RegSub", "Rates/Euro", queue="SUB.POINT")
    put("RegSub", "Rates/Yen", queue="SUB.POINT.UNKNOWN")
    put("RegSub", "Match/Goals", queue="FILTER", tags={"Filter": "Goals > 3"})
    put("RegSub", "Match/Goals", queue="FILTER.NOT.SET", tags={"Filter": "Team = 'Arsenal'"})
    put("RegSub", "Closed/#", queue="BLOCKED")
    put("RegSub", "Disabled/News", queue="PUBLISH.DISABLED")
    put("RegSub", "Own/News", queue="OWN.PUBLICATION")
    put("RegSub", "Request/News", queue="REQUEST.ONLY", options=("PubOnReqOnly",))
    put("RegSub", "Retained/Once", queue="NEW.ONLY", options=("NewPubsOnly",))
    put("RegSub", "Brief/News", queue="EXPIRED.SUBSCRIPTION", expiry=10)
    put("RegSub", "Retained/Brief", queue="EXPIRED.PUBLICATION")
    put("RegSub", "Former/News", queue="DEREGISTERED")
    put("DeregSub", "Former/News", queue="DEREGISTERED")
    put("RegSub", "Refused/News", queue="REFUSED", tags={"Filter": "Goals >"})
    put("RegSub", "Refused/Queue", queue="REFUSED.QUEUE", to=DEFAULT_STREAM)
    put("RegSub", "Private/News", queue="AUTHORITY.PUBLISH")
    put("RegSub", "Private/Letters", queue="AUTHORITY.SUBSCRIBE", user="stranger")
    put("RegSub", "Full/News", queue="QUEUE.FULL")
    put("RegSub", "Gone/News", queue="QUEUE.GONE")
    put("RegSub", "Wrong/News", queue="DEAD.LETTER")
    put("RegSub", "Remote/News", queue="TRANSMISSION", reply_to_qmgr="QM2")
    put("Publish", "Sport/Soccer", data="2 1")
    put("Publish", "Sport/Final Score", data="3 0")
    put("Publish", "Price/IBM", to=STOCK)
    put("Publish", "Price/Unread", to=UNREAD)
    put("Publish", "Rates/Euro", tags={"SubPoint": "USD"})
    put("Publish", "Rates/Yen", tags={"SubPoint": "EUR"})
    put("Publish", "Match/Goals", usr={"Goals": 2})
    put("Publish", "Closed/Room/1")
    put("Publish", "Disabled/News")
    put("Publish", "Own/News", queue="OWN.PUBLICATION", options=("OtherSubsOnly",))
    put("Publish", "Request/News")
    put("Publish", "Brief/News")
    put("Publish", "Former/News")
    put("Publish", "Refused/News")
    put("Publish", "Refused/Queue")
    put("Publish", "Level/News")
    put("Publish", "Group/News")
    put("Publish", "Private/News", user="stranger")
    put("Publish", "Private/Letters")
    put("Publish", "Full/News")
    put("Publish", "Gone/News")
    session.dead("QUEUE.FULL", 2053)
    session.dead("QUEUE.GONE", 2085)
    put("Publish", "Wrong/News", options=("RetainPubs",))
    put("Publish", "Remote/News")
    return session.messages


def version_6() -> list[CapturedMessage]:
    """The programs of version 6."""
    session = Session(SETUP_V6, "v6")
    put = session.put
    put("RegSub", "Sport/Soccer", queue="SCOPE", options=("Local",), rfh1=True)
    put("RegSub", "Price/IBM", queue="STREAM", rfh1=True)
    put("RegSub", "Rates/Euro", queue="SUB.POINT")
    put("Publish", "Sport/Soccer", rfh1=True)
    put("Publish", "Price/IBM", to=STOCK, rfh1=True)
    put("Publish", "Rates/Euro", tags={"SubPoint": "USD"})
    return session.messages


@dataclass(frozen=True)
class Case:
    """One capture of the fixture. name: of its files."""

    name: str
    setup: str
    semantics: str
    messages: tuple[CapturedMessage, ...]
    expected: dict[str, Reason]

    def answers(self) -> list[Verdict]:
        """What ``why`` says of the capture."""
        return list(LocalWhy(self.setup, self.semantics).answers(self.messages))

    def files(self) -> dict[str, str]:
        """The files of the fixture, by name."""
        verdicts, summary = self.answers(), Summary()
        for verdict in verdicts:
            summary.add(verdict)
        return {
            f"{self.name}.mqsc": self.setup,
            f"{self.name}.jsonl": as_lines(list(self.messages)),
            f"{self.name}-why.jsonl": "".join(
                json.dumps({"format": 1, **v.form()}, ensure_ascii=False) + "\n" for v in verdicts
            ),
            f"{self.name}-why.txt": "".join(f"{line}\n" for line in lines_of(summary)),
        }


def cases() -> Iterator[Case]:
    """The captures."""
    yield Case("silent", SETUP, "v7", tuple(version_7()), EXPECTED)
    yield Case("silent-v6", SETUP_V6, "v6", tuple(version_6()), EXPECTED_V6)


if __name__ == "__main__":
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for case in cases():
        for name, text in case.files().items():
            (FIXTURES / name).write_text(text)
