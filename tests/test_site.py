"""The site: its tables say what the code says, its contents are the index, and its check finds what it is for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

from commands.cli import VERBS, main
from commands.monitoring.catalogue import METRICS
from commands.mqsc.script import VERBS as MQSC_VERBS
from rfh2.constants import REASON_NAMES
from tests.documents import written_pages

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

from extension import check, contents, equivalents, markdown, metrics, mqsc, options, problems, reasons, verbs, wire  # noqa: E402
from extension.tables import TABLES  # noqa: E402


def test_every_verb_has_a_page_with_its_options_examples_and_exit_codes() -> None:
    pages = {page.name: page.text for page in verbs.pages()}
    assert set(pages) > {"qpubsub", "qpubsub-estate-plan", *(f"qpubsub-{verb}" for verb in VERBS)}
    for words, command in main.every_command():
        spelt = {
            option for one in command.params if isinstance(one, click.Option) and not one.hidden for option in one.opts
        }
        page = pages[f"qpubsub-{words.replace(' ', '-')}"]
        assert [option for option in spelt if option not in page] == []
        assert ("## Verbs" if isinstance(command, click.Group) else "## Examples") in page


def test_an_example_is_code_and_keeps_its_lines() -> None:
    page = next(page.text for page in verbs.pages() if page.name == "qpubsub-decode")
    assert "```text\nqpubsub decode capture.dat\nqpubsub decode --json" in page


def test_every_metric_has_its_row() -> None:
    rows = {row[0]: row for source in ("processor", "link", "state") for row in metrics.table(source).rows}
    assert len(rows) == len(METRICS)
    assert rows["`qpubsub_commands_total`"][1:3] == ("counter", "`command`, `completion`")


def test_every_reason_code_has_its_row() -> None:
    rows = {int(row[0]): row for row in reasons.table().rows}
    assert set(rows) == set(REASON_NAMES)
    assert rows[3073][1:] == (
        "`MQRCCF_NOT_REGISTERED`",
        "the publisher or subscriber is not registered",
        ", ".join(reasons.sections(3073, "MQRCCF_NOT_REGISTERED")),
    )
    assert "6.7.5" in rows[3073][3]


@pytest.mark.parametrize(
    ("tag", "option", "row"),
    [
        ("RegOpt", "Local", ("4", "`MQREGO_LOCAL`", "RegSub, Publish", "Publish, RegPub, RegSub")),
        ("RegOpt", "Anon", ("2", "`MQREGO_ANONYMOUS`", markdown.NOTHING, "Publish, RegPub, RegSub")),
        ("DelOpt", "Local", ("4", "`MQDELO_LOCAL`", "DeletePub", "DeletePub")),
    ],
)
def test_an_option_has_its_bit_constant_and_commands(tag: str, option: str, row: tuple[str, ...]) -> None:
    (found,) = (one for one in options.table(tag).rows if one[0] == f"`{option}`")
    assert found[1:] == row


@pytest.mark.rule("MIG-5")
def test_the_page_asks_for_what_replaces_each_command_option_and_tag() -> None:
    text = (ROOT / "docs/translate.md").read_text()
    assert [word for word in equivalents.COMMANDS if f"{{from-code}} equivalents {word}\n" not in text] == []
    rows = [row for word in equivalents.COMMANDS for row in equivalents.table(word).rows]
    assert ("`NoAlter`", r"MQSO\_RESUME", r"in place of MQSO\_ALTER, beside MQSO\_CREATE") in rows
    reasons = {row[0]: dict(zip(equivalents.COMMANDS, row[1:], strict=True)) for row in equivalents.reasons().rows}
    none = dict.fromkeys(equivalents.COMMANDS, "")
    assert reasons["3157 MQRCCF_ALREADY_JOINED"] == none | {"RegSub": markdown.NOTHING}
    assert reasons["3152 MQRCCF_DUPLICATE_SUBSCRIPTION"]["RegSub"] == "2432"
    assert ("2432", "`MQRC_SUB_ALREADY_EXISTS`") in equivalents.calls_reasons().rows


@pytest.mark.rule("LSN-47")
def test_the_table_of_options_has_each_family_of_calls() -> None:
    rows = {row[0]: row for row in equivalents.mqi_options().rows}
    assert rows["MQSUB"][2] == "none"
    assert "MQGMO_SET_SIGNAL (2046)" in rows["MQGET"][2]
    assert rows["MQSTAT"][1] == "MQSTAT_TYPE_ASYNC_ERROR"


def test_structures_and_code_pages_are_those_of_the_code() -> None:
    assert wire.layout("MQMDE").rows[5:8] == (
        ("Format", "20", "8", ""),
        ("Flags", "28", "4", "L"),
        ("GroupId", "32", "24", ""),
    )
    rows = {row[0]: row[1] for row in wire.code_pages().rows}
    assert (rows["`utf-16`"], rows["`latin-1`"], "437, 500," in rows["`cp` with the number"]) == (
        "1200, 13488, 17584",
        "819",
        True,
    )


def test_the_page_of_problems_says_what_to_do() -> None:
    assert [row[0] for row in problems.table().rows] == [f"P{n:02}" for n in range(1, 34)]
    assert "grant below it" in problems.table().rows[1][2]


def test_what_pages_ask_of_the_code_is_there() -> None:
    """As the build of the site says it, which is of the night."""
    text = "\n".join(page.read_text() for page in written_pages(".md"))
    asked = [words.split() for words in re.findall(r"^```\{from-code\} (.+)$", text, re.MULTILINE)]
    assert [table for table, *words in asked if not TABLES[table](*words).rows] == []
    documented = [resolve_name(name) for name in re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)]
    assert len(asked) > 40 < len(documented)


@pytest.mark.parametrize("package", ["rfh2", "commands", "migrate"])
def test_every_exported_name_is_in_the_python_reference(package: str) -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    shown = {name.rpartition(".")[2] for name in re.findall(r"^\.\. auto\w+:: (\S+)$", page, re.MULTILINE)}
    assert sorted(set(import_module(package).__all__) - shown) == []


def test_mqsc_commands_are_those_of_the_parser() -> None:
    assert sorted(row[0].strip("`") for row in mqsc.commands().rows) == sorted(MQSC_VERBS)


@pytest.mark.parametrize("word", mqsc.KINDS)
def test_every_attribute_of_an_object_has_its_row(word: str) -> None:
    kind = mqsc.KINDS[word]
    rows = mqsc.attribute_table(word).rows
    assert [row[0].strip("`").split(",")[0] for row in rows[:-1]] == [one.keyword for one in kind.attributes]
    assert all(row[1] for row in rows)


def test_every_kind_of_object_has_its_table() -> None:
    page = (ROOT / "docs/reference/mqsc.md").read_text()
    assert [word for word in mqsc.KINDS if f"mqsc-attributes {word}\n" not in page] == []


def test_an_attribute_says_what_it_takes_and_how_it_begins() -> None:
    rows = {row[0]: row[1:] for row in mqsc.attribute_table("TOPIC").rows}
    assert rows["`WILDCARD`"] == ("`PASSTHRU`, `BLOCK`", "`PASSTHRU`")
    assert rows["`DEFPRTY`"] == ("0 to 9, `ASPARENT`", "`ASPARENT`")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Sport/* and <name>", r"Sport/\* and \<name\>"),
        ("as --dry-run-it says", "as `--dry-run-it` says"),
        ("SYSTEM.BROKER.CONTROL.QUEUE is read", "`SYSTEM.BROKER.CONTROL.QUEUE` is read"),
    ],
)
def test_text_of_the_code_is_shown_as_it_is(text: str, shown: str) -> None:
    assert markdown.escape(text) == shown


def test_a_heading_of_the_index_is_a_part_of_the_contents() -> None:
    index = (
        "# T\n\n## One\n\n- [a](a.md)\n- [n](b/n.ipynb) and [web](https://example.org/x.md)\n\n## Two\n\n- [c](c.md)\n"
    )
    trees = contents.trees(index, {"Two": ["generated/x"]})
    assert trees.split("```{toctree}")[1:] == [
        "\n:hidden:\n:caption: One\n\na\nb/n\n```\n\n",
        "\n:hidden:\n:caption: Two\n\nc\ngenerated/x\n```\n",
    ]


@pytest.mark.parametrize(
    ("written", "in_the_site"),
    [
        ("[x](../CONTRIBUTING.md)", "[x](/generated/contributing.md)"),
        ("[x](../../README.md#install)", "[x](/generated/readme.md#install)"),
        ("[x](../fixtures/jms/README.md)", "[x](path:../fixtures/jms/README.md)"),
        ("[x](mqsc.md)", "[x](mqsc.md)"),
    ],
)
def test_links_out_of_docs_have_a_place_in_the_site(written: str, in_the_site: str) -> None:
    assert contents.linked_in_the_site(written) == in_the_site


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    kept = [cell["id"] for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    assert (len(cells) > 5, kept) == (True, [])


BAD = [
    ("script", '<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
    ("no scheme", '<img src="//cdn.example/x.png">', "loads //cdn.example/x.png"),
    ("style sheet", '<link rel="stylesheet" href="https://cdn.example/x.css">', "loads https://cdn.example/x.css"),
    ("in a style", "<style>@import 'https://cdn.example/f.css';</style>", "loads https://cdn.example/f.css"),
    ("font", "<p style='background: url(https://cdn.example/p)'>", "loads https://cdn.example/p"),
    ("in a script", "<script>fetch('https://cdn.example/d')</script>", "loads https://cdn.example/d"),
    ("srcset", "<img srcset='a.png 1x, https://cdn.example/b.png 2x'>", "loads https://cdn.example/b.png"),
    ("no page", '<a href="nowhere.html">x</a>', "broken link nowhere.html"),
    ("no anchor", '<a href="#nowhere">x</a>', "broken link #nowhere"),
]


@pytest.mark.parametrize(("body", "fault"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_the_check_of_the_site_finds(body: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<html><body>{body}</body></html>")
    assert list(check.faults(tmp_path)) == [f"page.html: {fault}"]


def test_the_check_of_the_site_finds_nothing_in_a_good_one(tmp_path: Path) -> None:
    links = '<a href="https://example.org">out</a> <a href="#here">in</a> <a href="b.html#there">on</a>'
    (tmp_path / "a.html").write_text(f'<html><body id="here">{links}<script src="s.js"></script></body></html>')
    (tmp_path / "b.html").write_text('<html><body><h1 id="there">x</h1></body></html>')
    (tmp_path / "s.css").write_text("a { background: url(data:image/png;base64,AA) }")
    (tmp_path / "s.js").write_text('const home = "https://example.org"; fetch("index.json")')
    assert list(check.faults(tmp_path)) == []


@pytest.mark.parametrize(("content", "code"), [("<p>x</p>", 0), ("<script src='//x'></script>", 1)])
def test_the_check_ends_with_an_exit_code(content: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(content)
    done = subprocess.run(
        [sys.executable, ROOT / "docs/extension/check.py", tmp_path], capture_output=True, check=False
    )
    assert done.returncode == code
