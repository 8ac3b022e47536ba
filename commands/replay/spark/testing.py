"""For the tests of programs that use this package: a tiny capture, and an equality of puts that says what differs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from commands.broker.puts import Put
from commands.explain.build import CommandSpec, command_message
from commands.replay.spark.schemas import CAPTURED, PUTS
from rfh2.mqmd import Mqmd

_COMMANDS: Final = (
    CommandSpec("Publish", ("Sport/Rugby",), ("RetainPub",), data="0 0"),
    CommandSpec("RegSub", ("Sport/#",), mqmd=Mqmd(reply_to_q="SCORES")),
    CommandSpec("Publish", ("Sport/Rugby",), data="3 0"),
    CommandSpec("Publish", ("News/Weather",), data="rain"),
    CommandSpec("DeregSub", ("Sport/#",), mqmd=Mqmd(reply_to_q="SCORES")),
    CommandSpec("Publish", ("Sport/Rugby",), data="3 7"),
)


def sample_capture(spark: SparkSession) -> DataFrame:
    """Six messages of one queue manager, with the columns of CAPTURED. A subscriber gets two of four publications."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for seq, spec in enumerate(_COMMANDS, 1):
        made = command_message(spec)
        rows.append((seq, start + timedelta(seconds=seq), "QM1", made.queue, None, made.md, made.body))
    return spark.createDataFrame(rows, CAPTURED)


def assert_puts_equal(got: DataFrame, wanted: DataFrame | Iterable[Put]) -> None:
    """Raises AssertionError where the puts of *got* are not *wanted*, in whatever order they come.

    wanted: another DataFrame with the columns of PUTS, or puts of the local replay.
    """
    given, expected = _by_key(_rows(got)), _by_key(_rows(wanted))
    for key in sorted(given.keys() | expected.keys()):
        one, other = given.get(key), expected.get(key)
        if one != other:
            seq, at_qmgr, n = key
            what = "is missing" if one is None else "is one too many" if other is None else _difference(one, other)
            raise AssertionError(f"put {n} of message {seq} at {at_qmgr} {what}")


def _rows(puts: DataFrame | Iterable[Put]) -> Iterable[dict[str, Any]]:
    if isinstance(puts, Iterable):
        return [{name: getattr(put, name) for name in PUTS.names} for put in puts]
    return [row.asDict() for row in puts.select(*PUTS.names).collect()]


def _by_key(rows: Iterable[dict[str, Any]]) -> dict[tuple[int, str, int], dict[str, Any]]:
    found: dict[tuple[int, str, int], dict[str, Any]] = {}
    for row in rows:
        key = row["seq"], row["at_qmgr"], row["n"]
        if key in found:
            raise AssertionError(f"put {key[2]} of message {key[0]} at {key[1]} is there twice")
        found[key] = {name: bytes(value) if isinstance(value, bytearray) else value for name, value in row.items()}
    return found


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    name = next(name for name in one if one[name] != other[name])
    return f"has {name} {one[name]!r}, not {other[name]!r}"
