"""What the scope of publications and subscriptions means to a link (guide 3.3): the one place that decides it.

A publication is of scope QMGR by Local or by PUBSCOPE(QMGR) of its topic, a subscription by Local or by SUBSCOPE(QMGR).
What that comes to is the administrator's to say (``TopicsConfig.local``):

    share   the tree belongs to the queue manager. All of it is carried; a tree with scopes of its own is told
    keep    the tree is elsewhere. Publications and deletions of scope QMGR stay here; subscriptions of scope QMGR need
            nothing from the tree, and get nothing that came from it
"""

from __future__ import annotations

from typing import Final

from commands.qmgr.link_port import came_from_tree
from streams.delivery_rules import is_of_queue_manager, is_published_for_queue_manager
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObjects


class LinkScope:
    """The scope of what one link carries. keeps: whether scope QMGR keeps things here."""

    def __init__(self, keeps: bool) -> None:
        self.keeps: Final = keeps
        self._topic_objects = TopicObjects()

    def load(self, topic_objects: TopicObjects) -> None:
        """Decide by these from now on."""
        self._topic_objects = topic_objects

    def is_of_queue_manager(self, topic_string: str, local: bool) -> bool:
        """Whether a publication on the topic, or its deletion, is of scope QMGR. local: whether it is Local itself."""
        return is_published_for_queue_manager(topic_string, local, self._topic_objects)

    def stays(self, topic_string: str, local: bool) -> bool:
        """Whether it does not go into the tree."""
        return self.keeps and self.is_of_queue_manager(topic_string, local)

    def needs_tree(self, subscription: Subscription) -> bool:
        """Whether a subscription needs publications from the tree. Raises CommandError 3072 for no pattern."""
        return not (self.keeps and is_of_queue_manager(subscription, self._topic_objects))

    def is_only_here(self, retained: RetainedPublication) -> bool:
        """Whether what is retained was published here and stays here, so that nobody else has it."""
        publication = retained.publication
        return self.stays(retained.topic_string, publication.local) and not came_from_tree(publication)
