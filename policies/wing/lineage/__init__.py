"""Dependencies between jobs, derived from provenance logs: which job read or wrote which file.

After Chung et al., *Unearthing inter-job dependencies for better cluster scheduling*, OSDI 2020
(Wing), §3 to §4. Everything is a function of columns. ``python -m sim lineage`` runs it all:
`profile` turns `Logs` into a `Store`, `workload` turns a window of them into a workload.
"""

from policies.wing.lineage.log_tables import write_logs
from policies.wing.lineage.logs import Logs, make_logs, read_logs
from policies.wing.lineage.options import Options
from policies.wing.lineage.profile import profile
from policies.wing.lineage.store import Store
from policies.wing.lineage.window import workload

__all__ = [
    "Logs",
    "Options",
    "Store",
    "make_logs",
    "profile",
    "read_logs",
    "workload",
    "write_logs",
]
