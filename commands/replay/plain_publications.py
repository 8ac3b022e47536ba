"""Plain publications: separated from all that matters for subscriptions and retained publications by their bytes alone.

A message that begins as nearly all publications do, with an MQRFH2 whose first folder is
``<psc><Command>Publish</Command>`` in UTF-8, and that has neither ``RetainPub``, nor a character reference, nor a
PubOpt that may be a decimal sum anywhere in it, leaves nothing retained and deletes nothing. Spark has the same rule
for its columns, and for Arrow's (``commands.replay.spark.plain_publish_filter``).
"""

from __future__ import annotations

import re
from typing import Final

from rfh2.ccsid import UTF8_CCSID

STRUC_ID: Final = b"RFH "
VERSIONS: Final = (b"\0\0\0\2", b"\2\0\0\0")
UTF8: Final = (UTF8_CCSID.to_bytes(4, "big"), UTF8_CCSID.to_bytes(4, "little"))
PLAIN: Final = b"<psc><Command>Publish</Command>"
SPECIAL: Final = (b"RetainPub", b"&#")
OPTION: Final = "PubOpt"
MAYBE_SUM: Final = "(^|[^/])PubOpt([^>]|>[^A-Za-z]|$)"
"""A start tag with more than its name, or a value that does not begin as a word does. JMS clients put the word None."""

VERSION_AT, CCSID_AT, FOLDER_AT = 4, 32, 40

_MAYBE_SUM: Final = re.compile(MAYBE_SUM.encode())


def is_plain(body: bytes) -> bool:
    """Whether a message on a stream queue is a Publish, or an error, that leaves nothing retained; else it may be."""
    return (
        body.startswith(PLAIN, FOLDER_AT)
        and body.startswith(STRUC_ID)
        and body[VERSION_AT : VERSION_AT + 4] in VERSIONS
        and body[CCSID_AT : CCSID_AT + 4] in UTF8
        and not any(special in body for special in SPECIAL)
        and not (OPTION.encode() in body and _MAYBE_SUM.search(body))
    )
