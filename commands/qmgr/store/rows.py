"""The rows of the table of messages: its columns by name, and the statements that read and write them whole.

The order of the columns stands here alone. Rows are plain tuples, unpacked by whoever needs more than one column: named
tuples cost a tenth of a put. Times are microseconds since 1970 in UTC.
"""

from __future__ import annotations

from typing import Final

SHORT_BYTES: Final = 8 * 1024

MessageRow = tuple[int, str, int, int, str | None, int, int | None, bytes, bytes | None, int]
"""One message, in the order of ``COLUMNS``.

rank: its place in the queue, 9 less its priority. persistent: 0 or 1. body: None where it is longer than
``SHORT_BYTES`` and was not asked for.
"""

COLUMNS: Final = (
    *("seq", "queue", "rank", "time", "user", "persistent", "expires_at"),
    *("md", "body", "backout_count"),
)
SEQ: Final = 0
QUEUE: Final = 1
RANK: Final = 2
TIME: Final = 3
USER: Final = 4
EXPIRES_AT: Final = 6
MD: Final = 7
BODY: Final = 8


def _columns(**instead: str) -> str:
    return ", ".join(instead.get(name, name) for name in COLUMNS)


_PLACES: Final = ", ".join("?" for _ in COLUMNS)
INSERT_MESSAGE: Final = f"INSERT INTO messages ({_columns()}) VALUES ({_PLACES})"
DELETE_MESSAGE: Final = "DELETE FROM messages WHERE seq = ?"
MANY: Final = 50
"""The messages of one of the next two statements: so many that the statement itself costs little."""
INSERT_MESSAGES: Final = f"INSERT INTO messages ({_columns()}) VALUES {', '.join([f'({_PLACES})'] * MANY)}"
DELETE_MESSAGES: Final = f"DELETE FROM messages WHERE seq IN ({', '.join('?' * MANY)})"
MESSAGE_ON_QUEUE: Final = f"SELECT {_columns()} FROM messages WHERE seq = ? AND queue = ?"
FIRST_MESSAGES: Final = f"SELECT {_columns()} FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
_SHORT_BODY: Final = f"CASE WHEN length(body) <= {SHORT_BYTES} THEN body END"
FIRST_SHORT_MESSAGES: Final = (
    f"SELECT {_columns(body=_SHORT_BODY)} FROM messages WHERE queue = ? ORDER BY rank, seq LIMIT ?"
)
"""The same, without long bodies."""
BODY_OF_MESSAGE: Final = "SELECT body FROM messages WHERE seq = ?"
# By number, which the index has, so that a deep queue's rows are not read.
OLDEST_MESSAGE: Final = "SELECT time FROM messages WHERE seq = (SELECT min(seq) FROM messages WHERE queue = ?)"
