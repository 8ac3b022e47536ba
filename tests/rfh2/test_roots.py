"""Several folders in one NameValueData: taken apart, each with its text and its place."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rfh2.folders import Folder
from rfh2.rfh2 import split_roots

APART = [
    ("two", "<a>1</a><b>2</b>", ["<a>1</a>", "<b>2</b>"], [0, 8]),
    ("three", "<a/><b>2</b><c/>", ["<a/>", "<b>2</b>", "<c/>"], [0, 4, 12]),
    ("blanks-between", " <a>1</a>\n <b>2</b>", [" <a>1</a>\n", "<b>2</b>"], [0, 11]),
    ("same-name", "<a>1</a><a>2</a>", ["<a>1</a>", "<a>2</a>"], [0, 8]),
    ("nested-alike", "<a><a>1</a></a><b/>", ["<a><a>1</a></a>", "<b/>"], [0, 15]),
    ("attributes", "<a x='>'/><b y=\"</b>\">2</b>", ["<a x='>'/>", '<b y="</b>">2</b>'], [0, 10]),
    ("a-tag-breaks-off", "<a>1</a><b>2</b><c", ["<a>1</a>", "<b>2</b><c"], [0, 8]),
    ("a-quote-stays-open", "<a/><b>2</b><c x='<d/>", ["<a/>", "<b>2</b><c x='", "<d/>"], [0, 4, 18]),
    ("slashes-in-a-tag", "<a x=1/2/><b//><c/>", ["<a x=1/2/>", "<b//>", "<c/>"], [0, 10, 15]),
    ("prefixes", "<x:a xsi:nil='true'/><b/>", ["<x:a xsi:nil='true'/>", "<b/>"], [0, 21]),
]


@pytest.mark.rule("HDR-9")
@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("text", "parts", "places"), [row[1:] for row in APART], ids=[row[0] for row in APART])
def test_6_6_2_roots_are_taken_apart(text: str, parts: list[str], places: list[int], charset: str) -> None:
    width = 1 if charset == "utf-8" else 2
    folder = Folder(text.encode(charset) + bytes(4), charset, 100)
    found = split_roots(folder)
    assert [part.text for part in found] == [
        part.rstrip() if n == len(parts) - 1 else part for n, part in enumerate(parts)
    ]
    assert [part.offset for part in found] == [100 + place * width for place in places]
    assert {len(part.data) % 4 for part in found} == {0}


WHOLE = ["", "<a>1</a>", "<a>1</a>   ", "text", "<a>", "<a><b></a></b>", "</a><b/>", "<a/><b>", "\0\0"]


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_one_folder_or_none_stays_whole(text: str) -> None:
    folder = Folder(text.encode())
    assert split_roots(folder) == (folder,)


def test_what_is_not_in_its_code_page_stays_whole() -> None:
    folder = Folder(b"<a/><b>\xff</b>")
    assert split_roots(folder) == (folder,)


@given(st.text(alphabet="<>/ab \"'=\0\n", max_size=40))
def test_nothing_is_lost_or_made_up(text: str) -> None:
    folder = Folder(text.encode())
    parts = split_roots(folder)
    if len(parts) > 1:
        assert without_padding("".join(part.text for part in parts)) == without_padding(folder.text)


def without_padding(text: str) -> str:
    return text.replace(" ", "").replace("\0", "")
