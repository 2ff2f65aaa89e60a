"""Account of the workflows in a log: their tasks, work and dependencies, by what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from policies.wing.wfcommons.instances import GIB, Instance
from sim.base.arrays import F8, offsets
from sim.base.reading import Account

ABSENT: Final = "dependency on a task that the file does not have"
UNSEEN: Final = "recorded dependency that the files of tasks do not show"
UNRECORDED: Final = "dependency that the files of tasks alone show"
ONE_SIDED: Final = "dependency that parents or children alone state"
Pairs = set[tuple[int, int]]
"""Edges between rows of the tasks of all instances, (up, down)."""


def joined(instances: Sequence[Instance], name: str) -> F8:
    """Concatenate a column of the tasks of all instances."""
    column: F8 = np.concatenate([getattr(i, name) for i in instances])
    return column


def account_of_dags(instances: Sequence[Instance]) -> Account:
    """Return the account of workflows that are jobs."""
    first = offsets(np.array([i.n_tasks for i in instances]))
    jobs = np.zeros(int(first[-1]))
    jobs[first[:-1]] = 1.0
    duration_s = joined(instances, "duration_s")
    amounts = {"jobs": jobs, "mem_gib_s": joined(instances, "mem_gib") * duration_s}
    account = _account(instances, "cpu_s", amounts)
    account.count(edges=sum(len(i.up) for i in instances))
    alone = [i.name for i in instances if i.n_tasks > 1 and not len(i.up)]
    if alone:
        account.warnings.append(
            f"{len(alone)} of {len(instances)} workflows ({alone[0]}) record no dependency between "
            "their tasks, which may all run at once; read_as=logs infers dependencies from files"
        )
    return account


def account_of_logs(instances: Sequence[Instance], inferred: Pairs) -> Account:
    """Return the account of tasks that are jobs, with the dependencies that their files show."""
    account = _account(instances, "tokens_s", {})
    recorded = recorded_pairs(instances)
    account.count(edges=len(recorded & inferred))
    account.add(UNSEEN, edges=len(recorded - inferred))
    account.change(UNRECORDED, edges=-len(inferred - recorded))
    account.warnings += unseen_warning(instances, inferred)
    return account


def recorded_pairs(instances: Sequence[Instance]) -> Pairs:
    """Return the edges that the files of workflows state."""
    pairs: Pairs = set()
    first = 0
    for i in instances:
        pairs.update(zip((i.up + first).tolist(), (i.down + first).tolist(), strict=True))
        first += i.n_tasks
    return pairs


def unseen_warning(instances: Sequence[Instance], inferred: Pairs) -> list[str]:
    """Say how many recorded dependencies the files of tasks do not show; empty if they show all."""
    recorded = recorded_pairs(instances)
    unseen = sorted(recorded - inferred)
    if not unseen:
        return []
    names = [name for i in instances for name in i.task_id]
    up, down = (names[row] for row in unseen[0])
    return [
        f"{len(unseen):,} of {len(recorded):,} recorded edges are not found in the files that "
        f"tasks read and write (the first: {up} -> {down}), so these tasks do not wait for each "
        "other; read_as=dag keeps them"
    ]


def noticed(instances: Sequence[Instance]) -> dict[str, int]:
    """Count the edges that one of a file's two statements lacks."""
    n = sum(len(i.one_sided) for i in instances)
    return {ONE_SIDED: n} if n else {}


def _account(instances: Sequence[Instance], work: str, amounts: dict[str, F8]) -> Account:
    """Return an account with cores × time as the kind `work`, and the references to no task."""
    duration_s, cores = joined(instances, "duration_s"), joined(instances, "cores")
    recorded_cores = joined(instances, "recorded_cores")
    account = Account(
        {**amounts, work: recorded_cores * duration_s, "tasks": np.ones(len(duration_s))}
    )
    is_unknown = np.isnan(recorded_cores)
    rounded = np.where(is_unknown, 0.0, recorded_cores - cores) * duration_s
    account.change("mean use of CPUs rounded up to whole cores", **{work: rounded.sum()})
    assumed = (cores * duration_s)[is_unknown].sum()
    account.change("number of cores unknown: one", **{work: -assumed})
    for i in instances:
        for rule, run in i.left_out:
            width = run.cores if run.cores > 0 else run.cpu_percent / 100
            amount = {work: _known(width * run.duration_s)}
            account.add(rule, by_option=False, tasks=1, jobs=0, **amount)
            if "mem_gib_s" in amounts:
                account.add(rule, mem_gib_s=_known(run.mem_bytes / GIB * run.duration_s))
        account.add(ABSENT, edges=i.n_absent)
    return account


def _known(amount: float) -> float:
    """Return an amount; 0 if it is not known."""
    return 0.0 if np.isnan(amount) else amount
