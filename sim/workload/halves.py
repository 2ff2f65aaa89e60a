"""Halves of a workload's jobs, by a hash of their ids: one to fit, one to judge."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from sim.base.arrays import Mask
from sim.workload.workload import Workload


def second_half(workload: Workload, split: int = 0) -> Mask:
    """Return a mask of the jobs in the second half, (J,): one bit of a hash of their ids."""
    ids = workload.jobs["job_id"].to_pylist()
    digests = (blake2b(name.encode(), digest_size=8).digest() for name in ids)
    number = np.frombuffer(b"".join(digests), np.dtype("<u8"))
    second: Mask = (number >> np.uint64(split)) % np.uint64(2) == 1
    return second
