"""IBM MQ's REST interface in the console: who is answered, errors in IBM's form, resources, messages, MQSC."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from commands.console.access import HEADERS, ConsoleOptions
from commands.qmgr.processor import Processor
from tests.commands.cli_runs import run
from tests.commands.console.places import NOW, Opened, filled, opened
from tests.commands.console.served import served

V2 = "/ibmmq/rest/v2"
MQSC = f"{V2}/admin/action/qmgr/QM1/mqsc"
QUEUES = f"{V2}/admin/qmgr/QM1/queue"
BOARD = f"{V2}/messaging/qmgr/QM1/queue/REST.Q"
CSRF = {"ibm-mq-rest-csrf-token": ""}
TEXT = {**CSRF, "content-type": "text/plain;charset=utf-8"}


def _basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Opened]:
    filled(tmp_path)
    with opened(tmp_path, ConsoleOptions("127.0.0.1", 8414, write=True)) as made:
        yield made


@pytest.fixture
def client(console: Opened) -> TestClient:
    return console.client


def _command(text: str) -> dict[str, Any]:
    return {"type": "runCommand", "parameters": {"command": text}}


def _json(command: str, qualifier: str, name: str = "", **more: Any) -> dict[str, Any]:
    named = {"name": name} if name else {}
    return {"type": "runCommandJSON", "command": command, "qualifier": qualifier, **named, **more}


REFUSED: list[tuple[str, str, str, dict[str, Any], int, str]] = [
    ("no-token", "POST", MQSC, {"json": _command("PING QMGR")}, 403, "MQWB0100E"),
    ("host", "GET", f"{V2}/admin/qmgr", {"headers": {"host": "evil.example"}}, 421, "MQWB0000E"),
    ("qmgr", "GET", f"{V2}/admin/qmgr/QM2", {}, 404, "MQWB0009E"),
    ("version", "GET", "/ibmmq/rest/v9/admin/qmgr", {}, 404, "MQWB0000E"),
    ("path", "GET", f"{V2}/nothing", {}, 404, "MQWB0000E"),
    ("method", "PUT", MQSC, {"headers": CSRF}, 405, "MQWB0000E"),
    ("no-json", "POST", MQSC, {"headers": CSRF, "content": b"{"}, 400, "MQWB0000E"),
    ("deep", "POST", MQSC, {"headers": CSRF, "content": b"[" * 100_000}, 400, "MQWB0000E"),
    ("half", "POST", QUEUES, {"headers": CSRF, "content": b'{"name": "\\ud800"}'}, 400, "MQWB0000E"),
    ("type", "POST", MQSC, {"headers": CSRF, "json": {"type": "x"}}, 400, "MQWB0000E"),
    ("query", "GET", f"{QUEUES}?filter=x", {}, 400, "MQWB0000E"),
    ("attribute", "GET", f"{QUEUES}?attributes=cluster", {}, 400, "MQWB0000E"),
    ("no-queue", "GET", f"{QUEUES}/NONE", {}, 404, "MQWB0030E"),
    ("exists", "POST", QUEUES, {"headers": CSRF, "json": {"name": "BOARD"}}, 400, "MQWB0004E"),
    ("unknown", "POST", QUEUES, {"headers": CSRF, "json": {"name": "N", "cluster": {"name": "C"}}}, 400, "MQWB0000E"),
    ("content", "POST", f"{BOARD}/message", {"headers": CSRF, "content": b"x"}, 415, "MQWB0000E"),
    ("utf-8", "POST", f"{BOARD}/message", {"headers": TEXT, "content": b"\xff"}, 400, "MQWB0000E"),
    ("header", "POST", f"{BOARD}/message", {"headers": TEXT | {"ibm-mq-md-format": "x"}}, 400, "MQWB0000E"),
    ("properties", "POST", f"{BOARD}/message", {"headers": TEXT | {"ibm-mq-usr": "x"}}, 400, "MQWB0000E"),
    ("missing", "GET", f"{BOARD}/message", {}, 404, "MQWB0004E"),
    ("no-text", "GET", f"{V2}/messaging/qmgr/QM1/queue/SYSTEM.DEAD.LETTER.QUEUE/message", {}, 501, "MQWB0000E"),
]


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "number"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_is_refused_is_an_error_in_ibms_form(
    method: str, path: str, given: dict[str, Any], status: int, number: str, client: TestClient
) -> None:
    answer = client.request(method, path, **given)
    assert answer.status_code == status, answer.text
    (error,) = answer.json()["error"]
    assert (error["msgId"], error["message"].startswith(f"{number}: ")) == (number, True)
    assert {"type", "explanation", "action"} <= error.keys()
    assert "Traceback" not in answer.text


def test_without_write_it_shows_and_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as made:
        client = made.client
        shown = client.post(MQSC, headers=CSRF, json=_command("DISPLAY QLOCAL(BOARD)"))
        assert shown.json()["overallCompletionCode"] == 0
        for method, path, body in (
            ("POST", MQSC, json.dumps(_command("DEFINE QLOCAL(N)")).encode()),
            ("DELETE", f"{QUEUES}/BOARD", b""),
            ("POST", f"{BOARD}/message", b"x"),
            ("DELETE", f"{BOARD}/message", b""),
            ("POST", f"{V2}/messaging/qmgr/QM1/topic/a/message", b"x"),
        ):
            answer = client.request(method, path, headers=TEXT, content=body)
            assert (answer.status_code, answer.json()["error"][0]["msgId"]) == (403, "MQWB0103E"), path
        assert client.get(QUEUES).headers["cache-control"] == HEADERS["Cache-Control"]


def test_who_has_a_password_may_come_and_authority_records_count(tmp_path: Path) -> None:
    filled(tmp_path)
    known = {"alice": "right", "bob": "builder"}
    options = ConsoleOptions("127.0.0.1", 8414, write=True, is_right=lambda user, word: known.get(user) == word)
    with opened(tmp_path, options) as made:
        client, url = made.client, f"{V2}/admin/qmgr"
        for headers in ({}, _basic("alice", "wrong"), {"authorization": "Basic !"}, {"cookie": "LtpaToken2=x"}):
            answer = client.get(url, headers=headers)
            assert (answer.status_code, answer.json()["error"][0]["msgId"]) == (401, "MQWB0104E")
        assert client.get(url, headers=_basic("alice", "right")).status_code == 200
        login = f"{V2}/login"
        assert client.post(login, json={"username": "alice", "password": "no"}).status_code == 401
        assert client.post(login, json={"username": "alice", "password": "right"}).status_code == 204
        assert client.get(login).json() == {"user": [{"name": "alice", "role": ["MQWebAdmin"]}]}
        # With the cookie alone, and not without the header.
        assert client.post(MQSC, json=_command("PING QMGR")).status_code == 403
        grants = "SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('alice') AUTHADD(CONNECT, DSP)\n"
        grants += "SET AUTHREC PROFILE(BOARD) OBJTYPE(QUEUE) PRINCIPAL('alice') AUTHADD(DSP, BROWSE)\n"
        assert run("mqsc", "-m", "QM1", "--home", str(tmp_path), stdin=grants).code == 0
        refused = client.post(MQSC, headers=CSRF, json=_json("delete", "qlocal", "BOARD")).json()
        assert refused["commandResponse"][0]["reasonCode"] == 2035
        assert [each["name"] for each in client.get(QUEUES).json()["queue"]] == ["BOARD"]
        message = f"{V2}/messaging/qmgr/QM1/queue/BOARD/message"
        assert client.post(message, headers=TEXT, content=b"x").json()["error"][0]["reasonCode"] == 2035
        assert client.get(message, headers=_basic("bob", "builder")).status_code == 403
        assert client.delete(login, headers=CSRF).status_code == 204
        client.cookies.clear()
        assert client.get(url).status_code == 401


def test_mqsc_as_text_and_as_json(client: TestClient) -> None:
    def post(body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(MQSC, headers=CSRF, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    made = _json(
        "define", "ql", "Mixed.Case", parameters={"replace": "yes", "share": "no", "maxdepth": 7, "descr": "x"}
    )
    assert post(made) == {
        "commandResponse": [{"completionCode": 0, "reasonCode": 0}],
        "overallCompletionCode": 0,
        "overallReasonCode": 0,
    }
    asked = _json("display", "qlocal", "Mixed*", responseParameters=["maxdepth", "share", "descr"])
    assert post(asked)["commandResponse"] == [
        {
            "completionCode": 0,
            "reasonCode": 0,
            "parameters": {"queue": "Mixed.Case", "type": "QLOCAL", "maxdepth": 7, "share": "NO", "descr": "x"},
        }
    ]
    text = post(_command("DISPLAY QLOCAL('Mixed.Case') MAXDEPTH"))["commandResponse"][0]["text"]
    assert text[0].startswith("AMQ8409")
    assert "MAXDEPTH(7)" in " ".join(text)
    where = {"where": "maxdepth lt 10"}
    found = post(_json("display", "queue", "*", parameters=where, responseParameters=["all"]))
    assert [each["parameters"]["queue"] for each in found["commandResponse"]] == ["Mixed.Case"]
    missing = post(_json("display", "sub", "none", responseParameters=["all"]))
    assert (missing["commandResponse"][0]["reasonCode"], missing["overallReasonCode"]) == (2428, 3008)
    assert missing["commandResponse"][0]["message"][0].startswith("AMQ8147")
    wrong = post(_command("DEFINE QLOCAL("))
    assert (wrong["overallCompletionCode"], wrong["commandResponse"][0]["completionCode"]) == (2, 2)


def test_queues_as_resources(client: TestClient) -> None:
    body = {
        "name": "REST.Q",
        "general": {"description": "d"},
        "storage": {"maximumDepth": 5},
        "extended": {"allowSharedInput": False},
    }
    assert client.post(QUEUES, headers=CSRF, json=body).status_code == 201
    alias = {"name": "REST.A", "type": "alias", "alias": {"targetName": "REST.Q"}}
    assert client.post(QUEUES, headers=CSRF, json=alias).status_code == 201
    changed = {"general": {"inhibitPut": True}, "applicationDefaults": {"messagePersistence": "persistent"}}
    assert client.patch(f"{QUEUES}/REST.Q", headers=CSRF, json=changed).status_code == 204
    (shown,) = client.get(
        f"{QUEUES}/REST.Q?attributes=general,storage.maximumDepth,extended.allowSharedInput&status=*"
    ).json()["queue"]
    assert shown == {
        "name": "REST.Q",
        "type": "local",
        "general": {"description": "d", "inhibitPut": True, "inhibitGet": False, "isTransmissionQueue": False},
        "storage": {"maximumDepth": 5},
        "extended": {"allowSharedInput": False},
        "status": {"currentDepth": 0, "openInputCount": 0, "openOutputCount": 0, "oldestMessageAge": 0},
    }
    listed = client.get(f"{QUEUES}?name=REST*&type=alias").json()
    assert listed == {"queue": [{"name": "REST.A", "type": "alias"}]}
    for name in ("REST.A", "REST.Q"):
        assert client.delete(f"{QUEUES}/{name}", headers=CSRF).status_code == 204
    assert client.get(f"{QUEUES}?name=REST*").json() == {"queue": []}


def test_subscriptions_channels_and_queue_managers(client: TestClient) -> None:
    (sub,) = client.get(f"{V2}/admin/qmgr/QM1/subscription/results?attributes=destination,general").json()[
        "subscription"
    ]
    assert sub["resolvedTopicString"] == "Sport/#"
    assert (sub["destination"]["name"], sub["general"]["isDurable"]) == ("BOARD", True)
    channels = client.get(f"{V2}/admin/qmgr/QM1/channel").json()["channel"]
    assert {"name": "SYSTEM.DEF.SVRCONN", "type": "serverConnection"} in channels
    (qmgr,) = client.get(f"{V2}/admin/qmgr/QM1?status=*").json()["qmgr"]
    assert (qmgr["name"], qmgr["state"], qmgr["status"]["connectionCount"]) == ("QM1", "endedNormally", 0)


def test_messages_are_put_browsed_listed_and_got(client: TestClient) -> None:
    correl_id = "0" * 46 + "ab"
    about = {
        "ibm-mq-md-correlationId": correl_id,
        "ibm-mq-md-expiry": "60000",
        "ibm-mq-md-persistence": "persistent",
        "ibm-mq-md-replyTo": "ANSWERS@QM1",
    }
    sent = client.post(f"{BOARD}/message", headers=TEXT | about, content="Grüße".encode())
    assert sent.status_code == 201
    msg_id = sent.headers["ibm-mq-md-messageId"]
    client.post(f"{BOARD}/message", headers=TEXT, content=b"second")
    assert client.get(f"{BOARD}/messagelist?limit=1").json() == {
        "messages": [{"messageId": msg_id, "correlationId": correl_id, "format": "MQSTR"}]
    }
    for method in ("GET", "DELETE"):
        got = client.request(method, f"{BOARD}/message?messageId={msg_id}", headers=CSRF)
        assert (got.status_code, got.text, got.headers["content-type"]) == (200, "Grüße", "text/plain;charset=utf-8")
        assert got.headers["ibm-mq-md-persistence"] == "persistent"
        assert got.headers["ibm-mq-md-correlationId"] == correl_id
        assert got.headers["ibm-mq-md-replyTo"] == "ANSWERS@QM1"
    assert client.delete(f"{BOARD}/message?messageId={msg_id}&wait=0", headers=CSRF).status_code == 204
    v3 = BOARD.replace("v2", "v3")
    third = client.post(f"{v3}/message", headers=TEXT | {"ibm-mq-md-priority": "7"}, content=b"third")
    got = client.get(f"{v3}/message?messageId={third.headers['ibm-mq-md-messageId']}")
    assert (got.text, got.headers["ibm-mq-md-priority"]) == ("third", "7")
    assert third.headers["ibm-mq-md-messageId"].startswith("ID:")


def test_a_publication_by_rest_is_delivered(console: Opened) -> None:
    topic = f"{V2}/messaging/qmgr/QM1/topic/Sport%2FSoccer/message"
    before = console.store().depth("BOARD")
    answer = console.client.post(topic, headers=TEXT | {"ibm-mq-pmo-retain": "true"}, content=b"3:1")
    assert answer.status_code == 201
    with console.store() as store:
        Processor(store, lambda: NOW).drain()
        assert store.depth("BOARD") == before + 1
        assert any(r.publication.message.body == b"3:1" for r in store.load_state()[2])


def test_pymqrest_administers_it(tmp_path: Path) -> None:
    """Phillip Moore's client of this interface, from the registry; it needs Python 3.12 or later."""
    pymqrest = pytest.importorskip("pymqrest")
    filled(tmp_path)
    with served(tmp_path, write=True, is_right=lambda user, word: (user, word) == ("admin", "pw")) as url:
        for credentials in (pymqrest.BasicAuth("admin", "pw"), pymqrest.LTPAAuth("admin", "pw")):
            session = pymqrest.MQRESTSession(f"{url}/ibmmq/rest/v2", "QM1", credentials=credentials)
            changed = session.ensure_qlocal("PY.Q", {"max_queue_depth": 9, "description": "by pymqrest"})
            session.define_topic("PY.T", {"topic_string": "py/mqrest", "replace": "yes"})
            (queue,) = session.display_queue("PY.*")
            assert (queue["queue_name"], queue["max_queue_depth"], queue["description"]) == ("PY.Q", 9, "by pymqrest")
            (topic,) = session.display_topic("PY.T", response_parameters=["topic_string"])
            assert topic["topic_string"] == "py/mqrest"
            assert session.display_queue("*", where="max_queue_depth EQ 9", response_parameters=["max_queue_depth"])
            assert session.display_qmgr()["queue_manager_name"] == "QM1"
        assert changed.action.name == "UNCHANGED"
        with pytest.raises(pymqrest.MQRESTCommandError) as refused:
            session.delete_qlocal("NONE")
        assert refused.value.payload["commandResponse"][0]["reasonCode"] == 2085
        session.delete_qlocal("PY.Q", request_parameters={"purge": "yes"})
        session.delete_topic("PY.T")
    shown = run("mqsc", "-m", "QM1", "--home", str(tmp_path), stdin="DISPLAY QUEUE(PY*)\n").out
    assert "AMQ8147" in shown
