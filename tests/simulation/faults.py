"""What goes wrong in a simulation, and when: drawn from the seed, within a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rfh2.errors import StoreError
from tests.simulation.kernel import Kernel, Process

Fault = Callable[[], float | None]
"""Something that goes wrong now; for how many seconds it lasts, None for none."""


@dataclass(frozen=True)
class Profile:
    """every_s: the mean pause between two faults; 0 for none. weights: how often each comes, by its name."""

    every_s: float
    weights: Mapping[str, float]


class Fate:
    """Lets things go wrong until the plan is over. times: from when to when, in seconds."""

    def __init__(self, kernel: Kernel, profile: Profile, faults: Mapping[str, Fault]) -> None:
        self._kernel, self._profile = kernel, profile
        self._faults = {name: fault for name, fault in faults.items() if profile.weights.get(name)}
        self.times: list[tuple[float, float]] = []
        self.count, self._over = 0, False
        if profile.every_s and self._faults:
            kernel.plan.start(self._run, "fate")

    def end(self) -> None:
        """Nothing goes wrong any more."""
        self._over = True

    def was_between(self, begin_s: float, end_s: float) -> bool:
        """Whether something went wrong between the two moments."""
        return any(began <= end_s and ended >= begin_s for began, ended in self.times)

    def _run(self) -> None:
        kernel, chance = self._kernel, self._kernel.chance
        names = sorted(self._faults)
        weights = [self._profile.weights[name] for name in names]
        while not self._over:
            kernel.sleep(chance.expovariate(1 / self._profile.every_s))
            # Not only at a moment when all wait: after some more turns, within a unit of work or a packet's way.
            turns = kernel.turns + int(chance.expovariate(1 / 15))
            kernel.wait(lambda turns=turns: kernel.turns >= turns, 1.0)  # type: ignore[misc]
            if self._over:
                return
            name = chance.choices(names, weights)[0]
            kernel.note("fault", name)
            began = kernel.now
            lasts_s = self._faults[name]()
            self.times.append((began, kernel.now + (lasts_s or 0.0)))
            self.count += 1


LONGEST_S: Final = 40.0
AGAIN_S: Final = 2.0


def some_time(kernel: Kernel) -> float:
    """How long something lasts: mostly short, now and then longer than any patience of the program's."""
    return min(LONGEST_S, kernel.chance.expovariate(1 / kernel.chance.choice((0.02, 0.5, 6.0))))


def disk_full(kernel: Kernel) -> float:
    """No unit of work can be committed for a while."""
    seconds = some_time(kernel)
    kernel.full_until = kernel.now + seconds
    return seconds + 1.0


class Life:
    """A process that is started again when it has ended. run: its work, in the process that it is given."""

    def __init__(self, kernel: Kernel, name: str, run: Callable[[Process], None]) -> None:
        self._kernel, self._name, self._run = kernel, name, run
        self.process = self._start()
        self.starts = 1

    def _start(self) -> Process:
        process = self._kernel.process(self._name)
        process.start(lambda: self._live(process))
        return process

    def _live(self, process: Process) -> None:
        """Do the work; where it cannot begin, the service manager starts it again."""
        try:
            self._run(process)
            self._kernel.broken.append(f"{self._name} ended by itself")
        except StoreError as error:
            self._kernel.note("ended", error)
            self.end()

    def end(self) -> None:
        """It has ended, and is started again soon."""
        self._kernel.at(self._kernel.now + AGAIN_S, self.restart)
        self.process.kill()

    def kill(self) -> float:
        """Kill it, and start it again after a while; how long that takes until it can be useful."""
        self.process.kill()
        pause_s = some_time(self._kernel)
        self._kernel.at(self._kernel.now + pause_s, self.restart)
        return pause_s + 1.0

    def restart(self) -> None:
        """Start it, where it is dead."""
        if self.process.is_dead:
            self.process = self._start()
            self.starts += 1

    def heal(self) -> None:
        """It works from now on."""
        self.process.held_until = 0.0
        self.restart()

    def hold(self, least_s: float = 0.0) -> float:
        """Stop it for a while."""
        seconds = least_s + some_time(self._kernel)
        self.process.hold(seconds)
        return seconds + 1.0

    def jump(self) -> None:
        """Its wall clock is set."""
        self.process.ahead_s += self._kernel.chance.choice((-3_600.0, -1.0, 0.5, 60.0, 90_000.0))
