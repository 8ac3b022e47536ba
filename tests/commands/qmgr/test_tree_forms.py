"""What a form makes for a linked topic tree is what the link makes of the broker's outcome, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing
from commands.links.engine import properties
from commands.links.engine.properties import ForTree, for_tree, publishing
from commands.mqsc.broker import Broker
from commands.qmgr import loaded
from commands.qmgr.loaded import TreeForms
from commands.templates.parts import parts_of
from rfh2.errors import DecodeError
from rfh2.message import decode
from streams.operations import PublishToTopic
from tests.commands.qmgr.test_publication_templates import (
    FOLDERS,
    PLAIN,
    PROGRAMS,
    STREAMS,
    SUBSCRIBERS,
    TOPICS,
    Program,
    _arrival,
    _body,
    published,
)

QUEUE = "OUTGOING"
STAYS = "a//b"
"""A topic of which the tree gets nothing."""


class World:
    """A broker whose publications go to a tree, and the forms that are learned from them."""

    def __init__(self) -> None:
        self.broker, self.forms = Broker("QM1", STREAMS + SUBSCRIBERS), TreeForms()
        self.answered = 0

    def check(self, arrival: Arrival) -> None:
        answer = self.forms.answer(arrival, parts_of(arrival))
        outcome = self.broker.trace(arrival)
        published = [each for each in outcome.operations if isinstance(each, PublishToTopic)]
        wanted = tuple(
            publishing(each, "QM1", QUEUE, each.publication.local) for each in published if each.topic_string != STAYS
        )
        # A form says nothing of a command that is in error: only a publication is carried out with its message.
        if answer is not None and published:
            self.answered += 1
            assert [_seen(put) for put in answer] == [_seen(put) for put in wanted]
            assert [_read(put) for put in answer] == [_read(put) for put in wanted]
        self.forms.learn(arrival, outcome, wanted)


def _seen(put: Outgoing) -> tuple[Any, ...]:
    """All that a queue gets of a message."""
    return put.kind, put.qmgr, put.queue, put.topic, put.expires_at, put.temporary, put.md, put.body


def _read(put: Outgoing) -> ForTree | None:
    """What the link reads in a message for the tree, which may remember an earlier one; None where it is damaged."""
    md = put.md
    try:
        plain = properties._for_tree(decode(put.body, md))
    except DecodeError:
        with pytest.raises(DecodeError):
            for_tree(md, put.body)
        return None
    assert for_tree(md, put.body) == plain
    return plain


@given(drawn=st.lists(published(), max_size=60))
def test_any_publications_in_any_order(drawn: list[tuple[Program, bytes]]) -> None:
    world = World()
    for number, (program, body) in enumerate(drawn, 1):
        world.check(_arrival(program, body, number))


def _message(program: Program, topic: str, *folders: bytes, data: bytes = b"data") -> bytes:
    psc = program.psc.format(topic=topic, number="1").encode()
    return _body(program, [psc.ljust(-(-len(psc) // 4) * 4), *folders], data=data)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_each_program_with_every_topic_and_folder(program: Program) -> None:
    world = World()
    number = 0
    for topic in TOPICS:
        for folders in ((), *((folder,) for folder in FOLDERS), tuple(FOLDERS[:2])):
            number += 1
            world.check(_arrival(program, _message(program, topic, *folders, data=b"x" * number), number))


def test_publications_without_an_equal_have_a_form() -> None:
    program = replace(PLAIN, psc="<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>")
    world = World()
    for number in range(1, 101):
        usr = f"<usr><n>{number}</n></usr>".encode()
        body = _message(program, TOPICS[number % 2], b"<mcd><Msd>jms_text</Msd></mcd>", usr, data=b"%d" % number)
        world.check(_arrival(program, body, number))
    assert world.answered == 98


def test_forms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "_MOST_FORMS", 10)
    program = replace(PLAIN, psc="<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>")
    world = World()
    for number in range(1, 36):
        world.check(_arrival(program, _message(program, f"t/{number}"), number))
        assert len(world.forms._forms) <= 10
