"""Headers that a generator writes, piece by piece: folders, strings of the MQRFH, PCF, and text for all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final
from xml.sax.saxutils import escape

from lxml import etree

from rfh2 import DecodeError, EncodeError, Folder, Mqmd, Pcf, Rfh1, Rfh2, decode, decode_pcf, encode
from rfh2.folders import write
from rfh2.pcf_parameters import Cfbf, Cfbs, Cfgr, Cfif, Cfil, Cfil64, Cfin, Cfin64, Cfsf, Cfsl, Cfst, UnknownParameter
from tests.commands.fuzzing import LONGS, with_other_bytes
from tests.reliability.trials import Json, Target

_TAGS: Final = (
    "Command",
    "Topic",
    "PubOpt",
    "RegOpt",
    "a",
    "A.b-c_d",
    "x" * 50,
    "é",
    "日",
    "p:q",
    "xsi:nil",
    "1a",
    "a b",
    "",
)
_ALPHABETS: Final = (
    "ab/",
    "ab \t\r\n",
    "&<>'\";#x",
    "\0\x01\x1f\x7f\x85\u2028",
    "äß€日\U0001f600",
    "\ud800\udfff\ufffe\uffff",
)
_FIT: Final = ("ab/", "a \t\r\n", "&<>'\";#x", "äß€日\U0001f600", "\x7f\x85\u2028")
_ATTRIBUTES: Final = ("", "", "", " dt='i4'", ' dt="r8"', " a='&lt;'", " xsi:nil='true'", " b=c", " a='1' a='2'")
_LATIN: Final = ("ab/", 'a" ', "a\t\n'", "äß", "\x00a", '""')


def text(random: Random, alphabets: tuple[str, ...] = _ALPHABETS, longest: int = 12) -> str:
    """A few characters, most of them harmless."""
    alphabet = random.choice(alphabets) if random.random() < 0.4 else "abc/"
    return "".join(random.choices(alphabet, k=random.randrange(longest)))


def _element(random: Random, depth: int) -> str:
    tag = random.choice(_TAGS[:8]) if random.random() < 0.95 else random.choice(_TAGS)
    attributes = random.choice(
        ("", "", "", " dt='i4'", ' dt="r8"', " xsi:nil='true'", " a='&lt;'", " b=c", " a='1' a='2'")
    )
    if random.random() < 0.1:
        return f"<{tag}{attributes}/>"
    if depth and random.random() < 0.3:
        inner = "".join(_element(random, depth - 1) for _ in range(random.randrange(3)))
    else:
        inner = text(random) if random.random() < 0.3 else write("x", (("y", text(random)),))[6:-8]
    return f"<{tag}{attributes}>{inner}</{tag if random.random() < 0.98 else 'z'}>"


def _folder(random: Random) -> Json:
    clean = random.random() < 0.5
    blank = "" if clean else random.choice(("", " ", "\n  ", "\0", "x", "<!-- -->", "<![CDATA[a]]>", "&"))
    inner = _folder_of_leaves(random) if clean else blank.join(_element(random, 3) for _ in range(random.randrange(6)))
    name = random.choice(("psc", "psc", "usr", "mcd", "A.b", "日"))
    found = f"<{name}>{inner}</{name}>" if random.random() < 0.9 else inner
    after = random.choice(("", "", " ", "\n", "\0\0", "<usr/>"))
    charset = random.choice(("utf-8", "utf-8", "utf-16-le", "utf-16-be"))
    return {"text": blank * random.randrange(2) + found + after, "charset": charset}


def _folder_of_leaves(random: Random) -> str:
    """Well-formed elements, references and nesting among them."""
    leaves = []
    for _ in range(random.randrange(6)):
        tag = random.choice(_TAGS[:9])
        inner = escape("".join(random.choices(random.choice(_FIT), k=random.randrange(8))), {"\r": "&#13;"})
        if random.random() < 0.2:
            inner += random.choice(("&#228;", "&#x1F600;", "&quot;", "<b/>", "<b dt='i4'>7</b>", "\t", "\n", "]]"))
        leaves.append(f"<{tag}{random.choice(_ATTRIBUTES[:6])}>{inner}</{tag}>")
    return "".join(leaves)


def _read_folder(case: Json) -> str:
    try:
        data = case["text"].encode(case["charset"])
    except UnicodeEncodeError:
        data = case["text"].encode(case["charset"], "surrogatepass")
    data += b" " * (-len(data) % 4) if case["charset"] == "utf-8" else b""
    folder = Folder(data, case["charset"], 100)
    for ask in (folder.values, folder.leaves):
        try:
            ask()
        except DecodeError as error:
            _inside(error, 100, len(data))
    try:
        pairs = folder.pairs()
    except DecodeError as error:
        _inside(error, 100, len(data))
        _not_xml(folder, error)
        return "refused"
    strictly = _strictly(folder.text)
    assert strictly is None or strictly == pairs, f"{pairs}, not {strictly}"
    return "lenient" if strictly is None else "read"


def _inside(error: DecodeError, start: int, size: int) -> None:
    assert start <= error.offset <= start + size, f"offset {error.offset} is outside: {error}"


def _not_xml(folder: Folder, error: DecodeError) -> None:
    if error.code != "bad-character":
        assert _strictly(folder.text) is None, f"XML, and yet refused: {error}"


def _strictly(found: str) -> list[tuple[str, str]] | None:
    """What a strict XML parser makes of a folder; None where it refuses, or takes what folders must not have."""
    if "<!" in found or "<?" in found or not found.lstrip(" \t\r\n").startswith("<"):
        return None
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(found.strip(" \t\r\n").encode("utf-16"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if any(not isinstance(each.tag, str) for each in root.iter()):
        return None
    prefixed = [(f"{e.prefix}:{etree.QName(e).localname}" if e.prefix else etree.QName(e).localname) for e in root]
    return [(tag, child.text or "") for tag, child in zip(prefixed, root, strict=True)]


def _pairs(random: Random) -> Json:
    names = ("MQPSCommand", "MQPSTopic", "MQPSRegOpts", "a", "", "A b")
    pairs = [[random.choice(names), text(random, _LATIN)] for _ in range(random.randrange(6))]
    return {"pairs": pairs, "raw": random.choice(("", "", " ", '"', ' "x', "\0x", "  a  b ", 'a"b" ', ' "a""b" c'))}


def _read_string(case: Json) -> str:
    pairs = [(name, value) for name, value in case["pairs"]]
    try:
        header = Rfh1().with_pairs(pairs)
    except EncodeError:
        return "no form"
    assert header.pairs() == pairs
    assert [(n, v) for n, v, _ in header.name_values()] == pairs
    message = decode(header.encode(), Mqmd(format="MQHRF"))
    assert message.headers == (header,)
    if not case["raw"]:
        return "read"
    raw = replace(header, data=header.data.rstrip(b"\0") + case["raw"].encode("latin-1"))
    try:
        found = raw.name_values()
    except DecodeError as error:
        _inside(error, 0, len(raw.data))
        try:
            raw.pairs()
        except DecodeError:
            return "refused"
        raise AssertionError("pairs reads what name_values refuses") from error
    assert raw.pairs() == [(n, v) for n, v, _ in found]
    return "read"


def _parameter(random: Random, depth: int) -> Json:
    number, kind = random.choice((1, 2030, 3011, -1, 2**31 - 1)), random.randrange(12 if depth else 11)
    value: Any = text(random, _LATIN)
    if kind == 11:
        value = [_parameter(random, depth - 1) for _ in range(random.randrange(4))]
    elif kind in (0, 1, 6):
        value = random.choice(LONGS)
    elif kind in (2, 3):
        value = [random.choice(LONGS) for _ in range(random.randrange(4))]
    elif kind == 5:
        value = [text(random, _LATIN) for _ in range(random.randrange(4))]
    return [kind, number, value]


def _built(case: Json) -> Any:
    kind, number, value = case
    if kind in (4, 7, 8, 9, 10):
        value = value.encode("latin-1")
        padding = bytes(-len(value) % 4)
    makes: tuple[Any, ...] = (
        lambda: Cfin(number, value),
        lambda: Cfin64(number, value << 20),
        lambda: Cfil(number, tuple(value)),
        lambda: Cfil64(number, tuple(each << 20 for each in value)),
        lambda: Cfst.of(number, value.decode("latin-1"), 819),
        lambda: Cfsl.of(number, tuple(value), 1208),
        lambda: Cfif(number, 2, value),
        lambda: Cfbs.of(number, value),
        lambda: Cfsf(number, 2, value, 819, "latin-1", padding),
        lambda: Cfbf(number, 2, value, padding),
        lambda: UnknownParameter(number, 99, value + padding),
        lambda: Cfgr(number, tuple(_built(each) for each in value)),
    )
    return makes[kind]()


def _pcf(random: Random) -> Json:
    tree = [_parameter(random, 3) for _ in range(random.randrange(5))]
    return {"parameters": tree, "order": random.choice(("little", "big")), "change": random.randrange(2**32)}


def _read_pcf(case: Json) -> str:
    pcf = Pcf(65, tuple(_built(each) for each in case["parameters"]), order=case["order"], rest=b"rest")
    data = pcf.encode()
    assert decode_pcf(data, 819) == pcf
    random = Random(case["change"])
    changed = with_other_bytes(random, data, data)
    try:
        found = decode_pcf(changed, 819, 50)
    except DecodeError as error:
        _inside(error, 50, len(changed))
        return "refused when changed"
    assert found.encode() == changed
    return "read when changed"


def _words(random: Random) -> Json:
    return {"text": text(random), "charset": random.choice(("utf-8", "utf-16-le", "utf-16-be"))}


def _write(case: Json) -> str:
    """Whoever makes a message of any text gets it, or EncodeError."""
    found, outcomes = case["text"], []
    makes: tuple[Any, ...] = (
        lambda: Rfh2((Folder.of(f"<usr><a>{found}</a></usr>", case["charset"]),)).encode(),
        lambda: Rfh1().with_pairs([("a", found)]).encode(),
        lambda: Rfh2(format=found).encode(),
        lambda: Mqmd(format=found, reply_to_q=found, user_identifier=found).encode(),
        lambda: Cfst.of(1, found, 1208).encode("big"),
    )
    for make in makes:
        try:
            make()
            outcomes.append("written")
        except EncodeError:
            outcomes.append("refused")
    return "written" if "refused" not in outcomes else "refused in part"


def _exact(random: Random) -> Json:
    folders = [_folder(random) for _ in range(random.randrange(4))]
    return {
        "folders": [f["text"] for f in folders],
        "ccsid": random.choice((1208, 1208, 1200)),
        "body": random.randbytes(9).hex(),
        "order": random.choice(("little", "big")),
        "padding": random.choice(("", "00", "20", "202020", "0000")),
    }


def _is_exact(case: Json) -> str:
    charset = "utf-8" if case["ccsid"] == 1208 else f"utf-16-{case['order'][0]}e"
    padding = bytes.fromhex(case["padding"])
    folders = tuple(Folder(found.encode(charset, "surrogatepass") + padding, charset) for found in case["folders"])
    header = Rfh2(folders, name_value_ccsid=case["ccsid"], order=case["order"], format="MQSTR")
    encoding = 273 if case["order"] == "big" else 546
    md = Mqmd(format="MQHRF2", encoding=encoding)
    body = header.encode() + bytes.fromhex(case["body"])
    message = decode(body, md.encode())
    assert encode(message) == body
    assert message.body == bytes.fromhex(case["body"])
    assert [folder.data for folder in message.headers[0].folders] == [folder.data for folder in folders]  # type: ignore[union-attr]
    return "exact"


TARGETS: Final = (
    Target(
        "folders",
        "any folder: pairs as a strict XML parser reads them, or DecodeError inside",
        _folder,
        _read_folder,
        40_000,
    ),
    Target("strings", "NameValueString: what is written is read; both readers agree", _pairs, _read_string, 40_000),
    Target("pcf", "PCF: what is written is read; any change is read exactly or refused", _pcf, _read_pcf, 25_000),
    Target("text", "any text in any header: written, or EncodeError", _words, _write, 40_000),
    Target("exact", "MQRFH2 of any folders and padding: encode(decode(x)) == x", _exact, _is_exact, 30_000),
)
