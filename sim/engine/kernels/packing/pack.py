"""Packing: each machine takes the waiting tasks that score best on it.

After a dispatch no (waiting stage, machine) pair fits that may start. The next one tries the new
buckets on all machines and the others only on the machines freed since. Of the stages of a bucket
those that start a task are found at the top of its heap.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.batches import begin_batches
from sim.engine.kernels.buckets import end_dispatch, gang_kind, is_listed_before, mark_tried
from sim.engine.kernels.features import BATCHES, GANGS, OVERBOOK, QUOTAS, SCORED, TIERS
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.packing.fitting import (
    alignment,
    drop_capped,
    filter_fitting,
    find_fitting,
    first_tier,
    has_min_room,
    set_min_demand,
)
from sim.engine.kernels.packing.repeats import repeats
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.resources import clear_dirty, retry_machine
from sim.engine.kernels.rigid.gang import admit_waiting, first_gang
from sim.engine.kernels.state import (
    BUCKETS_MADE,
    N_BUCKETS,
    N_DIRTY,
    N_NEW,
    N_REFUSED,
    N_SLOT_FREE,
    OVERBOOKING,
)
from sim.engine.kernels.waiting import precedes

choose_bundle = late("sim.engine.kernels.packing.bundle.choose_bundle", SCORED)
start_bundle = late("sim.engine.kernels.packing.bundle.start_bundle", SCORED)
best_overbooking = late("sim.engine.kernels.packing.overbook.best_overbooking", OVERBOOK)
start_and_charge = late("sim.engine.kernels.packing.score.start_and_charge", OVERBOOK)


@inlined
def dispatch_pack(st):
    """Start all tasks that may start now: on each machine in turn the fitting ones of best score.

    Of the score (`sim.engine.plan.queues`) the alignment is the sum over resources of (free /
    capacity) × (demand / capacity) of the machine, added in the order of the resources.
    """
    while GANGS:
        if QUOTAS:
            note_borrowing(st)
        gang = first_gang(st, -1)
        if gang < 0:
            break
        admit_waiting(st, st.w_stage_job[gang])
    idle = -1
    while idle < 0 or (st.state_i[N_DIRTY] > 0 and st.state_i[N_SLOT_FREE] < idle):
        idle = st.state_i[
            N_SLOT_FREE
        ]  # a queue for which room was kept may have found it elsewhere
        _pack(st)


@part
def _pack(st):
    if BATCHES:
        begin_batches(st)  # so that a round that starts anything takes a slot
    if GANGS:
        _pass_over_gangs(st)
    _sort_dirty(st)
    machine, i, n_made = -1, 0, -1
    while st.state_i[N_BUCKETS] > 0:
        if st.state_i[BUCKETS_MADE] != n_made:
            n_made = st.state_i[BUCKETS_MADE]
            set_min_demand(st)
        machine += 1
        if st.state_i[N_NEW] == st.state_i[N_REFUSED]:  # go on to the next freed machine
            while i < st.state_i[N_DIRTY] and st.state_dirty[i] < machine:
                i += 1
            if i == st.state_i[N_DIRTY]:
                break
            machine = st.state_dirty[i]
        if machine == st.state_mach_free.shape[0]:
            break
        if st.state_mach_lost[machine]:
            continue
        is_freed = st.state_mach_dirty[machine] != 0
        if not is_freed and not has_min_room(st, machine):
            continue
        _fill(st, machine, is_freed)
        if OVERBOOK and st.state_i[OVERBOOKING] and is_freed:
            _overbook(st, machine)
    end_dispatch(st)
    clear_dirty(st)


@inlined
def _pass_over_gangs(st):
    """Mark waiting gangs as tried: none has all the room that it needs."""
    for position in range(st.state_i[N_NEW] - 1, -1, -1):
        if st.state_bucket_kind[position] == gang_kind(st):
            mark_tried(st, position)


@inlined
def _fill(st, machine, is_freed):
    """Fill `machine` from all buckets if it was freed since the last dispatch, or from new ones."""
    n_made, n = -1, 0
    while True:
        if st.state_i[BUCKETS_MADE] == n_made:
            n = filter_fitting(st, machine, n)
        else:
            n_made = st.state_i[BUCKETS_MADE]
            end = st.state_i[N_BUCKETS if is_freed else N_NEW]
            n = find_fitting(st, machine, st.state_i[N_REFUSED], end)
        n = drop_capped(st, machine, n)
        if n == 0 or not _start_best(st, machine, first_tier(st, n) if TIERS else n):
            return


@part
def _start_best(st, machine, n):
    """Start the best of the `n` fitting buckets on `machine`; tell whether anything started."""
    if QUOTAS:
        note_borrowing(st)
    if SCORED:
        k = choose_bundle(st, machine, n)
        if k < 0:
            retry_machine(st, machine)
            return False
        start_bundle(st, machine, n, k)
        return True
    best, best_queue, best_score = -1, -1, 0.0
    for i in range(n):
        position = st.state_bucket_position[st.state_match[i]]
        g, queue = st.state_bucket_root[position], st.state_bucket_queue[position]
        if best >= 0 and queue != best_queue and precedes(st, best_queue, queue):
            continue
        score = alignment(st, machine, position)
        if (
            best < 0
            or queue != best_queue
            or score > best_score
            or (score == best_score and is_listed_before(st, g, best))
        ):
            best, best_queue, best_score = g, queue, score
    count = repeats(st, machine, n, best) if BATCHES else 1
    start_task(st, best, machine, False, count)
    return True


@part
def _overbook(st, machine):
    """Start tasks on the full `machine` while overbooking gains."""
    while True:
        if QUOTAS:
            note_borrowing(st)
        g = best_overbooking(st, machine)
        if g < 0:
            return
        start_and_charge(st, g, machine, 1)


@inlined
def _sort_dirty(st):
    dirty = st.state_dirty
    for i in range(1, st.state_i[N_DIRTY]):
        machine, k = dirty[i], i
        while k > 0 and dirty[k - 1] > machine:
            dirty[k] = dirty[k - 1]
            k -= 1
        dirty[k] = machine
