"""RabbitMQ beside the processor: a server of its own, and persistent messages put under publisher confirms."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.waiting import until

try:
    import pika
except ImportError:
    pika = None
import pytest

from tests.commands.links.mosquitto import free_port

SERVER: Final = shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin")
needs_rabbitmq = pytest.mark.skipif(SERVER is None or pika is None, reason="rabbitmq-server or pika is not installed")
_EXCHANGE: Final = "publications"
_QUEUE: Final = "subscriber"


@contextmanager
def rabbitmq(directory: Path) -> Iterator[int]:
    """The port of a RabbitMQ that keeps its files in *directory*."""
    assert SERVER is not None
    directory.mkdir()  # Erlang keeps its cookie there, and makes no directory
    port = free_port()
    own = {
        "RABBITMQ_NODENAME": f"qpubsub{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "HOME": str(directory),
        "ERL_CRASH_DUMP": "/dev/null",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([SERVER], env=dict(os.environ) | own, start_new_session=True, **quiet)
    try:
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        # Erlang's directory of nodes was started beside it, and outlives it.
        subprocess.run(["epmd", "-kill"], check=False, **quiet)


def moved(port: int, count: int, size: int) -> float:
    """Seconds until *count* persistent messages of *size* bytes are confirmed, routed by topic and acknowledged."""
    told: dict[str, float] = {"confirmed": 0, "got": 0}
    body = b"x" * size

    def declared(channel: Any) -> None:
        channel.exchange_declare(_EXCHANGE, "topic", durable=True)
        channel.queue_declare(_QUEUE, durable=True)
        channel.queue_bind(_QUEUE, _EXCHANGE, "#", callback=lambda _: started(channel))

    def started(channel: Any) -> None:
        channel.confirm_delivery(confirmed)
        channel.basic_qos(prefetch_count=1000)
        channel.basic_consume(_QUEUE, got)
        told["begun"] = time.perf_counter()
        for n in range(count):
            channel.basic_publish(_EXCHANGE, f"t.{n % 500}", body, pika.BasicProperties(delivery_mode=2))

    def confirmed(frame: Any) -> None:
        # "multiple": all up to this one.
        told["confirmed"] = max(told["confirmed"], frame.method.delivery_tag)
        end(connection)

    def got(channel: Any, method: Any, *_: Any) -> None:
        told["got"] += 1
        if told["got"] % 100 == 0 or told["got"] == count:
            channel.basic_ack(method.delivery_tag, multiple=True)
        end(connection)

    def end(connection: Any) -> None:
        if told["confirmed"] == told["got"] == count:
            told.setdefault("ended", time.perf_counter())
            connection.close()

    until(lambda: _answers(port), 180.0, "RabbitMQ")
    connection = pika.SelectConnection(
        pika.ConnectionParameters("127.0.0.1", port),
        on_open_callback=lambda opened: opened.channel(on_open_callback=declared),
        on_close_callback=lambda closed, _: closed.ioloop.stop(),
    )
    connection.ioloop.start()
    return told["ended"] - told["begun"]


def _answers(port: int) -> bool:
    try:
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).close()
    except Exception:
        time.sleep(0.5)
        return False
    return True
