"""Which queue manager the options name, and how it is reached.

    nothing                       the embedded queue manager of -m
    --admin https://host[:9443]   IBM MQ's REST interface
    --queues mq://...             PCF on the command queue of IBM MQ, and its queues for messages; ibmmq:// likewise

With both of the latter, commands go by REST and messages through the connection. The file of ``--config`` has user and
password: a command line never does.
"""

from __future__ import annotations

from dataclasses import dataclass

from commands.config.home import Home
from commands.config.settings import Config, ConfigError
from commands.config.urls import Address, parse_mq_address
from commands.links.ibmmq.manager import MqMessages
from commands.qmgr.store import QueueManagerStore
from migrate.live.administrator import Administrator, EmbeddedAdministrator
from migrate.live.loading import Messages
from migrate.live.pcf import CommandQueue, PcfAdministrator
from migrate.live.rest import RestAdministrator
from migrate.live.state_of import retained_copies
from migrate.planned_state import data_digest
from rfh2.message import decode


@dataclass(slots=True)
class LiveQueueManager:
    """One queue manager. messages: None where only administration is possible. store: of an embedded one."""

    administrator: Administrator
    messages: Messages | None = None
    store: QueueManagerStore | None = None
    connection: MqMessages | None = None

    def retained_data(self) -> dict[str, str] | None:
        """A digest of the data of each retained publication, by topic string; None where they cannot be read.

        Raises MqError, MigrationError.
        """
        if self.store is not None:
            return {r.topic_string: data_digest(r.publication.message.body) for r in self.store.load_state()[2]}
        if self.connection is None:
            return None
        copies = retained_copies(self.connection)
        return {topic: data_digest(decode(body, md).body) for topic, (md, body) in copies.items()}

    def close(self) -> None:
        """End all connections."""
        self.administrator.close()
        if self.connection is not None:
            self.connection.close()


def open_live(
    home: Home,
    qmgr: str,
    config: Config,
    admin: str | None,
    queues: str | None,
    called: tuple[str, str] = ("--admin", "--queues"),
) -> LiveQueueManager:
    """The queue manager that the options *admin* and *queues* name, else the configuration, else the embedded one.

    called: what messages call the two. Raises ConfigError, StoreError; a connection is made when it is needed.
    """
    admin, queues = admin or config.admin.url, queues or config.queues.url
    address = None if queues is None else _address(queues, qmgr, called[1])
    connection = None if address is None else MqMessages(address, config.queues, "qpubsub migration")
    if admin is not None:
        return LiveQueueManager(
            RestAdministrator(admin, qmgr, config.admin, called[0]), connection, connection=connection
        )
    if address is not None:
        administrator = PcfAdministrator(CommandQueue(address, config.queues), qmgr)
        return LiveQueueManager(administrator, connection, connection=connection)
    store = QueueManagerStore.open(home, qmgr)
    return LiveQueueManager(EmbeddedAdministrator(store), store, store)


def _address(url: str, qmgr: str, called: str) -> Address:
    address = parse_mq_address(url, called)
    if address.qmgr != qmgr:
        raise ConfigError(called, f"the URL names queue manager {address.qmgr}, not {qmgr}")
    return address
