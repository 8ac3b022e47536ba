"""The bytes: structures, and the codecs of coded character sets."""

from __future__ import annotations

from extension.markdown import Table, code
from rfh2 import layouts
from rfh2.ccsid import text_codec
from rfh2.constants import MQENC_NATIVE

_LARGEST_CCSID = 65_535


def layout(name: str) -> Table:
    """The fields of a structure of ``rfh2.layouts``: L is a number of four bytes."""
    declared: layouts.Layout = getattr(layouts, name)
    values = declared.fast["big"].unpack(bytes(declared.size))
    rows = tuple(
        (field, str(offset), str(length), "L" if isinstance(value, int) else "")
        for (field, offset, length), value in zip(declared.spans(), values, strict=True)
    )
    return Table((code(name), "offset", "length", "type"), rows)


def code_pages() -> Table:
    """Each codec, with the CCSIDs whose text it reads."""
    read: dict[str, list[str]] = {}
    for ccsid in range(1, _LARGEST_CCSID + 1):
        if (codec := text_codec(ccsid, MQENC_NATIVE)) is not None:
            name = "`cp` with the number" if codec == f"cp{ccsid:03}" else code(codec.removesuffix("-le"))
            read.setdefault(name, []).append(str(ccsid))
    return Table(("codec", "CCSID"), tuple((name, ", ".join(ccsids)) for name, ccsids in sorted(read.items())))
