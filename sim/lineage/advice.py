"""What users may mend, and operators may use: the findings of §2.3 as tables (§7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, Mask
from sim.lineage.dependencies import Dependencies, Downloads, graph
from sim.lineage.logs import Logs
from sim.lineage.templates import INPUT_MODES, Classification, Templates, medians

HOUR_S: Final = 3600.0

SHIFTS_H: Final = (1, 3, 6, 12)
"""By how many hours jobs might be shifted (Observation 6)."""


NAMED: Final = {
    "inversions": ("template", "downstream"), "blind": ("template",), "costliest": ("template",),
    "template_dependencies": ("upstream", "downstream"), "predictions": ("upstream", "downstream"),
}  # fmt: skip
"""Columns of tables that are rows of ``templates``; ``<column>_name`` stands beside each."""


def named(table: pa.Table, columns: Sequence[str], names: pa.ChunkedArray) -> pa.Table:
    """Put the names of templates beside their rows."""
    for column in columns:
        spelled = names.take(table[column])
        at = table.column_names.index(column) + 1
        table = table.add_column(at, f"{column}_name", spelled)
    return table


def template_dependencies(
    logs: Logs, templates: Templates, edges: Dependencies, character: Classification
) -> pa.Table:
    """Return the recurring dependencies by pair of templates, with what matters to both owners."""
    keep = character.edge_recurring
    up, down = edges.upstream[keep], edges.downstream[keep]
    of, n = templates.job_template, len(templates)
    pair = of[up].astype(np.int64) * n + of[down]
    pairs, first, code = np.unique(pair, return_index=True, return_inverse=True)
    a, b = (pairs // n).astype(np.int32), (pairs % n).astype(np.int32)
    priority = medians(logs.column("priority"), of, n)
    lag_s = logs.column("submit_s")[down] - logs.column("finish_s")[up]
    owner, queue = logs.column("organisation"), logs.column("queue")
    count = np.bincount(code, minlength=len(pairs))
    return pa.table(
        {
            "upstream": a,
            "downstream": b,
            "n": count.astype(np.int32),
            "hard": np.bincount(code, character.edge_hard[keep], len(pairs)) / count,
            "polls": np.bincount(code, character.edge_polls[keep], len(pairs)) / count,
            "cross_organisation": owner[up][first] != owner[down][first],
            "same_queue": queue[up][first] == queue[down][first],
            "upstream_priority": priority[a],
            "downstream_priority": priority[b],
            "lag_s": medians(lag_s, code.astype(np.int32), len(pairs)),
        }
    )


def inversions(
    logs: Logs,
    templates: Templates,
    edges: Dependencies,
    character: Classification,
    pairs: pa.Table,
) -> pa.Table:
    """Return templates whose output goes to higher-priority ones, and what would mend each."""
    from sim.lineage.kernels.flows import downstream_max  # loads numba

    low = pairs["upstream_priority"].to_numpy()
    high = pairs["downstream_priority"].to_numpy()
    place = np.flatnonzero(pairs["same_queue"].to_numpy(zero_copy_only=False) & (high > low))
    up, down = (pairs[c].to_numpy()[place] for c in ("upstream", "downstream"))
    order = np.lexsort([down, -high[place], up])
    first = order[np.append(True, up[order][1:] != up[order][:-1])[: len(order)]]

    queue, priority = logs.column("queue"), logs.column("priority")
    inside = edges.where(
        character.edge_recurring & (queue[edges.upstream] == queue[edges.downstream])
    )
    g = graph(inside)
    needed = downstream_max(g.out0, g.child, priority[g.row])[g.number]
    by_template = medians(needed, templates.job_template, len(templates))
    table = pa.table(
        {
            "template": up[first],
            "priority": low[place][first],
            "downstream": down[first],
            "downstream_priority": high[place][first],
            "mended_priority": np.maximum(by_template[up[first]], high[place][first]),
        }
    )
    gap = table["mended_priority"].to_numpy() - table["priority"].to_numpy()
    return table.take(np.lexsort([up[first], -gap]))


def blind(logs: Logs, templates: Templates, character: Classification, pairs: pa.Table) -> pa.Table:
    """Return templates submitted without a look at inputs they can't do without (Observation 3)."""
    of, n = templates.job_template, len(templates)
    is_blind = character.input_mode == INPUT_MODES.index("blind")
    n_jobs = np.bincount(of, minlength=n)
    share = np.bincount(of, is_blind, n) / np.maximum(n_jobs, 1)
    hard = pairs["hard"].to_numpy() > 0
    margin = np.full(n, np.inf)
    np.minimum.at(margin, pairs["downstream"].to_numpy()[hard], pairs["lag_s"].to_numpy()[hard])
    missed = np.bincount(of, logs.has("outcome", "missing_input"), n)
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
    of = rank[label]
    has_in, has_out = edges.n_upstream() > 0, edges.n_downstream() > 0
    roots = np.bincount(of, ~has_in & has_out, len(size))
    leaves = np.bincount(of, has_in & ~has_out, len(size))
    with np.errstate(invalid="ignore"):
        heaviness = leaves / roots
    return of, pa.table(
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


def shiftable(logs: Logs, character: Classification, gap_s: F8, hours: float) -> Mask:
    """Return which jobs might be shifted by up to so many hours (Observation 6).

    Recurring ones whose output is used, but only after more than `hours`, and which run for less.
    """
    run_s = logs.column("finish_s") - logs.column("start_s")
    limit = hours * HOUR_S
    out: Mask = np.isfinite(gap_s) & (gap_s > limit) & (run_s < limit)
    return out & character.job_recurring
