"""``qpubsub encode``: captured messages, from what decode printed or from options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource
from pydantic import ValidationError

from commands.explain.build import CommandSpec, command_message
from commands.explain.problems import explained
from commands.explain.selection import Choosing, MessageSelection, SeqRanges
from commands.options.captures import SEQ_RANGES, STDIN, say_that_stdin_is_read, selection_options
from commands.options.queue_manager import typed_property
from commands.options.verb import PATH_OR_DASH, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, write_captures
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQRO_NAN, MQRO_PAN, MQRO_PASS_CORREL_ID, MQRO_PASS_MSG_ID
from rfh2.errors import CaptureError, EncodeError, system_words
from rfh2.explain.rebuild import rebuild
from rfh2.explain.rebuild_header import DecodedMessage
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import COMMANDS

F = TypeVar("F", bound=Callable[..., Any])

_WRITABLE: Final = [name for name, entry in FORMATS.items() if entry.writer is not None]
_MSG_TYPES: Final = {"request": 1, "reply": 2, "report": 4, "datagram": 8}
_REPORTS: Final = {
    "PAN": MQRO_PAN,
    "NAN": MQRO_NAN,
    "PASS_CORREL_ID": MQRO_PASS_CORREL_ID,
    "PASS_MSG_ID": MQRO_PASS_MSG_ID,
}
_PERSISTENCES: Final = {"no": 0, "yes": 1, "queue": 2}


def _message_options(function: F) -> F:
    options = (
        click.option("--command", "word", type=click.Choice(COMMANDS), help="Make this command from options."),
        click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A Topic; you can repeat it."),
        click.option("--option", "options", multiple=True, metavar="WORD", help="A RegOpt, PubOpt or DelOpt."),
        click.option("--q-name", metavar="QUEUE", help="QName: the subscriber queue."),
        click.option("--qmgr-name", metavar="QMGR", help="QMgrName: the queue manager of the subscriber queue."),
        click.option("--stream-name", metavar="QUEUE", help="MQPSStreamName; with --rfh1 only."),
        click.option("--sub-point", metavar="NAME", help="SubPoint."),
        click.option("--filter", "filter_", metavar="SELECTOR", help="Filter."),
        click.option("--sub-name", metavar="NAME", help="SubName."),
        click.option("--sub-identity", metavar="TEXT", help="SubIdentity."),
        click.option("--sub-user-data", metavar="TEXT", help="SubUserData."),
        click.option("--pub-time", metavar="YYYYMMDDHHMMSSTH", help="PubTime."),
        click.option("--seq-num", metavar="N", help="SeqNum."),
        click.option(
            "--property",
            "usr",
            multiple=True,
            metavar="NAME[:TYPE]=VALUE",
            help="A property in the usr folder. TYPE is int, float or boolean.",
        ),
        click.option("--jms", multiple=True, metavar="NAME[:TYPE]=VALUE", help="A property in the jms folder."),
        click.option("--mcd", multiple=True, metavar="NAME=VALUE", help="A property in the mcd folder: Msd=jms_text."),
        click.option("--data", default="", metavar="TEXT", help="The data of the message: text, with format MQSTR."),
        click.option("--ccsid", default=UTF8_CCSID, show_default=True, metavar="N", help="CCSID of the data."),
        click.option("--rfh1", is_flag=True, help="Make an MQRFH header, not an MQRFH2."),
        click.option("--pcf", is_flag=True, help="Make a PCF message, not an MQRFH2."),
        click.option("--big-endian", is_flag=True, help="Write integers in big-endian byte order, as on AIX and z/OS."),
        click.option(
            "--queue",
            default="",
            metavar="QUEUE",
            help="The queue on which the message is put.",
        ),
        click.option("--qmgr", metavar="QMGR", help="The queue manager on which the message is put."),
        click.option("--user", metavar="USER", help="The user who puts the message."),
        click.option(
            "--time", type=click.DateTime(), metavar="TIME", help="The time of the put, UTC: 2009-01-28T11:43:54."
        ),
        click.option(
            "--seq",
            type=SEQ_RANGES,
            metavar="N|N-M",
            help="With --command, the number of the message; the default is 1. Without it: only messages with these "
            "numbers: 7, or 3,10-20,500-.",
        ),
        click.option("--reply-to-q", default="", metavar="QUEUE", help="MQMD ReplyToQ."),
        click.option("--reply-to-qmgr", default="", metavar="QMGR", help="MQMD ReplyToQMgr."),
        click.option(
            "--msg-type",
            type=click.Choice(list(_MSG_TYPES)),
            default="datagram",
            show_default=True,
            help="MQMD MsgType.",
        ),
        click.option(
            "--report", multiple=True, type=click.Choice(list(_REPORTS)), help="MQMD Report; you can repeat it."
        ),
        click.option("--expiry", type=int, default=-1, metavar="TENTHS", help="MQMD Expiry, in tenths of a second."),
        click.option("--priority", type=click.IntRange(-1, 9), default=-1, metavar="N", help="MQMD Priority."),
        click.option(
            "--persistence",
            type=click.Choice(list(_PERSISTENCES)),
            default="queue",
            show_default=True,
            help="MQMD Persistence.",
        ),
        click.option("--msg-id", default="", metavar="HEX", help="MQMD MsgId. encode adds zeros up to 24 bytes."),
        click.option("--correl-id", default="", metavar="HEX", help="MQMD CorrelId. encode adds zeros up to 24 bytes."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@verb(
    "qpubsub decode --json capture.jsonl | qpubsub encode -o copy.jsonl",
    "qpubsub decode --json capture.jsonl | jq -c '.headers[0].folders[0].values.Topic = \"b/#\"' | qpubsub encode",
    "qpubsub decode --json capture.jsonl | qpubsub encode --where \"command = 'RegSub'\"",
    "qpubsub encode --command RegSub --topic 'Sport/#' --option CorrelAsId --correl-id 01 \\\n"
    "    --reply-to-q SUB.Q --msg-type request",
    "qpubsub encode --command Publish --topic a/b --option RetainPub --property Colour=red --data hello",
    "qpubsub encode --command RegSub --pcf --topic 'Sport/*' --q-name SUB.Q",
    prints=True,
    former={"--usr": "--property", "--persistent": "--persistence"},
    exit_codes={1: "a message could not be encoded (the others were)"},
)
@click.option(
    "--to", "to", type=click.Choice(_WRITABLE), default="jsonl", show_default=True, help="The capture format to write."
)
@click.option("--json", "to", flag_value="jsonl", help="The same as --to jsonl.")
@_message_options
@selection_options(with_seq=False)
@click.argument("files", nargs=-1, type=PATH_OR_DASH, metavar="[FILE|-]...")
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    to: str,
    files: tuple[Path, ...],
    word: str | None,
    seq: SeqRanges | None,
    selection: MessageSelection,
    **given: Any,
) -> ExitCode:
    """Make captured messages from what "decode --json" printed, in each FILE or on standard input.

    What you did not edit is the same as before, byte for byte: byte order, code pages, padding and nulls. You can edit
    a field, a folder's raw text or its values, the body's text or its hex, and you can add or remove a header or a
    folder. encode computes lengths and offsets. It is an error to edit the same thing in two ways.

    With --command, encode makes one message from options and reads no FILE.
    """
    if word is not None:
        if files:
            raise click.UsageError("--command makes a message; it reads no FILE")
        if given["rfh1"] and given["pcf"]:
            raise click.UsageError("--rfh1 and --pcf cannot be used together")
        if not replace(selection, seqs=None).is_all:
            raise click.UsageError("--where, --since, --until and --limit select messages; --command makes one")
        number = 1 if seq is None else seq.only
        if number is None:
            raise click.UsageError("--seq: with --command it is one number")
        message = _made(word, given | {"seq": number})
        for problem in explained(message).problems:
            console.warn(f"{problem.severity}: {problem.message}")
        write_captures([message], console.binary, to)
        return ExitCode.DONE
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in given):
        raise click.UsageError("options that describe a message need --command")
    encoding = _Encoding(console, Choosing(selection))
    done = write_captures(encoding.messages(files or (STDIN,)), console.binary, to)
    console.say(f"{counted(done, 'message')} encoded")
    return ExitCode.PROBLEMS if encoding.problems else ExitCode.DONE


@dataclass(slots=True)
class _Encoding:
    """One run over files. problems: how many objects could not be encoded."""

    console: Console
    choosing: Choosing
    problems: int = 0

    def messages(self, files: Iterable[Path]) -> Iterator[CapturedMessage]:
        """The captured message of each line that is one; the others are reported."""
        for file in files:
            name = "stdin" if file == STDIN else str(file)
            for number, line in enumerate(_lines(self.console, file), 1):
                if not line.strip():
                    continue
                try:
                    message = rebuild(DecodedMessage.model_validate_json(line))
                except ValidationError as error:
                    self._warn(name, number, _clause(error))
                except EncodeError as error:
                    self._warn(name, number, str(error))
                else:
                    if self.choosing.chooses(message):
                        yield message
                    if self.choosing.is_over:
                        return

    def _warn(self, name: str, number: int, why: str) -> None:
        self.problems += 1
        self.console.warn(f"{name}, line {number}: {why}")


def _lines(console: Console, file: Path) -> Iterator[bytes]:
    if file == STDIN:
        say_that_stdin_is_read(console, "what decode --json printed,")
        yield from console.stdin
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise CaptureError(str(file), None, system_words(error)) from error
    with stream:
        yield from stream


def _clause(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def _made(word: str, given: dict[str, Any]) -> CapturedMessage:
    tags = {
        "SubPoint": given["sub_point"],
        "Filter": given["filter_"],
        "QMgrName": given["qmgr_name"],
        "QName": given["q_name"],
        "StreamName": given["stream_name"],
        "PubTime": given["pub_time"],
        "SeqNum": given["seq_num"],
        "SubName": given["sub_name"],
        "SubIdentity": given["sub_identity"],
        "SubUserData": given["sub_user_data"],
    }
    mqmd = Mqmd(
        report=sum({_REPORTS[name] for name in given["report"]}),
        msg_type=_MSG_TYPES[given["msg_type"]],
        expiry=given["expiry"],
        priority=given["priority"],
        persistence=_PERSISTENCES[given["persistence"]],
        coded_char_set_id=UTF8_CCSID,
        msg_id=_identifier(given["msg_id"], "--msg-id"),
        correl_id=_identifier(given["correl_id"], "--correl-id"),
        reply_to_q=given["reply_to_q"],
        reply_to_qmgr=given["reply_to_qmgr"],
        user_identifier=(given["user"] or "")[:12],
    )
    time: datetime | None = given["time"]
    return command_message(
        CommandSpec(
            word,
            given["topics"],
            given["options"],
            tags,
            dict(typed_property("--property", text) for text in given["usr"]),
            given["data"],
            given["ccsid"],
            order="big" if given["big_endian"] else "little",
            rfh1=given["rfh1"],
            pcf=given["pcf"],
            mcd=dict(typed_property("--mcd", text) for text in given["mcd"]),
            jms=dict(typed_property("--jms", text) for text in given["jms"]),
            mqmd=mqmd,
            queue=given["queue"],
            qmgr=given["qmgr"],
            user=given["user"],
            time=time,
            seq=given["seq"],
        )
    )


def _identifier(text: str, option: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {text!r} is not hex") from error
    if len(data) > 24:
        raise click.UsageError(f"{option}: {len(data)} bytes are more than 24")
    return data.ljust(24, b"\0")
