"""Judgement of the kept sites: their twins one step at a time, in free runs, and as what-ifs.

``python -m benchmarks.real.slurm.sites.judge --workloads mixed-1 --table FILE`` adds the rows of
workloads to a table, by the rule of ``docs/decisions/0052-site-twins.md``; `--write` renders the
page from it (`benchmarks.real.page`).
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import policies
from benchmarks.real import page
from benchmarks.real.slurm.sites import plan, what_if
from benchmarks.real.slurm.sites.plan import FREE, NEAREST, STEPS, WHAT_IF, SiteRun
from benchmarks.real.slurm.sites.twin import ALL, N_SEEDS, partitions, recorded_s, simulated_s
from sim.cluster.cluster import Cluster
from sim.traces.sites.site import Site
from sim.traces.slurm_site.site import read_site
from sweep.grid import clusters
from sweep.questions.backtest import nearest, steps
from sweep.questions.backtest.attempts import with_attempts
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.logged_jobs import logged_jobs
from sweep.questions.backtest.mechanisms import Model

N_OTHERS = 10
"""Simulations of each policy that is compared."""

Rows = list[dict[str, Any]]


def candidates(site: Site) -> dict[str, dict[str, Any]]:
    """Return the policies among which the site's own is to be the nearest."""
    own = dict(site.policy)
    scheduler = {key: own[key] for key in own if key in _SCHEDULER}
    return {
        "site": own,
        "without backfill": {**own, "backfill": False},
        "by submission": {"name": "slurm", **scheduler},
        "easy": {"name": "easy"},
        "fifo": {"name": "fifo"},
    }


_SCHEDULER = (
    "interval_s", "resolution_s", "window_s", "depth", "reserve", "linear_s", "main_depth",
    "main_interval_s", "main_delay_s", "cycle_s", "requeue_s",
)  # fmt: skip


def judge_steps(run: SiteRun, site: Site) -> dict[str, Any]:
    """Try the twin in each state that a run's log shows."""
    model = _model(site)
    model = model._replace(workload=with_attempts(model.workload))
    moments = steps.find_moments(model, *steps.cycle_of(model, 1.0))
    judged = steps.judge(model, moments)
    return {
        "run": run.stem, "starts": int((judged.matches >= 0).sum()),
        "found": int((judged.matches > 0).sum()), "false_starts": len(judged.false),
        "quiet": len(judged.quiet),
        "quiet_kept": len(judged.quiet) - len({*judged.broken[:, 0].tolist()}),
    }  # fmt: skip


def _model(site: Site) -> Model:
    assert site.workload is not None
    options = dict(site.policy)
    policy = policies.build(options.pop("name"), **options)
    return Model(
        site.workload, clusters.with_faults(_cluster(site), site.cluster, 0, policy), policy
    )


def _cluster(site: Site) -> Cluster:
    assert site.workload is not None
    return clusters.build_for(site.workload, site.cluster, 1.0).cluster


def judge_free(run: SiteRun, site: Site) -> Rows:
    """Return recorded and simulated mean waits of a run, by partition."""
    assert site.workload is not None
    real_s, runs_s = recorded_s(site.workload), _simulated_s(site, site.policy, N_SEEDS)
    names = np.array(partitions(site.workload))
    rows = []
    for name in (ALL, *sorted({*names.tolist()})):
        mine = ((names == name) | (name == ALL)) & ~np.isnan(real_s)
        means_s = np.nanmean(runs_s[:, mine], axis=1)
        job_s = np.abs(np.nanmean(runs_s[:, mine], axis=0) - real_s[mine])
        rows.append({
            "run": run.stem, "partition": name, "jobs": int(mine.sum()),
            "recorded_s": float(real_s[mine].mean()), "simulated_s": float(means_s.mean()),
            "low_s": float(np.quantile(means_s, 0.025)),
            "high_s": float(np.quantile(means_s, 0.975)),
            "job_s": float(np.nanmean(job_s)),
        })  # fmt: skip
    return rows


def _simulated_s(site: Site, policy: Mapping[str, Any], n: int) -> Any:
    assert site.workload is not None
    return simulated_s(site.workload, site.cluster, policy, n)


def judge_nearest(run: SiteRun, site: Site) -> dict[str, Any]:
    """Return the policy under whose runs the recorded starts are likeliest."""
    assert site.workload is not None
    findings = audit(site.workload, _cluster(site))
    jobs = logged_jobs(site.workload, findings)
    release_s = site.workload.columns.job_submit
    starts_s = [
        (_simulated_s(site, policy, N_OTHERS) + release_s)[:, jobs.job]
        for policy in candidates(site).values()
    ]
    ranking = nearest.rank(jobs, starts_s, findings)
    return {"run": run.stem, "nearest": list(candidates(site))[ranking.best]}


def judge_what_if(workload: str, folder: Path) -> dict[str, Any]:
    """Compare the change that a workload's twins foresee with what then happened."""
    foreseen, base_s = [], []
    for run in _runs(workload, False):
        today_s, changed_s = what_if.waits_s(run.folder(folder), plan.WORKLOADS[workload], N_SEEDS)
        foreseen.append(changed_s / today_s - 1.0)
        base_s.append(_recorded_mean_s(run, folder))
    changed = [_recorded_mean_s(run, folder) for run in _runs(workload, True)]
    pairs = [after / before - 1.0 for before, after in itertools.product(base_s, changed)]
    return {
        "workload": workload, "change": plan.WORKLOADS[workload],
        "real": sum(changed) / sum(base_s) - 1.0, "noise": max(pairs) - min(pairs),
        "foreseen": float(np.mean(foreseen)), "foreseen_1": foreseen[0], "foreseen_2": foreseen[1],
    }  # fmt: skip


def _recorded_mean_s(run: SiteRun, folder: Path) -> float:
    site = read_site(run.folder(folder))
    assert site.workload is not None
    return float(np.nanmean(recorded_s(site.workload)))


def _runs(workload: str, changed: bool) -> list[SiteRun]:
    return [SiteRun(workload, changed, number + 1) for number in range(plan.N_RUNS)]


def judge(workloads: Sequence[str], parts: Sequence[str], folder: Path, table_file: Path) -> None:
    """Add the rows of workloads that are missing to the table, and write it after each."""
    for workload in workloads:
        runs = [*_runs(workload, False), *_runs(workload, True)]
        for part, run in itertools.product((STEPS, FREE, NEAREST), runs):
            table = page.read_table(table_file)
            known = {row["run"] for row in table.get(part, ())}
            if part not in parts or run.stem in known or (part == FREE and run.changed):
                continue
            site = read_site(run.folder(folder))
            rows: Rows
            if part == FREE:
                rows = judge_free(run, site)
            else:
                rows = [(judge_steps if part == STEPS else judge_nearest)(run, site)]
            table[part] = [*table.get(part, ()), *rows]
            page.write_table(table, table_file)
            print(part, json.dumps(rows[0]), flush=True)
        table = page.read_table(table_file)
        if WHAT_IF in parts and workload not in {row["workload"] for row in table.get(WHAT_IF, ())}:
            table[WHAT_IF] = [*table.get(WHAT_IF, ()), judge_what_if(workload, folder)]
            page.write_table(table, table_file)
            print(WHAT_IF, json.dumps(table[WHAT_IF][-1]), flush=True)


def main() -> None:
    """Judge workloads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.sites.judge")
    parser.add_argument("--workloads", nargs="+", choices=list(plan.WORKLOADS), required=True)
    parser.add_argument("--parts", nargs="+", default=[STEPS, FREE, WHAT_IF, NEAREST])
    parser.add_argument("--runs", type=Path, default=plan.KEPT, help="folder of the runs")
    parser.add_argument("--table", type=Path, default=page.TABLE, help="JSON of the rows")
    words = parser.parse_args()
    judge(words.workloads, words.parts, words.runs, words.table)


if __name__ == "__main__":
    main()
