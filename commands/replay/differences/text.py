"""The report for a terminal of a hundred columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from commands.broker.context import SETUP, not_read
from commands.replay.differences.model import FINDING, Change, PutDifference
from commands.replay.differences.report import DeliveryLine, DifferenceReport, ReportLine, RuleLine
from commands.terminal.counted import counted

_MOST_LINES: Final = 10
_COLUMNS: Final = 100
_NAME: Final = 38
_MOST_RULES: Final = 4

WORDS: Final = {
    Change.GAINED: "gained",
    Change.LOST: "lost",
    Change.SPLIT: "split",
    Change.CONTENT: "different content",
    Change.ANSWER: "different answer",
}
"""The words for a number of changes."""

_HEADS: Final = {Change.CONTENT: "content", Change.ANSWER: "answer"}


def lines_of(report: DifferenceReport) -> Iterator[str]:
    """The report, line by line."""
    unknown = sum(report.not_processed.values())
    if not report.differences:
        of_the_rest = f", {unknown:,} not processed; of the others" if unknown else ":"
        same = "no put differs" if report.signs else "both versions put the same"
        yield f"{counted(report.messages, 'message')}{of_the_rest} {same}"
    else:
        explained = report.differences - report.findings
        yield (f"{counted(report.messages, 'message')}, {report.differing:,} of which version 7 treats differently")
        yield f"{counted(report.differences, 'difference')} for {counted(len(report.subscribers), 'queue')}: " + (
            f"{explained:,} explained by rules, {report.findings:,} not"
        )
        yield noticed(report)
    for sentence in unprocessed(report):
        yield from _wrapped(sentence, "", "  ")
    for line in report.rules:
        yield ""
        yield from _rule(line)
    yield from _table("subscribers that would notice", "queue", report.subscribers)
    yield from _table("topics that differ", "topic", report.topics)
    if report.signs:
        yield ""
        yield "check these commands, whose puts do not show what differs:"
        for sign in report.signs:
            where = f"{counted(sign.count, 'command')}, the first is message {sign.first_seq}"
            yield from _wrapped(f"{sign.name}  {sign.title}: {where}; {sign.advice}", "  ", "       ")
    yield from _deliveries(report.deliveries)


def unprocessed(report: DifferenceReport) -> Iterator[str]:
    """A sentence for each stream that neither version knows."""
    for stream, count in report.not_processed.items():
        yield f"not processed by either version: {counted(count, 'message')} on {stream}: {not_read(stream, SETUP)}"


def noticed(report: DifferenceReport) -> str:
    """How many subscribers notice what, the worst first: they miss something, get more, or are answered otherwise."""
    what = {
        "would miss publications": (Change.LOST,),
        "would get more": (Change.GAINED, Change.SPLIT),
        "would get other content or answers": (Change.CONTENT, Change.ANSWER),
    }
    found = (
        (sum(any(change in line.changes for change in changes) for line in report.subscribers), words)
        for words, changes in what.items()
    )
    return ", ".join(f"{counted(number, 'queue')} {words}" for number, words in found if number)


def changed(changes: dict[Change, int]) -> str:
    """How often each change was met, in words."""
    return ", ".join(f"{changes[change]:,} {WORDS[change]}" for change in Change if change in changes)


def _rule(line: RuleLine) -> Iterator[str]:
    name = "FINDINGS" if line.name == FINDING else line.name
    yield from _wrapped(f"{name}  {line.title}: {changed(line.changes)}", "", "     ")
    if line.old:
        yield from _wrapped(f"version 6: {line.old}; version 7: {line.new}", "     ", "     ")
    if line.advice:
        yield from _wrapped(f"what to do: {line.advice}", "     ", "       ")
    for example in line.examples:
        yield from _wrapped(example_text(example), "     - ", "       ")


def example_text(example: PutDifference) -> str:
    """One difference in a sentence."""
    program = f" with {example.program}" if example.program else ""
    who = f"message {example.seq} ({example.user or 'somebody'}{program}: {example.command or 'no command'})"
    since = f", since message {example.since}" if example.since is not None else ""
    if example.change is Change.ANSWER:
        return f"{who}: {example.queue} gets {example.new}, not {example.old}: {example.why}{since}"
    counts = f"{example.new} instead of {example.old}"
    what = {Change.CONTENT: "gets other content on", Change.SPLIT: f"gets {counts} about"}
    does = what.get(example.change, f"gets {counts} on")
    whose = f" of user {example.sub_user}" if example.sub_user else ""
    return f"{who}: {example.queue}{whose} {does} {example.topic}: {example.why}{since}"


def _table(title: str, head: str, lines: Sequence[ReportLine]) -> Iterator[str]:
    """Columns of numbers for the changes that there are; the longest names are cut in the middle."""
    if not lines:
        return
    met = [change for change in Change if any(change in line.changes for line in lines)]
    heads = "".join(f" {_HEADS.get(change, change.value):>8}" for change in met)
    yield ""
    yield f"{title}:"
    yield f"  {head:<{_NAME}}{heads}  rules"
    for line in lines[:_MOST_LINES]:
        numbers = "".join(f" {line.changes.get(change, 0) or '-':>8}" for change in met)
        yield f"  {_cut(line.name)}{numbers}  {_rules(line)}"
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES:,} more"


def _rules(line: ReportLine) -> str:
    rules = sorted(line.rules, key=lambda rule: -line.rules[rule])
    more = f" +{len(rules) - _MOST_RULES + 1}" if len(rules) > _MOST_RULES else ""
    return " ".join(rules[: _MOST_RULES - bool(more)]) + more


def _deliveries(lines: Sequence[DeliveryLine]) -> Iterator[str]:
    """The queues with other deliveries than were captured, those that miss some first; and how many have the same."""
    if not lines:
        return
    captured = sum(line.captured for line in lines)
    yield ""
    yield f"against {counted(captured, 'publication')} captured on {counted(len(lines), 'subscriber queue')}:"
    for version, missing, more in (
        ("version 6", sum(line.missing_in_old for line in lines), sum(line.only_in_old for line in lines)),
        ("version 7", sum(line.missing_in_new for line in lines), sum(line.only_in_new for line in lines)),
    ):
        yield f"  {version} puts {captured - missing:,} of them, {missing:,} are missing; {more:,} were not captured"
    others = sorted((line for line in lines if not line.as_captured), key=missing_first)
    if others:
        yield f"  {'queue':<{_NAME}} captured   in v6   in v7   missing in v7  more in v7"
    for line in others[:_MOST_LINES]:
        counts = f" {line.captured:>8} {line.old:>7} {line.new:>7} {line.missing_in_new:>15} {line.only_in_new:>11}"
        yield f"  {_cut(line.queue)}{counts}"
    if len(others) > _MOST_LINES:
        yield f"  and {len(others) - _MOST_LINES:,} more"
    if len(lines) > len(others):
        yield f"  {counted(len(lines) - len(others), 'queue')} would have in version 7 what was captured"


def missing_first(line: DeliveryLine) -> tuple[object, ...]:
    """The order of queues for a person: those that would miss most first."""
    return -line.missing_in_new, -line.only_in_new, line.queue, line.qmgr


def _wrapped(text: str, first: str, other: str) -> list[str]:
    return wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)


def _cut(text: str) -> str:
    """*text* cut to the width of a name, in the middle: the end of a topic matters as much as its beginning."""
    if len(text) <= _NAME:
        return f"{text:<{_NAME}}"
    return f"{text[: _NAME // 2 - 2]}...{text[-(_NAME // 2 - 1) :]}"
