"""The sources that a person names, and standard input among them: ``-``, or ``KIND=-``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from commands.options.captures import say_that_stdin_is_read
from commands.terminal.console import Console
from migrate.legacy_state import ITEM_FIELDS, Item, LegacyState, Product
from migrate.readers import read_others, read_sources

_STDIN = "stdin"


@dataclass(frozen=True, slots=True)
class GivenSources:
    """shown: the sources as a person named them. paths: the same, with a file in the place of standard input."""

    shown: tuple[str, ...]
    paths: tuple[str, ...]
    stdin: Path | None = None

    @classmethod
    def of(cls, console: Console, given: tuple[str, ...]) -> GivenSources:
        """*given* to a verb. Standard input is kept in a temporary file, because sources are read several times.

        The file is deleted when the verb ends. Raises UsageError where ``-`` is there twice.
        """
        places = [at for at, one in enumerate(given) if one.rpartition("=")[2] == "-"]
        if not places:
            return cls(given, given)
        if len(places) > 1:
            raise click.UsageError("standard input (-) can be read once only")
        say_that_stdin_is_read(console, "legacy state")
        directory = click.get_current_context().with_resource(TemporaryDirectory(prefix="qpubsub-"))
        file = Path(directory, _STDIN)
        with file.open("wb") as kept:
            shutil.copyfileobj(console.stdin, kept)
        kind = given[places[0]].removesuffix("-")
        return cls(given, tuple(f"{kind}{file}" if at in places else one for at, one in enumerate(given)), file)

    def read(self, qmgr: str, product: Product = Product.MQ) -> LegacyState:
        """The state of *qmgr* in them, as ``read_sources`` gives it; items of standard input say so."""
        state = read_sources(self.paths, qmgr, product)
        if self.stdin is None:
            return state
        return state.model_copy(update={name: tuple(map(self._named, getattr(state, name))) for name in ITEM_FIELDS})

    def read_others(self, qmgr: str) -> list[LegacyState]:
        """The states of other queue managers than *qmgr* in them."""
        return read_others(self.paths, qmgr)

    def _named(self, item: Item) -> Item:
        if item.source.file != str(self.stdin):
            return item
        return replace(item, source=replace(item.source, file=_STDIN))
