"""Reader of a site of Slurm: its configuration, nodes, limits and accounting, in one folder."""

from __future__ import annotations

import os
from pathlib import Path

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.traces.sacct.options import Release, State
from sim.traces.slurm_site.site import read_site
from sim.workload.workload import Workload


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: State = "all",
    release: Release = "eligible",
) -> Workload:
    """Read the jobs of a site as they asked to run; ``python -m sim site`` writes its cluster, too.

    As `sim.traces.sacct.read` with a task for each node, and each element of an array a job.
    ``jobs`` has the partitions that a job asked for (``partition``), ``exclusive`` and
    ``reservation``; ``runs_on`` of ``stages`` has the classes of nodes with the features and models
    of GPUs that it asked for. An exclusive job demands what it asked for.

    Parameters
    ----------
    path : path-like
        Folder with ``sacct.txt`` (``sacct --allusers --parsable2``), ``slurm.conf`` or
        ``nodes.txt``, and those of `sim.traces.slurm_site.folder.FILES` that exist.
    on_bad_row, state, release
        As of `sim.traces.sacct.read`.

    Raises
    ------
    InputError
        If the folder has no ``sacct.txt`` or tells no nodes, or of a file's content.
    """
    site = read_site(Path(path), on_bad_row=on_bad_row, state=state, release=release)
    if site.workload is None:
        raise InputError(
            "the folder has no sacct.txt; write it with sacct --allusers --parsable2",
            file=path,
            rule="no jobs",
        )
    return site.workload
