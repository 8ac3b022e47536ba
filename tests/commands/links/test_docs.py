"""docs/live-brokers.md says what the code does: every key of the file, every line that check prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.config.settings import QueuesConfig, TopicsConfig
from commands.qmgr.store import QueueManagerStore
from tests.commands.links.mqi.harness import (
    CONTROL,
    DEAD,
    INCOMING,
    OUTGOING,
    OWED,
    RECORD,
    STREAM,
    StandIn,
    needs_mqi,
    stand_in,
)

DOC = (Path(__file__).parents[3] / "docs" / "live-brokers.md").read_text()
URL = "ibmmq://qpubsub@127.0.0.1:1414/QM1?channel=C"


@pytest.mark.parametrize(("table", "title"), [(TopicsConfig, "`[topics]`"), (QueuesConfig, "`[queues]`")])
def test_every_key_of_the_file_is_told(table: type[TopicsConfig] | type[QueuesConfig], title: str) -> None:
    parts = [DOC.split(f"| {each} | default", 1)[1].split("\n\n", 1)[0] for each in (title, "both tables")]
    rows = [line for part in parts for line in part.splitlines() if line.startswith("| `")]
    for name, field in table.model_fields.items():
        row = next((row for row in rows if f"`{name}`" in row.split("|")[1]), None)
        assert row is not None, name
        if isinstance(field.default, int | float) or (field.default and not isinstance(field.default, BaseModel)):
            assert row.split("|")[2].strip(" `") == f"{field.default}".removesuffix(".0"), name


def _mends(home: Path, mq: StandIn) -> set[str]:
    words = ["check", "-m", "QM1", "--home", str(home), "--json", "--queues", URL, "--topics", URL]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1, result.output
    return {line for row in map(json.loads, result.stdout.splitlines()) for line in row["mend"]}


def _rights(lines: set[str]) -> dict[str, set[str]]:
    """Object and rights of setmqaut lines."""
    found: dict[str, set[str]] = {}
    for line in lines:
        if (told := re.fullmatch(r"setmqaut -m QM1 -t (\S+(?: -n \S+)?) -p qpubsub ([+a-z ]+)", line)) is not None:
            found.setdefault(told[1], set()).update(told[2].split())
    return found


@needs_mqi
@pytest.mark.faults
def test_every_line_that_check_prints_for_ibm_mq_is_told(tmp_path: Path) -> None:
    home = tmp_path / "qmgrs"
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    said: set[str] = set()
    with stand_in(tmp_path / "mq", psmode=2, deadq="") as mq:
        gone = [OUTGOING, INCOMING, OWED, RECORD]
        mq.tell(anew={"qmgr": "QM1", "psmode": 2, "deadq": "", "queues": {CONTROL: {}, STREAM: {}}})
        said |= _mends(home, mq)
        everything = 1 | 2 | 4 | 8 | 16
        queues = (CONTROL, STREAM, DEAD, *gone)
        denied = [{"queue": queue, "options": everything} for queue in queues]
        mq.tell(anew={"qmgr": "QM1", "denied": denied, "queues": {queue: {} for queue in queues}})
        for op, queue in (("U", ""), ("P", ""), ("P", "SYSTEM.ADMIN.COMMAND.QUEUE")):
            mq.fault(op, 2035, queue=queue)
        said |= _mends(home, mq)
        mq.tell(clear_faults=True)
        mq.fault("C", 2035)
        said |= _mends(home, mq)
    told = set(DOC.splitlines())
    mqsc = {line for line in said if not line.startswith("setmqaut")}
    # It is there in every queue manager, and is named here because this one has next to nothing.
    admin = "DEFINE QLOCAL('SYSTEM.BROKER.ADMIN.STREAM') DEFPSIST(YES) SHARE"
    assert mqsc - told == {admin}
    rights, documented = _rights(said), _rights(told)
    assert rights.keys() - documented.keys() == set()
    for name, wanted in rights.items():
        assert wanted <= documented[name], name
    assert documented.keys() - rights.keys() == set(), "told, and never printed"
