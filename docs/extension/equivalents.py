"""What replaces queued commands (guide 7.2), and which options of the MQI are done."""

from __future__ import annotations

from commands.explain.equivalents.guide_tables import MQRC_NAMES, OPTIONS, REASONS, TAGS
from commands.listener import calls, spi
from commands.qmgr.mqi import refusals
from extension.markdown import NOTHING, Table, code, escape
from rfh2.constants import reason_name

COMMANDS = tuple(OPTIONS)
"""The words of the commands, in the order of the columns of ``reasons``."""


def table(command: str) -> Table:
    """What replaces each option and each tag of one command."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, equivalent in {**OPTIONS[command], **TAGS[command]}.items():
        rows.setdefault((escape(equivalent.mqi or NOTHING), escape(equivalent.note)), []).append(code(name))
    return Table(("option or tag", "instead", ""), tuple((", ".join(names), *row) for row, names in rows.items()))


def reasons() -> Table:
    """What a program gets from the calls in place of each reason; nothing where the command has no such reason."""
    rows = []
    for reason in sorted({each for command in COMMANDS for each in REASONS[command]}):
        cells = ((REASONS[command][reason] or NOTHING) if reason in REASONS[command] else "" for command in COMMANDS)
        rows.append((f"{reason} {reason_name(reason)}", *map(str, cells)))
    return Table(("reason", *COMMANDS), tuple(rows))


def calls_reasons() -> Table:
    """The reasons of the calls, with their names."""
    given = {each for command in COMMANDS for each in REASONS[command].values() if each is not None}
    return Table(("reason of a call", "name"), tuple((str(each), code(MQRC_NAMES[each])) for each in sorted(given)))


def mqi_options() -> Table:
    """Each option of IBM MQ 9.4: done, or refused with the reason."""
    families = ((family, ", ".join(done), ", ".join(refused)) for family, done, refused in refusals.coverage())
    rows = (*families, calls.coverage(), spi.coverage())
    return Table(("of", "done", "refused, with the reason"), tuple((a, b, c or "none") for a, b, c in rows))
