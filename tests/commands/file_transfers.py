"""Two agents of Managed File Transfer on a coordination queue manager: run this file to write capture, puts and tables.

Made by hand from IBM's published schemas and from what is known of agents: an MQRFH of version 1, RetainPub for what
describes an agent, its monitors, schedules and templates, nothing retained for transfers and logs. One agent is on
Linux, one on z/OS and writes in EBCDIC. A message of the first is cut off, as one is that was too long for a channel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rfh2.captured import CapturedMessage
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQMT_REQUEST
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from tests.commands.results_service import CONTROL, as_lines

FIXTURE = Path(__file__).parents[2] / "fixtures" / "managed-file-transfer"
SETUP = FIXTURE / "coordination.mqsc"
STREAM = "SYSTEM.FTE"
QMGR = "COORD"
PARTS = {"subscribers.jsonl": CONTROL, "agents.jsonl": STREAM}
"""The capture by queue, for ``qpubsub put``."""
START = datetime(2026, 3, 2, 22, 15, tzinfo=UTC)

Message = tuple[Mqmd, bytes]


@dataclass(frozen=True)
class Program:
    """One program of the scenario, and its habits. charset, ccsid: of its machine. multiple: what it rounds up to."""

    user: str
    reply_to: str = ""
    order: ByteOrder = "little"
    charset: str = "latin-1"
    ccsid: int = 819
    multiple: int = 16
    null: bool = True

    def message(self, text: str, data: str = "", **mqmd: object) -> Message:
        string = (text + ("\0" if self.null else "")).encode(self.charset)
        string += bytes(-len(string) % self.multiple)
        encoding = 546 if self.order == "little" else 273
        fmt = "MQSTR" if data else ""
        header = Rfh1(string, encoding, -2, fmt, 0, self.order, self.charset)
        return self.descriptor(**mqmd), header.encode() + data.encode(self.charset)

    def descriptor(self, fmt: str = "MQHRF", **mqmd: object) -> Mqmd:
        described = Mqmd(
            encoding=546 if self.order == "little" else 273,
            coded_char_set_id=self.ccsid,
            format=fmt,
            priority=0,
            persistence=1,
            reply_to_q=self.reply_to,
            reply_to_qmgr="QM1" if self.reply_to else "",
            user_identifier=self.user,
            put_appl_type=6,
            put_appl_name=self.user,
            order=self.order,
        )
        return replace(described, **mqmd)  # type: ignore[arg-type]


PAYROLL = Program("ftepay", charset="utf-8", ccsid=1208)
HOST = Program("FTEHOST", order="big", charset="cp500", ccsid=500)
LOGGER = Program("ftelog", "FTE.LOG")
WATCH = Program("ftewatch", "FTE.WATCH")

FIRST = "414d5120515047202020202020202020a1b2c36920001a01"
SECOND = "414d5120515047202020202020202020a1b2c36920001a07"
_XSI = 'xmlns:xsi="https://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation'
_AGENTS = '<sourceAgent agent="PAYROLL" QMgr="QPAY"/><destinationAgent agent="HOST" QMgr="QHOST"/>'
_ORIGIN = "<originator><hostName>pay01</hostName><userID>anna</userID><mqmdUserID>ftepay</mqmdUserID></originator>"


def script() -> Iterator[tuple[Program, str, Message]]:
    """(program, queue, (descriptor, body)) of each message, in order."""
    yield LOGGER, CONTROL, _asks(LOGGER, "Log/*")
    yield _retained(PAYROLL, "Agents/PAYROLL", _agent("PAYROLL", "QPAY", "Linux", {"SourceTransferStates": ""}))
    yield _retained(HOST, "Agents/HOST", _agent("HOST", "QHOST", "z/OS", {"agentDescription": "Lohn & Gehalt"}))
    yield _retained(PAYROLL, "monitors/PAYROLL/OUTBOX", _monitor())
    yield _retained(PAYROLL, "Scheduler/PAYROLL", _schedules())
    yield _retained(PAYROLL, "Templates/0b5c2d", '<?xml version="1.0" encoding="UTF-8"?><transferTemplate/>')
    yield _published(PAYROLL, "Log/PAYROLL/6", _schedule_log())
    started = "2026-03-02T22:15:00.250Z"
    running = {"SourceTransferStates": f"{FIRST}=RunningTransfer"}
    yield _log(FIRST, "started", started, f'<transferSet startTime="{started}" total="3" bytesSent="0"/>')
    yield _retained(PAYROLL, "Agents/PAYROLL", _agent("PAYROLL", "QPAY", "Linux", running))
    yield _progress(FIRST, "2026-03-02T22:15:01.000Z", 'bytes="4100" seconds="0.75" currentItem="1" totalItems="3"')
    yield _log(FIRST, "progress", "2026-03-02T22:15:02.125Z", _first_items(started))
    yield _progress(FIRST, "2026-03-02T22:15:03.5Z", 'bytes="9000" seconds="3.25" currentItem="3" totalItems="3"')
    yield _log(FIRST, "progress", "2026-03-02T22:15:04.000Z", _last_item(started))
    yield _log(FIRST, "completed", "2026-03-02T22:15:04.500Z", _completed(started, 40, "2 of 3 files", 9700, 1, 1))
    cut_off = _log(SECOND, "started", "2026-03-02T22:20:00.000Z", '<transferSet total="1" bytesSent="0"/>')
    program, queue, (mqmd, body) = cut_off
    yield program, queue, (mqmd, body[:-60])
    yield _published(PAYROLL, "Log/PAYROLL/Monitors/OUTBOX/1", "<monitorLog version='6.00' monitorName='OUTBOX'/>")
    yield _log(SECOND, "completed", "2026-03-02T22:20:09.000Z", _completed("", 0, "all files", 512, 0, 0))
    yield WATCH, CONTROL, _asks(WATCH, "Agents/*")
    yield HOST, STREAM, HOST.message(" MQPSCommand DeletePub MQPSTopic Agents/HOST")
    yield _retained(PAYROLL, "Agents/PAYROLL", _agent("PAYROLL", "QPAY", "Linux", {"maxSourceTransfers": "many"}))


def _asks(program: Program, topic: str) -> Message:
    text = f" MQPSCommand RegSub MQPSStreamName {STREAM} MQPSTopic {topic}"
    return program.message(text, msg_type=MQMT_REQUEST, reply_to_qmgr=QMGR)


def _published(program: Program, topic: str, document: str, options: str = "") -> tuple[Program, str, Message]:
    return program, STREAM, program.message(f" MQPSCommand Publish{options} MQPSTopic {topic}", document)


def _retained(program: Program, topic: str, document: str) -> tuple[Program, str, Message]:
    return _published(program, topic, document, " MQPSPubOpts RetainPub")


def _log(transfer_id: str, action: str, time: str, rest: str) -> tuple[Program, str, Message]:
    head = f'<transaction version="6.00" ID="{transfer_id}" agentRole="sourceAgent" {_XSI}="TransferLog.xsd" xmlns="">'
    body = f'{head}<action time="{time}">{action}</action>{_AGENTS}{_ORIGIN}{rest}</transaction>'
    return _published(PAYROLL, f"Log/PAYROLL/{transfer_id}", f'<?xml version="1.0" encoding="UTF-8"?>\n{body}')


def _progress(transfer_id: str, time: str, stats: str) -> tuple[Program, str, Message]:
    current = (
        '<current transferred="4100" size="8192"><source><file>/pay/out/März.csv</file></source>'
        "<destination><file>//PAY.MARCH</file></destination></current>"
    )
    head = f'<transaction version="6.00" ID="{transfer_id}" {_XSI}="TransferStatus.xsd">'
    document = f'{head}{_AGENTS}<transferSet time="{time}"><stats {stats}/>{current}</transferSet></transaction>'
    return _published(PAYROLL, f"Transfers/PAYROLL/{transfer_id}", f'<?xml version="1.0" encoding="UTF-8"?>{document}')


def _first_items(started: str) -> str:
    return (
        f'<transferSet index="0" size="2" startTime="{started}" total="3" bytesSent="8192">'
        '<item mode="binary"><source disposition="delete" type="file">'
        '<file last-modified="2026-03-02T21:00:00.000Z" size="8192">/pay/out/März.csv</file>'
        '<checksum method="MD5">0a1b2c3d4e5f60718293a4b5c6d7e8f9</checksum></source>'
        '<destination exist="overwrite" type="dataset"><dataset size="8192">//PAY.MARCH</dataset>'
        '<checksum method="MD5">0a1b2c3d4e5f60718293a4b5c6d7e8f9</checksum></destination>'
        '<status resultCode="2"><supplement>The source file cannot be deleted.</supplement></status></item>'
        '<item mode="text"><source type="file"><file size="77">/pay/out/notes.txt</file></source>'
        '<destination exist="error" type="file"><file>/in/notes.txt</file></destination>'
        '<status resultCode="1"><supplement>The file &quot;/in/notes.txt&quot; already exists.</supplement></status>'
        "</item></transferSet>"
    )


def _last_item(started: str) -> str:
    return (
        f'<transferSet index="2" size="1" startTime="{started}" total="3" bytesSent="9700">'
        '<item mode="binary"><source type="queue"><queue messageCount="4">PAY.OUT@QPAY</queue></source>'
        '<destination type="file"><file size="1508">/in/pay.dat</file></destination>'
        '<status resultCode="0"/></item></transferSet>'
    )


def _completed(started: str, code: int, what: str, size: int, failures: int, warnings: int) -> str:
    start = f' startTime="{started}"' if started else ""
    return (
        f'<status resultCode="{code}"><supplement>{what} transferred.</supplement></status>'
        f'<transferSet{start} total="{3 if failures else 1}" bytesSent="{size}"/><job><name>NIGHT</name></job>'
        f"<statistics><actualStartTime>2026-03-02T22:15:00.300Z</actualStartTime><retryCount>0</retryCount>"
        f"<numFileFailures>{failures}</numFileFailures><numFileWarnings>{warnings}</numFileWarnings></statistics>"
    )


def _agent(name: str, qmgr: str, system: str, more: dict[str, str]) -> str:
    entries = {
        "agentName": name,
        "queueManager": qmgr,
        "agentOsName": system,
        "agentTimeZone": "Europe/Berlin",
        "agentVersion": "6.00",
        "agentType": "STANDARD",
        "maxSourceTransfers": "25",
        "maxDestinationTransfers": "25",
        "maxQueuedTransfers": "1000",
        **more,
    }
    lines = "".join(f'<entry key="{key}">{value.replace("&", "&amp;")}</entry>\n' for key, value in entries.items())
    doctype = '<!DOCTYPE properties SYSTEM "http://java.sun.com/dtd/properties.dtd">'
    return f'<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n{doctype}\n<properties>\n{lines}</properties>\n'


def _monitor() -> str:
    namespace = 'xmlns:lst="http://www.ibm.com/xmlns/wmqfte/7.0.1/MonitorDefinition"'
    status = '<status state="started"/><configuration><description/></configuration>'
    return f'<lst:monitorList {namespace} agent="PAYROLL" monitor="OUTBOX" version="6.00">{status}</lst:monitorList>'


def _schedules() -> str:
    return '<schedules version="6.00" size="1" agent="PAYROLL"><managedTransfer ID="6"/></schedules>'


def _schedule_log() -> str:
    return '<schedulelog version="6.00" ID="6"><action time="2026-03-02T22:15:00.100Z">submit</action></schedulelog>'


def capture() -> list[CapturedMessage]:
    """The whole scenario."""
    return [
        CapturedMessage(
            seq=seq,
            time=START + timedelta(seconds=3 * seq),
            qmgr=QMGR,
            queue=queue,
            user=program.user,
            md_hex=mqmd.encode().hex(),
            body_hex=body.hex(),
        )
        for seq, (program, queue, (mqmd, body)) in enumerate(script(), 1)
    ]


if __name__ == "__main__":
    from commands import Broker
    from commands.replay.file_transfer import rows_of
    from commands.replay.file_transfer.rows import TransferTables

    (FIXTURE / "capture.jsonl").write_text(as_lines(capture()))
    for name, queue in PARTS.items():
        (FIXTURE / name).write_text(as_lines([message for message in capture() if message.queue == queue]))
    broker = Broker(QMGR, SETUP.read_text())
    lines = [put.model_dump_json() + "\n" for message in capture() for put in broker.handle(message)]
    (FIXTURE / "puts.jsonl").write_text("".join(lines))
    tables = TransferTables(FIXTURE / "tables", "jsonl")
    for each in capture():
        tables.add(rows_of(each))
    tables.finish()
