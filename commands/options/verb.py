"""What every verb has: options that may stand before it or behind it, ``--output``, ``--json``, exit codes in its help.

A verb is made with ``@verb(examples, ...)``, as ``click.command`` would make it. Its function gets none of the shared
options: they are settings of the Console, which carries them out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from commands.terminal.console import Colour, Console

F = Callable[..., Any]

_NARROWEST, _WIDEST = 60, 120
EXIT_CODES: Final[Mapping[int, str]] = {0: "done", 2: "usage, or something is missing or in use"}
"""Those of a verb that says nothing else. 70 (a fault in qpubsub), 130 (Ctrl-C) and 141 (closed pipe) are common."""

_EXPLAINED_ONCE: Final = ("quiet", "debug", "colour")

FILE: Final = click.Path(path_type=Path, dir_okay=False)
FILE_THAT_IS: Final = click.Path(path_type=Path, dir_okay=False, exists=True)
FILE_OR_DASH: Final = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
PATH_OR_DASH: Final = click.Path(path_type=Path, allow_dash=True)
DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


def _set_quiet(ctx: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        _console(ctx).quiet = True


def _set_debug(ctx: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        _console(ctx).debug = True


def _set_colour(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> None:
    if given is not None and not ctx.resilient_parsing:
        _console(ctx).colour = Colour(given)


def _console(ctx: click.Context) -> Console:
    console = ctx.find_object(Console)
    assert console is not None
    return console


def talk_options() -> tuple[click.Option, ...]:
    """``-q``, ``--debug``, ``--color``: of the group and of each verb, so that they may stand on either side of it."""
    return (
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            help="Print only warnings and errors on stderr.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            callback=_set_debug,
            help="Print where in the program an error was raised.",
        ),
        click.Option(
            ["--color", "--colour", "colour"],
            type=click.Choice([each.value for each in Colour]),
            metavar="auto|always|never",
            expose_value=False,
            callback=_set_colour,
            help="When to colour the output. auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set.",
        ),
    )


def context_settings() -> dict[str, Any]:
    """Of the group and of each verb: ``-h``, and help as wide as the window."""
    columns = shutil.get_terminal_size().columns
    return {"help_option_names": ["-h", "--help"], "max_content_width": max(_NARROWEST, min(columns, _WIDEST))}


class _Text(click.types.StringParamType):
    """An argument that is text; names of files need not be, and have a type of their own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        # So Python stands in for bytes that are no characters where the program was called.
        if any("\ud800" <= character <= "\udfff" for character in text):
            self.fail(f"{text!r} is not text in {sys.getfilesystemencoding()}", param, ctx)
        return text


_TEXT: Final = _Text()


class Verb(click.Command):
    """A verb. prints: whether it has ``-o FILE``, which takes what it prints on stdout.

    former: spellings of options that still work, and the option to use now. examples: command lines.
    """

    def __init__(
        self,
        *args: Any,
        prints: bool = False,
        former: Mapping[str, str] | None = None,
        exit_codes: Mapping[int, str] | None = None,
        **more: Any,
    ) -> None:
        self.prints, self.former = prints, dict(former or {})
        self.exit_codes = {**EXIT_CODES, **(exit_codes or {})}
        codes = ", ".join(f"{code} {meaning}" for code, meaning in sorted(self.exit_codes.items()))
        more["epilog"] = f"{more.get('epilog') or ''}\n\nExit codes: {codes}."
        super().__init__(*args, **more)
        for parameter in self.params:
            if parameter.type is click.STRING:
                parameter.type = _TEXT
            elif isinstance(parameter.type, click.IntRange | click.FloatRange):
                parameter.type.name = "number of seconds" if parameter.metavar == "SECONDS" else "number"
        taken = {name for parameter in self.params for name in parameter.opts}
        if prints:
            self.params.append(
                click.Option(
                    ["-o", "--output", "output_to"],
                    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
                    metavar="FILE|-",
                    help="Write to FILE, not to stdout. FILE appears when it is complete.",
                )
            )
        self.params += [option for option in talk_options() if not taken.intersection(option.opts)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        return super().make_context(info_name, args, parent, **{**context_settings(), **extra})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or not self.former:
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, self._with_present_names(ctx, args))

    def _with_present_names(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        present, options = [], True
        for word in args:
            options = options and word != "--"
            name, equals, value = word.partition("=")
            if options and name in self.former:
                _console(ctx).say(f"{name} is now {self.former[name]}; the former name still works")
                present.append(f"{self.former[name]}{equals}{value}")
            else:
                present.append(word)
        return present

    def invoke(self, ctx: click.Context) -> Any:
        path = ctx.params.pop("output_to", None) if self.prints else None
        with _console(ctx).data_to(path):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        explained = [one for one in self.get_params(ctx) if one.name not in _EXPLAINED_ONCE]
        # An argument without a meaning of its own is in the description.
        if records := [record for one in explained if (record := one.get_help_record(ctx)) and record[1]]:
            with formatter.section("Options"):
                formatter.write_dl(records)
        _name_common_options(formatter)


def _name_common_options(formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    formatter.write_text("Common options: --quiet, --debug and --color; qpubsub --help explains them.")


class VerbGroup(click.Group):
    """Verbs by name: those of the program, or those of one of them, as ``estate plan``."""

    synonyms: Mapping[str, str] = {}
    words: tuple[str, ...] = ("help",)
    """What stands for an option, and may be meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which a person needs them

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=200)) for name, each in self.commands.items()])
        _name_common_options(formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # As a word, too, for who knows it from other programs: help, help VERB.
        return super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb on the line. An unknown one gets a suggestion."""
        name = self.synonyms.get(args[0], args[0])
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = get_close_matches(name, [*self.list_commands(ctx), *self.words], n=3, cutoff=0.6)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"{ctx.command_path} --help lists the commands."
            ctx.fail(f"No such command '{name}'. {hint}")
        return super().resolve_command(ctx, [name, *args[1:]])

    def verb(self, *examples: str, **settings: Any) -> Callable[[F], Verb]:
        """The same as ``@verb`` for a verb of this group; it has the name of its function."""

        def made(function: F) -> Verb:
            command = verb(*examples, **settings)(function)
            self.add_command(command)
            return command

        return made


def verb_group(function: F) -> VerbGroup:
    """A verb that has verbs of its own; its docstring says what they have in common."""
    group = click.command(cls=VerbGroup, context_settings=context_settings(), params=list(talk_options()))(function)
    assert isinstance(group, VerbGroup)
    return group


def verb(
    *examples: str,
    prints: bool = False,
    former: Mapping[str, str] | None = None,
    exit_codes: Mapping[int, str] | None = None,
    environment: str | None = None,
) -> Callable[[F], Verb]:
    """A click command with what every verb has. examples: command lines, as a person types them.

    prints: what it prints on stdout may go to a file with ``-o``. former: options by their former names. exit_codes:
    those that differ from EXIT_CODES, or that are not in it. environment: how the names of environment variables begin
    that may give its options.
    """
    title = "Example:" if len(examples) == 1 else "Examples:"
    shown = "\n".join(f"  {line}" for example in examples for line in example.split("\n"))

    def made(function: F) -> Verb:
        settings = {} if environment is None else {"auto_envvar_prefix": environment}
        command: Verb = click.command(
            cls=Verb,
            epilog=f"\b\n{title}\n{shown}",
            prints=prints,
            former=former,
            exit_codes=exit_codes,
            context_settings=settings,
        )(function)
        if environment is not None:
            _name_variables(command, environment)
        return command

    return made


def _name_variables(command: click.Command, environment: str) -> None:
    """Name the variables of options as the options are spelled; one for all verbs counts only without the verb's own.

    click would take the names of parameters, and the one for all verbs first.
    """
    for option in command.params:
        spelled = next((name[2:] for name in option.opts if name.startswith("--")), None)
        if isinstance(option, click.Option) and spelled is not None:
            own, common = f"{environment}_{spelled.replace('-', '_').upper()}", option.envvar
            option.envvar = own if common is None else [own, *([common] if isinstance(common, str) else common)]


json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def given_on_the_line(name: str) -> bool:
    """Whether the person gave this parameter, and it does not come from a default or the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
