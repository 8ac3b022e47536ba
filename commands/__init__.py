"""The queued interface: commands in, operations on the topic space, responses and publications out."""

from commands.broker.broker import Arrival, Broker, Outcome
from commands.broker.puts import Completion, Put, PutKind
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
from commands.parse import parse
from rfh2.captured import CapturedMessage

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
    "parse",
]
