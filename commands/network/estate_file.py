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

    [[queue_manager]]
    name = "EDGE2"
    parent = "HUB"
    admin = "https://edge2.example.com:9443"
    queues = "ibmmq://edge2.example.com:1414/EDGE2?channel=ADMIN.SVRCONN"
    extract = "metatopics"

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
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from commands.broker.identity import NAME_SEPARATOR
from commands.broker.objects import is_object_name
from commands.network.topology import Position, Topology
from rfh2.errors import QPubSubError, system_words

# TOML files of tables that people write: mistakes are named with file, line and a suggestion.


class TableFileError(QPubSubError):
    """A file that is not valid. where: the file, with the line where it is known. why: with a suggestion."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


class Table(BaseModel, frozen=True, extra="forbid"):
    """A table of such a file; an unknown key is an error."""


T = TypeVar("T", bound=Table)


def read_text(file: Path, help_text: str) -> str:
    """The text of *file*. help_text: what to say to someone who has no such file. Raises TableFileError."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise TableFileError(str(file), f"{system_words(error)}; {help_text}") from error
    except UnicodeDecodeError as error:
        raise TableFileError(str(file), f"it is not UTF-8 at byte {error.start}") from error


def parsed(text: str, file: str) -> dict[str, Any]:
    """The values of *text*. Raises TableFileError with the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableFileError(file, str(error)) from error


def made(model: type[T], values: object, where: Callable[[str], str]) -> T:
    """*model* of these values. where: the file and line of a key. Raises TableFileError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        given = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            why = f"there is no key {given}{hint(key, model.model_fields)}"
        elif first["type"] == "missing":
            why = f"{key} is missing"
        else:
            why = f"{given}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise TableFileError(where(key), why) from error


def hint(given: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` with the nearest of *known*; "" if none is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


class TomlLines:
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


ESTATE_FILE: Final = "estate.toml"
_TABLE: Final = "queue_manager"
_KINDS: Final = re.compile(r"[a-z.]+=")


class EstateExtract(Table):
    """``extract``: what ``estate extract`` takes as a source.

    by: metatopics of a version 6 broker, or DISPLAY of a later queue manager. admin, queues, config: how that is
    reached, as the options of ``qpubsub extract``; without them, as the queue manager that is migrated to.
    """

    by: Literal["metatopics", "display"]
    admin: str | None = None
    queues: str | None = None
    config: Path | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is not the queue manager that is migrated to."""
        return self.admin is not None or self.queues is not None or self.config is not None


def _as_table(given: object) -> object:
    return {"by": given} if isinstance(given, str) else given


class EstateQueueManager(Table):
    """One ``[[queue_manager]]``.

    parent: its parent in the hierarchy, "" for none. clusters: publish/subscribe clusters. semantics: the version whose
    rules its programs know. setup: MQSC for a queue manager that is made. source: its broker's state, each path with
    ``KIND=`` before it where the content does not show what it is. wave: migrated after all brokers of lower waves.
    broker: the name of an Event Broker or Message Broker; "" for WebSphere MQ's own. accept_unread, accept_changed,
    from_qmgr: as the options of the migration verbs. admin, queues, config: how a live queue manager is reached, as the
    options of ``qpubsub apply``; without them it is an embedded one.
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
    admin: str | None = None
    queues: str | None = None
    config: Path | None = None
    extract: Annotated[EstateExtract | None, BeforeValidator(_as_table)] = None

    @property
    def is_live(self) -> bool:
        """Whether it is reached over the network."""
        return self.admin is not None or self.queues is not None or self.config is not None

    @property
    def is_migrated(self) -> bool:
        """Whether it has, or is going to have, a source."""
        return bool(self.source) or self.extract is not None


class EstateMigration(Table):
    """Table ``[migration]``. prefixes: topic strings for streams instead of their names, the same on every broker.

    name_separator: between a subscription's name and the name of its stream. config: the file with users, passwords and
    certificates of live queue managers that name none of their own. sources_within_hours: ``estate apply`` refuses a
    plan whose sources end earlier; 0 for no bound.
    """

    prefixes: dict[str, str] = {}
    name_separator: str = NAME_SEPARATOR
    config: Path | None = None
    sources_within_hours: Annotated[float, Field(ge=0)] = 24


class Estate(Table):
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
        """The queue manager *name*. Raises TableFileError with a suggestion."""
        for each in self.queue_managers:
            if each.name == name:
                return each
        raise TableFileError(str(self.directory / ESTATE_FILE), f"no queue manager {name}{hint(name, self.names)}")

    def sources_of(self, of: EstateQueueManager) -> tuple[str, ...]:
        """Its sources with their places, each with its kind before it where it was given."""
        return tuple(_placed(self.directory, each) for each in of.source)

    def setup_of(self, of: EstateQueueManager) -> str:
        """The text of its setup script; "" without one. Raises TableFileError where it cannot be read."""
        if of.setup is None:
            return ""
        path = self.directory / of.setup
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = system_words(error) if isinstance(error, OSError) else "it is not UTF-8"
            raise TableFileError(str(path), f"setup of queue manager {of.name}: {why}") from error

    def config_of(self, of: EstateQueueManager) -> Path | None:
        """The file with the users and passwords by which it is reached, if there is one."""
        given = of.config or self.migration.config
        return None if given is None else self.directory / given

    def source_config_of(self, of: EstateQueueManager) -> Path | None:
        """The same for the queue manager from which its source is extracted."""
        given = None if of.extract is None else of.extract.config
        return self.config_of(of) if given is None else self.directory / given

    @property
    def topology(self) -> Topology:
        """Who is connected to whom."""
        return Topology(tuple(Position(each.name, each.parent, each.clusters) for each in self.queue_managers))

    def networks(self) -> tuple[tuple[str, ...], ...]:
        """Queue managers whose publications reach each other, by hierarchy or cluster, in the file's order."""
        return self.topology.networks()


def read_estate(path: Path) -> Estate:
    """The estate in *path*: the file, or the directory that has it. Raises TableFileError."""
    file = path / ESTATE_FILE if path.is_dir() else path
    return parse_estate(read_text(file, "docs/estate.md shows one"), file.parent, str(file))


def parse_estate(text: str, directory: Path, file: str = ESTATE_FILE) -> Estate:
    """The estate that *text* describes. file: its name in messages. Raises TableFileError."""
    values = parsed(text, file)
    lines = TomlLines(text, file)
    top = (_TABLE, "migration")
    for key in values:
        if key not in top:
            raise TableFileError(lines.of_key(key), f"there is no key {key}{hint(key, top)}")
    tables = values.get(_TABLE, [])
    if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
        raise TableFileError(file, "it has no [[queue_manager]]: one for each queue manager of the estate")
    migration = made(EstateMigration, values.get("migration", {}), partial(lines.of_key, table="migration"))
    found = []
    for number, table in enumerate(tables):
        given = dict(table)
        if isinstance(given.get("source"), str):
            given["source"] = [given["source"]]
        found.append(made(EstateQueueManager, given, partial(lines.of_key, table=_TABLE, number=number)))
    _check(found, lines)
    return Estate(directory=directory, queue_managers=tuple(found), migration=migration)


def _check(found: list[EstateQueueManager], lines: TomlLines) -> None:
    """Names, parents and loops. Raises TableFileError."""
    first: dict[str, int] = {}
    for number, each in enumerate(found):
        if not is_object_name(each.name):
            why = f"{each.name!r} cannot name a queue manager: 1 to 48 of A-Z a-z 0-9 . _ / %"
            raise TableFileError(lines.of_key("name", _TABLE, number), why)
        if each.name in first:
            before = lines.of_key("name", _TABLE, first[each.name])
            raise TableFileError(lines.of_key("name", _TABLE, number), f"{each.name} is named before: {before}")
        first[each.name] = number
        extract = each.extract
        if extract is not None and not extract.is_elsewhere and (extract.by == "display" or not each.is_live):
            why = f"extract of {each.name}: it needs admin or queues, by which the broker is reached"
            if each.is_live:
                why = (
                    f"extract of {each.name}: the source is another queue manager than {each.name} itself; give it "
                    "admin or queues of its own"
                )
            raise TableFileError(lines.of_key("extract", _TABLE, number), why)
    parents = {each.name: each.parent for each in found}
    for number, each in enumerate(found):
        if each.parent and each.parent not in parents:
            why = f"parent of {each.name}: there is no queue manager {each.parent}{hint(each.parent, parents)}"
            raise TableFileError(lines.of_key("parent", _TABLE, number), why)
        if each.name in _ancestors(each.name, parents):
            why = f"{each.name} would be its own ancestor: {' < '.join(_ancestors(each.name, parents))}"
            raise TableFileError(lines.of_key("parent", _TABLE, number), why)


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
