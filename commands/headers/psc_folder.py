"""Where the psc folder of an MQRFH2 is, and what else the header carries."""

from __future__ import annotations

from functools import cache

from rfh2.ccsid import UTF8_CCSID
from rfh2.folders import Folder
from rfh2.rfh2 import Rfh2, split_roots

PSC = "psc"
_BEGIN = b"<psc>"
_MARK = b"<psc"


def lone_psc(header: Rfh2) -> Folder | None:
    """The psc folder of *header*, if a quick look shows exactly one; None where a quick look is not enough."""
    if header.name_value_ccsid != UTF8_CCSID:
        return None
    found = None
    for folder in header.folders:
        data = folder.data
        if _MARK in data:
            if found is not None or not data.startswith(_BEGIN):
                return None
            found = folder
    return found


def split_psc(header: Rfh2) -> tuple[tuple[Folder, ...], tuple[Folder, ...]]:
    """The psc folders of *header*, and all its other folders, each in order.

    A NameValueData that holds a psc folder among others is split; every other one stays as it is, byte for byte. If no
    psc folder is sound, a NameValueData with text or a declaration in front of ``<psc>`` counts as one: the error then
    comes from reading it.
    """
    commands: list[Folder] = []
    others: list[Folder] = []
    doubtful: list[Folder] = []
    for folder in header.folders:
        if _is_psc_alone(folder):
            commands.append(folder)
            continue
        if not _mentions_psc(folder):
            others.append(folder)
            continue
        parts = split_roots(folder)
        found = [part for part in parts if part.name == PSC]
        if not found:
            others.append(folder)
            if folder.name[:1] in ("", "!", "?"):
                doubtful.append(folder)
            continue
        commands += found
        others += [part for part in parts if part.name != PSC]
    if doubtful and not commands:
        return tuple(doubtful[:1]), tuple(folder for folder in others if folder is not doubtful[0])
    return tuple(commands), tuple(others)


def _is_psc_alone(folder: Folder) -> bool:
    """The result in the usual case, without parsing the text."""
    data = folder.data
    return data.startswith(_BEGIN) and data.count(b"<psc") == 1 and data.rstrip(b" \0").endswith(b"</psc>")


def _mentions_psc(folder: Folder) -> bool:
    return _mark(folder.charset) in folder.data


@cache
def _mark(charset: str) -> bytes:
    return f"<{PSC}".encode(charset)
