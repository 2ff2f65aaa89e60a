"""Transform of the load: fewer or more jobs per hour (Tian et al., SoCC 2019, §7.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sim import transforms
from sim.base.arrays import I8, Mask
from sim.base.errors import InputError, unknown
from sim.base.parameters import Positive, checked
from sim.dags import Graphs
from sim.transforms.parts import rebuild, repeat_jobs, sample_jobs, submission_times
from sim.workload.logged_partition import partition_column
from sim.workload.schema import PARTITION
from sim.workload.tables import names, take_rows, values
from sim.workload.workload import Workload


@checked
def change_load(
    workload: Workload,
    load: Positive,
    seed: int = 0,
    tables: Any = None,
    rewire: bool = True,
    where: Mapping[str, Any] | None = None,
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
    where : mapping of str to str or list of str, optional
        Only of the jobs with one of these values in a column, such as ``{account: ml}``; a
        ``partition`` is that in which the log has a job. The others stay.

    Raises
    ------
    InputError
        If no job is meant by `where`, `load` is not positive and finite, or no installed package
        has the transform ``rewire`` and `rewire` is True.
    """
    chosen = np.arange(workload.n_jobs) if where is None else _jobs_where(workload, where)
    unchanged = np.setdiff1d(np.arange(workload.n_jobs), chosen)
    sampled, copied = sample_jobs(len(chosen), max(1, round(load * len(chosen))), seed)
    rows = np.concatenate([chosen[sampled], unchanged])
    copy = np.concatenate([copied, np.zeros(len(unchanged), bool)])
    order = np.argsort(rows, kind="stable")
    rows, copy = rows[order], copy[order]
    note: dict[str, object] = {"load": float(load)} | (
        {} if where is None else {"where": {**where}}
    )
    if not copy.any():
        return rebuild(workload.take(rows), note)
    submit = submission_times(values(workload.jobs, "submit_s"), rows, copy, seed)
    order = np.lexsort((np.arange(len(rows)), submit))
    rows, copy = rows[order], copy[order]
    repeated = repeat_jobs(workload, rows, copy, submit[order], {**note, "seed": int(seed)})
    return _with_new_edges(repeated, copy, seed, tables) if rewire else repeated


def _jobs_where(workload: Workload, where: Mapping[str, Any]) -> I8:
    """Return the rows of the jobs with one of the values of each column."""
    is_meant = np.ones(workload.n_jobs, bool)
    for key, group in where.items():
        column = (partition_column(workload) or key) if key == PARTITION.name else key
        table = workload.jobs
        categories = [c for c in table.column_names if pa.types.is_dictionary(table[c].type)]
        if column not in categories:
            raise InputError(unknown("column of jobs", key, categories), rule="unknown column")
        known = names(table, column)
        texts = {str(text) for text in ([group] if isinstance(group, str | int) else group)}
        codes = values(table, column)
        has_one = np.isin(codes, [code for code, name in enumerate(known) if name in texts])
        if not has_one.any():
            used = sorted(known[code] for code in np.unique(codes).tolist())
            shown = " or ".join(sorted(texts))
            raise InputError(unknown(key, shown, used), rule="unknown group")
        is_meant &= has_one
    if not is_meant.any():
        raise InputError(f"no job has all of {dict(where)}", rule="unknown group")
    return np.flatnonzero(is_meant)


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
