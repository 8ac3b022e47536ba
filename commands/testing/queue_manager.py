"""``qpubsub dev`` as a process of its own, for as long as tests need it.

with DevQueueManager.start() as manager:
    manager.mqsc("DEFINE QLOCAL(ORDERS)")
    manager.put("ORDERS", "one")
    run_program(manager.host, manager.port, manager.channel)
    assert manager.get("INVOICES", wait_s=5).body_text == "one paid"
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

from commands.qmgr.store import QueueManagerStore
from commands.running.developer import groups_of_developer
from commands.running.mqsc_scripts import runner_of
from rfh2 import Message, Mqmd, decode
from rfh2.constants import MQFMT_STRING
from rfh2.errors import QPubSubError, StoreError

_UTF8: Final = 1208
_ENDING_S: Final = 15.0


class DevError(QPubSubError):
    """A queue manager for tests did not start, or refused a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevQueueManager:
    """A queue manager that runs. channel, user: of applications; any user works there as *user*.

    conn_name: ``host(port)``, as CONNAME has it. home: the directory that it is in; pid: its process.
    """

    qmgr: str
    host: str
    port: int
    conn_name: str
    channel: str
    user: str
    admin_channel: str
    admin_user: str
    home: str
    pid: int

    @classmethod
    @contextmanager
    def start(cls, qmgr: str = "QM1", mqsc: Path | None = None, options: Sequence[str] = ()) -> Iterator[Self]:
        """One on a port that is free, until the end of the block. mqsc: a directory of scripts that it applies.

        options: further ones of ``qpubsub dev``. It ends with this process, however that ends. Raises DevError.
        """
        scripts = () if mqsc is None else ("--mqsc", str(mqsc))
        # -P: nothing in the directory of the tests stands in for a module.
        words = (sys.executable, "-P", "-m", "mq_qpubsub", "dev", "-m", qmgr, "--port", "0", *scripts, *options)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("MQ_")}
        with subprocess.Popen(
            (*words, "--json", "--until-eof", "--quiet"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready:
                raise DevError(f"queue manager {qmgr} did not start: stderr says why")
            try:
                said = json.loads(ready)
                yield cls(**{each.name: said[each.name] for each in fields(cls)})
            finally:
                process.stdin.close()
                try:
                    process.wait(_ENDING_S)
                except subprocess.TimeoutExpired:
                    process.kill()

    @property
    def mqserver(self) -> str:
        """The environment variable MQSERVER of programs with IBM's C client."""
        return f"{self.channel}/TCP/{self.conn_name}"

    def mqsc(self, script: str) -> list[str]:
        """Carry out MQSC commands, one on each line; the lines of their answers. Raises DevError for a refusal."""
        with self._store() as store:
            answers = runner_of(store, groups_of_developer).run_script(script)
        for statement, answer in answers:
            if not answer.ok:
                raise DevError(f"{statement.text}: {' '.join(answer.lines)}")
        return [line for _, answer in answers for line in answer.lines]

    def put(self, queue: str, data: str | bytes, mqmd: Mqmd | None = None) -> None:
        """Put a message; text as UTF-8 of format MQSTR. mqmd: another descriptor. Raises StoreError."""
        is_text = isinstance(data, str)
        described = mqmd or (Mqmd(format=MQFMT_STRING, coded_char_set_id=_UTF8) if is_text else Mqmd())
        with self._store() as store, store.unit_of_work() as unit:
            unit.put(queue, described.encode(), data.encode() if isinstance(data, str) else data, user=self.user)

    def get(self, queue: str, wait_s: float = 0.0) -> Message | None:
        """Get a message, decoded; None if none comes in *wait_s* seconds. Raises StoreError."""
        end = time.monotonic() + wait_s
        with self._store() as store:
            while True:
                with store.unit_of_work() as unit:
                    found = unit.get(queue)
                if found is not None:
                    return decode(found.body, found.md)
                left_s = end - time.monotonic()
                if left_s <= 0:
                    return None
                store.wait_for_change(left_s)

    def depth(self, queue: str) -> int:
        """How many messages are on a queue. Raises StoreError."""
        with self._store() as store:
            return store.depth(queue)

    def clear(self) -> None:
        """Take all messages off all queues but those of SYSTEM., and all retained publications away."""
        with self._store() as store:
            with store.unit_of_work() as unit:
                for queue in unit.local_queues():
                    if not queue.name.startswith("SYSTEM."):
                        unit.clear_queue(queue.name)
            retained = store.load_state()[2]
        for each in retained:
            topic = each.topic_string.replace("'", "''")
            self.mqsc(f"CLEAR TOPICSTR('{topic}') CLRTYPE(RETAINED)")

    def _store(self) -> QueueManagerStore:
        if not Path(self.home).is_dir():
            raise StoreError(f"queue manager {self.qmgr} has ended")
        return QueueManagerStore.open(Path(self.home), self.qmgr)
