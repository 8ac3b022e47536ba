"""``estate.toml``: the queue managers of an estate, for its migration and for a replay over its network.

    [migration]
    prefixes = { Sport = "Games/Sport" }

    [[queue_manager]]
    name = "HUB"
    source = ["sources/HUB"]

    [[queue_manager]]
    name = "EDGE1"
    parent = "HUB"
    clusters = ["SALES"]
    semantics = "v6"
    setup = "setup/EDGE1.mqsc"
    source = ["sources/EDGE1/capture.jsonl", "amqspsd=sources/EDGE1/listing.txt"]
    wave = 2

Paths are relative to the directory of the file. docs/estate.md explains every key. An unknown key is an error, and so
is a parent that is not in the file: the message has the line and a suggestion.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from commands.broker.objects import is_object_name
from commands.broker.stream_names import NAME_SEPARATOR
from rfh2.errors import QPubSubError

ESTATE_FILE: Final = "estate.toml"
_TABLE: Final = "queue_manager"
_KINDS: Final = re.compile(r"[a-z.]+=")


class EstateFileError(QPubSubError):
    """An estate file that is not valid. where: the file, with the line where it is known. why: with a suggestion."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


T = TypeVar("T", bound=_Table)


class EstateQueueManager(_Table):
    """One ``[[queue_manager]]``.

    parent: its parent in the hierarchy, "" for none. clusters: publish/subscribe clusters. semantics: the version whose
    rules its programs know. setup: MQSC for a queue manager that is made. source: its broker's state, each path with
    ``KIND=`` before it where the content does not show what it is. wave: migrated after all brokers of lower waves.
    broker: the name of an Event Broker or Message Broker; "" for WebSphere MQ's own. accept_unread, accept_changed,
    from_qmgr: as the options of the migration verbs.
    """

    name: str
    parent: str = ""
    clusters: tuple[str, ...] = ()
    semantics: Literal["v7", "v6"] = "v7"
    setup: Path | None = None
    source: tuple[str, ...] = ()
    wave: Annotated[int, Field(ge=1, le=999, strict=True)] = 1
    broker: str = ""
    accept_unread: Annotated[bool, Field(strict=True)] = False
    accept_changed: Annotated[bool, Field(strict=True)] = False
    from_qmgr: str | None = None


class EstateMigration(_Table):
    """Table ``[migration]``. prefixes: topic strings for streams instead of their names, the same on every broker.

    name_separator: between a subscription's name and the name of its stream.
    """

    prefixes: dict[str, str] = {}
    name_separator: str = NAME_SEPARATOR


class Estate(_Table):
    """The whole file. directory: where it is, which its paths are relative to."""

    directory: Path
    queue_managers: tuple[EstateQueueManager, ...]
    migration: EstateMigration = EstateMigration()

    @property
    def names(self) -> tuple[str, ...]:
        """The queue managers' names, in the order of the file."""
        return tuple(each.name for each in self.queue_managers)

    @property
    def waves(self) -> tuple[int, ...]:
        """The numbers of the waves, in order."""
        return tuple(sorted({each.wave for each in self.queue_managers}))

    def named(self, name: str) -> EstateQueueManager:
        """The queue manager *name*. Raises EstateFileError with a suggestion."""
        for each in self.queue_managers:
            if each.name == name:
                return each
        raise EstateFileError(str(self.directory / ESTATE_FILE), f"no queue manager {name}{_hint(name, self.names)}")

    def sources_of(self, of: EstateQueueManager) -> tuple[str, ...]:
        """Its sources with their places, each with its kind before it where it was given."""
        return tuple(_placed(self.directory, each) for each in of.source)

    def setup_of(self, of: EstateQueueManager) -> str:
        """The text of its setup script; "" without one. Raises EstateFileError where it cannot be read."""
        if of.setup is None:
            return ""
        path = self.directory / of.setup
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise EstateFileError(str(path), f"setup of queue manager {of.name}: {why}") from error

    def networks(self) -> tuple[tuple[str, ...], ...]:
        """Queue managers whose publications reach each other, by hierarchy or cluster, in the file's order."""
        group = {name: name for name in self.names}

        def root(name: str) -> str:
            while group[name] != name:
                group[name] = group[group[name]]
                name = group[name]
            return name

        first_of: dict[str, str] = {}
        for each in self.queue_managers:
            if each.parent:
                group[root(each.name)] = root(each.parent)
            for cluster in each.clusters:
                group[root(each.name)] = root(first_of.setdefault(cluster, each.name))
        found: dict[str, list[str]] = {}
        for name in self.names:
            found.setdefault(root(name), []).append(name)
        return tuple(map(tuple, found.values()))


def read_estate(path: Path) -> Estate:
    """The estate in *path*: the file, or the directory that has it. Raises EstateFileError."""
    file = path / ESTATE_FILE if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise EstateFileError(str(file), f"{error.strerror or error}; docs/estate.md shows one") from error
    except UnicodeDecodeError as error:
        raise EstateFileError(str(file), f"it is not UTF-8 at byte {error.start}") from error
    return parse_estate(text, file.parent, str(file))


def parse_estate(text: str, directory: Path, file: str = ESTATE_FILE) -> Estate:
    """The estate that *text* describes. file: its name in messages. Raises EstateFileError."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EstateFileError(file, str(error)) from error
    lines = _Lines(text, file)
    top = {"queue_manager", "migration"}
    for key in values.keys() - top:
        raise EstateFileError(lines.of_key(key), f"there is no key {key}{_hint(key, top)}")
    tables = values.get(_TABLE, [])
    if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
        raise EstateFileError(file, "it has no [[queue_manager]]: one for each queue manager of the estate")
    migration = _made(EstateMigration, values.get("migration", {}), partial(lines.of_key, table="migration"))
    found = []
    for number, table in enumerate(tables):
        made = dict(table)
        if isinstance(made.get("source"), str):
            made["source"] = [made["source"]]
        found.append(_made(EstateQueueManager, made, partial(lines.of_key, table=_TABLE, number=number)))
    _check(found, lines)
    return Estate(directory=directory, queue_managers=tuple(found), migration=migration)


def _made(model: type[T], values: object, where: Callable[[str], str]) -> T:
    """*model* of these values. where: the file and line of a key. Raises EstateFileError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        given = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            why = f"there is no key {given}{_hint(key, model.model_fields)}"
        elif first["type"] == "missing":
            why = f"{key} is missing"
        else:
            why = f"{given}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise EstateFileError(where(key), why) from error


def _check(found: list[EstateQueueManager], lines: _Lines) -> None:
    """Names, parents and loops. Raises EstateFileError."""
    first: dict[str, int] = {}
    for number, each in enumerate(found):
        if not is_object_name(each.name):
            why = f"{each.name!r} cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %"
            raise EstateFileError(lines.of_key("name", _TABLE, number), why)
        if each.name in first:
            before = lines.of_key("name", _TABLE, first[each.name])
            raise EstateFileError(lines.of_key("name", _TABLE, number), f"{each.name} is there already: {before}")
        first[each.name] = number
    parents = {each.name: each.parent for each in found}
    for number, each in enumerate(found):
        if each.parent and each.parent not in parents:
            why = f"parent of {each.name}: there is no queue manager {each.parent}{_hint(each.parent, parents)}"
            raise EstateFileError(lines.of_key("parent", _TABLE, number), why)
        if each.name in _ancestors(each.name, parents):
            why = f"{each.name} would be its own ancestor: {' < '.join(_ancestors(each.name, parents))}"
            raise EstateFileError(lines.of_key("parent", _TABLE, number), why)


def _ancestors(name: str, parents: dict[str, str]) -> tuple[str, ...]:
    """Its parent, that one's parent and so on; a loop once."""
    found: list[str] = []
    at = parents.get(name, "")
    while at and at not in found:
        found.append(at)
        at = parents.get(at, "")
    return tuple(found)


def _placed(directory: Path, source: str) -> str:
    kind = _KINDS.match(source)
    before = kind[0] if kind else ""
    return f"{before}{directory / source[len(before) :]}"


def _hint(given: str, known: Iterable[str]) -> str:
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


class _Lines:
    """Where a key is in the text: tomllib does not say."""

    _HEADER: Final = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?")

    def __init__(self, text: str, file: str) -> None:
        self._lines, self._file = text.splitlines(), file

    def of_key(self, key: str, table: str = "", number: int = 0) -> str:
        """The file and the line of *key* in the table with this number; of the table's head where the key is not."""
        head, inside = None, table == ""
        for line, name, text in self._walked():
            if name is not None:
                inside = False
                if name == table or (table == "" and name == key):
                    if number == 0:
                        head, inside = line, True
                    number -= 1
                    if table == "":
                        return f"{self._file}, line {line}"
            elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", text):
                return f"{self._file}, line {line}"
        return self._file if head is None else f"{self._file}, line {head}"

    def _walked(self) -> Iterator[tuple[int, str | None, str]]:
        for line, text in enumerate(self._lines, 1):
            found = self._HEADER.match(text)
            yield line, found[1] if found and text.lstrip().startswith("[") else None, text
