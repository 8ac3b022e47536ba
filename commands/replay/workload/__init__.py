"""A workload generator: captures of any size, in any format, the same for the same seed everywhere."""

from commands.replay.workload.messages import Row, Workload
from commands.replay.workload.population import WorkloadError, WorkloadOptions, setup_script

__all__ = ["Row", "Workload", "WorkloadError", "WorkloadOptions", "setup_script"]
