"""Options of commands: the word, its bit, its constant, and which commands take it in which header."""

from __future__ import annotations

from commands.headers import psc_commands, rfh1_pcf_commands
from extension.markdown import NOTHING, Table, code
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet

_SETS: dict[str, OptionSet] = {"RegOpt": REGISTRATION, "PubOpt": PUBLICATION, "DelOpt": DELETE}


def table(tag: str) -> Table:
    """The options of one tag: RegOpt, PubOpt or DelOpt."""
    options = _SETS[tag]
    rows = tuple(
        (code(word), str(bit), code(options.constant(word)), _takers(_in_psc(tag), word), _takers(_in_mqrfh(tag), word))
        for word, (bit, _) in options.bits.items()
    )
    return Table(("option", "bit", "constant", "commands in MQRFH2", "commands in MQRFH and PCF"), rows)


def _in_psc(tag: str) -> dict[str, set[str]]:
    rules = psc_commands.RULES.items()
    return {command: set(rule.options[tag].words) for command, rule in rules if tag in rule.options}


def _in_mqrfh(tag: str) -> dict[str, set[str]]:
    rules = rfh1_pcf_commands.RULES.items()
    return {command: {str(word) for word in rule.options[tag]} for command, rule in rules if tag in rule.options}


def _takers(commands: dict[str, set[str]], word: str) -> str:
    return ", ".join(command for command, words in commands.items() if word in words) or NOTHING
