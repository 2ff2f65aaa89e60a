"""Work of attempts: how long one lasts where it runs, and what of it is kept when it is stopped.

A job that saves a checkpoint every so often goes on from the last one: each of its tasks keeps the
whole intervals that it ran, as seconds of its duration, and takes a time to restart. A failed
attempt keeps nothing. That of an elastic job, which is one unit of work, fails with the first of
its tasks' that do.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.elastic import tasks_with
from sim.engine.kernels.faults.rates import remaining_s
from sim.engine.kernels.features import CHECKPOINTS, CLASS_SPEEDS, ELASTIC
from sim.engine.kernels.speeds import is_remote, run_s, speed_on
from sim.engine.kernels.state import FAILS, NOW

REQUEUE, CANCEL, SUSPEND = range(3)
"""Codes of ``p_job_when_preempted`` (`sim.engine.plan.preemption.WhenPreempted`)."""
SLACK = 1e-9
"""Part of an interval by which a checkpoint may be early, for the last bits of times."""


@inlined
def duration_s(st, slot):
    """Return how long the attempt in `slot`, which begins, lasts at full speed, s.

    Less than its task in the workload on a fast class of machines, if the attempt fails or after a
    checkpoint; more if its input is remote, or with the time to restart.
    """
    if st.state_i[FAILS] and CLASS_SPEEDS:
        task, g = st.state_slot_task[slot], st.state_slot_stage[slot]
        st.state_task_speed[task] = speed_on(st, g, st.state_slot_machine[slot])
    seconds = _on_machine(st, slot, _left_s(st, slot))
    return seconds + _restart_s(st, slot) if CHECKPOINTS else seconds


@part
def next_attempt(st, task):
    """Return the row of the attempt of `task` that fails next, if one does."""
    return st.w_attempt0[task] + st.state_task_failed[task]


@part
def failing_task(st, slot):
    """Return the task with which the attempt in `slot` fails, -1 if it does not.

    It is the task that runs there; of an elastic job the one whose attempt fails first.
    """
    first, best, best_s = st.state_slot_task[slot], -1, math.inf
    count = tasks_with(st, st.state_slot_stage[slot]) if ELASTIC else 1
    for task in range(first, first + count):
        attempt = next_attempt(st, task)
        if attempt < st.w_attempt0[task + 1] and st.w_attempt_s[attempt] < best_s:
            best, best_s = task, st.w_attempt_s[attempt]
    return best


@part
def _left_s(st, slot):
    """Return what is left to do of the attempt in `slot` at its begin, s at speed 1."""
    task = st.state_slot_task[slot]
    seconds = st.w_task_duration[task]
    if st.state_i[FAILS]:
        failing = failing_task(st, slot)
        if failing >= 0:
            seconds = st.w_attempt_s[next_attempt(st, failing)]
    return seconds - st.state_task_kept[task] if CHECKPOINTS else seconds


@part
def _on_machine(st, slot, seconds):
    """Return how long `seconds` at speed 1 take on the machine of `slot`."""
    task, g = st.state_slot_task[slot], st.state_slot_stage[slot]
    seconds = run_s(st, g, st.state_slot_machine[slot], seconds)
    if ELASTIC and st.w_job_width_min[st.w_stage_job[g]] > 0:
        return seconds
    if is_remote(st, g, task, st.state_slot_machine[slot]):
        return seconds * st.w_stage_remote_factor[g]
    return seconds


@part
def _restart_s(st, slot):
    task = st.state_slot_task[slot]
    if st.state_task_stopped[task]:
        return st.w_job_restart[st.w_stage_job[st.state_slot_stage[slot]]]
    return 0.0


@part
def ran_s(st, slot):
    """Return how long the attempt in `slot` has run so far, s at full speed, restart aside."""
    ran = _elapsed_s(st, slot)
    return max(0.0, ran - _restart_s(st, slot)) if CHECKPOINTS else ran


@part
def _elapsed_s(st, slot):
    """Return how long the attempt in `slot` has run so far, s at full speed, with its restart."""
    total = _on_machine(st, slot, _left_s(st, slot))
    if CHECKPOINTS:
        total += _restart_s(st, slot)
    return total - remaining_s(st, slot)


@part
def saved_s(st, slot, interval):
    """Return how much of `ran_s` checkpoints save that come every `interval`; 0: at any moment."""
    if interval == math.inf:
        return 0.0
    ran = ran_s(st, slot)
    if interval == 0.0:
        return ran
    return min(ran, math.floor(ran / interval + SLACK) * interval)


@part
def keep_work(st, slot, interval):
    """Keep what checkpoints have saved of the attempt in `slot`, which is stopped.

    The next one takes a time to restart, if this one has run. Return how much of its time is kept,
    s.
    """
    kept_s = _keep(st, slot, saved_s(st, slot, interval))
    if st.state_slot_start[slot] < st.state_f[NOW]:
        st.state_task_stopped[st.state_slot_task[slot]] = 1
    return kept_s


@part
def suspend_work(st, slot):
    """Keep all work of the attempt in `slot`, which is suspended, and goes on without a restart.

    Return how much of its time is kept, s.
    """
    saved = ran_s(st, slot)
    kept_s = _keep(st, slot, saved)
    if saved > 0.0:
        st.state_task_stopped[st.state_slot_task[slot]] = 0
    return kept_s


@part
def _keep(st, slot, saved):
    if not saved > 0.0:
        return 0.0
    share = saved / _elapsed_s(st, slot)
    left = _left_s(st, slot)
    seconds = min(left, saved * (left / _on_machine(st, slot, left)))
    st.state_task_kept[st.state_slot_task[slot]] += seconds
    return (st.state_f[NOW] - st.state_slot_start[slot]) * share


@part
def lose_work(st, task):
    """Let `task` begin anew: its attempt failed, or its output was lost."""
    st.state_task_kept[task] = 0.0
    st.state_task_stopped[task] = 0
