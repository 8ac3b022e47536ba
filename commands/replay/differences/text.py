"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from commands.replay.differences.model import FINDING, Change, Difference
from commands.replay.differences.report import Line, Report, RuleLine

_MOST_LINES: Final = 10
_WIDTH: Final = 44


def lines_of(report: Report) -> Iterator[str]:
    """The report, line by line."""
    if not report.differences:
        yield f"{report.messages} messages: both versions put the same"
    else:
        yield (
            f"{report.messages} messages, {report.differing} of which lead to something else in version 7: "
            f"{report.differences} differences for {len(report.subscribers)} queues"
        )
        explained = report.differences - report.findings
        yield f"{explained} explained by rules, {report.findings} not"
    for line in report.rules:
        yield ""
        yield from _rule(line)
    yield from _table("who would notice", report.subscribers)
    yield from _table("on which topics", report.topics)
    if report.signs:
        yield ""
        yield "no put differs, but to be thought about:"
        for sign in report.signs:
            yield f"  {sign.name}  {sign.title}: {sign.count} commands, the first is message {sign.first_seq}"
    if report.deliveries:
        yield ""
        yield "against what was captured on subscriber queues (captured, version 6, version 7):"
        for delivery in report.deliveries:
            counts = f"{delivery.captured:>9} {delivery.old:>9} {delivery.new:>9}"
            fate = f"{delivery.missing_in_new} missing, {delivery.only_in_new} more in version 7"
            yield f"  {_cut(delivery.queue)} {counts}   {fate}"


def _rule(line: RuleLine) -> Iterator[str]:
    name = "FINDINGS" if line.name == FINDING else line.name
    yield f"{name}  {line.title}: {_changes(line.changes)}"
    if line.old:
        yield f"     version 6: {line.old}; version 7: {line.new}"
    for example in line.examples:
        yield f"     {told(example)}"


def told(example: Difference) -> str:
    """One difference in a line."""
    who = f"message {example.seq} ({example.user or 'somebody'}: {example.command or 'no command'})"
    since = f", since message {example.since}" if example.since is not None else ""
    if example.change is Change.ANSWER:
        return f"{who}: {example.queue} gets {example.new}, not {example.old}: {example.why}{since}"
    counts = f"{example.new} instead of {example.old}"
    what = {Change.CONTENT: "is told otherwise of", Change.SPLIT: f"gets {counts} about"}
    does = what.get(example.change, f"gets {counts} on")
    return f"{who}: {example.queue} {does} {example.topic}: {example.why}{since}"


def _table(title: str, lines: tuple[Line, ...]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{title}:"
    for line in lines[:_MOST_LINES]:
        yield f"  {_cut(line.name)} {line.total:>9}   {_changes(line.changes)}   {' '.join(sorted(line.rules))}"
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES} more"


def _changes(changes: dict[Change, int]) -> str:
    return _joined(f"{changes[change]} {change}" for change in Change if change in changes)


def _joined(words: Iterable[str]) -> str:
    return ", ".join(words)


def _cut(text: str) -> str:
    return f"{text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...':<{_WIDTH}}"
