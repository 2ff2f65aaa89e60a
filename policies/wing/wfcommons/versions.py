"""Parts of a WfFormat file that all versions state: tasks, their files and references, their runs.

Version 1.5 keeps `workflow.specification` and `workflow.execution` apart. In 1.3 and 1.4 a task of
`workflow.tasks` has both, and refers to other tasks by name: a name that several tasks share, such
as that of a Nextflow process, refers to all of them. Version 1.3 counts memory in KB of 1,000
bytes, as the converter of WfCommons takes it. Versions 1.0 to 1.2 have `workflow.jobs`; that
converter makes 1.5 of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from policies.wing.wfcommons.fields import Fields

DEFAULT_VERSION: Final = "1.5"
READ: Final = "1.3, 1.4 and 1.5"
CONVERTER: Final = (
    "convert it with tools/wfcommons-migrate-instance.py of https://github.com/wfcommons/WfFormat"
)


@dataclass(frozen=True)
class Task:
    """A task as it is specified."""

    id: str
    name: str
    parents: list[str]
    children: list[str]
    inputs: list[str]
    outputs: list[str]


@dataclass(frozen=True)
class Run:
    """A task as it was executed; NaN where a number is not recorded."""

    id: str
    duration_s: float
    cores: float
    cpu_percent: float  # mean use; 100: one core
    mem_bytes: float


@dataclass(frozen=True)
class Recorded:
    """Tasks and runs of a file."""

    tasks: list[Task]
    runs: list[Run]
    rows: dict[str, list[int]]  # rows of tasks by each name that refers to them
    is_complete: bool  # a reference to a task that the file does not have is an error
    makespan_s: float  # NaN if unknown


def recorded(fields: Fields, content: dict[str, Any]) -> Recorded:
    """Return the parts of a file, by its form; `schemaVersion` only names it in errors."""
    workflow = fields.part(content, "workflow", dict)
    if "specification" in workflow:
        return _specified(fields, workflow)
    if "tasks" in workflow:
        return _combined(fields, workflow)
    if "jobs" in workflow:
        raise fields.error(
            f"this is WfFormat {fields.version} (its tasks are in workflow.jobs); {READ} are read: "
            f"{CONVERTER}",
            "old version",
        )
    raise fields.error(
        f"workflow of WfFormat {fields.version} has no specification and no tasks; {READ} are read"
    )


def _specified(fields: Fields, workflow: dict[str, Any]) -> Recorded:
    """Return the parts of a file of version 1.5."""
    specified = fields.records(fields.part(workflow, "specification", dict), "tasks", "a task")
    execution = fields.part(workflow, "execution", dict)
    tasks = []
    for task in specified:
        name = fields.part(task, "id", str)
        references = ("parents", "children", "inputFiles", "outputFiles")
        tasks.append(
            Task(
                name,
                str(task.get("name") or name),
                *(fields.names(task, key, name) for key in references),
            )
        )
    runs = []
    for run in fields.records(execution, "tasks", "an executed task"):
        name = fields.part(run, "id", str)
        runs.append(_run(fields, name, run, "runtimeInSeconds", "coreCount"))
    makespan_s = fields.number(execution, "makespanInSeconds", "workflow.execution")
    return Recorded(
        tasks, runs, {task.id: [row] for row, task in enumerate(tasks)}, True, makespan_s
    )


def _combined(fields: Fields, workflow: dict[str, Any]) -> Recorded:
    """Return the parts of a file of version 1.3 or 1.4."""
    tasks: list[Task] = []
    runs: list[Run] = []
    rows: dict[str, list[int]] = {}
    by_id: dict[str, list[int]] = {}
    for row, task in enumerate(fields.records(workflow, "tasks", "a task")):
        name = fields.part(task, "name", str)
        suffix = fields.part(task, "id", str) if task.get("id") is not None else str(row)
        unique = name if suffix in name and "id" in task else f"{name}_{suffix}"
        parents, children = (fields.names(task, key, name) for key in ("parents", "children"))
        inputs, outputs = _files(fields, task, name)
        tasks.append(Task(unique, name, parents, children, inputs, outputs))
        runs.append(_run(fields, unique, task, _either(task, "runtimeInSeconds", "runtime")))
        rows.setdefault(name, []).append(row)
        by_id.setdefault(suffix, []).append(row)
    makespan_s = fields.number(
        workflow, _either(workflow, "makespanInSeconds", "makespan"), "workflow"
    )
    return Recorded(tasks, runs, by_id | rows, False, makespan_s)


def _either(record: dict[str, Any], key: str, old_key: str) -> str:
    return old_key if key not in record and old_key in record else key


def _run(
    fields: Fields, name: str, record: dict[str, Any], duration: str, cores: str = "cores"
) -> Run:
    owner = f"the task {name!r}"
    mem_bytes = fields.number(record, "memoryInBytes", owner)
    if "memoryInBytes" not in record:
        mem_bytes = 1000.0 * fields.number(record, "memory", owner)
    duration_s, n_cores, cpu_percent = (
        fields.number(record, key, owner) for key in (duration, cores, "avgCPU")
    )
    return Run(name, duration_s, n_cores, cpu_percent, mem_bytes)


def _files(fields: Fields, task: dict[str, Any], owner: str) -> tuple[list[str], list[str]]:
    """Return the names of a task's input and output files, with their paths if these are stated."""
    linked: dict[str, list[str]] = {"input": [], "output": []}
    if task.get("files") is not None:
        for file in fields.records(task, "files", f"a file of the task {owner!r}"):
            link = str(file.get("link")).lower()
            if link not in linked:
                text = f"link of a file of the task {owner!r} must be input or output, not {link!r}"
                raise fields.error(text)
            path = file.get("path")
            folder = path if isinstance(path, str) else ""
            linked[link].append(folder + fields.part(file, "name", str))
    inputs, outputs = (list(dict.fromkeys(names)) for names in linked.values())
    return inputs, outputs
