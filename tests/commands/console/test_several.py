"""Several queue managers in one window: a list, and each below a path of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from commands.broker.objects import QueueManager
from commands.console.access import ConsoleOptions
from commands.console.pages import MENU
from commands.console.server import ConsoleHome
from commands.console.source import Source
from commands.qmgr.store import QueueManagerStore
from commands.terminal.users import groups_of
from tests.commands.console.places import ORIGIN, filled

NAMES = {"QM1": "/qm/QM1", "A/B%C": "/qm/A!2FB!25C"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    home: Path = tmp_path_factory.mktemp("home")
    filled(home)
    QueueManagerStore.create(home, QueueManager("A/B%C")).close()
    sources = {name: Source(partial(QueueManagerStore.open, home, name), groups_of) for name in NAMES}
    options = ConsoleOptions("127.0.0.1", 8414, True)
    with TestClient(ConsoleHome(options, sources).asgi(), base_url=ORIGIN, follow_redirects=False) as made:
        yield made
    for source in sources.values():
        source.close()


def test_all_queue_managers_are_listed(client: TestClient) -> None:
    page = client.get("/").text
    assert [there for there in NAMES.values() if f'href="{there}/"' not in page] == []


@pytest.mark.parametrize("there", NAMES.values())
@pytest.mark.parametrize("path", [page.path for page in MENU])
def test_a_page_leads_only_to_pages_of_its_own_queue_manager(there: str, path: str, client: TestClient) -> None:
    page = client.get(f"{there}{path}")
    assert page.status_code == 200
    links = set(re.findall(r'(?:href|action|data-level|data-more)="(/[^"]*)"', page.text))
    others = {f"{other}{path}" for other in NAMES.values()} | {"/"}
    assert {link for link in links - others if not link.startswith((f"{there}/", "/assets/"))} == set()


def test_a_form_acts_on_the_queue_manager_of_its_page(client: TestClient) -> None:
    page = client.get("/qm/A!2FB!25C/definitions").text
    token = re.search(r'name="token" value="(\w+)"', page)
    assert token is not None
    values = {"token": token[1], "script": "DEFINE QLOCAL(HERE)"}
    answer = client.post("/qm/A!2FB!25C/definitions/apply", data=values, headers={"Origin": ORIGIN})
    assert answer.headers["location"].startswith("/qm/A!2FB!25C/definitions?said=1%20command%20read")
    scripts = [client.get(f"{there}/definitions/mqsc").text for there in NAMES.values()]
    assert ["DEFINE QLOCAL('HERE')" in script for script in scripts] == [False, True]


def test_the_api_and_what_is_missing(client: TestClient) -> None:
    assert client.get("/qm/QM1/api/overview").json()["status"]["qmgr"] == "QM1"
    assert (client.get("/qm/QM9/").status_code, client.get("/nothing").status_code) == (404, 404)
