"""No silent steps back: calls of functions for one message more, which neither a clock nor another program changes.

A figure may grow by a tenth, because Pythons differ. Where a change is worth more than that, or saves calls, write the
new figure here: ``pytest tests/test_calls.py -s`` prints all of them.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Final

import pytest

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.config.settings import ChannelRule
from commands.listener import worker
from commands.listener.security import Security
from commands.listener.server import Listener, ListenerOptions
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.constants import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
from tests.benchmarks.replay import messages_of
from tests.benchmarks.test_processor import NOW, TOPICS, Durability, Traffic, _loaded, put_publication
from tests.commands.listener.mqi_client import MqiClient

MORE: Final = 100
FEW: Final = 20
"""Messages before those that count, beside one on each topic, since that fills caches."""

PROCESSOR: Final = {
    (Traffic.JMS, 1): 163,
    (Traffic.JMS, 10): 285,
    (Traffic.NUMBERED, 1): 171,
    (Traffic.ANSWERED, 1): 187,
    (Traffic.AUTHORITY, 1): 189,
    (Traffic.RETAINED, 1): 216,
    (Traffic.ALIKE, 1): 157,
}
VERBS: Final = {
    ("decode", "--jobs", "1"): 837,
    ("decode", "--json", "--jobs", "1"): 431,
    ("replay", "--jobs", "1"): 146,
    ("why", "--json"): 422,
    ("differences",): 92,
}
LISTENER: Final = {
    ("put", 0, MQPER_NOT_PERSISTENT): 555,
    ("put", 0, MQPER_PERSISTENT): 625,
    ("put", MQPMO_SYNCPOINT, MQPER_PERSISTENT): 577,
    ("get", 0, MQPER_NOT_PERSISTENT): 645,
    ("get", MQGMO_SYNCPOINT, MQPER_PERSISTENT): 596,
}
"""Of a program that shares its connection, as IBM's Java client does."""


@contextmanager
def _counted() -> Iterator[list[int]]:
    """How many calls of functions there were, those in C included."""
    found, profile = [0], cProfile.Profile()
    profile.enable()
    try:
        yield found
    finally:
        profile.disable()
        found[0] = sum(entry.callcount for entry in profile.getstats())


def _holds(said: int, few: int, many: int) -> None:
    each = round((many - few) / MORE)
    print(f"{each} calls a message, {said} said")
    assert each <= said * 1.1


@pytest.mark.parametrize(("traffic", "subscribers"), PROCESSOR, ids=str)
def test_processor(tmp_path: Path, traffic: Traffic, subscribers: int) -> None:
    numbers = count(TOPICS)
    with _loaded(tmp_path / "home", TOPICS, subscribers, Durability.NORMAL, traffic) as store:
        processor = Processor(store, lambda: NOW)
        processor.drain()

        def calls(messages: int) -> int:
            with store.unit_of_work() as unit:
                for number in islice(numbers, messages):
                    put_publication(unit, number, traffic)
            with _counted() as found:
                processor.drain()
            return found[0]

        _holds(PROCESSOR[traffic, subscribers], calls(FEW), calls(FEW + MORE))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_verb(tmp_path: Path, words: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def run(capture: Path) -> None:
        with pytest.raises(SystemExit):
            main([*words, *(() if words[0] == "decode" else ("-q", "--input")), str(capture)])
        capfdbinary.readouterr()

    def calls(messages: int) -> int:
        capture = tmp_path / "capture.jsonl"
        capture.write_text("".join(json.dumps(line) + "\n" for line in messages_of("JMS", messages, FEW)))
        with _counted() as found:
            run(capture)
        return found[0]

    calls(1)  # what is imported when it is first used is not counted
    _holds(VERBS[words], calls(FEW), calls(FEW + MORE))


@pytest.mark.parametrize(("verb", "options", "persistence"), LISTENER, ids=str)
def test_listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, options: int, persistence: int) -> None:
    monkeypatch.setattr(worker, "_POLL_S", 3600.0)  # it goes by the clock

    def calls(count: int) -> int:
        home = tmp_path / f"{count}"
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        chosen, anybody = ListenerOptions(port=0, quiesce_s=0), Security({"*": ChannelRule()})
        listener = Listener(chosen, "QM1", lambda: QueueManagerStore.open(home, "QM1"), anybody)

        def begun(port: int) -> tuple[MqiClient, int]:
            client = MqiClient(port, sharing=10)
            client.share_connection()
            assert client.connect() == 0
            return client, client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)

        def put(client: MqiClient, handle: int, options: int) -> None:
            for _ in range(count):
                assert client.put(handle, bytes(1024), options, persistence=persistence)[0] == 0

        def get(client: MqiClient, handle: int, options: int) -> None:
            for _ in range(count):
                client.request_message(handle, options)
                assert len(client.streamed().body) == 1024

        async def served() -> int:
            client, handle = await asyncio.to_thread(begun, await listener.start())
            with client:
                if verb == "get":
                    await asyncio.to_thread(put, client, handle, 0)
                with _counted() as found:  # on this thread, so not those of the client
                    await asyncio.to_thread(get if verb == "get" else put, client, handle, options)
            await listener.stop()
            return found[0]

        return asyncio.run(served())

    _holds(LISTENER[verb, options, persistence], calls(FEW), calls(FEW + MORE))
