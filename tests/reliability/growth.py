"""How the time to read a message, or a capture file, grows with its size: no reader takes more than in proportion.

A queue manager reads messages one behind another, within a transaction: one message that takes the square of its
length stops every program. ``CASES`` has every kind of input, hostile ones too, with its reader; one more case is one
more line in a table. For each case the size is doubled, and processor time measured, until the input is large or takes
long. Four times the size may take ``BOUND`` times the time: proportion gives four, or up to eight where the larger one
leaves the processor's cache; the square gives sixteen.

As a command this prints the figures (``--help`` has its options):

    python -m tests.reliability.growth [--largest-kib 1024] [WORD]...
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from commands.mqsc.script import parse as parse_mqsc
from migrate.readers import amqspsd
from rfh2 import CapturedMessage
from rfh2.captures import FORMATS
from rfh2.pcf import Cfil, Cfin, Cfsl, Pcf
from rfh2.pcf_names import MQCMD_PUBLISH
from tests.reliability.growth_inputs import (
    CONTROL,
    bare,
    capture,
    convert,
    decode_json,
    decode_text,
    decoded_parse,
    edited_folder,
    edited_pcf,
    filled,
    folder,
    handle,
    handle_refusing,
    handle_v6,
    headers,
    in_pcf,
    in_rfh1,
    in_rfh2,
    late,
    listing,
    lost,
    nested,
    of,
    one_large,
    open_calls,
    pcf_topics,
    psc,
    puts,
    raw,
    rebuilt,
    rfh1_topics,
    run,
    session,
    single_bytes,
    topics,
    translate,
    unload,
    written,
)
from tests.rfh2 import channel_wire as wire

BOUND: Final = 11.0
FLOOR_S: Final = 0.04
"""Shorter times say more of the machine than of the reader."""
SMALLEST: Final = 4096
LARGEST: Final = 512 * 1024
PATIENCE_S: Final = 2.0


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
    """Sizes in bytes with seconds of processor time. ratio: the steepest rise from one size to four times that size."""

    case: Case
    times: tuple[tuple[int, float], ...]
    ratio: float


def growth(case: Case, largest: int = LARGEST, patience_s: float = PATIENCE_S) -> Growth:
    """Measure *case* at doubled sizes up to *largest* bytes, or until one takes more than *patience_s*."""
    times: list[tuple[int, float]] = []
    steepest = 0.0
    size = SMALLEST
    while True:
        seconds = measured(case, size, 1)
        times.append((size, seconds))
        if seconds >= FLOOR_S and size >= 4 * SMALLEST:
            steepest = max(steepest, _rise(case, times[-3], times[-1]))
        if size >= largest or seconds > patience_s:
            return Growth(case, tuple(times), steepest)
        size *= 2


def _rise(case: Case, small: tuple[int, float], large: tuple[int, float]) -> float:
    """How many times as long the large one takes.

    A rise beyond the bound is measured again, for other programs use the machine too; and it has to go on at four times
    the size, because a reader may have a quick way for short inputs and leave it once.
    """
    rise = _ratio(small[1], large[1])
    for _ in range(3):
        if rise <= BOUND:
            return rise
        rise = min(rise, _ratio(measured(case, small[0], 5), measured(case, large[0], 2)))
    return min(rise, _ratio(measured(case, large[0], 2), measured(case, 4 * large[0], 1)))


def _ratio(small_s: float, large_s: float) -> float:
    return large_s / max(small_s, FLOOR_S / 16)


def measured(case: Case, size: int, times: int) -> float:
    """The least processor time, in seconds, of so many readings of an input of *size* bytes."""
    best = float("inf")
    for _ in range(times):
        given = case.make(size)
        gc.disable()
        try:
            start = time.process_time()
            case.read(given)
            best = min(best, time.process_time() - start)
        finally:
            gc.enable()
    return best


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
    "Publish, retained marks": lambda n: in_rfh2(psc("Publish", ("Topic", "a"), *topics(n, "PubOpt", "IsRetainedPub"))),
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
    "PCF, many topics": lambda n: in_pcf(pcf_topics(n, MQCMD_PUBLISH)),
    "PCF, unknown parameters": lambda n: in_pcf(Pcf(MQCMD_PUBLISH, tuple(Cfin(i, 1) for i in range(n // 16)))),
    "PCF, groups": lambda n: in_pcf(nested(n)),
    "PCF, lists": lambda n: in_pcf(Pcf(MQCMD_PUBLISH, (Cfil(1, (1,) * (n // 8)), Cfsl.of(2, ("a",) * (n // 2))))),
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
    "Publish in PCF to many topics": (handle, lambda n: [REGSUB, in_pcf(pcf_topics(n, MQCMD_PUBLISH), seq=2)]),
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
    "amqsbcg, fields in a field": ("amqsbcg", listing(of("' b : '", "a : '", "x"))),
    "amqsbcg, numbers in a field": ("amqsbcg", listing(of("' b : 5", "a : '", "x"))),
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
    "pasted, hex digits": ("pasted", raw("5", "52464820")),
    "pasted, beginnings in hex": ("pasted", raw("52464820 ")),
    "pasted, lines of hex": ("pasted", raw("5246\n", "52464820\n")),
    "pasted, digits and colons": ("pasted", raw("52:")),
    "pasted, base64": ("pasted", raw("A", "UkZIIA")),
    "pasted, lines of base64": ("pasted", raw("AAAAAAAAAAAAAAAAAAAAAAAA\n", "UkZIIAAAAAAAAAAAAAAAAAAA\n")),
    "pasted, beginnings in base64": ("pasted", raw("UkZIIA ")),
    "pasted, numbers": ("pasted", raw("82,")),
    "pasted, beginnings of arrays": ("pasted", raw("82,70,72,32 x ")),
    "pasted, an array": ("pasted", raw("0,", "82,70,72,32,")),
    "pasted, comments in an array": ("pasted", raw("/*x*/ ", "82,70,72,32,")),
    "pasted, quotes": ("pasted", raw("b'")),
    "pasted, literals that do not end": ("pasted", raw('"RFH ')),
    "pasted, literals in a row": ("pasted", raw("b'RFH ' ")),
    "pasted, backslashes": ("pasted", raw("\\", "b'RFH ")),
    "pasted, first lines of dumps": ("pasted", raw("00000000: 5246 4820\n")),
    "pasted, zeros": ("pasted", raw("0000 ")),
    "pasted, a line of a dump": ("pasted", raw("52", "00000000: ")),
    "pasted, repeated lines": ("pasted", raw("*\n", "00000000: 5246 4820\n")),
    "pasted, descriptors": ("pasted", raw("****Message descriptor****\nStrucId : 'MD  '\n")),
    "pasted, fields": ("pasted", raw("Report : ", "StrucId : 'MD  '\n")),
    "pasted, quoting": ("pasted", raw("> ", "", "52464820")),
    "pasted, tags": ("pasted", raw("<br", "", ">52464820")),
    "pasted, escapes of a terminal": ("pasted", raw("\x1b[", "", "52464820")),
    "pasted, folders": ("pasted", raw("<psc></psc>")),
    "pasted, folders without an end": ("pasted", raw("<usr>", "<psc></psc>")),
    "pasted, strings of an MQRFH": ("pasted", raw("MQPSCommand  ")),
    "pasted, blanks": ("pasted", raw(" ", "52464820")),
    "pasted, blank lines": ("pasted", raw("\n", "00000000: 5246 4820\n")),
    "mqmd, separators": ("mqmd", raw("#@#@#x", "MD  ")),
    "mqmd, overlapping separators": ("mqmd", raw("#@", "MD  ")),
    "mqmd, ends of properties": ("mqmd", raw("$%$%$", "#@#@#")),
    "jsonl, unknown keys": ("jsonl", raw('"a#":1,', "{", '"queue":"Q","body_hex":""}\n')),
    "jsonl, arrays": ("jsonl", raw("[1],", '{"a":[', '0],"queue":"Q","body_hex":""}\n')),
    "jsonl, empty lines": ("jsonl", raw("\n")),
    "jsonl, broken lines": ("jsonl", raw("{}\n")),
}
_FIXED: Final = "RFH \2\0\0\0\x7f\x7f\x7f\x7f" + "\0" * 24
# Headers with a fault, behind which the rest is read as far as it goes.
WITH_FAULTS: Final[dict[str, Callable[[int], bytes]]] = {
    "folders without lengths": raw("<a></a>", _FIXED),
    "a folder without an end": raw("<a>", _FIXED),
    "lengths without folders": raw("\x7f", _FIXED),
    "tags of one letter": raw("<", _FIXED),
    "headers": raw("RFH \2\0\0\0"),
    "headers behind something else": raw("DLH \1\0\0\0", "RFH \2\0\0\0XXXX"),
}
# What no reader knows is compared with what it may be; that looks at the first 64 KiB.
UNKNOWN: Final[dict[str, Callable[[int], bytes]]] = {
    "base64 and blanks": raw(" ", "a" * 30, "!"),
    "line ends": raw("\n", "!"),
    "beginnings of dumps": raw("0000: \t\n", "!"),
    "blanks and offsets": raw(" \n", "", "0000 x"),
    "stars": raw("**** \n", "!"),
    "pairs of digits": raw("aa  ", "", "!"),
    "words": raw("0000 ", "0000000 ", "!"),
    "bytes of an array": raw(" ", "x = {", "0x00"),
    "bytes with 0x": raw("0x00, ", "", "!"),
    "characters of two bytes": raw("a\0", "", "!"),
    "blanks before a folder": raw(" ", "", "<"),
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

AMQSPSD: Final[dict[str, Callable[[int], str]]] = {
    "blanks in a name": of(" ", "amqspsd\nStreams\na", "b\n"),
    "words in a name": of("a ", "amqspsd\nStreams\n", "\n"),
    "lines": of("QName: a\n", "amqspsd\nSubscriptions\n"),
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
        if read is handle:
            yield Case(f"run: {name}", run, make)
    yield Case("encode: edited values", rebuilt, edited_folder)
    yield Case("encode: edited parameters", rebuilt, edited_pcf)
    for form, entry in FORMATS.items():
        if entry.writer is not None:
            yield Case(f"capture: {form}", capture(form), written(form))
            yield Case(f"convert --to {form}", convert(form), written("jsonl"))
    for name, (form, listed) in LISTINGS.items():
        yield Case(f"capture: {name}", capture(form), listed, hostile=True)
    for name, unknown in UNKNOWN.items():
        yield Case(
            f"decode --json: unknown data, {name}", decode_json, lambda n, unknown=unknown: bare(unknown(n)), True
        )
    for name, faulty in WITH_FAULTS.items():
        yield Case(
            f"decode --json: faulty, {name}", decode_json, lambda n, faulty=faulty: bare(faulty(n)), hostile=True
        )
    for name, shape in SESSIONS.items():
        yield Case(f"capture: pcap, {name}", capture("pcap"), lambda n, shape=shape: session(n, shape))
    for name, script in SCRIPTS.items():
        yield Case(f"mqsc: {name}", parse_mqsc, script)
    for name, lines in AMQSPSD.items():
        yield Case(f"migrate: amqspsd, {name}", lambda text: list(amqspsd.read(text, "x")), lines, hostile=True)


CASES: Final = {case.name: case for case in _cases()}


def main() -> int:
    """Print the table; 1 where something grows too fast."""
    parser = argparse.ArgumentParser(description="How the time to read grows with the size of what is read.")
    parser.add_argument(
        "--largest-kib", type=int, default=LARGEST // 1024, help="size to stop at (default %(default)s)"
    )
    parser.add_argument("words", nargs="*", help="only cases with one of these words in their names")
    given = parser.parse_args()
    print(f"{'KiB':>7} {'ms':>9} {'ms/KiB':>8} {'rise':>5}  case (rise: for four times the size; at most {BOUND:g})")
    steep = 0
    for case in CASES.values():
        if given.words and not any(word in case.name for word in given.words):
            continue
        found = growth(case, given.largest_kib * 1024)
        size, seconds = found.times[-1]
        steep += found.ratio > BOUND
        rise = f"{found.ratio:5.1f}" if found.ratio else "    -"
        mark = "  TOO FAST" if found.ratio > BOUND else ""
        print(
            f"{size / 1024:7.0f} {seconds * 1e3:9.1f} {seconds * 1e6 / size * 1.024:8.3f} {rise}  {case.name}{mark}",
            flush=True,
        )
    return 1 if steep else 0


if __name__ == "__main__":
    raise SystemExit(main())
