"""Transform of the load: fewer or more jobs per hour (Tian et al., SoCC 2019, §7.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim import transforms
from sim.base.arrays import Mask
from sim.base.errors import InputError
from sim.base.parameters import Positive, checked
from sim.dags import Graphs
from sim.transforms.parts import rebuild, repeat_jobs, sample_jobs, submission_times
from sim.workload.tables import take_rows, values
from sim.workload.workload import Workload


@checked
def change_load(
    workload: Workload,
    load: Positive,
    seed: int = 0,
    tables: Any = None,
    rewire: bool = True,
) -> Workload:
    """Multiply the arrival rate of jobs by `load`.

    Below 1, a random sample of the jobs is kept. Above, every job is kept and copies are added, the
    same number of each job, give or take one. A copy keeps the attributes of the job's stages and
    gets synthesized dependencies (`rewire`), "to ensure diversity"; it is submitted at a random
    time between that job and the next one.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    load : float
        Factor of the number of jobs per hour, positive.
    seed : int
        Seed of the sample, the times and the dependencies.
    tables : optional
        Probability tables of dependencies, as the transform ``rewire`` takes them.
    rewire : bool
        False: copies keep the dependencies of their originals, too.

    Raises
    ------
    InputError
        If `load` is not positive and finite, or no installed package has the transform
        ``rewire`` and `rewire` is True.
    """
    n = workload.n_jobs
    rows, copy = sample_jobs(n, max(1, round(load * n)), seed)
    if not copy.any():
        return rebuild(workload.take(rows), {"load": float(load)})
    submit = submission_times(values(workload.jobs, "submit_s"), rows, copy, seed)
    order = np.lexsort((np.arange(len(rows)), submit))
    rows, copy = rows[order], copy[order]
    transform: dict[str, object] = {"load": float(load), "seed": int(seed)}
    copied = repeat_jobs(workload, rows, copy, submit[order], transform)
    return _with_new_edges(copied, copy, seed, tables) if rewire else copied


def _with_new_edges(workload: Workload, copy: Mask, seed: int, tables: Any) -> Workload:
    """Return the workload with new dependencies in the jobs that are copies."""
    if "rewire" not in transforms.names():
        raise InputError(
            "change_load draws dependencies of copies with the transform 'rewire', which no "
            "installed package has; give rewire=false"
        )
    drawn = transforms.rewire(workload.take(np.flatnonzero(copy)), tables, seed).stage_edges
    graphs = Graphs.from_workload(workload)
    is_kept = ~np.repeat(copy, graphs.job_n_edges)
    stage_of_copy = np.flatnonzero(np.repeat(copy, graphs.job_n_stages))
    kind = take_rows(workload.stage_edges, np.flatnonzero(is_kept))["kind"].cast(pa.string())
    barrier = pa.chunked_array([pa.array(["barrier"] * drawn.num_rows, pa.string())])
    edges = {
        name: np.concatenate([old[is_kept], stage_of_copy[values(drawn, name)]])
        for name, old in (("parent", graphs.edge_parent), ("child", graphs.edge_child))
    }
    both = pa.chunked_array([*kind.chunks, *barrier.chunks])
    return rebuild(workload, None, stage_edges={**edges, "kind": both})
