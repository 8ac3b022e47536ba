"""``--where`` and the other selections of messages: what the names mean, what is refused, and where."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from commands.explain.build import CommandSpec, command_message
from commands.explain.selection import (
    NAMES,
    Choosing,
    MessageSelection,
    MessageValues,
    SelectionError,
    SeqRanges,
    compile_where,
    moment,
)
from rfh2 import Mqmd
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord, read_captures
from rfh2.errors import CaptureError

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
NINE: Final = datetime(2009, 1, 28, 9, 0, tzinfo=UTC)


def made(word: str = "Publish", *topics: str, **more: Any) -> CapturedMessage:
    mqmd = Mqmd(put_appl_name="quotes.exe", user_identifier="fred", put_date="20090128", put_time="10300050")
    values = {"queue": "SPORT", "qmgr": None, "user": None, "time": None, "seq": 1, "mqmd": mqmd, **more}
    return command_message(CommandSpec(word, topics, (), {}, more.pop("usr", {}), "0 1", 1208, **values))


SOCCER: Final = made("Publish", "Sport/Soccer", "Sport/Results")

# condition, whether it is true of SOCCER
CONDITIONS = [
    ("command = 'Publish'", True),
    ("command = 'publish'", False),
    ("command in ('RegSub', 'Publish')", True),
    ("topic = 'Sport/Soccer'", True),
    ("topic = 'Sport/Results'", True),
    ("topic like 'Sport/%'", True),
    ("topic = 'Sport/Soccer' and topic = 'Sport/Results'", False),
    ("not topic = 'Sport/Soccer'", True),
    ("topic is null", False),
    ("queue = 'SPORT'", True),
    ("qmgr is null", True),
    ("qmgr = 'QM1'", False),
    ("qmgr <> 'QM1'", False),
    ("user = 'fred'", True),
    ("program = 'quotes.exe'", True),
    ("program like '%.exe'", True),
    ("reason is null", True),
    ("size > 100", True),
    ("size = 135", True),
    ("size > 1000", False),
    ("size between 100 and 1000", True),
    ("seq = 1", True),
    ("seq + 1 = 2", True),
    ("time = '2009-01-28T10:30:00.500'", True),
    ("time >= '2009-01-28'", True),
    ("time < '2009-01-28 10:30'", False),
    ("time between '2009-01-28T10:30Z' and '2009-01-28T12:30+02:00'", False),
    ("time between '2009-01-28T10:30Z' and '2009-01-28T12:30:01+02:00'", True),
    ("command = 'Publish' and topic like 'Sport/%' and size > 100", True),
    ("command = 'RegSub' OR topic = 'x'", False),
    ("Root.MQMD.Priority >= 0 or Root.MQMD.Priority < 0", True),
    ("usr.Colour = 'red'", False),
    ("JMSType is null", True),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS, ids=[text for text, _ in CONDITIONS])
def test_conditions(condition: str, holds: bool) -> None:
    assert compile_where(condition).selects(SOCCER) is holds


def dead_letter() -> CapturedMessage:
    from commands import Broker

    bad = made("Publish", "Sport/#")
    (put,) = Broker("QM1").handle(bad.model_copy(update={"queue": "SYSTEM.BROKER.DEFAULT.STREAM"}))
    return CapturedMessage(seq=2, queue=put.queue, md_hex=put.md_hex, body_hex=put.body_hex)


def answer(word: str, topic: str) -> CapturedMessage:
    from commands import Broker

    mqmd = Mqmd(reply_to_q="ANSWERS", msg_type=1)
    asked = made(word, topic, queue="SYSTEM.BROKER.CONTROL.QUEUE", mqmd=mqmd)
    (put,) = Broker("QM1").handle(asked)
    return CapturedMessage(seq=2, queue=put.queue, md_hex=put.md_hex, body_hex=put.body_hex)


def report() -> CapturedMessage:
    mqmd = Mqmd(msg_type=4, feedback=2053)
    return CapturedMessage(seq=3, queue="REPORTS", md_hex=mqmd.encode().hex(), body_hex="")


REASONS = [
    ("a dead letter", dead_letter, 3072, "Publish"),
    ("a response with an error", lambda: answer("DeregSub", "a/b"), 3073, None),
    ("a response without one", lambda: answer("RegSub", "a/b"), None, None),
    ("a report", report, 2053, None),
]


@pytest.mark.parametrize(("message", "reason", "command"), [r[1:] for r in REASONS], ids=[r[0] for r in REASONS])
def test_the_reason_is_that_in_the_message(
    message: Callable[[], CapturedMessage], reason: int | None, command: str | None
) -> None:
    values = MessageValues(message())
    assert (values("reason"), values("command")) == (reason, command)


def test_a_reason_has_a_name() -> None:
    assert compile_where("reason = 'MQRCCF_TOPIC_ERROR'").selects(dead_letter())
    assert compile_where("reason in ('MQRC_Q_FULL', 'MQRCCF_TOPIC_ERROR')").selects(dead_letter())
    assert not compile_where("reason = 'MQRC_Q_FULL'").selects(dead_letter())


def test_a_command_that_a_broker_refuses_has_its_word_and_topics() -> None:
    bad = made("Publish", "a/b")
    broken = bad.model_copy(update={"body_hex": bad.body_hex.replace(b"a/b".hex(), b"a<b".hex())})
    assert MessageValues(broken)("command") is None
    wrong = made("RegSub", "Sport/##")
    values = MessageValues(wrong)
    assert (values("command"), values("topic")) == ("RegSub", "Sport/##")


# condition, the character to blame (from 1), what is said
REFUSED = [
    ("topics = 'a'", 1, "topics is not a name (perhaps topic)"),
    ("command = 'x' and colour = 'red'", 19, "write usr.colour"),
    ("Command = 'x'", 1, "perhaps command"),
    ("size > 'big'", 8, "only numbers are ordered"),
    ("size = 'big'", 8, "a string cannot be compared with a number"),
    ("topic = 5", 9, "a number cannot be compared with a string"),
    ("topic > 'a'", 1, "only numbers are ordered"),
    ("time > 'yesterday'", 8, "'yesterday' is not a time"),
    ("time between '2009-01-28' and 'noon'", 31, "'noon' is not a time"),
    ("reason = 'MQRC_NONSENSE'", 10, "is not the name of a reason code"),
    ("reason in (3072, 'MQRC_NONSENSE')", 18, "is not the name of a reason code"),
    ("size like '1%'", 1, "LIKE takes a string"),
    ('command = "RegSub"', 11, "double quotes"),
    ("command == 'RegSub'", 10, "not expected"),
    ("command = 'RegSub", 11, "not closed"),
    ("command =", 10, "ends too early"),
    ("", 1, "ends too early"),
    ("1 = 2", 1, "no message can meet this condition"),
    ("size", 1, "a condition is expected here, not a number"),
]


@pytest.mark.parametrize(("condition", "at", "said"), REFUSED, ids=[text or "empty" for text, _, _ in REFUSED])
def test_what_is_refused_and_where(condition: str, at: int, said: str) -> None:
    with pytest.raises(SelectionError) as caught:
        compile_where(condition)
    assert (caught.value.at, said in caught.value.why) == (at, True), str(caught.value)
    first, shown, mark = caught.value.pointed.split("\n")
    assert first == str(caught.value)
    assert (shown[mark.index("^") :] + " ")[0] == (condition + " ")[at - 1]


@cache
def messages() -> tuple[CapturedMessage, ...]:
    """Messages of all kinds."""
    found: list[CapturedMessage] = [SOCCER, dead_letter(), answer("DeregSub", "a/b"), report()]
    for path in sorted(FIXTURES.glob("*/*.jsonl")):
        if "captur" in path.name:
            found += [record.message for record in read_captures(path) if record.message is not None][:40]
    assert len(found) > 70
    return tuple(found)


def test_only_what_is_named_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("commands.explain.selection.read_message", fail)
    assert compile_where("queue = 'SPORT' and size > 10 and user = 'fred' and seq = 1").selects(SOCCER)
    with pytest.raises(AssertionError, match="decoded"):
        compile_where("command = 'RegSub'").selects(SOCCER)


@pytest.mark.parametrize("name", NAMES)
def test_any_message_has_a_value_of_the_kind_or_null(name: str) -> None:
    odd = [
        CapturedMessage(seq=0, queue="", body_hex=body, md_hex=md)
        for body in ("", "00", "52464820")
        for md in (None, "00")
    ]
    for message in [*odd, *messages()]:
        value = MessageValues(message)(name)
        kind = {"number": (int, float), "string": (str,)}[NAMES[name].kind.value]
        assert value is None or isinstance(value, kind)


def test_a_condition_survives_pickling() -> None:
    where = compile_where("size > 100")
    again = pickle.loads(pickle.dumps(where))
    assert (again, again.selects(SOCCER)) == (where, True)


# Time, numbers and limit

TIMES = [NINE + timedelta(minutes=minutes) for minutes in (0, 10, 20, 30)]
FOUR = [CapturedMessage(seq=n + 1, time=time, queue="Q", body_hex="") for n, time in enumerate(TIMES)]

SELECTIONS = [
    ("everything", MessageSelection(), [1, 2, 3, 4]),
    ("since is included", MessageSelection(since=TIMES[1]), [2, 3, 4]),
    ("until is not", MessageSelection(until=TIMES[2]), [1, 2]),
    ("a span", MessageSelection(since=TIMES[1], until=TIMES[3]), [2, 3]),
    ("numbers", MessageSelection(seqs=SeqRanges.parse("1,3-")), [1, 3, 4]),
    ("the first two", MessageSelection(limit=2), [1, 2]),
    ("the first two of what is selected", MessageSelection(since=TIMES[1], limit=2), [2, 3]),
    ("all conditions", MessageSelection(compile_where("seq <> 2"), TIMES[1], None, SeqRanges.parse("-3")), [3]),
]


@pytest.mark.parametrize(("selection", "seqs"), [s[1:] for s in SELECTIONS], ids=[s[0] for s in SELECTIONS])
def test_selections(selection: MessageSelection, seqs: list[int]) -> None:
    problem = CaptureRecord("x", 9, None, CaptureError("x", 9, "odd"), 9)
    records = [problem, *(CaptureRecord("x", n, message, None, n) for n, message in enumerate(FOUR))]
    found = list(selection.of_records(iter(records)))
    assert [record.message.seq for record in found if record.message is not None] == seqs
    assert problem in found, "what cannot be read is always passed on"
    choosing = Choosing(selection)
    assert [message.seq for message in FOUR if choosing.chooses(message)] == seqs
    assert choosing.is_over is (selection.limit == len(seqs))


def test_a_limit_ends_the_reading() -> None:
    def endless() -> Any:
        yield CaptureRecord("x", 0, FOUR[0], None, 0)
        raise AssertionError("read on")

    assert len(list(MessageSelection(limit=1).of_records(endless()))) == 1


def test_a_message_without_a_time_is_in_no_span() -> None:
    timeless = CapturedMessage(seq=1, queue="Q", body_hex="")
    assert not MessageSelection(since=NINE).selects(timeless)
    assert not MessageSelection(until=NINE).selects(timeless)
    assert MessageSelection(until=NINE + timedelta(hours=2)).selects(SOCCER), "that of its MQMD"


BAD_SEQS = ["", "x", "3-1", "-", "1,,2", "1-2-3", "٣"]


@pytest.mark.parametrize("text", BAD_SEQS)
def test_bad_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number or a range|ends before it begins"):
        SeqRanges.parse(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_is_read_as_written(time: datetime) -> None:
    assert moment(time.isoformat()) == moment(time.replace(tzinfo=None).isoformat(" ")) == time


def test_the_page_has_a_row_for_every_name() -> None:
    lines = (FIXTURES.parent / "docs" / "selection.md").read_text().splitlines()
    table = lines[lines.index("| name | value |") + 2 :][: len(NAMES)]
    assert table == [f"| `{name}` | {each.meaning} |" for name, each in NAMES.items()]
