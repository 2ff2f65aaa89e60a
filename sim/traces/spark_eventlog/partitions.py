"""Partition of each task attempt.

Spark 3.3 and later write a Partition ID. Before, there is only an Index, a position among the
partitions that this attempt of the stage computes: those without an output when it was submitted,
ascending (``DAGScheduler.submitMissingTasks``). So the attempts of a stage are replayed here, as
tasks succeed and outputs are lost. An executor that left, or whose outputs a task could not fetch,
may have lost them or not (an external shuffle service keeps them): the number of tasks of the next
attempt decides. If it fits no case, the partitions are a guess.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sim.base.arrays import F8, I8
from sim.traces.spark_eventlog.application import COLUMN, DONE, Application, Incident

GUESSED: Final = "a task whose partition is a guess: no Partition ID, and outputs were lost unseen"


def partitions(app: Application) -> F8:
    """Return the partition of each attempt, (A,)."""
    rows = app.attempts
    code, attempt, stage = (rows[:, COLUMN[name]] for name in ("partition", "attempt", "stage"))
    partition = np.where(code < 0, -1 - code, code)
    retried = np.unique(stage[(code < 0) & (attempt > 0)])
    for stage_id in retried.astype(np.int64).tolist():
        if stage_id in app.stages:
            mine = np.flatnonzero(stage == stage_id)
            replay = _Replay(app, stage_id)
            partition[mine] = replay.run(rows[mine], mine)
            app.notice(GUESSED, replay.n_guessed)
    return partition


class _Replay:
    """Outputs of a stage that was retried, while its attempts are replayed in order."""

    def __init__(self, app: Application, stage: int) -> None:
        self._app = app
        self._stage = stage
        self._outputs: dict[int, int] = {}  # executor, by partition
        self._end_ms: dict[int, float] = {}  # of their tasks
        self._n_seen: dict[int, int] = {}  # tasks of an attempt, as far as their ends tell
        self._begin_ms: dict[int, float] = {}  # launch of an attempt's first task
        self._removed: set[int] = set()  # partitions whose output may be lost
        self._unfetched: set[int] = set()
        self._done: dict[int, I8] = {0: np.empty(0, np.int64)}  # what an attempt does not compute
        self._guessed: set[int] = set()
        self.n_guessed = 0

    def run(self, rows: F8, positions: I8) -> list[int]:
        """Return the partition of each row of the stage; `positions` are those in the log."""
        attempts = rows[:, COLUMN["attempt"]].astype(np.int64)
        codes = rows[:, COLUMN["partition"]].astype(np.int64)
        for number in np.unique(attempts).tolist():
            mine = attempts == number
            self._n_seen[number] = int(np.max(-codes[mine], initial=0))
            self._begin_ms[number] = float(np.min(rows[mine, COLUMN["launch_ms"]]))
        incidents = iter([*self._app.incidents, Incident(len(self._app.rows), "submitted")])
        incident = next(incidents)
        result: list[int] = []
        for row, position in enumerate(positions.tolist()):
            while incident.row <= position:
                self._enter(incident)
                incident = next(incidents)
            attempt, code = int(attempts[row]), int(codes[row])
            if attempt not in self._done:
                self._submit_unseen(attempt)
            partition = self._partition(attempt, code)
            self.n_guessed += code < 0 and attempt in self._guessed
            if rows[row, COLUMN["kind"]] == DONE:
                self._outputs[partition] = int(rows[row, COLUMN["executor"]])
                self._end_ms[partition] = float(rows[row, COLUMN["finish_ms"]])
                self._removed.discard(partition)
                self._unfetched.discard(partition)
            result.append(partition)
        return result

    def _enter(self, incident: Incident) -> None:
        if incident.kind in ("removed", "unfetched"):
            doubtful = self._removed if incident.kind == "removed" else self._unfetched
            doubtful |= {
                partition
                for partition, executor in self._outputs.items()
                if executor == incident.number
            }
        elif incident.stage == self._stage and incident.kind == "submitted":
            if incident.attempt in self._n_seen and incident.attempt not in self._done:
                self._submit(incident.attempt)
        elif incident.stage == self._stage and incident.attempt in self._done:
            self._outputs.pop(self._partition(incident.attempt, incident.number), None)

    def _submit_unseen(self, attempt: int) -> None:
        """Enter an attempt whose begin is not in the log: at the launch of its first task."""
        begin_ms = self._begin_ms[attempt]
        late = {p: e for p, e in self._outputs.items() if self._end_ms[p] > begin_ms}
        self._outputs = {p: e for p, e in self._outputs.items() if p not in late}
        self._submit(attempt)
        self._outputs |= late

    def _submit(self, attempt: int) -> None:
        """Enter an attempt: decide which outputs it does not compute, as they are there."""
        n_partitions = self._app.stages[self._stage].n_tasks
        n_stated = self._app.sizes.get((self._stage, attempt))
        n_tasks = self._n_seen[attempt] if n_stated is None else n_stated
        outputs = self._outputs.keys()
        cases = [
            sorted(outputs),
            sorted(outputs - self._unfetched),
            sorted(outputs - self._unfetched - self._removed),
        ]
        missing = [n_partitions - len(done) for done in cases]
        is_sure = True
        if n_tasks in missing:
            done = cases[missing.index(n_tasks)]
        elif n_tasks < missing[-1]:
            case = next(case for case, n in enumerate(missing) if n > n_tasks)
            done = cases[case]
            is_sure = n_stated is None and missing[0] == missing[-1]
        else:
            done = cases[-1][n_tasks - missing[-1] :]
            is_sure = not done
        self._done[attempt] = np.array(done, np.int64)
        self._outputs = {partition: self._outputs[partition] for partition in done}
        self._removed, self._unfetched = set(), set()
        if not is_sure:
            self._guessed.add(attempt)

    def _partition(self, attempt: int, code: int) -> int:
        """Return the partition of an Index: of those that are not done, ascending."""
        if code >= 0:
            return code
        index, done = -1 - code, self._done[attempt]
        skipped = np.searchsorted(done - np.arange(len(done)), index, side="right")
        return index + int(skipped)
