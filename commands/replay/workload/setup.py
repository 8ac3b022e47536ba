"""The MQSC that a generated workload needs: its streams (guide 6.5.4)."""

from __future__ import annotations

from commands.broker.objects import ADMIN_STREAM
from commands.replay.workload.options import WorkloadOptions
from streams.namelists import QUEUE_NAMELIST


def setup_script(options: WorkloadOptions) -> str:
    """MQSC for every queue manager of the workload to start with; empty where the default stream is the only one."""
    named = [options.stream(number) for number in range(1, options.streams)]
    if not named:
        return ""
    lines = [f"DEFINE QLOCAL({name})" for name in named]
    lines += [f"DEFINE TOPIC({name}) TOPICSTR('{prefix_of(name)}') WILDCARD(BLOCK)" for name in named]
    names = ", ".join([options.stream(0), ADMIN_STREAM, *named])
    lines.append(f"ALTER NAMELIST({QUEUE_NAMELIST}) NAMES({names})")
    return "\n".join(lines) + "\n"


def prefix_of(stream: str) -> str:
    """The TOPICSTR of a named stream's topic object."""
    return stream.replace(".", "/")
