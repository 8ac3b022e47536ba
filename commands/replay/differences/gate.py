"""What a pipeline accepts of a report: a file that says how many differences of each rule there may be.

    # rule      most
    finding     0
    D01         12       differences of D01, put by put
    sign:D17    0        commands that are a sign of D17
    unprocessed 0        messages that neither version processed; 0 also if no line says so
    *           0        every other rule, and every other sign

A rule or sign without a number may not occur. What no line names is accepted, unless there is ``*``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from commands.replay.differences.model import FINDING
from commands.replay.differences.report import DifferenceReport
from commands.replay.differences.rules import RULES
from rfh2.errors import QPubSubError

_SIGN: Final = "sign:"
_EVERY: Final = "*"
_UNPROCESSED: Final = "unprocessed"


@dataclass(frozen=True, slots=True)
class Gate:
    """How many differences, by rule, and how many signs, by ``sign:`` and rule, are accepted."""

    most: Mapping[str, int]

    def exceeded(self, report: DifferenceReport) -> Iterator[str]:
        """What of *report* is more than accepted, a line each."""
        counts = {line.name: line.total for line in report.rules}
        counts |= {f"{_SIGN}{sign.name}": sign.count for sign in report.signs}
        for name, count in counts.items():
            most = self.most.get(name, self.most.get(_EVERY))
            if most is not None and count > most:
                what = "signs" if name.startswith(_SIGN) else "differences"
                yield f"{name.removeprefix(_SIGN)}: {count:,} {what}, of which {most:,} are accepted"
        count, most = sum(report.not_processed.values()), self.most.get(_UNPROCESSED, 0)
        if count > most:
            yield f"{_UNPROCESSED}: {count:,} messages, of which {most:,} are accepted"


def parse_gate(text: str) -> Gate:
    """The gate that *text* describes. Raises QPubSubError with the line that is wrong."""
    most: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, count = words[0], words[1] if len(words) > 1 else "0"
        if name not in (_EVERY, FINDING, _UNPROCESSED) and name.removeprefix(_SIGN) not in RULES:
            raise QPubSubError(
                f"line {number}: {name} is no rule; a rule is D01 to D34, sign:D01, {FINDING}, {_UNPROCESSED} or *"
            )
        if len(words) > 2 or not count.isdecimal():
            raise QPubSubError(f"line {number}: a rule and a number are expected, such as D01 12")
        if name in most:
            raise QPubSubError(f"line {number}: {name} stands there twice")
        most[name] = int(count)
    return Gate(most)
