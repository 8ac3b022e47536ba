"""A version 6 broker as far as ``extract`` asks it: it answers questions on metatopics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM
from commands.qmgr.store import QueueManagerStore
from migrate.extract import REPLY_QUEUE
from rfh2 import pcf_names as pcf
from rfh2.captured import CapturedMessage
from rfh2.message import decode
from rfh2.pcf import Cfin, Cfst
from tests.migrate.legacy_messages import metatopic, rfh1
from tests.waiting import PATIENCE_S

QMGR48 = "QM1".ljust(48)
SUBSCRIBERS = f"MQ/SA/{QMGR48}/Subscribers/AllIdentities/"


class Version6:
    """Answers questions on metatopics as a version 6 broker does. refuses: what, with which reason. asked: in order."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.refuses: dict[str, int] = {}
        self.asked: list[str] = []

    def answer(self, command: dict[str, str]) -> list[CapturedMessage]:
        topic, word = command["MQPSTopic"], command["MQPSCommand"]
        found: list[CapturedMessage] = []
        reason = 0
        if word == "ReqUpdate":
            self.asked.append(f"{command['MQPSStreamName']} {topic.replace(QMGR48, 'QM1')}")
            refused = next((number for what, number in self.refuses.items() if what in topic), None)
            found = [] if refused is not None else list(self._publications(command["MQPSStreamName"], topic))
            reason = refused if refused is not None else 0 if found else 3077
        pairs = [
            ("CompCode", "0" if found or word != "ReqUpdate" else "2"),
            ("Reason", str(reason)),
            ("ReasonText", "text"),
        ]
        return [*found, rfh1(90, pairs, queue=REPLY_QUEUE, by_broker=True)]

    def _publications(self, stream: str, topic: str) -> Iterator[CapturedMessage]:
        head = [Cfst.of(pcf.MQCACF_TOPIC, topic), Cfst.of(pcf.MQCACF_STREAM_NAME, stream.ljust(48))]
        if stream == ADMIN_STREAM and topic.endswith("StreamSupport"):
            names = [
                Cfst.of(pcf.MQCACF_SUPPORTED_STREAM_NAME, name) for name in (DEFAULT_STREAM, ADMIN_STREAM, "Sport")
            ]
            yield metatopic(1, [*head, *names])
        elif topic.startswith(SUBSCRIBERS) and stream == "Sport":
            head[0] = Cfst.of(pcf.MQCACF_TOPIC, f"{SUBSCRIBERS}Soccer/*")
            yield metatopic(
                2,
                [
                    *head,
                    Cfst.of(pcf.MQCACF_REG_Q_MGR_NAME, QMGR48),
                    Cfst.of(pcf.MQCACF_REG_Q_NAME, "A.Q".ljust(48)),
                    Cfst.of(pcf.MQCACF_REG_USER_ID, "anne".ljust(12)),
                    Cfin(pcf.MQIACF_REG_REG_OPTIONS, 4),
                ],
            )
        elif topic == "*" and stream == "Sport":
            pairs = [("Command", "Publish"), ("PubOpts", "IsRetainedPub"), ("Topic", "Soccer/Results")]
            yield rfh1(3, [*pairs, ("StreamName", "Sport")], data=b"2:1", by_broker=True, queue=REPLY_QUEUE)

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._work, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE_S)

    def _work(self, stop: threading.Event) -> None:
        with QueueManagerStore.open(self.home, "QM1") as store:
            while not stop.wait(0.01):
                with store.unit_of_work() as unit:
                    while (message := unit.get(CONTROL_QUEUE)) is not None:
                        header = decode(message.body, message.md).rfh1
                        assert header is not None
                        for answer in self.answer(dict(header.pairs())):
                            unit.put(REPLY_QUEUE, answer.md, answer.body)
