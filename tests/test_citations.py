"""What code, tests and docs cite is there: sections of docs/wire-formats.md and docs/migration-sources.md.

What those pages say in tables is compared with the program's own declarations: layouts, constants, names, code pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from migrate.checklist import KNOWN
from rfh2 import layouts, mqmd, pcf
from rfh2.ccsid import EBCDIC_FIELDS
from rfh2.layouts import STEPPED_OVER, HeaderKind, Layout
from rfh2.options import DELETE, PUBLICATION, REGISTRATION

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[1]
PACKAGES = ("rfh2", "streams", "commands", "migrate")
WIRE, MIGRATION = ROOT / "docs" / "wire-formats.md", ROOT / "docs" / "migration-sources.md"
DIFFERENCES = ROOT / "docs" / "differences.md"
PAGES = {"wire formats": WIRE, "migration sources": MIGRATION}

_HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
# Lines break anywhere, in comments too.
_GAP = r"[\s#]+"
_NUMBERS = rf"\d+(?:\.\d+)*(?:(?:,(?:{_GAP}and)?|{_GAP}and|{_GAP}to|{_GAP}or){_GAP}\d+(?:\.\d+)*)*"
_CITATION = re.compile(
    rf"\b(wire{_GAP}formats|migration{_GAP}sources),?{_GAP}(?:sections?{_GAP})?({_NUMBERS})", re.IGNORECASE
)
_WITHIN = re.compile(rf"(?<!guide )(?<!guide, )\bsections? ({_NUMBERS})")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_GUIDE = re.compile(rf"\bguide,?{_GAP}(?:(?:section|chapter)s?{_GAP})?(\d[\w.]*)", re.IGNORECASE)
# Chapters 1 to 8; no section of the guide is deeper than 2.5.1.1.2, none has more than two digits at a level.
_SECTION = re.compile(r"[1-8](\.[1-9]\d?){0,4}")


class Citation(NamedTuple):
    """page: as the citation calls it. where: file and line."""

    page: str
    number: str
    where: str


def _citing() -> Iterator[Path]:
    for package in (*PACKAGES, "tests"):
        yield from sorted((ROOT / package).rglob("*.py"))
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md")


def _cited_in(text: str, name: str) -> Iterator[Citation]:
    for found in _CITATION.finditer(text):
        page = re.sub(_GAP, " ", found[1].lower())
        for number in _NUMBER.findall(found[2]):
            yield Citation(page, number, f"{name}:{text.count(chr(10), 0, found.start()) + 1}")


def _wrong_guide_sections(text: str, name: str) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1} cites guide {found[1]}"
        for found in _GUIDE.finditer(text)
        if not _SECTION.fullmatch(found[1].rstrip("."))
    ]


def _sections(page: Path) -> list[str]:
    return _HEADING.findall(page.read_text())


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(path.relative_to(ROOT)), path.read_text()) for path in _citing() if path.name != Path(__file__).name
    )


# Citations


@pytest.mark.parametrize("page", PAGES)
def test_every_section_that_is_cited_exists(page: str) -> None:
    sections = set(_sections(PAGES[page]))
    cited = [each for name, text in _texts() for each in _cited_in(text, name) if each.page == page]
    assert len(cited) > 5
    assert [f"{each.where} cites {page} {each.number}" for each in cited if each.number not in sections] == []


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_the_sections_of_a_page_are_in_order_and_refer_to_sections_that_exist(page: Path) -> None:
    sections = _sections(page)
    order = [tuple(map(int, number.split("."))) for number in sections]
    assert order == sorted(set(order))
    other = {number for each in PAGES.values() if each != page for number in _sections(each)}
    referred = [number for found in _WITHIN.findall(page.read_text()) for number in _NUMBER.findall(found)]
    assert [number for number in referred if number not in {*sections, *other}] == []


def test_nothing_cites_what_is_not_in_the_repository() -> None:
    assert [name for name, text in _texts() if re.search(r"[(]DESIGN\b|\bDESIGN[,.]", text)] == []


def test_citations_of_the_guide_are_numbers_of_sections() -> None:
    assert [wrong for name, text in _texts() for wrong in _wrong_guide_sections(text, name)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""MQRFH (guide 6.7; wire formats 2.3, 4.1 and 5.1)."""', [("2.3", 1), ("4.1", 1), ("5.1", 1)]),
        ('"""Structures (wire formats, sections 1 to 5)."""', [("1", 1), ("5", 1)]),
        ("x\n# the example of wire\n# formats 99.9: one\n", [("99.9", 2)]),
        ("those of\nwire formats, section 7 (guide 1.2)", [("7", 2)]),
        ("wire formats 5, MQDLH; 12 bytes", [("5", 1)]),
        ("the wire formats (WebSphere MQ 6)", []),
    ],
)
def test_citations_are_found_however_they_are_written(text: str, found: list[tuple[str, int]]) -> None:
    assert [(each.number, each.where) for each in _cited_in(text, "file")] == [(n, f"file:{at}") for n, at in found]


@pytest.mark.parametrize(
    ("citation", "right"),
    [
        *(("guide 6.7.7", True), ("Guide 2.5.1.1.2:", True), ("guide, 6.5.4", True), ("guide chapters 7 and 8", True)),
        *(("guide 9.1", False), ("guide 6..7", False), ("guide 6.07", False), ("guide 7.2b", False)),
        *(("guide 67", False), ("the\n# guide 8.11111", False)),
    ],
)
def test_a_wrong_section_of_the_guide_is_told(citation: str, right: bool) -> None:
    assert (_wrong_guide_sections(citation, "file") == []) is right


# Tables


def _tables(page: Path) -> Iterator[list[list[str]]]:
    """The tables of a page, as rows of cells; the header first, without the line below it."""
    rows: list[list[str]] = []
    for line in [*page.read_text().splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip()[1:-1].split("|")])
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []


def _columns(table: list[list[str]], title: list[str]) -> Iterator[list[str]]:
    """The cells below each place where the header has *title*, place by place; empty ones left out."""
    header, *rows = table
    width = len(title)
    for at in range(len(header)):
        if header[at : at + width] == title:
            yield from (row[at : at + width] for row in rows if row[at])


_DECLARED = {name: value for name, value in vars(layouts).items() if isinstance(value, Layout)}


def _types(layout: Layout) -> list[bool]:
    """Of each field, whether it is a number."""
    return [isinstance(value, int) for value in layout.fast["big"].unpack(bytes(layout.size))]


def _drawn() -> dict[str, list[tuple[str, int, int, bool]]]:
    """The layouts that the page draws field by field: name, offset, length, whether it is a number."""
    drawn = {}
    for table in _tables(WIRE):
        name = table[0][0].strip("`")
        fields = _columns(table, [table[0][0], "offset", "length", "type"])
        if found := [(field, int(offset), int(length), kind == "L") for field, offset, length, kind in fields]:
            drawn[name] = found
    return drawn


def _told() -> dict[str, tuple[int, list[str]]]:
    """PCF's parameters, of which the page tells size and fields in a row each."""
    (table,) = (table for table in _tables(WIRE) if "fixed part" in table[0])
    return {row[2].strip("`"): (int(row[3]), row[4].split(", ")) for row in table[1:]}


def test_every_layout_is_on_the_page() -> None:
    made = re.findall(r"{from-code} layout (\w+)", WIRE.read_text())
    assert set(_DECLARED) - {"MQMD1"} == {*_drawn(), *_told(), *made}
    assert layouts.MQMD2.spans()[: len(layouts.MQMD1.spans())] == layouts.MQMD1.spans()


@pytest.mark.parametrize("name", sorted(_drawn()))
def test_a_layout_is_drawn_as_it_is_declared(name: str) -> None:
    layout = _DECLARED[name]
    assert _drawn()[name] == [(*span, number) for span, number in zip(layout.spans(), _types(layout), strict=True)]


@pytest.mark.parametrize("name", sorted(_told()))
def test_a_parameter_is_told_as_it_is_declared(name: str) -> None:
    layout, common = _DECLARED[name], layouts.PARAMETER
    assert layout.spans()[: len(common.spans())] == common.spans()
    fields = [f"{field} {offset}" for field, offset, _ in layout.spans()[len(common.spans()) :]]
    assert _told()[name] == (layout.size, fields)


def test_headers_have_the_names_and_lengths_that_the_code_gives_them() -> None:
    (table,) = (table for table in _tables(WIRE) if table[0][0] == "header")
    said = {row[0]: (row[1], row[2], row[3], int(re.findall(r"\d+", row[4])[0])) for row in table[1:]}
    kinds = [
        *STEPPED_OVER,
        pcf.EPH_KIND,
        mqmd.MDE_KIND,
        mqmd.XQH_KIND,
        HeaderKind("MQDLH", "DLH ", "MQDEAD", {1: layouts.MQDLH.size}),
    ]
    assert said == {
        kind.name: (
            *(f"`{kind.struc_id}`", kind.struc_id.encode(EBCDIC_FIELDS).hex().upper(), f"`{kind.format}`"),
            min(kind.sizes.values()),
        )
        for kind in kinds
    }


@cache
def _constants_of_the_code() -> dict[str, set[int | str]]:
    """What the packages give each of IBM's constants: assigned to it, or beside its name in a pair or a table."""
    found: dict[str, set[int | str]] = {}
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            for left, right in _pairs(node):
                for name, value in ((left, right), (right, left)):
                    word = name.id if isinstance(name, ast.Name) else _literal(name)
                    own = _literal(value)
                    if isinstance(word, str) and own is not None and re.fullmatch(r"MQ[A-Z]*_\w+", word):
                        found.setdefault(word, set()).add(own)
    for options in (REGISTRATION, PUBLICATION, DELETE):
        found.update({options.constant(word): {bit} for word, (bit, _) in options.bits.items()})
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.AnnAssign(target=target, value=ast.AST() as value):
            yield target, value
        case ast.Dict(keys=keys, values=values):
            yield from ((key, value) for key, value in zip(keys, values, strict=True) if key is not None)
        case ast.Tuple(elts=[left, right]):
            yield left, right


def _literal(node: ast.AST) -> int | str | None:
    """A number, or a word; not a sentence."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.Constant(value=int(value)):
            return value
        case ast.Constant(value=str(word)) if re.fullmatch(r"\w+", word):
            return word
    return None


_CONSTANT = re.compile(r"`(MQ[A-Z]*_[A-Z0-9_]+)`(?: \(.*\))?")
_VALUE = re.compile(r"-?\d+|0x[0-9A-Fa-f]+")


def _constants_of(page: Path) -> Iterator[tuple[str, int | str]]:
    """Each constant in a table, with the number or the quoted word in the cell behind it."""
    for table in _tables(page):
        for row in table[1:]:
            for cell, behind in pairwise(row):
                if (name := _CONSTANT.fullmatch(cell)) is None:
                    continue
                if _VALUE.fullmatch(behind):
                    yield name[1], int(behind, 0)
                elif (word := re.fullmatch(r"`(\w+)`", behind)) is not None:
                    yield name[1], word[1]


@pytest.mark.parametrize(("page", "least"), [(WIRE, 10), (MIGRATION, 15)], ids=["wire-formats", "migration-sources"])
def test_constants_have_the_values_that_the_code_gives_them(page: Path, least: int) -> None:
    said = list(_constants_of(page))
    assert len(said) >= least
    wrong = []
    for name, value in said:
        own = {each for each in _constants_of_the_code().get(name, ()) if type(each) is type(value)}
        if value not in own or (isinstance(value, int) and len(own) > 1):
            wrong.append(f"{name}: {value} on the page, {own or 'nothing'} in the code")
    assert wrong == []


def test_differences_and_problems_have_their_numbers() -> None:
    (table,) = (table for table in _tables(DIFFERENCES) if table[0][0] == "rule")
    assert [row[0] for row in table[1:]] == [f"D{n:02}" for n in range(1, 35)]
    assert [number for number in KNOWN if number.startswith("P")] == [f"P{n:02}" for n in range(1, 34)]
