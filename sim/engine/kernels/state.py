"""The kernel's state, one record of arrays.

FIELDS is the one table of what each array is, how long, and what it begins as. Prefixes say who
writes: ``w_`` the workload and ``c_`` the cluster (nobody), ``p_`` the policy, ``state_`` and
``out_`` the kernel. A shape is given by what an axis counts: J jobs, G stages, T tasks, E edges, R
resources, M machines, F of the resources looked at when it is decided what fits, Q kernel queues
(organisations × the queues of the policy), O organisations, L the queues of the policy, S slots for
running tasks, N entries of the heap of their ends, H held slots of gangs, B tasks of a bundle, V
events between two callbacks, K types of tasks that may come next, Y kinds of stages, P steps of a
plan, BLOCK; * is any number. ``J+1`` is one more, and ``J:GANGS`` is J where there are GANGS, else
1: a feature, or a condition that `sim.engine.layout` knows.

With the JIT the record is a pointer to a table of arrays (`sim.base.record.record`): that alone
travels between the helpers, where a namedtuple of arrays would copy ninety of them at every call.
Without the JIT a namedtuple of the same names serves. Every field is an array, so that both forms
can be written through, frozen in dtype, layout and mutability.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import JIT
from sim.base.record import record

GIVEN = None
"""The beginning of a field that `sim.engine.layout` fills, or that is there before."""

FIELDS: tuple[tuple[str, str, str, float | None], ...] = (
    # the workload, read-only
    ("w_job_submit", "f8", "J", GIVEN),  # s
    ("w_job_stage0", "i8", "J+1", GIVEN),  # first stage of each job
    ("w_job_min_tasks", "i4", "J", GIVEN),  # gang size, 0 for none
    ("w_job_org", "i4", "J", GIVEN),  # organisation
    ("w_job_work", "f8", "J", GIVEN),  # task seconds
    ("w_job_slot", "i8", "J:GANGS, R", GIVEN),  # what a held gang slot holds
    ("w_job_hold0", "i8", "J+1:GANGS", GIVEN),  # first entry of state_hold_machine
    ("w_job_mode", "i1", "J:INPUTS", GIVEN),  # 0 looks at no inputs, 1 blind, 2 polls
    ("w_job_poll_lag", "f8", "J:INPUTS", GIVEN),  # s
    ("w_input0", "i8", "J+1:INPUTS", GIVEN),  # first of the jobs that need what a job makes
    ("w_input_reader", "i4", "*", GIVEN),
    ("w_stage_job", "i4", "G", GIVEN),
    ("w_stage_task0", "i8", "G+1", GIVEN),
    ("w_stage_demand", "i8", "G:DEMANDS, R", GIVEN),  # quanta; one row for a pool of slots
    # the same, but below all room where a resource may be overbooked
    ("w_stage_fit", "i8", "G:DEMANDS, R", GIVEN),
    ("w_stage_allowed", "i8", "G:CHOOSES", GIVEN),  # classes of machines it may run on, as bits
    ("w_stage_kind", "i4", "G:CHOOSES", GIVEN),  # those of a kind are alike in all that is scored
    # bit 0: its ready tasks are a heap, bit 1: has one-to-one children
    ("w_stage_o2o", "i1", "G", GIVEN),
    ("w_stage_home", "i4", "G", GIVEN),  # machine of its first task's input, -1 for none
    ("w_stage_remote_factor", "f8", "G", GIVEN),
    ("w_task_duration", "f8", "T", GIVEN),  # s
    # attempts that fail before the task succeeds
    ("w_attempt0", "i8", "T+1:FAILS", GIVEN),
    ("w_attempt_s", "f8", "*", GIVEN),  # after how long
    ("w_attempt_lost", "i4", "*", GIVEN),  # the task whose output it finds lost, -1 for none
    ("w_edge0", "i8", "G+1", GIVEN),
    ("w_edge_child", "i4", "E", GIVEN),
    ("w_edge_kind", "i1", "E", GIVEN),  # 0 barrier, 1 one-to-one
    # machines lost and back, by time
    ("w_outage_time", "f8", "*", GIVEN),
    ("w_outage_machine", "i4", "*", GIVEN),
    ("w_outage_back", "i1", "*", GIVEN),
    # the cluster, read-only
    # resources in the order: those that can't be overbooked, fungible ones that are looked at
    # when it is decided what fits (F of them with the former), the other fungible ones
    ("c_total", "i8", "R", GIVEN),  # quanta
    ("c_scale", "f8", "R", GIVEN),  # 1 / total
    ("c_dot", "f8", "M, F", GIVEN),  # 1 / capacity², of each machine
    ("c_capacity", "i8", "M:VARIABLE_ENDS, R", GIVEN),  # quanta
    ("c_most", "f8", "R", GIVEN),  # 1 / the most of it that a machine has
    ("c_mach_class", "i8", "M:CHOOSES", GIVEN),  # the bit of its class
    ("c_mach_device0", "i8", "M+1:CHOOSES", GIVEN),  # its first device
    ("c_speed_time", "f8", "*", GIVEN),  # how fast everything runs, from each time on
    ("c_speed", "f8", "*", GIVEN),
    ("c_org_cap", "i8", "O, R", GIVEN),  # hard caps
    ("c_org_weight", "f8", "O", GIVEN),
    # the policy's columns
    ("p_job_key", "f8", "J", GIVEN),
    ("p_job_queue", "i4", "J", GIVEN),
    ("p_job_run_limit", "i4", "J", GIVEN),
    ("p_job_start_gate", "i4", "J", GIVEN),
    ("p_job_overflow_queue", "i4", "J", GIVEN),
    ("p_job_notify_at", "i4", "J", GIVEN),
    ("p_job_service_at", "f8", "J", GIVEN),
    ("p_job_expected_s", "f8", "J", GIVEN),
    ("p_job_fill_key", "f8", "J", GIVEN),
    ("p_stage_key", "f8", "G", GIVEN),
    ("p_stage_weight", "f8", "G", GIVEN),
    ("p_task_order", "i4", "T:TURNS", GIVEN),  # task of each turn
    ("p_task_turn", "i4", "T:TURNS", GIVEN),  # turn of each task
    ("p_stage_cost", "f8", "G", GIVEN),
    ("p_stage_expected_s", "f8", "G", GIVEN),
    ("p_turn_priority", "f8", "T:PRIORITY", GIVEN),  # of the task of each turn
    ("p_turn_prefers", "i4", "T:PREFERS", GIVEN),
    ("p_pack", "f8", "*", GIVEN),  # PACK_REMAINING and so on
    ("p_queue_weight", "f8", "L", GIVEN),
    ("p_queue_tier", "i4", "L", GIVEN),
    ("p_queue_order", "i4", "L", GIVEN),
    ("p_queue_demote_at", "f8", "L", GIVEN),
    ("p_queue_demote_to", "i4", "L", GIVEN),
    ("p_mix_demand", "i8", "K, *", GIVEN),  # of the types of tasks that may come next, quanta
    ("p_mix_allowed", "i8", "K", GIVEN),
    ("p_mix_weight", "f8", "K", GIVEN),
    # registers
    ("state_f", "f8", "*", GIVEN),  # NOW, TIMER, WORTHS, LEFTS
    ("state_i", "i8", "*", GIVEN),  # counters, then the configuration
    # jobs
    ("state_job_turn", "i4", "J", GIVEN),  # how many were submitted before it; -1 not submitted
    ("state_job_left", "i4", "J", GIVEN),  # unfinished tasks
    ("state_job_started", "i4", "J", GIVEN),
    ("state_job_running", "i4", "J", GIVEN),
    ("state_job_first", "i4", "J", 0),  # how many of the started count among its first k
    ("state_job_done", "i4", "J", GIVEN),
    ("state_job_notify", "i4", "J", 0),  # of its first k tasks, how many have ended
    ("state_job_done_work", "f8", "J", GIVEN),
    # seconds of those of its first k tasks that have ended
    ("state_job_first_work", "f8", "J", GIVEN),
    ("state_job_remaining", "f8", "J", GIVEN),
    ("state_job_attained", "f8", "J", 0),  # at state_job_since
    ("state_job_since", "f8", "J", 0),
    ("state_job_rank", "f8", "J", 0),  # what its queue orders it by
    ("state_job_home", "i4", "J", 0),  # its kernel queue
    ("state_job_where", "i4", "J", -1),  # the kernel queue its stages wait in, -1 when parked
    ("state_job_ready", "i4", "J", -1),  # first of its stages with a ready task
    ("state_job_used", "i8", "J:USAGE, R", 0),  # what its tasks and held slots use
    ("state_job_gang", "i4", "J:GANGS", -1),  # held slots that are idle; -1 not admitted
    ("state_job_evicted", "i4", "J:EVICTS", 0),  # how many of its tasks are about to make way
    # jobs that need what others make
    ("state_job_missing", "i4", "J:INPUTS", GIVEN),  # hard inputs not made
    ("state_job_due", "f8", "J:INPUTS", 0),  # s, once they are
    ("state_due_heap", "i4", "J:INPUTS", 0),
    ("state_failing", "i4", "J:INPUTS", 0),  # list of the jobs that fail together
    # stages
    ("state_stage_next", "i4", "G", 0),  # tasks handed out
    ("state_stage_waiting", "i4", "G", 0),  # ready tasks not handed out
    ("state_stage_left", "i4", "G", GIVEN),  # unfinished tasks
    ("state_stage_done", "i1", "G", 0),  # all were finished once
    ("state_stage_done_work", "f8", "G", GIVEN),  # of finished tasks, where expected_s is given
    ("state_stage_barriers", "i4", "G", GIVEN),  # barrier parents not done
    ("state_stage_ready_next", "i4", "G", -1),  # the job's list of ready stages
    ("state_stage_ready_prev", "i4", "G", -1),
    ("state_stage_child", "i4", "G", -1),  # pairing heap
    ("state_stage_sibling", "i4", "G", -1),
    ("state_stage_prev", "i4", "G", -1),
    # tasks of stages with one-to-one parents
    ("state_task_missing", "i4", "T:HEAPS", GIVEN),  # parents' tasks not done
    ("state_task_heap", "i4", "T:HEAPS", 0),  # a binary heap of ready tasks in each stage's stretch
    # tasks that fail, and those whose output is lost
    ("state_task_failed", "i4", "T:FAILS", 0),  # attempts that have failed
    ("state_task_again", "i1", "T:FAILS", 0),  # whether it runs again, having been done
    ("state_task_reader", "i4", "T:FAILS", -1),  # the first that waits for it to do so
    ("state_task_reader_next", "i4", "T:FAILS", -1),
    ("state_evict_room", "i8", "R", 0),  # of a machine, once some of its tasks have made way
    # queues and organisations
    ("state_queue_root", "i4", "Q", -1),
    ("state_queue_used", "i8", "Q, R", 0),
    ("state_queue_blocked", "i1", "Q", 0),  # 0 no, 1 for room, 2 by its cap
    ("state_queue_blocked_stage", "i4", "Q", -1),
    ("state_queue_waiting", "i4", "Q", 0),  # stages in the scan list
    ("state_queue_deficit", "f8", "Q", 0),  # what it is owed
    ("state_org_used", "i8", "O, R", 0),
    ("state_org_freed", "i1", "O", 0),  # it gave something back since the last strict dispatch
    # machines
    ("state_mach_free", "i8", "M, R", GIVEN),
    ("state_mach_lost", "i1", "M", 0),
    ("state_mach_dirty", "i1", "M", 0),  # freed since the last dispatch; 2: held back in this one
    ("state_dirty", "i4", "M", 0),  # list of them
    ("state_mach_version", "i8", "M:CHOOSES", 1),  # how often something was taken or given there
    ("state_device_free", "i8", "*", GIVEN),  # quanta
    ("state_score", "f8", "Y, M:SCORES", 0),  # of each kind of stage, at that version
    ("state_score_version", "i8", "Y, M:SCORES", 0),
    # machines that may be overbooked
    ("state_mach_rate", "f8", "M:VARIABLE_ENDS, R", 1.0),  # of a resource's full speed
    ("state_mach_slot", "i4", "M:VARIABLE_ENDS", -1),  # the first of its running tasks
    # something was taken or given since the last placement
    ("state_mach_touched", "i1", "M:VARIABLE_ENDS", 0),
    ("state_touched", "i4", "M:VARIABLE_ENDS", 0),  # list of them
    # running tasks
    ("state_slot_task", "i4", "S", 0),
    ("state_slot_stage", "i4", "S", 0),
    ("state_slot_machine", "i4", "S", 0),
    ("state_slot_flag", "i1", "S", 0),  # bit 0: among the first k, bit 1: in a held gang slot
    ("state_slot_devices", "i8", "S:CHOOSES", 0),  # of its machine, as bits
    ("state_slot_start", "f8", "S", 0),
    ("state_slot_free", "i4", "S", GIVEN),  # stack
    ("state_slot_next", "i4", "S:VARIABLE_ENDS", -1),  # the tasks of a machine
    ("state_slot_prev", "i4", "S:VARIABLE_ENDS", -1),
    ("state_slot_rate", "f8", "S:VARIABLE_ENDS", 1.0),  # of full speed
    ("state_slot_left", "f8", "S:VARIABLE_ENDS", 0),  # s at full speed, at state_slot_since
    ("state_slot_since", "f8", "S:VARIABLE_ENDS", 0),
    ("state_slot_end", "f8", "S:VARIABLE_ENDS", -1.0),
    # in the heap, no later than its end; others are stale
    ("state_slot_entry", "f8", "S:VARIABLE_ENDS", -1.0),
    ("state_ended", "i4", "S:VARIABLE_ENDS", 0),  # the tasks that end at one instant
    ("state_fin_time", "f8", "N", 0),  # binary heap by (time, task)
    ("state_fin_slot", "i4", "N", 0),
    # attained-service crossings: an indexed binary heap of jobs by (time, job)
    ("state_service_time", "f8", "J:SERVICE", 0),
    ("state_service_heap", "i4", "J:SERVICE", 0),
    ("state_service_pos", "i4", "J:SERVICE", -1),
    # waiting stages in order (skip and pack), gang jobs to look at, held slots
    ("state_scan", "i4", "G:SCAN", -1),  # the stage at each place, -1 - stage for its hole
    ("state_scan_queue", "i4", "G:SCAN", 0),
    ("state_scan_rank", "f8", "G:SCAN", 0),
    ("state_scan_key", "f8", "G:SCAN", 0),
    ("state_scan_demand", "f8", "F, G:SCAN", 0),
    ("state_scan_at", "i4", "G:SCAN", -1),  # the place of each stage, -1 for none
    ("state_scan_new", "i1", "G:SCAN", 0),  # of each stage; see `sim.engine.kernels.scanlist`
    ("state_scan_fresh", "i4", "G:SCAN", 0),  # list of the stages for which it is not 0
    # places whose stages fit the machine that is looked at
    ("state_scan_found", "i4", "G:SCAN", 0),
    ("state_scan_score", "f8", "G+BLOCK:SCAN", 0),  # and how well; BLOCK longer
    ("state_scan_room", "f8", "BLOCK", 0),  # the least that they would leave of a resource
    # the best stages for a machine, B of them, and the search for a bundle
    ("state_pick_found", "i4", "B", 0),  # which of the found they are
    ("state_pick_stage", "i4", "B", 0),
    ("state_pick_score", "f8", "B", 0),
    ("state_pick_worth", "f8", "B", 0),
    ("state_pick_left", "f8", "B", 0),  # remaining work of its job
    ("state_pick_copies", "i8", "B", 0),  # how many of its tasks count
    ("state_pick_best", "i8", "B", 0),  # how many are picked
    ("state_pick_at", "i8", "B", 0),  # the search's path: a stage
    ("state_pick_now", "i8", "B", 0),  # and how many of its tasks
    ("state_pick_total", "f8", "B+1", 0),  # score of the stages before
    ("state_pick_rest", "f8", "B+1", 0),  # and of all tasks from here on
    ("state_pick_per", "f8", "B, F", 0),  # the most score a quantum brings from here on
    ("state_pick_least", "i8", "B, F", 0),  # the least that one of those asks for
    ("state_pick_room", "i8", "B+1, F", 0),  # what those before leave
    # the tasks on a machine, last started first
    ("state_here_slot", "i4", "S:VARIABLE_ENDS", 0),
    ("state_here_left", "f8", "S:VARIABLE_ENDS", 0),  # s at full speed
    ("state_here_end", "f8", "S:VARIABLE_ENDS", 0),  # from now, s
    ("state_here_order", "i4", "S:VARIABLE_ENDS", 0),  # by end
    (
        "state_here_free",
        "i8",
        "R, S:VARIABLE_ENDS",
        0,
    ),  # free once the first have ended
    ("state_here_work", "f8", "R", 0),  # what is left of those that demand it, weighted
    ("state_here_due", "f8", "R", 0),  # and when they end
    ("state_here_rate", "f8", "R", 1.0),
    ("state_gang_list", "i4", "J:GANGS", 0),
    ("state_gang_listed", "i1", "J:GANGS", 0),
    ("state_hold_machine", "i4", "H", 0),
    # reservations: what is free from each time on, where jobs wait in order, which run
    ("state_step_time", "f8", "P:RESERVED", 0),
    ("state_step_free", "i8", "P:RESERVED", 0),
    ("state_job_reserved", "f8", "J:RESERVED", nan),  # its start, s; NaN for none
    ("state_job_place", "i4", "J:RESERVED", 0),  # 1 is the first; 0 while nothing is planned
    ("state_in_order", "i4", "J:RESERVED", 0),
    ("state_runs", "i4", "J:RESERVED", 0),  # list of the jobs that run, by expected end
    # events for the policy
    ("state_event_kind", "i4", "V", 0),
    ("state_event_row", "i4", "V", 0),
    # results
    ("out_job_submit", "f8", "J", GIVEN),
    ("out_job_start", "f8", "J", GIVEN),
    ("out_job_finish", "f8", "J", GIVEN),
    ("out_job_failed", "i1", "J", GIVEN),
    ("out_task_start", "f8", "T:RECORD", nan),
    ("out_task_finish", "f8", "T:RECORD", nan),
    ("out_task_machine", "i4", "T:RECORD", -1),
    ("out_task_devices", "i8", "T:DEVICES", 0),
)


NAMES = tuple(name for name, _, _, _ in FIELDS)
READ_ONLY = ("w_", "c_")

BLOCK = 64
"""How many places of the list of waiting stages are held against a machine at once."""

# registers of state_f
NOW, TIMER, WORTHS, LEFTS = range(4)
# registers of p_pack
PACK_REMAINING, PACK_REMOTE, PACK_UNFAIRNESS, PACK_ORDER = range(4)
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
    N_STEPS,
    N_RUNS,
    # configuration
    SHARE,
    UNIT,
    EVENTS,
    RECORD,
    HARD,
    TASK_ORDER,
    PER_TASK,
    N_RIGID,
    BUNDLE,
    PRIORITY,
    PREFERS,
    SEEN,
    REMOTE,
    FAILS,
    OVERBOOKS,
    MAKES_WAY,
    REBASED,
    PENDING,
    ALIGNED,
    FIRST_ENDED,
    RESERVATIONS,
    PICKY,
    DEVICE,
    PER_DEVICE,
    MACHINE_CHOICE,
    DEVICE_CHOICE,
    KEEPS_SCORES,
) = range(49)
N_I = 49
# What the configuration registers mean: SHARE is a `sim.engine.plan` code; UNIT a pool of slots;
# EVENTS the mask subscribed to; RECORD whether task columns are kept; HARD whether organisations
# have caps; TASK_ORDER whether p_task_order is given; PER_TASK whether there are one-to-one edges;
# N_RIGID how many resources can't be overbooked; BUNDLE the size of a bundle; PRIORITY, PREFERS and
# SEEN whether p_turn_priority, p_turn_prefers and p_stage_expected_s are set; REMOTE whether tasks
# take longer where their input is remote; FAILS whether attempts fail; OVERBOOKS and MAKES_WAY
# whether machines are overbooked and tasks evicted, in a variant that can; REBASED whether
# p_turn_priority counts tasks of what is left of a job; PENDING whether state_job_remaining is of
# the tasks that have not started; ALIGNED whether alignment counts in scores; FIRST_ENDED whether a
# job's first k tasks are those to end; RESERVATIONS for how many jobs room is reserved; PICKY
# whether tasks ask for classes of machines or take devices; DEVICE the resource that comes in
# devices, -1 for none, and PER_DEVICE the quanta of one; MACHINE_CHOICE and DEVICE_CHOICE are
# `sim.engine.plan.choice` codes, KEEPS_SCORES whether there is room for scores. What costs more
# than a look at a register is a feature (`if GANGS:`). WORTHS and LEFTS are sums over the tasks
# placed (`sim.engine.plan.queues`).

State = namedtuple("State", NAMES)  # type: ignore[misc]  # the fields are listed once, above


def check(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless `arrays` are exactly the fields, each as it was frozen."""
    if tuple(arrays) != NAMES:
        raise ValueError(f"state fields differ: {set(arrays) ^ set(NAMES)}")
    for name, code, dims, _ in FIELDS:
        a, ndim = arrays[name], n_dims(dims)
        if a.dtype != np.dtype(code) or a.ndim != ndim or not a.flags.c_contiguous:
            raise ValueError(f"{name}: {a.dtype}[{a.ndim}], wanted C-contiguous {code}[{ndim}]")
        if a.flags.writeable == name.startswith(READ_ONLY):
            raise ValueError(f"{name} must be {'read-only' if a.flags.writeable else 'writable'}")


def n_dims(dims: str) -> int:
    """Return how many axes a field has."""
    return dims.count(",") + 1


_TYPES = tuple((name, code, n_dims(dims)) for name, code, dims, _ in FIELDS)
_pack = record("KernelState", _TYPES, READ_ONLY) if JIT else None


def make(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Bind `arrays` into the record that kernels take; nothing is copied."""
    check(arrays)
    return _pack(arrays.values()) if _pack else State(**arrays)
