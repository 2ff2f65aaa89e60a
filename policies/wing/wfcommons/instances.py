"""Workflow runs of WfFormat files: tasks, their dependencies, files, run times and resources."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from policies.wing.wfcommons.fields import Fields
from policies.wing.wfcommons.versions import DEFAULT_VERSION, Recorded, Run, Task, recorded
from sim.base.acyclic import find_cycle, topological_order
from sim.base.arrays import F8, I4
from sim.base.errors import InputError
from sim.base.reading import parse_json, read_text
from sim.workload.schema import DEFAULT_QUANTUM

SUFFIXES: Final = (".json", ".json.gz")
GIB: Final = 2.0**30
REPEATED: Final = "execution given twice"
UNSPECIFIED: Final = "execution of a task that is not specified"
_NUMBER = re.compile(r"(?:_ID)?_?\d+$")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")  # half of a surrogate pair
_CONTENT = re.compile(r"\.json(\.gz)?$")


@dataclass(frozen=True, eq=False)
class Instance:
    """One run of a workflow of T tasks and F files."""

    name: str  # of the file, as a workflow may have several runs
    workflow: str
    task_id: list[str]
    program: list[str]  # names of tasks without their numbers
    duration_s: F8  # (T,)
    cores: F8  # held by each task
    recorded_cores: F8  # `coreCount`, else mean use; NaN if neither is known
    mem_gib: F8
    up: I4  # tasks; ``up`` is a parent of ``down``; sorted by ``down``, then ``up``
    down: I4
    n_absent: int  # references to tasks that the file does not have
    one_sided: list[tuple[int, int]]  # edges (up, down) that parents or children alone state
    file: list[str]
    reads: tuple[I4, I4]  # tasks and their input files
    writes: tuple[I4, I4]  # tasks and their output files
    makespan_s: float  # of the recorded run; NaN if unknown
    left_out: list[tuple[str, Run]]  # executions that are no task's, by rule

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.task_id)

    def parents(self, task: int) -> I4:
        """Return the parents of a task."""
        first, end = np.searchsorted(self.down, [task, task + 1])
        return self.up[first:end]

    def order(self) -> list[int]:
        """Return the tasks in topological order."""
        return topological_order(self.n_tasks, self.up, self.down)


def read_instances(path: str | os.PathLike[str]) -> list[Instance]:
    """Read a file, or all files of a folder in order of their names."""
    root = Path(path)
    if not root.is_dir():
        return [_instance(root)]
    files = sorted(f for f in root.iterdir() if f.name.endswith(SUFFIXES))
    if not files:
        text = "the folder has no files *.json or *.json.gz"
        raise InputError(text, file=root, rule="missing file")
    return [_instance(file) for file in files]


def quantum(cores: F8) -> float:
    """Return the quantum in which numbers of cores are held: a whole core if all are whole."""
    return 1.0 if (cores == np.rint(cores)).all() else DEFAULT_QUANTUM


def _instance(path: Path) -> Instance:
    text = read_text(path)
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path, rule="not JSON") from error
    version = content.get("schemaVersion") if isinstance(content, dict) else None
    fields = Fields(path, str(version or DEFAULT_VERSION)[:20])
    content = fields.record(content, "the file")
    if _ESCAPED.search(text) is not None:
        fields.check_utf8(content)
    parts = recorded(fields, content)
    ids = _unique_ids(fields, parts.tasks)
    edges, one_sided, n_absent = _edges(fields, parts)
    down, up = _pairs(sorted(edges))
    cycle = find_cycle(up, down, len(ids))
    if cycle:
        names = ", ".join(repr(ids[task]) for task in cycle[:5])
        raise fields.error(f"tasks wait for each other in a cycle of parents: {names}", "cycle")
    runs, left_out = _runs(fields, ids, parts.runs)
    files: dict[str, int] = {}
    reads, writes = (
        _pairs(
            (row, files.setdefault(name, len(files)))
            for row, task in enumerate(parts.tasks)
            for name in getattr(task, side)
        )
        for side in ("inputs", "outputs")
    )
    core_count, cpu_percent = (np.array([getattr(run, n) for run in runs]) for n in _WIDTHS)
    is_counted = core_count > 0  # not of NaN
    recorded_cores = np.where(is_counted, core_count, cpu_percent / 100)
    whole = np.maximum(np.ceil(np.nan_to_num(recorded_cores)), 1.0)
    mem_bytes = np.array([run.mem_bytes for run in runs])
    return Instance(
        name=_CONTENT.sub("", path.name),
        workflow=str(content.get("name", "")) or path.name,
        task_id=ids,
        program=[_NUMBER.sub("", task.name) or task.id for task in parts.tasks],
        duration_s=np.array([run.duration_s for run in runs]),
        cores=np.where(is_counted, core_count, whole),
        recorded_cores=recorded_cores,
        mem_gib=np.nan_to_num(mem_bytes) / GIB,
        up=up, down=down, n_absent=n_absent, one_sided=one_sided,
        file=list(files), reads=reads, writes=writes,
        makespan_s=parts.makespan_s, left_out=left_out,
    )  # fmt: skip


_WIDTHS = ("cores", "cpu_percent")


def _unique_ids(fields: Fields, tasks: list[Task]) -> list[str]:
    ids = [task.id for task in tasks]
    if not ids:
        raise fields.error("the workflow has no tasks", "empty workflow")
    row = {name: number for number, name in enumerate(ids)}
    if len(row) < len(ids):
        repeated = next(name for number, name in enumerate(ids) if row[name] != number)
        raise fields.error(f"two tasks have the id {repeated!r}", "duplicate id")
    return ids


def _edges(
    fields: Fields, parts: Recorded
) -> tuple[set[tuple[int, int]], list[tuple[int, int]], int]:
    """Return the edges (down, up) that parents or children state, and those of one side alone.

    A file may state one side alone; if it states both, an edge of one of them still counts. Also
    return the number of references to tasks that the file does not have.
    """
    stated: dict[str, set[tuple[int, int]]] = {"parents": set(), "children": set()}
    absent: set[tuple[str, str]] = set()
    for row, task in enumerate(parts.tasks):
        for side, edges in stated.items():
            for name in getattr(task, side):
                rows = parts.rows.get(name)
                if rows is None:
                    if parts.is_complete:
                        kind = "parent" if side == "parents" else "child"
                        text = f"the task {task.id!r} has the {kind} {name!r}, which is not a task"
                        raise fields.error(text, "unknown task")
                    absent.add((task.name, name) if side == "children" else (name, task.name))
                    continue
                for other in rows:
                    edges.add((row, other) if side == "parents" else (other, row))
    by_parents, by_children = stated.values()
    one_sided = by_parents ^ by_children if by_parents and by_children else set()
    return by_parents | by_children, [(up, down) for down, up in sorted(one_sided)], len(absent)


def _runs(
    fields: Fields, ids: list[str], runs: list[Run]
) -> tuple[list[Run], list[tuple[str, Run]]]:
    """Return the execution of each task, and those left out, by rule."""
    executed: dict[str, Run] = {}
    left_out: list[tuple[str, Run]] = []
    for run in runs:
        if math.isnan(run.duration_s):
            raise fields.error(f"the task {run.id!r} has no run time", "no run time")
        first = executed.setdefault(run.id, run)
        if first is run:
            continue
        if str(first) != str(run):  # NaN is not equal to itself
            raise fields.error(
                f"the task {run.id!r} is executed twice, for {first.duration_s:g} s and for "
                f"{run.duration_s:g} s; keep the execution that counts",
                "duplicate id",
            )
        left_out.append((REPEATED, run))
    missing = next((name for name in ids if name not in executed), None)
    if missing is not None:
        raise fields.error(
            f"the task {missing!r} has no run time: it is not in workflow.execution.tasks",
            "no run time",
        )
    known = {*ids}
    left_out += [(UNSPECIFIED, run) for name, run in executed.items() if name not in known]
    return [executed[name] for name in ids], left_out


def _pairs(pairs: Iterable[Any]) -> tuple[I4, I4]:
    columns = np.array(list(pairs), np.int32).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()
