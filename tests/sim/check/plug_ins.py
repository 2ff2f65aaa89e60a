"""Modules of users: a good one of each kind, and ones that break one rule each."""

from __future__ import annotations

POLICY = '''
from dataclasses import dataclass
import random
import time
import numpy as np
from policies import Knows, Policy, register
from sim.plan import Event, Order, Plan, Queues, World

CALLS = []

@register("{name}")
@dataclass(frozen=True)
class Mine(Policy):
    """A policy of one's own."""

    weight: float = 1.0
    {more}

    def prepare(self, world, plan):
        jobs = world.columns
        n = len(jobs.job_submit)
        {body}
'''

GOOD_POLICY = ("", "plan.set_jobs(key=-jobs.job_priority * self.weight)")
GOOD_POLICY_MORE = 'knows = Knows(values="declared")'

COUNTS_STARTS = """
    events = Event.JOB_ARRIVED | Event.JOB_DONE

    def react(self, memory, batch, world, plan):
        started = world.view["started"]
        if (started < memory)[world.columns.job_min_tasks > 0].any():
            raise ValueError("a gang has stopped")
        memory[:] = started
"""
BROKEN_POLICIES = {
    "raises": ("", "1 / 0", r"raises ZeroDivisionError: .*\(\w+\.py:23\)"),
    "nan": ("", "plan.set_jobs(key=np.full(n, np.nan))", "raises PolicyError.*NaN"),
    "global_random": (
        "",
        "plan.set_jobs(key=np.random.permutation(n).astype(float))",
        r"two calls with the same seed differ.*world\.rng",
    ),
    "counter": (
        "",
        "CALLS.append(1); plan.set_jobs(key=(jobs.job_submit * len(CALLS)) % 3)",
        "differ",
    ),
    "oracle": (
        "",
        "plan.set_jobs(key=jobs.job_work)",
        r"reads world\.columns\.job_work .*Knows\(durations='true'\).*reads=all.*\(\w+\.py:23\)",
    ),
    "order": (
        "",
        "plan.queues = Queues.make(1, order=Order.REMAINING)",
        r"declares durations='nothing'.*job_work.*Knows\(durations='true'\)",
    ),
    "deadlines": (
        "",
        "plan.set_jobs(key=np.nan_to_num(jobs.job_deadline, nan=1e9))",
        r"reads world\.columns\.job_deadline .*Knows\(deadlines='declared'\)",
    ),
    "stuck": (
        "",
        "plan.set_jobs(run_limit=0)",
        "raises DeadlockError",
    ),
    "idle": (
        "",
        "plan.set_jobs(run_limit=1)",
        "conserves_work = False",
    ),
}

ONE_WORLD = {
    "two_resources": (
        "",
        "[{'cpu': 1.0, 'mem': 0.5}[name] for name in jobs.resources]",
        "jobs on machines with GPUs and partitions.*KeyError: 'gpu'",
    ),
    "no_partitions": (
        "",
        "plan.set_jobs(key=np.array([{'': 0.0}[jobs.partitions[p]] for p in jobs.job_partition]))",
        "jobs on machines with GPUs and partitions.*KeyError: 'gpu'",
    ),
    "gpus_to_come": (
        "",
        "gpus = jobs.stage_demand_f[:, 2:].sum(); plan.set_jobs(key=np.cos(gpus * np.arange(n)))",
        "declares demands='declared'.*tasks of jobs on machines with GPUs and partitions start",
    ),
    "counts_starts": (
        COUNTS_STARTS,
        "return np.zeros(n)",
        "a run of gangs that are preempted on machines.*raises ValueError: a gang has stopped",
    ),
}
"""Policies whose fault shows in one kind of world alone, and what each of the sentences says."""

HASH_ORDER = (
    "plan.set_jobs(key=np.array([hash(jobs.user_names[u]) % 97 for u in jobs.job_user], float))"
)

READER = '''
from pathlib import Path
import numpy as np
import sim
from sim.base.reading.account import Account
from sim.workload.amounts import with_account

CALLS = []

def read(path, scale=1.0):
    """Read a duration a line; lines that are empty or negative are left out."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
        rows = [float(line) for line in lines if line.strip()]
    except (ValueError, UnicodeDecodeError) as error:
        {on_bad}
    seconds = np.array(rows) * scale
    if not np.isfinite(seconds).all() or (seconds > 1e9).any():
        raise sim.InputError("a duration is no number of at most 1e9 s", file=path)
    account = Account({{"jobs": np.ones(len(seconds))}})
    negative = seconds < 0
    account.leave_out("negative", {left_out})
    seconds = seconds[~negative]
    {more}
    if not len(seconds):
        raise sim.InputError("no duration in it", file=path)
    n = len(seconds)
    workload = sim.Workload.from_tables(
        jobs={{"job_id": [f"j{{i}}" for i in range(n)], "submit_s": np.arange(n, dtype=float)}},
        stages={{"job": range(n), "n_tasks": [1] * n, "demand_cpu": [1.0] * n}},
        tasks={{"stage": range(n), "duration_s": seconds}},
    )
    return {returned}
'''
GOOD_READER = {
    "on_bad": 'raise sim.InputError("no number", file=path) from error',
    "left_out": "negative",
    "more": "",
    "returned": "with_account(workload, account)",
}
BROKEN_READERS = {
    "account": ({"left_out": "np.zeros(len(seconds), bool)"}, "the account does not balance"),
    "no_account": ({"returned": "workload"}, "has no account of the log"),
    "error": ({"on_bad": "raise KeyError(1) from error"}, "raises KeyError.*raise sim.InputError"),
    "type": ({"returned": "seconds"}, "returns a ndarray, not a sim.Workload"),
    "clock": ({"more": "CALLS.append(1); seconds = seconds + len(CALLS)"}, "differ"),
}

GENERATOR = '''
import numpy as np
import sim
from sim.base.random import stream

def synthesize(jobs=10, {seed}mean_s=5.0):
    """Draw jobs of one task."""
    rng = {rng}
    return sim.Workload.from_jobs(
        {{"submit_s": float(t), "stages": [{{"durations_s": [float(d)]}}]}}
        for t, d in zip(np.arange({n}), rng.exponential(mean_s, {n}))
    )
'''
GOOD_GENERATOR = {"seed": "seed=0, ", "rng": 'stream(seed, "mine")', "n": "jobs"}
BROKEN_GENERATORS = {
    "unseeded": ({"rng": "np.random.default_rng()"}, "two calls with the same seed differ"),
    "ignored": ({"rng": "np.random.default_rng(3)"}, "the seed has no effect"),
    "without_seed": ({"seed": "", "rng": "np.random.default_rng(3)"}, "takes no seed"),
    "count": ({"n": "(jobs + 1)"}, "gives 51 jobs"),
    "hashed": ({"rng": 'np.random.default_rng([seed, hash("mine") % 99])'}, "PYTHONHASHSEED"),
}

TRANSFORM = '''
import numpy as np
import pyarrow as pa
import sim

CALLS = []

def {name}(workload, factor={factor}):
    """Make tasks longer."""
    duration = workload.tasks["duration_s"].to_numpy() {by}
    tasks = workload.tasks.drop_columns(["duration_s"]).append_column(
        "duration_s", pa.array(duration)
    )
    changed = sim.Workload.from_tables(
        jobs=workload.jobs, stages=workload.stages, tasks=tasks, stage_edges=workload.stage_edges
    )
    return {returned}
'''
GOOD_TRANSFORM = {"factor": "2.0", "by": "* factor", "returned": "changed"}
BROKEN_TRANSFORMS = {
    "nothing": ({"returned": "None"}, "returns a NoneType, not a sim.Workload"),
    "random": ({"by": "* (1 + np.random.random())"}, "two calls with the same seed differ"),
    "negative": ({"by": "- 1e9"}, "raises InputError"),
}

METRIC = '''
import numpy as np
from sim.metrics import Metric

METRICS = {{"late_jobs": Metric("1", "lower", "share of jobs that wait for over a minute")}}

def compute(run, bounds):
    """Compute it."""
    wait = run.job_start - run.job_submit
    return {returned}
'''
GOOD_METRIC = {"returned": '{"late_jobs": float(np.mean(wait > 60))}'}
BROKEN_METRICS = {
    "nan": ('{"late_jobs": float("nan")}', "late_jobs is NaN in each of 3 runs"),
    "text": ('{"late_jobs": "many"}', "late_jobs is a str, not a number"),
    "array": ('{"late_jobs": wait}', "late_jobs is a ndarray, not a number"),
    "infinite": ('{"late_jobs": float("inf")}', "infinite"),
    "undeclared": ('{"late_jobs": 0.5, "later": 1.0}', "'later', which METRICS does not declare"),
    "missing": ("{}", "declares 'late_jobs', which compute never returns"),
    "raises": ('{"late_jobs": wait[10**9]}', r"compute raises IndexError.*\(\w+\.py:11\)"),
    "random": ('{"late_jobs": float(np.random.random())}', "two calls with the same seed differ"),
}

EVALUATOR = '''
import numpy as np
import pyarrow as pa

def evaluate(run, workload, cluster, policy, seed, limit=2.0):
    """Simulate once."""
    result = run(workload, cluster, policy, seed=seed)
    slow = (result.job_finish - result.job_submit) > limit
    return {returned}
'''
GOOD_EVALUATOR = '{"slow": float(slow.mean())}, pa.table({"slow": slow})'
BROKEN_EVALUATORS = {
    "nan": ('{"slow": float("nan")}, pa.table({"slow": slow})', "slow is NaN"),
    "pair": ('{"slow": 1.0}', "returns no pair"),
    "table": ('{"slow": 1.0}, slow', "ndarray as its second value, not a pyarrow.Table"),
}
