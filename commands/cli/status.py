"""``qpubsub status``: what a queue manager holds, and what its processor is doing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from commands.cli.console import Console, ExitCode
from commands.cli.journal import last_status
from commands.cli.options import queue_manager
from commands.queues import QueueManagerInUseError, QueueManagerStore


@click.command(epilog="\b\nExamples:\n  qpubsub status -m QM1\n  qpubsub status -m QM1 --json")
@queue_manager
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(console: Console, qmgr: str, home: Path, as_json: bool) -> ExitCode:
    """Show queue depths, subscriptions, retained publications, and the processor: its rates and its last errors."""
    with QueueManagerStore.open(home, qmgr) as store:
        status = _status(store)
    if as_json:
        console.data(json.dumps(status, ensure_ascii=False))
    else:
        for line in _lines(status):
            console.data(line)
    return ExitCode.DONE


def _status(store: QueueManagerStore) -> dict[str, Any]:
    objects, subscriptions, retained = store.load_state()
    depths = {queue: store.depth(queue) for queue in sorted(objects.queues)}
    return {
        "qmgr": store.name,
        "psmode": objects.qmgr.psmode,
        "queues": {queue: {"depth": depth} for queue, depth in depths.items()},
        "subscriptions": len(subscriptions),
        "retained": len(retained),
        "authority_checked": bool(objects.authorities),
        "processor": {**last_status(store.directory), "running": _running(store)},
    }


def _running(store: QueueManagerStore) -> bool:
    try:
        with store.processor_lock():
            return False
    except QueueManagerInUseError:
        return True


def _lines(status: dict[str, Any]) -> list[str]:
    processor = status["processor"]
    lines = [
        f"Queue manager {status['qmgr']}, PSMODE({status['psmode']}): "
        f"{status['subscriptions']} subscriptions, {status['retained']} retained publications",
        _processor_line(processor),
        "",
        "  depth  queue",
    ]
    shown = {queue: row["depth"] for queue, row in status["queues"].items()}
    lines += [f"{depth:>7}  {queue}" for queue, depth in sorted(shown.items(), key=lambda row: (-row[1], row[0]))]
    errors = processor.get("last_errors") or []
    if errors:
        lines += ["", "Last errors:"]
        lines += [f"  {error['time']}  {error['text']}" for error in errors]
    return lines


def _processor_line(processor: dict[str, Any]) -> str:
    done = processor.get("done") or {}
    counted = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in done.items() if count)
    if not processor["running"]:
        return (
            f"No processor is running; the last one did {counted or 'nothing'}" if done else "No processor is running"
        )
    rates = processor.get("per_second") or {}
    speed = f", now {rates['commands']:g} commands/s" if rates.get("commands") else ""
    who = f"Processor {processor.get('pid', '?')} since {processor.get('started', '?')}"
    return f"{who}: {counted or 'nothing yet'}{speed}"
