"""Which files a stream has read, in a directory beside its checkpoint, so that its offsets are numbers.

``N.json`` has the files that offset N adds, each with the seq where counting begins in it. It is on disk before Spark
gets the number. A number that Spark has not recorded when the query is killed is given again, with what is there then.
Each hundredth file has the names of all before it too, and older ones are deleted.

An offset of a checkpoint that was begun without a log names its files: the log continues from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from commands.disk.files import put_in_place, to_disk

_COMPACTED: Final = 100


class FilesLog:
    """The log in *directory*, which is made with the first files. An offset has ``log``, or ``files`` without a log."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # What is known up to an offset, and the files of the next one, which Spark may or may not record.
        self._known: dict[str, int] = {}
        self._at = -1
        self._added: Mapping[str, int] = {}

    def up_to(self, offset: Mapping[str, Any]) -> Mapping[str, int]:
        """All files up to *offset*: the first seq by path."""
        number = offset.get("log", 0)
        if number == self._at + 1 and self._added:
            self._known.update(self._added)
            self._at, self._added = number, {}
        elif number != self._at:
            known, later = offset.get("files", {}), list[dict[str, int]]()
            for at in range(number, 0, -1):
                content = self._content(at)
                later.append(content["files"])
                if "all" in content:
                    known = content["all"]
                    break
            self._known = dict(known)
            for files in reversed(later):
                self._known.update(files)
            self._at = number
        return self._known

    def between(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, int]:
        """The files that *end* adds to *start*."""
        found: dict[str, int] = {}
        for at in range(start.get("log", 0) + 1, end.get("log", 0) + 1):
            found.update(self._content(at)["files"])
        return found

    def add(self, offset: Mapping[str, Any], files: Mapping[str, int]) -> int:
        """The number of the offset that adds *files* to *offset*; it is on disk."""
        known = self.up_to(offset)
        number = self._at + 1
        self._directory.mkdir(parents=True, exist_ok=True)
        whole = number % _COMPACTED == 0 or "files" in offset
        self._write(number, {"files": files, **({"all": {**known, **files}} if whole else {})})
        self._added = files
        return number

    def forget(self, offset: Mapping[str, Any]) -> None:
        """Delete what is not needed for *offset*, which Spark has recorded, nor for the hundred before it."""
        last = (offset.get("log", 0) // _COMPACTED - 1) * _COMPACTED
        for path in self._directory.glob("[0-9]*.json"):
            if int(path.stem) < last:
                path.unlink()

    def _content(self, number: int) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self._directory / f"{number}.json").read_text(encoding="utf-8"))
        return content

    def _write(self, number: int, content: Mapping[str, Any]) -> None:
        partial = self._directory / f".{number}"
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            to_disk(file)
        put_in_place(partial, self._directory / f"{number}.json")
