"""The console as a browser shows it: each page in light, dark and phone width; keys; news; 100,000 topics.

Screenshots are written to build/screenshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.counts import Counts
from commands.broker.objects import QueueManager
from commands.console.pages import MENU
from commands.console.server import address
from commands.qmgr.store import QueueManagerStore
from streams.operations import SubscriptionAdded
from streams.subscriptions import Subscription
from tests.browser import Browser, chromium, needs_chromium
from tests.commands.console.places import DEAD, HOSTILE, filled, hostile, publish
from tests.commands.console.served import served
from tests.waiting import until

pytestmark = [needs_chromium, pytest.mark.slow]

MANY = 100_000
MOST_ELEMENTS = 3_000
"""Elements of a page, however many rows there are."""

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ROW = "document.querySelector('.at')?.dataset.row"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def _until(browser: Browser, expression: str) -> None:
    """Wait until an expression is true, on this page or the next."""

    def holds() -> bool:
        # While another page is opened, there is nobody to ask.
        with suppress(RuntimeError):
            return bool(browser.ask(expression))
        return False

    until(holds, expression)


WINDOWS = [("light", 1200, False), ("dark", 1200, True), ("phone", 390, False)]


def test_each_page_in_light_in_dark_and_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    filled(tmp_path)
    pages = [(page.path, page.path.strip("/") or "overview") for page in MENU]
    pages += [("/topic?topic=Sport%2FSoccer", "topic"), (f"/queue?name={DEAD}", "queue"), ("/why?ask=1", "why-answers")]
    with served(tmp_path, write=True, with_history=True) as there:
        for path, name in pages:
            browser.visit(there + path)
            for kind, width, dark in WINDOWS:
                browser.look(width=width, dark=dark)
                browser.photograph(f"console-{name}-{kind}")
                assert browser.ask(OVERFLOW) <= 0, (path, kind)
            assert browser.complaints == [], path


def test_hostile_names_run_nothing_and_break_no_page(browser: Browser, tmp_path: Path) -> None:
    hostile(tmp_path)
    paths = ["/topics", "/topics?list=1", "/subscriptions", "/queues", "/why?ask=1"]
    paths += [address("/topic", topic=text) for text in HOSTILE]
    with served(tmp_path) as there:
        for at, path in enumerate(paths):
            browser.visit(there + path)
            assert browser.ask("document.querySelectorAll('script').length") == 1
            for kind, width, dark in (WINDOWS[0], WINDOWS[2]):
                browser.look(width=width, dark=dark)
                assert browser.ask(OVERFLOW) <= 0, (path, kind)
                if at < 4:
                    browser.photograph(f"console-hostile-{at}-{kind}")
            assert browser.complaints == [], path


def test_keys_lead_through_rows_and_pages(browser: Browser, tmp_path: Path) -> None:
    filled(tmp_path)
    with served(tmp_path) as there:
        browser.visit(f"{there}/queues?sort=name")
        names = browser.ask("[...document.querySelectorAll('[data-row]')].map(row => row.dataset.row)")
        for key in ("j", "j", "j", "k"):
            browser.press(key)
        assert browser.ask(ROW) == names[1]
        browser.press("?")
        assert browser.ask("document.getElementById('help').open")
        browser.press("Escape")
        browser.press("/")
        assert browser.ask("document.activeElement.name") == "q"
        browser.press("j")
        assert browser.ask("document.activeElement.value") == "j"
        browser.press("Escape")
        browser.press("Enter")
        # The script shows the button for the keys once it listens to them.
        is_there = f"document.querySelector('h1')?.textContent === {names[1]!r}"
        _until(browser, f"{is_there} && !document.getElementById('keys').hidden")
        browser.press("g")
        browser.press("t")
        _until(browser, "location.pathname === '/topics'")


def test_the_tree_opens_level_by_level_and_shows_news(browser: Browser, tmp_path: Path) -> None:
    filled(tmp_path)
    with served(tmp_path) as there:
        browser.visit(f"{there}/topics")
        assert browser.ask("document.querySelectorAll('#tree [data-row^=\"Sport/\"]').length") == 0
        browser.ask("document.querySelector('details[data-row=Sport]').open = true")
        _until(browser, "document.querySelectorAll('#tree [data-row^=\"Sport/\"]').length === 3")
        from commands.qmgr.processor import Processor

        with QueueManagerStore.open(tmp_path, "QM1") as store:
            publish(store, "Sport/Tennis")
            Processor(store, lambda: AT).drain()
        _until(browser, "document.querySelector('#tree [data-row=\"Sport/Tennis\"]') !== null")
        assert browser.ask("document.querySelector('details[data-row=Sport]').open")
        browser.photograph("console-tree-open")


def _many(home: Path) -> None:
    counts = Counts()
    with QueueManagerStore.create(home, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        topics = [f"Price/Fruit/{n % 977}/{n}" for n in range(MANY)]
        made = (
            Subscription(n.to_bytes(24, "big"), topic, f"Q{n % 5_000}", "QM1", AT) for n, topic in enumerate(topics)
        )
        unit.save_effects([SubscriptionAdded(each) for each in made])
        for n, topic in enumerate(topics):
            sub_id = n.to_bytes(24, "big")
            counts.add_published(topic, AT, n)
            counts.add_delivered(sub_id, AT, n * 7_919 % 1_000_003)
        unit.counters.add(counts)


@pytest.mark.nightly
def test_100000_topics_and_subscriptions_fill_no_page(browser: Browser, tmp_path: Path) -> None:
    _many(tmp_path)
    with served(tmp_path) as there:
        for path in ("/subscriptions?sort=-delivered", "/topics?sort=-published", "/topics?q=fruit/97", "/topics"):
            browser.visit(there + path)
            assert browser.complaints == []
            assert browser.ask("document.querySelectorAll('*').length") < MOST_ELEMENTS
        browser.ask("document.querySelector('#tree details').open = true")
        _until(browser, "document.querySelector('#tree a[data-more]') !== null")
        assert browser.ask("document.querySelectorAll('#tree .below [data-row]').length") == 200
        browser.ask("document.querySelector('#tree a[data-more]').click()")
        _until(browser, "document.querySelectorAll('#tree .below [data-row]').length === 400")
        browser.visit(f"{there}/subscriptions?sort=-delivered&first=99900")
        assert browser.ask("document.querySelectorAll('tbody tr').length") == 100
        assert "100,000" in browser.ask("document.querySelector('.pages').textContent")
        browser.photograph("console-many")
