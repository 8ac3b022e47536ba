"""Opens the queue manager and the link that the options and the configuration of ``run`` name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from commands.broker.authority import GroupsOf
from commands.broker.objects import LocalQueue, Objects, QueueManager
from commands.config.home import Home
from commands.config.settings import Config, ConfigError, QueuesConfig
from commands.config.urls import Address, parse_address, parse_mq_address
from commands.links.channels import Channels
from commands.links.engine.adapter import Adapter
from commands.links.engine.inbound_writer import CommandPutter, InboundWriter
from commands.links.engine.link import Link
from commands.links.engine.spool import EmbeddedSpool, LinkStores
from commands.links.ibmmq.adapter import MqAdapter
from commands.links.ibmmq.manager import MqMessages, MqQueueManager, MqSpool
from commands.network.topology import Relation
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.store import Durability, QueueManagerStore
from streams.operations import RetainedPublication


def queues_address(option: str | None, config: Config) -> Address | None:
    """Where the queues are, by ``--queues``, else by the configuration; None: embedded. Raises ConfigError."""
    url = option or config.queues.url
    if url is None:
        return None
    return parse_mq_address(url, "--queues")


def leaving(objects: Objects) -> tuple[str, ...]:
    """The commands by which a queue manager leaves all its clusters."""
    return tuple(f"DELETE CHANNEL('{name}')" for name in sorted(set(objects.cluster_channels.values())))


@dataclass(frozen=True, slots=True)
class Places:
    """Where queues and topics are. home, qmgr: the embedded queue manager, or the state of one elsewhere.

    queues, topics: None for the embedded ones. epoch: of the command processor whose places these are
    (``commands.qmgr.store.opening``); None where it begins one itself.
    """

    home: Home
    qmgr: str
    config: Config
    queues: Address | None = None
    topics: Address | None = None
    durability: Durability = Durability.FULL
    epoch: int | None = None

    @classmethod
    def of(
        cls,
        home: Home,
        qmgr: str,
        config: Config,
        queues: str | None,
        topics: str | None,
        durability: Durability = Durability.FULL,
    ) -> Places:
        """The places that the options *queues* and *topics* give, else the configuration. Raises ConfigError."""
        at, topics = queues_address(queues, config), topics or config.topics.url
        to = None if topics is None else parse_address(topics, "--topics")
        if config.topics.state_topic is not None and to is not None and to.kind != "mqtt":
            raise ConfigError("[topics] state_topic", f"{to.scheme}:// has no last will, which it needs; mqtt:// has")
        return cls(home, qmgr, config, at, to, durability)

    def store(self) -> QueueManagerStore:
        """The embedded queue manager, opened anew."""
        return QueueManagerStore.open(self.home, self.qmgr, durability=self.durability, epoch=self.epoch)

    def manager(self) -> QueueManagerStore | MqQueueManager:
        """The queue manager that the processor works with."""
        if self.queues is None:
            return self.store()
        return MqQueueManager(self.store(), self.queues, self.config.queues)

    @property
    def together(self) -> bool:
        """Whether queues and topic tree are the same queue manager's."""
        return self.queues is not None and self.topics is not None and self.queues.qmgr == self.topics.qmgr

    def link(self, dead_letter_queue: str) -> ManagedLink | None:
        """The link to the topic tree; None if there is only the embedded one. Raises ConfigError."""
        topics, config = self.topics, self.config.topics
        if topics is None:
            return None
        stores = self.stores(dead_letter_queue)
        return Link(self.adapter(topics, stores), config, self.qmgr, stores)

    def definition(self, store: QueueManagerStore) -> QueueManager:
        """The queue manager's definition. Raises ConfigError where these places do not go with it."""
        objects = store.load_state()[0]
        self.require_alone(objects.qmgr, store)
        self.require_no_cluster(objects, store)
        return objects.qmgr

    @property
    def is_embedded(self) -> bool:
        """Whether neither queues nor topics are elsewhere."""
        return self.queues is None and self.topics is None

    @property
    def _option(self) -> str:
        """The option by which they are elsewhere."""
        return "--queues" if self.topics is None else "--topics"

    def require_no_cluster(self, objects: Objects, store: QueueManagerStore) -> None:
        """Raises ConfigError where queues or topics are elsewhere, and the queue manager is a member of clusters.

        So it is until its command processor has told the others that it has left.
        """
        if self.is_embedded:
            return
        clusters = sorted({*objects.clusters, *(each.cluster for each in store.neighbours() if each.cluster)})
        if not clusters:
            return
        option = self._option
        named = f"cluster{'' if len(clusters) == 1 else 's'} {', '.join(clusters)}"
        leave = " and ".join((*leaving(objects), f"let run --once without {option} work"))
        why = f"queue manager {objects.qmgr.name} is in {named}, and a cluster is of embedded queues and topics alone"
        raise ConfigError(option, f"{why}. To keep it, run without {option}. Otherwise leave it: {leave}")

    def require_alone(self, qmgr: QueueManager, store: QueueManagerStore) -> None:
        """Raises ConfigError where queues or topics are elsewhere, and *qmgr* has a parent or children.

        A publication would reach the others both ways, by the hierarchy and by the tree, and programs of the tree keep
        no fingerprints.
        """
        if self.is_embedded:
            return
        children = [each.qmgr for each in store.neighbours() if each.relation is Relation.CHILD]
        if not qmgr.parent and not children:
            return
        if qmgr.parent:
            has, child = f"has PARENT({qmgr.parent})", qmgr.name
        else:
            has, child = f"is the parent of {', '.join(children)}", " and ".join(children)
        option = self._option
        end = f"end it with ALTER QMGR PARENT(' ') at {child}, and let run --once without {option} work for each"
        share = "give all of them the same --topics, which connects them" if self.topics is not None else "run it then"
        why = f"queue manager {qmgr.name} {has}, and a hierarchy is of embedded queues and topics alone"
        raise ConfigError(option, f"{why}. To keep it, run without {option}. Otherwise {end}; then {share}")

    def channels(self, groups_of: GroupsOf) -> Channels | None:
        """What carries messages to other queue managers of the home; None if queues or topics are elsewhere.

        groups_of: the groups of a user.
        """
        if not self.is_embedded:
            return None
        return Channels(self.home, self.store, self.durability, groups_of)

    def adapter(self, topics: Address, stores: LinkStores) -> Adapter[Any, Any]:
        """The adapter for the kind of tree at *topics*. Raises ConfigError."""
        config = self.config.topics
        if topics.kind == "ibmmq":
            how = self.tree_config()
            return MqAdapter(lambda: MqMessages(topics, how), config, stores.putter, self.together, self.qmgr)
        # The clients of trees are slow to load.
        with self.store() as known:
            if topics.kind == "kafka":
                from commands.links.kafka.adapter import KafkaAdapter  # noqa: PLC0415

                return KafkaAdapter(topics, config, self.qmgr, known.directory, self.epoch)
            if topics.kind == "nats":
                from commands.links.nats.adapter import NatsAdapter  # noqa: PLC0415

                return NatsAdapter(topics, config, self.qmgr, known.directory)
            from commands.links.mqtt.adapter import MqttAdapter  # noqa: PLC0415

            queues = "embedded" if self.queues is None else str(self.queues)
            return MqttAdapter(topics, config, self.qmgr, known.directory, queues, self.epoch)

    @property
    def link_queues(self) -> tuple[str, ...]:
        """The queues of the link beside the processor's: what waits for the tree, and the position in a tree's logs."""
        topics = self.config.topics
        if self.topics is not None and self.topics.kind in ("kafka", "nats"):
            return topics.outgoing_queue, topics.position_queue
        return (topics.outgoing_queue,)

    def prepare(self) -> None:
        """Make the embedded queues of the link, also in a strict queue manager."""
        if self.topics is None or self.queues is not None:
            return
        with self.store() as store:
            for queue in self.link_queues:
                if store.find_queue(queue) is None:
                    with store.unit_of_work() as unit:
                        unit.save_definition(LocalQueue(queue, def_persistent=True))

    def stores(self, dead_letter_queue: str) -> LinkStores:
        """The stores of a link at the queue manager."""
        queues, config, outgoing = self.queues, self.config.queues, self.config.topics.outgoing_queue
        putter = CommandPutter(self.qmgr, self.config.topics.native_user, dead_letter_queue)
        if queues is None:
            return LinkStores(
                lambda: InboundWriter(self.store(), putter, self.config.topics.position_queue),
                putter,
                lambda: EmbeddedSpool(self.store(), outgoing, dead_letter_queue),
                self._retained,
            )
        at = queues
        return LinkStores(
            lambda: InboundWriter(MqMessages(at, config), putter, self.config.topics.position_queue),
            putter,
            lambda: MqSpool(MqMessages(at, config), outgoing, dead_letter_queue),
            self._retained,
        )

    @contextmanager
    def _retained(self) -> Iterator[list[RetainedPublication]]:
        with self.store() as reading, reading.one_moment():
            yield reading.load_state()[2]

    def tree_config(self) -> QueuesConfig:
        """How to connect to the tree's queue manager: as to that of the queues, but with its own user and password."""
        topics = self.config.topics
        if self.topics is not None and self.topics.user is not None:
            topics = topics.model_copy(update={"user": self.topics.user})
        own = {name: getattr(topics, name) for name in ("user", "password_file", "password_env")}
        if all(value is None for value in own.values()):
            return self.config.queues
        return self.config.queues.model_copy(update=own)
