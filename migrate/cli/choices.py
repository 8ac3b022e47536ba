"""The options that strmqbrk and migmbbrk share, the sources that a person names, and the exit codes.

Exit codes, for a script that migrates many brokers:

| outcome | without | with --detailed-exit-code |
|---|---|---|
| done    | 0 | 0 |
| warned  | 0 | 1 |
| changed | 1 | 3 |
| lost    | 1 | 4 |
| refused | 2 | 2 |

Code 1 also reports a failure after the migration, such as an output that could not be written.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar

import click

from commands.broker.objects import AuthorityRecord
from commands.config.home import Home
from commands.options.captures import say_that_stdin_is_read
from commands.options.verb import DIRECTORY, FILE_THAT_IS
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from migrate import embedded
from migrate.contents import disk
from migrate.legacy_state import ITEM_FIELDS, Item, LegacyState, Product
from migrate.plan import MigrationPlan, Outcome, PlanOptions, Store, TopicGrant
from migrate.readers.sources import KINDS, read_others, read_sources
from migrate.readers.text import decoded
from migrate.target import Target, existing_target

_STDIN = "stdin"


@dataclass(frozen=True, slots=True)
class GivenSources:
    """The sources of one call; standard input among them is ``-``, or ``KIND=-``."""

    shown: tuple[str, ...]  # as a person named them
    paths: tuple[str, ...]  # with a file in the place of standard input
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


class OutcomeCodes(NamedTuple):
    """The exit codes of one outcome. detailed: with --detailed-exit-code."""

    usual: ExitCode
    detailed: ExitCode


CODES: Final = {
    Outcome.DONE: OutcomeCodes(ExitCode.DONE, ExitCode.DONE),
    Outcome.WARNED: OutcomeCodes(ExitCode.DONE, ExitCode.PROBLEMS),
    Outcome.CHANGED: OutcomeCodes(ExitCode.PROBLEMS, ExitCode.CHANGED),
    Outcome.LOST: OutcomeCodes(ExitCode.PROBLEMS, ExitCode.LOST),
    Outcome.REFUSED: OutcomeCodes(ExitCode.USAGE, ExitCode.USAGE),
}
HELP: Final = {
    0: "done",
    1: "done, with losses or changes that a person must see; with --detailed-exit-code: done, with warnings",
    2: "refused, nothing was changed",
    3: "with --detailed-exit-code: done, and something has another meaning than before",
    4: "with --detailed-exit-code: done, and something is lost unless a person acts; a rehearsal ends with the code of "
    "the run that it rehearses",
}


def exit_code(outcome: Outcome, *, detailed: bool, failed: bool = False) -> ExitCode:
    """The verb's exit code. failed: something went wrong after the migration, which is done."""
    code = CODES[outcome].detailed if detailed else CODES[outcome].usual
    return max(code, ExitCode.PROBLEMS) if failed else code


F = TypeVar("F", bound=Callable[..., Any])

TARGETS: Final = ("embedded", "files")


def shared(function: F) -> F:
    """The options of both verbs, and the sources: the fields of ``MigrationOptions`` that no verb has for itself."""
    for option in reversed(_SHARED):
        function = option(function)
    return function


_SHARED: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--prefix", multiple=True, metavar="STREAM=TOPICSTR", help="A topic string for a stream instead of its name."
    ),
    click.option(
        "--accept-unread",
        is_flag=True,
        help="Migrate even if parts of the sources cannot be read; these parts are lost.",
    ),
    click.option(
        "--from-qmgr",
        metavar="QMGR",
        help="The queue manager whose state is migrated, if the sources are not those of -m, or hold several.",
    ),
    click.option(
        "--cluster", metavar="NAME", help="With --out: write the runbook for moving the topology to this cluster."
    ),
    click.option(
        "--target",
        type=click.Choice(TARGETS),
        default="embedded",
        show_default=True,
        help="The embedded queue manager, or only files for a queue manager of IBM MQ.",
    ),
    click.option(
        "--existing",
        type=FILE_THAT_IS,
        metavar="SCRIPT",
        help="With --target files: the objects that the queue manager has, as dmpmqcfg or saveqmgr writes them.",
    ),
    click.option(
        "--out",
        type=DIRECTORY,
        metavar="DIRECTORY",
        help="Write scripts, messages, checklist, runbook and report here.",
    ),
    click.option(
        "--racf",
        metavar="HLQ",
        help="With --out: write RACF commands for a queue manager on z/OS. HLQ is its name, or that of its "
        "queue-sharing group.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object."),
    click.option(
        "--detailed-exit-code",
        is_flag=True,
        help="Distinguish warnings (1), changes of meaning (3) and losses (4) by the exit code.",
    ),
    click.option(
        "--source",
        multiple=True,
        metavar="[KIND=]PATH...",
        help="The same as FILE: a file or a directory with legacy state, or - for standard input. Give KIND if the "
        f"content does not show it: {', '.join(KINDS)}.",
    ),
    click.argument("more", nargs=-1, metavar="[[KIND=]FILE|-]..."),
)


def pairs(option: str, given: tuple[str, ...], form: str) -> dict[str, str]:
    """``NAME=VALUE`` options. Raises UsageError."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{option} {one}: it has the form {form}")
        found[name] = value
    return found


def utc_now() -> datetime:
    """The moment of the migration."""
    return datetime.now(UTC)


def set_aside(path: Path) -> None:
    """Append a number to the name of a file, if it exists, so that a new file does not replace it."""
    if path.exists():
        path.rename(numbered(path))


def numbered(path: Path) -> Path:
    """The first name like that with a number, from 1, that no file has."""
    number = 1
    while (old := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return old


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationOptions:
    """What an administrator gives to strmqbrk and to migmbbrk, by the names of click's parameters."""

    qmgr: str
    home: Home
    source: tuple[str, ...]
    more: tuple[str, ...]  # sources too, given as arguments
    target: str  # of TARGETS
    existing: Path | None  # the script with the objects of a queue manager of IBM MQ
    out: Path | None
    racf: str | None  # the high-level qualifier
    as_json: bool
    detailed_exit_code: bool
    cluster: str | None
    prefix: tuple[str, ...]  # STREAM=TOPICSTR
    accept_unread: bool
    from_qmgr: str | None
    rehearse: bool
    undo: bool
    force: bool  # with undo; strmqbrk has it for objects of the same name too
    now: datetime = field(default_factory=utc_now)

    @property
    def given(self) -> tuple[str, ...]:
        """All sources."""
        return (*self.source, *self.more)

    @property
    def prefixes(self) -> dict[str, str]:
        """The topic string of each stream whose own name will not do. Raises UsageError."""
        return pairs("--prefix", self.prefix, "STREAM=TOPICSTR")

    @property
    def shown(self) -> tuple[str, ...]:
        """All as the log lists them."""
        raise NotImplementedError

    def of_plan(self) -> PlanOptions:
        """Those that the plan depends on. Raises UsageError."""
        return PlanOptions(
            prefixes=self.prefixes, shown=self.shown, accept_unread=self.accept_unread, from_qmgr=self.from_qmgr
        )

    @property
    def trust_shown(self) -> tuple[str, ...]:
        """``--accept-unread`` and ``--from-qmgr`` as the log lists them."""
        from_qmgr = () if self.from_qmgr is None else (f"--from-qmgr {self.from_qmgr}",)
        return ("--accept-unread", *from_qmgr) if self.accept_unread else from_qmgr

    def check(self) -> None:
        """Raises UsageError where options do not go together, or ``--racf`` is no high-level qualifier."""
        if self.existing is not None and self.target != "files":
            why = "an embedded queue manager knows its own objects"
            raise click.UsageError(f"--existing needs --target files: {why}")
        if self.racf is not None and self.out is None:
            raise click.UsageError("--racf needs --out DIRECTORY")
        if self.racf is not None and HIGH_LEVEL_QUALIFIER.fullmatch(self.racf) is None:
            raise click.UsageError(
                f"--racf {self.racf}: a queue manager on z/OS has a name of 1 to 4 capitals and digits"
            )
        if self.target == "files" and self.out is None:
            raise click.UsageError("--target files needs --out DIRECTORY")

    @contextmanager
    def known(self) -> Iterator[tuple[Target, QueueManagerStore | None]]:
        """The queue manager as it is, and its store, which is open meanwhile; None for a queue manager of IBM MQ.

        Raises MigrationError if ``--existing`` cannot be read, StoreError.
        """
        if self.target == "files":
            yield existing_target(self.qmgr, self._script(), self.now), None
            return
        with QueueManagerStore.open(self.home, self.qmgr) as store:
            yield embedded.load(store), store

    def racf_files(self, plan: MigrationPlan) -> dict[str, str]:
        """The file of ``--racf``, by name."""
        if self.racf is None:
            return {}
        return {FILE_NAME: "".join(f"{line}\n" for line in racf_commands(plan, self.racf))}

    def _script(self) -> str:
        if self.existing is None:
            return ""
        with disk(f"--existing {self.existing}", "; nothing was changed"):
            return decoded(self.existing.read_bytes())


# Access to topics as RACF commands, for a queue manager on z/OS, which has neither setmqaut nor SET AUTHREC.
#
# The profiles of a topic object are ``HLQ.SUBSCRIBE.object`` and ``HLQ.PUBLISH.object`` in class MXTOPIC; HLQ is the
# name of the queue manager or of its queue-sharing group. A subscriber needs ALTER, a publisher UPDATE (IBM MQ's
# "Profiles for topic security" and "API-resource security access quick reference"). As on other platforms, a check
# that fails goes on with the topic objects further up the tree: a denial has no effect below a grant.
#
#     RDEFINE MXTOPIC QM1.SUBSCRIBE.MIGMBBRK.TOPIC.00001 UACC(NONE)
#     PERMIT QM1.SUBSCRIBE.MIGMBBRK.TOPIC.00001 CLASS(MXTOPIC) ID(FRED) ACCESS(ALTER)
#
# RACF names users and groups in one name space, so that it does not matter which of the two a name is.

FILE_NAME: Final = "authorities.racf"
HIGH_LEVEL_QUALIFIER: Final = re.compile(r"[A-Z$#@][A-Z0-9$#@]{0,3}")
_ID: Final = re.compile(r"[A-Z$#@][A-Z0-9$#@]{0,7}")
_PROFILES: Final = {"SUB": ("SUBSCRIBE", "ALTER"), "PUB": ("PUBLISH", "UPDATE")}


def racf_commands(plan: MigrationPlan, hlq: str) -> list[str]:
    """The lines of the file. hlq: the queue manager's name on z/OS, or that of its queue-sharing group."""
    return list(_lines(plan, hlq))


def _lines(plan: MigrationPlan, hlq: str) -> Iterator[str]:
    yield _comment(f"RACF commands of class MXTOPIC for queue manager {plan.qmgr}, {hlq} as high-level qualifier.")
    yield _comment("Review every line. Authorities on queues are not here: their profiles stay as they are.")
    defined: set[str] = set()
    for grant in (*_recorded(plan), *plan.grants):
        yield from _grant(grant, hlq, defined)
    if defined:
        yield "SETROPTS RACLIST(MXTOPIC) REFRESH"
        yield _comment(f"Then, as a command to the queue manager: {hlq} REFRESH SECURITY(MXTOPIC)")


def _recorded(plan: MigrationPlan) -> Iterator[TopicGrant]:
    """What authority records of topic objects grant."""
    for step in plan.steps:
        if not isinstance(step, Store) or not isinstance(step.definition, AuthorityRecord):
            continue
        record = step.definition
        granted = tuple(word for word in _PROFILES if word in record.authorities)
        if record.object_type == "TOPIC" and granted:
            yield TopicGrant(record.profile, record.entity, granted)


def _grant(grant: TopicGrant, hlq: str, defined: set[str]) -> Iterator[str]:
    name = grant.principal.upper()
    for word in grant.denied:
        what = f"DENIED: {grant.principal} on {hlq}.{_PROFILES[word][0]}.{grant.object_name}"
        yield _comment(f"{what}. By hand: a denial does not hold below a grant.")
    for word in grant.granted:
        kind, access = _PROFILES[word]
        profile = f"{hlq}.{kind}.{grant.object_name}"
        if profile not in defined:
            defined.add(profile)
            yield f"RDEFINE MXTOPIC {profile} UACC(NONE)"
        if grant.is_everybody:
            yield _comment(f"{grant.principal} is everybody: RALTER MXTOPIC {profile} UACC({access})")
        elif _ID.fullmatch(name) is None:
            yield _comment(f"{grant.principal} cannot be a RACF user or group. By hand: {access} on {profile}")
        else:
            yield f"PERMIT {profile} CLASS(MXTOPIC) ID({name}) ACCESS({access})"


def _comment(text: str) -> str:
    shown = "".join(c if c.isprintable() else "." for c in text).replace("*/", "* /")
    return f"/* {shown} */"
