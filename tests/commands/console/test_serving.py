"""The console as a process: the verb, beside ``run``, with TLS; and how both end."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands.config.access import password_hash
from commands.qmgr.store import QueueManagerStore
from tests.certificates import make_certificates, needs_openssl
from tests.commands.cli_runs import run
from tests.commands.console.places import filled
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slow


@contextmanager
def _started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A ``qpubsub`` that serves a console, and the address that it says."""
    process = subprocess.Popen([sys.executable, "-m", "commands.cli", *words], stderr=subprocess.PIPE, text=True)
    # Whatever it does not say must not be waited for.
    watch = threading.Timer(60, process.kill)
    watch.start()
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if (found := re.search(r"console on (https?://\S+/)", line)) is not None:
                yield process, found[1]
                break
        else:
            raise AssertionError("".join(said))
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def _page(address: str, context: ssl.SSLContext | None = None) -> str:
    with urllib.request.urlopen(address, timeout=PATIENCE_S, context=context) as answer:
        return str(answer.read(), "utf-8")


def test_the_verb_serves_until_it_is_stopped(tmp_path: Path) -> None:
    filled(tmp_path)
    with _started("console", "-m", "QM1", "--home", str(tmp_path), "--listen", "0") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert "2053" in _page(f"{address}dead-letters")
        taken = address.split(":")[2].strip("/")
        other = run("console", "-m", "QM1", "--home", str(tmp_path), "--listen", taken)
        assert (other.code, "choose another with --listen" in other.talk) == (2, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_it_is_served_beside_a_processor_which_goes_on(tmp_path: Path) -> None:
    filled(tmp_path)
    config = tmp_path / "run.toml"
    config.write_text('[run]\nconsole = "127.0.0.1:0"\n')
    with _started("run", "-m", "QM1", "--home", str(tmp_path), "--config", str(config)) as (process, address):
        words = _page(address)
        assert "Processor" in words or "No processor is running" in words
        with QueueManagerStore.open(tmp_path, "QM1") as store:
            version = store.data_version()
        assert _page(f"{address}subscriptions").count("<tr data-row=") == 2
        with QueueManagerStore.open(tmp_path, "QM1") as store:
            assert version == store.data_version()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    with pytest.raises(urllib.error.URLError):
        _page(address)


@needs_openssl
def test_other_machines_need_tls_and_a_password(tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home)
    make_certificates(tmp_path)
    (tmp_path / "users").write_text(f"alice:{password_hash('right')}\n")
    (tmp_path / "users").chmod(0o600)
    config = tmp_path / "console.toml"
    table = {"users_file": str(tmp_path / "users"), "names": ["mq.example.com"]}
    tls = {"cert_file": str(tmp_path / "localhost.pem"), "key_file": str(tmp_path / "localhost.key")}
    lines = ["[console]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), "[console.tls]"]
    config.write_text("\n".join([*lines, *(f"{key} = {json.dumps(value)}" for key, value in tls.items())]))
    refused = run("console", "-m", "QM1", "--home", str(home), "--listen", "0.0.0.0:0")
    assert (refused.code, "give users_file and tls" in refused.talk) == (2, True)
    words = ("console", "-m", "QM1", "--home", str(home), "--listen", "0.0.0.0:0", "--config", str(config))
    with _started(*words) as (_, address):
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        port = address.split(":")[2].strip("/")
        # The name of the certificate is none that the console is reached under: an address is, and the table's name.
        request = urllib.request.Request(f"https://localhost:{port}/", headers={"Host": f"mq.example.com:{port}"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S, context=trusted) as answer:
            assert 'name="password"' in str(answer.read(), "utf-8")
        with pytest.raises(urllib.error.HTTPError, match="421"):
            _page(f"https://localhost:{port}/", trusted)
