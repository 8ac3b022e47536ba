"""The PCF adapter: what it says of commands that fail, and of those that PCF cannot say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commands.mqsc.pcf import writing
from migrate.live.administrator import AdministrationError
from migrate.live.embedded import statement_of
from migrate.live.pcf import PcfAdministrator
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


def test_a_keyword_that_pcf_has_no_parameter_for_is_not_left_out() -> None:
    server = Refuses(0)
    outcome = PcfAdministrator(server, "QM1").run(statement_of("DEFINE TOPIC('T') TOPICSTR('t') MCAST(ENABLED)"))
    assert (outcome.ok, server.asked) == (False, [])
    assert "MCAST" in outcome.text
    assert "--admin https://" in outcome.text
