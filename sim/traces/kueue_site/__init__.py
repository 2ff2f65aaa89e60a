"""Reader of a site of Kubernetes with Kueue: its quotas, nodes and Workloads, in one folder.

By Kueue's documentation and API alone (``kueue.x-k8s.io`` v1beta1 and v1beta2, Kueue v0.19): never
held against a real site.
"""

from __future__ import annotations

import os
from pathlib import Path

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.traces.kueue_site.site import read_site
from sim.workload.workload import Workload


@checked
def read(path: str | os.PathLike[str], *, on_bad_row: OnBadRow = "error") -> Workload:
    """Read the jobs of a site; ``python -m sim site`` writes its cluster and policy, too.

    As `sim.traces.kubernetes.read`, with ClusterQueues as queues and, in ``runs_on`` of ``stages``,
    the classes of nodes of the flavors that a job may use.

    Parameters
    ----------
    path : path-like
        Folder with what ``kubectl get
        workloads,clusterqueues,cohorts,resourceflavors,localqueues,nodes -A -o json`` writes, in
        one file or several, and maybe pods and Jobs.
    on_bad_row : {"error", "skip"}
        Objects with missing or invalid fields: raise, or drop and count.

    Raises
    ------
    InputError
        If the folder has no Workload that ended, or of an object's content.
    """
    site = read_site(Path(path), on_bad_row=on_bad_row)
    if site.workload is None:
        raise InputError(
            "the folder has no Workload that ended; write it with kubectl get workloads -A -o json",
            file=path,
            rule="no jobs",
        )
    return site.workload
