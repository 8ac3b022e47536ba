"""TOML files of tables that people write: mistakes are named with file, line and a suggestion."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rfh2.errors import QPubSubError, system_words


class TableFileError(QPubSubError):
    """A file that is not valid. where: the file, with the line where it is known. why: with a suggestion."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


class Table(BaseModel):
    """A table of such a file; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
