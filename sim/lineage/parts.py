"""The join in parts, where a log of operations does not fit into memory.

Files are independent of each other (§4.2). So a part of the log is split by file, the splits of one
number of all parts are joined by themselves, and the joins are put together (`single_hop.merged`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from sim.lineage.logs import Logs


def split(part: Logs, n: int) -> list[Logs]:
    """Split the operations by the names of their files, into `n` without jobs.

    Which one a file is in depends on its name alone.
    """
    names = part.files.to_numpy(zero_copy_only=False)
    number = (pd.util.hash_array(names) % np.uint64(n)).astype(np.int64)
    of = number[part.file]
    order = np.argsort(of, kind="stable")
    ends = np.searchsorted(of[order], np.arange(n + 1))
    out = []
    for k in range(n):
        rows = order[ends[k] : ends[k + 1]]
        used, file = np.unique(part.file[rows], return_inverse=True)
        out.append(
            Logs(
                part.jobs.slice(0, 0),
                part.time_s[rows],
                part.job[rows],
                part.operation[rows],
                file.astype(np.int32),
                part.n[rows],
                part.files.take(pa.array(used)),
            )
        )
    return out


def together(splits: Sequence[Logs], jobs: pa.Table) -> Logs:
    """Put operations together again, one split after the other, with the jobs they name."""
    named = [pa.DictionaryArray.from_arrays(pa.array(s.file), s.files) for s in splits]
    file = pa.chunked_array(named).unify_dictionaries().combine_chunks()
    time_s, job, operation, n = (
        np.concatenate([getattr(s, name) for s in splits])
        for name in ("time_s", "job", "operation", "n")
    )
    codes = file.indices.to_numpy(zero_copy_only=False)
    return Logs(jobs, time_s, job, operation, codes, n, file.dictionary)
