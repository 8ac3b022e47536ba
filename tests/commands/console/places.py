"""Queue managers for tests of the console: one with something on each page, one with names made to deceive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from starlette.testclient import TestClient

from commands.broker.objects import LocalQueue, QueueManager
from commands.broker.puts import DeadLetters
from commands.cli.demo import demo_files
from commands.console.access import ConsoleOptions
from commands.console.server import ConsoleApp
from commands.console.source import Source
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.replay.step import Timeline, blocks_of
from commands.replay.step.index_file import IndexFile
from commands.terminal.users import groups_of
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.captures import read_captures
from streams.operations import Publication, RetainedPublication, RetainedStored, SubscriptionAdded
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObject

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"
ORIGIN = "http://127.0.0.1:8414"

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
OVERRIDE = "safe\u202egnp.exe\u2066"
LONGEST_NAME = "A" * 48
HOSTILE = (
    MARKUP,
    OVERRIDE,
    "esc\x1b[31mred\x07",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(3)//",
    "../../etc/passwd?x=1&y=2#z",
    "long/" + "x" * 10_235,
    "/" * 500 + "deep",
    "\u05e9\u05dc\u05d5\u05dd/\U0001f600",
)
"""Topic strings, and subscription names, that programs may give."""


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def put(store: QueueManagerStore, queue: str, psc: str, data: bytes = b"data", **mqmd: object) -> None:
    """Put a command in an MQRFH2."""
    md = Mqmd(
        **{  # type: ignore[arg-type]
            "format": "MQHRF2",
            "persistence": 1,
            "priority": 0,
            "user_identifier": "alice",
            "put_appl_name": "news.exe",
            **mqmd,
        }
    )
    with store.unit_of_work() as unit:
        unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data)


def register(store: QueueManagerStore, topic: str, queue: str, name: str | None = None) -> None:
    """Put a RegSub."""
    named = "" if name is None else f"<SubName>{_escaped(name)}</SubName>"
    put(store, CONTROL, f"<Command>RegSub</Command><Topic>{_escaped(topic)}</Topic><QName>{queue}</QName>{named}")


def publish(
    store: QueueManagerStore, topic: str, data: bytes = b"data", options: str = "<PubOpt>RetainPub</PubOpt>"
) -> None:
    """Put a Publish."""
    put(store, STREAM, f"<Command>Publish</Command>{options}<Topic>{_escaped(topic)}</Topic>", data)


def filled(home: Path, name: str = "QM1") -> None:
    """Make the queue manager, with something on each page."""
    with QueueManagerStore.create(home, QueueManager(name), clock=lambda: NOW) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue(LONGEST_NAME))
            unit.save_definition(TopicObject("SPORT", "Sport"))
        register(store, "Sport/#", "BOARD", "results")
        register(store, "Sport/Soccer", LONGEST_NAME)
        publish(store, "Sport/Soccer", b"<b>2:1</b>")
        publish(store, "Sport/Golf", b"birdie")
        letter = DeadLetters(name, DEAD).put(Mqmd(format="MQSTR", user_identifier="bob"), b"lost", 2053, "BOARD", NOW)
        with store.unit_of_work() as unit:
            unit.put(DEAD, letter.message.mqmd.encode(), letter.body, time=NOW, user="bob")
        Processor(store, lambda: NOW).drain()


def hostile(home: Path, name: str = "QM1") -> None:
    """Make a queue manager whose names are HOSTILE."""
    with QueueManagerStore.create(home, QueueManager(name, description=MARKUP[:64]), clock=lambda: NOW) as store:
        md = Mqmd(format="MQSTR", put_appl_name=MARKUP[:28]).encode()
        with store.unit_of_work() as unit:
            for number, text in enumerate(HOSTILE):
                sub_id, name = (number + 1).to_bytes(24, "big"), f"{text[:200]}{number}"
                made = Subscription(sub_id, text, f"Q{number}", "QM1", NOW, name, user="alice", user_data=text[:99])
                kept = RetainedPublication(text, Publication(decode(text.encode(), md), NOW))
                unit.save_effects([SubscriptionAdded(made), RetainedStored(kept)])
                unit.put(f"Q{number}", md, text.encode(), user=MARKUP[:12])


@dataclass(frozen=True)
class Opened:
    """A console, and a browser without scripts."""

    client: TestClient
    home: Path

    def store(self) -> QueueManagerStore:
        return QueueManagerStore.open(self.home, "QM1", clock=lambda: NOW)

    def token(self, path: str) -> str:
        """The token of the forms of a page."""
        page = self.client.get(path).text
        return page.partition('name="token" value="')[2].partition('"')[0]


@contextmanager
def demo_timeline() -> Iterator[Timeline]:
    """The capture of the demo, for time travel."""
    with demo_files() as demo:
        setup = (demo / "streams.mqsc").read_text()
        records = list(read_captures(demo / "capture.jsonl"))
    messages = [record.message for record in records if record.message is not None]
    with IndexFile.temporary(blocks_of(messages, setup, "v7")) as store:
        yield Timeline(store, setup, "v7")


@contextmanager
def opened(
    home: Path,
    options: ConsoleOptions | None = None,
    open_timeline: Callable[[], AbstractContextManager[Timeline]] | None = None,
) -> Iterator[Opened]:
    """The console of queue manager QM1 in *home*."""
    chosen = options or ConsoleOptions("127.0.0.1", 8414)
    source = Source(lambda: QueueManagerStore.open(home, "QM1", clock=lambda: NOW), groups_of, open_timeline)
    source.prepare()
    origin = f"{chosen.scheme}://127.0.0.1:8414"
    client = TestClient(ConsoleApp("QM1", chosen, source).asgi(), base_url=origin, follow_redirects=False)
    try:
        with client:
            yield Opened(client, home)
    finally:
        source.close()
