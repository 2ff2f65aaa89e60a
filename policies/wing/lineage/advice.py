"""Advice tables: the findings of §2.3 as lists for users and operators (§7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import Dependencies, Downloads, graph
from policies.wing.lineage.logs import Logs
from policies.wing.lineage.templates import INPUT_MODES, Classification, Templates, medians
from sim.base.arrays import F8, I4, Mask

HOUR_S: Final = 3600.0

SHIFTS_H: Final = (1, 3, 6, 12)
"""Hours by which jobs might be shifted (Observation 6)."""


TEMPLATE_COLUMNS: Final = {
    "inversions": ("template", "downstream"), "blind": ("template",), "costliest": ("template",),
    "template_dependencies": ("upstream", "downstream"), "predictions": ("upstream", "downstream"),
}  # fmt: skip
"""Columns of tables that hold rows of ``templates``; each gets a column ``<column>_name``."""


def add_template_names(table: pa.Table, columns: Sequence[str], names: pa.ChunkedArray) -> pa.Table:
    """Add a column of template names beside each column of template rows."""
    for column in columns:
        spellings = names.take(table[column])
        position = table.column_names.index(column) + 1
        table = table.add_column(position, f"{column}_name", spellings)
    return table


def template_dependencies(
    logs: Logs, templates: Templates, edges: Dependencies, classes: Classification
) -> pa.Table:
    """Return the recurring dependencies by pair of templates: kind, queues, priorities, lag."""
    recurring = classes.edge_recurring
    up, down = edges.upstream[recurring], edges.downstream[recurring]
    template, n = templates.job_template, len(templates)
    pair = template[up].astype(np.int64) * n + template[down]
    pairs, first, code = np.unique(pair, return_index=True, return_inverse=True)
    upstream, downstream = (pairs // n).astype(np.int32), (pairs % n).astype(np.int32)
    priority = medians(logs.column("priority"), template, n)
    lag_s = logs.column("submit_s")[down] - logs.column("finish_s")[up]
    owner, queue = logs.column("organisation"), logs.column("queue")
    count = np.bincount(code, minlength=len(pairs))
    return pa.table(
        {
            "upstream": upstream,
            "downstream": downstream,
            "n": count.astype(np.int32),
            "hard": np.bincount(code, classes.edge_hard[recurring], len(pairs)) / count,
            "polls": np.bincount(code, classes.edge_polls[recurring], len(pairs)) / count,
            "cross_organisation": owner[up][first] != owner[down][first],
            "same_queue": queue[up][first] == queue[down][first],
            "upstream_priority": priority[upstream],
            "downstream_priority": priority[downstream],
            "lag_s": medians(lag_s, code.astype(np.int32), len(pairs)),
        }
    )


def priority_inversions(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    classes: Classification,
    pairs: pa.Table,
) -> pa.Table:
    """Return templates read by ones of higher priority, and the priority that would fix each."""
    from policies.wing.lineage.kernels.flows import downstream_max  # loads numba

    low = pairs["upstream_priority"].to_numpy()
    high = pairs["downstream_priority"].to_numpy()
    inverted = np.flatnonzero(pairs["same_queue"].to_numpy(zero_copy_only=False) & (high > low))
    up, down = (pairs[c].to_numpy()[inverted] for c in ("upstream", "downstream"))
    order = np.lexsort([down, -high[inverted], up])
    first = order[np.append(True, up[order][1:] != up[order][:-1])[: len(order)]]

    queue, priority = logs.column("queue"), logs.column("priority")
    inside = edges.where(
        classes.edge_recurring & (queue[edges.upstream] == queue[edges.downstream])
    )
    dag = graph(inside)
    needed_priority = downstream_max(dag.out0, dag.child, priority[dag.row])[dag.number]
    template_priority = medians(needed_priority, templates.job_template, len(templates))
    table = pa.table(
        {
            "template": up[first],
            "priority": low[inverted][first],
            "downstream": down[first],
            "downstream_priority": high[inverted][first],
            "mended_priority": np.maximum(template_priority[up[first]], high[inverted][first]),
        }
    )
    gap = table["mended_priority"].to_numpy() - table["priority"].to_numpy()
    return table.take(np.lexsort([up[first], -gap]))


def blind_templates(
    logs: Logs, templates: Templates, classes: Classification, pairs: pa.Table
) -> pa.Table:
    """Return templates submitted without checking that their hard inputs exist (Observation 3)."""
    template, n = templates.job_template, len(templates)
    is_blind = classes.input_mode == INPUT_MODES.index("blind")
    n_jobs = np.bincount(template, minlength=n)
    share = np.bincount(template, is_blind, n) / np.maximum(n_jobs, 1)
    hard = pairs["hard"].to_numpy() > 0
    margin = np.full(n, np.inf)
    np.minimum.at(margin, pairs["downstream"].to_numpy()[hard], pairs["lag_s"].to_numpy()[hard])
    missed = np.bincount(template, logs.has("outcome", "missing_input"), n)
    listed = np.flatnonzero(share > 0.5)
    listed = listed[np.lexsort([listed, margin[listed]])].astype(np.int32)
    return pa.table(
        {
            "template": listed,
            "n_jobs": n_jobs[listed],
            "blind": share[listed],
            "margin_s": margin[listed],
            "missed": missed[listed].astype(np.int64),
        }
    )


def components(edges: Dependencies) -> tuple[I4, pa.Table]:
    """Return each job's weakly connected component, and a row a component (Observation 5)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = edges.n_jobs
    ones = np.ones(len(edges), np.int8)
    matrix = csr_array((ones, (edges.upstream, edges.downstream)), shape=(n, n))
    _, label = connected_components(matrix, directed=True, connection="weak")
    size = np.bincount(label)
    order = np.argsort(-size, kind="stable")
    rank = np.empty(len(size), np.int32)
    rank[order] = np.arange(len(size), dtype=np.int32)
    component = rank[label]
    has_in, has_out = edges.n_upstream() > 0, edges.n_downstream() > 0
    roots = np.bincount(component, ~has_in & has_out, len(size))
    leaves = np.bincount(component, has_in & ~has_out, len(size))
    with np.errstate(invalid="ignore"):
        heaviness = leaves / roots
    return component, pa.table(
        {
            "n_jobs": size[order],
            "n_roots": roots.astype(np.int64),
            "n_leaves": leaves.astype(np.int64),
            "bottom_heaviness": heaviness,
        }
    )


def gap_before_use_s(logs: Logs, edges: Dependencies, downloads: Downloads) -> F8:
    """Return the time from each job's completion to the first use of its output, s.

    A use is a read by another job or a download; infinite where there is none.
    """
    first = np.full(logs.n_jobs, np.inf)
    np.minimum.at(first, edges.upstream, edges.read_s)
    np.minimum.at(first, downloads.job, downloads.time_s)
    out: F8 = first - logs.column("finish_s")
    return out


def shiftable(logs: Logs, classes: Classification, gap_s: F8, hours: float) -> Mask:
    """Return a mask of the jobs that could be shifted by up to `hours` (Observation 6).

    They recur, run for less than `hours`, and their output is first used more than `hours` later.
    """
    limit = hours * HOUR_S
    out: Mask = np.isfinite(gap_s) & (gap_s > limit) & (logs.run_s() < limit)
    return out & classes.job_recurring
