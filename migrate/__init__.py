"""Migration: read the state of a legacy broker, make a plan, and apply it."""

from migrate.legacy_state import LegacyState, fingerprint
from migrate.plan import MigrationPlan, Phase, PlanOptions, Tool
from migrate.readers.sources import read_sources
from migrate.target import Target
from rfh2.distribution import VERSION

__version__ = VERSION
__all__ = ["LegacyState", "MigrationPlan", "Phase", "PlanOptions", "Target", "Tool", "fingerprint", "read_sources"]
