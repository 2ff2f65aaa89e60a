"""A policy that is a program of its own, in any language: external."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from policies.base import Policy
from policies.external.client import Columns, Heads
from policies.external.process import SchedulerProcess
from policies.external.protocol import COLUMNS, PLAN_COLUMNS, TIMER, VERSION, Fact, facts_schema
from policies.knows import Knows, Source
from policies.registry import register
from sim.base.arrays import F8, I4
from sim.base.errors import InputError, PolicyError
from sim.base.parameters import Positive
from sim.engine.plan import Batch, Event, Plan, World
from sim.env import Form, Observer

_ANSWERED = frozenset({"job", TIMER, *PLAN_COLUMNS})


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
        """Requests and limits, and durations if it is told."""
        declared: Literal["declared"] = "declared"
        durations: Source = "true" if self.durations == "true" else declared
        return Knows(durations, declared, values=declared, deadlines=declared)

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


def _defaults(n_demands: int) -> tuple[I4, F8]:
    """Return the defaults of facts, of the columns of int32 and of those of float64."""
    ints, floats = (
        [default for dtype, default in COLUMNS.values() if dtype == kind] for kind in ("i4", "f8")
    )
    return np.array(ints, np.int32), np.array(floats + [0.0] * n_demands)


class _Conversation:
    """Messages of one run, and the counts of jobs that the program knows."""

    def __init__(self, policy: External, world: World) -> None:
        from policies.external import kernels  # loads numba

        columns, cluster, view = world.columns, world.cluster, world.view
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
        self._kernels, self._heads = kernels, Heads(schema)
        self._n_total = len(columns.job_submit)
        self._observer = Observer(world, Form(jobs=None, stages=None))
        self._defaults = _defaults(len(columns.resources))
        self._n_bytes = tuple(defaults.nbytes for defaults in self._defaults)  # of a fact
        n_tasks = columns.job_n_tasks.astype(np.int32)
        if policy.knows.durations == "true":
            job_work, stage_work = columns.job_work, columns.stage_work
        else:
            job_work = np.full(len(n_tasks), np.nan)
            stage_work = np.full(len(columns.stage_job), np.nan)
        job_numbers = np.column_stack([n_tasks, columns.job_user, columns.job_queue])
        job_values = [columns.job_priority, columns.job_deadline, columns.job_requested, job_work]
        self._tables = (
            (view["left"], view["running"], view["started"], view["done_work"]),
            np.stack([n_tasks, np.zeros_like(n_tasks)]),
            (job_numbers.astype(np.int32), np.column_stack(job_values)),
            (
                columns.stage_n_tasks.astype(np.int32),
                np.column_stack([stage_work, columns.stage_demand_f]),
            ),
            (columns.job_stage0, columns.stage_job, columns.edge0, columns.edge_child),
            self._defaults,
        )
        self._make_room(64)
        self._process = SchedulerProcess(policy.command, schema, policy.timeout_s)

    def begin(self, plan: Plan) -> None:
        """Say that the run begins."""
        plan.set_jobs(key=np.arange(self._n_total, dtype=np.float64))
        begins = np.array([Fact.BEGIN], np.int32), np.array([-1], np.int32)
        self._hear(Batch(0.0, *begins), plan)

    def tell(self, batch: Batch, plan: Plan) -> None:
        """Say what happened at one instant."""
        self._observer.update(batch)
        self._hear(batch, plan)
        if self._observer.n_ended == self._n_total:
            self._process.close()

    def _make_room(self, n: int) -> None:
        """Allocate a body of `n` facts."""
        self._body = tuple(np.zeros(len(d) * (n + n % 2), d.dtype) for d in self._defaults)
        self._bytes = [memoryview(part.data).cast("B") for part in self._body]

    def _hear(self, batch: Batch, plan: Plan) -> None:
        """Send the facts of an instant, and follow the answer."""
        happened = (batch.now, batch[1:3], self._observer.jobs, *self._tables)
        n = self._kernels.write_facts(*happened, self._body)
        if n < 0:
            self._make_room(-2 * n)
            n = self._kernels.write_facts(*happened, self._body)
        ints, floats = self._bytes
        n_ints, n_floats = self._n_bytes
        answer = self._process.ask(
            (self._heads.head(n), ints[: n_ints * (n + n % 2)], floats[: n_floats * n])
        )
        names = answer.names
        if "job" not in names or not _ANSWERED.issuperset(names):
            raise PolicyError(
                f"the scheduler answered with the columns {names}; valid: job, "
                f"{', '.join(PLAN_COLUMNS)}, {TIMER}"
            )
        if answer.n:
            self._follow(answer, plan)

    def _follow(self, answer: Columns, plan: Plan) -> None:
        """Set what the answer changes."""
        jobs = answer["job"]
        if jobs.dtype.kind != "i":
            raise PolicyError(f"the scheduler's column 'job' is of {jobs.dtype}, not of integers")
        values: dict[str, Any] = {
            name: answer[name] for name in answer.names if name in PLAN_COLUMNS
        }
        if TIMER in answer.names:
            plan.timer_s = answer[TIMER][-1].item()
        n = self._kernels.count_set(jobs, self._observer.is_in)  # of jobs, not -1
        if n < 0:
            raise PolicyError("the scheduler set a job that is not in the system")
        if n < len(jobs):
            is_set = jobs >= 0
            jobs, values = jobs[is_set], {name: v[is_set] for name, v in values.items()}
        if n and values:
            if n == 1:  # what most answers are
                plan.set_jobs(jobs.item(), **{name: v.item() for name, v in values.items()})
            else:
                plan.set_jobs(jobs, **values)
