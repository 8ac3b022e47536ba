"""estate.toml: what it may say, and that each mistake is named with its line and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.network.estate_file import Estate, TableFileError, parse_estate, read_estate

ESTATE = """\
[migration]
prefixes = { Sport = "Games/Sport" }

[[queue_manager]]
name = "HUB"
source = "sources/HUB"

[[queue_manager]]
name = "EDGE1"
parent = "HUB"
clusters = ["SALES"]
semantics = "v6"
setup = "EDGE1.mqsc"
source = ["sources/a.jsonl", "amqspsd=sources/b.txt"]
wave = 2

[[queue_manager]]
name = "LONER"

[[queue_manager]]
name = "SHOP"
clusters = ["SALES"]
broker = "BRK1"
"""


def estate(text: str = ESTATE) -> Estate:
    return parse_estate(text, Path("/est"), "/est/estate.toml")


def test_what_it_says() -> None:
    found = estate()
    assert found.names == ("HUB", "EDGE1", "LONER", "SHOP")
    assert found.waves == (1, 2)
    hub, edge, loner, shop = found.queue_managers
    assert (edge.parent, edge.clusters, edge.semantics, edge.wave) == ("HUB", ("SALES",), "v6", 2)
    assert (hub.semantics, hub.wave, loner.source, shop.broker) == ("v7", 1, (), "BRK1")
    assert found.sources_of(hub) == ("/est/sources/HUB",)
    assert found.sources_of(edge) == ("/est/sources/a.jsonl", "amqspsd=/est/sources/b.txt")
    assert found.migration.prefixes == {"Sport": "Games/Sport"}


def test_networks_are_joined_by_hierarchy_and_by_cluster() -> None:
    assert estate().networks() == (("HUB", "EDGE1", "SHOP"), ("LONER",))


def test_it_is_a_value() -> None:
    with pytest.raises(Exception, match="frozen"):
        estate().queue_managers[0].name = "X"  # type: ignore[misc]


MISTAKES = [
    ("unknown-key", ("wave = 2", "wav = 2"), 15, "there is no key wav; did you mean wave?"),
    ("unknown-table", ("[migration]", "[migratoin]"), 1, "there is no key migratoin; did you mean migration?"),
    ("unknown-parent", ('parent = "HUB"', 'parent = "HUBB"'), 10, "no queue manager HUBB; did you mean HUB?"),
    ("twice", ('"LONER"', '"HUB"'), 18, "HUB is named before: /est/estate.toml, line 5"),
    ("bad-name", ('"LONER"', '"a b"'), 18, "'a b' cannot name a queue manager"),
    ("no-name", ('name = "LONER"', ""), 17, "name is missing"),
    ("semantics", ('"v6"', '"v5"'), 12, "semantics: input should be 'v7' or 'v6'"),
    ("wave-0", ("wave = 2", "wave = 0"), 15, "wave: input should be greater than or equal to 1"),
    ("wave-text", ("wave = 2", 'wave = "2"'), 15, "wave: input should be a valid integer"),
    ("loop", ('source = "sources/HUB"', 'parent = "EDGE1"'), 6, "HUB would be its own ancestor: EDGE1 < HUB"),
    ("prefixes", ('prefixes = { Sport = "Games/Sport" }', "prefixes = 1"), 2, "prefixes: input should be a valid dict"),
]


@pytest.mark.parametrize(("change", "line", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_named_with_its_line(change: tuple[str, str], line: int, words: str) -> None:
    with pytest.raises(TableFileError) as raised:
        estate(ESTATE.replace(*change))
    assert str(raised.value).startswith(f"/est/estate.toml, line {line}: ")
    assert words in str(raised.value)


def test_what_is_no_toml_has_its_line() -> None:
    with pytest.raises(TableFileError, match="line 1"):
        estate("[[queue_manager]\n")


def test_an_estate_without_queue_managers() -> None:
    with pytest.raises(TableFileError, match=r"it has no \[\[queue_manager\]\]"):
        estate("")


def test_the_directory_or_the_file(tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_text(ESTATE)
    assert read_estate(tmp_path) == read_estate(tmp_path / "estate.toml")
    with pytest.raises(TableFileError, match=r"docs/estate\.md shows one"):
        read_estate(tmp_path / "none")


def test_a_queue_manager_that_is_not_there_is_suggested() -> None:
    with pytest.raises(TableFileError, match="did you mean EDGE1"):
        estate().named("EDGE2")


def test_a_setup_that_cannot_be_read() -> None:
    with pytest.raises(TableFileError, match="setup of queue manager EDGE1: no such file"):
        estate().setup_of(estate().named("EDGE1"))
