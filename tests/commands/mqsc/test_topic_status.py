"""DISPLAY TPSTATUS lists the topics of the tree in the order of their levels, however deep the tree is (2.5.3)."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given, strategies as st

from commands.broker.objects import Objects, QueueManager
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from streams.operations import Subscribe
from streams.patterns import parse_topic_pattern
from streams.subscriptions import Subscription
from streams.topic_space import TopicSpace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ask(topics: list[str], command: str) -> Answer:
    objects = Objects(QueueManager("QM1"))
    for existing in list(objects.topics):
        if existing.topic_string:
            objects.topics.delete(existing.name)
    space = TopicSpace(objects.topics)
    for number, topic in enumerate(topics):
        made = Subscription(number.to_bytes(24, "big"), topic, "Q", "QM1", NOW)
        space.apply(Subscribe(made, send_retained=False), NOW)
    [statement] = parse(command)
    return execute(statement, Administration.of(objects, space, NOW))


LEVELS = st.sampled_from(["a", "b", "a b", "", "\x01", "a!", "a0"])
TOPICS = st.lists(st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool), min_size=1, max_size=6)


@given(topics=TOPICS, pattern=st.sampled_from(["#", "a/#", "+", "a/+", "+/#", "#/b", "/#", "a/b", "#/a/#"]))
@example(topics=["/a/b", "a!/b", "a/b"], pattern="#")
def test_the_topics_that_a_pattern_selects_in_the_order_of_their_levels(topics: list[str], pattern: str) -> None:
    above = {"/".join(topic.split("/")[:count]) for topic in topics for count in range(1, 5)}
    wanted = parse_topic_pattern(pattern)
    expected = sorted((topic for topic in above if topic and wanted.matches(topic)), key=lambda topic: topic.split("/"))
    answer = ask(topics, f"DISPLAY TPSTATUS('{pattern}') SUBCOUNT")
    assert [row["TOPICSTR"] for row in answer.objects] == expected
    assert answer.ok is bool(expected)
    assert [row["SUBCOUNT"] for row in answer.objects] == [topics.count(topic) for topic in expected]


def test_a_topic_of_thousands_of_levels() -> None:
    deep = "/".join(["a"] * 5_120)
    answer = ask([deep], "DISPLAY TPSTATUS('#') SUBCOUNT")
    assert len(answer.objects) == 5_120
    assert answer.objects[-1] == {"TOPICSTR": deep, "SUBCOUNT": 1}
    assert sum(1 for line in answer.printed() if "SUBCOUNT" in line) == 5_120
    [below] = ask([deep], f"DISPLAY TPSTATUS('{deep.removesuffix('/a')}/+')").objects
    assert below["TOPICSTR"] == deep
    counted = ask([deep, "a/b"], "DISPLAY PUBSUB ALL").objects[0]
    assert counted["TPCOUNT"] == 5_121
