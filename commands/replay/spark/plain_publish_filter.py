"""Plain publications: separated from all that matters for subscriptions and retained publications by their bytes alone.

A message that begins as nearly all publications do, with an MQRFH2 whose first folder is
``<psc><Command>Publish</Command>`` in UTF-8, and that has neither ``RetainPub``, nor a character reference, nor a
PubOpt that may be a decimal sum anywhere in it, leaves nothing retained and deletes nothing. The same rule is here for
Spark's columns and for Arrow's.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

_STRUC_ID: Final = b"RFH "
_VERSIONS: Final = (b"\0\0\0\2", b"\2\0\0\0")
_UTF8: Final = ((1208).to_bytes(4, "big"), (1208).to_bytes(4, "little"))
_PLAIN: Final = b"<psc><Command>Publish</Command>"
_SPECIAL: Final = (b"RetainPub", b"&#")
# A start tag with more than its name, or a value that does not begin as a word does. JMS clients put the word None.
_OPTION: Final = "PubOpt"
_MAYBE_SUM: Final = "(^|[^/])PubOpt([^>]|>[^A-Za-z]|$)"
_VERSION_AT, _CCSID_AT, _FOLDER_AT = 4, 32, 40


def is_plain(column: str = "body") -> Column:
    """Whether a message on a stream queue is a Publish, or an error, that leaves nothing retained; else it may be."""
    body = F.col(column)
    header = (F.substring(body, 1, 4) == F.lit(_STRUC_ID)) & F.substring(body, _VERSION_AT + 1, 4).isin(*_VERSIONS)
    utf8 = F.substring(body, _CCSID_AT + 1, 4).isin(*_UTF8)
    plain = F.substring(body, _FOLDER_AT + 1, len(_PLAIN)) == F.lit(_PLAIN)
    one, other = (F.contains(body, F.lit(special)) for special in _SPECIAL)
    # Decoding the body takes long, and most bodies have no option.
    maybe_sum = F.contains(body, F.lit(_OPTION.encode())) & F.decode(body, "ISO-8859-1").rlike(_MAYBE_SUM)
    return header & utf8 & plain & ~(one | other | maybe_sum)


def are_plain(bodies: pa.Array) -> pa.BooleanArray:
    """The same of each of *bodies*, of which none is null."""
    header = pc.and_(_are_at(bodies, 0, _STRUC_ID), _are_at(bodies, _VERSION_AT, *_VERSIONS))
    plain = pc.and_(_are_at(bodies, _CCSID_AT, *_UTF8), _are_at(bodies, _FOLDER_AT, _PLAIN))
    one, other = (pc.match_substring(bodies, special) for special in _SPECIAL)
    special = pc.or_(pc.or_(one, other), pc.match_substring_regex(bodies, _MAYBE_SUM))
    return pc.and_not(pc.and_(header, plain), special)


def _are_at(bodies: pa.Array, at: int, *values: bytes) -> pa.BooleanArray:
    found = pc.binary_slice(bodies, at, at + len(values[0]))
    return pc.is_in(found, pa.array(values, found.type))
