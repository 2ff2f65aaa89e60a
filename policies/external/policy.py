"""A policy that is a program of its own, in any language: external."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from policies.base import Policy
from policies.external.process import SchedulerProcess
from policies.external.protocol import (
    COLUMNS,
    DEMAND_PREFIX,
    PLAN_COLUMNS,
    TIMER,
    VERSION,
    Fact,
    Facts,
    facts_schema,
)
from policies.knows import Knows
from policies.registry import register
from sim.base.errors import InputError, PolicyError
from sim.base.parameters import Positive
from sim.engine.plan import Batch, Event, Plan, World
from sim.env import Form, Observer


@register("external")
@dataclass(frozen=True)
class External(Policy):
    """A scheduler outside this process, which hears events and sets columns of jobs.

    The program is started for each run, and spoken to over its standard input and output
    (docs/external_scheduler.md). It hears of a job when that arrives, and has to answer the same
    with the same: cells are recorded once.

    Attributes
    ----------
    command : tuple of str
        Program and arguments, e.g. [./scheduler, --fast].
    version : str
        Version of what its files do not show, such as a library; a part of a cell's key.
    timeout_s : float
        Longest time for one answer, s.
    durations : {"nothing", "true"}
        With "true" it hears how long a job's tasks run, as an oracle.
    files : str
        SHA-256 of the program and of those arguments that are files, which are a part of a cell's
        key; computed if left empty, else compared before a run.
    """

    command: tuple[str, ...] = ()
    version: str = ""
    timeout_s: Positive = 60.0
    durations: Literal["nothing", "true"] = "nothing"
    files: str = ""

    events = (
        Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED | Event.STAGE_DONE | Event.FAULT
    ) | Event.TIMER

    def __post_init__(self) -> None:
        """Compute the digest of the files."""
        if not self.files and self.command:
            object.__setattr__(self, "files", files_digest(self.command))

    @property
    def knows(self) -> Knows:
        """Requests, and durations if it is told."""
        declared: Literal["declared"] = "declared"
        return Knows(self.durations, declared, values=declared, deadlines=declared)

    def prepare(self, world: World, plan: Plan) -> _Conversation:
        """Start the program, tell it of the cluster, and take its first answer."""
        if not self.command:
            raise InputError("policy external needs a command, e.g. policy.command='[./scheduler]'")
        if files_digest(self.command) != self.files:
            raise InputError(
                f"policy external: the files of {' '.join(self.command)} are others than planned"
            )
        conversation = _Conversation(self, world)
        conversation.begin(plan)
        return conversation

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Tell it what happened; take its answer."""
        assert isinstance(memory, _Conversation)
        memory.tell(batch, plan)


def files_digest(command: tuple[str, ...]) -> str:
    """Return the SHA-256 of a program and of its arguments that are files, hexadecimal.

    Raises
    ------
    InputError
        If there is no such program.
    """
    program = shutil.which(command[0])
    if program is None:
        raise InputError(
            f"policy external: no program {command[0]!r}; paths count from the current folder"
        )
    digest = hashlib.sha256()
    for file in (Path(program), *map(Path, command[1:])):
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


class _Conversation:
    """Messages of one run, and the counts of jobs that the program knows."""

    def __init__(self, policy: External, world: World) -> None:
        columns, cluster = world.columns, world.cluster
        about = {
            "protocol": VERSION,
            "seed": world.seed,
            "resources": {
                name: cluster.capacity[:, i].tolist() for i, name in enumerate(cluster.resources)
            },
            "users": columns.user_names,
            "queues": columns.queue_names,
        }
        schema = facts_schema(columns.resources, about)
        self._world, self._facts = world, Facts(schema)
        self._shows_work = policy.durations == "true"
        self._observer = Observer(world, Form(jobs=None, stages=None))
        self._defaults = [(name, default) for name, (_, default) in COLUMNS.items()]
        self._demands = [DEMAND_PREFIX + name for name in columns.resources]
        self._heard_left = columns.job_n_tasks.astype(np.int32)
        self._heard_running = np.zeros(len(columns.job_submit), np.int32)
        self._n_total = len(columns.job_submit)
        self._process = SchedulerProcess(policy.command, schema, policy.timeout_s)

    def begin(self, plan: Plan) -> None:
        """Say that the run begins."""
        plan.set_jobs(key=np.arange(self._n_total, dtype=np.float64))
        self._reset(self._facts.begin(1))
        self._hear(plan)

    def tell(self, batch: Batch, plan: Plan) -> None:
        """Say what happened at one instant."""
        observer, view, columns = self._observer, self._world.view, self._world.columns
        observer.update(batch)
        jobs = observer.jobs
        left, running = view["left"][jobs], view["running"][jobs]
        differs = (left != self._heard_left[jobs]) | (running != self._heard_running[jobs])
        changed = jobs[differs]
        kinds, rows = batch.kind.tolist(), batch.row.tolist()
        arrived = [row for kind, row in zip(kinds, rows, strict=True) if kind == Fact.JOB_ARRIVED]
        n_more = sum(self._n_facts(job) for job in arrived)
        n = len(kinds) + n_more + len(changed)
        facts = self._facts.begin(n)
        self._reset(facts)
        facts["time_s"][:] = batch.now
        begin = 0
        for kind, row in zip(kinds, rows, strict=True):
            facts["kind"][begin], facts["row"][begin] = kind, row
            if kind == Fact.STAGE_DONE:
                facts["job"][begin] = columns.stage_job[row]
            elif kind not in (Fact.FAULT, Fact.TIMER):
                facts["job"][begin] = row
            begin += 1
            if kind == Fact.JOB_ARRIVED:
                begin = self._introduce(facts, begin, row)
        if len(changed):
            self._heard_left[changed], self._heard_running[changed] = (
                left[differs],
                running[differs],
            )
            facts["kind"][begin:], facts["row"][begin:], facts["job"][begin:] = (
                Fact.CHANGED,
                changed,
                changed,
            )
            facts["left"][begin:], facts["running"][begin:] = left[differs], running[differs]
            facts["started"][begin:] = view["started"][changed]
            facts["done_work_s"][begin:] = view["done_work"][changed]
        self._hear(plan)
        if observer.n_ended == self._n_total:
            self._process.close()

    def _n_facts(self, job: int) -> int:
        """Return how many facts introduce a job beside its arrival."""
        columns = self._world.columns
        first, last = columns.job_stage0[job : job + 2].tolist()
        return int(last - first + columns.edge0[last] - columns.edge0[first])

    def _introduce(self, facts: Mapping[str, NDArray[Any]], begin: int, job: int) -> int:
        """Fill the fact of an arrival, and those of the job's stages and edges; return the end."""
        columns, fact = self._world.columns, begin - 1
        facts["n_tasks"][fact] = facts["left"][fact] = columns.job_n_tasks[job]
        facts["user"][fact], facts["queue"][fact] = columns.job_user[job], columns.job_queue[job]
        facts["priority"][fact] = columns.job_priority[job]
        facts["deadline_s"][fact] = columns.job_deadline[job]
        facts["requested_s"][fact] = columns.job_requested[job]
        stages = slice(*columns.job_stage0[job : job + 2].tolist())
        end = begin + stages.stop - stages.start
        facts["kind"][begin:end], facts["job"][begin:end] = Fact.STAGE, job
        facts["row"][begin:end] = np.arange(stages.start, stages.stop)
        facts["n_tasks"][begin:end] = facts["left"][begin:end] = columns.stage_n_tasks[stages]
        for name, demand in zip(self._demands, columns.stage_demand_f[stages].T, strict=True):
            facts[name][begin:end] = demand
        if self._shows_work:
            facts["work_s"][fact] = columns.job_work[job]
            facts["work_s"][begin:end] = columns.stage_work[stages]
        edge0 = columns.edge0[stages.start : stages.stop + 1]
        last: int = end + int(edge0[-1] - edge0[0])
        if last > end:
            facts["kind"][end:last], facts["job"][end:last] = Fact.EDGE, job
            facts["row"][end:last] = np.repeat(np.arange(stages.start, stages.stop), np.diff(edge0))
            facts["child"][end:last] = columns.edge_child[edge0[0] : edge0[-1]]
        return last

    def _reset(self, facts: Mapping[str, NDArray[Any]]) -> None:
        for name, default in self._defaults:
            facts[name][:] = default
        for name in self._demands:
            facts[name][:] = 0.0

    def _hear(self, plan: Plan) -> None:
        answer = self._process.ask(*self._facts.message())
        names = answer.schema.names
        unknown = set(names) - {"job", TIMER, *PLAN_COLUMNS}
        if "job" not in names or unknown:
            raise PolicyError(
                f"the scheduler answered with the columns {names}; valid: job, "
                f"{', '.join(PLAN_COLUMNS)}, {TIMER}"
            )
        if not answer.num_rows:
            return
        try:
            jobs = np.asarray(answer.column("job"), np.int32)
            values = {
                name: np.asarray(answer.column(name))
                for name in names
                if name not in ("job", TIMER)
            }
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise PolicyError(f"the scheduler's answer can't be read: {error}") from None
        if TIMER in names:
            timers = np.asarray(answer.column(TIMER), np.float64)
            plan.timer_s = float(timers[-1])
        is_set = jobs >= 0
        if not is_set.all():
            jobs, values = jobs[is_set], {name: v[is_set] for name, v in values.items()}
        if len(jobs) and (jobs.max() >= self._n_total or not self._observer.shows(jobs)):
            raise PolicyError("the scheduler set a job that is not in the system")
        if len(jobs) and values:
            plan.set_jobs(jobs, **values)
