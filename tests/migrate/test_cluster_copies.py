"""Copies of cluster topics at the target: they are defined elsewhere, so no plan is made on them."""

from __future__ import annotations

from commands.broker.objects import Objects, QueueManager
from migrate.target import Target
from streams.topic_objects import TopicObject


def test_a_plan_is_made_on_what_the_queue_manager_defines_itself() -> None:
    objects = Objects(QueueManager("QM1"))
    objects.topics.define(TopicObject("OWN", "own", cluster="SALES"))
    objects.topics.copy([TopicObject("GOODS", "goods", cluster="SALES")])
    assert "GOODS" in objects.topics
    planned_on, _ = Target(objects).scratch()
    assert "OWN" in planned_on.topics
    assert "GOODS" not in planned_on.topics
