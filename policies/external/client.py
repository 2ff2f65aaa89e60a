"""The other side of the protocol: a scheduler in Python, to begin with.

It needs pyarrow and NumPy, and nothing of this project: copy it. `serve` calls a function for each
batch of facts, which returns the jobs that it sets.
"""

import sys
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

BEGIN, JOB_ARRIVED, STAGE_DONE, JOB_DONE = 0, 1, 4, 8
STAGE, EDGE, CHANGED = 1024, 1025, 1026


class Facts:
    """Facts of one instant: ``facts["kind"]`` is the column of that name, as an array."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.names, self._batch = batch.schema.names, batch

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, (N,)."""
        return np.asarray(self._batch.column(name))


def serve(decide: Callable[[Facts], Mapping[int, float]]) -> None:
    """Answer each batch of facts with keys of jobs, until the run is over.

    `decide` takes the facts of an instant and returns keys by job, the smallest first.
    """
    schema = pa.schema({"job": pa.int32(), "key": pa.float64()})
    sys.stdout.flush()
    with (
        pa.ipc.open_stream(sys.stdin.buffer) as facts,
        pa.ipc.new_stream(pa.PythonFile(sys.stdout.buffer, mode="w"), schema) as answers,
    ):
        for batch in facts:
            keys = decide(Facts(batch))
            jobs = np.fromiter(keys.keys(), np.int32, len(keys))
            values = np.fromiter(keys.values(), np.float64, len(keys))
            answers.write_batch(pa.record_batch([pa.array(jobs), pa.array(values)], schema=schema))
            sys.stdout.buffer.flush()
