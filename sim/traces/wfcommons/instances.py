"""Files of WfFormat 1.5: the tasks of a workflow, what they read and write, how long they ran."""

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
_MOST: Final = 1e18
_NUMBER = re.compile(r"(?:_ID)?_?\d+$")


@dataclass(frozen=True, eq=False)
class Instance:
    """One run of a workflow of T tasks and F files."""

    name: str  # the file's, as one workflow may have several
    workflow: str
    task_id: list[str]
    program: list[str]  # names of tasks without what numbers them
    duration_s: F8  # (T,)
    cores: I8
    mem_gib: F8
    up: I4  # tasks; ``down`` declares ``up`` as its parent; by ``down``, then ``up``
    down: I4
    file: list[str]
    reads: tuple[I4, I4]  # tasks, and the files that they read
    writes: tuple[I4, I4]

    @property
    def n(self) -> int:
        """How many tasks there are."""
        return len(self.task_id)

    def parents(self, task: int) -> I4:
        """Return the tasks that one waits for."""
        first, end = np.searchsorted(self.down, [task, task + 1])
        return self.up[first:end]

    def order(self) -> list[int]:
        """Return the tasks so that each comes after those that it waits for."""
        return topological_order(self.n, self.up, self.down)


def read_instances(path: str | os.PathLike[str]) -> list[Instance]:
    """Read a file, or all of a folder in the order of their names."""
    given = Path(path)
    if not given.is_dir():
        return [_instance(given)]
    files = sorted(f for f in given.iterdir() if f.name.endswith(SUFFIXES))
    if not files:
        raise InputError("the folder holds no *.json or *.json.gz", file=given, rule="missing file")
    return [_instance(file) for file in files]


def _instance(path: Path) -> Instance:
    text = read_text(path)
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path, rule="not JSON") from error
    at = _At(path)
    workflow = at.part(at.fields(content, "the file"), "workflow", dict)
    tasks = [
        at.fields(t, "a task")
        for t in at.part(at.part(workflow, "specification", dict), "tasks", list)
    ]
    ran = [
        at.fields(t, "a task that ran")
        for t in at.part(at.part(workflow, "execution", dict), "tasks", list)
    ]
    ids = [at.part(task, "id", str) for task in tasks]
    row = {name: number for number, name in enumerate(ids)}
    if not ids:
        raise at.wrong("workflow.specification.tasks is empty", "empty workflow")
    if len(row) < len(ids):
        twice = next(name for number, name in enumerate(ids) if row[name] != number)
        raise at.wrong(f"the task {twice!r} is there twice", "duplicate id")
    runs = {at.part(run, "id", str): run for run in ran}
    files: dict[str, int] = {}
    reads, writes = (
        _pairs(
            (number, files.setdefault(name, len(files)))
            for number, task in enumerate(tasks)
            for name in at.names(task, key)
        )
        for key in ("inputFiles", "outputFiles")
    )
    edges = {
        (number, at.row(row, name, ids[number]))
        for number, task in enumerate(tasks)
        for name in at.names(task, "parents")
    }
    down, up = _pairs(sorted(edges))
    cycle = find_cycle(up, down, len(ids))
    if cycle:
        raise at.wrong(f"tasks wait for each other: {ids[cycle[0]]!r}", "cycle")
    missing = [name for name in ids if name not in runs]
    if missing:
        raise at.wrong(
            f"the task {missing[0]!r} is not in workflow.execution.tasks: it has no run time",
            "no run time",
        )
    own = [runs[name] for name in ids]
    duration_s = np.array([at.number(run, "runtimeInSeconds") for run in own])
    use = np.array([at.number(run, "avgCPU", 100.0) for run in own])
    cores = np.array([at.number(run, "coreCount", 0.0) for run in own])
    return Instance(
        name=re.sub(r"\.json(\.gz)?$", "", path.name),
        workflow=str(content.get("name", "")) or path.name,
        task_id=ids,
        program=[_NUMBER.sub("", str(t.get("name") or t["id"])) or t["id"] for t in tasks],
        duration_s=duration_s,
        cores=np.maximum(np.where(cores >= 1, cores, np.ceil(use / 100)), 1).astype(np.int64),
        mem_gib=np.array([at.number(run, "memoryInBytes", 0.0) for run in own]) / GIB,
        up=up, down=down, file=list(files), reads=reads, writes=writes,
    )  # fmt: skip


def _pairs(pairs: Any) -> tuple[I4, I4]:
    both = np.array(list(pairs), np.int32).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


@dataclass(frozen=True)
class _At:
    """What a file must hold, and the errors where it does not."""

    path: Path

    def wrong(self, text: str, rule: str = "wrong shape") -> InputError:
        return InputError(text, file=self.path, rule=rule)

    def fields(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"{what} is no object of WfFormat 1.5, but {str(value)[:40]!r}")
        return value

    def part(self, of: dict[str, Any], key: str, kind: type) -> Any:
        value = of.get(key)
        if not isinstance(value, kind):
            found = "missing" if value is None else f"{str(value)[:40]!r}"
            raise self.wrong(f"{key} of WfFormat 1.5 must be a {kind.__name__}, but is {found}")
        return value

    def names(self, task: dict[str, Any], key: str) -> list[str]:
        names = task.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.wrong(f"{key} of the task {task['id']!r} must be a list of names")
        return list(dict.fromkeys(names))

    def row(self, rows: dict[str, int], name: str, of: str) -> int:
        if name not in rows:
            raise self.wrong(f"{name!r}, a parent of {of!r}, is no task", "unknown task")
        return rows[name]

    def number(self, of: dict[str, Any], key: str, default: float | None = None) -> float:
        value = of.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(f"{key} of the task {of['id']!r} must be a number, not {value!r}")
        if not 0 <= value <= _MOST or math.isnan(value):
            text = f"{key} of the task {of['id']!r} is {str(value)[:40]}; valid: 0 to {_MOST:g}"
            raise self.wrong(text, "number out of range")
        return float(value)
