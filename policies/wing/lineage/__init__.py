"""Dependencies between jobs, derived from provenance logs: which job read or wrote which file.

After Chung et al., *Unearthing inter-job dependencies for better cluster scheduling*, OSDI 2020
(Wing), §3 to §4. Everything is a function of columns. ``python -m sim lineage`` runs it all:
`profile` turns `Logs` into a `Store`, `workload` turns a window of them into a workload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.lazy import importer

if TYPE_CHECKING:
    from policies.wing.lineage.log_tables import write_logs
    from policies.wing.lineage.logs import Logs, make_logs, read_logs
    from policies.wing.lineage.options import Options
    from policies.wing.lineage.profiling import profile
    from policies.wing.lineage.store import Store
    from policies.wing.lineage.window import workload

_MODULES = {
    "Logs": "policies.wing.lineage.logs",
    "Options": "policies.wing.lineage.options",
    "Store": "policies.wing.lineage.store",
    "make_logs": "policies.wing.lineage.logs",
    "profile": "policies.wing.lineage.profiling",
    "read_logs": "policies.wing.lineage.logs",
    "workload": "policies.wing.lineage.window",
    "write_logs": "policies.wing.lineage.log_tables",
}

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

__getattr__ = importer(__name__, _MODULES)
