"""The TOML file of ``--config``: settings that do not belong on a command line, such as passwords.

    [queues]
    url = "mq://mq.example.com:1414/QM1?channel=QPUBSUB.SVRCONN"
    user = "qpubsub"
    password_file = "/etc/qpubsub/mq.password"

    [topics]
    url = "mqtts://broker.example.com/"
    user = "qpubsub"
    password_env = "MQTT_PASSWORD"
    ca_file = "/etc/ssl/broker.pem"

    [admin]
    url = "https://mq.example.com:9443"
    user = "mqadmin"
    password_file = "/etc/qpubsub/admin.password"

Every key is explained in docs/live-brokers.md. A key that is not known is an error.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from commands.config.home import Home, parse_home
from rfh2.constants import MQ_EXIT_DATA_LENGTH
from rfh2.errors import QPubSubError, system_words


class ConfigError(QPubSubError):
    """A configuration that is not valid. where: the file, the option or the key."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


NO_STANDBY: Final = (
    "is gone; in a home in PostgreSQL every run waits to take over; in a directory, have systemd or Kubernetes start "
    "run again"
)
"""What to do instead of ``run --standby``."""


class Secret(BaseModel, frozen=True, extra="forbid"):
    """The user and password of the bridge at the other side. At most one of password_file and password_env."""

    user: str | None = None
    password_file: Path | None = None
    password_env: str | None = None

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read."""
        return () if self.password_file is None else (self.password_file,)

    def password(self) -> str | None:
        """The password, None where there is none. Raises ConfigError where it cannot be read."""
        if self.password_file is not None and self.password_env is not None:
            raise ConfigError("password_file and password_env", "give only one of them")
        if self.password_env is not None:
            value = os.environ.get(self.password_env)
            if value is None:
                raise ConfigError("password_env", f"there is no environment variable {self.password_env}")
            return value
        if self.password_file is None:
            return None
        try:
            return self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise ConfigError("password_file", f"{self.password_file}: {system_words(error)}") from error


class KafkaRoute(BaseModel, frozen=True, extra="forbid"):
    """Table [[topics.kafka.routes]]: the Kafka topic of some topic strings; the first route that selects one counts.

    pattern: topic strings, with + and #. topic: of Kafka. key: of records; ``{topic}`` is the topic string, ``{2}`` its
    second level. native: the topic string of a record that does not say it; ``{key}`` is its key.
    """

    pattern: str
    topic: str
    key: str = "{topic}"
    native: str = "{key}"


class KafkaConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [topics.kafka].

    topic: of publications that no route selects; with ``.retained`` and ``.state`` behind its name, the topic of what
    is retained and that of the bridges. partitions: of the topics of publications that the bridge makes.
    sasl_mechanism: how the user proves the password; None for no user. client: settings of librdkafka.
    """

    topic: str = "qpubsub"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 6
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    client: dict[str, str | int | float | bool] = {}
    routes: tuple[KafkaRoute, ...] = ()


class TopicsConfig(Secret):
    """Table [topics]: the topic tree, an MQTT 5 broker (``mqtt://``), NATS, Kafka or IBM MQ (``ibmmq://``).

    client_id: of the MQTT session, or the name of the NATS consumers; two bridges must never have the same. prefix: of
    all topics in the tree, with its separator. native_user: the user of native publications, for authority records.
    local: what scope QMGR means, by Local, PUBSCOPE or SUBSCOPE (``LinkScope``). default_format: Format of native
    payloads that have none. session_expiry_s: how long the broker keeps publications while the bridge is down.
    receive_maximum: native publications that are not yet acknowledged. batch: publications in one unit of work.
    patience_s: how long a RegSub waits for the answer of the broker. servers: more servers of the same cluster.
    credentials_file: of a NATS user. stream: of JetStream, and its bucket; replicas: of both. longest_subject: in
    bytes. in_queue, outgoing_queue, position_queue: local queues of the bridge. state_topic: where an MQTT broker
    retains the bridge's state, without the prefix; None for nowhere.
    """

    url: str | None = None
    client_id: str | None = None
    prefix: str = ""
    native_user: str = Field("native", max_length=12)
    local: Literal["share", "keep"] = "share"
    default_format: str = Field("", max_length=8)
    session_expiry_s: Annotated[int, Field(ge=0, le=0xFFFF_FFFF)] = 7 * 24 * 3600
    keepalive_s: Annotated[int, Field(ge=5, le=65_535)] = 30
    receive_maximum: Annotated[int, Field(ge=1, le=65_535)] = 1_000
    batch: Annotated[int, Field(ge=1, le=10_000)] = 500
    patience_s: Annotated[float, Field(gt=0)] = 5.0
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    servers: tuple[str, ...] = ()
    credentials_file: Path | None = None
    kafka: KafkaConfig = KafkaConfig()
    stream: str = Field("QPUBSUB", pattern=r"^[A-Za-z0-9_-]+$")
    replicas: Annotated[int, Field(ge=1, le=5)] = 1
    longest_subject: Annotated[int, Field(ge=100, le=60_000)] = 3_500
    outgoing_queue: str = "SYSTEM.QPUBSUB.OUTGOING"
    position_queue: str = "SYSTEM.QPUBSUB.POSITION"
    in_queue: str = "SYSTEM.QPUBSUB.INCOMING"
    state_topic: str | None = None

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read: the password, the private key, the credentials."""
        return (*super().secret_files, *(path for path in (self.key_file, self.credentials_file) if path is not None))


class QueuesConfig(Secret):
    """Table [queues]: where the input queues and the subscribers' queues are, when not embedded (``mq://``, ``ibmmq://``).

    channel, ccdt, cipher: the client connection, beside what the URL says. key_repository, certificate_label: for TLS
    with ibmmq://; ca_file, cert_file, key_file: the same with mq://, in PEM, each of which asks for TLS. batch:
    commands in one unit of work. record_queue: holds what SQLite does not have yet (docs/live-brokers.md, commits).
    owed_queue: holds publications that neither their queue nor the dead-letter queue takes.
    context: which message context is set on puts: ``all`` (6.7.9), ``identity`` or ``default``. reconnect_s: the
    longest pause between two tries to connect.
    """

    url: str | None = None
    channel: str | None = None
    ccdt: str | None = None
    cipher: str | None = None
    key_repository: str | None = None
    certificate_label: str | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    batch: Annotated[int, Field(ge=1, le=10_000)] = 200
    record_queue: str = "SYSTEM.QPUBSUB.RECORD"
    owed_queue: str = "SYSTEM.QPUBSUB.OWED"
    context: Literal["all", "identity", "default"] = "all"
    reconnect_s: Annotated[float, Field(gt=0)] = 60.0

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read: the password, the private key."""
        return (*super().secret_files, *(() if self.key_file is None else (self.key_file,)))


class ChannelRule(BaseModel, frozen=True, extra="forbid"):
    """Table [listener.channels.NAME], NAME a server-connection channel, ``*`` for those that are not named.

    mcauser: the user as which its programs work, "" for their own. addresses: the networks from which programs may
    connect, none for all. block_users: users who may not; ``*MQADMIN`` for the privileged ones. password: whether one
    is required, whatever ``connauth`` says.
    """

    mcauser: str = Field("", max_length=12)
    addresses: tuple[str, ...] = ()
    block_users: tuple[str, ...] = ("*MQADMIN",)
    password: bool = False


class ConnAuth(BaseModel, frozen=True, extra="forbid"):
    """Table [listener.connauth]: when passwords are compared, in the words of IBM's AUTHINFO of type IDPWOS.

    authenmd: with what: ``file`` (``users_file``) or ``pam``. chckclnt: ``none``, ``optional`` (where one is given),
    ``required``, ``reqdadm`` (as optional; privileged users need one). adoptctx: whether a program then works as the
    user of the password. faildlay: seconds until a wrong one is refused. pam_service: the file in ``/etc/pam.d``.
    """

    authenmd: Literal["file", "pam"] = "file"
    chckclnt: Literal["none", "optional", "required", "reqdadm"] = "reqdadm"
    adoptctx: bool = True
    faildlay: Annotated[float, Field(ge=0, le=60)] = 1.0
    pam_service: str = Field("qpubsub", pattern=r"^[\w.-]+$")


class ListenerTls(BaseModel, frozen=True, extra="forbid"):
    """Table [listener.tls]. ca_file: clients must show a certificate that it verifies."""

    cert_file: Path
    key_file: Path
    ca_file: Path | None = None


class ListenerConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [listener]: programs that connect as MQ clients.

    listen: HOST:PORT, or a port on the loopback address. users_file: one ``user:hash`` on each line. plain_passwords:
    whether passwords may come over a network without TLS. sharing: the most conversations on a connection (SHARECNV).
    connections: the most at a time. connections_of_address: of one address; None: a quarter of all. longest_message:
    bytes (MAXMSGL). memory_megabytes: of all messages that are received or sent at a time. heartbeat: seconds (HBINT);
    the longer one, this or the client's, is agreed.
    """

    listen: str | None = None
    channels: dict[str, ChannelRule] = {}
    users_file: Path | None = None
    connauth: ConnAuth = ConnAuth()
    plain_passwords: bool = False
    tls: ListenerTls | None = None
    sharing: Annotated[int, Field(ge=0, le=999)] = 10
    connections: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    connections_of_address: Annotated[int, Field(ge=1, le=100_000)] | None = None
    longest_message: Annotated[int, Field(ge=1, le=104_857_600)] = 104_857_600
    memory_megabytes: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    heartbeat: Annotated[int, Field(ge=1, le=999_999)] = 300

    @property
    def most_of_address(self) -> int:
        """The most connections of one address: one client must not be able to take all of them."""
        return self.connections_of_address or max(1, self.connections // 4)

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read."""
        keys = () if self.tls is None else (self.tls.key_file,)
        return keys if self.users_file is None else (*keys, self.users_file)


class MqscConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [mqsc]. directory: of scripts ``*.mqsc`` that ``run`` applies at its start, and again when they change."""

    directory: Path | None = None


class AdminConfig(Secret):
    """Table [admin]: the REST interface for the administration of a queue manager of IBM MQ (``https://``).

    ca_file: certificates that are trusted for that of the server. cert_file, key_file: of the client. timeout_s: how
    long a command may take.
    """

    url: str | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 60.0

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read: the password, the private key."""
        own = super().secret_files
        return own if self.key_file is None else (*own, self.key_file)


def _home(value: object) -> object:
    return parse_home(value) if isinstance(value, str) else value


class StoreConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [store]: where queue managers are. home: where neither --home nor [run] says so."""

    home: Annotated[Home | None, BeforeValidator(_home)] = None


class RunConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [run]: options of ``run`` that have no table of their own, by their names without the hyphens.

    None for what the option's own default is. as_json: its key is ``json``.
    """

    qmgr: str | None = None
    home: Annotated[Home | None, BeforeValidator(_home)] = None
    once: bool | None = None
    as_json: bool | None = Field(None, alias="json")
    record: Path | None = None
    log: Path | None = None
    log_format: Literal["json", "text"] | None = None
    durability: Literal["full", "normal"] | None = None
    lease: Annotated[float, Field(ge=0.5)] | None = None
    command_seconds: Annotated[float, Field(ge=0)] | None = None
    command_topics: Annotated[int, Field(ge=0)] | None = None
    command_puts: Annotated[int, Field(ge=0)] | None = None
    command_megabytes: Annotated[int, Field(ge=0)] | None = None
    console: str | None = None

    def defaults(self) -> dict[str, Any]:
        """What the options are where neither the command line nor the environment gives them."""
        # The verb has another name for this option: its console is the terminal.
        names = {"console": "console_at"}
        return {names.get(name, name): value for name, value in self if value is not None}


class MetricsConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [metrics]: the port of ``--metrics``.

    listen: HOST:PORT, or a port on the loopback address. queues, topics, subscriptions: patterns with ``*`` for those
    that have series of their own; ``!`` before a pattern leaves out.
    """

    listen: str | None = None
    queues: tuple[str, ...] = ("*",)
    topics: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()


class TracingConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [tracing]: where spans go.

    endpoint: URL of an OTLP collector, or ``console``. load: the part of the processor's time that traces may take,
    from 0 to 1; commands beyond it are not traced. share: of the commands without a trace context, from 0 to 1.
    """

    endpoint: str | None = None
    load: Annotated[float, Field(gt=0, le=1)] = 0.005
    share: Annotated[float, Field(ge=0, le=1)] = 0.0


class PublishExitConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [publish_exit]: the stanza PublishSubscribe of qm.ini (guide 4.6.2.4). One of the first three, or none.

    path: PublishExitPath, a Python file; function: PublishExitFunction in it. entry_point: of an installed package,
    in group ``qpubsub.publish_exits``. program: a program and its arguments, which reads and writes lines of JSON.
    data: PublishExitData. seconds: the longest time for one call.
    """

    path: Path | None = None
    entry_point: str | None = None
    program: tuple[str, ...] = ()
    function: str = "publish_exit"
    data: str = Field("", max_length=MQ_EXIT_DATA_LENGTH)
    seconds: Annotated[float, Field(gt=0)] = 5.0

    @property
    def is_there(self) -> bool:
        """Whether there is an exit."""
        return self._given > 0

    @property
    def _given(self) -> int:
        return sum((self.path is not None, self.entry_point is not None, bool(self.program)))

    @model_validator(mode="after")
    def _only_one(self) -> Self:
        if self._given > 1:
            raise ValueError("give only one of path, entry_point and program")
        return self


class ConsoleConfig(BaseModel, frozen=True, extra="forbid"):
    """Table [console]: the console in the browser, of ``run --console`` and of the verb ``console``.

    write: whether it may change something. users_file: who may look; one ``user:hash`` on each line. tls: the
    certificate. names: under which browsers reach it, beside its addresses.
    """

    write: bool = False
    users_file: Path | None = None
    tls: ListenerTls | None = None
    names: tuple[str, ...] = ()

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that nobody else may read."""
        keys = () if self.tls is None else (self.tls.key_file,)
        return keys if self.users_file is None else (*keys, self.users_file)


class Config(BaseModel, frozen=True, extra="forbid"):
    """The whole file."""

    run: RunConfig = RunConfig()
    store: StoreConfig = StoreConfig()
    queues: QueuesConfig = QueuesConfig()
    topics: TopicsConfig = TopicsConfig()
    admin: AdminConfig = AdminConfig()
    listener: ListenerConfig = ListenerConfig()
    mqsc: MqscConfig = MqscConfig()
    metrics: MetricsConfig = MetricsConfig()
    tracing: TracingConfig = TracingConfig()
    publish_exit: PublishExitConfig = PublishExitConfig()
    console: ConsoleConfig = ConsoleConfig()

    @property
    def home(self) -> Home | None:
        """Where the queue manager is; None where the file does not say so."""
        return self.run.home or self.store.home


# Reading the TOML file of ``--config``: what is wrong in it, by key and line, and secrets that others may read.

_TABLE: Final = re.compile(r"\s*\[([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w.\"'*-]+)\s*=")


def exposed_secrets(config: Config) -> tuple[str, ...]:
    """A warning for each file with a secret that others may read; none for a file that cannot be looked at.

    A group counts as others, except for a file of another user: an administrator may share it by its group.
    """
    tables = (config.queues, config.topics, config.admin, config.listener, config.console)
    files = dict.fromkeys(path for table in tables for path in table.secret_files)
    return tuple(warning for path in files if (warning := _exposed(path)) is not None)


def _exposed(path: Path) -> str | None:
    try:
        about = path.stat()
    except OSError:
        return None
    who = "everybody" if about.st_mode & stat.S_IROTH else ""
    if not who and about.st_mode & stat.S_IRGRP and about.st_uid == os.geteuid():
        who = "its group"
    return f"{path}: {who} may read this secret; run chmod 600 on it" if who else None


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """A fault in the file. key: dotted, "" where the file is no TOML. line: 1 for the first, None if it has none."""

    key: str
    why: str
    line: int | None = None


def read_config(path: Path | None) -> Config:
    """The configuration in the file at *path*; the defaults where there is none. Raises ConfigError."""
    if path is None:
        return Config()
    config, faults = config_of(path)
    if config is None:
        first = faults[0]
        raise ConfigError(f"{path}: {first.key}" if first.key else str(path), first.why)
    return config


def config_of(path: Path) -> tuple[Config | None, tuple[ConfigFault, ...]]:
    """The configuration in the file at *path*, or None and all of its faults."""
    try:
        text = path.read_text(encoding="utf-8")
        return Config.model_validate(tomllib.loads(text)), ()
    except OSError as error:
        return None, (ConfigFault("", system_words(error)),)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return None, (ConfigFault("", str(error)),)
    except ValidationError as error:
        faults = [_fault(text, each["loc"], each["type"], each["msg"]) for each in error.errors()]
        return None, tuple(sorted(faults, key=lambda fault: fault.line or 0))


def _fault(text: str, loc: tuple[int | str, ...], kind: str, message: str) -> ConfigFault:
    keys = [str(part) for part in loc]
    why = f"there is no such key{_suggestion(keys)}" if kind == "extra_forbidden" else message
    if keys == ["run", "standby"]:
        why = NO_STANDBY
    return ConfigFault(".".join(keys), why, _line_of(text, keys))


def _suggestion(keys: Sequence[str]) -> str:
    """The key that may be meant."""
    model: type[BaseModel] | None = Config
    for key in keys[:-1]:
        field = None if model is None else model.model_fields.get(key)
        model = field.annotation if field is not None and isinstance(field.annotation, type) else None
        model = model if model is not None and issubclass(model, BaseModel) else None
    there = {} if model is None else model.model_fields
    near = get_close_matches(keys[-1], [field.alias or name for name, field in there.items()], n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line of a key, or of its table, as far as the usual way to write them shows it."""
    table: list[str] = []
    found: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = [part.strip(" \"'") for part in header[1].split(".")]
            if table == list(keys[: len(table)]):
                found = found or number
        elif (key := _KEY.match(line)) and [*table, *(part.strip(" \"'") for part in key[1].split("."))] == list(
            keys[: len(table) + key[1].count(".") + 1]
        ):
            return number
    return found
