"""Captures as tables: the columns of Spark's decoded, in pyarrow and pandas."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands import (
    CapturedMessage,
    analysis_to_batches,
    captures_to_arrow,
    captures_to_batches,
    captures_to_pandas,
    puts_to_batches,
)
from commands.replay import LocalReplay
from commands.replay.analysis.facts import LocalAnalysis
from commands.replay.analysis.tables import TOPICS
from rfh2.captures import read_captures
from rfh2.errors import CaptureError
from rfh2.folders import Folder
from rfh2.rfh2 import Rfh2

pytestmark = pytest.mark.skipif(find_spec("pandas") is None, reason="needs the extra pandas")
RESULTS = "fixtures/results-service/capture.jsonl"


def capture(path: Path, *usr: str) -> Path:
    lines = []
    for seq, folder in enumerate(usr, 1):
        folders = tuple(map(Folder.of, ("<psc><Command>Publish</Command><Topic>T</Topic></psc>", folder)))
        header = Rfh2(folders, coded_char_set_id=1208, format="MQSTR")
        body = header.encode() + b"data"
        lines.append(CapturedMessage(seq=seq, queue="Q", body_hex=body.hex()).model_dump_json())
    path.write_text("\n".join([*lines, "{}"]) + "\n")
    return path


def test_a_row_for_each_record_those_that_cannot_be_read_too(tmp_path: Path) -> None:
    frame = captures_to_pandas(capture(tmp_path / "c.jsonl", "<usr><a>1</a></usr>"))
    assert frame.seq.tolist()[0] == 1
    assert frame.seq.isna().tolist() == [False, True]
    assert (frame.command[0], frame.topics[0].tolist(), frame.body_text[0]) == ("Publish", ["T"], "data")
    assert [problem["code"] for problem in frame.problems[1]] == ["unreadable-record"]
    assert "line 2" in frame.problems[1][0]["message"]


@pytest.mark.parametrize(
    ("folder", "properties"),
    [
        ("<usr><Colour>red</Colour></usr>", {"Colour": "red"}),
        ("<usr><n dt='i4'>7</n><b dt='boolean'>1</b></usr>", {"n": "7", "b": "true"}),
        ("<usr><x dt='bin.hex'>0aFF</x></usr>", {"x": "0aff"}),
        ("<usr><a>1</a><a>2</a><g><h>3</h></g></usr>", {"a": "1", "g.h": "3"}),
        ("<usr><a xsi:nil='true'></a></usr>", {"a": None}),
        ("<mcd><Msd>jms_text</Msd></mcd>", {}),
        ("<usr><a>1</usr>", {}),
    ],
    ids=["text", "typed", "binary", "twice-and-nested", "null", "no-usr", "damaged"],
)
def test_properties(tmp_path: Path, folder: str, properties: dict[str, str | None]) -> None:
    assert captures_to_pandas(capture(tmp_path / "c.jsonl", folder)).properties[0] == properties


def test_thorough_finds_warnings_too() -> None:
    plain, thorough = (captures_to_arrow(RESULTS, thorough=more) for more in (False, True))
    assert plain.schema == thorough.schema
    count = [sum(map(len, table["problems"].to_pylist())) for table in (plain, thorough)]
    assert count[0] < count[1]


def test_columns_and_types_are_the_same_where_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert captures_to_pandas(tmp_path / "empty").dtypes.equals(captures_to_pandas(RESULTS).dtypes)
    assert len(captures_to_pandas(RESULTS)) == len(Path(RESULTS).read_text().splitlines())


@pytest.mark.parametrize(("missing", "extra"), [("pandas", "pandas"), ("pyarrow", "parquet")])
def test_a_missing_library_is_named_with_its_extra(missing: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "commands.replay.decoded_columns", raising=False)
    with pytest.raises(CaptureError, match=rf"the package {missing}: .* -m pip install '\.\[{extra}\]'"):
        (captures_to_pandas if missing == "pandas" else captures_to_arrow)(RESULTS)


def test_values_are_those_of_the_capture() -> None:
    given = [json.loads(line) for line in Path(RESULTS).read_text().splitlines()]
    rows = captures_to_arrow(RESULTS).to_pylist()
    assert [(row["seq"], row["queue"], row["user"]) for row in rows] == [
        (one["seq"], one["queue"], one["user"]) for one in given
    ]


def test_batches_are_the_tables() -> None:
    assert captures_to_batches(RESULTS).read_all().equals(captures_to_arrow(RESULTS))
    messages = [record.message for record in read_captures(RESULTS) if record.message is not None]
    wanted = [(put.seq, put.at_qmgr, put.n, put.queue) for put in LocalReplay().puts(messages)]
    puts = puts_to_batches(RESULTS).read_all().select(["seq", "at_qmgr", "n", "queue"]).to_pylist()
    assert [tuple(row.values()) for row in puts] == wanted
    analysis = LocalAnalysis()
    for message in messages:
        analysis.take(message)
    assert analysis_to_batches(RESULTS, "topics").read_all().to_pylist() == analysis.rows(TOPICS)
    with pytest.raises(ValueError, match="there is no table nonsense: use qmgrs"):
        analysis_to_batches(RESULTS, "nonsense")


def test_a_record_that_cannot_be_read_is_not_passed_over_unseen(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(Path(RESULTS).read_text() + "no message\n")
    with pytest.raises(CaptureError, match="line 27"):
        puts_to_batches(path).read_all()
    seen: list[CaptureError] = []
    assert puts_to_batches(path, on_problem=seen.append).read_all().num_rows == 28
    assert len(seen) == 1
