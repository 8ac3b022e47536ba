"""The topic-based scheme beside a real MQTT broker: where MQTT and MQ have the same rules, they select the same topics.

docs/wildcards.md lists where the rules differ; those patterns and topics stay out of the comparison.
"""

from __future__ import annotations

import queue
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from streams.index import SubscriptionIndex
from streams.subscriptions import Subscription, WildcardScheme

mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed")
pytestmark = pytest.mark.servers

Make = Callable[..., Subscription]
Select = Callable[[str], list[str]]

LEVELS = ["a", "b", "abc", "", "Sports"]
WAIT_S = 10


@pytest.fixture(scope="module")
def broker_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A mosquitto on loopback for the length of this module."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed (Debian: apt-get install mosquitto)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    config = tmp_path_factory.mktemp("mosquitto") / "mosquitto.conf"
    settings = [
        f"listener {port} 127.0.0.1",
        "allow_anonymous true",
        "persistence false",
        "max_queued_messages 0",
        "set_tcp_nodelay true",
    ]
    config.write_text("\n".join(settings) + "\n")
    with subprocess.Popen(
        [program, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=Path("/")
    ) as process:
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.skip("mosquitto does not start on loopback here")


@pytest.fixture(scope="module")
def topics() -> list[str]:
    """Publishable in MQTT and in MQ alike, every shape of up to four levels among them."""
    random = Random(1)
    made = {"/".join(random.choices(LEVELS, k=random.randint(1, 4))) for _ in range(250)}
    return sorted(topic for topic in made if topic)


@pytest.fixture(scope="module")
def mosquitto_selects(broker_port: int, topics: list[str]) -> Iterator[Select]:
    """Which of *topics* does mosquitto deliver to a subscription? Asked by subscribing, and publishing on all."""
    arrived: queue.Queue[str] = queue.Queue()
    subscribed: queue.Queue[int] = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_message = lambda client, userdata, message: arrived.put(message.topic)
    client.on_subscribe = lambda client, userdata, mid, reasons, properties: subscribed.put(mid)
    client.connect("127.0.0.1", broker_port)
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.loop_start()
    # One connection's messages stay in order, so what comes before the end belongs to the subscription.
    # MQTT's wildcards do not select a topic that begins with a dollar sign.
    end = "$end"
    client.subscribe(end)
    subscribed.get(timeout=WAIT_S)

    def select(pattern: str) -> list[str]:
        client.subscribe(pattern)
        subscribed.get(timeout=WAIT_S)
        for topic in topics:
            client.publish(topic, b"x")
        client.unsubscribe(pattern)
        client.publish(end, b"x")
        got: list[str] = []
        while (topic := arrived.get(timeout=WAIT_S)) != end:
            got.append(topic)
        return sorted(got)

    yield select
    client.disconnect()
    client.loop_stop()


def common_patterns() -> list[str]:
    """Patterns that are valid in both and have one meaning: wildcards alone in a level, '#' last."""
    random = Random(2)
    made = {
        "#",
        "+",
        "Sports/#",
        "+/+",
        "+/#",
        "/#",
        "/+",
        "Sports/+/abc",
        "a/+/+/#",
        "+/a",
        "a//b",
        "a/",
        "/+/a",
        "+/b/#",
    }
    while len(made) < 150:
        levels = random.choices([*LEVELS, "+", "+"], k=random.randint(1, 4))
        if random.random() < 0.4:
            levels.append("#")
        made.add("/".join(levels))
    return sorted(pattern for pattern in made if pattern)


def test_agrees_with_mosquitto(mosquitto_selects: Select, topics: list[str], subscription: Make) -> None:
    patterns = common_patterns()
    index = SubscriptionIndex()
    for number, pattern in enumerate(patterns):
        index.add(subscription(number, pattern, wildcard=WildcardScheme.TOPIC))
    ours: dict[str, list[str]] = {pattern: [] for pattern in patterns}
    for topic in topics:
        for found in index.match(topic):
            ours[found.topic_string].append(topic)
    theirs = {pattern: mosquitto_selects(pattern) for pattern in patterns}
    assert ours == theirs
    assert sum(map(len, theirs.values())) > 1000


ONLY_IN_MQ = ["a/#/b", "#/b", "a+", "a#", "a/+b/c", "##"]


@pytest.mark.parametrize("pattern", ONLY_IN_MQ)
def test_patterns_that_mqtt_has_not(pattern: str, subscription: Make) -> None:
    """docs/wildcards.md: MQTT refuses these filters, so there is nothing to compare; MQ takes them."""
    with pytest.raises(ValueError, match="filter"):
        mqtt.Client(mqtt.CallbackAPIVersion.VERSION2).subscribe(pattern)
    index = SubscriptionIndex()
    index.add(subscription(1, pattern))
    assert index.match(pattern.replace("/#/", "/x/").replace("#/b", "b")) != ()


def test_topics_with_a_dollar_sign_are_topics_like_any_other(subscription: Make) -> None:
    """docs/wildcards.md: an MQTT wildcard in the first level leaves them out; MQ knows no such rule."""
    index = SubscriptionIndex()
    for number, pattern in enumerate(["#", "+/a", "$x/a"]):
        index.add(subscription(number, pattern))
    assert len(index.match("$x/a")) == 3
