"""How the time to read a message, or a capture file, grows with its size: no reader takes more than in proportion.

A queue manager reads messages one behind another, within a transaction: one that takes the square of its length stops
everybody. ``CASES`` has every kind of input, hostile ones too, and who reads it; one more is one line there. For each the
size is doubled, and processor time measured, until it takes long or is large. Four times the size may take ``BOUND``
times the time: four is proportion, sixteen the square.

As a command this prints the table (``--help`` has its options):

    python -m tests.reliability.growth [--largest-kib 1024] [WORD]...
"""

from __future__ import annotations

import argparse
import gc
import io
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from commands import Broker
from commands.dialects.occasions import Stage
from commands.dialects.render import render
from commands.explain.reading import explained
from commands.explain.view import View, view
from commands.mqsc.parser import parse as parse_mqsc
from commands.parse import parse
from rfh2 import CapturedMessage, Folder, Message, Mqmd, QPubSubError, Rfh1, Rfh2, decode, encode
from rfh2.captures import FORMATS, read_captures, write_captures
from rfh2.explain.elements import elements
from rfh2.explain.form import DecodedMessage, json_line
from rfh2.explain.rebuild import rebuild
from rfh2.folders import write
from rfh2.pcf import Pcf, decode_pcf
from rfh2.pcf_parameters import Cfgr, Cfil, Cfin, Cfsl, Cfst
from rfh2.roots import split_roots
from tests.rfh2 import channel_wire as wire

BOUND: Final = 8.0
FLOOR_S: Final = 0.04
"""Shorter times say more of the machine than of the reader."""
SMALLEST: Final = 4096
FAST_LARGEST: Final = 32 * 1024
LARGEST: Final = 512 * 1024
PATIENCE_S: Final = 2.0
_STEPS: Final = 2  # doublings between the two sizes that are compared

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of input and who reads it. make: an input of about so many bytes. hostile: no program means it."""

    name: str
    read: Callable[[Any], object]
    make: Callable[[int], Any]
    hostile: bool = False


# ---- how it is measured ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """Sizes in bytes and seconds of processor time, and the steepest rise over a fourfold size that was measured."""

    case: Case
    times: tuple[tuple[int, float], ...]
    ratio: float


def growth(case: Case, largest: int = LARGEST, patience_s: float = PATIENCE_S) -> Growth:
    """Measure *case* at doubled sizes up to *largest* bytes, or until it takes *patience_s*."""
    times: list[tuple[int, float]] = []
    steepest = 0.0
    size = SMALLEST
    while True:
        times.append((size, measured(case, size, 1)))
        if len(times) > _STEPS and times[-1][1] >= FLOOR_S:
            steepest = max(steepest, _ratio(case, times[-1 - _STEPS], times[-1]))
        if size >= largest or times[-1][1] > patience_s:
            return Growth(case, tuple(times), steepest)
        size *= 2


def _ratio(case: Case, small: tuple[int, float], large: tuple[int, float]) -> float:
    """The rise between two sizes; one that is too steep is measured again, for the machine has others to serve."""
    ratio = large[1] / max(small[1], FLOOR_S / 16)
    for _ in range(3):
        if ratio <= BOUND:
            break
        again = measured(case, large[0], 2) / max(measured(case, small[0], 5), FLOOR_S / 16)
        ratio = min(ratio, again)
    return ratio


def measured(case: Case, size: int, times: int) -> float:
    """The least processor time, in seconds, of so many readings of an input of *size* bytes."""
    best = float("inf")
    for _ in range(times):
        given = case.make(size)
        gc.collect()
        gc.disable()
        try:
            start = time.process_time()
            case.read(given)
            best = min(best, time.process_time() - start)
        finally:
            gc.enable()
    return best


# ---- inputs ---------------------------------------------------------------------------------------------------------


def filled(size: int, unit: str, before: str = "", after: str = "") -> str:
    """*unit* again and again between *before* and *after*, ``#`` in it being the count, until it has *size* characters."""
    count = max(1, (size - len(before) - len(after)) // len(unit.replace("#", "00000")))
    return before + "".join([unit.replace("#", f"{n:05}") for n in range(count)]) + after


def of(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: filled(size, unit, before, after)


def captured(message: Message, queue: str = STREAM, seq: int = 1) -> CapturedMessage:
    return CapturedMessage(
        seq=seq, queue=queue, md_hex=message.mqmd.encode().hex(), body_hex=encode(message).hex(), qmgr="QM1"
    )


def in_rfh2(*folders: str, queue: str = STREAM, seq: int = 1, body: bytes = b"", **md: Any) -> CapturedMessage:
    header = Rfh2(tuple(map(Folder.of, folders)), coded_char_set_id=1208, format="MQSTR")
    mqmd = Mqmd(format="MQHRF2", coded_char_set_id=1208, user_identifier="app", reply_to_q="REPLY", **md)
    return captured(Message(mqmd, (header,), body), queue, seq)


def in_rfh1(text: str, queue: str = STREAM, seq: int = 1, ccsid: int = 819) -> CapturedMessage:
    data = text.encode() + b"\0"
    header = Rfh1(data + bytes(-len(data) % 4), format="MQSTR")
    mqmd = Mqmd(format="MQHRF", coded_char_set_id=ccsid, user_identifier="app", reply_to_q="REPLY")
    return captured(Message(mqmd, (header,)), queue, seq)


def in_pcf(pcf: Pcf, queue: str = STREAM, seq: int = 1) -> CapturedMessage:
    mqmd = Mqmd(format="MQPCF", coded_char_set_id=1208, user_identifier="app", reply_to_q="REPLY")
    return captured(Message(mqmd, (), pcf.encode()), queue, seq)


def psc(word: str, *pairs: tuple[str, str]) -> str:
    return write("psc", [("Command", word), *pairs])


def topics(size: int, tag: str = "Topic", text: str = "t/#") -> list[tuple[str, str]]:
    return [(tag, text.replace("#", f"{n:05}")) for n in range(max(1, size // (2 * len(tag) + 5 + len(text) + 4)))]


def rfh1_topics(size: int, word: str = "Publish") -> str:
    return filled(size, "MQPSTopic t/# ", f"MQPSCommand {word} ")


def pcf_topics(size: int, number: int) -> Pcf:
    return Pcf(number, tuple(Cfst.of(3031, f"t/{n:05}") for n in range(max(1, size // 28))))


def nested(size: int) -> Pcf:
    member: Any = Cfgr(1, tuple(Cfin(2, n) for n in range(size // 16)))
    for _ in range(30):
        member = Cfgr(1, (member,))
    return Pcf(85, (member,))


def headers(size: int) -> CapturedMessage:
    one = Rfh2((Folder.of("<usr><a>1</a></usr>"),), format="MQHRF2", coded_char_set_id=1208)
    count = max(2, size // one.length)
    return captured(Message(Mqmd(format="MQHRF2", coded_char_set_id=1208), (one,) * count, b""))


def session(size: int, shape: Callable[[wire.Session, int], None]) -> bytes:
    made = wire.Session()
    made.server(wire.Wire().segment(wire.INITIAL_DATA, wire.Wire().initial_data("QM1")))
    shape(made, size)
    return b"".join(_pcap(made.frames))


def _pcap(frames: Iterable[wire.Frame]) -> Iterator[bytes]:
    yield wire.pcap(())
    for frame in frames:
        yield wire.pcap([frame])[24:]


def puts(made: wire.Session, size: int) -> None:
    sides = wire.Wire()
    md = wire.mqmd()
    for _ in range(max(1, size // 1200)):
        made.client(sides.segment(wire.MQPUT, sides.mqput(md, b"x" * 100)))
        made.server(sides.segment(wire.MQPUT_REPLY, sides.mqput_reply(md)))


def late(made: wire.Session, size: int) -> None:
    puts(made, size)
    made.frames[3:] = reversed(made.frames[3:])


def lost(made: wire.Session, size: int) -> None:
    puts(made, size)
    made.frames[3:] = [frame for n, frame in enumerate(made.frames[3:]) if n % 3]


def open_calls(made: wire.Session, size: int) -> None:
    """Calls that are begun in one direction, and as many places in the other where no segment begins."""
    md = wire.mqmd()
    for n in range(max(1, size // 800)):
        sides = wire.Wire(conversation=n)
        made.client(sides.segment(wire.MQPUT, sides.mqput(md, b"")[:60], control=wire.FIRST))
        made.server(sides.segment(0x09, b"") + b"garbage!" * 4)


def one_large(made: wire.Session, size: int) -> None:
    sides = wire.Wire()
    for at in range(0, len(data := sides.segments(wire.MQPUT, sides.mqput(wire.mqmd(), b"x" * size), 32_000)), 1400):
        made.client(data[at : at + 1400])


def single_bytes(made: wire.Session, size: int) -> None:
    for byte in b"TSH " * (size // 4 // 70):
        made.client(bytes([byte]))


def messages(size: int) -> list[CapturedMessage]:
    text = psc("Publish", ("Topic", "Stock/IBM"))
    return [in_rfh2(text, body=b"42.5", seq=n + 1) for n in range(max(1, size // 600))]


def written(form: str) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        target = io.BytesIO()
        write_captures(messages(size) if form != "raw" else messages(1), target, form, refused=lambda *_: None)
        return target.getvalue()

    return make


def listing(field: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda size: (
        b"MQGET of message number 1, CompCode:0 Reason:0\n****Message descriptor****\n" + field(size).encode() + b"\n"
    )


def unload(line: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda size: b"A VER 2\nA RPT 0\n" + line(size).encode() + b"\n"


def raw(unit: str, before: str = "", after: str = "") -> Callable[[int], bytes]:
    return lambda size: filled(size, unit, before, after).encode()


def form_of(message: CapturedMessage) -> dict[str, Any]:
    return explained(message).form("x", 0)


def edited_folder(size: int) -> bytes:
    form = form_of(in_rfh2(filled(size, "<a>1</a>", "<usr>", "</usr>")))
    form["headers"][0]["folders"][0]["values"]["a"] = ["2"] * len(form["headers"][0]["folders"][0]["values"]["a"])
    return json_line(form)


def edited_pcf(size: int) -> bytes:
    form = form_of(in_pcf(pcf_topics(size, 61)))
    for parameter in form["body"]["pcf"]["parameters"]:
        parameter["value"] += "x"
    return json_line(form)


# ---- readers --------------------------------------------------------------------------------------------------------


def refused_or(read: Callable[[Any], object]) -> Callable[[Any], object]:
    def reader(given: Any) -> object:
        try:
            return read(given)
        except QPubSubError as error:
            return str(error)

    return reader


def folder(text: str) -> None:
    """All that is done with one NameValueData."""
    one = Folder.of(text)
    split_roots(one)
    for read in (Folder.values, Folder.pairs, elements):
        refused_or(read)(one)


def decode_json(message: CapturedMessage) -> bytes:
    return json_line(form_of(message))


def decode_text(message: CapturedMessage) -> str:
    found = explained(message)
    how = View(lambda _role, text: text, None)
    return "\n".join(view(found.partial, "x", found.command, found.problems, how))


def handle(given: CapturedMessage | list[CapturedMessage], setup: str = "", semantics: str = "v7") -> None:
    broker = Broker("QM1", setup, semantics)
    for message in given if isinstance(given, list) else [given]:
        broker.handle(message)


def handle_v6(given: list[CapturedMessage]) -> None:
    handle(given, semantics="v6")


def handle_refusing(given: list[CapturedMessage]) -> None:
    handle(given, "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL('other') AUTHADD(PUB)")


def translate(dialect: str) -> Callable[[CapturedMessage], object]:
    return lambda message: list(render(Stage("QM1").play(message), dialect, "x", 0))


def capture(form: str) -> Callable[[bytes], object]:
    return lambda data: [record.position for record in read_captures(io.BytesIO(data), form, name="x")]


def convert(form: str) -> Callable[[bytes], object]:
    def reader(data: bytes) -> object:
        found = (record.message for record in read_captures(io.BytesIO(data), "jsonl", name="x"))
        return write_captures((m for m in found if m), io.BytesIO(), form, refused=lambda *_: None)

    return reader


def rebuilt(line: bytes) -> object:
    return rebuild(DecodedMessage.model_validate_json(line))


decoded_parse = refused_or(lambda message: parse(message.decode()))


# ---- the table ------------------------------------------------------------------------------------------------------

REGSUB: Final = in_rfh2(psc("RegSub", ("Topic", "#"), ("QName", "Q")), queue=CONTROL)
FILTERED: Final = in_rfh2(psc("RegSub", ("Topic", "#"), ("QName", "Q"), ("Filter", "usr.a = 1")), queue=CONTROL)
NAN: Final = {"report": 3}  # PAN and NAN: a response in any case

FOLDERS: Final[dict[str, Callable[[int], str]]] = {
    "leaves": of("<a#>1</a#>", "<usr>", "</usr>"),
    "repeated tag": of("<a dt='i4'>1</a>", "<usr>", "</usr>"),
    "groups": of("<a#><b>1</b></a#>", "<usr>", "</usr>"),
    "roots": of("<a>1</a>"),
    "attributes": of(" x#='1'", "<usr><a", ">1</a></usr>"),
    "prefixes": of("<p#:a/>", "<usr>", "</usr>"),
    "prefixed attributes": of("<a p#:x='1'/>", "<usr>", "</usr>"),
    "namespaces": lambda n: filled(n // 2, " xmlns:p#='#'", "<usr", ">") + filled(n // 2, "<a p#:x='1'/>") + "</usr>",
    "references": of("&amp;", "<usr><a>", "</a></usr>"),
    "bare ampersands": of("&", "<usr><a>", "</a></usr>"),
    "ampersands and names": of("&a", "<usr><a>", "</a></usr>"),
    "digits that are no number": of("1", "<usr><a dt='r8'>", "x</a></usr>"),
    "digits of an integer": of("1", "<usr><a dt='int'>", "x</a></usr>"),
    "digits of bytes": of("1", "<usr><a dt='bin.hex'>", "x</a></usr>"),
    "a tag without an end": of("a", "<mcd/><psc><Command>Publish</Command></psc><"),
    "tags without an end": of("<a ", "<mcd/><psc/>"),
    "slashes in a tag": of("/", "<mcd/><psc/><a"),
    "blanks in a tag": of(" ", "<mcd/><psc/><a", "<"),
    "attributes without an end": of(" b='1'", "<mcd/><psc/><a"),
    "an attribute without a value": of("b", "<usr><a ", " ='"),
    "quotes in tags": of("<a \"'", "<mcd/><psc/>"),
    "tags in quotes": of('<a "<b/>', "<mcd/><psc/>"),
    "open elements": of("<a>", "<usr>"),
    "colons": of(":a", "<usr><a", "/></usr>"),
    "closing tags": of("</a>", "<usr>"),
    "blanks": of(" ", "<usr><a>", "</a></usr> x"),
    "nulls": of("\0", "<usr/>"),
}
COMMANDS: Final[dict[str, Callable[[int], CapturedMessage]]] = {
    "Publish, many topics": lambda n: in_rfh2(psc("Publish", *topics(n))),
    "Publish, one long topic": lambda n: in_rfh2(psc("Publish", ("Topic", "a/" * (n // 2)))),
    "Publish, topics and options": lambda n: in_rfh2(
        psc("Publish", *topics(n // 2), *topics(n // 2, "PubOpt", "None"))
    ),
    "Publish, unknown tags": lambda n: in_rfh2(psc("Publish", *topics(n, "Colour#", "1"))),
    "Publish, retained marks": lambda n: in_rfh2(
        psc("Publish", ("Topic", "a"), *topics(n, "PubOpt", "IsRetainedPub"))
    ),
    "RegSub, many topics": lambda n: in_rfh2(psc("RegSub", ("QName", "Q"), *topics(n)), queue=CONTROL),
    "RegSub, topics and options": lambda n: in_rfh2(
        psc("RegSub", ("QName", "Q"), *topics(n // 2), *topics(n // 2, "RegOpt", "Local")), queue=CONTROL
    ),
    "RegSub, options without identity": lambda n: in_rfh2(
        psc("RegSub", ("QName", "Q"), ("Topic", "a"), *topics(n, "RegOpt", "JoinShared")), queue=CONTROL
    ),
    "RegSub, a long filter": lambda n: in_rfh2(
        psc("RegSub", ("QName", "Q"), ("Topic", "a"), ("Filter", filled(n, "a#=1 or ", "", "b=2"))), queue=CONTROL
    ),
    "DeregSub, many topics": lambda n: in_rfh2(psc("DeregSub", ("QName", "Q"), *topics(n)), queue=CONTROL, **NAN),
    "DeregSub, topics and filters": lambda n: in_rfh2(
        psc("DeregSub", ("QName", "Q"), *topics(n // 2), *topics(n // 2, "Filter", "a=#")), queue=CONTROL, **NAN
    ),
    "DeregSub, topics and a filter that is none": lambda n: in_rfh2(
        psc("DeregSub", ("QName", "Q"), *topics(n // 2), ("Filter", "a = " * min(n // 8, 2000))), queue=CONTROL, **NAN
    ),
    "DeletePub, many topics": lambda n: in_rfh2(psc("DeletePub", *topics(n))),
    "Publish, a long usr folder": lambda n: in_rfh2(
        psc("Publish", ("Topic", "a")), filled(n, "<a#>1</a#>", "<usr>", "</usr>")
    ),
    "many folders": lambda n: in_rfh2(psc("Publish", ("Topic", "a")), *["<b/>"] * (n // 8)),
    "many headers": headers,
    "much text": lambda n: in_rfh2(psc("Publish", ("Topic", "a")), body=b"line of text\n" * (n // 13)),
    "MQRFH, many topics": lambda n: in_rfh1(rfh1_topics(n)),
    "MQRFH, user pairs": lambda n: in_rfh1(filled(n, "a# 1 ", "MQPSCommand Publish MQPSTopic a ")),
    "MQRFH, unknown names": lambda n: in_rfh1(filled(n, "MQ# 1 ", "MQPSCommand Publish MQPSTopic a ")),
    "MQRFH, quotes": lambda n: in_rfh1(filled(n, '""', 'MQPSCommand Publish MQPSTopic "', '"')),
    "MQRFH, quotes without an end": lambda n: in_rfh1(filled(n, '""', 'MQPSCommand Publish MQPSTopic "')),
    "MQRFH, quoted names in UTF-8": lambda n: in_rfh1(
        filled(n, '"\N{EURO SIGN}" 1 ', "MQPSCommand Publish MQPSTopic a "), ccsid=1208
    ),
    "MQRFH, blanks": lambda n: in_rfh1(filled(n, " ", "MQPSCommand Publish MQPSTopic a", "b")),
    "PCF, many topics": lambda n: in_pcf(pcf_topics(n, 61)),
    "PCF, unknown parameters": lambda n: in_pcf(Pcf(61, tuple(Cfin(i, 1) for i in range(n // 16)))),
    "PCF, groups": lambda n: in_pcf(nested(n)),
    "PCF, lists": lambda n: in_pcf(Pcf(61, (Cfil(1, (1,) * (n // 8)), Cfsl.of(2, ("a",) * (n // 2))))),
}
SEQUENCES: Final[dict[str, tuple[Callable[[Any], object], Callable[[int], Any]]]] = {
    "Publish to many topics, one subscriber of all": (
        handle,
        lambda n: [REGSUB, in_rfh2(psc("Publish", *topics(n)), seq=2)],
    ),
    "Publish to many topics, a filter": (
        handle,
        lambda n: [FILTERED, in_rfh2(psc("Publish", *topics(n)), "<usr><a>2</a></usr>", seq=2)],
    ),
    "Publish to many topics, retained": (
        handle,
        lambda n: [in_rfh2(psc("Publish", ("PubOpt", "RetainPub"), *topics(n)))],
    ),
    "Publish to many topics, version 6": (
        handle_v6,
        lambda n: [REGSUB, in_rfh2(psc("Publish", *topics(n)), seq=2)],
    ),
    "Publish to many topics, none allowed": (
        handle_refusing,
        lambda n: [in_rfh2(psc("Publish", *topics(n)), **NAN)],
    ),
    "Publish in MQRFH to many topics": (handle, lambda n: [REGSUB, in_rfh1(rfh1_topics(n), seq=2)]),
    "Publish in PCF to many topics": (handle, lambda n: [REGSUB, in_pcf(pcf_topics(n, 61), seq=2)]),
    "RegSub and DeregSub of many topics": (
        handle,
        lambda n: [
            in_rfh2(psc("RegSub", ("QName", "Q"), *topics(n // 2)), queue=CONTROL),
            in_rfh2(psc("DeregSub", ("QName", "Q"), *topics(n // 2)), queue=CONTROL, seq=2, **NAN),
        ],
    ),
    "DeregSub of many topics, one of them registered": (
        handle,
        lambda n: [
            in_rfh2(psc("RegSub", ("QName", "Q"), ("Topic", "t/00000")), queue=CONTROL),
            in_rfh2(psc("DeregSub", ("QName", "Q"), *topics(n)), queue=CONTROL, seq=2, **NAN),
        ],
    ),
    "RegSub of two users, version 6": (
        handle_v6,
        lambda n: [
            in_rfh2(psc("RegSub", ("QName", "Q"), ("RegOpt", "VariableUserId"), *topics(n // 2)), queue=CONTROL),
            in_rfh2(
                psc("RegSub", ("QName", "Q"), ("RegOpt", "VariableUserId"), *topics(n // 2, text="u/#")),
                queue=CONTROL,
                seq=2,
            ).model_copy(update={"user": "other"}),
        ],
    ),
}
LISTINGS: Final[dict[str, tuple[str, Callable[[int], bytes]]]] = {
    "qload, blanks in a queue name": ("qload", raw(" ", "* Queue = a", "b\n")),
    "qload, blanks in a data line": ("qload", unload(of(" ", "X ", "g"))),
    "qload, digits in a data line": ("qload", unload(of("0", "X ", "g"))),
    "qload, quotes in a string": ("qload", unload(of('~"', 'S "', '" x'))),
    "qload, attributes": ("qload", raw("A VER 1\n")),
    "qload, blank lines": ("qload", raw("\n", "A VER 2\n", "X 00\n")),
    "qload, an attribute of digits": ("qload", raw("1", "A VER 1", " x\n")),
    "amqsbcg, fields in a field": ("amqsbcg", listing(of("' b : '", "a : '"))),
    "amqsbcg, quotes in a field": ("amqsbcg", listing(of("'", "a : '", "x"))),
    "amqsbcg, blanks in a field": ("amqsbcg", listing(of(" ", "a : '", "x"))),
    "amqsbcg, quotes and blanks": ("amqsbcg", listing(of("'  a", "a : '", "x"))),
    "amqsbcg, a name without an end": ("amqsbcg", listing(of("a"))),
    "amqsbcg, digits": ("amqsbcg", listing(of("1", "Version : ", " x"))),
    "amqsbcg, a queue name": ("amqsbcg", raw("' ", " MQOPEN - '", "x\n")),
    "amqsbcg, lines": ("amqsbcg", listing(of("00000000:  00\n", "**** Message ****\n length - 1 bytes\n"))),
    "hex, blanks": ("hex", raw(" ", "00000000", "g\n")),
    "hex, blocks": ("hex", raw("52464820\n\n")),
    "hex, lines of a dump without bytes": ("hex", raw("00000000:\n")),
    "hex, comments": ("hex", raw("# x\n")),
    "mqmd, separators": ("mqmd", raw("#@#@#x", "MD  ")),
    "mqmd, overlapping separators": ("mqmd", raw("#@", "MD  ")),
    "mqmd, ends of properties": ("mqmd", raw("$%$%$", "#@#@#")),
    "jsonl, unknown keys": ("jsonl", raw('"a#":1,', "{", '"queue":"Q","body_hex":""}\n')),
    "jsonl, arrays": ("jsonl", raw("[1],", '{"a":[', '0],"queue":"Q","body_hex":""}\n')),
    "jsonl, empty lines": ("jsonl", raw("\n")),
    "jsonl, broken lines": ("jsonl", raw("{}\n")),
    "auto, base64 and blanks": ("auto", raw(" ", "a" * 30, "!")),
    "auto, line ends": ("auto", raw("\n", "!")),
    "auto, lines of a dump": ("auto", raw("0000: \t\n", "!\n")),
    "auto, stars": ("auto", raw("**** \n", "!\n")),
    "auto, pairs of digits": ("auto", raw("aa  ", "", "!")),
    "auto, words": ("auto", raw("0000 ", "0000000 ", "!")),
}
SESSIONS: Final[dict[str, Callable[[wire.Session, int], None]]] = {
    "puts": puts,
    "packets in reverse order": late,
    "packets lost": lost,
    "calls begun and losses": open_calls,
    "one large message": one_large,
    "single bytes": single_bytes,
}
SCRIPTS: Final[dict[str, Callable[[int], str]]] = {
    "commands": of("DEFINE QLOCAL(Q#) MAXDEPTH(5)\n"),
    "one line of commands": of("DEFINE QLOCAL(Q#);"),
    "continuation lines": of("A#(1) +\n", "DEFINE QLOCAL(Q) "),
    "quotes without an end": of("''", "DEFINE QLOCAL('"),
    "a list of names": of("'N#',", "DEFINE NAMELIST(N) NAMES(", "'x')"),
    "blanks": of(" ", "DEFINE", "("),
    "stars and dashes": of("* -\n", "DEFINE -\n"),
}


def _cases() -> Iterator[Case]:
    for name, text in FOLDERS.items():
        hostile = name not in ("leaves", "groups")
        yield Case(f"folder: {name}", folder, text, hostile)
        yield Case(f"handle: folder, {name}", handle, lambda n, text=text: in_rfh2(text(n)), hostile)
        yield Case(f"decode --json: folder, {name}", decode_json, lambda n, text=text: in_rfh2(text(n)), hostile)
    for name, command in COMMANDS.items():
        yield Case(f"parse: {name}", decoded_parse, command)
        yield Case(f"decode --json: {name}", decode_json, command)
        yield Case(f"decode: {name}", decode_text, command)
        yield Case(f"handle: {name}", handle, command)
        yield Case(f"translate --to mqi: {name}", translate("mqi"), command)
        yield Case(f"translate --to mqsc: {name}", translate("mqsc"), command)
        yield Case(f"translate --to pcf: {name}", translate("pcf"), command)
        yield Case(f"encode: {name}", rebuilt, lambda n, command=command: decode_json(command(n)))
    for name, (read, make) in SEQUENCES.items():
        yield Case(f"handle: {name}", read, make)
    yield Case("encode: edited values", rebuilt, edited_folder)
    yield Case("encode: edited parameters", rebuilt, edited_pcf)
    for form, entry in FORMATS.items():
        if entry.writer is not None:
            yield Case(f"capture: {form}", capture(form), written(form))
            yield Case(f"convert --to {form}", convert(form), written("jsonl"))
    for name, (form, listed) in LISTINGS.items():
        yield Case(f"capture: {name}", capture(form), listed, hostile=True)
    for name, shape in SESSIONS.items():
        yield Case(f"capture: pcap, {name}", capture("pcap"), lambda n, shape=shape: session(n, shape))
    for name, script in SCRIPTS.items():
        yield Case(f"mqsc: {name}", parse_mqsc, script)


CASES: Final = {case.name: case for case in _cases()}


def main() -> int:
    """Print the table; 1 where something grows too fast."""
    parser = argparse.ArgumentParser(description="How the time to read grows with the size of what is read.")
    parser.add_argument("--largest-kib", type=int, default=LARGEST // 1024, help="size to stop at (default %(default)s)")
    parser.add_argument("words", nargs="*", help="only cases with one of these words in their names")
    given = parser.parse_args()
    print(f"{'KiB':>7} {'ms':>9} {'ms/KiB':>8} {'rise':>5}  case (rise: times the time for four times the size; bound {BOUND:g})")
    steep = 0
    for case in CASES.values():
        if given.words and not any(word in case.name for word in given.words):
            continue
        found = growth(case, given.largest_kib * 1024)
        size, seconds = found.times[-1]
        steep += found.ratio > BOUND
        rise = f"{found.ratio:5.1f}" if found.ratio else "    -"
        mark = "  TOO FAST" if found.ratio > BOUND else ""
        print(f"{size / 1024:7.0f} {seconds * 1e3:9.1f} {seconds * 1e6 / size * 1.024:8.3f} {rise}  {case.name}{mark}", flush=True)
    return 1 if steep else 0


if __name__ == "__main__":
    raise SystemExit(main())
