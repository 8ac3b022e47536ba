"""The queued interface: commands in, operations on the topic space, responses and publications out."""

from typing import TYPE_CHECKING

from rfh2.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from commands.broker.exit_values import (
        ExitAnswer,
        ExitMessage,
        ExitParms,
        ExitReason,
        ExitResponse,
        PublicationContext,
        SubscriptionContext,
    )
    from commands.broker.outcome import Arrival, Outcome
    from commands.broker.puts import Put, PutKind
    from commands.headers.registry import parse
    from commands.headers.response import Completion
    from commands.model import (
        Command,
        DeletePublication,
        DelOpt,
        DeregisterPublisher,
        DeregisterSubscriber,
        Publish,
        PubOpt,
        RegisterPublisher,
        RegisterSubscriber,
        RegOpt,
        RequestUpdate,
    )
    from commands.mqsc.broker import Broker
    from commands.replay.frames import captures_to_arrow, captures_to_pandas
    from rfh2.captured import CapturedMessage
    from rfh2.captures.reading import read_captures

__all__ = [
    "Arrival",
    "Broker",
    "CapturedMessage",
    "Command",
    "Completion",
    "DelOpt",
    "DeletePublication",
    "DeregisterPublisher",
    "DeregisterSubscriber",
    "ExitAnswer",
    "ExitMessage",
    "ExitParms",
    "ExitReason",
    "ExitResponse",
    "Outcome",
    "PubOpt",
    "PublicationContext",
    "Publish",
    "Put",
    "PutKind",
    "RegOpt",
    "RegisterPublisher",
    "RegisterSubscriber",
    "RequestUpdate",
    "SubscriptionContext",
    "captures_to_arrow",
    "captures_to_pandas",
    "parse",
    "read_captures",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "commands.broker.core": "Arrival Outcome",
        "commands.broker.exit_values": (
            "ExitAnswer ExitMessage ExitParms ExitReason ExitResponse PublicationContext SubscriptionContext"
        ),
        "commands.broker.puts": "Put PutKind",
        "commands.headers.registry": "parse",
        "commands.headers.response": "Completion",
        "commands.model": (
            "Command DeletePublication DelOpt DeregisterPublisher DeregisterSubscriber Publish PubOpt "
            "RegisterPublisher RegisterSubscriber RegOpt RequestUpdate"
        ),
        "commands.mqsc.broker": "Broker",
        "commands.replay.frames": "captures_to_arrow captures_to_pandas",
        "rfh2.captured": "CapturedMessage",
        "rfh2.captures.reading": "read_captures",
    },
)
