"""The queued interface: commands in, operations on the topic space, responses and publications out."""

from commands.broker.core import Arrival, Outcome
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
    "Outcome",
    "PubOpt",
    "Publish",
    "Put",
    "PutKind",
    "RegOpt",
    "RegisterPublisher",
    "RegisterSubscriber",
    "RequestUpdate",
    "captures_to_arrow",
    "captures_to_pandas",
    "parse",
    "read_captures",
]
