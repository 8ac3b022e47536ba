"""The command line, ``qpubsub``: verbs, whose modules are imported when they are called.

A verb's module has a ``command`` (a module of several verbs has ``VERB_command`` for each): a click command with a
docstring, an example as its epilog, and an ExitCode (or None, for DONE) as its result;
``click.get_current_context().obj`` (``click.pass_obj``) is the Console. What a verb raises becomes one line on stderr
and an exit code here, and nowhere else.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from commands.options.verb import VerbGroup, context_settings, talk_options
from commands.terminal.console import Console, ExitCode, guarded_stderr
from commands.terminal.output_file import naming
from commands.terminal.stopping import deferring_interrupts, noting_interrupts
from rfh2.distribution import VERSION
from rfh2.errors import QPubSubError, system_words

# What the verbs are for, and what each does, in the order in which a user meets them.
GROUPS: Final[dict[str, dict[str, str]]] = {
    "Look": {
        "demo": "Show what the program does, on captures that come with it.",
        "decode": "Explain captured messages, byte by byte.",
        "why": "Explain why publications did or did not reach a subscriber.",
        "inspect": "Show the broker before and after one message of a capture.",
        "replay": "Run captured commands through the bridge.",
        "analyse": "Report what is in a capture: traffic, subscriptions, retained publications, errors.",
        "differences": "Show what version 7 does differently from version 6, and who would notice.",
        "shadow": "Compare a running queue manager with version 7, and show each difference as it occurs.",
    },
    "Make": {
        "encode": "Make captured messages from the output of decode.",
        "convert": "Convert a capture to another format.",
        "translate": "Show the modern equivalent of queued commands.",
        "generate": "Generate a capture of an artificial workload.",
        "capture": "Capture the messages on IBM MQ's queues.",
        "schema": "Show the JSON Schema of what a command prints with --json.",
    },
    "Run": {
        "dev": "Run a queue manager for tests, with IBM's developer defaults.",
        "create": "Create a queue manager.",
        "list": "List the queue managers of the home.",
        "home": "Copy queue managers from one home to another.",
        "run": "Process queued commands.",
        "stop": "End qpubsub run of a queue manager.",
        "delete": "Delete a queue manager.",
        "mqsc": "Administer a queue manager with MQSC.",
        "export": "Print a queue manager's definitions, for it or another broker.",
        "status": "Show what a queue manager is doing.",
        "topics": "Show the topic tree.",
        "console": "Show a queue manager in the browser.",
        "mcp": "Serve tools for an assistant.",
        "put": "Put captured messages on a queue.",
        "get": "Take messages off a queue.",
        "browse": "Show the messages on a queue.",
        "pub": "Publish on a topic.",
        "sub": "Subscribe to topics and print the publications.",
    },
    "Maintain": {
        "config": "Check a configuration file of run, without a connection.",
        "check": "Connect to the brokers that run would use, and print what is missing.",
        "passwd": "Set the passwords of programs that connect.",
        "shares": "Share one workload among several bridges.",
        "cleanup": "Remove what JMS programs left when they ended without closing.",
        "transactions": "Show and end global transactions that are in doubt.",
    },
    "Migrate": {
        "strmqbrk": "Migrate a version 6 broker's state.",
        "migmbbrk": "Migrate an Event or Message Broker's state.",
        "extract": "Take the state of a live queue manager or broker.",
        "apply": "Send a migration's plan to a live queue manager.",
        "verify": "Compare a migration's plan with the live queue manager.",
        "estate": "Plan, rehearse and apply the migration of many brokers.",
    },
}
VERBS: Final = {verb: does for group in GROUPS.values() for verb, does in group.items()}

# What people type who know IBM MQ, or American English.
SYNONYMS: Final[dict[str, str]] = {
    "analyze": "analyse",
    "crtmqm": "create",
    "dspmq": "list",
    "strmqm": "run",
    "endmqm": "stop",
    "dltmqm": "delete",
    "runmqsc": "mqsc",
    "dspmqtrn": "transactions",
    "rsvmqtrn": "transactions",
}

# Verbs of packages that this one must not import: found by name when they are called, if they are there.
ELSEWHERE: Final[dict[str, str]] = {
    **{verb: f"migrate.cli.{verb}" for verb in ("strmqbrk", "migmbbrk", "estate")},
    **dict.fromkeys(("extract", "apply", "verify"), "migrate.cli.live"),
}
# Modules of several verbs; that of any other verb has its name.
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "check": ("check", "config"),
    "homes": ("create", "delete", "home", "list", "stop"),
    "maintenance": ("cleanup", "passwd", "transactions"),
    "messages": ("browse", "get"),
    "publications": ("pub", "sub"),
    "status": ("status", "topics"),
}
_MODULE_OF: Final = {verb: module for module, verbs in TOGETHER.items() for verb in verbs}


class _ReaderGoneError(Exception):
    """What was to read stdout has ended."""


class Verbs(VerbGroup):
    """The group: verbs that exist, loaded when called; every failure reported in one place."""

    synonyms = SYNONYMS
    words = ("help", "version")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb for verb in VERBS if _is_there(module_of(verb))]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--version"] if args == ["version"] else args)

    def every_command(self) -> Iterator[tuple[str, click.Command]]:
        """The verbs, and those of a verb that has some, by the words that call them; all are loaded."""
        for name in self.list_commands(context := click.Context(self)):
            command = self.get_command(context, name)
            assert command is not None
            yield name, command
            if isinstance(command, VerbGroup):
                yield from ((f"{name} {each}", command.commands[each]) for each in command.list_commands(context))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = _imported(module_of(cmd_name))
        command = getattr(module, f"{cmd_name}_command", None) or module.command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # As in the help, without importing the verbs: somebody waits for this at a key.
        verbs = [verb for verb in self.list_commands(ctx) if verb.startswith(incomplete)]
        return [CompletionItem(verb, help=VERBS[verb]) for verb in verbs] + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Group.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click's own would import every verb to ask for its first line.
        there = self.list_commands(ctx)
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(verb, verbs[verb]) for verb in verbs if verb in there])

    def invoke(self, ctx: click.Context) -> Any:
        # click would end the process itself for these two, with other words and another code.
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error
        except KeyboardInterrupt as error:
            raise click.Abort from error

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        console = extra.pop("obj", None) or Console.standard()
        extra = {**context_settings(), **extra, "standalone_mode": False}
        # pydantic would read the metadata of every installed distribution, for nothing of ours.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        with noting_interrupts() as interrupted:
            try:
                with guarded_stderr(), naming("stdout"):
                    code = super().main(args, prog_name or "qpubsub", obj=console, **extra)
                    console.stdout.flush()
            except SystemExit:
                # The shell has got the completions of a line: click ends then, and nothing went wrong.
                raise
            except BaseException as error:
                code = report_error(KeyboardInterrupt() if interrupted.is_set() else error, console)
        sys.exit(int(code or ExitCode.DONE))


def module_of(verb: str) -> str:
    """The module that has the verb's command."""
    return ELSEWHERE.get(verb, f"{__name__}.{_MODULE_OF.get(verb, verb)}")


def _imported(module: str) -> ModuleType:
    # What modules make stays: the search for garbage finds none while they are imported.
    searches = gc.isenabled()
    gc.disable()
    try:
        with deferring_interrupts():
            return import_module(module)
    finally:
        if searches:
            gc.enable()


def _is_there(module: str) -> bool:
    # Whether its package is installed: to look for the module itself would import the package.
    return find_spec(module.partition(".")[0]) is not None


def report_error(error: BaseException, console: Console) -> int:
    """Say *error* as a person wants to hear it; returns the exit code."""
    try:
        console.stdout.flush()
    except OSError:
        # Python flushes stdout once more when it ends, and would complain then.
        console.abandon_data()
    if isinstance(error, _ReaderGoneError | BrokenPipeError):
        return ExitCode.PIPE_CLOSED
    if console.debug:
        console.lines("".join(traceback.format_exception(error)))
    if isinstance(error, click.BadParameter) and (missing := _missing_file(error)):
        console.warn(f"{missing}: no such file or directory")
        return ExitCode.USAGE
    if isinstance(error, click.UsageError):
        _name_the_variable(error)
        usage = io.StringIO()
        error.show(usage)
        console.lines(usage.getvalue())
        return ExitCode.USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        console.warn("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, click.ClickException):
        console.warn(error.format_message())
        return ExitCode.USAGE
    if isinstance(error, QPubSubError):
        console.warn("; ".join([str(error), *getattr(error, "__notes__", ())]))
        return ExitCode.USAGE
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        limit = "; see ulimit -f" if error.errno == errno.EFBIG else ""
        console.warn("; ".join([f"{where}{system_words(error)}{limit}", *getattr(error, "__notes__", ())]))
        return ExitCode.USAGE
    if not console.debug:
        console.lines("".join(traceback.format_exception(error)))
    console.warn("this is a fault in qpubsub; please report it with the lines above")
    return ExitCode.INTERNAL


def _missing_file(error: click.BadParameter) -> str | None:
    """The file that an argument or an option names, and that is not there."""
    found = re.search(r"'(.*)' does not exist\.$", error.message, re.DOTALL)
    return found[1] if found and error.param is not None and isinstance(error.param.type, click.Path) else None


def _name_the_variable(error: click.UsageError) -> None:
    """Of a value that came from the environment: nobody gave the option."""
    if isinstance(error, click.BadParameter) and error.param is not None and error.ctx is not None:
        names = error.param.envvar or ()
        if error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT:
            there = [name for name in ([names] if isinstance(names, str) else names) if name in os.environ]
            error.param_hint = there[0] if there else None


@click.command(
    cls=Verbs,
    params=list(talk_options()),
    epilog="\b\nExamples:\n  qpubsub decode capture.jsonl\n  qpubsub decode --help\n\n"
    "Exit codes: 0 done, 1 some of the data had problems, 2 usage, or something is missing or in use, 70 a fault in "
    "qpubsub, 130 interrupted, 141 the reader of stdout ended. The help of each command says what they mean there.",
)
@click.version_option(VERSION, prog_name="qpubsub")
def main() -> None:
    """IBM MQ's queued publish/subscribe on a modern topic tree: decode, run, migrate, replay."""
