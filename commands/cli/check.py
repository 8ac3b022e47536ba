"""``qpubsub config``: whether the file of ``run --config`` is valid, before ``run`` is started with it.

``qpubsub check``: whether the bridge would work with the brokers that are configured.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import click

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects
from commands.client.places import place_of
from commands.config.home import Home
from commands.config.settings import Config, ConfigError, QueuesConfig, config_of, exposed_secrets, read_config
from commands.config.urls import Address, parse_mq_address
from commands.console.access import console_options
from commands.disk.files import closing as closing_of
from commands.links.checking.mq import MqCheck
from commands.links.checking.trees import CheckResult, ClientCheck, KafkaCheck, MqttCheck, NatsCheck
from commands.links.mqtt.packets import filter_of
from commands.links.opening import Places, leaving
from commands.options.queue_manager import default_home, only_queue_manager, queue_manager_or_none
from commands.options.verb import FILE, FILE_THAT_IS, verb, verb_group
from commands.qmgr.delivery import STRANDED_HELP, is_stranding
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import is_there
from commands.qmgr.store.port import LoadedState
from commands.running.bridge import openings
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.errors import StoreError
from streams.topic_objects import QUEUE_NAMELIST


@verb(
    "qpubsub check -m QM1 --topics mqtt://broker",
    "qpubsub check 'mq://app@mq.example.com:1414/QM1?channel=APP.SVRCONN'",
    "qpubsub check -m QM1 --queues 'mq://mq:1414/QM1?channel=APP' --config bridge.toml --json",
    prints=True,
    exit_codes={0: "nothing is missing", 1: "something is missing"},
)
@queue_manager_or_none("where a URL names one, or ")
@click.option("--queues", metavar="URL", help="The same as for run.")
@click.option("--topics", metavar="URL", help="The same as for run.")
@click.option("--config", type=FILE, metavar="FILE", help="The same as for run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each test.")
@click.argument("url", required=False, metavar="[mq://...]")
@click.pass_obj
def check_command(
    console: Console,
    qmgr: str | None,
    home: Home,
    queues: str | None,
    topics: str | None,
    config: Path | None,
    as_json: bool,
    url: str | None,
) -> ExitCode:
    """Test whether run would work with the same options; print what is missing, and how to correct it.

    check tests the connection, the rights and the queues by using them, and removes what it made. Below each thing
    that is missing, it prints the MQSC, setmqaut or access control lines that correct it.

    With mq://[USER@]HOST/QMGR?channel=NAME, check tries the client calls of qpubsub at that queue manager, once, on
    a temporary dynamic queue.
    """
    settings = read_config(config)
    for exposed in exposed_secrets(settings):
        console.warn(exposed)
    if url is not None:
        place = place_of(parse_mq_address(url, "URL"), settings.queues, "qpubsub check")
        return _reported(console, ClientCheck(place).results(), as_json)
    if qmgr is None:
        qmgr = only_queue_manager(click.get_current_context(), home)
    places = Places.of(home, qmgr, settings, queues, topics)
    with places.store() as store:
        state = store.load_state()
        of_files = [*_of_files(store), *_of_transmission(store), *_of_network(places, store, state[0])]
    return _reported(console, chain(of_files, _findings(places, state)), as_json)


def _reported(console: Console, findings: Iterable[CheckResult], as_json: bool) -> ExitCode:
    missing = 0
    for finding in findings:
        missing += not finding.ok
        if as_json:
            console.json(finding.as_dict())
        else:
            _report(console, finding)
    if not as_json:
        console.say("nothing is missing" if not missing else f"{missing:,} missing")
    return ExitCode.PROBLEMS if missing else ExitCode.DONE


def _of_files(store: QueueManagerStore) -> list[CheckResult]:
    if not store.is_open_to_others:
        return []
    why = "any user of this machine can read or change messages in it"
    return [CheckResult(f"directory {store.directory}", False, why, (closing_of(store.directory),))]


def _of_transmission(store: QueueManagerStore) -> Iterator[CheckResult]:
    """Queues that fill because messages name another queue manager."""
    for queue in store.overview().queues:
        if queue.depth and is_stranding(queue.definition):
            name = queue.definition.name
            why = f"it holds {counted(queue.depth, 'message')} for queue manager {name}: {STRANDED_HELP}"
            mend = (f"qpubsub put -m {store.name} --as {store.name} --as-captured CAPTURE",)
            yield CheckResult(f"transmission queue {name}", False, why, mend)


def _of_network(places: Places, store: QueueManagerStore, objects: Objects) -> Iterator[CheckResult]:
    """A parent, children or clusters, where queues or topics are elsewhere."""
    try:
        places.require_alone(objects.qmgr, store)
    except ConfigError as error:
        yield CheckResult("hierarchy", False, error.why, ("ALTER QMGR PARENT(' ')",))
    try:
        places.require_no_cluster(objects, store)
    except ConfigError as error:
        yield CheckResult("cluster", False, error.why, leaving(objects))


def _report(console: Console, finding: CheckResult) -> None:
    console.data(f"{'ok  ' if finding.ok else 'MISSING'} {finding.subject}: {finding.what}")
    for line in finding.mend:
        console.data(f"        {line}")


def _findings(places: Places, state: LoadedState) -> Iterator[CheckResult]:
    _, subscriptions, _ = state
    if places.queues is None:
        yield CheckResult(
            f"queue manager {places.qmgr}", True, f"embedded, with {counted(len(subscriptions), 'subscription')}"
        )
    else:
        yield from _of_mq(places, places.queues, places.config.queues, state, queues=True)
    topics = places.topics
    if topics is None:
        return
    if topics.kind == "ibmmq":
        yield from _of_mq(places, topics, places.tree_config(), state, queues=False)
        return
    config = places.config.topics
    if topics.kind == "nats":
        with closing(NatsCheck(topics, config, places.qmgr)) as nats:
            reached = nats.connect()
            yield reached
            if reached.ok:
                yield from nats.grants()
        return
    if topics.kind == "kafka":
        kafka = KafkaCheck(topics, config, places.qmgr)
        reached = kafka.connect()
        yield reached
        if reached.ok:
            yield from kafka.grants()
        return
    with closing(MqttCheck(topics, config, places.qmgr)) as check:
        connected = check.connect()
        yield connected
        if connected.ok:
            yield from check.grants()
            found = (filter_of(s.topic_string, s.wildcard) for s in subscriptions)
            yield from check.rights(sorted({config.prefix + each for each in found if each is not None}))


def _of_mq(
    places: Places, address: Address, config: QueuesConfig, state: LoadedState, queues: bool
) -> Iterator[CheckResult]:
    objects, subscriptions, _ = state
    user = address.user or config.user or getpass.getuser()
    with closing(MqCheck(address, config, user)) as check:
        connected = check.connect()
        yield connected
        if not connected.ok:
            return
        if queues:
            own = sorted({s.dest_queue for s in subscriptions if s.dest_qmgr == places.qmgr})
            yield from check.queues(_inputs(objects), own)
            if places.topics is not None:
                for queue in places.link_queues:
                    yield from check.outgoing(queue)
        else:
            yield from check.topics(places.config.topics)


def _inputs(objects: Objects) -> tuple[str, ...]:
    namelist = objects.namelists.get(QUEUE_NAMELIST)
    return (CONTROL_QUEUE, *(namelist.names if namelist is not None else (DEFAULT_STREAM,)))


_ERROR, _WARNING = "error", "warning"
_UNNAMED: Final = "QM1"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong. severity: error or warning. key: dotted; line: in the file, None where it is not known."""

    severity: str
    key: str
    text: str
    line: int | None = None


@verb_group
def config_command() -> None:
    """Check the TOML file that run, capture, console and others take as --config."""


@config_command.verb(
    "qpubsub config check bridge.toml",
    "qpubsub config check bridge.toml --json | jq .valid",
    prints=True,
    exit_codes={0: "valid", 1: "there are errors; all of them are named"},
)
@click.argument("file", type=FILE_THAT_IS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def check(console: Console, file: Path, as_json: bool) -> ExitCode:
    """Check the file of run --config: its keys and values, the files and variables that it names, and its addresses.

    It connects to nothing and changes nothing; qpubsub check tries the connections.
    """
    found = list(findings(file))
    errors = sum(finding.severity == _ERROR for finding in found)
    if as_json:
        about = {"file": str(file), "valid": not errors, "findings": [asdict(finding) for finding in found]}
        console.json(about)
    else:
        for finding in found:
            where = f"{file}:{finding.line}" if finding.line else str(file)
            console.data(": ".join(part for part in (where, finding.severity, finding.key, finding.text) if part))
        warnings = len(found) - errors
        console.say(f"{file}: {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    return ExitCode.PROBLEMS if errors else ExitCode.DONE


def findings(path: Path) -> Iterator[Finding]:
    """All that is wrong with the file at *path*."""
    config, faults = config_of(path)
    for fault in faults:
        yield Finding(_ERROR, fault.key, fault.why, fault.line)
    if config is None:
        return
    for key, attempt in _attempts(config):
        try:
            attempt()
        except ConfigError as error:
            yield Finding(_ERROR, key or error.where, error.why)
    yield from _missing_files(config)
    for text in exposed_secrets(config):
        yield Finding(_WARNING, "", text)
    yield from _queue_manager(config)


def _attempts(config: Config) -> Iterator[tuple[str, Callable[[], object]]]:
    """The key, "" if the error names it, and what ``run`` does with it before it connects to anything."""
    home, qmgr = config.home or default_home(), config.run.qmgr or _UNNAMED
    for name, secret in (("queues", config.queues), ("topics", config.topics), ("admin", config.admin)):
        yield f"{name}.password", secret.password
    yield from openings(home, qmgr, config)
    if config.run.console is not None:
        yield "", partial(console_options, config.console, config.run.console, "[run] console")


def _missing_files(config: Config) -> Iterator[Finding]:
    """Files that must be there, and directories for files that ``run`` makes."""
    named = [
        ("topics.ca_file", config.topics.ca_file),
        ("topics.cert_file", config.topics.cert_file),
        ("topics.key_file", config.topics.key_file),
        ("admin.ca_file", config.admin.ca_file),
        ("admin.cert_file", config.admin.cert_file),
        ("admin.key_file", config.admin.key_file),
        ("listener.users_file", config.listener.users_file),
        ("publish_exit.path", config.publish_exit.path),
    ]
    for key, path in named:
        if path is not None and not path.is_file():
            yield Finding(_ERROR, key, f"{path}: there is no such file")
    directories = [("mqsc.directory", config.mqsc.directory)]
    for key, path in (("run.log", config.run.log), ("run.record", config.run.record)):
        directories.append((key, None if path is None else path.parent))
    for key, directory in directories:
        if directory is not None and not directory.is_dir():
            yield Finding(_ERROR, key, f"{directory}: there is no such directory")


def _queue_manager(config: Config) -> Iterator[Finding]:
    if config.run.qmgr is None:
        return
    home = config.home or default_home()
    try:
        found = is_there(home, config.run.qmgr)
    except StoreError as error:
        yield Finding(_ERROR, "store.home" if config.run.home is None else "run.home", str(error))
        return
    if not found:
        how = f"qpubsub create {config.run.qmgr} --home {home}"
        yield Finding(_WARNING, "run.qmgr", f"there is no such queue manager in {home}; make it with: {how}")
