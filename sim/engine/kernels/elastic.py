"""Elastic jobs: one unit of work in places that come and go (`sim.workload.elastic`).

The unit is the first task of the job, in the first place that it took. The others are idle slots of
its gang, in the order in which they were taken; the i-th of them has the record of task i + 1. All
tasks of the job end together. `sim.engine.kernels.rigid.resize` takes places and gives them back.
The unit goes at the pace of its width, and at the least rate of the machines of its places
(`sim.engine.kernels.faults.unit_rates`).
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import part
from sim.engine.kernels.components import component_of, idle_slots
from sim.engine.kernels.domains import note_crossing
from sim.engine.kernels.features import CHOOSES, CLASS_SPEEDS, TOPOLOGY
from sim.engine.kernels.speeds import speed_of_place
from sim.engine.kernels.state import CONSTRAINED, LAUNCH, NOW, RECORD, REMOTE, STOPS
from sim.engine.kernels.stop_records import record_stop


@part
def is_elastic(st, j):
    """Tell whether job `j` is elastic."""
    return st.w_job_width_min[j] > 0


@part
def tasks_with(st, g):
    """Count the tasks that start and end with a task of stage `g`: itself, or all of its job."""
    if is_elastic(st, st.w_stage_job[g]):
        return st.w_stage_task0[g + 1] - st.w_stage_task0[g]
    return 1


@part
def width_of(st, j):
    """Return the number of places of elastic job `j`, whose first is not idle."""
    return idle_slots(st, j, component_of(st, st.w_job_stage0[j])) + 1


@part
def wanted_width(st, j):
    """Return the width that the policy wants of elastic job `j`, within its own."""
    g = st.w_job_stage0[j]
    widest = st.w_stage_task0[g + 1] - st.w_stage_task0[g]
    return min(max(st.p_job_width[j], st.w_job_width_min[j]), widest)


@part
def pace_of(st, j):
    """Return the pace of elastic job `j`, which runs, by its places.

    It goes at the least speed of these.
    """
    width, pace = width_of(st, j), st.w_pace[st.w_job_pace0[j] + width_of(st, j)]
    if CLASS_SPEEDS or st.state_i[REMOTE]:
        g = st.w_job_stage0[j]
        machine, entry = (
            st.state_slot_machine[st.state_job_unit[j]],
            st.w_slot0[component_of(st, g)],
        )
        if TOPOLOGY:
            note_crossing(st, j, machine, entry, entry + width - 1)
        speed = speed_of_place(st, g, 0, machine)
        for i in range(1, width):
            machine = st.state_held_machine[entry + i - 1]
            speed = min(speed, speed_of_place(st, g, i, machine))
        pace *= speed
    return pace


@part
def begin_place(st, j, i):
    """Begin the record of the `i`-th idle slot of elastic job `j`."""
    if not st.state_i[RECORD]:
        return
    g = st.w_job_stage0[j]
    task, entry = st.w_stage_task0[g] + 1 + i, st.w_slot0[component_of(st, g)] + i
    st.out_task_start[task] = max(st.state_f[NOW], st.state_slot_start[st.state_job_unit[j]])
    st.out_task_machine[task] = st.state_held_machine[entry]
    if st.state_i[LAUNCH]:
        st.out_task_placed[task] = st.state_f[NOW]
    if CHOOSES and st.state_i[CONSTRAINED]:
        st.out_task_devices[task] = st.state_held_devices[entry]


@part
def end_place(st, j, i, reason, share):
    """End the record of the `i`-th idle slot of elastic job `j`, which is given back or stops.

    `share` is the part of its time whose work is kept.
    """
    if not st.state_i[RECORD]:
        return
    task, now = st.w_stage_task0[st.w_job_stage0[j]] + 1 + i, st.state_f[NOW]
    start = st.out_task_start[task]
    if st.state_i[STOPS] and start < now:
        kept_s = (now - start) * share
        record_stop(st, task, st.out_task_machine[task], start, now, reason, kept_s)
    st.out_task_start[task] = math.nan
    st.out_task_machine[task] = -1


@part
def stop_places(st, j, slot, reason, kept_s):
    """End the records of all places of elastic job `j` but the first, in `slot`, which stops.

    `kept_s` is the part of the time of the first whose work is kept.
    """
    start, now = st.state_slot_start[slot], st.state_f[NOW]
    share = kept_s / (now - start) if start < now else 0.0
    for i in range(width_of(st, j) - 1):
        end_place(st, j, i, reason, share)


@part
def finish_places(st, j, slot):
    """Let all tasks of elastic job `j` but the first, in `slot`, end now.

    Those without a place run for no time, where the first ran.
    """
    if not st.state_i[RECORD]:
        return
    g, now = st.w_job_stage0[j], st.state_f[NOW]
    task0 = st.w_stage_task0[g]
    for task in range(task0 + 1, st.w_stage_task0[g + 1]):
        st.out_task_finish[task] = now
        if task - task0 < width_of(st, j):
            continue
        st.out_task_start[task] = now
        st.out_task_machine[task] = st.state_slot_machine[slot]
        if st.state_i[LAUNCH]:
            st.out_task_placed[task] = now
        if CHOOSES and st.state_i[CONSTRAINED]:
            st.out_task_devices[task] = st.out_task_devices[task0]
