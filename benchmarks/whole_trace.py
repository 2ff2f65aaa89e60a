"""Alibaba's whole trace: read, simulated and reported, and how time and memory grow up to it.

``python -m benchmarks.whole_trace`` makes 637 copies of a real sample of Alibaba's cluster trace
(6,599 jobs), each with its own times of submission and durations: 4.2 million jobs, 16 million
stages, 1.4 billion tasks. A child process reads them from a folder, simulates them under one
policy, and computes all metrics. The same is done for 10⁵ to 10⁹ tasks. Last, the copies are
written as the trace's own file, ``batch_task.csv``, on which ``python -m sweep`` runs, up to its
report. The table is stored in ``results/reproductions``, a run beside those of earlier calls.

``--trace`` names the sample; without the file, jobs from the generator stand in for it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

import policies
import sim
from benchmarks.common import ROOT, machine, row, scratch, show
from policies.alibaba.trace import ORIGINAL_COLUMNS
from sim.base.arrays import offsets, ranges
from sim.cluster.load import offered_load
from sim.cluster.sizing import full_count
from sim.workload.tables import values

SAMPLE = ROOT.parent / "shared" / "traces" / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
PAGES = ROOT / "results" / "reproductions"
TABLE, PAGE = PAGES / "tables" / "whole_trace.json", PAGES / "whole_trace.md"
COPIES = 637
WHOLE = "whole"
SIZES = {"10⁵": 0.045, "10⁶": 0.45, "10⁷": 4, "10⁸": 45, "10⁹": 450, WHOLE: COPIES}
"""Copies of the sample by the number of tasks that they have together, about."""
LOADS = (0.6, 0.9)
GROWING = ("fifo", "srpt")
"""Policies that are simulated at each size."""
MAX_CPU_S = {"fifo": 30.0, "srpt": 30.0, "las": 60.0, "drf": 60.0, "tetris": 600.0}
MAX_GB = 8.0
MACHINES, SHAPE = 4_000, {"cpu": 96.0, "mem": 100.0}
"""Alibaba's cluster: about as many machines, of 96 cores and 100 units of memory."""
JITTER_S, SIGMA = 600.0, 0.1
KEPT = 0.685
"""Share of a stage's tasks in a copy: the sample has more of them a job than the whole trace."""

N_TASKS = 1.416e9
COMMAND = ("trace=alibaba2018", "cluster=slots", "launcher=inline", "tracking=none")
COMMAND_POLICIES, COMMAND_LOAD = ("fifo", "srpt", "las", "drf"), 0.9

CHILD = """
import json
from benchmarks import whole_trace
for answer in {call}:
    print(json.dumps(answer), flush=True)
"""


def load_sample(path: str) -> sim.Workload:
    """Read the sample, or synthesize one like it."""
    if Path(path).is_file():
        return sim.read_trace("alibaba2018", path)
    return sim.synthesize("alibaba2018", jobs=6_600, seed=0)


def perturbed_copies(sample: sim.Workload, n_copies: float, seed: int = 0) -> sim.Workload:
    """Copy the jobs of `sample`; below 1, a part of the jobs.

    Each copy is shifted in time by a random part of the span (around its end), each job by up to
    ten minutes more, and each stage's duration has a factor of its own, lognormal with deviation
    0.1, so that no copy repeats another's instants. A stage keeps 69 % of its tasks, rounded up or
    down at random.
    """
    rng = np.random.default_rng(seed)
    if n_copies < 1:
        n_jobs = max(1, round(sample.n_jobs * n_copies))
        sample, n_copies = sample.take(np.sort(rng.permutation(sample.n_jobs)[:n_jobs])), 1
    n, copies = sample.n_jobs, int(n_copies)
    submit_s = values(sample.jobs, "submit_s")
    span_s = float(submit_s[-1]) or 1.0
    moved_s = np.tile(submit_s, copies) + np.repeat(rng.random(copies) * span_s, n)
    moved_s = (moved_s + rng.random(n * copies) * JITTER_S) % span_s
    order = np.argsort(moved_s, kind="stable")
    job, submit = order % n, moved_s[order]
    number = pa.array(order).cast(pa.string())
    del moved_s, order
    c = sample.columns
    stage = ranges(c.job_stage0[job], c.job_stage0[job + 1])
    stage0 = offsets(np.diff(c.job_stage0)[job])
    stages = {
        "job": np.repeat(np.arange(len(job), dtype=np.int32), np.diff(stage0)),
        "name": sample.stages["name"].take(pa.array(stage)),
        "n_tasks": np.maximum(c.stage_n_tasks[stage] * KEPT + rng.random(len(stage)), 1).astype(
            np.int32
        ),
        "duration_s": c.stage_max_s[stage] * np.exp(SIGMA * rng.standard_normal(len(stage))),
        **{name: values(sample.stages, name)[stage] for name in ("demand_cpu", "demand_mem")},
    }
    del stage
    first = c.edge0[c.job_stage0]
    edge = ranges(first[job], first[job + 1])
    shift = np.repeat(stage0[:-1] - c.job_stage0[job], np.diff(first)[job])
    ends = {name: values(sample.stage_edges, name) for name in ("parent", "child")}
    edges = {name: (rows[edge] + shift).astype(np.int32) for name, rows in ends.items()}
    del edge, shift
    return sim.Workload.from_tables(
        jobs={"job_id": pc.binary_join_element_wise("j_", number, ""), "submit_s": submit},
        stages=stages,
        stage_edges=edges,
        meta={"name": "alibaba2018 copies", "quantum": dict(sample.quantum)},
    )


def write_batch_task(folder: str, path: str) -> dict[str, float]:
    """Write a workload as the trace's own table, without a header and in whole seconds.

    All stages of a job start when it is submitted; their ends say how long they last. A name has
    the stage's number in its job, and those of its parents.
    """
    workload = sim.Workload.read(folder)
    c = workload.columns
    job = values(workload.stages, "job")
    start_s = 1 + np.floor(values(workload.jobs, "submit_s")).astype(np.int64)[job]
    columns = {
        "task_name": _task_names(workload),
        "instance_num": c.stage_n_tasks,
        "job_name": workload.jobs["job_id"].take(pa.array(job)),
        "task_type": pa.repeat("1", len(job)),
        "status": pa.repeat("Terminated", len(job)),
        "start_time": start_s,
        "end_time": start_s + np.rint(c.stage_max_s).astype(np.int64),
        "plan_cpu": 100 * values(workload.stages, "demand_cpu"),
        "plan_mem": values(workload.stages, "demand_mem"),
    }
    table = pa.table([columns[name] for name in ORIGINAL_COLUMNS], names=ORIGINAL_COLUMNS)
    bare = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none", batch_size=2**20)
    pyarrow.csv.write_csv(table, path, bare)
    return {"csv_gb": Path(path).stat().st_size / 1e9}


def _task_names(workload: sim.Workload) -> pa.Array:
    """Name stages as the trace does: ``T4_2_3`` is stage 4 of its job and waits for 2 and 3."""
    c = workload.columns
    number = 1 + np.arange(workload.n_stages) - c.job_stage0[c.stage_job]
    parent, child = (values(workload.stage_edges, name) for name in ("parent", "child"))
    order = np.argsort(child, kind="stable")
    n_parents = np.bincount(child, minlength=workload.n_stages)
    listed = np.insert(number[parent[order]], offsets(n_parents)[:-1], number)
    begins = pa.array(offsets(1 + n_parents), pa.int32())
    parts = pa.ListArray.from_arrays(begins, pa.array(listed).cast(pa.string()))
    return pc.binary_join_element_wise("T", pc.binary_join(parts, "_"), "")


def run_command(path: str) -> dict[str, Any]:
    """Run a sweep over the trace's own file, up to its report, in a process of its own."""
    words = [*COMMAND, f"policy={','.join(COMMAND_POLICIES)}", f"cluster.load={COMMAND_LOAD}"]
    command = [sys.executable, "-m", "sweep", *words, f"trace.path={path}"]
    with scratch() as folder, Path(folder, "out").open("w+") as out:
        begin_s = time.monotonic()
        sweep = subprocess.Popen([*command, f"paths.results={folder}"], cwd=ROOT, stdout=out)
        _, status, use = os.wait4(sweep.pid, 0)
        wall_s = time.monotonic() - begin_s
        if status:
            raise RuntimeError(f"the sweep ended with {os.waitstatus_to_exitcode(status)}")
        (report,) = Path(folder).glob("sweeps/*/report.html")
        out.seek(0)
        return {
            "words": words,
            "cpu_s": use.ru_utime + use.ru_stime,
            "wall_s": wall_s,
            "peak_gb": 1024 * use.ru_maxrss / 1e9,
            "report_mb": report.stat().st_size / 1e6,
            "answer": " ".join(out.read().partition("\n\n")[0].split()),
        }


def cpu_s() -> float:
    """Return the CPU time of this process so far, all threads, s."""
    return time.process_time()


def peak_gb() -> float:
    """Return the peak memory of this process so far, GB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    return float("nan")


def build(sample: str, n_copies: float, folder: str) -> dict[str, float]:
    """Write the copies as a folder; return times and sizes."""
    begin_s = cpu_s()
    workload = perturbed_copies(load_sample(sample), n_copies)
    made_s = cpu_s()
    workload.write(folder)
    n_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {
        "jobs": workload.n_jobs,
        "stages": workload.n_stages,
        "tasks": workload.n_tasks,
        "make_s": made_s - begin_s,
        "write_s": cpu_s() - made_s,
        "disk_gb": n_bytes / 1e9,
        "peak_gb": peak_gb(),
    }


def runs(folder: str, chosen: Sequence[tuple[str, float | None]]) -> Iterator[dict[str, Any]]:
    """Read the folder, and simulate each policy at its load in a process forked from this one.

    Load None: on Alibaba's machines, as many for each task as the whole trace has. Kernels are
    compiled before, and their time is not counted.
    """
    small = perturbed_copies(sim.synthesize("alibaba2018", jobs=50, seed=0), 1)
    for policy, load in chosen:
        cluster = sim.Cluster.slots(9) if load else sim.Cluster.machines(9, **SHAPE)
        sim.simulate(small, cluster, policies.build(policy)).metrics  # noqa: B018  # compiles
    times = [cpu_s()]
    workload = sim.Workload.read(folder)
    workload.columns  # noqa: B018  # read is made ready to simulate
    times.append(cpu_s())
    read_gb = peak_gb()
    workload.inflow  # noqa: B018  # what a cluster is sized by
    times.append(cpu_s())
    read_s, size_s = np.diff(times).tolist()
    for policy, load in chosen:
        if load:
            cluster = sim.Cluster.slots(round(full_count(workload, "slots", load)))
        else:
            n = max(1, round(MACHINES * workload.n_tasks / N_TASKS))
            cluster = sim.Cluster.machines(n, **SHAPE)
        measured = forked(lambda p=policy, c=cluster: simulated(workload, c, policies.build(p)))
        if "peak_gb" in measured:
            measured["peak_gb"] = max(measured["peak_gb"], peak_gb())
        yield {
            "policy": policy,
            "load": load,
            "tasks": workload.n_tasks,
            "read_s": read_s,
            "size_s": size_s,
            "read_gb": read_gb,
            **measured,
        }


def simulated(workload: sim.Workload, cluster: sim.Cluster, policy: Any) -> dict[str, float]:
    """Simulate with records of all tasks, and compute the metrics."""
    times = [cpu_s()]
    result = sim.simulate(workload, cluster, policy)
    times.append(cpu_s())
    simulated_gb = peak_gb()
    metrics = result.metrics
    times.append(cpu_s())
    simulate_s, report_s = np.diff(times).tolist()
    return {
        "capacity": float(cluster.total[0]) if cluster.unit else cluster.n_machines,
        "offered": max(offered_load(workload.inflow, cluster).values()),
        "batches": len(result.records.start_s),
        "simulate_s": simulate_s,
        "report_s": report_s,
        "simulated_gb": simulated_gb,
        "peak_gb": peak_gb(),
        **{name: metrics[name] for name in ("jct_mean_s", "slowdown_mean", "utilization")},
    }


def forked(call: Callable[[], dict[str, float]]) -> dict[str, Any]:
    """Call a function in a process forked from this one, whose memory counts, too."""
    receive, send = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(send, json.dumps(call()).encode())
        except sim.InputError as error:
            os.write(send, json.dumps({"refused": str(error)}).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    os.waitpid(process, 0)
    return json.loads(text) if text else {"refused": "the process died"}


def children(call: str) -> Iterator[dict[str, Any]]:
    """Iterate over a function of this module in a process of its own; print what it yields."""
    code = CHILD.format(call=call)
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            answer = json.loads(line)
            shown = {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in answer.items()}
            print(shown, flush=True)
            yield answer
    if child.returncode:
        raise RuntimeError(f"a child process ended with {child.returncode}")


def measure(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Run all children, one after the other; enter each result into the table at once."""
    table: dict[str, Any] = {"built": {}, "runs": []}
    if path.is_file():
        table = json.loads(path.read_text())
    table["machine"] = machine()
    for size in args.sizes:
        chosen = [
            (policy, load)
            for policy in args.policies
            if size == WHOLE or policy in GROWING
            for load in ((None,) if policy == "tetris" else args.loads)
        ]
        with scratch() as temporary:
            folder = str(Path(args.folder or temporary) / f"copies-{SIZES[size]:g}")
            print(f"{size}: {SIZES[size]:g} copies", flush=True)
            if not Path(folder).is_dir():
                call = f"[whole_trace.build({args.trace!r}, {SIZES[size]!r}, {folder!r})]"
                (table["built"][size],) = children(call)
            for answer in children(f"whole_trace.runs({folder!r}, {chosen!r})"):
                entry = {"size": size, **answer}
                key = [entry[name] for name in ("size", "policy", "load")]
                rest = [e for e in table["runs"] if [e["size"], e["policy"], e["load"]] != key]
                table["runs"] = [*rest, entry]
                path.write_text(json.dumps(table, indent=1) + "\n")
            if size == WHOLE:
                own = f"{temporary}/batch_task.csv"
                (written,) = children(f"[whole_trace.write_batch_task({folder!r}, {own!r})]")
                (ran,) = children(f"[whole_trace.run_command({own!r})]")
                table["command"] = {**written, **ran}
                path.write_text(json.dumps(table, indent=1) + "\n")
    return table


def targets(table: dict[str, Any]) -> int:
    """Show the runs of the whole trace beside their targets."""
    rows = []
    for entry in table["runs"]:
        if entry["size"] == WHOLE and "refused" not in entry:
            where = f"load {entry['load']:g}" if entry["load"] else f"{MACHINES:,} machines"
            name = f"{entry['policy']}, {where}"
            at_most = MAX_CPU_S[entry["policy"]]
            rows.append(row(f"{name}: simulated", entry["simulate_s"], "CPU s", at_most=at_most))
            rows.append(row(f"{name}: peak memory", entry["peak_gb"], "GB", at_most=MAX_GB))
    if "command" in table:
        rows.append(row("sweep with report", table["command"]["cpu_s"], "CPU s"))
        peak_gb = table["command"]["peak_gb"]
        rows.append(row("sweep with report: peak memory", peak_gb, "GB", at_most=MAX_GB))
    return show("whole_trace", rows) if rows else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=str(SAMPLE), help="a batch_task file of Alibaba's")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary one)")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--loads", nargs="+", type=float, default=list(LOADS))
    parser.add_argument("--policies", nargs="+", default=list(MAX_CPU_S), choices=list(MAX_CPU_S))
    parser.add_argument("--table", type=Path, help="where to store the table (default: the page's)")
    args = parser.parse_args()
    return targets(measure(args, args.table or TABLE))


if __name__ == "__main__":
    sys.exit(main())
