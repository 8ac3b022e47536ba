"""How the bridge asks IBM MQ's client to connect: by parameters, a CCDT, the environment; TLS, user, password.

The package's own structures, with a queue manager that notes what it is given: there is nothing to connect to by these.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.config.settings import ConfigError, QueuesConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.channel import LibraryConnection
from tests.commands.links.mqi.harness import load, needs_mqi

pytestmark = needs_mqi


def _asked(url: str, **config: Any) -> dict[str, Any]:
    """What MQCONNX is given."""
    load()
    connection = LibraryConnection(parse_address(url, "--queues"), QueuesConfig(**config), "program")
    given: dict[str, Any] = {}

    class Noting:
        def __init__(self, _name: None) -> None: ...

        def connect_with_options(self, name: str, **options: Any) -> None:
            given.update(name=name, **options)

    real = vars(connection.mq)
    connection.mq = SimpleNamespace(**{**real, "QueueManager": Noting})
    connection.connect()
    return given


def _text(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text.split("\0")[0].rstrip()


def test_by_parameters() -> None:
    given = _asked("ibmmq://mq.example.com:1415/QM1?channel=APP")
    assert given["name"] == "QM1"
    assert (_text(given["cd"].ChannelName), _text(given["cd"].ConnectionName)) == ("APP", "mq.example.com(1415)")
    assert {"csp", "sco"}.isdisjoint(given)
    assert _text(given["cno"].ApplName) == "program"


def test_the_channel_may_be_in_the_file_and_has_to_be_somewhere() -> None:
    assert _text(_asked("ibmmq://mq/QM1", channel="FILE")["cd"].ChannelName) == "FILE"
    with pytest.raises(ConfigError, match="the channel is missing"):
        _asked("ibmmq://mq/QM1")


def test_by_a_ccdt() -> None:
    given = _asked("ibmmq:///QM1", ccdt="file:///etc/mq/AMQCLCHL.TAB")
    assert "cd" not in given
    assert _text(given["cno"].CCDTUrl) == "file:///etc/mq/AMQCLCHL.TAB"
    assert "cd" in _asked("ibmmq://mq/QM1?channel=APP", ccdt="file:///x"), "what the URL says wins"


def test_as_the_environment_says() -> None:
    given = _asked("ibmmq:///QM1")
    assert "cd" not in given
    assert not _text(given["cno"].CCDTUrl or "")


def test_only_the_environment_may_mean_a_queue_manager_on_this_machine() -> None:
    import ibmmq

    client = ibmmq.CMQC.MQCNO_CLIENT_BINDING
    assert _asked("ibmmq://mq/QM1?channel=APP")["cno"].Options & client
    assert _asked("ibmmq:///QM1", ccdt="file:///x")["cno"].Options & client
    assert not _asked("ibmmq:///QM1")["cno"].Options & client


def test_the_clients_own_reconnection_is_off() -> None:
    """It would hide what a break did to the unit of work."""
    import ibmmq

    for url in ("ibmmq:///QM1", "ibmmq://mq/QM1?channel=APP"):
        assert _asked(url)["cno"].Options & ibmmq.CMQC.MQCNO_RECONNECT_DISABLED


def test_tls() -> None:
    files = {"key_repository": "/var/mqm/ssl/key", "certificate_label": "bridge"}
    given = _asked("ibmmq://mq/QM1?channel=APP", cipher="ANY_TLS12_OR_HIGHER", **files)
    assert _text(given["cd"].SSLCipherSpec) == "ANY_TLS12_OR_HIGHER"
    assert (_text(given["sco"].KeyRepository), _text(given["sco"].CertificateLabel)) == ("/var/mqm/ssl/key", "bridge")


USERS = [
    ("file", "ibmmq:///QM1", {"user": "bridge"}, ("bridge", "s3cret")),
    ("URL", "ibmmq://other@mq/QM1?channel=APP", {"user": "bridge"}, ("other", "s3cret")),
]


@pytest.mark.parametrize(("url", "config", "wanted"), [u[1:] for u in USERS], ids=[u[0] for u in USERS])
def test_user_and_password(tmp_path: Path, url: str, config: dict[str, Any], wanted: tuple[str, str]) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    given = _asked(url, **config, password_file=tmp_path / "password")
    assert (_text(given["csp"].CSPUserId), _text(given["csp"].CSPPassword)) == wanted


def test_a_user_without_a_password_is_the_operating_systems_affair() -> None:
    assert "csp" not in _asked("ibmmq:///QM1", user="bridge")


def test_the_package_leaves_messages_as_they_are_where_opentelemetry_is_installed() -> None:
    """It would read properties into handles, and add some; the bridge knows the trace context itself."""
    pytest.importorskip("opentelemetry.trace")
    load = "from tests.commands.links.mqi.harness import load; load()"
    shows = "import mqcommon; print(mqcommon.OTelFunctions.open)"
    code = f"{load}; from commands.links.ibmmq.channel import _package as package; package(); {shows}"
    environment = {name: value for name, value in os.environ.items() if name != "MQIPY_NOOTEL"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "None\n"
