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
