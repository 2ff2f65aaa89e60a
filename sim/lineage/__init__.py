"""Dependencies between jobs, found in the logs of what read and wrote which file.

After Chung et al., *Unearthing inter-job dependencies for better cluster scheduling*, OSDI 2020
(Wing), §3 to §4. Everything is a function of columns; ``python -m sim lineage`` runs it all:
`profile` makes a `Store` of `Logs`, `workload` a week of them to be scheduled.
"""

from sim.lineage.logs import Logs, logs_of, read_logs
from sim.lineage.profile import Options, profile
from sim.lineage.store import Store
from sim.lineage.window import workload
from sim.lineage.written import write as write_logs

__all__ = ["Logs", "Options", "Store", "logs_of", "profile", "read_logs", "workload", "write_logs"]
