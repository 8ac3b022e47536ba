"""A number that comes twice: a broker that is given the messages one by one processes each of them."""

from __future__ import annotations

import pytest

from commands import Broker
from commands.explain.build import CommandSpec, command_message
from rfh2.captured import CapturedMessage
from rfh2.errors import EncodeError


def registration(topic: str, seq: int) -> CapturedMessage:
    return command_message(CommandSpec("RegSub", (topic,), tags={"QName": "SUB.Q"}, seq=seq))


@pytest.mark.parametrize("seqs", [(1, 1), (1, 2, 1), (1, 1, 1, 2, 2)], ids=str)
def test_subscriptions_have_identifiers_of_their_own(seqs: tuple[int, ...]) -> None:
    broker = Broker("QM1")
    for n, seq in enumerate(seqs):
        broker.handle(registration(f"topic/{n}", seq))
    found = broker.space.subscriptions()
    assert {s.topic_string for s in found} == {f"topic/{n}" for n in range(len(seqs))}
    assert len({s.sub_id for s in found}) == len(seqs)


def test_a_command_that_comes_twice_is_processed_twice() -> None:
    broker = Broker("QM1")
    broker.handle(registration("a", 1))
    publish = command_message(CommandSpec("Publish", ("a",), data="x", seq=2))
    first, second = broker.handle(publish), broker.handle(publish)
    assert [put.kind for put in first] == [put.kind for put in second] == ["publication"]


@pytest.mark.parametrize("pcf", [False, True])
@pytest.mark.parametrize("rfh1", [False, True])
def test_half_of_a_surrogate_pair_has_no_bytes(rfh1: bool, pcf: bool) -> None:
    with pytest.raises(EncodeError, match="cannot be written in"):
        command_message(CommandSpec("Publish", ("a\udcff",), rfh1=rfh1, pcf=pcf and not rfh1))
