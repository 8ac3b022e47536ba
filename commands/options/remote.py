"""``-m mq://...``: the verbs at a queue manager elsewhere, by its channel (docs/client.md)."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click

from commands.client import pcf
from commands.client.errors import MqError
from commands.client.queue_manager import Message, QueueManager, Subscription, connect
from commands.config.settings import Config, read_config
from commands.config.urls import parse_mq_address
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.tree import native_of
from commands.mqsc.answers import Answer
from commands.mqsc.script import Statement
from commands.running.subscriber import Received
from rfh2 import pcf_admin_names as c
from rfh2.errors import DecodeError
from rfh2.mqmd import Mqmd
from rfh2.pcf import Pcf
from rfh2.pcf_names import MQCA_Q_NAME

CONFIG_VARIABLE: Final = "QPUBSUB_CONFIG"
_PSMODES: Final = {0: "DISABLED", 1: "COMPAT", 2: "ENABLED"}
_TURN_S: Final = 0.5


def _config() -> Config:
    """The file that QPUBSUB_CONFIG names: its table [queues] has user, password, TLS. Raises ConfigError."""
    named = os.environ.get(CONFIG_VARIABLE)
    return read_config(None if named is None else Path(named))


def messages_at(url: str, application: str) -> MqMessages:
    """The messages of the queue manager at *url*. Raises ConfigError; a connection is made when it is needed."""
    return MqMessages(parse_mq_address(url, "--qmgr"), _config().queues, application)


@contextmanager
def connected_to(url: str, application: str) -> Iterator[QueueManager]:
    """A connection to the queue manager at *url*. Raises ConfigError, MqError."""
    with connect(url, config=_config().queues, application=application) as qmgr:
        yield qmgr


def refuse(options: Mapping[str, object]) -> None:
    """Raises UsageError for an option that works with a queue manager of the home alone."""
    for name, value in options.items():
        if value:
            raise click.UsageError(f"{name}: not with -m mq://..., only with a queue manager of the home")


def publish(
    url: str, topic: str, texts: Iterable[str], *, retain: bool, persistent: bool, properties: Mapping[str, Any]
) -> int:
    """Put each of *texts* on *topic*; how many there were."""
    done = 0
    with connected_to(url, "qpubsub pub") as qmgr:
        for text in texts:
            mqmd = Mqmd(version=2, persistence=1 if persistent else 2)
            qmgr.publish(topic, text, mqmd=mqmd, properties=properties, retain=retain)
            done += 1
    return done


def publications(
    url: str, topics: Sequence[str], selector: str | None, *, retained: bool
) -> Generator[Received | None, None, None]:
    """Subscribe to *topics*: what arrives, and None now and then while nothing does."""
    from rfh2.mqi_constants import MQSO_NEW_PUBLICATIONS_ONLY  # noqa: PLC0415

    with connected_to(url, "qpubsub sub") as qmgr, ExitStack() as stack:
        first: Subscription | None = None
        options = 0 if retained else MQSO_NEW_PUBLICATIONS_ONLY
        for topic in topics:
            to = None if first is None else first.queue
            made = qmgr.subscribe(topic, selector=selector or "", queue=to, options=options)
            stack.enter_context(made)
            first = first or made
        assert first is not None
        yield None
        while True:
            got = first.get(_TURN_S)
            yield None if got is None else _received(got)


def _received(message: Message) -> Received:
    try:
        native, _ = native_of(message.md, message.body)
    except DecodeError:
        return Received((), None, message.body.hex(), False, {})
    try:
        text: str | None = message.text
    except (UnicodeDecodeError, ValueError):
        text = None
    return Received((native.topic,), text, message.data.hex(), native.retain, message.properties)


def run_mqsc(qmgr: QueueManager, script: Iterable[Statement]) -> Iterator[tuple[Statement, Answer]]:
    """Each command of *script* as the command server answers it (PCF Escape)."""
    for statement in script:
        yield statement, _answer(qmgr, statement.text)


def _answer(qmgr: QueueManager, text: str) -> Answer:
    kind, command = pcf.parameter_of(c.MQIACF_ESCAPE_TYPE, c.MQET_MQSC), pcf.parameter_of(c.MQCACF_ESCAPE_TEXT, text)
    asked = Pcf(c.MQCMD_ESCAPE, (kind, command))
    lines: list[str] = []
    reason = 0
    for response in pcf.exchange(qmgr.connection, asked, wait_s=30):
        reason = reason or (response.reason if response.comp_code else 0)
        found = response.first(c.MQCACF_ESCAPE_TEXT)
        if found is not None:
            lines += str(pcf.value_of(found)).split("\n")
    first, *detail = lines or [f"reason {reason}" if reason else "done"]
    number, colon, said = first.partition(": ")
    is_message = bool(colon) and number.startswith("AMQ")
    return Answer(
        not reason,
        number if is_message else None,
        said if is_message else first,
        detail=tuple(detail),
        reason=reason or None,
    )


def status_of(url: str) -> dict[str, Any]:
    """What a queue manager says of itself: its level, PSMODE, and the messages on each local queue."""
    with connected_to(url, "qpubsub status") as qmgr:
        about = qmgr.inquire([c.MQIA_COMMAND_LEVEL, c.MQCA_DEAD_LETTER_Q_NAME])
        try:
            mode = _PSMODES.get(int(qmgr.inquire([c.MQIA_PUBSUB_MODE])[c.MQIA_PUBSUB_MODE]), "")
        except MqError:
            mode = ""
        rows = qmgr.pcf(c.MQCMD_INQUIRE_Q, {MQCA_Q_NAME: "*", c.MQIA_Q_TYPE: c.MQQT_LOCAL})
        depths = {str(row[MQCA_Q_NAME]): int(row.get(c.MQIA_CURRENT_Q_DEPTH, 0)) for row in rows if MQCA_Q_NAME in row}
        return {
            "qmgr": qmgr.name,
            "psmode": mode,
            "command_level": about[c.MQIA_COMMAND_LEVEL],
            "dead_letter_queue": about[c.MQCA_DEAD_LETTER_Q_NAME],
            "queues": {name: {"depth": depth} for name, depth in sorted(depths.items())},
        }
