"""``qpubsub check``: what is missing is said, with the lines that mend it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.client.errors import MqError
from commands.config.settings import KafkaConfig, QueuesConfig, TopicsConfig
from commands.config.urls import Address
from commands.links.checking.mq import MqCheck
from commands.links.checking.trees import KafkaCheck
from commands.links.kafka.cluster import Routes
from commands.qmgr.store import QueueManagerStore
from rfh2 import Folder, Mqmd, Rfh2
from tests.commands.links.mosquitto import mosquitto, needs_mosquitto
from tests.commands.links.mqi.harness import CONTROL, DEAD, OWED, RECORD, STREAM, needs_mqi, stand_in
from tests.commands.links.mqi.listening import queue_manager
from tests.commands.links.nats_server import NatsNative, nats_server, needs_nats

URL = "ibmmq://127.0.0.1:1414/QM1?channel=APP"


def _check(home: Path, *arguments: str) -> tuple[Result, dict[str, dict[str, Any]]]:
    if not (home / "QM1").exists():
        QueueManagerStore.create(home, QueueManager("QM1")).close()
    result = CliRunner().invoke(main, ["check", "-m", "QM1", "--home", str(home), "--json", *arguments])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return result, {row["subject"]: row for row in rows}


def test_nothing_is_missing(tmp_path: Path, kind: str) -> None:
    with queue_manager(kind, tmp_path / "mq") as mq:
        # A listener has topics only where it reads the queues of commands itself.
        topics = ("--topics", mq.url) if kind == "ibmmq" else ()
        result, found = _check(tmp_path, "--queues", mq.url, *topics)
    assert result.exit_code == 0, result.output
    assert all(row["ok"] for row in found.values())
    assert f"queue {CONTROL}, for input" in found
    assert not topics or "clearing a topic (PCF Clear Topic String)" in found


def test_each_call_of_a_client(tmp_path: Path) -> None:
    """``check mq://...``, which a user runs at a queue manager of IBM's and sends."""
    with queue_manager("mq", tmp_path / "mq", psmode=2) as mq:
        result = CliRunner().invoke(main, ["check", "--json", mq.url])
        assert mq.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, len(rows)) == (0, 14)
    assert [row["subject"] for row in rows if not row["ok"]] == []
    refused = CliRunner().invoke(main, ["check", "--json", mq.url])
    (row,) = map(json.loads, refused.stdout.splitlines())
    assert (refused.exit_code, row["ok"]) == (1, False)
    assert "connection refused: reason 2538" in row["what"]


@needs_mqi
@pytest.mark.faults
def test_what_is_missing_comes_with_the_line_that_mends_it(tmp_path: Path) -> None:
    queues = {STREAM: {"get_inhibited": 1}, DEAD: {"put_inhibited": 1}, RECORD: {"kind": "local"}}
    denied = [{"queue": CONTROL, "options": 1 | 2 | 4 | 8}]
    with stand_in(tmp_path / "mq", queues, denied=denied, psmode=2) as mq:
        definitions = json.loads((mq.directory / "definitions.json").read_text())
        del definitions["queues"]["SYSTEM.QPUBSUB.RECORD"], definitions["queues"]["SYSTEM.QPUBSUB.OWED"]
        (mq.directory / "definitions.json").write_text(json.dumps(definitions))
        mq.kill()
        mq.start()
        result, found = _check(tmp_path, "--queues", "ibmmq://bridge@127.0.0.1:1414/QM1?channel=APP")
    assert result.exit_code == 1
    mends = {subject: row["mend"] for subject, row in found.items() if not row["ok"]}
    assert mends == {
        "PSMODE of the queue manager": ["ALTER QMGR PSMODE(COMPAT)"],
        f"queue {CONTROL}, for input": [f"setmqaut -m QM1 -t queue -n {CONTROL} -p bridge +get +browse +inq"],
        f"queue {STREAM}, for input": [f"ALTER QLOCAL('{STREAM}') GET(ENABLED)"],
        f"record queue {RECORD}": [f"DEFINE QLOCAL('{RECORD}') DEFPSIST(YES) SHARE MAXMSGL(104857600)"],
        f"queue {OWED}, for what cannot be delivered yet": [
            f"DEFINE QLOCAL('{OWED}') DEFPSIST(YES) SHARE MAXDEPTH(100000) MAXMSGL(104857600)"
        ],
        f"dead-letter queue {DEAD}": [f"ALTER QLOCAL('{DEAD}') PUT(ENABLED)"],
    }


@needs_mqi
def test_a_subscriber_queue_that_is_gone_is_told_of(tmp_path: Path) -> None:
    home = tmp_path / "qmgrs"
    psc = "<Command>RegSub</Command><Topic>a</Topic><QName>GONE</QName>"
    with QueueManagerStore.create(home, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        unit.put(CONTROL, Mqmd(format="MQHRF2").encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),)).encode())
    assert CliRunner().invoke(main, ["run", "-m", "QM1", "--home", str(home), "--once"]).exit_code == 0
    with stand_in(tmp_path / "mq"):
        _, found = _check(home, "--queues", URL)
    assert found["subscriber queue GONE"]["what"].startswith("MQPUT1 to GONE: reason 2085")


@needs_mqi
def test_a_wrong_password_is_told_without_the_password(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text(f'[queues]\nuser = "bridge"\npassword_file = "{tmp_path}/secret"\n')
    (tmp_path / "secret").write_text("wrong\n")
    (tmp_path / "secret").chmod(0o600)
    with stand_in(tmp_path / "mq", password="right"):
        result, found = _check(tmp_path, "--queues", URL, "--config", str(config))
        assert result.exit_code == 1
        (row,) = found.values()
        assert "reason 2035 (NOT_AUTHORIZED)" in row["what"]
        assert row["mend"] == ["setmqaut -m QM1 -t qmgr -p bridge +connect +inq +setall"]
        assert "wrong" not in result.output
        (tmp_path / "secret").write_text("right\n")
        assert _check(tmp_path, "--queues", URL, "--config", str(config))[0].exit_code == 0


@needs_mqi
@pytest.mark.faults
def test_a_queue_manager_that_is_not_there(tmp_path: Path) -> None:
    with stand_in(tmp_path / "mq") as mq:
        mq.kill()
        result, found = _check(tmp_path, "--queues", URL)
    assert result.exit_code == 1
    (row,) = found.values()
    assert "reason 2059" in row["what"]


@needs_mosquitto
def test_an_mqtt_broker_where_nothing_is_missing(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "mosquitto") as broker:
        result, found = _check(tmp_path, "--topics", broker.url)
    assert result.exit_code == 0, result.output
    assert found["QoS 1"]["ok"]
    assert found["subscribing to #"]["what"] == "allowed"


@needs_mosquitto
def test_an_mqtt_broker_that_forbids_tells_the_line_for_its_access_rules(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text("user bridge\ntopic read mq/#\n")
    (tmp_path / "users").write_text("")
    (tmp_path / "users").chmod(0o600)
    subprocess.run(["mosquitto_passwd", "-b", str(tmp_path / "users"), "bridge", "secret"], check=True)
    config = tmp_path / "bridge.toml"
    config.write_text('[topics]\nuser = "bridge"\npassword_env = "BRIDGE_PASSWORD"\nprefix = "mq/"\npatience_s = 2\n')
    settings = ("allow_anonymous false", f"acl_file {tmp_path}/acl", f"password_file {tmp_path}/users")
    with mosquitto(tmp_path / "mosquitto", *settings) as broker, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIDGE_PASSWORD", "wrong")
        _, found = _check(tmp_path, "--topics", broker.url, "--config", str(config))
        assert "Not authorized" in found[f"connection to {broker.url}"]["what"]
        patch.setenv("BRIDGE_PASSWORD", "secret")
        result, found = _check(tmp_path, "--topics", broker.url, "--config", str(config))
    assert result.exit_code == 1
    forbidden = found["publishing on mq/qpubsub/qpubsub-QM1/fence"]
    assert (forbidden["ok"], forbidden["mend"]) == (False, ["user bridge", "topic readwrite mq/#"])


@needs_mosquitto
def test_an_mqtt_broker_that_lets_write_and_not_read_is_seen_through(tmp_path: Path) -> None:
    """mosquitto accepts the subscription all the same, and sends nothing."""
    (tmp_path / "acl").write_text("topic write mq/#\n")
    config = tmp_path / "bridge.toml"
    config.write_text('[topics]\nprefix = "mq/"\npatience_s = 1\n')
    with mosquitto(tmp_path / "mosquitto", f"acl_file {tmp_path}/acl") as broker:
        result, found = _check(tmp_path, "--topics", broker.url, "--config", str(config))
    assert result.exit_code == 1
    assert found["publishing on mq/qpubsub/qpubsub-QM1/fence"]["ok"]
    received = found["receiving from mq/qpubsub/qpubsub-QM1/fence"]
    assert (received["ok"], received["mend"]) == (False, ["# before any user line", "topic readwrite mq/#"])


def test_an_mqtt_broker_that_is_not_there(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text("[topics]\npatience_s = 0.3\n")
    result, found = _check(tmp_path, "--topics", "mqtt://127.0.0.1:1", "--config", str(config))
    assert result.exit_code == 1
    assert "does not answer" in found["connection to mqtt://127.0.0.1:1"]["what"]


@needs_mqi
@pytest.mark.parametrize(
    ("reason", "ok", "mend"),
    [
        (2035, False, ("setmqaut -m QM1 -t qmgr -p bridge +inq",)),
        (2067, True, ()),  # a queue manager that has no PSMODE has no queued interface; no authority is missing
        (2009, False, ()),
    ],
    ids=["not-authorized", "selector-error", "connection-broken"],
)
def test_what_mends_a_psmode_that_cannot_be_asked_for(
    reason: int, ok: bool, mend: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def inquire_qmgr(self, selectors: list[int]) -> dict[int, int]:
            raise MqError("MQINQ of the queue manager", reason, "")

    address = Address("ibmmq", "127.0.0.1", 1414, "bridge", "QM1", "APP")
    check = MqCheck(address, QueuesConfig(), "bridge")
    monkeypatch.setattr(check, "_connection", Refusing())
    found = check._psmode()
    assert (found.ok, found.mend) == (ok, mend)


_SAFE = {"cleanup.policy": "delete", "min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


@pytest.mark.parametrize(
    ("changed", "copies", "ok", "mend"),
    [
        ({}, 3, True, ""),
        ({"min.insync.replicas": "1"}, 1, True, ""),  # a broker for trying out: there is no other one
        ({"min.insync.replicas": "1"}, 3, False, "min.insync.replicas=2"),
        ({"unclean.leader.election.enable": "true"}, 3, False, "unclean.leader.election.enable=false"),
        ({"cleanup.policy": "compact"}, 3, False, "cleanup.policy=delete"),
    ],
)
def test_a_topic_of_kafka_that_would_lose_publications(
    changed: dict[str, str], copies: int, ok: bool, mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = KafkaCheck(Address("kafka", "127.0.0.1", 9092), TopicsConfig(), "QM1")
    settings = _SAFE | changed
    cluster = SimpleNamespace(settings_of=lambda _: settings, copies_of=lambda _: copies, logs=lambda _: ["t/0"])
    monkeypatch.setattr(check, "_cluster", cluster)
    found = check._there(Routes(KafkaConfig()).publications[0])
    assert (found.ok, "".join(found.mend)[-len(mend) :] if mend else found.mend) == (ok, mend or ())


@needs_nats
def test_a_nats_server_where_nothing_is_missing(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        result, found = _check(tmp_path, "--topics", server.url)
        native = NatsNative(server.url)
        left = native.run(native.jetstream.streams_info())
        native.close()
    assert result.exit_code == 0, result.output
    assert found["stream QPUBSUB"]["what"] == "not there; run makes it"
    assert found["publishing on mq.qpubsub.qpubsub-QM1.check"]["what"] == "allowed"
    assert "sync_interval: always" in found["power failure of the server"]["what"]
    assert left == [], "what check made is removed"


@needs_nats
def test_a_nats_server_that_forbids_tells_the_line_for_its_file(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text('[topics]\nuser = "bridge"\npassword_env = "BRIDGE_PASSWORD"\npatience_s = 1\n')
    rules = '{ publish: { deny: ["mq.>"] } }'
    users = f"authorization {{ users: [ {{ user: bridge, password: secret, permissions: {rules} }} ] }}"
    with nats_server(tmp_path / "nats", users) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIDGE_PASSWORD", "secret")
        result, found = _check(tmp_path, "--topics", server.url, "--config", str(config))
    assert result.exit_code == 1
    forbidden = found["publishing on mq.qpubsub.qpubsub-QM1.check"]
    line = 'permissions: { publish: ["mq.>", "$KV.QPUBSUB.>", "$JS.API.>"], subscribe: ["_INBOX.>"] }'
    assert (forbidden["ok"], forbidden["mend"]) == (False, [line])
    assert "permissions violation" in forbidden["what"]
    assert found["stream KV_QPUBSUB"]["ok"]


def test_a_nats_server_that_is_not_there(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text("[topics]\npatience_s = 0.5\n")
    result, found = _check(tmp_path, "--topics", "nats://127.0.0.1:1", "--config", str(config))
    assert result.exit_code == 1
    assert "cannot be used" in found["connection to nats://127.0.0.1:1"]["what"]
