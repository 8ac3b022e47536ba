"""Queues, units of work and the state of a queue manager: the port, and the embedded queue manager behind it."""

from commands.disk.errors import (
    QueueManagerExistsError,
    QueueManagerInUseError,
    QueueManagerNotFoundError,
    StoreBusyError,
    StoreDamagedError,
    StoreFullError,
    SupersededError,
    UnknownQueueError,
)
from commands.qmgr.store.connection import DYNAMIC_NAME, OpenQueue, ProgramConnection
from commands.qmgr.store.database import Durability
from commands.qmgr.store.opening import queue_managers
from commands.qmgr.store.port import Knowledge, LoadedState, QueueManagerPort, Queues, StoredMessage, UnitOfWork
from commands.qmgr.store.queue_manager import Overview, QueueManagerStore, QueueOverview
from commands.qmgr.store.state_table import Close
from rfh2.errors import MessageRefusedError, QueueError

__all__ = [
    "DYNAMIC_NAME",
    "Close",
    "Durability",
    "Knowledge",
    "LoadedState",
    "MessageRefusedError",
    "OpenQueue",
    "Overview",
    "ProgramConnection",
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
    "SupersededError",
    "UnitOfWork",
    "UnknownQueueError",
    "queue_managers",
]
