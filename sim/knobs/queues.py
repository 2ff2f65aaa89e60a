"""Jobs dealt out to queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.base.random import stream
from sim.knobs.parts import rebuilt, replaced

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def deal_queues(workload: Workload, n: int = 2, seed: int = 0) -> Workload:
    """Deal the jobs out to `n` queues, evenly and at random.

    Parameters
    ----------
    workload : Workload
        Whose queues are replaced by ``q0``, ``q1``, ...
    n : int
        Number of queues, at least 1.
    seed : int
        Of who is dealt where.

    Raises
    ------
    InputError
        If `n` is out of its range.
    """
    if type(n) is not int or not 1 <= n <= 127:
        raise InputError(f"jobs are dealt out to 1 to 127 queues, not {n!r}")
    dealt = stream(seed, "queues").permutation(workload.n_jobs) % n
    names = pa.array([f"q{at}" for at in range(n)])
    queue = pa.DictionaryArray.from_arrays(pa.array(dealt.astype(np.int32)), names)
    jobs = replaced(workload.jobs, "queue", queue)
    return rebuilt(workload, workload.stages, {"queues": n, "seed": int(seed)}, jobs=jobs)
