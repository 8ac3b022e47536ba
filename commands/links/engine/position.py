"""The position of the bridge in the logs of its tree, as the only message on a queue of its own.

It is put in the unit of work of the commands that came up to there. So after a crash the bridge goes on behind the last
publication that is a command already, and none becomes one twice.
"""

from __future__ import annotations

import json
from typing import Final

from commands.links.engine.followed_filters import Positions
from commands.qmgr.store.port import Queues
from rfh2.constants import MQFMT_STRING, MQPER_PERSISTENT
from rfh2.errors import StoreError
from rfh2.mqmd import Mqmd

_MD: Final = Mqmd(format=MQFMT_STRING, persistence=MQPER_PERSISTENT, coded_char_set_id=1208).encode()


def keep_position(unit: Queues, queue: str, position: Positions) -> None:
    """Have *position* on *queue* instead of what is there. Raises StoreError."""
    if unit.find_queue(queue) is not None:
        while unit.get(queue) is not None:
            pass
    unit.put(queue, _MD, json.dumps(position).encode())


def kept_position(unit: Queues, queue: str) -> Positions | None:
    """The position on *queue*; None if there is none yet. Raises StoreError if it cannot be read."""
    if unit.find_queue(queue) is None:
        return None
    message = next(unit.browse(queue), None)
    if message is None:
        return None
    try:
        return {str(log): int(position) for log, position in json.loads(message.body).items()}
    except (ValueError, AttributeError, TypeError) as error:
        why = f"queue {queue} has no position ({error}); clear it, and publications of natives may come twice"
        raise StoreError(why) from error
