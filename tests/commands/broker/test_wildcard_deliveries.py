"""2.5.1.1.2: who is delivered what, from the MQRFH that registers to the queue that gets the publication."""

from __future__ import annotations

import re
from random import Random

import pytest

from commands import Broker, CapturedMessage, Put
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2 import Mqmd
from rfh2.rfh1 import Rfh1
from tests.streams.nearly_fitting import pattern_and_topic


class Desk:
    """A broker, and programs that put MQRFH strings to it."""

    def __init__(self) -> None:
        self._broker = Broker("QM1")
        self._seq = 0

    def put(self, queue: str, string: str) -> list[Put]:
        self._seq += 1
        header = Rfh1((string + "\0").encode("latin-1"), 273, 819, "")
        descriptor = Mqmd(format="MQHRF", user_identifier="app")
        return self._broker.handle(
            CapturedMessage(
                seq=self._seq, queue=queue, md_hex=descriptor.encode().hex(), body_hex=header.encode().hex()
            )
        )

    def subscribe(self, pattern: str, queue: str) -> None:
        assert not self.put(CONTROL_QUEUE, f"MQPSCommand RegSub MQPSTopic {pattern} MQPSQName {queue}")

    def publish(self, topic: str) -> set[str]:
        """The queues that get the publication."""
        puts = self.put(DEFAULT_STREAM, f"MQPSCommand Publish MQPSTopic {topic}")
        assert all(put.kind == "publication" for put in puts)
        return {put.queue for put in puts}


def _regex(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    letters = re.findall("%.|.", pattern)
    return re.compile("".join(wild.get(letter, re.escape(letter[-1])) for letter in letters), re.DOTALL)


@pytest.mark.parametrize(
    ("pattern", "topic"), [("*/?*/Results", "/Results"), ("*s?*sales", "sales"), ("*ab?*b?", "abb")]
)
def test_what_is_too_short_for_the_pattern_is_not_delivered(pattern: str, topic: str) -> None:
    desk = Desk()
    desk.subscribe(pattern, "Q")
    assert desk.publish(topic) == set()


@pytest.mark.rule("OLD-12")
@pytest.mark.parametrize("seed", range(3))
def test_whoever_selects_a_topic_and_nobody_else_is_delivered_it(seed: int) -> None:
    random = Random(seed)
    pairs = [pattern_and_topic(random) for _ in range(120)]
    patterns = {pattern: f"Q{number}" for number, pattern in enumerate(sorted({pattern for pattern, _ in pairs}))}
    desk = Desk()
    for pattern, queue in patterns.items():
        desk.subscribe(pattern, queue)
    # A topic with wildcards in it cannot be published to from an MQRFH.
    for topic in sorted({topic for _, topic in pairs if not set(topic) & set("*?%")}):
        expected = {queue for pattern, queue in patterns.items() if _regex(pattern).fullmatch(topic)}
        assert desk.publish(topic) == expected, topic
