"""What IBM's JMS client said to a queue manager, said again: the listener answers as that queue manager did.

Byte for byte, but for identifiers, times, random numbers, and what belongs to that queue manager alone: its dead-letter
queue, its code page. The transcripts are beside the checkout; without them these tests are skipped.

Rows of docs/conformance.md: LSN-7.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.config.settings import ChannelRule
from commands.listener.security import Security
from commands.qmgr.store import QueueManagerStore
from rfh2.channel.segments import PREFIX_BYTES, SegmentType, read_segment, segment_length
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.transcripts import Said, said
from tests.waiting import PATIENCE_S

FOLDER = Path(__file__).parents[4] / "shared" / "captures" / "client-channel"

# By type of segment: first and last byte of the payload that may differ, and why.
MASKS: dict[int, tuple[tuple[int, int, str], ...]] = {
    SegmentType.INITIAL_DATA: (
        (136, 147, "process, thread and trace numbers"),
        (163, 207, "the identifier of the queue manager"),
        (228, 239, "random"),
    ),
    SegmentType.SOCKET_ACTION: ((12, 19, "thread and trace numbers"),),
    SegmentType.MQCONN + 0x10: ((164, 171, "connection identifier"), (280, 403, "connection tag")),
    SegmentType.MQPUT + 0x10: (
        (80, 87, "MsgId"),
        (212, 223, "user"),
        (320, 335, "date and time"),
    ),
    SegmentType.MQINQ + 0x10: (
        (32, 79, "dead-letter queue; inquired alone"),
        (60, 64, "code page, advanced capability"),
        (116, 163, "the identifier of the queue manager"),
    ),
}


def differing(got: bytes, wanted: Said) -> list[int]:
    """Where the payloads differ, masked bytes aside."""
    masks = MASKS.get(wanted.header.kind, ())
    masked = {at for first, last, _ in masks for at in range(first, last + 1)}
    longer = max(len(got), len(wanted.payload))
    return [at for at in range(longer) if at not in masked and got[at : at + 1] != wanted.payload[at : at + 1]]


@pytest.mark.rule("LSN-7")
@pytest.mark.parametrize(
    ("name", "qmgr", "user"),
    [("jms_fap17_put_two_sessions.txt", "QM2", "app"), ("jms_fap17_refused_2035.txt", "QM3", "")],
)
def test_the_listener_answers_as_a_queue_manager_did(tmp_path: Path, name: str, qmgr: str, user: str) -> None:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the checkout")
    segments = list(said(path))
    asked = next(each for each in segments if each.header.kind == SegmentType.MQCONN)
    qmgr = asked.payload[16:64].decode().strip("* ") or qmgr
    QueueManagerStore.create(tmp_path, QueueManager(qmgr)).close()
    rule = ChannelRule(mcauser=user) if user else ChannelRule(addresses=("10.0.0.0/8",))
    answered = 0
    with (
        listener_at(tmp_path, Security({"*": rule}), qmgr) as port,
        socket.create_connection(("127.0.0.1", port)) as peer,
    ):
        peer.settimeout(PATIENCE_S)
        stream = peer.makefile("rb")
        waiting: list[tuple[int | None, int]] = []
        for segment in segments:
            if segment.by_client:
                peer.sendall(segment.encode())
                waiting.append((segment.header.conversation, segment.header.kind & 0x8F))
                continue
            reply_to = (segment.header.conversation, segment.header.kind & 0x8F)
            if segment.header.kind > 0x90 and reply_to not in waiting:
                continue  # its request was not captured
            prefix = stream.read(PREFIX_BYTES)
            header, payload = read_segment(prefix + stream.read(segment_length(prefix) - PREFIX_BYTES))
            where = f"segment {segments.index(segment)}, {header}"
            assert header == segment.header, where
            assert differing(payload, segment) == [], where
            if reply_to in waiting:
                waiting.remove(reply_to)
            answered += 1
    assert answered >= 3
