"""A command for a native publication is that of ``command_for``, also where one like it was made before."""

from __future__ import annotations

from typing import Any

from commands.links.engine.inbound_writer import CommandPutter, NativePublication, command_for
from rfh2 import Rfh2

VALUES: dict[str, list[Any]] = {
    "topic": ["a", "a/b"],
    "payload": [b"1", b"22", b"", b"RFH not whole"],
    "retain": [False, True],
    "persistent": [True, False],
    "expiry_s": [None, 3.0],
    "priority": [0, 4],
    "properties": [(), (("Colour", "red"),), (("not a name", "x"),)],
    "stamps": [(), (("SeqNum", "1"),), (("SeqNum", "2"),)],
    "format": ["", "MQSTR", "MQHRF2", "OWN"],
    "encoding": [546, 273],
    "ccsid": [1208, 819],
}
PLAIN = NativePublication(**{name: values[0] for name, values in VALUES.items()})
NATIVES = [PLAIN._replace(**{name: value}) for name in VALUES for value in VALUES[name]]
# The first one begins with the header that its format names.
NATIVES += [PLAIN._replace(format="MQHRF2", payload=payload) for payload in (Rfh2().encode() + b"1", b"1")]


class Unit:
    """A unit of work that keeps what is put."""

    def __init__(self) -> None:
        self.put_so_far: list[tuple[bytes, bytes]] = []

    def put(self, _queue: str, md: bytes, body: bytes, **_about: Any) -> None:
        self.put_so_far.append((md, body))


def test_what_is_known_of_one_publication_serves_those_that_differ_in_their_data_alone() -> None:
    unit: Any = Unit()
    CommandPutter("QM1", "native", "DEAD").put_all(unit, NATIVES * 2)
    made = [command_for(native, "native") for native in NATIVES * 2]
    assert unit.put_so_far == [(mqmd.encode(), body) for mqmd, body, _ in made]
