"""An estate whose queue managers are reached by REST; behind each server is an embedded queue manager."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from migrate import embedded
from migrate.legacy_state import LegacyRetained, LegacyState, LegacySubscription, Source, Stream
from migrate.readers import state_json
from tests.commands.cli_runs import Ran, run
from tests.migrate.cases import told
from tests.migrate.legacy_messages import START, publish
from tests.migrate.live.rest_stub import PASSWORD, USER, rest_servers

SOURCE = Source(file="made")
CONFIRMED = ("stopped",)


def broker(qmgr: str, count: int = 3) -> LegacyState:
    """A stream, subscriptions with and without names, and something retained that one of them gets."""
    message = publish(1, "a/1", "Sport", b"2:1", user="feed", qmgr=qmgr)
    retained = LegacyRetained(
        source=SOURCE, topic="a/1", stream="Sport", md_hex=message.md_hex, body_hex=message.body_hex, published_at=START
    )
    on_stream = (_subscription(number, f"a/{number}", "Sport") for number in range(1, count + 1))
    named = (_subscription(number, f"b/{number}", name=f"sub{number}") for number in range(1, count + 1))
    return LegacyState(
        qmgr=qmgr,
        streams=(Stream(source=SOURCE, name="Sport"),),
        subscriptions=(*on_stream, *named),
        retained=(retained,),
    )


def _subscription(number: int, topic: str, *stream: str, name: str | None = None) -> LegacySubscription:
    more = {"stream": stream[0]} if stream else {}
    return LegacySubscription(
        source=SOURCE, topic=topic, queue=f"APP.{number}.Q", user="anne", created=START, name=name, **more
    )


@dataclass
class LiveEstate:
    """In *directory*; the queue managers behind the servers are in *live*."""

    directory: Path
    live: Path
    urls: dict[str, str] = field(default_factory=dict)

    def estate(self, action: str, *more: str) -> Ran:
        return run("estate", action, str(self.directory), "--home", str(self.directory / "qmgrs"), *more)

    def json(self, action: str, *more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.estate(action, *more, "--json").out)
        return found

    def states(self) -> dict[str, tuple[str, str]]:
        """The state of each broker, and the checkpoint that follows."""
        shown = self.json("status")["queue_managers"]
        return {each["qmgr"]: (each["state"], each["checkpoint"]) for each in shown}

    def known(self, qmgr: str) -> dict[str, Any]:
        """What the live queue manager has."""
        with QueueManagerStore.open(self.live, qmgr) as store:
            return told(embedded.load(store))

    def mqsc(self, qmgr: str, script: str) -> None:
        assert run("mqsc", "-m", qmgr, "--home", str(self.live), stdin=script).code == 0

    def apply_all(self, *more: str) -> list[str]:
        """Apply until nothing is left; what REST cannot do is done by hand. The checkpoints at which that was."""
        by_hand: list[str] = []
        for _ in range(8):
            words = [word for name in (*CONFIRMED, *by_hand) for word in ("--confirm", name)]
            found = self.json("apply", "--all", *words, *more)
            stops = [(each["qmgr"], line) for each in found["acted"] for line in each["said"]]
            stops += [(each["qmgr"], each["why"]) for each in found["refused"]]
            if not stops and not found["not_begun"]:
                return by_hand
            for qmgr, why in stops:
                self._load(qmgr, why)
                named = re.findall(r"--confirm (\S+)$", why)
                by_hand += [name for name in named if name not in by_hand]
        raise AssertionError(found)

    def _load(self, qmgr: str, why: str) -> None:
        found = re.search(r"load (\S+) into (\S+) by hand", why)
        assert found is not None, why
        (file,) = (self.directory / "migration" / qmgr).glob(f"plans/*/scripts/{found[1]}")
        assert run("put", "-m", qmgr, "--home", str(self.live), found[2], str(file)).code == 0
        assert run("run", "-m", qmgr, "--home", str(self.live), "--once").code == 0


@dataclass
class Servers:
    """The servers of queue managers in *home*: one process for many tests, each of which makes its own anew."""

    home: Path
    urls: dict[str, str]

    def live_estate(self, directory: Path, *states: LegacyState, **keys: str) -> LiveEstate:
        """Brokers of these states, all reached by REST. keys: further lines of a queue manager, by its name."""
        shutil.rmtree(self.home, ignore_errors=True)
        directory.mkdir(exist_ok=True)
        (directory / "secret").write_text(PASSWORD)
        (directory / "secret").chmod(0o600)
        (directory / "live.toml").write_text(f'[admin]\nuser = "{USER}"\npassword_file = "{directory}/secret"\n')
        lines = ["[migration]", 'config = "live.toml"', "sources_within_hours = 0", ""]
        for each in states:
            QueueManagerStore.create(self.home, QueueManager(each.qmgr, psmode="COMPAT")).close()
            (directory / f"{each.qmgr}.json").write_text(state_json.write([each]))
            lines += ["[[queue_manager]]", f'name = "{each.qmgr}"', f'source = "{each.qmgr}.json"']
            lines += [f'admin = "{self.urls[each.qmgr]}"', keys.get(each.qmgr, ""), ""]
        (directory / "estate.toml").write_text("\n".join(lines))
        return LiveEstate(directory, self.home, self.urls)


@contextmanager
def servers(home: Path, *qmgrs: str) -> Iterator[Servers]:
    """A server for each of these names."""
    with rest_servers(home, qmgrs) as urls:
        yield Servers(home, urls)
