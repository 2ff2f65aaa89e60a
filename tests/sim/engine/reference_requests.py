"""Requests of the naive simulator: what each task holds, stage by stage."""

from __future__ import annotations

import dataclasses

import numpy as np


def with_requests(workload, columns, cluster, policy):
    """Return the columns, in which the demand of each stage is what its tasks hold."""
    amounts = columns.stage_demand_f.copy()
    refines = getattr(policy, "demands", "declared") == "true"
    for g, stage in enumerate(workload.stages.to_pylist()):
        for r, name in enumerate(columns.resources):
            request = stage.get(f"requested_{name}")
            if request is not None and not refines and name not in cluster.fungible:
                amounts[g, r] = request
    quanta = [
        [max(round(x / q), 1) if x > 0 else 0 for x, q in zip(row, columns.quantum, strict=True)]
        for row in amounts.tolist()
    ]
    whole = np.array(quanta, dtype=np.int64).reshape(columns.stage_demand.shape)
    return dataclasses.replace(columns, stage_demand=whole, stage_demand_f=amounts)
