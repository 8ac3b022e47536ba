"""Plain publications (``commands.replay.plain_publications``) in Spark's columns and in Arrow's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812 - Spark's own custom
)

from commands.replay.plain_publications import (
    CCSID_AT,
    FOLDER_AT,
    MAYBE_SUM,
    OPTION,
    PLAIN,
    SPECIAL,
    STRUC_ID,
    UTF8,
    VERSION_AT,
    VERSIONS,
)


def is_plain(column: str = "body") -> Column:
    """Whether a message on a stream queue is a Publish, or an error, that leaves nothing retained; else it may be."""
    body = F.col(column)
    header = (F.substring(body, 1, 4) == F.lit(STRUC_ID)) & F.substring(body, VERSION_AT + 1, 4).isin(*VERSIONS)
    utf8 = F.substring(body, CCSID_AT + 1, 4).isin(*UTF8)
    plain = F.substring(body, FOLDER_AT + 1, len(PLAIN)) == F.lit(PLAIN)
    one, other = (F.contains(body, F.lit(special)) for special in SPECIAL)
    # Decoding the body takes long, and most bodies have no option.
    maybe_sum = F.contains(body, F.lit(OPTION.encode())) & F.decode(body, "ISO-8859-1").rlike(MAYBE_SUM)
    return header & utf8 & plain & ~(one | other | maybe_sum)


def are_plain(bodies: pa.Array) -> pa.BooleanArray:
    """The same of each of *bodies*, of which none is null."""
    header = pc.and_(_are_at(bodies, 0, STRUC_ID), _are_at(bodies, VERSION_AT, *VERSIONS))
    plain = pc.and_(_are_at(bodies, CCSID_AT, *UTF8), _are_at(bodies, FOLDER_AT, PLAIN))
    one, other = (pc.match_substring(bodies, special) for special in SPECIAL)
    special = pc.or_(pc.or_(one, other), pc.match_substring_regex(bodies, MAYBE_SUM))
    return pc.and_not(pc.and_(header, plain), special)


def _are_at(bodies: pa.Array, at: int, *values: bytes) -> pa.BooleanArray:
    found = pc.binary_slice(bodies, at, at + len(values[0]))
    return pc.is_in(found, pa.array(values, found.type))
