"""The pack of a change board: applications, folded reasons, sums, small pages, and a runbook that can be followed."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from commands.network.estate_file import TableFileError, TomlLines, parsed
from migrate.estate.pack.collecting import THE_REST, Applications, parse_applications
from migrate.estate.records import FATES, BrokerFiles, BrokerState, ItemRow, Owner, Record, packed
from migrate.ledger import Reason, Result, Severity, Sums
from tests.browser import chromium, needs_chromium
from tests.commands.cli_runs import run
from tests.html_pages import check_page
from tests.migrate.estate.generated import EstateSize, write_estate
from tests.migrate.estate.test_estate import Place

MAPPING = """\
[[application]]
name = "Trading desk"
queues = ["DESK.", "QUOTES.IN"]
users = ["desk*"]

[[application]]
name = "Overnight"
queues = ["DESK.NIGHT."]
programs = ["nightfeed"]
"""


def mapped(text: str = MAPPING) -> Applications:
    return Applications(parse_applications(parsed(text, "a.toml"), TomlLines(text, "a.toml"), "a.toml"))


OWNERS = [
    ("queue", Owner("DESK.1.Q"), "Trading desk"),
    ("longest-prefix", Owner("DESK.NIGHT.1"), "Overnight"),
    ("whole-name", Owner("QUOTES.IN"), "Trading desk"),
    ("queue-over-user", Owner("PAY.1.Q", "desk7"), "PAY"),
    ("user", Owner("", "desk7"), "Trading desk"),
    ("program", Owner("", "x", "nightfeed"), "Overnight"),
    ("found-queue", Owner("PAY.1.Q"), "PAY"),
    ("no-period", Owner("PAYQ"), "PAYQ"),
    ("user-of-one-application", Owner("", "pay1"), "PAY"),
    ("user-of-two", Owner("", "both"), "user both"),
    ("unknown-program", Owner("", "both", "feedd"), "program feedd"),
    ("queue-of-a-stream", Owner("Sport"), THE_REST),
    ("system-queue", Owner("SYSTEM.BROKER.CONTROL.QUEUE"), THE_REST),
    ("nobody", Owner(), THE_REST),
]


@pytest.mark.parametrize(("owner", "name"), [c[1:] for c in OWNERS], ids=[c[0] for c in OWNERS])
def test_whose_an_item_is(owner: Owner, name: str) -> None:
    applications = mapped()
    applications.learn([Owner("PAY.1.Q", "pay1"), Owner("PAY.2.Q", "both"), Owner("RISK.1.Q", "both")], {"Sport"})
    assert applications.name_of(owner, {"Sport"}) == name


MISTAKES = [
    (('[[application]]\nname = "Over', '[[aplication]]\nname = "Over'), "line 6: there is no key aplication; did you"),
    (('queues = ["DESK."', 'queus = ["DESK."'), "line 3: there is no key queus; did you mean queues?"),
    (('"Overnight"', '"Trading desk"'), "line 7: another application has the name Trading desk"),
    (('users = ["desk*"]', 'users = "desk*"'), "line 4: users: input should be a valid tuple"),
]


@pytest.mark.parametrize(("change", "words"), MISTAKES)
def test_a_mistake_in_the_mapping_is_named(change: tuple[str, str], words: str) -> None:
    with pytest.raises(TableFileError) as raised:
        mapped(MAPPING.replace(*change))
    assert words in str(raised.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    write_estate(tmp_path, EstateSize(brokers=3, largest=1, most=80, few=30))
    place = Place(tmp_path)
    assert place.estate("plan").code == 1
    return place


def test_every_item_is_in_one_application(place: Place) -> None:
    out = place.directory / "board"
    ran = place.estate("pack", "--out", str(out), "--json")
    assert ran.code == 0
    said = json.loads(ran.out)
    status = place.json("status")
    assert said["sums"] == status["sums"]
    for word in ("items", "migrated", "changed", "refused", "left"):
        assert sum(each[word] for each in said["applications"]) == status["sums"][word]
    files = sorted((out / "applications").glob("*.csv"))
    assert len(files) == len(said["applications"]) == len(list((out / "applications").glob("*.md")))
    results: Counter[str] = Counter()
    keys = set()
    for path in files:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                results[row["result"]] += 1
                keys.add((row["queue_manager"], row["kind"], row["number"]))
    assert results == Counter({str(r): status["sums"][str(r)] for r in Result if status["sums"][str(r)]})
    assert len(keys) == status["sums"]["items"]
    page = (out / "pack.html").read_text()
    check_page(page)
    assert "routing exits are gone" in page


def test_losses_first_and_identical_reasons_once(place: Place) -> None:
    out = place.directory / "board"
    place.estate("pack", "--out", str(out))
    text = (out / "applications" / "queue-managers-themselves.md").read_text()
    exits = re.findall(r"^- (\d+) attribute, refused: error: routing exits are gone", text, re.MULTILINE)
    assert exits == ["2"], "one line for the brokers with state files"
    desk = (out / "applications" / "DESK.md").read_text()
    assert len(desk.splitlines()) < 70, "one page"
    assert desk.index("What is lost") < desk.index("What has another name") < desk.index("Sign-off")


def test_the_names_of_a_file(place: Place) -> None:
    mapping = place.directory / "applications.toml"
    mapping.write_text('[[application]]\nname = "Trading / desk"\nqueues = ["DESK.", "PAY."]\n')
    out = place.directory / "board"
    ran = place.estate("pack", "--out", str(out), "--applications", str(mapping), "--json")
    names = {each["application"] for each in json.loads(ran.out)["applications"]}
    assert "Trading / desk" in names
    assert not {"DESK", "PAY"} & names
    assert (out / "applications" / "Trading-desk.md").is_file()
    mapping.write_text("")
    ran = place.estate("pack", "--out", str(out), "--applications", str(mapping))
    assert ran.code == 2
    assert "it has no [[application]]" in ran.talk
    assert (out / "applications" / "Trading-desk.md").is_file(), "the earlier pack is as it was"


def test_what_is_not_in_the_pack_is_said(place: Place) -> None:
    text = (place.directory / "estate.toml").read_text()
    more = '\n[[queue_manager]]\nname = "LATE"\nsource = "late.json"\n\n[[queue_manager]]\nname = "NEVER"\n'
    (place.directory / "estate.toml").write_text(text + more)
    ran = place.estate("pack", "--out", str(place.directory / "board"))
    assert ran.code == 1
    assert "without a plan, and not in the pack: LATE\n" in ran.talk
    assert "Without a plan, and not part of this: LATE, NEVER." in (place.directory / "board/runbook.md").read_text()


BY_HAND = ("Stop the ", "Wait until ", "Take the sources of wave", "See that `qpubsub estate diff", "Start the ")


def steps_of(text: str, before: str) -> list[str]:
    """The numbered steps below the heading or sentence *before*."""
    _, _, rest = text.partition(f"{before}\n")
    found = re.findall(r"^(\d+)\. (.*)$", rest.partition("\n## ")[0], re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [step for _, step in found]


def follow(steps: list[str], codes: tuple[int, ...] = (0,), pack: Path | None = None) -> list[str]:
    """Do what the steps say; the commands that were run. pack: where its files are."""
    done = []
    for step in steps:
        if (found := re.match(r"`(sha256sum [^`]+)` in the directory of this pack", step)) is not None:
            assert pack is not None
            subprocess.run(shlex.split(found[1]), cwd=pack, check=True, stdout=subprocess.DEVNULL)
            done.append("sha256sum")
            continue
        command = re.match(r"`qpubsub ([^`]+)`", step)
        if command is None:
            assert step.startswith(BY_HAND), f"nobody knows how to do this: {step}"
            continue
        words = shlex.split(command[1])
        ran = run(*words)
        assert ran.code in codes, (step, ran.talk)
        if words[1] in ("verify", "status"):
            assert ran.code == 0, (step, ran.talk)
        done.append(words[1])
    return done


def test_the_runbook_can_be_followed_and_taken_back(place: Place) -> None:
    for name in ("QM000", "QM001", "QM002"):
        assert run("create", name, "--home", str(place.home)).code == 0
    before = {name: place.known(name) for name in ("QM000", "QM001", "QM002")}
    place.estate("pack", "--out", str(place.directory / "board"))
    book = (place.directory / "board" / "runbook.md").read_text()
    done = follow(steps_of(book, "## In this order"), codes=(0, 1), pack=place.directory / "board")
    assert done == ["sha256sum", "rehearse", *("plan", "apply", "verify") * 2, "status"]
    assert set(place.states().values()) == {"verified"}
    done = follow(steps_of(book, "To take a wave back, the last one first:"))
    assert done == ["undo", "undo"]
    assert {name: place.known(name) for name in before} == before
    ran = place.estate("pack", "--out", str(place.directory / "board"))
    assert ran.code == 1
    assert "undone, to be planned again before they can be applied: QM000, QM001, QM002" in ran.talk


OVERFLOWING = """[...document.querySelectorAll("main *"), document.documentElement]
    .filter(each => ["auto", "scroll"].includes(getComputedStyle(each).overflowX) || each === document.documentElement)
    .filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent.slice(0, 60))"""


@needs_chromium
@pytest.mark.slow
def test_no_column_is_cut_off(place: Place, tmp_path: Path) -> None:
    """On a laptop and on a phone, in the pack and in the reports."""
    place.estate("pack", "--out", str(place.directory / "board"))
    pages = [place.directory / "board" / "pack.html", *place.directory.glob("migration/*/plans/*/report.html")]
    assert len(pages) == 4
    with chromium(tmp_path / "chromium") as browser:
        for page, width in product(pages, (1280, 390)):
            browser.open(page, width=width)
            assert browser.ask(OVERFLOWING) == [], (page, width)


def test_the_runbook_names_the_checklists_of_files_for_ibm_mq(place: Place) -> None:
    place.estate("plan", "--again", "--scripts", "--only", "QM001")
    place.estate("pack", "--out", str(place.directory / "board"))
    book = (place.directory / "board" / "runbook.md").read_text()
    (path,) = re.findall(r"Follow `([^`]+)` for queue manager QM001", book)
    assert "## In this order" in Path(path).read_text()


@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_page_of_many_subscriptions_is_below_1_mb(count: int, tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_text('[[queue_manager]]\nname = "QM1"\nsource = "none"\n')
    results = [Result.REFUSED, Result.CHANGED, Result.LEFT, Result.MIGRATED]
    rows = [
        ItemRow(
            "subscription",
            number + 1,
            f"subscription named sub{number} to Prices/{number} on Sport for APP{number % 2_000}.{number}.Q",
            f"{number:032x}",
            f"made.jsonl, record {number}",
            results[number % 4],
            f"subscription [{number}]",
            (Reason(f"reason {number % 5_000} of user u{number}", Severity.WARNING, ("P09",)),),
            Owner(f"APP{number % 2_000}.{number}.Q", f"u{number}"),
        )
        for number in range(count)
    ]
    files = BrokerFiles(tmp_path, "QM1")
    sums = Sums.of((row.result for row in rows), len(rows))
    files.write_plan(1, {FATES: packed(rows)})
    files.write_record(Record(qmgr="QM1", state=BrokerState.PLANNED, at="", plan=1, sums=sums))
    out = tmp_path / "board"
    assert Place(tmp_path).estate("pack", "--out", str(out)).code == 0
    pages = [out / "pack.html", *(out / "applications").glob("*.md"), out / "runbook.md"]
    assert len(pages) == 2_002
    assert all(page.stat().st_size < 1_000_000 for page in pages)
    check_page((out / "pack.html").read_text())
    csv_rows = sum(len(path.read_text().splitlines()) - 1 for path in (out / "applications").glob("*.csv"))
    assert csv_rows == count


def test_a_plan_whose_items_are_not_those_of_its_sums(place: Place) -> None:
    files = BrokerFiles(place.directory, "QM000")
    record = files.record()
    assert record is not None
    sums = record.sums.model_copy(update={"items": record.sums.items + 1, "migrated": record.sums.migrated + 1})
    files.write_record(record.model_copy(update={"sums": sums}))
    ran = place.estate("pack", "--out", str(place.directory / "board"))
    assert ran.code == 2
    assert "QM000: the items of the plan are not those of its sums" in ran.talk
    assert not (place.directory / "board" / "pack.html").exists()
