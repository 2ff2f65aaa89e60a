"""Outcome of a backtest: its tables and sentences, from the runs of each policy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.workload.workload import Workload
from sweep.execution.cells_table import swept_column
from sweep.questions.backtest import nearest, sentences
from sweep.questions.backtest.compare import Comparison, compare
from sweep.questions.backtest.findings import Audit
from sweep.questions.backtest.group_sentences import group_sentences
from sweep.questions.backtest.groups import groups_table
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.runs import (
    BACKTEST,
    BACKTEST_GROUPS,
    BACKTEST_JOBS,
    BACKTEST_JSON,
)
from sweep.questions.backtest.runs_of_policy import PolicyRuns


def build_tables(
    workload: Workload,
    log: LoggedJobs,
    findings: Audit,
    runs: Sequence[PolicyRuns],
    cluster_sentence: str,
    *,
    has_rules: bool = False,
) -> dict[str, Any]:
    """Compare the runs with the log; return the files' contents by name.

    With `has_rules` the simulated cluster has limits, quotas or rules of partitions, of which the
    audit knows none: a log that is not in order can be its policy's.

    Returns
    -------
    dict
        ``backtest.parquet``: a row a policy. ``backtest_jobs.parquet``: a row a policy and job,
        with its recorded and simulated starts, s: ``first_start_s`` is the run's with seed 0.
        ``backtest_groups.parquet``: a row a policy and group of jobs.
        ``backtest.json``: the audit, and the answers in words.
    """
    compared = [compare(log, run.start_s[:, log.job], run.finish_s[:, log.job]) for run in runs]
    ranking = nearest.rank(log, [run.start_s[:, log.job] for run in runs], findings)
    labels = [run.label for run in runs]
    groups = groups_table(workload, log, runs)
    has_stages = workload.n_stages > workload.n_jobs
    lines = [
        sentences.policy_sentence(label, log, comparison, with_completion=has_stages)
        for label, comparison in zip(labels, compared, strict=True)
    ]
    record = {
        "audit": findings.to_json(),
        "has_rules": has_rules,
        "nearest": labels[ranking.best],
        "sentence": sentences.nearest_sentence(
            labels,
            ranking,
            is_in_order=findings.is_in_order or has_rules,
            caveats=sentences.log_caveats(workload),
        ),
        "policies": [
            {"label": run.label, "policy": run.config, "error": c.error, "sentence": line}
            for run, c, line in zip(runs, compared, lines, strict=True)
        ],
        "distinguished": [labels[k] for k in ranking.distinguished],
        "not_distinguished": [labels[k] for k in ranking.undistinguished],
        "cautions": sentences.cautions(log),
        "groups": group_sentences(groups),
        "cluster": cluster_sentence,
        "workload": workload.digest,
        "runs": len(runs[0].start_s),
    }
    return {
        BACKTEST: _policies_table(log, runs, compared, ranking, lines),
        BACKTEST_JOBS: _jobs_table(workload, log, runs),
        BACKTEST_GROUPS: groups,
        BACKTEST_JSON: without_nan(record),
    }


def without_nan(content: Any) -> Any:
    """Replace NaN, which JSON lacks, by None."""
    if isinstance(content, Mapping):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [without_nan(value) for value in content]
    is_nan = isinstance(content, float) and not math.isfinite(content)
    return None if is_nan else content


def _policies_table(
    log: LoggedJobs,
    runs: Sequence[PolicyRuns],
    compared: Sequence[Comparison],
    ranking: nearest.Ranking,
    lines: Sequence[str],
) -> pa.Table:
    n = len(runs)
    recorded_mean_s = float(log.wait_s.mean())
    by_name = {
        field.name: np.array([getattr(c, field.name) for c in compared])
        for field in dataclasses.fields(Comparison)
    }
    first = ("wait_mean_s", "low", "high", "error", "mae", "waited_within_10pct", "pairs_in_order")
    table: dict[str, Any] = {
        "policy": columns.strings([run.policy for run in runs]),
        "jobs": np.full(n, len(log.job)),
        "waited": np.full(n, int(log.waited.sum())),
        "wait_mean_recorded_s": np.full(n, recorded_mean_s),
        **{name: by_name.pop(name) for name in first},
        "label": columns.strings([run.label for run in runs]),
    }
    for key in runs[0].parameters:
        table[key] = swept_column(key, [run.parameters[key] for run in runs])
    table |= by_name
    table |= {
        "runs": np.full(n, len(runs[0].start_s)),
        "log_likelihood": np.array(ranking.log_likelihood),
        "behind_nearest": np.array(ranking.behind),
        "behind_low": np.array([test.low for test in ranking.tests]),
        "behind_high": np.array([test.high for test in ranking.tests]),
        "p_holm": np.array(ranking.p_holm),
        "is_nearest": np.arange(n) == ranking.best,
        "sentence": columns.strings(lines),
    }
    return pa.table(table)


def _jobs_table(workload: Workload, log: LoggedJobs, runs: Sequence[PolicyRuns]) -> pa.Table:
    width = np.bincount(
        workload.columns.stage_job,
        weights=workload.columns.stage_n_tasks,
        minlength=workload.n_jobs,
    )
    fixed = {
        "job": log.job,
        "submit_s": log.submit_s,
        "tasks": width[log.job].astype(np.int64),
        "recorded_start_s": log.start_s,
        "recorded_finish_s": log.finish_s,
    }
    parts = []
    for run in runs:
        start_s, finish_s = run.start_s[:, log.job], run.finish_s[:, log.job]
        low, median, high = np.quantile(start_s, (0.025, 0.5, 0.975), axis=0)
        label = pa.array([run.label] * len(log.job)).dictionary_encode()
        parts.append(
            pa.table(
                {
                    "policy": label.cast(pa.string()),
                    **fixed,
                    "start_s": median,
                    "low_start_s": low,
                    "high_start_s": high,
                    "finish_s": np.median(finish_s, axis=0),
                    "first_start_s": start_s[0],
                    "first_finish_s": finish_s[0],
                }
            )
        )
    return pa.concat_tables(parts)
