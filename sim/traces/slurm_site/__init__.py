"""Reader of a site of Slurm: its configuration, nodes, limits and accounting, in one folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.traces.sacct.options import Release, State
from sim.traces.slurm_site.own_cluster import cluster_of
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
    """Read the jobs of a site as they asked to run; `cluster` reads where.

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
    report = dict(site.workload.meta["report"])
    scheduler = (
        f"the site schedules by policy={site.policy['name']} with options of its own: "
        "python -m sim site DIR --out TWIN writes them, for --config-dir TWIN trace=site "
        "policy=site"
    )
    report["warnings"] = [*report.get("warnings", ()), scheduler]
    return site.workload.with_meta({"report": report})


@checked
def cluster(
    path: str | os.PathLike[str],
    *,
    begin_s: float = 0.0,
    on_bad_row: OnBadRow = "error",
    state: State = "all",
    release: Release = "eligible",
) -> dict[str, Any]:
    """Return the site's cluster as options (``cluster=from_trace``).

    Parameters
    ----------
    path, on_bad_row, state, release
        As of `read`.
    begin_s : float
        Time after the first submission from which the cluster's times count.

    Raises
    ------
    InputError
        As of `read`.
    """
    return cluster_of(
        Path(path), begin_s=begin_s, on_bad_row=on_bad_row, state=state, release=release
    )
