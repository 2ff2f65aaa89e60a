"""CPU of a cell of every policy, as a multiple of that of ``srpt`` on the same workload.

Run as ``python -m benchmarks.policies [POLICY ...]``. A cell is what a worker computes: the
simulation, its metrics, and a row a job. Seconds are CPU of one process with compiled kernels, the
best of several rounds in which all policies run in turn. What a policy stores on disk for later
cells (offline schedules, C(p, a)) is made once, in the first round, and listed by itself. A policy
that refuses a workload, because it needs values, recorded runs or rigid jobs, has a dash there.

Run without names, it writes ``sweep/execution/cell_costs.json``, from which ``python -m sweep
plan`` estimates how long a sweep takes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

import policies
from benchmarks.common import ROOT, Row, machine, row, scratch, show
from benchmarks.worlds import crowd, rigid_log
from sim import Workload
from sim.base import disk_cache
from sim.base.errors import InputError
from sweep import driver
from sweep.execution import cell_costs
from sweep.execution.cell import run_cell
from sweep.execution.plan import PlannedCell
from sweep.execution.workload_build import Clusters, first_jobs
from sweep.grid.clusters import SizedCluster
from sweep.grid.options import Options

REFERENCE = cell_costs.REFERENCE
TRACES = ROOT.parent / "shared" / "traces"
NEED_TRACES = ("alibaba_small_hour", "tpcds_stream")
OPTIONS = (*NEED_TRACES, "slearn_2sigma", "cosmos", "slo_jobs")
CROWD, RIGID = "crowd", "rigid"
ROUNDS, MAX_CELL_S = 4, 20.0
"""Rounds; a policy whose cell takes longer than `MAX_CELL_S` has one, after its preparation."""
REFUSALS = ("InputError", "PolicyError")
"""Types of errors that say what a workload lacks."""
LIMITS = {"dagps": 15.0, "wserpt": 20.0}
LIMIT = 5.0

Multiples = dict[str, dict[str, float]]
"""Multiples by policy and workload."""


@dataclass
class Measured:
    """Cells of one policy on one workload."""

    cell: PlannedCell
    seconds: list[float] = field(default_factory=list)  # CPU of each
    is_prepared: bool = False  # the first one stored something for the others
    error: str = ""
    is_refused: bool = False  # by the policy, which needs what the workload lacks

    @property
    def preparation_s(self) -> float:
        """CPU of the first cell beyond the best one's, if it stored something."""
        return self.seconds[0] - min(self.seconds) if self.is_prepared else 0.0


def main(chosen: Sequence[str]) -> int:
    """Measure, print, store; return 1 if a policy is over its limit."""
    names = [REFERENCE, *(name for name in chosen or policies.names() if name != REFERENCE)]
    sizes: dict[str, dict[str, float]] = {}
    multiples: Multiples = {name: {} for name in names}
    notes: list[str] = []
    with scratch() as folder:
        for name, words in _grids(Path(folder)).items():
            cells, sizes[name] = _measure(names, words, Path(folder) / name)
            best = min(cells[REFERENCE].seconds)
            for policy, measured in cells.items():
                if measured.error:
                    if not measured.is_refused:
                        notes.append(f"{policy} on {name}: {measured.error}")
                    continue
                multiples[policy][name] = round(min(measured.seconds) / best, 2)
                if measured.is_prepared:
                    notes.append(
                        f"{policy} on {name}: {measured.preparation_s:.2f} s of preparation"
                    )
    print("\n".join([*_table(multiples, sizes), "", *notes]))
    if not chosen:
        content = {
            "cpu": machine()["cpu"],
            "workloads": sizes,
            "traces": _trace_sizes(),
            "multiples": multiples,
        }
        cell_costs.FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    return show("policies", [*_rows(multiples)])


def _grids(folder: Path) -> dict[str, list[str]]:
    """Return the words that choose each workload and its cluster."""
    grids = {name: [f"trace={name}", f"paths.traces={TRACES}"] for name in OPTIONS}
    if not TRACES.is_dir():
        print(f"without {TRACES}: {', '.join(NEED_TRACES)} are left out")
        grids = {name: words for name, words in grids.items() if name not in NEED_TRACES}
    crowd().write(folder / "jobs")
    shape = ["cluster=machines", "cluster.shape={cpu:16,mem:128}"]
    size = ["cluster.count=1000", "cluster.load=1.2"]
    grids[CROWD] = ["trace=parquet", f"trace.path={folder / 'jobs'}", *shape, *size]
    rigid_log().write(folder / "rigid")
    grids[RIGID] = ["trace=parquet", f"trace.path={folder / 'rigid'}", "cluster.count=128"]
    return grids


def _measure(
    names: Sequence[str], words: Sequence[str], folder: Path
) -> tuple[dict[str, Measured], dict[str, float]]:
    """Run cells of all policies in turn; return them, and the size of the workload."""
    options, cells, inputs = _options(), {}, {}
    for name in names:
        grid = [*words, f"policy={options[name]}", f"paths.results={folder}", "tracking=none"]
        prepared = driver.prepare_first(driver.make_request([*grid, "seed=0", "capacity=1"]))
        cells[name], inputs[name] = Measured(prepared.planned[0]), prepared.inputs
    first = cells[REFERENCE].cell
    workload = inputs[REFERENCE].workload(first.workload)
    built = Clusters().get_or_build(workload, first.cell.cluster, first.cell.capacity)
    few = first_jobs(workload)
    disk_cache.cache_dir = lambda: folder / "prepared"
    for turn in range(ROUNDS):
        for measured in cells.values():
            is_slow = min(measured.seconds, default=0.0) > MAX_CELL_S
            if measured.error or (is_slow and turn > measured.is_prepared):
                continue
            if turn == 0:
                run_cell(few, measured.cell.spec, built)  # compiles or loads the kernels
            _run(measured, workload, built, folder / "prepared")
    size = {
        "n_jobs": workload.n_jobs,
        "n_stages": workload.n_stages,
        "n_tasks": workload.n_tasks,
        "n_machines": len(built.cluster.capacity),
        "seconds": round(min(cells[REFERENCE].seconds), 4),
    }
    return cells, size


def _run(measured: Measured, workload: Workload, built: SizedCluster, folder: Path) -> None:
    """Run a cell once more."""
    before = sum(1 for _ in folder.rglob("*"))
    begin = time.process_time()
    result = run_cell(workload, measured.cell.spec, built)
    measured.seconds.append(time.process_time() - begin)
    measured.is_prepared |= sum(1 for _ in folder.rglob("*")) > before
    measured.error = result.error["message"] if result.error else ""
    measured.is_refused = bool(result.error and result.error["type"] in REFUSALS)
    if not measured.is_refused:
        labels, seconds = measured.cell.cell.labels, measured.seconds[-1]
        print(labels["policy"], labels["trace"], f"{seconds:.3f}", measured.error, flush=True)


def _trace_sizes() -> dict[str, dict[str, float]]:
    """Return the size of each trace that needs no file of the user's, as configured."""
    sizes = {}
    for option in Options().names("trace"):
        grid = [f"trace={option}", f"paths.traces={TRACES}", "seed=0", "capacity=1"]
        try:
            prepared = driver.prepare_first(driver.make_request([*grid, "policy=fifo"]))
            planned = prepared.planned[0]
            workload = prepared.inputs.workload(planned.workload)
        except InputError as error:
            print(f"no size of trace={option}: {error}")
            continue
        config = planned.cell.trace
        sizes[option] = {
            "n_stages": workload.n_stages,
            "n_tasks": workload.n_tasks,
            **{key: config[key] for key in cell_costs.SIZE_KEYS if key in config},
        }
    return sizes


def _options() -> dict[str, str]:
    """Return an option of each policy: that of its name, or else the first."""
    options: dict[str, str] = {}
    for option, file in sorted(Options().files["policy"].items()):
        name = yaml.safe_load(file.read_text())["name"]
        if option == name or name not in options:
            options[name] = option
    return options


def _table(multiples: Multiples, sizes: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a table: a row a policy, a column a workload; ``srpt`` in seconds."""
    yield f"{'':24}" + "".join(f"{name:>20}" for name in sizes)
    seconds = "".join(f"{size['seconds']:>18.3f} s" for size in sizes.values())
    yield f"{REFERENCE:24}{seconds}"
    for policy, by_workload in multiples.items():
        cells = (f"{by_workload[name]:.1f}" if name in by_workload else "-" for name in sizes)
        yield f"{policy:24}" + "".join(f"{cell:>20}" for cell in cells)


def _rows(multiples: Multiples) -> Iterator[Row]:
    """Yield the largest multiple of each policy, beside its limit."""
    for policy, by_workload in multiples.items():
        if by_workload:
            name, largest = max(by_workload.items(), key=lambda item: item[1])
            yield row(f"{policy} ({name})", largest, "×", at_most=LIMITS.get(policy, LIMIT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
