"""Trials: what a policy would start at given moments of a run that goes on as its state says.

At each moment of a state (`sim.engine.plan.state`) the policy places jobs once, with all that it
knows then, and that is taken back: the next moment is in the state that the pinned jobs make. So a
policy is judged one step at a time, without the chaos of a whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8
from sim.base.errors import AccountError
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits, check_room
from sim.engine.accounts import broken_account
from sim.engine.batches import Recorder
from sim.engine.clock import on_own_clock
from sim.engine.kernels import run as kernel
from sim.engine.kernels import state as layout
from sim.engine.kernels.run import bind_variant
from sim.engine.plan import Scheduler, State
from sim.engine.session import begin_run, instants
from sim.workload.workload import Workload


@dataclass(frozen=True)
class Trial:
    """One moment: which jobs waited, and which of them the policy would have started.

    Attributes
    ----------
    time_s : float
        The moment, on the workload's clock.
    waiting : (W,) int64
        Rows of the jobs that were eligible and waited.
    started : (N,) int64
        Rows of those that the policy starts: of periodic planning, in a pass of its main loop.
    planned : (P,) int64
        Rows of those that a plan starts thereafter.
    machines : dict of int to tuple of int
        Machines of each of these, ascending.
    late : (L,) int64
        Rows of the pinned jobs that are not placed yet, though their time has come.
    """

    time_s: float
    waiting: I8
    started: I8
    planned: I8
    machines: Mapping[int, tuple[int, ...]]
    late: I8


def features_of(
    workload: Workload, cluster: Cluster, policy: Scheduler, state: State
) -> frozenset[str]:
    """Return the features of the event loop of such trials."""
    own, own_cluster = on_own_clock(workload, cluster)
    state = state.later(-workload.origin_s)
    return begin_run(own, own_cluster, policy, 0, record_tasks=True, state=state).features


def trials(
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler,
    state: State,
    *,
    seed: int = 0,
    shared: frozenset[str] = frozenset(),
) -> Iterator[Trial]:
    """Yield a trial at each moment of the state that the run reaches, in order of time.

    `shared`: `features_of` trials with more mechanisms, whose compiled loop they take.

    Raises
    ------
    InputError
        If a demand can never fit, or the state does not suit the workload.
    """
    check_room(workload, cluster)
    check_fits(workload, cluster)
    zero_s = workload.origin_s
    own, own_cluster = on_own_clock(workload, cluster)
    pins = state.later(-zero_s)
    opened = begin_run(own, own_cluster, policy, seed, record_tasks=True, state=pins, shared=shared)
    plan, arrays, features = opened.plan, opened.arrays, opened.features
    changed = plan.take_changed()
    plan.take_limited()
    run, record = bind_variant(features, arrays, changed)
    recorder = Recorder(arrays, features)
    saved = _Kept(arrays)
    task0 = own.columns.stage_task0[own.columns.job_stage0]

    def go_on(first: int) -> int:
        batches = instants(run, record, changed, opened, recorder, [], first)
        while True:
            try:
                batch = next(batches)
            except StopIteration as end:
                code: int = end.value
                return code
            policy.react(opened.memory, batch, opened.world, plan)

    code = go_on(-1)
    while code == kernel.MOMENT:
        arrays["state_i"][layout.NEXT_MOMENT] += 1
        saved.keep()
        before = _has_begun(arrays)
        waiting = (arrays["state_job_ready_head"] >= 0) & (arrays["state_job_wait_queue"] >= 0)
        waiting &= ~before
        late = _late(arrays, state, zero_s)
        started, planned = (_try(run, record, changed, arrays, number) for number in (_PASS, _PLAN))
        both = np.concatenate([started, planned]).tolist()
        yield Trial(
            arrays["state_f"].item(layout.NOW) + zero_s,
            np.flatnonzero(waiting),
            started,
            planned,
            {j: _machines(arrays, task0, j) for j in both},
            late,
        )
        saved.restore()
        code = go_on(-2)
    if code == kernel.WRONG:
        raise AccountError(broken_account(arrays))


_PASS, _PLAN = 1, 2
"""Values of TRIES."""


def _try(
    run: Callable[..., int],
    record: Any,
    changed: I4,
    arrays: Mapping[str, NDArray[Any]],
    number: int,
) -> I8:
    """Let the policy place jobs; return the rows of those that it starts."""
    before = _has_begun(arrays)
    arrays["state_i"][layout.TRIES] = number
    run(record, changed, -2)
    return np.flatnonzero(_has_begun(arrays) & ~before)


def _has_begun(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return flags of the jobs that run or ran."""
    opened: NDArray[np.bool_] = arrays["state_job_started"] > 0
    return opened


def _machines(arrays: Mapping[str, NDArray[Any]], task0: I8, job: int) -> tuple[int, ...]:
    machine: I4 = arrays["out_task_machine"][task0[job] : task0[job + 1]]
    return tuple(np.sort(machine).tolist())


def _late(arrays: Mapping[str, NDArray[Any]], state: State, zero_s: float) -> I8:
    """Return the pinned jobs that are due before now and have not begun."""
    now_s = arrays["state_f"].item(layout.NOW) + zero_s
    is_late = (state.placed_s < now_s) & (arrays["state_job_started"] == 0)
    return np.flatnonzero(is_late & (arrays["out_job_failed"] == 0))


class _Kept:
    """Copy of all that a run changes, to go back to."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._live = [
            array for name, array in arrays.items() if not name.startswith(layout.READ_ONLY)
        ]
        self._copies = [array.copy() for array in self._live]

    def keep(self) -> None:
        for copy, array in zip(self._copies, self._live, strict=True):
            np.copyto(copy, array)

    def restore(self) -> None:
        for copy, array in zip(self._copies, self._live, strict=True):
            np.copyto(array, copy)
