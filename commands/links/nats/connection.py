"""nats-py as the rest of the bridge sees it: calls that are waited for, from any thread, by one connection.

A call connects if there is no connection. nats-py itself does not connect again: what was under way when a connection
broke fails at once, and only the callers send again what had no answer.

Converts messages of NATS to publications of queue managers and back, field by field. Pure.

The payload is never touched.

    to the tree             from                               from the tree
    subject                 topic string                       topic string
    Nats-TTL                Expiry, in seconds, rounded up     Expiry: what is left
    mq.Properties           all properties as JSON, if a header cannot have one of them, or two have one name
    Nats-Msg-Id             the message on the outgoing queue: the server takes it once
    KV-Operation            PURGE: DeletePub                   DEL, PURGE: DeletePub
    other headers           (commands.links.engine.properties)    the same
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address, parse_address
from commands.links.engine import properties as props
from commands.links.engine.adapter import TreeUnreachableError, client_context, why_unreachable
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError
from streams.patterns import MULTI_LEVEL, SINGLE_LEVEL
from streams.topic_strings import SEPARATOR

_LONGEST_STOP_S: Final = 5.0


class LoopThread:
    """A thread with an event loop, from the first call on. name: of the thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._starting = threading.Lock()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """What *work* returns; raises what it raises. After timeout_s it is cancelled: raises TimeoutError."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Do *last*, and end the thread, if it has begun. Raises nothing."""
        if not self._thread.is_alive():
            last.close()
            return
        with suppress(Exception):
            self.call(last, _LONGEST_STOP_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_LONGEST_STOP_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()


async def unless(over: asyncio.Future[Any], work: Coroutine[Any, Any, T], error: Exception) -> T:
    """What *work* returns; if *over* is done before it, it is cancelled, and *error* raised."""
    task = asyncio.ensure_future(work)
    try:
        ends: list[asyncio.Future[Any]] = [task, over]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise error
    finally:
        task.cancel()


try:
    import nats
    from nats.aio.client import Client
    from nats.js import JetStreamContext
except ImportError:  # pragma: no cover - the extra is not installed
    nats = None  # type: ignore[assignment]

_log = logging.getLogger("qpubsub.nats")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NatsSession:
    """One connection. lost: done when it is gone."""

    client: Client
    jetstream: JetStreamContext
    lost: asyncio.Future[None]


Work = Callable[[NatsSession], Coroutine[Any, Any, T]]


async def nothing(_session: NatsSession) -> None:
    """Nothing has to be ready."""


class NatsConnection:
    """To one server of *address* and ``servers``, to another one after a break. name: for people.

    ready: makes ready what is needed, in each new connection, before anything else. denied: called in the loop with
    each permission that is missing, in the server's words. max_payload: the longest message that the server takes, in
    bytes. Raises ConfigError where nats-py is missing or a file is no good.
    """

    def __init__(self, address: Address, config: TopicsConfig, name: str, ready: Work[Any] = nothing) -> None:
        if nats is None:
            raise ConfigError("--topics", f"nats:// needs the package nats-py: {how_to_install('nats')}")
        self.name, self._address, self._config, self._ready = name, address, config, ready
        self._options = self._options_of(address, config)
        self._thread = LoopThread(f"nats-{name}")
        self._attempt: asyncio.Task[NatsSession] | None = None
        self._said = ""
        self.denied: Callable[[str], None] = lambda _text: None
        self.max_payload = 1_048_576

    def _options_of(self, address: Address, config: TopicsConfig) -> dict[str, Any]:
        more = [each if "://" in each else f"{address.scheme}://{each}" for each in config.servers]
        user = address.user or config.user
        if config.credentials_file is not None and not config.credentials_file.is_file():
            raise ConfigError("credentials_file", f"{config.credentials_file}: there is no such file")
        return {
            "servers": [str(address), *(str(parse_address(each, "servers")) for each in more)],
            "name": self.name,
            "user": user,
            "password": config.password() if user is not None else None,
            "user_credentials": None if config.credentials_file is None else str(config.credentials_file),
            "tls": client_context(config) if address.secure else None,
            "ping_interval": config.keepalive_s,
            "max_outstanding_pings": 2,
            "connect_timeout": max(1, round(config.patience_s)),
            "allow_reconnect": False,
            # nats-py tries a server once more than this says before it gives up.
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0.05,
            "error_cb": self._error,
        }

    def call(self, work: Work[T], timeout_s: float | None = None) -> T:
        """What *work* returns; it runs in the loop. timeout_s: ``patience_s`` where it is None.

        Raises TreeUnreachableError if no answer comes or the connection breaks, StoreError if the server refuses.
        """
        try:
            return self._thread.call(self._called(work), timeout_s or self._config.patience_s)
        except nats.js.errors.APIError as error:
            raise StoreError(refusal(error)) from error
        except (TimeoutError, nats.errors.Error, OSError, concurrent.futures.CancelledError) as error:
            what = "does not answer" if isinstance(error, TimeoutError) else "cannot be used"
            why = self._said or self._why(error)
            raise TreeUnreachableError(f"the NATS server at {self._address} {what}: {why}".rstrip(": ")) from error

    def close(self) -> None:
        """Disconnect."""
        self._thread.stop(self._leave())

    # The loop's thread

    async def _called(self, work: Work[T]) -> T:
        if self._attempt is None or self._is_over(self._attempt):
            self._attempt = asyncio.ensure_future(self._connected())
        # Whoever loses patience does not end the attempt: others wait for it.
        session = await asyncio.shield(self._attempt)
        return await self._within(session, work)

    @staticmethod
    def _is_over(attempt: asyncio.Task[NatsSession]) -> bool:
        return attempt.done() and (attempt.exception() is not None or attempt.result().lost.done())

    async def _connected(self) -> NatsSession:
        # One for each connection: a client remembers errors of the last one.
        client, lost, self._said = Client(), self._thread.loop.create_future(), ""

        async def closed() -> None:
            if not lost.done():
                lost.set_result(None)

        try:
            await client.connect(closed_cb=closed, **self._options)
            session = NatsSession(client, client.jetstream(), lost)
            await self._within(session, self._ready)
        except BaseException:
            with suppress(Exception):
                await client.close()
            raise
        self.max_payload = client.max_payload
        _log.info("connected to the NATS server as %s", self.name)
        return session

    async def _within(self, session: NatsSession, work: Work[T]) -> T:
        return await unless(session.lost, work(session), nats.errors.ConnectionClosedError())

    async def _leave(self) -> None:
        if self._attempt is not None and not self._is_over(self._attempt):
            await (await self._attempt).client.close()

    async def _error(self, error: Exception) -> None:
        text = self._why(error) or type(error).__name__
        self._said = text.removeprefix("nats: ")
        if "permissions violation" in text:
            self.denied(text)

    def _why(self, error: Exception) -> str:
        why = why_unreachable(error, self._address.secure, "nats")
        if isinstance(error, ConnectionResetError):
            # What the server says before it closes is lost where it closes before all that was sent has been read.
            why += " (so does a server that refuses the authorization: see user, password_file, credentials_file)"
        return why


def refusal(error: Any) -> str:
    """What JetStream's API says when it refuses."""
    return f"JetStream refuses it: {error.description} ({error.err_code})"


# The stream and the bucket: what they are, how they are made, and whether the bridge can use those that are there.

try:
    from nats.js.api import DiscardPolicy, StreamConfig, StreamInfo
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

# How long the server knows the identifier of a publication that it has taken.
DUPLICATES_S: Final = 600
_PREFIX: Final = re.compile(r"([^\s.*>$][^\s.*>]*\.)+")


@dataclass(frozen=True, slots=True)
class Names:
    """bridge: its name at the server. stream, bucket: of the streams; prefix, keys: what begins their subjects."""

    bridge: str
    stream: str
    prefix: str
    bucket: str
    keys: str

    @classmethod
    def of(cls, config: TopicsConfig, qmgr: str) -> Names:
        """Those of a configuration. Raises ConfigError where it has a prefix that cannot be one."""
        prefix, stream = config.prefix or "mq.", config.stream
        if _PREFIX.fullmatch(prefix) is None:
            raise ConfigError("prefix", f"{prefix} cannot begin NATS subjects; one that can is mq.")
        named = config.client_id or f"qpubsub-{qmgr}"
        bridge = re.sub(r"[^A-Za-z0-9_-]", lambda found: f"={ord(found[0]):02X}", named)
        return cls(bridge, stream, prefix, f"KV_{stream}", f"$KV.{stream}.")


def configs_of(config: TopicsConfig, names: Names) -> tuple[StreamConfig, StreamConfig]:
    """The stream and the bucket as the bridge makes them."""
    kept_s = config.session_expiry_s or None
    common: dict[str, Any] = {"allow_msg_ttl": True, "allow_direct": True, "num_replicas": config.replicas}
    stream = StreamConfig(
        name=names.stream,
        subjects=[f"{names.prefix}>"],
        max_age=kept_s,
        duplicate_window=min(DUPLICATES_S, kept_s or DUPLICATES_S),
        **common,
    )
    bucket = StreamConfig(
        name=names.bucket,
        subjects=[f"{names.keys}>"],
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        duplicate_window=DUPLICATES_S,
        **common,
    )
    return stream, bucket


async def make_stream(session: NatsSession, wanted: StreamConfig) -> tuple[StreamInfo, bool]:
    """The stream, which is made if it is not there; and whether it was. What an administrator made is left as it is."""
    try:
        return await session.jetstream.stream_info(str(wanted.name)), False
    except NotFoundError:
        return await session.jetstream.add_stream(wanted), True


def why_unfit(about: StreamInfo, wanted: StreamConfig) -> str | None:
    """Why the bridge cannot use a stream; None if it can."""
    missing = [each for each in wanted.subjects or () if not _has(about.config.subjects or (), each)]
    if missing:
        return f"stream {wanted.name} does not have the subjects {missing[0]}; see stream and prefix"
    if not about.config.allow_msg_ttl:
        return f"stream {wanted.name} does not allow Nats-TTL, so nothing can expire in it"
    return None


def _has(subjects: Sequence[str], wanted: str) -> bool:
    return any(each == wanted or (each.endswith(">") and wanted.startswith(each[:-1])) for each in subjects)


# Topic strings and patterns of the queued interface as NATS subjects, and back, without collisions. Pure.
#
# A level becomes a token, and `/` becomes `.`. White space, control characters, `.`, `*`, `>` and `=` become their
# UTF-8, each byte as `=` and two hexadecimal digits. An empty level is `=` alone. A level that is `+` or `#` is
# escaped too. In keys of a bucket, all but letters, digits, `-` and `_` of ASCII is escaped: clients of the key-value
# interface take no others. Filters are those of ``commands.links.engine.log_adapter``.
#
#     Sport/Soccer          mq.Sport.Soccer
#     a.b/c d//é            mq.a=2Eb.c=20d.=.é, key a=2Eb.c=20d.=.=C3=A9
#     /x                    mq.=.x
#     Sport/#               mq.Sport and mq.Sport.>         # selects the topic itself too
#     Sport/+/Arsenal       mq.Sport.*.Arsenal
#     mq.a=2eb, mq.a/b      none: no topic string becomes these subjects
#
# Each topic string has one subject and one key, and each subject or key at most one topic string.

_SPACES: Final = "\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_FORBIDDEN: Final = re.compile(rf"[.*>={_SPACES}\ud800-\udfff]")
_FORBIDDEN_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_-]")
_BYTES: Final = re.compile("(?:=[0-9A-F]{2})+")
_EMPTY: Final = "="
_WILD: Final = (SINGLE_LEVEL, MULTI_LEVEL)
_NOTHING: Final = "=="
"""A token that no level becomes."""
# With more first levels than these, the server sends everything, and the bridge leaves out what it does not need.
_MOST_COVERED: Final = 50


def subject_of(topic: str, key: bool = False) -> str:
    """The subject of a topic string, without the prefix of all subjects. key: as a key of the bucket."""
    return ".".join(_token(level, key) for level in topic.split(SEPARATOR))


def topic_of(subject: str, key: bool = False) -> str | None:
    """The topic string of a subject without its prefix; None if no topic string becomes this subject."""
    try:
        topic = SEPARATOR.join(map(_level, subject.split(".")))
    except UnicodeDecodeError:
        return None
    return topic if subject_of(topic, key) == subject else None


def why_too_long(topic: str, longest: int) -> str | None:
    """Why the server takes no subject for *topic*, None where it does. longest: bytes of a subject, or of a key."""
    length = len(subject_of(topic, key=True))
    return None if length <= longest else f"a subject of {length} bytes is longer than longest_subject = {longest}"


def wildcards_of(topic_filter: str, prefix: str, key: bool = False) -> tuple[str, ...]:
    """The subjects with NATS wildcards that together select what a filter does. prefix: of all subjects."""
    tokens = [_selecting(each, key) for each in topic_filter.split(SEPARATOR)[1:]]
    below = prefix + ".".join(tokens)
    return (prefix + ".".join(tokens[:-1]), below) if tokens[-1] == ">" and len(tokens) > 1 else (below,)


def cover(filters: Iterable[str], prefix: str, key: bool = False) -> list[str]:
    """Subjects that select at least what *filters* do, and of which no two overlap, as a consumer must have them."""
    first = {each.split(SEPARATOR, 2)[1] for each in filters}
    if first & set(_WILD) or len(first) > _MOST_COVERED:
        return [f"{prefix}>"]
    tokens = [_selecting(each, key) for each in first]
    return sorted(prefix + token + below for token in tokens for below in ("", ".>")) or [prefix + _NOTHING]


def _token(level: str, key: bool = False) -> str:
    if not level:
        return _EMPTY
    if level in _WILD:
        return _escaped(level)
    return (_FORBIDDEN_IN_KEYS if key else _FORBIDDEN).sub(lambda found: _escaped(found[0]), level)


def _selecting(level: str, key: bool) -> str:
    return {SINGLE_LEVEL: "*", MULTI_LEVEL: ">"}.get(level) or _token(level, key)


def _escaped(text: str) -> str:
    return "".join(f"={byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _level(token: str) -> str:
    if token == _EMPTY:
        return ""
    return _BYTES.sub(lambda run: bytes.fromhex(run[0].replace("=", "")).decode("utf-8", "surrogatepass"), token)


Headers = dict[str, str]

MOST_HEADER_BYTES: Final = 65_535
"""JetStream keeps the length of the headers in 16 bits; where there are more, it may not even answer."""
MESSAGE_ID: Final = "Nats-Msg-Id"
_TTL, _PROPERTIES = "Nats-TTL", "mq.Properties"
_OPERATION, _REMOVED = "KV-Operation", "Nats-Marker-Reason"
_NO_PROPERTY: Final = frozenset(
    {props.CONTENT_TYPE, props.RETAIN.lower(), props.PERSISTENCE.lower(), _PROPERTIES.lower()}
)
_NAME: Final = re.compile(r"(?!nats-|kv-|status$|description$)[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.IGNORECASE)
# The first and the last line, and Nats-Msg-Id with the bridge's name and a MsgId as hexadecimal digits.
_FIRST_AND_LAST, _ID_BYTES = len("NATS/1.0\r\n\r\n"), len(MESSAGE_ID) + len(": -\r\n") + 48
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Go's longest duration is 292 years; this is 31.
_LONGEST_TTL_S: Final = 999_999_999


@dataclass(frozen=True, slots=True)
class NatsPublication:
    """A message for a subject, without the prefix. key: in the bucket. retain: put there too. clear: cleared there."""

    subject: str
    key: str
    payload: bytes
    headers: Headers
    retain: bool = False
    clear: bool = False

    @property
    def size(self) -> int:
        """About how many bytes count towards the longest payload that the server takes."""
        return len(self.payload) + self.header_bytes

    @property
    def header_bytes(self) -> int:
        """How many bytes the block of headers has at most, with ``Nats-Msg-Id``, which the sender adds."""
        named = sum(len(name) + len(value.encode()) + 4 for name, value in self.headers.items())
        return _FIRST_AND_LAST + named + _ID_BYTES + len(self.headers[props.BRIDGE])


def message_for(wanted: props.ForTree, bridge: str, marker_s: int) -> NatsPublication:
    """The message that does what is wanted. marker_s: how long the bucket says that a publication was cleared."""
    subject, key = subject_of(wanted.topic), subject_of(wanted.topic, key=True)
    if wanted.clear:
        headers = {props.BRIDGE: bridge, _OPERATION: "PURGE", "Nats-Rollup": "sub", _TTL: f"{marker_s}s"}
        return NatsPublication(subject, key, b"", headers, clear=True)
    headers = {props.BRIDGE: bridge, **dict(props.own_headers(wanted, "Content-Type", _fits))}
    pairs = props.properties_of(wanted, bridge)
    if len({name.lower() for name, _ in pairs}) == len(pairs) and all(_is_header(*pair) for pair in pairs):
        headers |= dict(pairs)
    else:
        headers[_PROPERTIES] = json.dumps(pairs)
    if wanted.expiry > 0:
        headers[_TTL] = f"{min(-(-wanted.expiry // 10), _LONGEST_TTL_S)}s"
    return NatsPublication(subject, key, wanted.payload, headers, wanted.retain)


def record_of(subject: str, payload: bytes, headers: Headers, stored_at: float, in_bucket: bool) -> props.TreeMessage:
    """What is in a message. subject: without its prefix. stored_at: when the server got it, seconds since 1970."""
    pairs = [(name, value) for name, value in headers.items() if _NAME.fullmatch(name) and name != _PROPERTIES]
    with suppress(ValueError, TypeError):
        pairs += [(str(name), str(value)) for name, value in json.loads(headers.get(_PROPERTIES, "[]"))]
    is_marker = headers.get(_OPERATION) in ("DEL", "PURGE") or _REMOVED in headers
    ttl_s = _seconds(headers.get(_TTL, ""))
    return props.TreeMessage(
        topic_of(subject, in_bucket),
        payload,
        tuple(pairs),
        near=subject.replace(".", "/"),
        is_kept=in_bucket,
        # What a bridge retains comes by the stream too; what it clears is in the bucket only.
        is_copy=in_bucket and not is_marker,
        clears=is_marker,
        expires_at=None if ttl_s is None else stored_at + ttl_s,
    )


def _is_header(name: str, value: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.lower() not in _NO_PROPERTY and _fits(value)


def _fits(value: str) -> bool:
    return value == value.strip() and (value.isprintable() or not value)


def _seconds(ttl: str) -> float | None:
    """Seconds of a number, or of a duration as Go writes it (1h30m0s); None for others, and for ``never``."""
    if ttl.isascii() and ttl.isdigit():
        return float(ttl[:12])
    parts = _DURATION.findall(ttl)
    if not parts or "".join(number + unit for number, unit in parts) != ttl:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
