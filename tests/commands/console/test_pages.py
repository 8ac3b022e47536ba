"""What the pages show, sort, search and cut; and that nothing that a program named becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from commands.broker.objects import QueueManager
from commands.cli.demo import demo_files
from commands.console.access import ConsoleOptions
from commands.console.pages import MENU, PAGES
from commands.console.server import address
from commands.console.source import LENGTHS_S, MOST_PERIODS, History, Tally
from commands.network.topology import NeighbourStatus, Relation
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.neighbours import NeighbourRecord
from rfh2 import Folder, Mqmd, Rfh2
from rfh2.distribution import VERSION
from tests.commands.cli_runs import run
from tests.commands.console.places import (
    DEAD,
    HOSTILE,
    LONGEST_NAME,
    MARKUP,
    NOW,
    ORIGIN,
    Opened,
    demo_timeline,
    filled,
    hostile,
    opened,
)
from tests.html_pages import PageParts

PARAMETERS = {
    "/topic": {"topic": "Sport/Soccer"},
    "/topics/level": {"under": "Sport"},
    "/queue": {"name": "BOARD"},
    "/why": {"ask": "1"},
}
"""What a page needs to show something."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    home = tmp_path_factory.mktemp("home")
    filled(home)
    with opened(home) as made:
        yield made


def _text(console: Opened, path: str, **query: object) -> str:
    answer = console.client.get(address(path, **query))
    assert answer.status_code == 200, answer.text
    return answer.text


def _words(page: str) -> str:
    return " ".join(" ".join(PageParts(page).words).split())


def _column(page: str, head: str) -> list[str]:
    cells = re.findall(rf'<td[^>]*data-head="{head}"[^>]*>(.*?)</td>', page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in cells]


# Those of one subscription and one message need a number, and are reached from their lists below.
BY_ADDRESS = [page.path for page in PAGES if page.path not in ("/subscription", "/message")]


@pytest.mark.parametrize("path", BY_ADDRESS)
def test_each_page_is_whole_and_loads_only_its_own(path: str, console: Opened) -> None:
    text = _text(console, path, **PARAMETERS.get(path, {}))
    parts = PageParts(text)
    assert parts.open == []
    assert parts.handlers == []
    assert all(link.startswith(("/", "http://127.0.0.1")) for link in parts.links), parts.links
    assert " style=" not in text
    assert [script for script in parts.scripts if script.strip()] == []


def test_all_pages_are_tried() -> None:
    assert len(BY_ADDRESS) == len(PAGES) - 2


def test_the_menu_has_a_key_for_each_page() -> None:
    assert len({page.key for page in MENU}) == len(MENU)
    assert len({page.path for page in PAGES}) == len(PAGES)


def test_links_name_the_parent_and_the_members_of_clusters(tmp_path: Path) -> None:
    QueueManagerStore.create(tmp_path, QueueManager("QM1", parent="QM0"), clock=lambda: NOW).close()
    with opened(tmp_path) as console:
        with console.store() as store, store.unit_of_work() as unit:
            unit.neighbours.save(NeighbourRecord("QM2", Relation.MEMBER, NeighbourStatus.ACTIVE, cluster="SALES"))
        words = _words(_text(console, "/links"))
    for row in ("QM0 PARENT INACTIVE", "QM2 MEMBER SALES ACTIVE"):
        assert row in words


def test_overview(console: Opened) -> None:
    words = _words(_text(console, "/"))
    for said in (
        "No processor is running.",
        "2 subscriptions",
        "2 retained publications",
        "1 dead letters",
        "2053 MQRC_Q_FULL",
        "SYSTEM.DEAD.LETTER.QUEUE",
    ):
        assert said in words, said


def test_topics_by_level_and_as_a_list(console: Opened) -> None:
    root = _words(_text(console, "/topics"))
    assert "Sport ■ SPORT" in root
    assert "Soccer" not in root
    below = _words(_text(console, "/topics/level", under="Sport"))
    assert below == "# ● 1 Golf ◆ retained 1 published Soccer ● 1 ◆ retained 1 published"
    assert _column(_text(console, "/topics", list=1, sort="-topic"), "topic") == ["Sport/Soccer", "Sport/Golf"]
    assert _column(_text(console, "/topics", q="gOLf"), "topic") == ["Sport/Golf"]


def test_a_topic_has_its_subscribers_and_what_it_retains(console: Opened) -> None:
    words = _words(_text(console, "/topic", topic="Sport/Soccer"))
    assert LONGEST_NAME in words
    assert "<b>2:1</b>" in words
    assert console.client.get("/topic?topic=Nothing").status_code == 404


def test_subscriptions_lead_to_all_attributes(console: Opened) -> None:
    page = _text(console, "/subscriptions", sort="-delivered")
    assert _column(page, "topic") == ["Sport/#", "Sport/Soccer"]
    assert _column(page, "delivered") == ["2", "1"]
    assert _column(_text(console, "/subscriptions", q="RESULTS"), "name") == ["results"]
    link = re.search(r"/subscription\?id=[0-9a-f]{48}", page)
    assert link is not None
    words = _words(console.client.get(link[0]).text)
    assert "dest queue BOARD" in words
    assert "wildcards" in words
    assert console.client.get("/subscription?id=xyz").status_code == 404


def test_queues_lead_to_messages_and_these_to_all_fields(console: Opened) -> None:
    queues = _text(console, "/queues", q="board")
    assert (_column(queues, "queue"), _column(queues, "messages")) == (["BOARD"], ["2"])
    queue = _text(console, "/queue", name="BOARD")
    assert [text.partition(":")[0] for text in _column(queue, "message")] == ["Publish", "Publish"]
    link = re.search(r"/message\?queue=BOARD&amp;seq=\d+", queue)
    assert link is not None
    words = _words(console.client.get(unescape(link[0])).text)
    assert "Publish: publishes 10 bytes on Sport/Soccer" in words
    assert "MsgType" in words
    assert console.client.get("/queue?name=NONE").status_code == 404
    assert console.client.get("/message?queue=BOARD&seq=999").status_code == 404


def test_streams(console: Opened) -> None:
    assert "SYSTEM.BROKER.DEFAULT.STREAM" in _column(_text(console, "/streams"), "stream")


def test_dead_letters_have_reason_and_destination(console: Opened) -> None:
    page = _text(console, "/dead-letters")
    assert _column(page, "for") == ["BOARD"] * 2
    assert _column(page, "reason")[1].startswith("2053 MQRC_Q_FULL")
    assert "Put again" not in page


def test_decode_shows_what_the_verb_prints(console: Opened) -> None:
    body = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>a &lt; b</Topic></psc>"),), format="MQSTR").encode()
    text = body.hex()
    form = {"text": text, "token": console.token("/decode"), "format": "hex", "explain": "1"}
    answer = console.client.post("/decode", data=form, headers={"origin": ORIGIN})
    shown = re.search(r'<pre class="decoded"[^>]*>(.*?)</pre>', answer.text, re.DOTALL)
    assert shown is not None
    printed = run("decode", "--explain", "--format", "hex", stdin=text).lines
    lines = unescape(re.sub(r"</?span[^>]*>", "", shown[1])).splitlines()
    # The first line names the source. Without a colour nothing pads a line.
    assert [line.rstrip() for line in lines[1:]] == printed[1:]


@pytest.mark.parametrize("text", ["this is not a message", "<script>", "\0\x1b[2J", "{" * 5000, "00"])
def test_decode_says_what_it_cannot_read(text: str, console: Opened) -> None:
    form = {"text": text, "token": console.token("/decode")}
    answer = console.client.post("/decode", data=form, headers={"origin": ORIGIN})
    assert answer.status_code == 200
    parts = PageParts(answer.text)
    assert [script for script in parts.scripts if script.strip()] == []
    assert re.search("error|No message", answer.text)


def test_a_paste_is_sent_as_it_is_and_bounded(console: Opened) -> None:
    """As %xx, a paste of some megabytes takes seconds to read, in which nobody else is answered."""
    assert 'enctype="multipart/form-data"' in console.client.get("/decode").text
    token = console.token("/decode")
    many = "{}\r\n" * 300_000
    sent = {"text": (None, many), "token": (None, token)}
    answer = console.client.post("/decode", files=sent, headers={"origin": ORIGIN})
    assert (answer.status_code, answer.text.count("{}\n") > 299_000) == (200, True)
    answer = console.client.post("/decode", data={"text": many, "token": token}, headers={"origin": ORIGIN})
    assert (answer.status_code, "longer" in answer.text or "more than" in answer.text) == (400, True)


def test_why_gives_the_answers_of_the_verb(console: Opened) -> None:
    found = _text(console, "/why", ask=1, publish="Sport/Soccer")
    assert _column(found, "result") == ["delivered", "delivered"]
    assert sorted(_column(found, "queue")) == [LONGEST_NAME, "BOARD"]
    printed = run("why", "-m", "QM1", "--home", str(console.home), "--publish", "Sport/Tennis", "--json").lines
    assert len(_column(_text(console, "/why", ask=1, publish="Sport/Tennis"), "why")) == len(printed)


NAMES = ("q", "sort", "first", "after", "topic", "name", "id", "seq", "at", "length", "where", "queue", "publish")


def test_time_travel_shows_what_inspect_prints(tmp_path: Path) -> None:
    filled(tmp_path)
    with demo_files() as demo:
        words = ("--setup", str(demo / "streams.mqsc"), str(demo / "capture.jsonl"))
        printed = [line.strip() for line in run("inspect", "--at", "5", *words).lines]
    with opened(tmp_path, None, demo_timeline) as console:
        page = _text(console, "/time-travel", seq=5)
        blocks = re.findall(r'<pre class="lines[^"]*">(.*?)</pre>', page, re.DOTALL)
        shown = [line.strip() for block in blocks for line in unescape(block).splitlines()]
        assert [line for line in printed if line not in ("", "Changed:", "Before:", "After:")] == shown
        forward = re.search(r'rel="next" href="([^"]*)"', page)
        assert forward is not None
        assert "seq 6, message 6 of 26" in _words(console.client.get(forward[1]).text)
        found = _words(_text(console, "/time-travel", at=4, where="command = 'DeregSub'", go="on"))
        assert re.search(r"seq \d+, message \d+ of 26, on \S+, \S+ \d+ \S+: DeregSub", found)
        assert "There is no such message" in _words(_text(console, "/time-travel", at=0, where="seq = 0", go="back"))
        assert "where" in _words(_text(console, "/time-travel", where="= =", go="on")).lower()
        assert console.client.get("/time-travel?seq=999").status_code == 404


HOSTILE_QUERIES = ["'", '"><script>', "%", "\\", "\x00", "-1", "9" * 400, "\u202e", "../..", "{{7*7}}"]


@pytest.mark.parametrize("text", HOSTILE_QUERIES)
def test_no_query_breaks_a_page(text: str, console: Opened) -> None:
    for page in PAGES:
        query = dict.fromkeys(
            ("q", "sort", "first", "after", "topic", "name", "id", "seq", "at", "length", "where"), text
        )
        answer = console.client.get(address(page.path, **query, go="on"))
        assert answer.status_code in (200, 404), (page.path, answer.text)
        assert "<script>" not in answer.text
        assert "\u202e" not in answer.text


@pytest.fixture(scope="module")
def deceived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    home = tmp_path_factory.mktemp("hostile")
    hostile(home)
    with opened(home) as made:
        yield made


DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def test_hostile_names_are_text_on_every_page(deceived: Opened) -> None:
    for page in PAGES:
        queries: list[dict[str, str]] = [{"ask": "1", "q": ""}]
        if page.path == "/topic":
            queries = [{"topic": text} for text in HOSTILE]
        elif page.path == "/queue":
            queries = [{"name": f"Q{number}"} for number in range(len(HOSTILE))]
        for query in queries:
            answer = deceived.client.get(address(page.path, **query))
            if page.path in ("/subscription", "/message"):
                assert answer.status_code == 404
                continue
            assert answer.status_code == 200, (page.path, query)
            parts = PageParts(answer.text)
            assert parts.handlers == []
            assert [script for script in parts.scripts if script.strip()] == []
            assert all(link.startswith(("/", "http://127.0.0.1")) for link in parts.links)
            assert not DANGEROUS.search(answer.text), (page.path, query)


def test_a_topic_of_10240_characters_is_cut_in_lists_and_whole_on_its_page(deceived: Opened) -> None:
    longest = next(text for text in HOSTILE if len(text) == 10_240)
    assert longest not in _text(deceived, "/subscriptions")
    assert "(10,240 characters)" in _text(deceived, "/subscriptions")
    assert "x" * 10_000 in _text(deceived, "/topic", topic=longest)


# Dead letters


def _console(home: Path, write: bool) -> ConsoleOptions:
    return ConsoleOptions("127.0.0.1", 8414, write=write)


def _again(console: Opened, **changed: str) -> tuple[int, str]:
    with console.store() as store:
        (seq,) = [message.seq for message in store.browse(DEAD)]
    token = console.token("/dead-letters") or console.token("/decode")
    form = {"queue": DEAD, "seq": str(seq), "token": token} | {k: v for k, v in changed.items() if k != "origin"}
    headers = {"origin": changed.get("origin", ORIGIN)}
    answer = console.client.post("/dead-letters/again", data=form, headers=headers)
    return answer.status_code, answer.headers.get("location", answer.text)


def test_a_dead_letter_is_put_again(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path, _console(tmp_path, write=True)) as console:
        assert "Put again" in _text(console, "/dead-letters")
        status, where = _again(console)
        assert status == 303
        assert "was put on BOARD." in _words(console.client.get(where).text)
        with console.store() as store:
            assert (store.depth(DEAD), store.depth("BOARD")) == (0, 3)
            assert [Mqmd.decode(message.md).user_identifier for message in store.browse("BOARD")].count("bob") == 1
        refused = _again_of(console, "1")
        assert "was not put again" in _words(console.client.get(refused).text)


def _again_of(console: Opened, seq: str) -> str:
    form = {"queue": DEAD, "seq": seq, "token": console.token("/decode")}
    answer = console.client.post("/dead-letters/again", data=form, headers={"origin": ORIGIN})
    return str(answer.headers["location"])


REFUSED = {
    "read-only": (False, {}),
    "no token": (True, {"token": ""}),
    "another's token": (True, {"token": "0" * 64}),
    "another's page": (True, {"origin": "http://evil.example"}),
    "a page of another port": (True, {"origin": "http://127.0.0.1:1"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_put_again_only_by_our_own_form_where_that_is_allowed(case: str, tmp_path: Path) -> None:
    write, changed = REFUSED[case]
    filled(tmp_path)
    with opened(tmp_path, _console(tmp_path, write=write)) as console:
        assert _again(console, **changed)[0] == 403
        with console.store() as store:
            assert store.depth(DEAD) == 1


SCRIPT = "DEFINE QLOCAL(NEW.QUEUE) MAXDEPTH(77)\nDEFINE NOTHING(X)\n"


def test_definitions_are_a_script_that_makes_them_elsewhere(console: Opened, tmp_path: Path) -> None:
    script = console.client.get("/definitions/mqsc")
    assert script.headers["content-disposition"] == 'attachment; filename="QM1.mqsc"'
    assert "DEFINE QLOCAL('BOARD')" in script.text
    (tmp_path / "kept.mqsc").write_text(script.text)
    home = ("--home", str(tmp_path / "qmgrs"))
    assert run("create", "QM2", *home).code == 0
    made = run("mqsc", "-m", "QM2", *home, str(tmp_path / "kept.mqsc"))
    assert made.code == 0, made.out[-500:]
    assert "QUEUE(BOARD)" in run("mqsc", "-m", "QM2", *home, stdin="DISPLAY QLOCAL(BOARD)").out


@pytest.mark.parametrize("write", [True, False])
def test_a_script_is_applied_where_that_is_allowed(write: bool, tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path, ConsoleOptions("127.0.0.1", 8414, write)) as console:
        page = console.client.get("/definitions").text
        token = re.search(r'name="token" value="(\w+)"', page)
        values = {"token": token[1] if token else "", "script": SCRIPT}
        answer = console.client.post("/definitions/apply", data=values, headers={"Origin": ORIGIN})
        said = unquote(answer.headers.get("location", ""))
        script = console.client.get("/definitions/mqsc").text
    assert ("DEFINE QLOCAL('NEW.QUEUE')" in script) is write
    assert ("2 commands read, 1 refused: line 2: AMQ8" in said) is write


def test_why_shows_what_is_kept_back_first_and_folds_the_rest(console: Opened) -> None:
    page = _text(console, "/why", ask="1")
    assert "<details" in page
    assert "nothing keeps publications from" in page
    assert console.client.get("/help").status_code == 200
    assert VERSION in page


def test_without_write_a_get_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path, _console(tmp_path, write=True)) as console:
        assert console.client.get("/dead-letters/again").status_code == 405


def test_many_subscriptions_come_in_pages(tmp_path: Path) -> None:
    from commands.broker.objects import QueueManager
    from streams.operations import SubscriptionAdded
    from streams.subscriptions import Subscription

    at = datetime(2026, 1, 1, tzinfo=UTC)
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store, store.unit_of_work() as unit:
        made = [Subscription(n.to_bytes(24, "big"), f"t/{n:04}", "Q", "QM1", at) for n in range(250)]
        unit.save_effects([SubscriptionAdded(each) for each in made])
    with opened(tmp_path) as console:
        found, path = [], "/subscriptions?sort=topic"
        for _ in range(3):
            page = console.client.get(path).text
            found += _column(page, "topic")
            path = unescape((re.search(r'rel="next" href="([^"]*)"', page) or ["", ""])[1])
        assert path == ""
        assert found == [f"t/{n:04}" for n in range(250)]


def test_history_keeps_increments_of_each_length() -> None:
    history, start = History(), datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(300):
        history.add(start + timedelta(seconds=5 * n), {"commands": 10 * n}, {"depth": n % 7})
    five, minute = (history.periods(length_s, ("commands", "depth")) for length_s in LENGTHS_S[:2])
    assert len(five) == MOST_PERIODS
    assert set(five.values()) == {(10, depth) for depth in range(7)}
    assert list(minute.values())[1] == (120, 6)
    # Counters of what was deleted are gone; and after a gap the old periods are.
    history.add(start + timedelta(seconds=2000), {"commands": 3})
    assert list(history.periods(5, ("commands",)).values())[-1] == (0,)
    assert min(history.periods(5, ())) > start + timedelta(seconds=2000 - 5 * MOST_PERIODS)


def test_history_counts_what_a_new_processor_did_from_its_start() -> None:
    history, start = History(), datetime(2026, 1, 1, tzinfo=UTC)
    for n, (since, count) in enumerate([("a", 70), ("a", 90), ("b", 26), ("c", 26), ("c", 27)]):
        history.add(start + timedelta(seconds=5 * n), {}, {}, Tally(since, {"commands": count}))
    assert list(history.periods(5, ("commands",)).values()) == [(0,), (20,), (26,), (26,), (1,)]


def test_errors_and_a_running_processor_are_shown(tmp_path: Path) -> None:
    filled(tmp_path)
    with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
        md = Mqmd(format="MQHRF2", put_appl_name=MARKUP[:28], msg_type=8)
        unit.put(
            "SYSTEM.BROKER.CONTROL.QUEUE", md.encode(), Rfh2((Folder.of("<psc><Command>No</Command></psc>"),)).encode()
        )
    run("run", "-m", "QM1", "--home", str(tmp_path), "--once")
    with opened(tmp_path) as console:
        page = _text(console, "/errors")
        assert _column(page, "program") == [MARKUP[:28].rstrip()]
        assert _column(page, "commands") == ["1"]
        assert "<script>" not in page
