"""What ``growth`` measures: inputs of any size, hostile ones too, and the readers that they are given to."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commands import Broker
from commands.broker.objects import QueueManager
from commands.cli.translate import render
from commands.explain.equivalents.records import MessageView, view
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.explain.problems import explained
from commands.headers.registry import parse
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import CapturedMessage, Folder, Message, Mqmd, QPubSubError, Rfh1, Rfh2, encode
from rfh2.captures import read_captures, write_captures
from rfh2.elements import elements
from rfh2.explain.form import json_line
from rfh2.explain.rebuild import rebuild
from rfh2.explain.rebuild_header import DecodedMessage
from rfh2.folders import write
from rfh2.pcf import Cfgr, Cfin, Cfst, Pcf
from rfh2.pcf_names import MQCMD_PUBLISH
from rfh2.rfh2 import split_roots
from tests.rfh2 import channel_wire as wire

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"


# ---- inputs ---------------------------------------------------------------------------------------------------------


def filled(size: int, unit: str, before: str = "", after: str = "") -> str:
    """About *size* characters: *before*, *unit* repeated, *after*. A ``#`` in *unit* stands for its number."""
    count = max(1, (size - len(before) - len(after)) // len(unit.replace("#", "00000")))
    return before + "".join([unit.replace("#", f"{n:05}") for n in range(count)]) + after


def of(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: filled(size, unit, before, after)


def captured(message: Message, queue: str = STREAM, seq: int = 1) -> CapturedMessage:
    return CapturedMessage(
        seq=seq, queue=queue, md_hex=message.mqmd.encode().hex(), body_hex=encode(message).hex(), qmgr="QM1"
    )


def bare(data: bytes) -> CapturedMessage:
    """Data without a descriptor, as a file of unknown contents is read."""
    return CapturedMessage(seq=1, queue="", body_hex=data.hex())


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
    form = form_of(in_pcf(pcf_topics(size, MQCMD_PUBLISH)))
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
    how = MessageView(lambda _role, text: text, None)
    return "\n".join(view(found.partial, "x", found.command, found.problems, how))


def handle(given: CapturedMessage | list[CapturedMessage], setup: str = "", semantics: str = "v7") -> None:
    broker = Broker("QM1", setup, semantics)
    for message in given if isinstance(given, list) else [given]:
        broker.handle(message)


def run(given: list[CapturedMessage]) -> None:
    """The same through a queue manager's database, as ``qpubsub run`` does it."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    with TemporaryDirectory() as home, QueueManagerStore.create(Path(home), QueueManager("QM1")) as store:
        for message in given:
            with store.unit_of_work() as unit:
                unit.put(message.queue, message.md, message.body, user=message.user)
            Processor(store, lambda: now).drain()


def handle_v6(given: list[CapturedMessage]) -> None:
    handle(given, semantics="v6")


def handle_refusing(given: list[CapturedMessage]) -> None:
    handle(given, "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL('other') AUTHADD(PUB)")


def translate(dialect: str) -> Callable[[CapturedMessage], object]:
    return lambda message: list(render(TraceBroker("QM1").trace(message), dialect, "x", 0))


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
