"""Parser of WfFormat 1.5: tasks of a workflow, their files, run times and resources."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from sim.base.acyclic import find_cycle, topological_order
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.reading import parse_json, read_text

SUFFIXES: Final = (".json", ".json.gz")
GIB: Final = 2.0**30
_MAX_NUMBER: Final = 1e18
_JSON: Final[dict[type, str]] = {dict: "object", list: "list", str: "text"}
_NUMBER = re.compile(r"(?:_ID)?_?\d+$")


@dataclass(frozen=True, eq=False)
class Instance:
    """One run of a workflow of T tasks and F files."""

    name: str  # of the file, as a workflow may have several runs
    workflow: str
    task_id: list[str]
    program: list[str]  # names of tasks without their numbers
    duration_s: F8  # (T,)
    cores: I8
    mem_gib: F8
    up: I4  # tasks; ``up`` is a parent of ``down``; sorted by ``down``, then ``up``
    down: I4
    file: list[str]
    reads: tuple[I4, I4]  # tasks and their input files
    writes: tuple[I4, I4]  # tasks and their output files
    makespan_s: float  # of the recorded run; NaN if unknown

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


def _instance(path: Path) -> Instance:
    text = read_text(path)
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path, rule="not JSON") from error
    parser = _Parser(path)
    workflow = parser.part(parser.fields(content, "the file"), "workflow", dict)
    tasks = [
        parser.fields(t, "a task")
        for t in parser.part(parser.part(workflow, "specification", dict), "tasks", list)
    ]
    execution = parser.part(workflow, "execution", dict)
    executions = [
        parser.fields(t, "an executed task") for t in parser.part(execution, "tasks", list)
    ]
    makespan_s = math.nan
    if execution.get("makespanInSeconds") is not None:
        makespan_s = parser.number(execution, "makespanInSeconds", owner="workflow.execution")
    ids = [parser.part(task, "id", str) for task in tasks]
    row = {name: number for number, name in enumerate(ids)}
    if not ids:
        raise parser.error("workflow.specification.tasks is empty", "empty workflow")
    if len(row) < len(ids):
        repeated = next(name for number, name in enumerate(ids) if row[name] != number)
        raise parser.error(f"two tasks have the id {repeated!r}", "duplicate id")
    runs = {parser.part(run, "id", str): run for run in executions}
    files: dict[str, int] = {}
    reads, writes = (
        _pairs(
            (number, files.setdefault(name, len(files)))
            for number, task in enumerate(tasks)
            for name in parser.names(task, key)
        )
        for key in ("inputFiles", "outputFiles")
    )
    edges = {
        (number, parser.row(row, name, ids[number]))
        for number, task in enumerate(tasks)
        for name in parser.names(task, "parents")
    }
    down, up = _pairs(sorted(edges))
    cycle = find_cycle(up, down, len(ids))
    if cycle:
        names = ", ".join(repr(ids[task]) for task in cycle[:5])
        raise parser.error(f"tasks wait for each other in a cycle of parents: {names}", "cycle")
    missing = [name for name in ids if name not in runs]
    if missing:
        raise parser.error(
            f"the task {missing[0]!r} has no run time: it is not in workflow.execution.tasks",
            "no run time",
        )
    executed = [runs[name] for name in ids]
    duration_s = np.array([parser.number(record, "runtimeInSeconds") for record in executed])
    cpu_percent = np.array([parser.number(record, "avgCPU", 100.0) for record in executed])
    cores = np.array([parser.number(record, "coreCount", 0.0) for record in executed])
    cores = np.where(cores >= 1, cores, np.ceil(cpu_percent / 100))
    mem_bytes = np.array([parser.number(record, "memoryInBytes", 0.0) for record in executed])
    return Instance(
        name=re.sub(r"\.json(\.gz)?$", "", path.name),
        workflow=str(content.get("name", "")) or path.name,
        task_id=ids,
        program=[_NUMBER.sub("", str(t.get("name") or t["id"])) or t["id"] for t in tasks],
        duration_s=duration_s,
        cores=np.maximum(cores, 1).astype(np.int64),
        mem_gib=mem_bytes / GIB,
        up=up, down=down, file=list(files), reads=reads, writes=writes,
        makespan_s=makespan_s,
    )  # fmt: skip


def _pairs(pairs: Any) -> tuple[I4, I4]:
    columns = np.array(list(pairs), np.int32).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


@dataclass(frozen=True)
class _Parser:
    """Typed access to the parts of a file, with errors that name the file."""

    path: Path

    def error(self, text: str, rule: str = "wrong shape") -> InputError:
        return InputError(text, file=self.path, rule=rule)

    def fields(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(f"{name} must be an object of WfFormat 1.5, not {str(value)[:40]!r}")
        return value

    def part(self, record: dict[str, Any], key: str, kind: type) -> Any:
        value = record.get(key)
        if not isinstance(value, kind):
            actual = "missing" if value is None else f"{str(value)[:40]!r}"
            raise self.error(f"{key} of WfFormat 1.5 must be a {_JSON[kind]}, but is {actual}")
        return value

    def names(self, task: dict[str, Any], key: str) -> list[str]:
        names = task.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.error(f"{key} of the task {task['id']!r} must be a list of names")
        return list(dict.fromkeys(names))

    def row(self, rows: dict[str, int], name: str, child: str) -> int:
        if name not in rows:
            text = f"the task {child!r} has the parent {name!r}, which is not a task"
            raise self.error(text, "unknown task")
        return rows[name]

    def number(
        self, record: dict[str, Any], key: str, default: float | None = None, owner: str = ""
    ) -> float:
        value = record.get(key, default)
        owner = owner or f"the task {record['id']!r}"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{key} of {owner} must be a number, not {value!r}")
        if not 0 <= value <= _MAX_NUMBER or math.isnan(value):
            text = f"{key} of {owner} is {str(value)[:40]}"
            raise self.error(f"{text}; valid: 0 to {_MAX_NUMBER:g}", "number out of range")
        return float(value)
