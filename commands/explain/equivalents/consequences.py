"""The effects of a message on a new queue manager: operations, effects, puts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from commands.broker.puts import Outgoing, Put, PutKind
from commands.explain.equivalents.traced_operations import TraceBroker, TracedMessage, to_json
from commands.mqsc.equivalents import sub_name
from rfh2.captured import CapturedMessage
from rfh2.constants import reason_text
from rfh2.terminal_escape import visible
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Operation,
    PublishToTopic,
    RequestRetained,
    Subscribe,
    Unsubscribe,
)

_QMGR: Final = "QM1"


def consequences(captured: CapturedMessage, setup: str = "") -> TracedMessage:
    """The result of *captured*. If its queue is not known, it is put to the queue where it belongs.

    setup: MQSC text, run first. Raises QPubSubError where it fails.
    """
    return TraceBroker(captured.qmgr or _QMGR, setup).trace(captured)


def consequence_lines(traced: TracedMessage, *, set_up: bool = False) -> Iterator[str]:
    """The same for a person, a line each. set_up: whether a script was run first."""
    outcome = traced.outcome
    yield f"On a new queue manager{' after --setup' if set_up else ''}:"
    if outcome.completion is None:
        yield visible(f"  {outcome.why}")
        return
    reason = "" if outcome.reason is None else f" {outcome.reason} {reason_text(outcome.reason)}".rstrip()
    yield f"  completion {outcome.completion}{reason}"
    if outcome.reason is not None and outcome.why:
        yield visible(f"  because {_without_reason(outcome.why, outcome.reason)}")
    for step in traced.operations:
        yield visible(f"  operation {type(step.operation).__name__}: {_said(step.operation)}")
    for put in outcome.puts:
        yield visible(f"  put {put.kind}: {_put(put)}")
    if not any(put.kind is PutKind.RESPONSE for put in outcome.puts):
        yield "  no response"


def _without_reason(why: str, reason: int) -> str:
    """*why* without the reason code in front, which is said already."""
    return why.partition(": ")[2] or why if why.startswith(f"reason {reason}") else why


def consequence_json(traced: TracedMessage) -> dict[str, Any]:
    """The same for a program: completion, reason, operations, puts in their recorded form."""
    outcome = traced.outcome
    puts = [Put.of(traced.captured.seq, traced.qmgr, n, put) for n, put in enumerate(outcome.puts)]
    return {
        "completion": None if outcome.completion is None else outcome.completion.value,
        "reason": outcome.reason,
        "why": outcome.why,
        "operations": [to_json(step.operation) for step in traced.operations],
        "puts": [put.model_dump(mode="json") for put in puts],
    }


def _said(operation: Operation) -> str:
    match operation:
        case Subscribe(subscription) | AlterSubscription(subscription):
            where = f"{subscription.dest_queue} on {subscription.dest_qmgr}"
            return f"'{sub_name(subscription)}', topic string '{subscription.topic_string}', to {where}"
        case Unsubscribe(subscription) | RequestRetained(subscription):
            return f"'{sub_name(subscription)}'"
        case PublishToTopic(topic_string):
            return f"topic string '{topic_string}'{', retained' if operation.retain else ''}"
        case ClearRetained(topic_string):
            return f"topic string '{topic_string}'"


def _put(put: Outgoing) -> str:
    where = f"to {put.queue} on {put.qmgr}, {len(put.body)} bytes"
    if put.completion is None:
        return where
    return f"{where}, {put.completion}{'' if put.reason is None else f' {put.reason}'}"
