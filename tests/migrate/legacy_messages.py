"""Messages as version 6 programs and brokers put them, for the tests of migration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from rfh2 import pcf_names
from rfh2.captured import CapturedMessage
from rfh2.constants import MQAT_BROKER, MQFMT_RF_HEADER_1, MQFMT_RF_HEADER_2, MQPER_PERSISTENT
from rfh2.folders import Folder
from rfh2.message import Header, Message, encode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Parameter, Pcf
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

START = datetime(2009, 1, 28, 11, 43, 54, 180_000, tzinfo=UTC)
NOW = datetime(2009, 1, 29, 8, 0, 0, tzinfo=UTC)
Pairs = Sequence[tuple[str, str]]


def captured(
    seq: int,
    queue: str,
    headers: tuple[Header, ...],
    data: bytes,
    mqmd: Mqmd,
    *,
    user: str = "app1",
    qmgr: str | None = "QM1",
) -> CapturedMessage:
    """A captured message, a second after the one before it."""
    mqmd = replace(mqmd, user_identifier=user, msg_id=seq.to_bytes(24, "big"))
    return CapturedMessage(
        seq=seq,
        time=START + timedelta(seconds=seq),
        qmgr=qmgr,
        queue=queue,
        user=user,
        md_hex=mqmd.encode().hex(),
        body_hex=encode(Message(mqmd, headers, data)).hex(),
    )


def rfh1(
    seq: int,
    pairs: Pairs,
    *,
    queue: str = CONTROL_QUEUE,
    data: bytes = b"",
    reply_to: str = "REPLY.Q",
    correl_id: bytes = bytes(24),
    expiry: int = -1,
    persistence: int = MQPER_PERSISTENT,
    by_broker: bool = False,
    user: str = "app1",
    qmgr: str | None = "QM1",
) -> CapturedMessage:
    """A message with an MQRFH; names go without their MQPS."""
    header = Rfh1(coded_char_set_id=1208, format="MQSTR" if data else "").with_pairs(
        [(f"MQPS{name}", value) for name, value in pairs]
    )
    mqmd = Mqmd(
        format=MQFMT_RF_HEADER_1,
        coded_char_set_id=1208,
        reply_to_q=reply_to,
        correl_id=correl_id,
        expiry=expiry,
        persistence=persistence,
        put_appl_type=MQAT_BROKER if by_broker else 6,
    )
    return captured(seq, queue, (header,), data, mqmd, user=user, qmgr=qmgr)


def psc(
    seq: int,
    folder: str,
    *,
    queue: str = CONTROL_QUEUE,
    data: bytes = b"",
    reply_to: str = "REPLY.Q",
    correl_id: bytes = bytes(24),
    expiry: int = -1,
    persistence: int = MQPER_PERSISTENT,
    by_broker: bool = False,
    user: str = "app1",
    qmgr: str | None = "QM1",
) -> CapturedMessage:
    """A message with an MQRFH2 whose psc folder is *folder*."""
    header = Rfh2((Folder.of(f"<psc>{folder}</psc>"),), format="MQSTR" if data else "")
    mqmd = Mqmd(
        format=MQFMT_RF_HEADER_2,
        coded_char_set_id=1208,
        reply_to_q=reply_to,
        correl_id=correl_id,
        expiry=expiry,
        persistence=persistence,
        put_appl_type=MQAT_BROKER if by_broker else 6,
    )
    return captured(seq, queue, (header,), data, mqmd, user=user, qmgr=qmgr)


def metatopic(seq: int, parameters: Sequence[Parameter], *, queue: str = "EXTRACT.Q") -> CapturedMessage:
    """A publication in PCF, as the broker put it."""
    body = Pcf(pcf_names.MQCMD_PUBLISH, tuple(parameters)).encode()
    mqmd = Mqmd(format="MQPCF", coded_char_set_id=1208, put_appl_type=MQAT_BROKER)
    return captured(seq, queue, (), body, mqmd, user="broker")


def register(seq: int, topic: str, stream: str = DEFAULT_STREAM, **more: object) -> CapturedMessage:
    """A RegSub in MQRFH. more: name, options (words), queue_name, and what ``rfh1`` takes."""
    name, options = more.pop("name", None), more.pop("options", ())
    queue_name = more.pop("queue_name", "SUB.Q")
    pairs = [("Command", "RegSub"), ("StreamName", stream), ("Topic", topic), ("QName", str(queue_name))]
    pairs += [("RegOpts", str(option)) for option in options]  # type: ignore[attr-defined]
    pairs += [("SubName", str(name))] if name is not None else []
    return rfh1(seq, pairs, **more)  # type: ignore[arg-type]


def publish(
    seq: int, topic: str, stream: str = DEFAULT_STREAM, data: bytes = b"data", *, retain: bool = True, **more: object
) -> CapturedMessage:
    """A Publish in MQRFH, to be retained unless told otherwise."""
    pairs = [("Command", "Publish"), ("Topic", topic)] + [("PubOpts", "RetainPub")] * retain
    return rfh1(seq, pairs, queue=stream, data=data, **more)  # type: ignore[arg-type]
