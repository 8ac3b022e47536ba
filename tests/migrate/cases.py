"""Running a migration in memory and writing down everything that it gives: what golden tests compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from commands.broker.objects import state_of
from commands.broker.state import subscription_state
from migrate import log, migmbbrk, strmqbrk
from migrate.assemble import of_product
from migrate.contents import content_bytes
from migrate.embedded import applied
from migrate.legacy_state import LegacyState, Product, fingerprint
from migrate.plan import Marker, MigrationPlan, Phase, PlanOptions, Tool
from migrate.plan_files import plan_files
from migrate.readers.sources import read_sources
from migrate.report.outputs import encoded, report_contents
from migrate.target import Target
from rfh2.message import encode
from tests.migrate.legacy_messages import NOW

LEGACY = Path(__file__).parents[2] / "fixtures" / "legacy"


@dataclass(frozen=True)
class Case:
    """One directory of fixtures/legacy."""

    directory: Path
    facts: dict[str, Any]

    @classmethod
    def of(cls, name: str) -> Case:
        directory = LEGACY / name
        return cls(directory, json.loads((directory / "case.json").read_text()))

    def state(self) -> LegacyState:
        paths = [str(self.directory / name) for name in self.facts["sources"]]
        if self.facts["tool"] == "migmbbrk":
            return of_product(read_sources(paths, self.facts["qmgr"], Product.WMB), self.facts["broker"], Product.WMB)
        return read_sources(paths, self.facts["qmgr"])

    def target(self) -> Target:
        """A queue manager fresh from its upgrade; for a completion phase one with the initial phase behind it."""
        target = Target.fresh(self.facts["qmgr"])
        if self.facts.get("phase") == "complete":
            before = Marker(
                Tool.MIGMBBRK, Phase.INITIAL, "20090128T114354Z", fingerprint(self.state()), self.facts["broker"]
            )
            target.objects.put(before.namelist())
        return target

    def plan(self, **options: Any) -> MigrationPlan:
        told = {"parent": self.facts.get("parent"), "accept_unread": self.facts.get("accept_unread", False)}
        given = PlanOptions(**{**told, **options})
        if self.facts["tool"] == "strmqbrk":
            return strmqbrk.plan(self.state(), self.target(), given, NOW)
        return migmbbrk.plan(self.state(), self.target(), given, NOW, Phase(self.facts["phase"]))

    def outputs(self) -> dict[str, str]:
        """Log, scripts and state, by file name. Paths in them are those of the sources alone."""
        plan, target = self.plan(), self.target()
        lines = [
            *log.opening(plan.tool, plan.state.broker_name, plan.qmgr, plan.options),
            *log.reading(plan),
            *log.applying(plan),
            *log.closing(plan),
        ]
        found = {"log.txt": "".join(f"{line}\n" for line in lines)}
        for name, content in scripts(plan, target).items():
            found[name] = content if isinstance(content, str) else content.decode("latin-1")
        found["state.json"] = json.dumps(told(applied(plan, target)), indent=1, ensure_ascii=False) + "\n"
        here = f"{self.directory}/"
        return {name: text.replace(here, "") for name, text in found.items()}


def told(target: Target) -> dict[str, Any]:
    """What a queue manager knows, as data; identifiers, which are made up, are left out."""
    objects = {f"{kind} {name}": json.loads(state_of(d)) for (kind, name), d in target.definitions.items()}
    subscriptions = [json.loads(subscription_state(s)) for s in target.subscriptions]
    for subscription in subscriptions:
        del subscription["sub_id"]
    return {
        "objects": {name: value for name, value in sorted(objects.items()) if not _is_born_with(name, value)},
        "subscriptions": subscriptions,
        "retained": {
            topic: {
                "published_at": kept.publication.published_at.isoformat(),
                "persistence": kept.publication.message.mqmd.persistence,
                "local": kept.publication.local,
                "data": kept.publication.message.body.decode("latin-1"),
                "sha256": sha256(encode(kept.publication.message)).hexdigest()[:16],
            }
            for topic, kept in sorted(target.retained.items())
        },
    }


def _is_born_with(name: str, value: dict[str, Any]) -> bool:
    fresh = {f"{kind} {name}": json.loads(state_of(d)) for (kind, name), d in Target.fresh("X").definitions.items()}
    return fresh.get(name) == value


def report_files(found: dict[str, Any]) -> dict[str, bytes]:
    """The report in all its forms, in memory."""
    return {name: content_bytes(content) for name, content in report_contents(found).items()}


def output_files(plan: MigrationPlan, target: Target) -> dict[str, bytes]:
    """Scripts, messages and checklist, in memory."""
    return {name: content_bytes(content) for name, content in encoded(plan_files(plan, target), {}).items()}


def scripts(plan: MigrationPlan, target: Target) -> dict[str, str | bytes]:
    """The same, texts as texts."""
    contents = plan_files(plan, target).contents
    return {name: each if isinstance(each, str) else content_bytes(each) for name, each in contents.items()}
