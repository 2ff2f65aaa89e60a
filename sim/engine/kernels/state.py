"""The kernel's state: one record of arrays, listed once, frozen in dtype, layout and mutability.

With the JIT the record is a pointer to a table of arrays (`sim.base.jit.record`): that alone
travels between the helpers, where a namedtuple of arrays would copy ninety of them at every call.
Without the JIT a namedtuple of the same names serves. Every field is an array, so that both forms
can be written through.

Prefixes say who writes: ``w_`` the workload and ``c_`` the cluster (nobody), ``p_`` the policy,
``state_`` and ``out_`` the kernel. J jobs, G stages, T tasks, E edges, R resources, M machines,
F of them looked at when it is decided what fits, Q kernel queues (organisations × the policy's
queues), O organisations, L the policy's queues, S slots for running tasks.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import JIT, record

FIELDS: tuple[tuple[str, str, int], ...] = (
    # the workload, read-only
    ("w_job_submit", "f8", 1),  # [J] s
    ("w_job_stage0", "i8", 1),  # [J+1] first stage of each job
    ("w_job_min_tasks", "i4", 1),  # [J] gang size, 0 for none
    ("w_job_org", "i4", 1),  # [J] organisation
    ("w_job_work", "f8", 1),  # [J] task seconds
    ("w_job_slot", "i8", 2),  # [J or 1, R] what a held gang slot holds
    ("w_job_hold0", "i8", 1),  # [J+1 or 1] first entry of state_hold_machine
    ("w_job_mode", "i1", 1),  # [J or 1] 0 looks at no inputs, 1 blind, 2 polls
    ("w_job_poll_lag", "f8", 1),  # [J or 1] s
    ("w_input0", "i8", 1),  # [J+1 or 1] first of the jobs that need what a job makes
    ("w_input_reader", "i4", 1),
    ("w_stage_job", "i4", 1),  # [G]
    ("w_stage_task0", "i8", 1),  # [G+1]
    ("w_stage_demand", "i8", 2),  # [G, R] quanta; [1, 1] for a pool of slots
    ("w_stage_fit", "i8", 2),  # the same, but below all room where a resource may be overbooked
    (
        "w_stage_o2o",
        "i1",
        1,
    ),  # [G] bit 0: its ready tasks are a heap, bit 1: has one-to-one children
    ("w_stage_home", "i4", 1),  # [G] machine of its first task's input, -1 for none
    ("w_stage_remote_factor", "f8", 1),  # [G]
    ("w_task_duration", "f8", 1),  # [T] s
    # attempts that fail before the task succeeds
    ("w_attempt0", "i8", 1),  # [T+1 or 1]
    ("w_attempt_s", "f8", 1),  # after how long
    ("w_attempt_lost", "i4", 1),  # the task whose output it finds lost, -1 for none
    ("w_edge0", "i8", 1),  # [G+1]
    ("w_edge_child", "i4", 1),  # [E]
    ("w_edge_kind", "i1", 1),  # [E] 0 barrier, 1 one-to-one
    # machines lost and back, by time
    ("w_outage_time", "f8", 1),
    ("w_outage_machine", "i4", 1),
    ("w_outage_back", "i1", 1),
    # the cluster, read-only
    # resources in the order: those that can't be overbooked, fungible ones that are looked at
    # when it is decided what fits (F of them with the former), the other fungible ones
    ("c_total", "i8", 1),  # [R] quanta
    ("c_scale", "f8", 1),  # [R] 1 / total
    ("c_dot", "f8", 2),  # [M, F] 1 / capacity², of each machine
    ("c_capacity", "i8", 2),  # [M, R] quanta; overbooking: [1, 1] where nothing can be
    ("c_speed_time", "f8", 1),  # how fast everything runs, from each time on
    ("c_speed", "f8", 1),
    ("c_org_cap", "i8", 2),  # [O, R] hard caps
    ("c_org_weight", "f8", 1),  # [O]
    # the policy's columns
    ("p_job_key", "f8", 1),
    ("p_job_queue", "i4", 1),
    ("p_job_run_limit", "i4", 1),
    ("p_job_start_gate", "i4", 1),
    ("p_job_overflow_queue", "i4", 1),
    ("p_job_notify_at", "i4", 1),
    ("p_job_service_at", "f8", 1),
    ("p_stage_key", "f8", 1),
    ("p_stage_weight", "f8", 1),
    ("p_task_order", "i4", 1),  # [T or 1] task of each turn
    ("p_task_turn", "i4", 1),  # [T or 1] turn of each task
    ("p_stage_cost", "f8", 1),
    ("p_stage_seen_s", "f8", 1),
    ("p_turn_priority", "f8", 1),  # [T or 1] of the task of each turn
    ("p_turn_prefers", "i4", 1),  # [T or 1]
    ("p_pack", "f8", 1),  # PACK_REMAINING, PACK_REMOTE, PACK_UNFAIRNESS
    ("p_queue_weight", "f8", 1),  # [L]
    ("p_queue_tier", "i4", 1),
    ("p_queue_order", "i4", 1),
    ("p_queue_demote_at", "f8", 1),
    ("p_queue_demote_to", "i4", 1),
    # registers
    ("state_f", "f8", 1),  # NOW, TIMER, WORTHS, LEFTS
    ("state_i", "i8", 1),  # counters, then the configuration
    # jobs
    ("state_job_turn", "i4", 1),  # how many were submitted before it; -1 not submitted
    ("state_job_left", "i4", 1),  # unfinished tasks
    ("state_job_started", "i4", 1),
    ("state_job_running", "i4", 1),
    ("state_job_first", "i4", 1),  # how many of the started count among its first k
    ("state_job_done", "i4", 1),
    ("state_job_notify", "i4", 1),  # of its first k tasks, how many have ended
    ("state_job_done_work", "f8", 1),
    ("state_job_first_work", "f8", 1),  # seconds of those of its first k tasks that have ended
    ("state_job_remaining", "f8", 1),
    ("state_job_attained", "f8", 1),  # at state_job_since
    ("state_job_since", "f8", 1),
    ("state_job_rank", "f8", 1),  # what its queue orders it by
    ("state_job_home", "i4", 1),  # its kernel queue
    ("state_job_where", "i4", 1),  # the kernel queue its stages wait in, -1 when parked
    ("state_job_ready", "i4", 1),  # first of its stages with a ready task
    ("state_job_used", "i8", 2),  # [J or 1, R] what its tasks and held slots use
    ("state_job_gang", "i4", 1),  # held slots that are idle; -1 not admitted
    ("state_job_evicted", "i4", 1),  # [J or 1] how many of its tasks are about to make way
    # jobs that need what others make
    ("state_job_missing", "i4", 1),  # [J or 1] hard inputs not made
    ("state_job_due", "f8", 1),  # [J or 1] s, once they are
    ("state_due_heap", "i4", 1),  # [J or 1]
    ("state_failing", "i4", 1),  # [J or 1] list of the jobs that fail together
    # stages
    ("state_stage_next", "i4", 1),  # tasks handed out
    ("state_stage_waiting", "i4", 1),  # ready tasks not handed out
    ("state_stage_left", "i4", 1),  # unfinished tasks
    ("state_stage_done", "i1", 1),  # all were finished once
    ("state_stage_done_work", "f8", 1),  # of finished tasks, where seen_s is given
    ("state_stage_barriers", "i4", 1),  # barrier parents not done
    ("state_stage_ready_next", "i4", 1),  # the job's list of ready stages
    ("state_stage_ready_prev", "i4", 1),
    ("state_stage_child", "i4", 1),  # pairing heap
    ("state_stage_sibling", "i4", 1),
    ("state_stage_prev", "i4", 1),
    # tasks of stages with one-to-one parents
    ("state_task_missing", "i4", 1),  # [T or 1] parents' tasks not done
    ("state_task_heap", "i4", 1),  # [T or 1] a binary heap of ready tasks in each stage's stretch
    # tasks that fail, and those whose output is lost
    ("state_task_failed", "i4", 1),  # [T or 1] attempts that have failed
    ("state_task_again", "i1", 1),  # [T or 1] whether it runs again, having been done
    ("state_task_reader", "i4", 1),  # [T or 1] the first that waits for it to do so
    ("state_task_reader_next", "i4", 1),
    ("state_evict_room", "i8", 1),  # [R] of a machine, once some of its tasks have made way
    # queues and organisations
    ("state_queue_root", "i4", 1),  # [Q]
    ("state_queue_used", "i8", 2),  # [Q, R]
    ("state_queue_blocked", "i1", 1),  # 0 no, 1 for room, 2 by its cap
    ("state_queue_blocked_stage", "i4", 1),
    ("state_queue_waiting", "i4", 1),  # stages in the scan list
    ("state_queue_deficit", "f8", 1),  # what it is owed
    ("state_org_used", "i8", 2),  # [O, R]
    ("state_org_freed", "i1", 1),  # [O] it gave something back since the last strict dispatch
    # machines
    ("state_mach_free", "i8", 2),  # [M, R]
    ("state_mach_lost", "i1", 1),  # [M]
    ("state_mach_dirty", "i1", 1),  # freed since the last dispatch; 2: held back in this one
    ("state_dirty", "i4", 1),  # list of them
    # machines that may be overbooked (1 or [1, 1] where nothing can be)
    ("state_mach_rate", "f8", 2),  # [M, R] of a resource's full speed
    ("state_mach_slot", "i4", 1),  # [M] the first of its running tasks
    ("state_mach_touched", "i1", 1),  # [M] something was taken or given since the last placement
    ("state_touched", "i4", 1),  # [M] list of them
    # running tasks
    ("state_slot_task", "i4", 1),  # [S]
    ("state_slot_stage", "i4", 1),
    ("state_slot_machine", "i4", 1),
    ("state_slot_flag", "i1", 1),  # bit 0: among the first k, bit 1: in a held gang slot
    ("state_slot_start", "f8", 1),
    ("state_slot_free", "i4", 1),  # stack
    ("state_slot_next", "i4", 1),  # [S or 1] the tasks of a machine
    ("state_slot_prev", "i4", 1),
    ("state_slot_rate", "f8", 1),  # [S or 1] of full speed
    ("state_slot_left", "f8", 1),  # [S or 1] s at full speed, at state_slot_since
    ("state_slot_since", "f8", 1),
    ("state_slot_end", "f8", 1),  # [S or 1]
    ("state_slot_entry", "f8", 1),  # [S or 1] in the heap, no later than its end; others are stale
    ("state_ended", "i4", 1),  # [S or 1] the tasks that end at one instant
    ("state_fin_time", "f8", 1),  # binary heap by (time, task)
    ("state_fin_slot", "i4", 1),
    # attained-service crossings: an indexed binary heap of jobs by (time, job)
    ("state_service_time", "f8", 1),  # [J or 1]
    ("state_service_heap", "i4", 1),
    ("state_service_pos", "i4", 1),
    # waiting stages in order (skip and pack), gang jobs to look at, held slots
    ("state_scan", "i4", 1),  # [G or 1] the stage at each place, -1 - stage for its hole
    ("state_scan_queue", "i4", 1),
    ("state_scan_rank", "f8", 1),
    ("state_scan_key", "f8", 1),
    ("state_scan_demand", "f8", 2),  # [F, G or 1]
    ("state_scan_at", "i4", 1),  # the place of each stage, -1 for none
    ("state_scan_new", "i1", 1),  # of each stage; see `sim.engine.kernels.scanlist`
    ("state_scan_fresh", "i4", 1),  # list of the stages for which it is not 0
    ("state_scan_found", "i4", 1),  # places whose stages fit the machine that is looked at
    ("state_scan_score", "f8", 1),  # and how well; BLOCK longer
    ("state_scan_room", "f8", 1),  # [BLOCK] the least that they would leave of a resource
    # the best stages for a machine, BUNDLE of them, and the search for a bundle
    ("state_pick_found", "i4", 1),  # which of the found they are
    ("state_pick_stage", "i4", 1),
    ("state_pick_score", "f8", 1),
    ("state_pick_worth", "f8", 1),
    ("state_pick_left", "f8", 1),  # remaining work of its job
    ("state_pick_copies", "i8", 1),  # how many of its tasks count
    ("state_pick_best", "i8", 1),  # how many are picked
    ("state_pick_at", "i8", 1),  # the search's path: a stage
    ("state_pick_now", "i8", 1),  # and how many of its tasks
    ("state_pick_total", "f8", 1),  # score of the stages before
    ("state_pick_rest", "f8", 1),  # and of all tasks from here on
    ("state_pick_per", "f8", 2),  # [BUNDLE, F] the most score a quantum brings from here on
    ("state_pick_least", "i8", 2),  # [BUNDLE, F] the least that one of those asks for
    ("state_pick_room", "i8", 2),  # [BUNDLE + 1, F] what those before leave
    # the tasks on a machine, last started first ([S] where machines overbook, else 1)
    ("state_here_slot", "i4", 1),
    ("state_here_left", "f8", 1),  # s at full speed
    ("state_here_end", "f8", 1),  # from now, s
    ("state_here_order", "i4", 1),  # by end
    ("state_here_free", "i8", 2),  # [R, S or 1] what is free when the first of them have ended
    ("state_here_work", "f8", 1),  # [R] what is left of those that demand it, weighted
    ("state_here_due", "f8", 1),  # [R] and when they end
    ("state_here_rate", "f8", 1),  # [R]
    ("state_gang_list", "i4", 1),
    ("state_gang_listed", "i1", 1),
    ("state_hold_machine", "i4", 1),
    # events for the policy
    ("state_event_kind", "i4", 1),
    ("state_event_row", "i4", 1),
    # results
    ("out_job_submit", "f8", 1),
    ("out_job_start", "f8", 1),
    ("out_job_finish", "f8", 1),
    ("out_job_failed", "i1", 1),
    ("out_task_start", "f8", 1),  # [T or 1]
    ("out_task_finish", "f8", 1),
    ("out_task_machine", "i4", 1),
)

NAMES = tuple(name for name, _, _ in FIELDS)
READ_ONLY = ("w_", "c_")

BLOCK = 64
"""How many places of the list of waiting stages are held against a machine at once."""

# registers of state_f
NOW, TIMER, WORTHS, LEFTS = range(4)
N_F = 4
# registers of p_pack
PACK_REMAINING, PACK_REMOTE, PACK_UNFAIRNESS = range(3)
# registers of state_i: counters
(
    NEXT_JOB,
    N_ARRIVED,
    N_DUE,
    NEXT_OUTAGE,
    JOBS_LEFT,
    N_FIN,
    N_SLOT_FREE,
    N_EVENTS,
    N_DIRTY,
    N_SERVICE,
    N_SCAN,
    N_HOLES,
    N_NEW,
    N_REFUSED,
    SCAN_SHIFTS,
    N_GANG,
    RELEASED,
    IDLE_TICKS,
    N_TOUCHED,
    AT_SPEED,
    # configuration
    FIT,
    SHARE,
    UNIT,
    EVENTS,
    RECORD,
    USAGE,
    HARD,
    SERVICE,
    MOVING,
    TASK_ORDER,
    LIMITS,
    GANGS,
    PER_TASK,
    POOL,
    INPUTS,
    PACED,
    N_RIGID,
    OVERBOOK,
    BUNDLE,
    PRIORITY,
    PREFERS,
    SEEN,
    SCORED,
    REMOTE,
    FAILS,
    EVICTS,
) = range(46)
N_I = 46
# What the configuration registers mean: FIT and SHARE are `sim.engine.plan` codes; UNIT a pool of
# slots; EVENTS the mask subscribed to; RECORD whether task columns are kept; USAGE whether the use
# of queues and jobs is kept; HARD whether organisations have caps; SERVICE whether thresholds on
# attained service exist; MOVING whether some queue's order moves with tasks; TASK_ORDER whether
# p_task_order is given; LIMITS whether run limits and gates may bind; GANGS whether there are
# gang jobs; PER_TASK whether there are one-to-one edges; INPUTS whether some job looks at
# the inputs that others make; PACED whether a running task may
# end at another time than was expected at its start (overbooked or lost machines, evictions,
# failures, slow periods, remote inputs); N_RIGID how many resources can't be overbooked, and
# OVERBOOK whether packing itself does so; BUNDLE
# the size of a bundle; PRIORITY, PREFERS and SEEN whether p_turn_priority, p_turn_prefers and
# p_stage_seen_s are given; SCORED whether packing looks at more than alignment; REMOTE whether
# tasks take longer where their input is remote; FAILS whether attempts fail; EVICTS whether tasks
# make way for those of jobs below their run limit. WORTHS and LEFTS are sums over the tasks placed
# (`sim.engine.plan.packing`).

State = namedtuple("State", NAMES)  # type: ignore[misc]  # the fields are listed once, above


def check(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError unless `arrays` are exactly the fields, each as it was frozen."""
    if tuple(arrays) != NAMES:
        raise ValueError(f"state fields differ: {set(arrays) ^ set(NAMES)}")
    for name, code, ndim in FIELDS:
        a = arrays[name]
        if a.dtype != np.dtype(code) or a.ndim != ndim or not a.flags.c_contiguous:
            raise ValueError(f"{name}: {a.dtype}[{a.ndim}], wanted C-contiguous {code}[{ndim}]")
        if a.flags.writeable == name.startswith(READ_ONLY):
            raise ValueError(f"{name} must be {'read-only' if a.flags.writeable else 'writable'}")


_pack = record("KernelState", FIELDS, READ_ONLY) if JIT else None


def make(arrays: dict[str, NDArray[Any]]) -> Any:
    """Bind `arrays` (see `FIELDS`) into the record that kernels take; nothing is copied."""
    check(arrays)
    return _pack(arrays.values()) if _pack else State(**arrays)
