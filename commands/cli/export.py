"""``qpubsub export``: the definitions of a queue manager as a file, for it or for another broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree import ElementTree

import click

from commands.broker.objects import PREDEFINED, LocalQueue, Objects
from commands.config.home import Home
from commands.mqsc.export import exported
from commands.options.queue_manager import queue_manager_to_read
from commands.options.verb import json_option, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_strings import split_levels

# The subscriptions of a queue manager as definitions of RabbitMQ and of ActiveMQ Artemis, and what is lost by it.
#
# | here | RabbitMQ | Artemis |
# |---|---|---|
# | local queue | durable queue, ``x-max-length``, ``reject-publish`` | anycast queue of an address of its own |
# | subscription | binding of ``amq.topic`` to its queue | multicast queue of the address that is its topic string |
# | Sport/+/Score, Sport/# | Sport.*.Score, Sport.# | the same |
# | selection string | lost | filter of the queue |
#
# A queue of Artemis belongs to one address: the second subscription of a queue here has a queue of its own there.

_EXCHANGE: Final = "amq.topic"


@dataclass(frozen=True, slots=True)
class Exported:
    """text: a file for the other broker. lost: what has no meaning there, a sentence each."""

    text: str
    lost: tuple[str, ...]


def rabbitmq(objects: Objects, subscriptions: Sequence[Subscription], retained: int = 0) -> Exported:
    """Definitions that ``rabbitmqctl import_definitions`` reads. retained: how many publications are."""
    lost, vhost = list(_lost_of(objects, retained)), "/"
    queues = []
    for queue in _queues(objects):
        arguments: dict[str, Any] = {"x-queue-type": "quorum"}
        if queue.max_depth < LocalQueue(queue.name).max_depth:
            arguments |= {"x-max-length": queue.max_depth, "x-overflow": "reject-publish"}
        queues.append(
            {"name": queue.name, "vhost": vhost, "durable": True, "auto_delete": False, "arguments": arguments}
        )
    known, bindings = {queue["name"] for queue in queues}, []
    for subscription, key in _keyed(subscriptions, objects, lost):
        if subscription.dest_queue not in known:
            lost.append(f"{_called(subscription)}: its queue {subscription.dest_queue} is not a local queue here")
            continue
        if subscription.selector:
            lost.append(f"{_called(subscription)}: its selection string; it receives all publications of {key}")
        binding = {"source": _EXCHANGE, "vhost": vhost, "destination": subscription.dest_queue}
        bindings.append(binding | {"destination_type": "queue", "routing_key": key, "arguments": {}})
    made = {"vhosts": [{"name": vhost}], "queues": queues, "exchanges": [], "bindings": bindings}
    return Exported(json.dumps(made, indent=2) + "\n", tuple(lost))


def artemis(objects: Objects, subscriptions: Sequence[Subscription], retained: int = 0) -> Exported:
    """The element ``addresses`` of broker.xml. retained: how many publications are."""
    lost = list(_lost_of(objects, retained))
    addresses = ElementTree.Element("addresses")
    by_address: dict[str, ElementTree.Element] = {}
    used: dict[str, int] = {}
    for subscription, key in _keyed(subscriptions, objects, lost):
        if key not in by_address:
            address = ElementTree.SubElement(addresses, "address", name=key)
            by_address[key] = ElementTree.SubElement(address, "multicast")
        count = used[subscription.dest_queue] = used.get(subscription.dest_queue, 0) + 1
        name = subscription.dest_queue if count == 1 else f"{subscription.dest_queue}.{count}"
        if count > 1:
            where = f"it has queue {name} there, which the programs of {subscription.dest_queue} must read too"
            lost.append(f"{_called(subscription)}: {where}")
        queue = ElementTree.SubElement(by_address[key], "queue", name=name)
        if subscription.selector:
            ElementTree.SubElement(queue, "filter", string=subscription.selector)
        ElementTree.SubElement(queue, "durable").text = "true"
    for definition in _queues(objects):
        if definition.name not in used:
            address = ElementTree.SubElement(addresses, "address", name=definition.name)
            queue = ElementTree.SubElement(ElementTree.SubElement(address, "anycast"), "queue", name=definition.name)
            ElementTree.SubElement(queue, "durable").text = "true"
        if definition.max_depth < LocalQueue(definition.name).max_depth:
            lost.append(f"queue {definition.name}: MAXDEPTH({definition.max_depth}); use max-size-messages")
    ElementTree.indent(addresses)
    return Exported(ElementTree.tostring(addresses, encoding="unicode") + "\n", tuple(lost))


def _queues(objects: Objects) -> list[LocalQueue]:
    """Those that somebody has made."""
    found = (queue for queue in objects.queues.values() if queue.definition_type == PREDEFINED)
    return sorted((queue for queue in found if not queue.name.startswith("SYSTEM.")), key=lambda queue: queue.name)


def _lost_of(objects: Objects, retained: int) -> Iterable[str]:
    """What of the definitions has no meaning there."""
    if retained:
        yield f"{retained} retained publications, which new subscribers receive here"
    if objects.authorities:
        yield f"{len(objects.authorities)} authority records: give users their permissions there"
    for alias in sorted(objects.aliases):
        yield f"alias queue {alias}: programs have to name its target"
    for model in sorted(objects.models):
        if not model.startswith("SYSTEM."):
            yield f"model queue {model}: programs make queues with names of their own"
    for topic in sorted(objects.topics.own, key=lambda each: each.name):
        if not topic.name.startswith("SYSTEM."):
            yield f"topic object {topic.name} ({topic.topic_string}): its attributes are not inherited there"


def _keyed(
    subscriptions: Sequence[Subscription], objects: Objects, lost: list[str]
) -> Iterable[tuple[Subscription, str]]:
    """The subscriptions that have a meaning there, each with its topic string in the words of AMQP."""
    for each in sorted(subscriptions, key=lambda each: (each.dest_queue, each.topic_string, each.sub_id)):
        name, levels = _called(each), split_levels(each.topic_string)
        if each.wildcard is WildcardScheme.CHAR and any(letter in each.topic_string for letter in "*?%"):
            lost.append(f"{name}: its topic string {each.topic_string} has wildcards of characters")
        elif any("." in level or "*" in level for level in levels):
            lost.append(f"{name}: a level of {each.topic_string} has a dot or an asterisk, which have a meaning there")
        elif each.wildcard is WildcardScheme.CHAR and any(level in ("#", "+") for level in levels):
            lost.append(f"{name}: a level of {each.topic_string} is a wildcard there")
        elif each.dest_qmgr != objects.qmgr.name:
            lost.append(f"{name}: its queue is on queue manager {each.dest_qmgr}")
        else:
            if each.expires_at is not None:
                lost.append(f"{name}: it ends at {each.expires_at:%Y-%m-%d %H:%M:%S} UTC here, and never there")
            yield each, ".".join("*" if level == "+" else level for level in levels)


def _called(subscription: Subscription) -> str:
    return f"subscription {subscription.name or subscription.sub_id.hex().upper()}"


_OTHERS: Final = {"rabbitmq": rabbitmq, "artemis": artemis}


@verb(
    "qpubsub export -m QM1 -o QM1.mqsc",
    "qpubsub export -m QM1 --to rabbitmq -o definitions.json",
    "qpubsub export -m QM1 --to artemis",
    prints=True,
    exit_codes={1: "something has no meaning in the other broker: stderr says what"},
)
@queue_manager_to_read
@click.option(
    "--to",
    "form",
    type=click.Choice(["mqsc", *_OTHERS]),
    default="mqsc",
    show_default=True,
    help="A script of MQSC, or definitions for another broker.",
)
@json_option
@click.pass_obj
def command(console: Console, qmgr: str, home: Home, form: str, as_json: bool) -> ExitCode:
    """Print the definitions and subscriptions of QMGR.

    The script of MQSC has what differs from a new queue manager, as dmpmqcfg writes it: run it with "qpubsub mqsc" on
    a new queue manager of the same name. For RabbitMQ it is a file for "rabbitmqctl import_definitions", for Artemis
    the element addresses of broker.xml. What is lost there is named on stderr.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        objects, subscriptions, retained = store.load_state()
    if form == "mqsc":
        found = Exported("".join(f"{line}\n" for line in exported(objects, subscriptions, datetime.now(UTC))), ())
    else:
        found = _OTHERS[form](objects, list(subscriptions), len(list(retained)))
    if as_json:
        console.json({"qmgr": qmgr, "to": form, "text": found.text, "lost": list(found.lost)})
    else:
        for line in found.text.splitlines():
            console.data(line)
    for each in found.lost:
        console.warn(f"lost: {each}")
    console.say(f"queue manager {qmgr}: {counted(len(subscriptions), 'subscription')} exported to {form}")
    return ExitCode.PROBLEMS if found.lost else ExitCode.DONE
