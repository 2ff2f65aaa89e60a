"""Which programs used jobs' outputs, and how soon: as columns of a workload.

What is foretold of dependencies (Chung et al., OSDI 2020, §3) is learnt from jobs of the past and
held against those of the week. So a workload's ``history`` and ``jobs`` have, beside the columns of
`sim.workload.schema` and of `sim.lineage.worth`, those of `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import I8
from sim.lineage.predict import Uses

COLUMNS: Final = ("readers", "readers_after_s")
"""Recurring templates of which a job used the job's output, and how long after the job's submission
the first of each was submitted, s: lists of equal length. A history knows those submitted before
the start; in ``jobs`` only oracles may look at them."""


def columns(uses: Uses, rows: I8, names: Sequence[str]) -> dict[str, pa.ListArray]:
    """Return `COLUMNS` of some jobs."""
    first, end = (np.searchsorted(uses.job, rows, side) for side in ("left", "right"))
    own = uses.where(np.isin(uses.job, rows))
    offsets = pa.array(np.concatenate([[0], np.cumsum(end - first)]).astype(np.int32))
    spelled = pa.array(names, pa.string()).take(pa.array(own.template))
    return {
        name: pa.ListArray.from_arrays(offsets, values)
        for name, values in zip(COLUMNS, (spelled, pa.array(own.time_s)), strict=True)
    }


def uses_of(table: pa.Table, codes: Mapping[str, int]) -> Uses:
    """Return the uses that the columns of a table tell; of templates without a code, none."""
    names, after_s = (table[name].combine_chunks() for name in COLUMNS)
    coded = names.flatten().dictionary_encode()
    lookup = np.array([codes.get(n, -1) for n in coded.dictionary.to_pylist()], dtype=np.int32)
    template = lookup[coded.indices.to_numpy()] if len(coded) else np.empty(0, np.int32)
    job = np.repeat(np.arange(len(names)), np.diff(names.offsets.to_numpy())).astype(np.int32)
    time_s = after_s.flatten().to_numpy()
    come_s = table["submit_s"].to_numpy()[job] + time_s
    order = np.lexsort((template, job))
    order = order[template[order] >= 0]
    return Uses(job[order], template[order], come_s[order], time_s[order])
