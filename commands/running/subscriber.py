"""A subscriber of ``qpubsub sub``: a small legacy program with its own queue, which ends with it.

It registers with RegSub on the control queue, as any program does, and the processor of ``qpubsub run`` serves it. Its
queue is a temporary dynamic one: if the program is killed, the queue and the subscription are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Protocol

from commands.broker.objects import CONTROL_QUEUE
from commands.explain.build import CommandSpec, command_message
from commands.explain.command_text import is_response
from commands.explain.problems import explained
from commands.model import Publish, PubOpt
from commands.qmgr.store import ProgramConnection, QueueManagerStore, StoredMessage
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import reason_text
from rfh2.errors import QPubSubError
from rfh2.message import decode
from rfh2.mqmd import Mqmd

_MODEL: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
_NAME: Final = "QPUBSUB.SUB.*"
_LOOK_S: Final = 0.5
_BATCH: Final = 100
_REQUEST: Final = 1


class Stop(Protocol):
    """The events that end a wait."""

    def is_set(self) -> bool: ...


class SubscribeError(QPubSubError):
    """The queue manager did not accept a command of the subscriber."""


@dataclass(frozen=True, slots=True)
class Received:
    """One publication. text: its data where that is text, else None. data_hex: the data."""

    topics: tuple[str, ...]
    text: str | None
    data_hex: str
    retained: bool
    properties: dict[str, Any]

    @property
    def topic(self) -> str:
        """Its topic; the first one of several."""
        return self.topics[0] if self.topics else ""


class Subscriber:
    """A subscription to *topics* on a dynamic queue of *connection*, which lets it go. user: who subscribes.

    selector: a Filter. retained: whether the retained publications are wanted first.
    """

    def __init__(
        self,
        store: QueueManagerStore,
        connection: ProgramConnection,
        topics: tuple[str, ...],
        *,
        user: str,
        application: str,
        selector: str | None = None,
        retained: bool = True,
    ) -> None:
        self._store, self._topics = store, topics
        self._queue = connection.open(_MODEL, _NAME, user).name
        self._user, self._application, self._selector = user, application, selector
        self._retained = retained
        self._last_seq = 0

    @property
    def queue(self) -> str:
        """Its dynamic queue."""
        return self._queue

    def register(self, patience_s: float | None, stop: Stop) -> bool:
        """Subscribe. Whether the answer has come; False if *stop* or the time limit came first.

        patience_s: None for no time limit. Raises SubscribeError where the queue manager refuses the subscription.
        """
        # A temporary dynamic queue takes no persistent messages (guide 6.7.4).
        options = ("InformIfRet", "NonPers", *(() if self._retained else ("NewPubsOnly",)))
        self._command("RegSub", options)
        return self._wait_for_answer(patience_s, stop)

    def _wait_for_answer(self, patience_s: float | None, stop: Stop) -> bool:
        """Wait for the response to the last command; whether it has come. Raises SubscribeError for a refusal."""
        end = inf if patience_s is None else time.monotonic() + patience_s
        while not stop.is_set():
            with self._store.unit_of_work() as unit:
                for message in unit.browse(self._queue):
                    if _is_answer(message):
                        unit.discard(self._queue, [message.seq])
                        _check(message, self._store.name)
                        return True
            left = min(_LOOK_S, end - time.monotonic())
            if left <= 0:
                return False
            self._store.wait_for_change(left)
        return False

    def take(self, show: Callable[[Received], None], flush: Callable[[], None], most: int | None) -> int:
        """Give at most *most* publications to *show*; returns how many. They leave the queue after *flush*."""
        taken = 0
        with self._store.unit_of_work() as unit:
            while taken < (_BATCH if most is None else min(most, _BATCH)):
                if (message := unit.get(self._queue)) is None:
                    break
                if _is_answer(message):
                    _check(message, self._store.name)
                    continue
                show(_received(message, self._store.name))
                taken += 1
            flush()
        return taken

    def wait(self) -> None:
        """Wait until something has changed, but not for long: the user may want to end."""
        self._store.wait_for_change(_LOOK_S)

    def withdraw(self) -> bool:
        """Take the registration off the control queue again; whether it was still there.

        If it was, no processor has read it, and there is no subscription. If it stayed, a processor that is started
        later would find that its queue is gone, and make a dead letter of it.
        """
        with self._store.unit_of_work() as unit:
            return unit.discard(CONTROL_QUEUE, [self._last_seq]) > 0

    def deregister(self, patience_s: float, stop: Stop) -> bool:
        """End the subscription; whether the processor did so. If it did not, the subscription ends with the queue."""
        self._command("DeregSub", ("DeregAll",))
        return self._wait_for_answer(patience_s, stop)

    def _command(self, word: str, options: tuple[str, ...]) -> None:
        dereg = word == "DeregSub"
        mqmd = Mqmd(
            msg_type=_REQUEST,
            reply_to_q=self._queue,
            reply_to_qmgr=self._store.name,
            user_identifier=self._user,
            coded_char_set_id=UTF8_CCSID,
        )
        tags = {"QName": self._queue, "Filter": None if dereg else self._selector}
        message = command_message(CommandSpec(word, () if dereg else self._topics, options, tags, mqmd=mqmd))
        with self._store.unit_of_work() as unit:
            self._last_seq = unit.put(
                CONTROL_QUEUE, message.md, message.body, user=self._user, application=self._application
            )


def _is_answer(message: StoredMessage) -> bool:
    try:
        return is_response(decode(message.body, message.md))
    except QPubSubError:
        return False


def _values(message: StoredMessage, qmgr: str, folder: str) -> dict[str, Any]:
    form = explained(message.captured(qmgr)).form("", 0)
    for header in form["headers"]:
        for each in header.get("folders", ()):
            if each["name"] == folder:
                values: dict[str, Any] = each["values"] or {}
                return values
    return {}


def _check(message: StoredMessage, qmgr: str) -> None:
    """Raises SubscribeError where the response is an error."""
    values = _values(message, qmgr, "pscr")
    if values.get("Completion") in ("ok", "warning"):
        return
    reasons = "; ".join(_reasons(values))
    raise SubscribeError(f"queue manager {qmgr} refused the subscription: {reasons or 'it gave no reason'}")


def _reasons(values: dict[str, Any]) -> Iterator[str]:
    responses = values.get("Response") or []
    for response in responses if isinstance(responses, list) else [responses]:
        reason = int(response.get("Reason", 0))
        yield f"{reason} {reason_text(reason)}".rstrip()


def _received(message: StoredMessage, qmgr: str) -> Received:
    found = explained(message.captured(qmgr))
    body = found.form("", 0)["body"]
    command = found.command
    topics = command.topics if isinstance(command, Publish) else ()
    retained = isinstance(command, Publish) and command.has(PubOpt.IS_RETAINED_PUB)
    return Received(topics, body["text"], body["hex"], retained, _values(message, qmgr, "usr"))
