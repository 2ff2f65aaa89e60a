"""Random applications as Spark's scheduler runs them, and a slow count of their event logs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.sim.traces.spark_events import (
    T0,
    completed,
    end,
    environment,
    executor,
    job,
    job_end,
    removed,
    stage,
    start,
    started,
    submitted,
    task,
)

MEMORY_GIB = 4.0
CORES = 4


@dataclass
class Run:
    """An application: its events, and what they do not tell.

    Attributes
    ----------
    partition : dict of int to int
        Partition of each task attempt, by its Task ID.
    cpus : int
        Of a task.
    """

    cpus: int
    has_partitions: bool
    keeps_outputs: bool  # an external shuffle service keeps those of executors that left
    states_sizes: bool
    events: list[dict] = field(default_factory=list, repr=False)
    partition: dict[int, int] = field(default_factory=dict)
    now_ms: int = 0

    def end_task(self, stage_id: int, attempt: int, index: int, partition: int, **more) -> dict:
        """Add the start and the end of an attempt, which begins now; return the end."""
        task_id = len(self.partition)
        self.partition[task_id] = partition
        begin_ms, run_ms = self.now_ms, more.pop("run_ms")
        self.now_ms += run_ms or 0
        finish_ms = None if run_ms is None else self.now_ms
        event = task(stage_id, index, begin_ms, finish_ms, attempt=attempt, task_id=task_id, **more)
        if self.has_partitions:
            event["Task Info"]["Partition ID"] = partition
        else:
            del event["Task Info"]["Partition ID"]
        self.events += [started(stage_id, task_id, begin_ms, attempt), event]
        return event


@st.composite
def runs(draw) -> Run:
    """Draw an application of one to three stages; each stage is retried until it is complete."""
    run = Run(draw(st.sampled_from([1, 2])), *(draw(st.booleans()) for _ in range(3)))
    run.events += [
        start(),
        environment(spark_executor_memory=f"{MEMORY_GIB:g}g", spark_task_cpus=str(run.cpus)),
        executor(CORES),
    ]
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    stages = [stage(i, n, [i - 1] if i else []) for i, n in enumerate(sizes)]
    cut = draw(st.integers(1, len(stages)))
    for number, members in enumerate([stages[:cut], stages[cut:]]):
        if members:
            run.events.append(job(number, *members, at_ms=run.now_ms))
            for info in members:
                _run_stage(draw, run, info)
            run.events.append(job_end(number, run.now_ms))
    run.events.append(end(run.now_ms))
    return run


def _run_stage(draw, run: Run, info: dict) -> None:
    n, outputs, attempt = info["Number of Tasks"], {}, 0
    while len(outputs) < n:
        missing = [partition for partition in range(n) if partition not in outputs]
        described = {**info, "Number of Tasks": len(missing), "Stage Attempt ID": attempt}
        if run.states_sizes or attempt == 0:
            run.events.append(submitted(described, run.now_ms))
        is_last = attempt == 3
        for index, partition in enumerate(missing):
            where = {"index": index, "partition": partition}
            if _run_task(draw, run, info["Stage ID"], attempt, where, is_last):
                outputs[partition] = run.events[-1]["Task Info"]["Executor ID"]
        if not is_last:
            _lose(draw, run, outputs)
        attempt += 1
    if run.states_sizes:
        run.events.append(completed(described, run.now_ms))


def _run_task(draw, run: Run, stage_id: int, attempt: int, where: dict, is_last: bool) -> bool:
    """Run the attempts of a task; the last one of its success is the last event."""
    durations = st.sampled_from([0, 1, 500, 1000, 3000])
    kinds = st.sampled_from(["plain", "fail", "kill", "unended", "resubmit", "copy", "won"])

    def add(**more) -> dict:
        more = {"run_ms": draw(durations), "executor_id": draw(st.sampled_from("12")), **more}
        return run.end_task(stage_id, attempt, **where, **more)

    kind = draw(kinds)
    if kind == "fail":
        add(reason="ExceptionFailure")
        if not is_last and draw(st.booleans()):
            return False
    elif kind == "kill":
        add(reason="TaskKilled", run_ms=None)
    elif kind == "unended":
        add()
        run.events.pop()
    elif kind == "resubmit":
        lost = json.loads(json.dumps(add()))
        lost["Task End Reason"] = {"Reason": "Resubmitted"}
        run.events.append(lost)
    elif kind == "copy":
        add(reason="TaskKilled", speculative=True)
    elif kind == "won":
        add(reason="TaskKilled")
    add(speculative=kind == "won")
    return True


def _lose(draw, run: Run, outputs: dict[int, str]) -> None:
    """Let an executor leave, with or without its outputs."""
    leaver = draw(st.sampled_from([None, None, "1", "2"]))
    if leaver is None:
        return
    run.events.append(removed(leaver, run.now_ms))
    if not run.keeps_outputs:
        for partition in [p for p, executor_id in outputs.items() if executor_id == leaver]:
            del outputs[partition]


@dataclass
class Count:
    """Amounts of a log, counted line by line.

    Attributes
    ----------
    first : dict of (int, int) to (int, int)
        Finish and run time (ms) of the first success of each stage and partition.
    """

    run_ms: int = 0
    repeated_ms: int = 0
    n_unknown: int = 0
    n_bad: int = 0
    first: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    n_tasks: dict[int, int] = field(default_factory=dict)  # of each stage that is described
    ran: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)


def count(lines: list[str], partition: dict[int, int]) -> Count:
    """Count the lines of a log."""
    total, seen = Count(), set()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            total.n_bad += 1
            total.n_unknown += 1
            continue
        name = event["Event"].removeprefix("SparkListener")
        for info in (*event.get("Stage Infos", ()), event.get("Stage Info")):
            if info is not None:
                total.n_tasks.setdefault(info["Stage ID"], info["Number of Tasks"])
        total.ran |= {event["Stage ID"]} if name in ("TaskStart", "TaskEnd") else set()
        total.ran |= {event["Stage Info"]["Stage ID"]} if "Stage Info" in event else set()
        if name != "TaskEnd" or event["Task End Reason"]["Reason"] == "Resubmitted":
            continue
        info, is_success = event["Task Info"], event["Task End Reason"]["Reason"] == "Success"
        launch_ms, finish_ms, task_id = (
            info[key] for key in ("Launch Time", "Finish Time", "Task ID")
        )
        total.ended.add(task_id)
        if finish_ms < launch_ms:
            total.n_bad += finish_ms > 0 or is_success
            total.n_unknown += 1
            continue
        run_ms = finish_ms - launch_ms
        total.run_ms += run_ms
        total.repeated_ms += run_ms if task_id in seen else 0
        seen.add(task_id)
        if is_success:
            key = (event["Stage ID"], partition[task_id])
            if key not in total.first or finish_ms < total.first[key][0]:
                total.first[key] = finish_ms, run_ms
    return total


def damaged(draw, lines: list[str]) -> list[str]:
    """Draw lines that are cut, and ends of tasks by a clock that was set back."""
    lines = list(lines)
    for _ in range(draw(st.integers(0, 2))):
        position = draw(st.integers(1, len(lines) - 1))
        event = json.loads(lines[position]) if lines[position].endswith("}") else {}
        if event.get("Event") != "SparkListenerTaskEnd":
            continue
        if draw(st.booleans()):
            lines[position] = lines[position][:-1]
        elif event["Task End Reason"]["Reason"] == "Success":
            event["Task Info"]["Finish Time"] = T0 - 1
            lines[position] = json.dumps(event)
    return lines
