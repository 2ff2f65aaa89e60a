"""Facts of a real system's log on which the trust in a forecast from it depends.

They are found as the log is read, and kept in ``meta``: whatever is changed of its jobs later, such
as a load or draws of its blocks, has no recorded times any more.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.workload.delays import reason_sentence, reasons, share_before_eligible
from sim.workload.node_names import NODE_LIST, expand
from sim.workload.schema import CATEGORY, PARTITION, RECORDED
from sim.workload.tables import column_or_default, values
from sim.workload.workload import Workload

LOG: Final = "log"
"""Key of ``meta``."""
MAX_NAMES: Final = 6
"""Largest number of partitions in a sentence."""


def with_log_facts(workload: Workload) -> Workload:
    """Return the workload with the facts of its log in ``meta``; as it is without recorded starts.

    Of ``meta["log"]``, ``starts`` is the number of jobs whose start is recorded, ``reasons`` a
    sentence on limits, dependencies, holds and throttles (`sim.workload.delays`), and
    ``reasons_share`` their share of the wait, ``before_eligible`` the share of the wait before jobs
    were eligible, and ``partitions`` a clause on partitions that have different nodes; empty texts
    where there is nothing to tell.
    """
    start_s = column_or_default(workload.jobs, RECORDED[0])
    n_starts = int(np.isfinite(start_s).sum())
    if not n_starts or workload.meta.get("submit_is_start"):
        return workload
    counts = reasons(workload)
    has_reasons = counts is not None and counts.n_named > 0
    facts: dict[str, Any] = {
        "starts": n_starts,
        "reasons": reason_sentence(counts) if counts is not None and has_reasons else "",
        "reasons_share": counts.share if counts is not None else 0.0,
        "before_eligible": share_before_eligible(workload),
        "partitions": different_nodes(workload),
    }
    return workload.with_meta({LOG: facts})


def different_nodes(workload: Workload) -> str:
    """Name the partitions and how many nodes each used; empty if they used the same, or unknown.

    A text such as ``gpu 3, batch 10``.
    """
    if PARTITION.name not in workload.jobs.column_names:
        return ""
    if NODE_LIST not in workload.stages.column_names:
        return ""
    partition: pa.DictionaryArray = workload.jobs[PARTITION.name].combine_chunks().cast(CATEGORY)
    lists: pa.DictionaryArray = workload.stages[NODE_LIST].combine_chunks().cast(CATEGORY)
    code = partition.indices.to_numpy()[values(workload.stages, "job")]
    pairs = np.unique(np.stack([code, lists.indices.to_numpy()]), axis=1)
    texts, names = lists.dictionary.to_pylist(), partition.dictionary.to_pylist()
    nodes: dict[str, set[str]] = {}
    for p, text in pairs.T.tolist():
        nodes.setdefault(names[p], set()).update(expand(texts[text] or ""))
    used = {name: members for name, members in nodes.items() if members}
    if len({frozenset(members) for members in used.values()}) < 2:
        return ""
    ordered = sorted(used, key=lambda name: -len(used[name]))
    more = ", ..." if len(ordered) > MAX_NAMES else ""
    parts = [f"{name or 'unnamed'} {len(used[name]):,}" for name in ordered[:MAX_NAMES]]
    return ", ".join(parts) + more
