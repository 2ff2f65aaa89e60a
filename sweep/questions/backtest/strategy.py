"""Strategy of a backtest: the runs of all policies, then their comparison with the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.cluster.cluster import Cluster
from sim.state import has_nodes
from sim.workload.workload import Workload
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.strategy import Batch, Batches
from sweep.grid import clusters, grid
from sweep.grid.request import Request
from sweep.questions.backtest import mechanisms
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.capacity import LoggedSize, logged_size
from sweep.questions.backtest.findings import Audit
from sweep.questions.backtest.logged_jobs import logged_jobs
from sweep.questions.backtest.outcome import build_tables
from sweep.questions.backtest.request import check_starts
from sweep.questions.backtest.runs import BACKTEST_JSON, STEPS_TABLE, Runs
from sweep.questions.backtest.runs_of_policy import PolicyRuns
from sweep.questions.backtest.starts import written_s
from sweep.stats.arrange import build_columns
from sweep.store.cache import Cache


class Backtest:
    """Strategy that runs each policy with many seeds and compares it with the log."""

    def __init__(self, request: Request) -> None:
        assert isinstance(request.goal, Runs)
        self.request, self._has_steps = request, request.goal.steps
        self.id_part = ("backtest", request.goal.runs, *(("steps",) if self._has_steps else ()))
        self._grid = grid.build(request)
        self._compare: Callable[[], Mapping[str, Any]] = dict

    def batches(self, inputs: Inputs) -> Batches:
        """Yield all runs as one batch; first refuse a log without starts."""
        first = self._grid.cells[0]
        check_starts(inputs.workload(inputs.workload_id(first)), first)
        results = yield Batch(self._grid)
        self._compare = partial(self._tables, inputs, results)
        return self._grid

    def tables(self) -> Mapping[str, Any]:
        """Compare the runs with the log: tables by file name, and the content of a JSON file."""
        return self._compare()

    def _tables(self, inputs: Inputs, results: CellResults) -> Mapping[str, Any]:
        first = self._grid.cells[0]
        workload = inputs.workload(inputs.workload_id(first))
        cluster = clusters.build_for(workload, first.cluster, 1.0).cluster
        findings = audit(workload, cluster)
        runs = self._runs(results, written_s(workload))
        if not runs:
            return {}
        steps = self._steps(workload, findings, runs) if self._has_steps else {}
        sentence = f"simulated on {cluster.describe()}{_origin(logged_size(workload), cluster)}"
        log = logged_jobs(workload, findings)
        has_rules = bool(cluster.limits or cluster.quotas or cluster.rules)
        tables = build_tables(workload, log, findings, runs, sentence, has_rules=has_rules)
        if STEPS_TABLE in steps:
            tables[STEPS_TABLE] = steps.pop(STEPS_TABLE)
        tables[BACKTEST_JSON] |= steps
        return tables

    def _steps(
        self, workload: Workload, findings: Audit, runs: Sequence[PolicyRuns]
    ) -> dict[str, Any]:
        """Try each policy one step at a time; return the table and the answers in words."""
        from sweep.questions.backtest import step_sentences, steps  # brings numba

        config = self._grid.cells[0].cluster
        bare = clusters.build_for(workload, config, 1.0).cluster
        if not has_nodes(workload, bare):
            return {"steps": [step_sentences.NO_NODES]}
        tables = []
        for run in runs:
            policy = grid.build_policy(run.config)
            assert policy is not None
            cluster = clusters.with_faults(bare, config, 0, policy)
            model = mechanisms.Model(workload, cluster, policy)
            tables.append(steps.steps_table(run.label, model, findings.grace_s))
        table = pa.concat_tables(tables)
        return {STEPS_TABLE: table, "steps": step_sentences.sentences(table)}

    def _runs(self, results: CellResults, end_s: float) -> list[PolicyRuns]:
        """Return the runs of each policy, of which none failed; their times up to `end_s`."""
        cache = Cache(self.request.settings.results)
        policy_keys = [key for key in self._grid.swept if key.startswith("policy.")]
        n_runs = len(self.request.axes["seed"])
        firsts = range(0, len(self._grid.cells), n_runs)
        heads = [self._grid.cells[row] for row in firsts]
        columns, column_of = build_columns(
            [{key: cell.labels[key] for key in ("policy", *policy_keys)} for cell in heads],
            policy_keys,
            None,
        )
        labels = [column.label for column in columns.values()]
        runs = []
        for row, head, column in zip(firsts, heads, column_of, strict=True):
            cells = [self._grid.cells[row + seed] for seed in range(n_runs)]
            if any(results.failed(cell) for cell in cells):
                continue
            tables = [cache.get(results.key(cell)) for cell in cells]
            jobs = [result.jobs for result in tables if result is not None]
            runs.append(
                PolicyRuns(
                    head.labels["policy"],
                    labels[column],
                    {key: head.labels[key] for key in policy_keys},
                    head.policy,
                    *(
                        np.minimum(np.stack([_column(table, name) for table in jobs]), end_s)
                        for name in _TIMES
                    ),
                )
            )
        return runs


_TIMES = ("start_s", "finish_s")


def _origin(size: LoggedSize, cluster: Cluster) -> str:
    """Write where the size is from; and the log's, if another one was given."""
    logged = size.build()
    if (logged.unit, logged.resources) == (cluster.unit, cluster.resources) and np.array_equal(
        logged.capacity, cluster.capacity
    ):
        return f", as {size.sentence}"
    return f", as given; by the log {logged.describe()}, as {size.sentence}"


def _column(jobs: pa.Table | None, name: str) -> Any:
    assert jobs is not None
    return jobs[name].to_numpy()
