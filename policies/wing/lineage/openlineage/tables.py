"""Tables of jobs and operations of runs.

A run reads its inputs at its start and changes its outputs at its end. One that streams reads and
writes at each ``RUNNING`` event too. Rows are in an order that does not depend on that of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.files import (
    APPEND,
    FAILED_WRITE,
    OPERATION_NAMES,
    OVERWRITE,
    READ,
    TRUNCATE,
    WRITE,
)
from policies.wing.lineage.openlineage import datasets
from policies.wing.lineage.openlineage.runs import BATCH, STREAMING, Run, Runs
from policies.wing.lineage.openlineage.wrappers import Containment
from sim.base.arrays import I4

_OPERATION: Final = {
    datasets.WRITE: WRITE, datasets.APPEND: APPEND, datasets.OVERWRITE: OVERWRITE,
    datasets.CREATE: OVERWRITE, datasets.CLEAR: TRUNCATE, datasets.RENAME: OVERWRITE,
}  # fmt: skip
"""Operations by the change of a dataset; one that is only altered has none."""
_PRECEDENCE: Final = (
    datasets.OVERWRITE, datasets.CREATE, datasets.APPEND, datasets.WRITE, datasets.RENAME,
    datasets.CLEAR, datasets.ALTER,
)  # fmt: skip
Tables = tuple[dict[str, Any], dict[str, Any]]


def build_tables(runs: Runs, selected: Sequence[Run], inside: Containment) -> Tables:
    """Return columns of operations and of jobs for the selected runs."""
    rank, names = runs.datasets.numbered()
    ordered = sorted(selected, key=lambda run: (run.begin_s, run.key))
    times: list[float] = []
    rows: list[tuple[int, int, int]] = []  # job, operation, dataset
    for row, run in enumerate(ordered):
        inputs = run.inputs | inside.extra_inputs.get(run.key, frozenset())
        operations = set(_operations(run, inputs, rank))
        for wrapper, number in inside.extra_outputs.get(run.key, ()):
            outer = runs.by_key[wrapper]
            change = datasets.change_of(outer.outputs[number])
            operations.update(_changes(run.finish_s, int(rank[number]), [change], outer.outcome))
        for when_s, operation, number in operations:
            times.append(when_s)
            rows.append((row, operation, number))
    time_s = np.array(times, np.float64)
    job, code, dataset = np.array(rows, np.int32).reshape(-1, 3).T
    order = np.lexsort((dataset, code, job, time_s))
    ids = pa.array(["/".join(run.key) for run in ordered], pa.string())
    operation_table = {
        "time_s": time_s[order],
        "job": pa.DictionaryArray.from_arrays(pa.array(job[order]), ids),
        "operation": pa.DictionaryArray.from_arrays(
            pa.array(code[order]), pa.array(OPERATION_NAMES)
        ),
        "file": pa.DictionaryArray.from_arrays(
            pa.array(dataset[order]), pa.array(names, pa.string())
        ),
    }
    job_table = {
        "job_id": ids,
        "template_name": _texts("/".join(filter(None, run.key[:2])) for run in ordered),
        "signature": _texts(run.source for run in ordered),
        "queue": _texts(run.key[0] for run in ordered),
        "submit_s": pa.array([run.begin_s for run in ordered], pa.float64()),
        "finish_s": pa.array([run.finish_s for run in ordered], pa.float64()),
        "outcome": _texts(run.outcome for run in ordered),
        "run_time": _texts(run.run_time for run in ordered),
    }
    return operation_table, job_table


def _texts(values: Iterable[str]) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode()


def is_streaming(run: Run) -> bool:
    """Tell whether a run reads and writes all the time: it says so, or has not ended."""
    if run.processing == STREAMING:
        return True
    return run.processing != BATCH and run.end_s is None and bool(run.ticks)


def _operations(run: Run, inputs: Iterable[int], rank: I4) -> Iterable[tuple[float, int, int]]:
    """Yield time, operation and dataset of what a run does."""
    changes: dict[int, list[int]] = {}
    for number, bits in run.outputs.items():
        changes.setdefault(int(rank[number]), []).append(datasets.change_of(bits))
    written: set[int] = set()
    if is_streaming(run):
        for time_s, read, wrote in run.ticks:
            yield from ((time_s, READ, int(rank[number])) for number in read)
            for dataset in {int(rank[number]) for number in wrote}:
                written.add(dataset)
                yield from _changes(time_s, dataset, changes[dataset], "done")
    for number in inputs:
        yield run.begin_s, READ, int(rank[number])
    for dataset, kinds in changes.items():
        if run.outcome != "done" and dataset in written:
            continue  # it was written all the time before the failure
        yield from _changes(run.finish_s, dataset, kinds, run.outcome)
        if _change(kinds) == datasets.RENAME and run.outcome == "done":
            yield run.begin_s, READ, dataset  # the data under its previous name


def _changes(
    time_s: float, dataset: int, kinds: Sequence[int], outcome: str
) -> Iterable[tuple[float, int, int]]:
    code = _OPERATION.get(_change(kinds))
    if code is not None:
        yield time_s, code if outcome == "done" else FAILED_WRITE, dataset


def _change(kinds: Sequence[int]) -> int:
    """Return the change of a dataset that a run names in several ways: data made comes first."""
    return next(kind for kind in _PRECEDENCE if kind in kinds)
