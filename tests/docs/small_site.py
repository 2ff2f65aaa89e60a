"""A small site of Slurm, for the page on a site's twin: its files, as its commands print them.

Jobs are drawn, and started by the simulated scheduler itself, with lags of its own: so a backtest
has something to find, and the page shows a twin that is near.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from sim.traces.slurm_site.site import read_site
from tests.sim.traces.test_squeue import HEAD

ZERO_S = datetime(2026, 3, 2, 6, 0, tzinfo=UTC).timestamp()
HOURS = 24
NOW_S = 23 * 3600.0
FILES = {
    "slurm.conf": """ClusterName=small
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_window=2880
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=2000
PriorityWeightQOS=1000
PriorityMaxAge=1-0
AccountingStorageEnforce=associations,limits,qos
NodeName=DEFAULT CPUs=16 RealMemory=64000
NodeName=c[1-4]
NodeName=g[1-2] CPUs=32 RealMemory=256000 Gres=gpu:4 Weight=10
PartitionName=batch Nodes=c[1-4] Default=YES MaxTime=8:00:00 PriorityTier=2
PartitionName=long Nodes=c[1-4] MaxTime=2-0 PriorityTier=1
PartitionName=gpu Nodes=g[1-2] MaxTime=1-0 PriorityTier=2
Licenses=matlab:4
""",
    "qos.txt": "Name|Priority|MaxTRESPU|MaxJobsPU\nnormal|0|cpu=32,gres/gpu=4|\nhigh|100||3\n",
    "assoc.txt": """Account|User|Par Name|Share|GrpTRES|MaxJobs
root|||1||
ml||root|60||
bio||root|40||
ml|ann||1||
ml|bob||1||
bio|cyd||1||
bio|dan||1||
""",
}
COLUMNS = (
    "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "Elapsed",
    "Timelimit", "State", "AllocCPUS", "ReqCPUS", "NNodes", "AllocTRES", "ReqTRES", "NodeList",
    "Priority", "Reason", "SubmitLine",
)  # fmt: skip
Job = dict[str, Any]


def draw_jobs(n: int, seed: int = 7) -> list[Job]:
    """Draw jobs of a day, at times more than fit."""
    rng = np.random.default_rng(seed)
    jobs: list[Job] = []
    for number, submit_s in enumerate(np.sort(rng.uniform(0, HOURS * 3600, n)).round().tolist(), 1):
        partition = str(rng.choice(["batch", "gpu", "long"], p=[0.6, 0.3, 0.1]))
        user = str(rng.choice(["ann", "bob", "cyd", "dan"], p=[0.4, 0.2, 0.25, 0.15]))
        limit_s = int(rng.choice([1800, 3600, 7200, 14_400]))
        limit_s = int(rng.choice([43_200, 129_600])) if partition == "long" else limit_s
        share = float(rng.choice([0.15, 0.4, 0.7, 0.95]))
        run_s = round((share if partition != "long" else share / 6) * limit_s)
        gpus = int(rng.integers(1, 4)) if partition == "gpu" else 0
        jobs.append(
            {
                "id": number, "submit_s": submit_s, "user": user, "partition": partition,
                "account": "ml" if user in ("ann", "bob") else "bio",
                "qos": "high" if rng.random() < 0.1 else "normal", "limit_s": limit_s,
                "run_s": run_s, "cpus": int(rng.choice([4, 8, 16])), "gpus": gpus,
                "nodes": 1 + int(partition == "batch" and rng.random() < 0.15),
            }
        )  # fmt: skip
    return jobs


def write_site(folder: Path, n: int = 230) -> None:
    """Write the exports of a site whose queue is as it was after `NOW_S`."""
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    jobs = draw_jobs(n)
    _write_log(folder, [{**job, "start_s": job["submit_s"], "at": ["c1"]} for job in jobs])
    _start(folder, jobs)
    _write_log(folder, [job for job in jobs if job["start_s"] + job["run_s"] <= NOW_S])
    present = [job for job in jobs if job["submit_s"] <= NOW_S < job["start_s"] + job["run_s"]]
    lines = [_time(NOW_S), HEAD, *(_queue_line(job) for job in present)]
    (folder / "squeue.txt").write_text("\n".join(lines) + "\n")


def _start(folder: Path, jobs: list[Job]) -> None:
    """Start the jobs with the site's own scheduler; set ``start_s`` and ``at``."""
    site = read_site(folder)
    assert site.workload is not None
    cluster = sim.Cluster.mixed(site.cluster["shape"]).with_partitions(site.cluster["partitions"])
    cluster = cluster.with_limits(site.cluster["limits"], site.cluster.get("accounts"))
    policy = policies.build(**site.policy)
    result = sim.simulate(site.workload, cluster.with_launch({"low": 0, "high": 2}, 5), policy)
    assert result.task_machine is not None
    zero_s = float(site.workload.meta["offset_s"]) - ZERO_S
    columns = site.workload.columns
    by_id = {int(name): row for row, name in enumerate(site.workload.jobs["job_id"].to_pylist())}
    for job in jobs:
        row = by_id[job["id"]]
        tasks = slice(*columns.stage_task0[columns.job_stage0[row : row + 2]].tolist())
        job["start_s"] = float(np.floor(zero_s + result.job_start[row]))
        machines = sorted({*result.task_machine[tasks].tolist()})
        job["at"] = [cluster.names[machine] for machine in machines]


def _write_log(folder: Path, jobs: list[Job]) -> None:
    lines = ["|".join(COLUMNS)]
    for job in jobs:
        tres = f"cpu={job['cpus'] * job['nodes']},mem={2 * job['nodes']}G,node={job['nodes']}"
        tres += f",gres/gpu={job['gpus']}" * bool(job["gpus"])
        end_s = job["start_s"] + job["run_s"]
        row = {
            "JobID": job["id"], "User": job["user"], "Account": job["account"],
            "Partition": job["partition"], "QOS": job["qos"], "Submit": _time(job["submit_s"]),
            "Eligible": _time(job["submit_s"]), "Start": _time(job["start_s"]),
            "End": _time(end_s), "Elapsed": _span(job["run_s"]),
            "Timelimit": _span(job["limit_s"]), "State": "COMPLETED",
            "AllocCPUS": job["cpus"] * job["nodes"], "ReqCPUS": job["cpus"] * job["nodes"],
            "NNodes": job["nodes"], "AllocTRES": tres, "ReqTRES": tres,
            "NodeList": ",".join(job["at"]), "Priority": 1, "Reason": "Priority",
            "SubmitLine": f"sbatch -p {job['partition']} -N {job['nodes']}",
        }  # fmt: skip
        lines.append("|".join(str(row[name]) for name in COLUMNS))
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n")


def _queue_line(job: Job) -> str:
    has_started = job["start_s"] <= NOW_S
    fields = (
        job["id"], job["partition"], job["user"], job["account"], job["qos"],
        "RUNNING" if has_started else "PENDING", _time(job["submit_s"]),
        _time(job["start_s"]) if has_started else "N/A", _span(job["limit_s"]), job["nodes"],
        job["cpus"] * job["nodes"], "2G", f"gres/gpu:{job['gpus']}" if job["gpus"] else "N/A",
        ",".join(job["at"]) if has_started else "", "(null)",
        "None" if has_started else "Priority", 1, "(null)", "(null)", "OK",
    )  # fmt: skip
    return "|".join(map(str, fields))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(ZERO_S + seconds, UTC).isoformat(timespec="seconds")[:19]


def _span(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock
