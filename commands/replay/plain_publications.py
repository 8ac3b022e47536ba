"""Plain publications: separated from all that matters for subscriptions and retained publications by their bytes alone.

A message that begins as nearly all publications do, with an MQRFH2 whose first folder is
``<psc><Command>Publish</Command>`` in UTF-8, and that has neither ``RetainPub``, nor a character reference, nor a
PubOpt that may be a decimal sum anywhere in it, leaves nothing retained and deletes nothing.
"""

from __future__ import annotations

import re
from typing import Final

from rfh2.ccsid import UTF8_CCSID
from rfh2.rfh2 import STRUC_ID

_VERSIONS: Final = (b"\0\0\0\2", b"\2\0\0\0")
_UTF8: Final = (UTF8_CCSID.to_bytes(4, "big"), UTF8_CCSID.to_bytes(4, "little"))
_VERSION: Final = slice(4, 8)
_CCSID: Final = slice(32, 36)
_FOLDER_AT: Final = 40
_PLAIN: Final = b"<psc><Command>Publish</Command>"
# A start tag with more than its name, or a value that does not begin as a word does. JMS clients put the word None.
_MAYBE_SUM: Final = re.compile(rb"(^|[^/])PubOpt([^>]|>[^A-Za-z]|$)")


def is_plain(body: bytes) -> bool:
    """Whether a message on a stream queue is a Publish, or an error, that leaves nothing retained; else it may be."""
    return (
        body.startswith(_PLAIN, _FOLDER_AT)
        and body.startswith(STRUC_ID)
        and body[_VERSION] in _VERSIONS
        and body[_CCSID] in _UTF8
        and b"RetainPub" not in body
        and b"&#" not in body
        and not (b"PubOpt" in body and _MAYBE_SUM.search(body))
    )
