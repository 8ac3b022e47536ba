"""What people do: the checklist of one migration, and runbooks for whole topologies."""

from migrate.runbooks.checklist import checklist
from migrate.runbooks.cluster import cluster_runbook, collective_runbook
from migrate.runbooks.hierarchy import hierarchy_runbook
from migrate.runbooks.topology import Topology, TopologyProblem, check_topology, topology_of

__all__ = [
    "Topology",
    "TopologyProblem",
    "check_topology",
    "checklist",
    "cluster_runbook",
    "collective_runbook",
    "hierarchy_runbook",
    "topology_of",
]
