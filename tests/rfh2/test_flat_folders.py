"""Readers that take a short cut for folders of leaves find what they find in any other folder."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from rfh2 import DecodeError, Folder, Rfh2
from rfh2.elements import Element, elements
from rfh2.explain.form import Problem
from rfh2.explain.problems import folder_problems

_TAGS = st.sampled_from(["a", "Topic", "_x", "a.b", "é", "a:b", "1", ""])
_KINDS = st.sampled_from(["", "", " dt='i4'", ' dt="string"', " xsi:nil='true'"])
_VALUES = st.text("ab 1/&;<>\t\r\0é😀\ufffe", max_size=4)
_LEAVES = st.lists(st.tuples(_TAGS, _KINDS, _VALUES), max_size=3).map(
    lambda leaves: "".join(f"<{tag}{kind}>{value}</{tag}>" for tag, kind, value in leaves)
)
_NAMES = st.sampled_from(["psc", "usr", "pscr", "MCD", "other", "psc "])
_PADDING = st.sampled_from(["", " ", "   ", "\0", " \0", "\n"])
_FOLDERS = st.builds(lambda name, leaves, pad: f"<{name}>{leaves}</{name}>{pad}", _NAMES, _LEAVES, _PADDING)


def _seen(header: Rfh2) -> tuple[list[list[Element] | str], list[Problem]]:
    found: list[list[Element] | str] = []
    for folder in header.folders:
        try:
            found.append(elements(folder))
        except DecodeError as error:
            found.append(str(error))
    return found, list(folder_problems(header))


@given(st.lists(_FOLDERS, min_size=1, max_size=3), st.sampled_from(["utf-8", "utf-16-le"]), st.booleans())
@example(["<psc><Topic>a</Topic></psc>"], "utf-8", True)
@example(["<usr><a dt='i4'>1</a></usr> "], "utf-8", True)
@example(["<psc></psc>", "<psc></psc> \0"], "utf-8", True)
def test_a_short_cut_finds_the_same(texts: list[str], charset: str, padded: bool) -> None:
    folders = [Folder.of(text, charset) if padded else Folder(text.encode(charset), charset) for text in texts]
    header = Rfh2(tuple(Folder(folder.data, folder.charset, 40) for folder in folders))
    found = _seen(header)
    with pytest.MonkeyPatch.context() as without:
        without.setattr(Folder, "leaves", lambda _folder: None)
        without.setattr(Folder, "is_flat", lambda _folder: False)
        assert _seen(header) == found


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("<psc><Topic>a</Topic></psc>", True),
        ("<usr><a dt='i4'>1</a><b>x</b></usr>", True),
        ("<usr><a dt='i4'>1</a><b>&amp;</b></usr>", False),
        ("<usr><a><b>1</b></a></usr>", False),
        ("<mcd><Msd>a</Msd></mcd><usr></usr>", False),
        ("<usr><a dt='i4'>" + "1" * 100_000 + "</a></usr>", False),
    ],
)
def test_flat_folders(text: str, flat: bool) -> None:
    assert Folder.of(text).is_flat() is flat


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(DecodeError):
        Folder(b"<psc><Topic>\xff</Topic></psc>").is_flat()
