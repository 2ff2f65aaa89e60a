"""Jobs of all applications of a log, with the account of their work and the counts by rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from sim.base.reading import Account
from sim.traces.spark_eventlog.application import Application
from sim.traces.spark_eventlog.attempts import new_account
from sim.traces.spark_eventlog.stages import NO_JOB_START, Job, build_jobs
from sim.traces.spark_eventlog.tasks import UNKNOWN_STAGE, MissingTasks, choose_tasks

CENSORED_SHARE: Final = 0.02
"""Share of jobs or tasks that still ran where the log ends, above which there is a warning."""


@dataclass
class Contents:
    """Contents of a log, application by application."""

    account: Account = field(default_factory=new_account)
    jobs: list[Job] = field(default_factory=list)
    begin_ms: float = math.inf
    cores: float = 0.0  # of the last application
    n_events: int = 0
    n_applications: int = 0
    n_tasks: int = 0
    n_due: int = 0  # tasks of the stages that completed
    n_missing: int = 0
    n_censored: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)

    def add(self, app: Application, read_as: str, order: bool, missing_tasks: MissingTasks) -> None:
        """Add an application, and free the memory of its attempts."""
        self._name(app)
        if not math.isfinite(app.end_ms):
            app.notice("an application whose end is not in its log")
        if not math.isfinite(app.begin_ms):
            app.notice("an application whose start is not in its log")
        tasks = choose_tasks(app, self.account, missing_tasks)
        jobs = build_jobs(app, tasks, self.account, read_as, order)
        if jobs:
            times = [app.begin_ms, *(job.submit_ms for job in app.jobs.values())]
            self.begin_ms = min(self.begin_ms, float(np.nanmin(times)))
        self.jobs += jobs
        self.cores = app.peak_cores
        self.n_events += app.n_events
        self.n_applications += 1
        self.n_tasks += sum(len(part) for part in tasks.by_stage.values())
        self.n_due += tasks.n_due
        self.n_missing += tasks.n_missing
        self.n_censored += tasks.n_censored
        app.rows, app.starts = type(app.rows)("d"), type(app.starts)("q")
        for counts, more in (
            (self.dropped, app.dropped), (self.filled, app.filled), (self.noticed, app.noticed)
        ):  # fmt: skip
            for rule, n in more.items():
                counts[rule] = counts.get(rule, 0) + n
        self.account.warnings += app.warnings
        is_part = app.dropped.get(UNKNOWN_STAGE) or app.noticed.get(NO_JOB_START)
        if is_part and not math.isfinite(app.begin_ms):
            self.account.warnings.append(
                f"{app.source} does not have the start of its application: is it a part of a "
                "rolled log? Read the folder with all its files"
            )

    def _name(self, app: Application) -> None:
        """Give an application whose id another one has an id with its start."""
        app.app_id = app.app_id or app.source
        if app.app_id in self.ids:
            app.notice("an application whose id another one has too: told apart by its start")
            if math.isfinite(app.begin_ms):
                begin = datetime.fromtimestamp(app.begin_ms / 1000, UTC)
                app.app_id += f"@{begin:%Y-%m-%dT%H:%M:%S}"
        name, n = app.app_id, 1
        while app.app_id in self.ids:
            n += 1
            app.app_id = f"{name}#{n}"
        self.ids.add(app.app_id)

    def warn(self, name: str, missing_tasks: MissingTasks) -> None:
        """Add warnings of tasks without an end, and of tasks and jobs that still ran."""
        warnings = self.account.warnings
        if self.n_missing:
            remedy = (
                "those of a stage that has other tasks last as long as the median of these"
                if missing_tasks == "median"
                else "their work is unknown and left out (trace.missing_tasks=median fills it in)"
            )
            share = 100 * self.n_missing / self.n_due
            warnings.append(
                f"{name}: {self.n_missing:,} of {self.n_due:,} tasks of stages that completed have "
                f"no end in the log (events that Spark dropped?), {share:.1f} % of these stages' "
                f"tasks: {remedy}"
            )
        n_censored = sum(job.is_censored for job in self.jobs)
        numbers = {
            "tasks": (self.n_censored, self.n_censored + self.n_tasks),
            "jobs": (n_censored, len(self.jobs)),
        }
        for kind, (n, n_all) in numbers.items():
            if n > CENSORED_SHARE * n_all:
                warnings.append(
                    f"{name}: {n:,} of {n_all:,} {kind} ({100 * n / n_all:.1f} %) still ran where "
                    "the log ends (censored); only what had ended is in the workload"
                )
