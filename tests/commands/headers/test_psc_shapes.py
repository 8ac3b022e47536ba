"""A psc folder of a known shape is the command that all rules, and the XML parser, make of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.headers import psc
from commands.headers.psc import command_of_leaves
from commands.headers.psc_commands import ALL_TAGS, RULES, parse_psc
from commands.model import Command, Publish
from rfh2.captures import read_captures
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.folders import Folder, parse
from rfh2.rfh2 import Rfh2

FIXTURES = Path(__file__).parents[3] / "fixtures"
Answer = tuple[object, ...]


def _answer(command: Command) -> Answer:
    """All that can be seen of a command."""
    return type(command), command, command.model_fields_set, command.model_dump_json(), repr(command), hash(command)


def _refused(error: QPubSubError) -> Answer:
    return type(error), error.args


def _by_the_rules(folder: Folder) -> Answer:
    try:
        (root,) = parse(folder)
        return _answer(parse_psc([(str(child.tag), child.text or "") for child in root]))
    except QPubSubError as error:
        return _refused(error)


def _by_shape(folder: Folder) -> Answer | None:
    """None where the folder is not one of leaves alone."""
    try:
        command = command_of_leaves(folder)
    except QPubSubError as error:
        return _refused(error)
    return None if command is None else _answer(command)


def _agree(folder: Folder) -> None:
    found = _by_shape(folder)
    if found is not None:
        assert found == _by_the_rules(folder)


@pytest.fixture(autouse=True)
def _no_shape_is_known() -> None:
    psc._SHAPES.clear()


PUBLISH = "<psc><Command>Publish</Command><Topic>{}</Topic><SeqNum>{}</SeqNum></psc>"
AGAIN = [
    pytest.param(PUBLISH, [("a/b", "1"), ("c/d", "2")], id="topic-and-number"),
    pytest.param("<psc><Command>Publish</Command><Topic>{}</Topic><Topic>{}</Topic></psc>", ["ab", "ba"], id="topics"),
    pytest.param("<psc><Command>Publish</Command><Topic></Topic><Topic>{}</Topic></psc>", ["a", "b"], id="no-topic"),
    pytest.param("<psc><Topic>{}</Topic><Command>RegSub</Command></psc>", ["a", "b"], id="command-last"),
    pytest.param("<psc><Command>ReqUpdate</Command><Topic>{}</Topic></psc>", ["a", "b"], id="one-topic"),
    pytest.param("<psc><Command>DeletePub</Command><Topic>{}</Topic></psc>", ["a", "b"], id="delete"),
    pytest.param(PUBLISH, [("a", ""), ("", "1"), ("", "")], id="empty-texts-ask-for-defaults"),
    pytest.param(
        "<psc><Command>Publish</Command><Topic>a</Topic><QName>{}</QName></psc>", [("Q",), ("",)], id="default-queue"
    ),
    pytest.param(PUBLISH, [("a", "1"), ("a&b", "1"), ("a&amp;b", "1"), ("a]]>", "1")], id="references"),
    pytest.param(PUBLISH, [("a", "1"), ("a\rb", "1"), ("a\nb", "1"), ("\t", "\v"), ("\x7f", "\ufffe")], id="controls"),
    pytest.param(PUBLISH, [("a", "1"), ("é€😀", "\u0661"), (" a ", " ")], id="not-ascii"),
    pytest.param(PUBLISH, [("a", "1"), ("</Topic><Topic>b", "2"), ("<Topic>b</Topic>", "3")], id="markup-in-a-text"),
    pytest.param(PUBLISH, [("a", "1"), ("a" * 5_000, "2")], id="too-long-to-be-kept"),
    pytest.param(
        "<psc><Command>RegSub</Command><RegOpt>FullResp</RegOpt><Topic>{}</Topic><QName>{}</QName></psc>",
        [("a", "Q"), ("b", "R")],
        id="options",
    ),
    pytest.param("<psc><Command>DeletePub</Command><Topic>a</Topic><QName>{}</QName></psc>", "ab", id="not-taken"),
    pytest.param("<psc><Command>Publish</Command><own>{}</own><Topic>{}</Topic></psc>", ["ab", "ac"], id="own-tags"),
]


@pytest.mark.parametrize(("form", "texts"), AGAIN)
def test_a_folder_like_an_earlier_one_is_read_as_if_it_were_the_first(form: str, texts: list[tuple[str, ...]]) -> None:
    for each in (*texts, *texts):
        _agree(Folder.of(form.format(*each)))


def test_a_folder_of_a_known_shape_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = command_of_leaves(Folder.of(PUBLISH.format("a", "1")))
    monkeypatch.setattr(psc, "parse_psc", lambda _pairs: pytest.fail("the rules were asked again"))
    assert command_of_leaves(Folder.of(PUBLISH.format("b", "2"))) == Publish(topics=("b",), seq_num="2")
    assert first == Publish(topics=("a",), seq_num="1")


def test_what_is_refused_is_not_kept() -> None:
    folder = Folder.of("<psc><Command>Publish</Command><QName>Q</QName></psc>")
    for _ in range(2):
        with pytest.raises(CommandError, match="needs a Topic"):
            command_of_leaves(folder)
    assert len(psc._SHAPES) == 0


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(DecodeError):
        command_of_leaves(Folder(b"<psc><Topic>\xff</Topic></psc>"))


def test_other_folders_are_for_the_xml_parser() -> None:
    assert command_of_leaves(Folder.of("<psc>\n <Command>Publish</Command><Topic>a</Topic></psc>")) is None


@cache
def _psc_of_fixtures() -> tuple[Folder, ...]:
    """The psc folders of all captures among the fixtures, each once."""
    return tuple(dict.fromkeys(_folders()))


def _folders() -> Iterator[Folder]:
    for capture in sorted(FIXTURES.rglob("*.jsonl")):
        for record in read_captures(capture, "jsonl"):
            try:
                headers = () if record.message is None else record.message.decoded.headers
            except DecodeError:
                continue
            for header in headers:
                if isinstance(header, Rfh2):
                    yield from (
                        Folder(folder.data, folder.charset) for folder in header.folders if folder.name == "psc"
                    )


@cache
def _texts_of_fixtures() -> tuple[str, ...]:
    texts = []
    for folder in _psc_of_fixtures():
        with suppress(DecodeError):
            texts.append(folder.text)
    return tuple(texts)


def test_the_folders_of_all_captures() -> None:
    folders = _psc_of_fixtures()
    assert len(folders) > 100
    for folder in folders:
        _agree(folder)


_TEXTS = st.text(alphabet=st.sampled_from("ab/ \t\r\n&<>'\"]é€😀\0\x0b\x7f\ufffe\u2028"), max_size=6)
_OPTIONS = st.sampled_from(["RetainPub", "Local", "FullResp", "CorrelAsId", "None", "4", "DeregAll", "AddName"])
_TAGS = st.sampled_from(sorted(ALL_TAGS | {"own", "topic", "MQown"}))
_PAIRS = st.lists(
    st.one_of(st.tuples(_TAGS, _TEXTS), st.tuples(st.sampled_from(["RegOpt", "PubOpt", "DelOpt"]), _OPTIONS)),
    max_size=5,
)


@given(
    st.sampled_from(sorted(RULES)),
    _PAIRS,
    st.lists(st.lists(_TEXTS, min_size=8, max_size=8), min_size=1, max_size=4),
)
def test_any_folders_of_one_form(word: str, pairs: list[tuple[str, str]], others: list[list[str]]) -> None:
    psc._SHAPES.clear()
    pairs = [("Command", word), ("Topic", "a"), *pairs]
    for texts in ([], *others, []):
        changed = [
            (tag, text if tag.endswith("Opt") or tag == "Command" else new)
            for (tag, text), new in zip(pairs, texts, strict=False)
        ]
        leaves = "".join(f"<{tag}>{text}</{tag}>" for tag, text in changed or pairs)
        _agree(Folder.of(f"<psc>{leaves}</psc>"))


@given(st.data())
def test_folders_of_captures_with_changes(data: st.DataObject) -> None:
    psc._SHAPES.clear()
    text = data.draw(st.sampled_from(_texts_of_fixtures()))
    _agree(Folder.of(text))
    for _ in range(4):
        at = data.draw(st.integers(0, len(text)))
        upto = data.draw(st.integers(at, min(len(text), at + 4)))
        put = data.draw(st.one_of(_TEXTS, st.sampled_from(["</Topic>", "<Topic>", "<QName>", "<SeqNum>1</SeqNum>"])))
        _agree(Folder.of(text[:at] + put + text[upto:]))
