"""The pages as JSON, what describes them, and messages as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from commands.console.pages import API_PAGES, PARAMETERS, description
from commands.console.server import address
from rfh2.captures import read_captures
from tests.commands.console.places import Opened, filled, opened

ASKED = {
    "/api/topic": {"topic": "Sport/Soccer"},
    "/api/queue": {"name": "BOARD"},
    "/api/why": {"ask": "1"},
    "/api/topics": {"list": "1"},
}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    home = tmp_path_factory.mktemp("home")
    filled(home)
    with opened(home) as made:
        yield made


def _told(client: TestClient, path: str, **query: object) -> dict[str, object]:
    answer = client.get(address(path, **query))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    found = answer.json()
    assert isinstance(found, dict)
    return found


def _message(console: Opened) -> dict[str, object]:
    rows = _told(console.client, "/api/queue", name="BOARD")["rows"]
    assert isinstance(rows, list)
    return {"queue": "BOARD", "seq": rows[0]["row"]["seq"]}


def _parameters(console: Opened, path: str) -> dict[str, object]:
    if path == "/api/message":
        return _message(console)
    if path == "/api/subscription":
        rows = _told(console.client, "/api/subscriptions")["rows"]
        assert isinstance(rows, list)
        return {"id": rows[0]["sub_id"]}
    return dict(ASKED.get(path, {}))


@pytest.mark.parametrize("path", API_PAGES)
def test_each_page_is_there_as_json_with_the_keys_that_the_description_names(path: str, console: Opened) -> None:
    told = _told(console.client, path, **_parameters(console, path))
    optional = {"nodes", "under", "behind"} if path == "/api/topics" else set()
    assert set(told) | optional == {"format", *API_PAGES[path].gives} | optional
    assert told["format"] == 1


def test_the_description_names_each_path_and_parameter() -> None:
    paths = description()["paths"]
    assert set(paths) == set(API_PAGES)
    assert {"/api/overview", "/api/queues", "/api/message", "/api/why"} <= set(paths)
    used = {name for page in API_PAGES.values() for name in page.asks}
    assert used == set(PARAMETERS)


def test_the_description_is_served(console: Opened) -> None:
    assert console.client.get("/api/openapi.json").json() == json.loads(json.dumps(description()))


def test_what_does_not_exist_is_404(console: Opened) -> None:
    answer = console.client.get("/api/queue?name=NO.SUCH.QUEUE")
    assert (answer.status_code, answer.json()) == (404, {"error": "There is no queue NO.SUCH.QUEUE."})


def test_values_are_those_of_the_page(console: Opened) -> None:
    status = _told(console.client, "/api/overview")["status"]
    assert isinstance(status, dict)
    assert status["qmgr"] == "QM1"
    why = _told(console.client, "/api/why", ask="1", publish="Sport/Soccer")
    assert why["delivered"] != []


# Messages of a queue: filter, preview, files


def test_a_queue_is_filtered_by_a_condition_and_shows_the_data(console: Opened) -> None:
    every = _told(console.client, "/api/queue", name="BOARD")["rows"]
    none = _told(console.client, "/api/queue", name="BOARD", where="topic = 'No/Such'")
    some = _told(console.client, "/api/queue", name="BOARD", where="topic like 'Sport/%'")["rows"]
    assert isinstance(every, list)
    assert isinstance(some, list)
    assert (none["rows"], none["behind"]) == ([], None)
    assert 0 < len(some) <= len(every)
    assert {type(each["data"]) for each in every} == {str}
    assert "character" in str(_told(console.client, "/api/queue", name="BOARD", where="topic =")["problem"])


@pytest.mark.parametrize("form", ["jsonl", "hex", "mqmd", "qload"])
def test_the_messages_of_a_queue_are_a_file(form: str, console: Opened, tmp_path: Path) -> None:
    answer = console.client.get(address("/queue/messages", name="BOARD", form=form))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="BOARD.')
    (tmp_path / "kept").write_bytes(answer.content)
    every = _told(console.client, "/api/queue", name="BOARD")
    assert [record.problem for record in read_captures(tmp_path / "kept")] == [None] * int(str(every["depth"]))


def test_one_message_is_its_bytes(console: Opened) -> None:
    about = _message(console)
    shown = _told(console.client, "/api/message", **about)
    answer = console.client.get(address("/queue/messages", name="BOARD", seq=about["seq"], form="raw"))
    assert answer.content.hex() == shown["hex"]


def test_a_file_of_what_is_gone_is_refused(console: Opened) -> None:
    assert console.client.get("/queue/messages?name=BOARD&seq=999999").status_code == 404
