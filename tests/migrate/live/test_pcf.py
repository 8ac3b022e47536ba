"""The PCF adapter: what it says of commands that fail, and of those that PCF cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from commands.mqsc.pcf import writing
from commands.mqsc.pcf.commands import COMMANDS
from migrate.live.opening import PcfAdministrator
from migrate.live.snapshot import AdministrationError, statement_of
from rfh2.errors import CommandError
from rfh2.pcf import Pcf, decode_pcf


class Refuses:
    """A command server that refuses everything with one reason."""

    where = "queue manager QM1 at ibmmq://host"

    def __init__(self, reason: int, parameter: int = 0) -> None:
        self.reason, self.parameter = reason, parameter
        self.asked: list[Pcf] = []

    def exchange(self, command: Pcf) -> Iterator[Pcf]:
        self.asked.append(command)
        tags = (("ParmId", str(self.parameter)),) if self.parameter else ()
        error = CommandError(self.reason, why="no", tags=tags)
        return (decode_pcf(each.encode()) for each in writing.failure(command.command, error, "little"))

    def close(self) -> None:
        return


OUTCOMES = [
    ("there", "DEFINE TOPIC('T') TOPICSTR('t')", 4001, "is_there"),
    ("sub-there", "DEFINE SUB('S') TOPICSTR('t') DEST(Q)", 3311, "is_there"),
    ("missing", "DELETE QLOCAL(Q)", 2085, "is_missing"),
    ("sub-missing", "DELETE SUB('S')", 2428, "is_missing"),
]


@pytest.mark.parametrize(("text", "reason", "so"), [o[1:] for o in OUTCOMES], ids=[o[0] for o in OUTCOMES])
def test_refusals_that_apply_understands(text: str, reason: int, so: str) -> None:
    outcome = PcfAdministrator(Refuses(reason), "QM1").run(statement_of(text))
    assert not outcome.ok
    assert getattr(outcome, so)
    assert f"reason {reason}" in outcome.text


def test_the_parameter_in_error_is_named() -> None:
    outcome = PcfAdministrator(Refuses(4005, 1216), "QM1").run(statement_of("DEFINE TOPIC('T') TOPICSTR('t')"))
    assert outcome.text == "DEFINE TOPIC(T): reason 4005 (parameter 1216)"


def test_what_is_not_found_is_nothing_and_the_rest_is_an_error() -> None:
    assert PcfAdministrator(Refuses(2428), "QM1").display("SUB", "*") == []
    with pytest.raises(AdministrationError, match=r"ibmmq://host: DISPLAY SUB: .*reason 2035 \(MQRC_NOT_AUTHORIZED"):
        PcfAdministrator(Refuses(2035), "QM1").display("SUB", "*")


class Shows(Refuses):
    """A command server that shows queues, and refuses others with the reasons."""

    def __init__(self, *reasons: int, rows: int = 1) -> None:
        super().__init__(0)
        self.rows, self.reasons = rows, reasons

    def exchange(self, command: Pcf) -> Iterator[Pcf]:
        shown = [{"QUEUE": f"Q{number}", "TYPE": "QLOCAL"} for number in range(self.rows)]
        yield from writing.success(command.command, COMMANDS[command.command], shown, command.order)
        for reason in self.reasons:
            yield from writing.failure(command.command, CommandError(reason), command.order)


@pytest.mark.parametrize("reasons", [(2035,), (2085,), (2085, 2035)])
def test_half_an_answer_is_no_answer(reasons: tuple[int, ...]) -> None:
    with pytest.raises(AdministrationError, match="Beside this error the answer has 1 object:") as failed:
        PcfAdministrator(Shows(*reasons), "QM1").display("QUEUE", "*")
    assert all(f"reason {reason} " in str(failed.value) for reason in reasons)


def test_what_is_not_found_beside_what_is_refused() -> None:
    with pytest.raises(AdministrationError, match=r"reason 2085 .*reason 2035 "):
        PcfAdministrator(Shows(2085, 2035, rows=0), "QM1").display("QUEUE", "*")


def test_a_failure_without_a_reason_is_a_failure() -> None:
    def exchange(command: Pcf) -> Iterator[Pcf]:
        (failed, *_) = writing.failure(command.command, CommandError(2035), "little")
        yield replace(failed, reason=0)

    server = Refuses(0)
    server.exchange = exchange  # type: ignore[method-assign]
    with pytest.raises(AdministrationError, match="reason 3008"):
        PcfAdministrator(server, "QM1").display("QUEUE", "*")


def test_a_keyword_that_pcf_has_no_parameter_for_is_not_left_out() -> None:
    server = Refuses(0)
    outcome = PcfAdministrator(server, "QM1").run(statement_of("DEFINE TOPIC('T') TOPICSTR('t') MCAST(ENABLED)"))
    assert (outcome.ok, server.asked) == (False, [])
    assert "MCAST" in outcome.text
    assert "--admin https://" in outcome.text
