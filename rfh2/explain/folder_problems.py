"""What is wrong with folders, and with the string of an MQRFH, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.errors import DecodeError
from rfh2.explain.codes import CODES, problem
from rfh2.explain.form import Problem
from rfh2.folders import Folder, parse, tag_of
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

# Folders that decide what happens to the message: broken ones are errors, others are passed on as they are.
_DECISIVE: Final = ("psc", "pscr", "")
# Those of which an MQRFH2 may have one (wire formats 3.2).
_ONCE: Final = ("pscr", "mcd", "jms", "usr", "mqps", "mqpse")
_KNOWN: Final = frozenset({"psc", "pscr", "mcd", "jms", "usr", "mqps", "mqpse", "mq_usr", "mqext"})
_HELD: Final = re.compile(r"<(psc|pscr)[\s/>]")
_BARE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)")


def folder_problems(header: Rfh2) -> Iterator[Problem]:
    """What is wrong with the folders of a header."""
    seen: set[str] = set()
    names = [folder.name for folder in header.folders]
    for folder, name in zip(header.folders, names, strict=True):
        if not _is_plain(folder):
            yield from _folder(folder)
        if name in seen and name in _ONCE:
            yield problem("repeated-folder", folder.offset, f"a second folder {name}; one is allowed")
        seen.add(name)
        if name not in _KNOWN:
            yield from _name(folder)
    if "pscr" in names and "psc" in names and names.index("psc") < names.index("pscr"):
        at = header.folders[names.index("pscr")].offset
        yield problem("pscr-in-command", at, "a pscr folder in a command is ignored")


def string_problems(header: Rfh1) -> Iterator[Problem]:
    """What is wrong with the NameValueString of an MQRFH."""
    try:
        header.pairs()
    except DecodeError as error:
        yield problem(_known(error.code), error.offset, f"{error.header}: {error.why}", reason=error.reason)


def _is_plain(folder: Folder) -> bool:
    """Whether a quick look shows that nothing is wrong with the text, as nearly always."""
    data = folder.data
    if folder.charset != "utf-8" or len(data) % 4 or b"\0" in data:
        return False
    try:
        return folder.is_flat()
    except DecodeError:
        return False


def _folder(folder: Folder) -> Iterator[Problem]:
    if len(folder.data) % 4:
        why = f"NameValueLength {len(folder.data)} is not a multiple of four"
        yield problem("length-not-multiple-of-4", folder.offset - 4, why)
    text = folder.data.decode(folder.charset, "replace")
    content = text.rstrip(" \0")
    if "\0" in text[len(content) :]:
        at = folder.offset + len(content.encode(folder.charset))
        yield problem("null-padding", at, f"folder {folder.name} is padded with nulls, not with blanks")
    if not content:
        yield problem("empty-folder", folder.offset - 4, "a NameValueData without a folder")
        return
    try:
        if folder.is_flat():
            return  # one root, no references: nothing of what follows
        roots = parse(folder)
    except DecodeError as error:
        yield _broken(folder, error)
        return
    if len(roots) > 1:
        names = ", ".join(tag_of(root).rpartition(":")[2] for root in roots)
        yield problem("several-roots", folder.offset, f"one NameValueData holds several folders: {names}")
    if ampersand := _BARE_AMPERSAND.search(text):
        at = folder.offset + len(text[: ampersand.start()].encode(folder.charset))
        yield problem("bare-ampersand", at, "an & is not written as &amp;; it is read as an ampersand")


def _name(folder: Folder) -> Iterator[Problem]:
    """A name that is IBM's but for case or a prefix: a queue manager passes such a folder on, and does not read it."""
    plain = folder.name.rpartition(":")[2]
    known = plain.lower()
    if known in _KNOWN:
        why = f"folder '{folder.name}' is not read: the name that counts is '{known}', letter by letter"
        yield problem("folder-name", folder.offset, why)


def _broken(folder: Folder, error: DecodeError) -> Problem:
    why = f"{error.header}: {error.why}"
    held = _HELD.search(folder.data.decode(folder.charset, "replace")) if folder.name[:1] in ("?", "!", "") else None
    if held is not None:
        what = "an XML declaration" if folder.name.startswith("?xml") else "a declaration, comment or instruction"
        said = f"{what} stands before <{held[1]}>; XML allows it, but a queue manager finds no {held[1]} folder then"
        return problem("xml-not-allowed", error.offset, said)
    if error.why == "text outside any element" and error.offset > folder.offset and folder.name in _DECISIVE:
        return problem("text-after-folder", error.offset, why, reason=error.reason)
    if folder.name in _DECISIVE:
        return problem(_known(error.code), error.offset, why, reason=error.reason)
    return problem("opaque-folder", error.offset, f"{why}; the folder is passed on as it is")


def _known(code: str) -> str:
    return code if code in CODES else "bad-folder"
