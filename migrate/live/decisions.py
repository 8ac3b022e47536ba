"""What to do about one statement of a plan's script, given what the queue manager has: send it, or leave it.

    DEFINE of an object that is there, with all that is planned     nothing: it was made, by an earlier run or a person
                                                                    what a later ALTER of the script sets is left out
    DEFINE of a queue that is there                                 nothing: queues are never changed
    DEFINE of another object that is there                          refused: it is somebody's, and differs
    ALTER, SET AUTHREC that would change nothing                    nothing
    ALTER NAMELIST                                                  sent with the names that the list has now, and those
                                                                    that the plan adds
    DELETE of what is not there                                     nothing

Each statement that is sent comes with the MQSC that takes it back, or with the reason why nothing does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.export import in_script
from commands.mqsc.script import Command, Keyword, NoMqscFormError, Statement, keyword, quoted
from migrate.live.snapshot import LiveState, Row, authorities, is_alike, names, record_key, text
from migrate.plan import PREFIX as MARKER

QUEUES: Final = ("QLOCAL", "QALIAS", "QMODEL")
"""MQSC's words for queues that a plan makes."""
_FLAGS: Final = frozenset({"REPLACE", "NOREPLACE"})
_GROUPS: Final = frozenset({"ALL", "ALLMQI", "ALLADM"})
_KINDS: Final = {kind.word: kind for kind in (mqsc_kinds.TOPIC, mqsc_kinds.NAMELIST, mqsc_kinds.SUB, mqsc_kinds.QMGR)}


@dataclass(frozen=True, slots=True)
class Decision:
    """send: whether the statement is sent. refused: why not, for a person. undo, left: as in the journal.

    instead: what is sent in the place of the statement, MQSC; "" for the statement as it is.
    """

    send: bool
    refused: str = ""
    undo: str = ""
    left: str = ""
    instead: str = ""


THERE: Final = Decision(False)


def decide(statement: Statement, live: LiveState, later: Collection[str] = (), known: Collection[str] = ()) -> Decision:
    """What to do about *statement*. later: keywords that a later statement of the script sets on the same object.

    known: of a namelist, the names that it had when the plan was made. The script repeats them, the plan does not add
    them: one that is gone was taken out by somebody, and stays out.
    """
    command = statement.command
    if command is None:
        return Decision(False, refused=str(statement.error))
    name = "" if command.name is None else command.name.text
    match command.verb:
        case "DEFINE" if command.target in QUEUES:
            return THERE if name in live.queues else Decision(True, undo=f"DELETE {command.target}({_name(name)})")
        case "DEFINE":
            return _define(command, name, live, later)
        case "ALTER":
            return _alter(command, name, live, known)
        case "SET":
            return _set(command, live)
        case "DELETE":
            return _delete(command, name, live)
    return Decision(True, left=f"{command.verb} {command.target} cannot be taken back")


def altered_later(statements: Iterable[Statement]) -> dict[tuple[str, str], frozenset[str]]:
    """The keywords that ALTER commands set, by the target and the name of their objects."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for statement in statements:
        command = statement.command
        if command is not None and command.verb == "ALTER" and (key := key_of(statement)) is not None:
            found[key] = found.get(key, frozenset()) | {given.name for given in command.keywords}
    return found


def key_of(statement: Statement) -> tuple[str, str] | None:
    """Target and name of what the statement is about; None if it has no name."""
    command = statement.command
    return None if command is None or command.name is None else (command.target, command.name.text)


def follow(statement: Statement, live: LiveState) -> None:
    """Know what the statement has done, so that a later one of the script is decided about by it.

    That is what a script does twice to one object: a topic object is deleted and defined, a subscription is defined and
    altered. To read everything again would take long.
    """
    command = statement.command
    if command is None or command.name is None:
        return
    if (command.verb, command.target) == ("DELETE", "TOPIC"):
        live.topics.pop(command.name.text, None)
    elif (command.verb, command.target) == ("DEFINE", "SUB"):
        row = {given.name: _values(given) for given in command.keywords if given.values is not None}
        live.add_subscription({**row, "SUB": command.name.text})
    elif (command.verb, command.target) == ("ALTER", "NAMELIST"):
        before = live.namelists.get(command.name.text, {})
        live.namelists[command.name.text] = {
            **before,
            "NAMES": texts_of(command.keyword("NAMES")) or names(before, "NAMES"),
        }


def object_of(statement: Statement) -> str:
    """What the statement is about, for a person."""
    command = statement.command
    if command is None:
        return statement.text
    return f"{command.verb} {command.target}" + ("" if command.name is None else f"({command.name.text})")


def row_of(target: str, name: str, live: LiveState) -> Row | None:
    """The object as it is shown; None for one that is not there."""
    if target == "TOPIC":
        return live.topics.get(name)
    if target == "NAMELIST":
        return live.namelists.get(name)
    if target == "SUB":
        return live.subscription(name)
    return live.qmgr if target == "QMGR" else live.queues.get(name)


def _define(command: Command, name: str, live: LiveState, later: Collection[str]) -> Decision:
    row = row_of(command.target, name, live)
    if row is None:
        return Decision(True, undo=f"DELETE {command.target}({_name(name)})")
    different = [(word, given) for word, given in _different(command, row) if word not in later]
    if not different:
        return THERE
    if command.keyword("REPLACE") is not None:
        return Decision(True, left=f"{command.target} {name} was replaced: what it was is not in MQSC alone")
    said = "; ".join(f"{word} is ({text(row, word)}), planned ({_values(given)})" for word, given in different)
    return Decision(False, refused=f"{command.target} {name} exists and differs: {said}")


def _alter(command: Command, name: str, live: LiveState, known: Collection[str]) -> Decision:
    row = row_of(command.target, name, live)
    if row is None:
        return Decision(False, refused=f"{command.target} {name} is not there: an earlier step makes it")
    different = dict(_different(command, row))
    if command.target == "NAMELIST" and not name.startswith(MARKER):
        return _add_names(name, row, different, known)
    if not different:
        return THERE
    try:
        return Decision(True, undo=altered(command.target, name, row, different))
    except NoMqscFormError as error:
        return Decision(True, left=f"{command.target} {name}: {error}")


def _add_names(name: str, row: Row, different: dict[str, Keyword], known: Collection[str]) -> Decision:
    """ALTER NAMELIST with the names that the list has and those that are new: MQSC replaces the whole list."""
    there = names(row, "NAMES")
    added = tuple(each for each in texts_of(different.get("NAMES")) if each.strip() and each not in (*there, *known))
    words = [word for word in different if word != "NAMES" or added]
    if not words:
        return THERE
    sent = {word: _values(different[word]) for word in words} | {"NAMES": (*there, *added)}
    try:
        undo, instead = (altered("NAMELIST", name, each, words) for each in (row, sent))
    except NoMqscFormError as error:
        return Decision(False, refused=f"NAMELIST {name}: {error}")
    return Decision(True, undo=undo, instead=instead)


def altered(target: str, name: str, row: Row, words: Iterable[str] | None = None) -> str:
    """ALTER that gives the object these attributes of *row*, or all. Raises NoMqscFormError."""
    named = "" if target == "QMGR" else f"({_name(name)})"
    return f"ALTER {target}{named} {_given(target, row, row if words is None else words)}"


def _given(target: str, row: Row, words: Iterable[str]) -> str:
    return " ".join(_restored(target, word, row) for word in words)


def _set(command: Command, live: LiveState) -> Decision:
    """SET AUTHREC. What is taken back is what the record did not grant before."""
    given = {k.name: k for k in command.keywords}
    kind = "PRINCIPAL" if "PRINCIPAL" in given else "GROUP"
    row: dict[str, Shown] = {
        "OBJTYPE": _values(given.get("OBJTYPE")),
        "PROFILE": _values(given.get("PROFILE")),
        "ENTTYPE": kind,
        "ENTITY": _values(given.get(kind)),
    }
    there = live.records.get(record_key(row), frozenset())
    added = authorities({"AUTHLIST": texts_of(given.get("AUTHADD"))})
    if added <= there and "AUTHRMV" not in given:
        return THERE
    about = [k for k in command.keywords if k.name in ("PROFILE", "OBJTYPE", kind)]
    if "AUTHRMV" in given:
        return Decision(True, left=f"authorities of {row['ENTITY']} were taken away")
    new = sorted(added - there - (_GROUPS if there else frozenset()))
    try:
        said = " ".join(f"{k.name}({_values(k) if k.name == 'OBJTYPE' else quoted(_values(k))})" for k in about)
    except NoMqscFormError as error:
        return Decision(True, left=f"authority record of {row['ENTITY']}: {error}")
    if record_key(row) not in live.records:
        return Decision(True, undo=f"DELETE AUTHREC {said}")
    return Decision(True, undo=f"SET AUTHREC {said} AUTHRMV({','.join(new)})" if new else "")


def _delete(command: Command, name: str, live: LiveState) -> Decision:
    row = row_of(command.target, name, live)
    if row is None:
        return THERE
    records = [key for key in live.records if key.startswith(f"{command.target} {name} ")]
    left = f"authority records of {name} went with it: {', '.join(records)}" if records else ""
    undo = ""
    with suppress(NoMqscFormError):
        undo = defined(command.target, name, row) if command.target in _KINDS else ""
    return Decision(True, undo=undo, left=left)


def _different(command: Command, row: Row) -> Iterable[tuple[str, Keyword]]:
    """The keywords of the command whose value is not the live one. One that is not shown counts as different."""
    for given in command.keywords:
        if given.name in _FLAGS or given.values is None:
            continue
        wanted: Shown = texts_of(given) if given.name == "NAMES" else _values(given)
        if given.name == "DESTQMGR" and not wanted:
            continue
        if given.name == "NAMES" and not (command.name and command.name.text.startswith(MARKER)):
            # Others may have added to a list: what is planned is in it, or is not.
            is_there = set(texts_of(given)) - {""} <= set(names(row, "NAMES"))
        else:
            is_there = given.name in row and is_alike(given.name, wanted, row)
        if not is_there:
            yield given.name, given


def defined(target: str, name: str, row: Row) -> str:
    """DEFINE of an object with the attributes of *row*. Raises NoMqscFormError."""
    words = [each.keyword for each in _KINDS[target].attributes if each.keyword in row]
    return f"DEFINE {target}({_name(name)}) {_given(target, row, words)}"


def _restored(target: str, word: str, row: Row) -> str:
    """``KEYWORD(value)`` with the value that *row* shows."""
    attribute = _KINDS[target].attribute(word) if target in _KINDS else None
    return keyword(word, in_script(attribute, names(row, word) if word == "NAMES" else text(row, word)))


def _name(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def texts_of(given: Keyword | None) -> tuple[str, ...]:
    """The values of a keyword."""
    return () if given is None else tuple(value.text for value in given.values or ())


def _values(given: Keyword | None) -> str:
    return ",".join(texts_of(given))
