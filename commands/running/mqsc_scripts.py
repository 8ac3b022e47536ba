"""A directory of MQSC scripts that a bridge applies when it starts, and again when they change: ``[mqsc] directory``.

    watch = ScriptDirectory(Path("mqsc"), open_store, groups_of)
    watch.look()                  # all scripts, in order of their names
    watch.look()                  # those that are new or have changed since

A script is applied as a whole each time, so it must be one that may run twice: DEFINE with REPLACE. A command that is
refused is a line in the log, with its file and line; those behind it are carried out all the same. What a script that
is gone defined stays.

``status`` and the console show the drift: what the scripts would change now. For that, a file in the queue manager's
directory says where the scripts are.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from commands.broker.attribute_kinds import shown
from commands.broker.authority import GroupsOf
from commands.broker.objects import Definition, Objects, kind_of
from commands.mqsc.administration import Administration
from commands.mqsc.attributes import QMGR, ObjectKind
from commands.mqsc.execute import execute
from commands.mqsc.families import FAMILIES, SERVER_CHANNEL
from commands.mqsc.script import Command, Keyword, Statement, parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore
from commands.terminal.counted import counted
from commands.terminal.users import current_user
from rfh2.captured import iso
from rfh2.errors import StoreError
from streams.topic_space import TopicSpace

_log: Final = logging.getLogger("qpubsub.mqsc")
_LOOK_S: Final = 1.0
NOTE: Final = "mqsc-scripts.json"
_Version = tuple[int, int, int]


def runner_of(store: QueueManagerStore, groups_of: GroupsOf) -> StatementRunner:
    """What carries out MQSC as the user of this process."""
    return StatementRunner(store, current_user(), groups_of, lambda: datetime.now(UTC))


def apply_script(store: QueueManagerStore, text: str, groups_of: GroupsOf) -> tuple[int, list[tuple[int, str]]]:
    """Carry out a script; how many commands it has, and the line and the answer of each one that was refused."""
    answers = runner_of(store, groups_of).run_script(text)
    refused = [(statement.line, " ".join(answer.lines).strip()) for statement, answer in answers if not answer.ok]
    return len(answers), refused


class ScriptDirectory:
    """The scripts in *directory*: its files ``*.mqsc`` in order of their names, without hidden ones."""

    def __init__(self, directory: Path, open_store: Callable[[], QueueManagerStore], groups_of: GroupsOf) -> None:
        self._directory, self._open_store, self._groups_of = directory, open_store, groups_of
        self._applied: dict[Path, _Version] = {}
        self._seen: dict[Path, _Version] | None = None  # by the last look; None before the first one

    def look(self) -> None:
        """Apply what is new or has changed.

        A script that changes while the bridge works counts when two looks have seen it alike: who writes it may be in
        the middle. Raises OSError for a directory that cannot be read, StoreError.
        """
        found = dict(self._versions())
        ready = [each for each, version in found.items() if self._seen is None or self._seen.get(each) == version]
        self._seen = found
        changed = [each for each in ready if self._applied.get(each) != found[each]]
        if not changed:
            return
        with self._open_store() as store:
            for path in changed:
                self._apply(store, path)
                self._applied[path] = found[path]
            note = {"directory": str(self._directory.resolve()), "applied": iso(datetime.now(UTC))}
            written = store.directory / f"{NOTE}.new"
            written.write_text(json.dumps(note), encoding="utf-8")
            written.replace(store.directory / NOTE)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look now, and once a second while inside. Raises OSError, StoreError at the first look."""
        self.look()
        stop = threading.Event()
        thread = threading.Thread(target=self._follow, args=(stop,), name="mqsc", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _follow(self, stop: threading.Event) -> None:
        said = ""
        while not stop.wait(_LOOK_S):
            try:
                self.look()
                said = ""
            except Exception as error:  # the next look may find a script that can be applied
                is_fault = not isinstance(error, (OSError, StoreError))
                if said != repr(error):
                    _log.error("the scripts in %s: %s", self._directory, error, exc_info=is_fault)
                said = repr(error)

    def _versions(self) -> Iterator[tuple[Path, _Version]]:
        for path in _scripts(self._directory):
            about = path.stat()  # of the file behind a link, as a ConfigMap of Kubernetes changes it
            yield path, (about.st_ino, about.st_size, about.st_mtime_ns)

    def _apply(self, store: QueueManagerStore, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            _log.error("%s: it cannot be read: %s", path, error)
            return
        count, refused = apply_script(store, text, self._groups_of)
        for line, answer in refused:
            _log.error("%s, line %d: %s", path, line, answer)
        _log.info("%s: %s, %d refused", path, counted(count, "MQSC command"), len(refused))


def _scripts(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.suffix == ".mqsc" and not path.name.startswith(".") and path.is_file():
            yield path


def definitions_as_files(directory: Path, objects: Objects, now: datetime) -> dict[str, Any] | None:
    """Where the scripts of a queue manager are, and what they would change now; None where ``run`` has none.

    directory: the queue manager's. now: UTC.
    """
    noted = directory / NOTE
    if not noted.exists():
        return None
    note: dict[str, Any] = json.loads(noted.read_text(encoding="utf-8"))
    try:
        texts = [path.read_text(encoding="utf-8") for path in _scripts(Path(note["directory"]))]
    except (OSError, UnicodeDecodeError) as error:
        return {**note, "drift": [], "problem": f"the scripts cannot be read: {error}"}
    return {**note, "drift": [each.text for each in drift(texts, objects, now)], "problem": ""}


# What differs between scripts that define objects and the objects that are there: drift.
#
# The scripts run on a copy of the definitions, in memory, and what they would change now is the drift. DEFINE counts
# as DEFINE with REPLACE: a definition that was altered by hand since is one that the script would change.
# Subscriptions are not compared: programs make and change them too.

_VERBS: Final = frozenset({"ALTER", "DEFINE", "DELETE", "SET"})
_KINDS: Final[dict[str, ObjectKind]] = {
    family.stored_as: family.kind for family in (*FAMILIES.values(), SERVER_CHANNEL)
} | {"qmgr": QMGR}


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. name: the object, ``QLOCAL(BOARD)``. attribute: "" where the whole object is meant.

    script: what the script says; here: what is there; ``missing`` and ``extra`` for a whole object.
    """

    name: str
    attribute: str
    script: str
    here: str

    @property
    def text(self) -> str:
        """For a person."""
        if not self.attribute:
            return f"{self.name} is {self.here}"
        return f"{self.name}: {self.attribute} is ({self.here}), in the script ({self.script})"


def drift(scripts: Iterable[str], objects: Objects, now: datetime) -> list[Drift]:
    """What *scripts*, in their order, would change in *objects*, which stay as they are. now: UTC."""
    planned = deepcopy(objects)
    administration = Administration.of(planned, TopicSpace(planned.topics), now)
    for script in scripts:
        for statement in parse(script):
            if _defines(statement.command):
                execute(_replacing(statement), administration)
    here, there = _by_name(objects), _by_name(planned)
    return [
        found
        for key in sorted(here.keys() | there.keys())
        if here.get(key) != there.get(key)
        for found in _differences(key, here.get(key), there.get(key))
    ]


def _defines(command: Command | None) -> bool:
    return command is not None and command.verb in _VERBS and command.target != "SUB"


def _replacing(statement: Statement) -> Statement:
    command = statement.command
    if command is None or command.verb != "DEFINE" or command.keyword("REPLACE") is not None:
        return statement
    kept = tuple(keyword for keyword in command.keywords if keyword.name != "NOREPLACE")
    return replace(statement, command=replace(command, keywords=(*kept, Keyword("REPLACE", None))))


def _by_name(objects: Objects) -> dict[tuple[str, str], Definition]:
    definitions = (objects.qmgr, *objects.topics.own, *objects.named)
    return {(kind_of(each), each.name): each for each in definitions}


def _differences(key: tuple[str, str], here: Definition | None, there: Definition | None) -> Iterator[Drift]:
    word = _KINDS[key[0]].word if key[0] in _KINDS else key[0].upper()
    name = f"{word}({key[1]})"
    if here is None or there is None:
        yield Drift(name, "", "", "missing" if here is None else "extra: the scripts delete it")
        return
    kind = _KINDS.get(key[0])
    attributes = {} if kind is None else {each.field: each for each in kind.attributes}
    for field in fields(here) if type(here) is type(there) else ():
        if getattr(here, field.name) == getattr(there, field.name):
            continue
        attribute = attributes.get(field.name)
        if attribute is None:
            yield Drift(name, field.name, str(getattr(there, field.name)), str(getattr(here, field.name)))
        else:
            yield Drift(name, attribute.keyword, _shown(shown(there, attribute)), _shown(shown(here, attribute)))


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
