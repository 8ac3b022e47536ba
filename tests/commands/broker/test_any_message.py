"""Whatever is put on whatever queue: the broker answers it, keeps it or passes it over; and an error undoes all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.puts import PutKind
from commands.headers.psc_commands import ALL_TAGS
from commands.headers.response import Completion
from commands.model import DelOpt, PubOpt, RegOpt
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST
from rfh2.mqmd import Mqmd
from streams.topic_objects import TopicObject
from tests.commands.scenario import KICK_OFF, Result, Scenario, done

COMMANDS = ["RegSub", "DeregSub", "Publish", "DeletePub", "ReqUpdate"]
OPTIONS = sorted({option.value for words in (RegOpt, PubOpt, DelOpt) for option in words})
VALUES = {
    "Topic": ["a", "b", "a/b", "a/#", "+", "#", "/", "", "MQ/x", "A &amp; B", "forbidden", "t" * 10241],
    "SubName": ["S", "T", ""],
    "SubIdentity": ["me", "you", "i" * 65],
    "QName": ["A.Q", "B.Q", "no name", ""],
    "QMgrName": ["QM1", "QM2", "no name"],
    "Filter": ["x = 1", "x =", ""],
    "SubPoint": ["USD", ""],
    "RegOpt": OPTIONS,
    "PubOpt": OPTIONS,
    "DelOpt": OPTIONS,
}
TAGS = sorted(ALL_TAGS - {"Command"})


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    tag = draw(st.sampled_from([*TAGS, "Topic", "Topic", "RegOpt", "SubName"]))
    return tag, draw(st.sampled_from(VALUES.get(tag, ["1", ""])))


@st.composite
def folders(draw: st.DrawFn) -> str:
    word = draw(st.sampled_from([*COMMANDS, *COMMANDS, "Nonsense"]))
    found = [("Command", word), *draw(st.lists(pairs(), max_size=5))]
    text = "".join(f"<{tag}>{value}</{tag}>" for tag, value in found)
    return f"<psc>{text}</psc>"


MESSAGES = st.tuples(
    folders(),
    st.sampled_from([CONTROL_QUEUE, CONTROL_QUEUE, DEFAULT_STREAM, "OTHER.Q"]),
    st.sampled_from([MQMT_REQUEST, MQMT_DATAGRAM]),
    st.sampled_from([0, 1, 2, 3, 0x08000000]),
    st.sampled_from(["A.Q", "B.Q", ""]),
    st.sampled_from(["app1", "app2"]),
    st.sampled_from([bytes(24), b"C" * 24]),
)
Row = tuple[str, str, int, int, str, str, bytes]


def state(world: Scenario) -> tuple[object, ...]:
    return world.subscriptions, tuple(world.broker.space.retained_publications())


def check(result: Result, before: tuple[object, ...], world: Scenario, row: Row) -> None:
    """What holds of every message."""
    _, queue, msg_type, report, reply_to, _, _ = row
    outcome = result.outcome
    assert outcome.completion is not None or queue == "OTHER.Q"
    assert len(result.responses) <= 1
    if result.responses:
        assert reply_to
        assert result.puts[-1].put.kind is PutKind.RESPONSE
        assert result.response.completion == outcome.completion
        assert [answer.reason for answer in result.response.answers][:1] == ([outcome.reason] if outcome.reason else [])
    elif msg_type == MQMT_REQUEST and outcome.completion is not None:
        assert not reply_to
    if outcome.completion is Completion.ERROR:
        assert not outcome.effects
        assert state(world) == before
        assert not result.publications
        assert len(result.puts) == 1 or outcome.reason == 3077 or report == 0x08000000
    for received in result.publications:
        assert received.message.rfh2 is not None
        assert received.topic


@pytest.mark.rule("RESP-2")
@given(rows=st.lists(MESSAGES, min_size=1, max_size=12), semantics=st.sampled_from(["v7", "v6"]))
def test_any_sequence_of_commands(rows: Sequence[Row], semantics: str) -> None:
    world = Scenario(semantics)
    world.objects.put(TopicObject("T", "forbidden", pub=False, sub=False))
    for row in rows:
        text, queue, msg_type, report, reply_to, user, correl_id = row
        before = state(world)
        result = world.send(
            text, queue=queue, msg_type=msg_type, report=report, reply_to=reply_to, user=user, correl_id=correl_id
        )
        check(result, before, world, row)


@given(
    body=st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda tail: b"RFH \2\0\0\0" + tail)),
    md=st.one_of(
        st.none(),
        st.binary(max_size=20),
        st.sampled_from(["MQHRF2", "MQHRF", "MQADMIN", "MQPCF", "MQDEAD", "MQXMIT", "MQSTR", ""]).map(
            lambda fmt: Mqmd(format=fmt, msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q").encode()
        ),
    ),
    queue=st.one_of(st.sampled_from([CONTROL_QUEUE, DEFAULT_STREAM, "OTHER.Q"]), st.text(max_size=60)),
    user=st.one_of(st.none(), st.text(max_size=40)),
)
def test_any_bytes(body: bytes, md: bytes | None, queue: str, user: str | None) -> None:
    result = Scenario().put(queue, md, body, user=user)
    assert result.outcome.completion in (None, Completion.ERROR)
    kinds = [received.put.kind.value for received in result.puts]
    assert kinds in ([], ["response"], ["deadletter"], ["deadletter", "response"])
    assert bool(kinds) is (result.outcome.completion is not None)


@given(text=st.text(max_size=60), word=st.sampled_from(COMMANDS))
def test_any_text_in_a_folder(text: str, word: str) -> None:
    queue = DEFAULT_STREAM if word in ("Publish", "DeletePub") else CONTROL_QUEUE
    raw = f"<psc><Command>{word}</Command><Topic>{text}</Topic></psc>".encode("utf-8", "replace")
    result = Scenario().send(raw, queue=queue)
    assert len(result.responses) == 1


@pytest.mark.rule("FWD-3")
@given(seqs=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=6, unique=True))
def test_identifiers_ascend_with_any_arrival_numbers(seqs: list[int]) -> None:
    broker = Broker("A.LONG.QUEUE.MANAGER")
    md = Mqmd(format="MQSTR", msg_type=MQMT_REQUEST, reply_to_q="Q").encode().hex()
    puts = [
        put
        for seq in sorted(seqs)
        for put in broker.handle(CapturedMessage(seq=seq, queue=CONTROL_QUEUE, md_hex=md, body_hex=""))
        if put.kind == "response"
    ]
    ids = [Mqmd.decode(bytes.fromhex(put.md_hex)).msg_id for put in puts]
    assert len(ids) == len(seqs)
    assert ids == sorted(set(ids))


@given(user=st.text(max_size=30))
def test_any_user_may_subscribe(user: str) -> None:
    world = Scenario()
    done(world.register("a", user=user, user_identifier=""))
    assert len(world.publish("a").publications) == 1


@given(expiry=st.integers(-(2**31), 2**31 - 1), at=st.sampled_from([KICK_OFF, datetime(9999, 12, 31, tzinfo=UTC)]))
def test_any_expiry(expiry: int, at: datetime) -> None:
    world = Scenario()
    world.now = at
    world.publish("a", options=["RetainPub"], expiry=expiry)
    done(world.register("a", expiry=expiry))
    assert len(world.subscriptions) == 1
