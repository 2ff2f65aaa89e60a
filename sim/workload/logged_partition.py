"""Column of the partition in which a job ran: in logs of Slurm its queue, one that it named."""

from __future__ import annotations

import numpy as np

from sim.workload.schema import PARTITION
from sim.workload.tables import names, values
from sim.workload.workload import Workload

QUEUE = "queue"


def partition_column(workload: Workload) -> str | None:
    """Return ``queue`` if it is always one of the partitions that a job names.

    Otherwise ``partition``; None if no job names any.
    """
    jobs = workload.jobs
    if PARTITION.name not in jobs.column_names:
        return None
    partition, queue = (values(jobs, name).astype(np.int64) for name in (PARTITION.name, QUEUE))
    named, queues = names(jobs, PARTITION.name), names(jobs, QUEUE)
    pairs = np.unique(partition * len(queues) + queue)
    texts = [(named[pair // len(queues)], queues[pair % len(queues)]) for pair in pairs.tolist()]
    if not any(text for text, _ in texts):
        return None
    is_one_of_them = all(queue in text.split("|") for text, queue in texts if text)
    return QUEUE if is_one_of_them else PARTITION.name
