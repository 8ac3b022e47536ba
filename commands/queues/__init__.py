"""Queues, units of work and the state of a queue manager: the port, and the embedded queue manager behind it."""

from commands.queues.database import Durability
from commands.queues.errors import (
    MessageRefusedError,
    QueueError,
    QueueManagerExistsError,
    QueueManagerInUseError,
    QueueManagerNotFoundError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    UnknownQueueError,
)
from commands.queues.home import queue_managers
from commands.queues.overview import Overview, QueueOverview
from commands.queues.port import Knowledge, LoadedState, QueueManagerPort, Queues, StoredMessage, UnitOfWork
from commands.queues.sqlite import QueueManagerStore

__all__ = [
    "Durability",
    "Knowledge",
    "LoadedState",
    "MessageRefusedError",
    "Overview",
    "QueueError",
    "QueueManagerExistsError",
    "QueueManagerInUseError",
    "QueueManagerNotFoundError",
    "QueueManagerPort",
    "QueueManagerStore",
    "QueueOverview",
    "Queues",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreFullError",
    "StoredMessage",
    "UnitOfWork",
    "UnknownQueueError",
    "queue_managers",
]
