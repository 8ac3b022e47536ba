"""The figures and worked examples of guide 3 as scenarios of several queue managers (fixtures/scenarios); run this file
to write the captures and puts again after a step or a setup was changed.

    estate.toml     the queue managers; QMGR.mqsc is what one of them starts with
    network.toml    the steps, and what the guide says comes of each; written by hand, and the measure for the rest
    capture.jsonl   the steps' messages, compiled
    puts.jsonl      what a replay of them gives, byte for byte

A step is one of ``guide_scenarios``, a message; ``at`` is the queue manager where it is put. ``gets`` are the
publications that leave, as ``QUEUE at QMGR: topic``. ``flows`` are those between queue managers, and ``kept`` what went
no further, where the guide says something about it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commands.broker.puts import Put, PutKind
from commands.network.estate_file import read_estate
from commands.replay.network.local import NetworkReplay, NetworkSetup
from rfh2.captured import CapturedMessage
from tests.commands.guide_scenarios import FIXTURE, Step, told_topic


@dataclass(frozen=True)
class Came:
    """What one step came to, as network.toml has it."""

    step: Step
    gets: list[str]
    flows: list[str]
    kept: list[str]
    puts: list[Put]


class NetworkScenario:
    """One directory of the fixture."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        told = tomllib.loads((path / "network.toml").read_text())
        self.sections: list[str] = told["section"].split(", ")
        self.shows: str = told["shows"]
        self.steps = [Step(number, says) for number, says in enumerate(told["steps"], 1)]

    @property
    def setup(self) -> NetworkSetup:
        return NetworkSetup.of(read_estate(self.path))

    @property
    def messages(self) -> list[CapturedMessage]:
        return [step.message(step.says["at"]) for step in self.steps]

    @cached_property
    def came(self) -> list[Came]:
        """What each step comes to, in a new network."""
        replay = NetworkReplay(self.setup)
        return [self._run(step, replay) for step in self.steps]

    @property
    def files(self) -> dict[str, bytes]:
        """The files that are made from the others, by name."""
        messages = [message.model_dump_json().encode() + b"\n" for message in self.messages]
        puts = [put.model_dump_json().encode() + b"\n" for came in self.came for put in came.puts]
        return {"capture.jsonl": b"".join(messages), "puts.jsonl": b"".join(puts)}

    @staticmethod
    def _run(step: Step, replay: NetworkReplay) -> Came:
        done, puts = replay.replay(step.message(step.says["at"]))
        gets = [f"{put.queue} at {put.qmgr}: {told_topic(put)}" for put in puts if put.kind is PutKind.PUBLICATION]
        return Came(step, gets, [str(each) for each in done.flows], [str(each) for each in done.kept_back], puts)


def network_scenarios() -> Iterator[NetworkScenario]:
    """All network scenarios of the fixture, in order of their names."""
    return (NetworkScenario(path.parent) for path in sorted(FIXTURE.glob("*/network.toml")))


if __name__ == "__main__":
    for scenario in network_scenarios():
        for file_name, content in scenario.files.items():
            (scenario.path / file_name).write_bytes(content)
