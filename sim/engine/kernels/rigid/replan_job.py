"""Periodic planning: nodes for one job, now or as early as possible.

With flavors (`sim.engine.kernels.flavors`) a job is tried on the nodes of one after the other, of
those whose quotas allow it now. It takes the first in which it may start now; else the one in which
it would start first, of equals the first.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import PASSES, WITHIN
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import FLAVORS, PREEMPTS, WINDOWS
from sim.engine.kernels.flavors import NONE, open_all, open_rigid
from sim.engine.kernels.resources import is_other_flavor
from sim.engine.kernels.rigid.replan_components import (
    choose_together,
    expected_together,
    may_fit_alone,
)
from sim.engine.kernels.rigid.replan_ends import (
    begin_ends,
    choose_after,
    expected_start,
    list_gone,
    may_start_by,
    note_preemptor,
)
from sim.engine.kernels.rigid.replan_nodes import (
    NEVER,
    allow_usable,
    avoid_completing,
    choose_nodes,
    drop_closed,
    is_completing,
    is_within_cap,
    job_width,
    limit_s,
    list_room,
    may_fit,
    over_with_nodes,
)
from sim.engine.kernels.rigid.replan_registers import BY_PREEMPTING, WINDOW
from sim.engine.kernels.rigid.replan_table import allow_unreserved, begin_search, is_reserved
from sim.engine.kernels.state import HARD_CAPS

PASSED, BLOCKED, WAITS, FITS = range(4)
"""Others pass a job; it waits for its usable nodes, as it exceeds a cap that blocks, or for want of
room; or it has nodes to start on."""


@part
def choose_now(st, now, j, over):
    """Choose nodes for job `j` to start now, in its first flavor with room; tell if it fits.

    If not, the usable nodes are those that it waits for. `over`: what it is of its caps.
    """
    outcome = PASSED
    st.state_node_usable[:] = 0
    i = open_rigid(st, j, NONE) if FLAVORS else 0
    while i != NONE and outcome != FITS:
        outcome = max(outcome, _choose_open(st, now, j, over))
        i = open_rigid(st, j, i) if FLAVORS else NONE
    if FLAVORS:
        open_all(st)
    return outcome


@part
def _choose_open(st, now, j, over):
    """Choose open nodes for job `j` to start now; add those that it waits for to the usable."""
    allowed, usable = st.state_node_allowed, st.state_node_usable
    if over == WITHIN and st.state_i[HARD_CAPS] and not is_within_cap(st, j):
        return PASSED
    allow_usable(st, j, False)
    if WINDOWS:
        drop_closed(st, j, now, now)
    for node in range(len(usable)):
        usable[node] |= allowed[node]
    if WINDOWS:
        drop_closed(st, j, now, now + limit_s(st, j))
    for node in range(len(allowed)):
        allowed[node] &= (st.state_node_completing[node] == 0) & (st.state_node_barred[node] == 0)
    if over != WITHIN:
        return BLOCKED
    if not choose_allowed(st, j):
        return WAITS
    over = over_with_nodes(st, j)
    if FLAVORS and over == PASSES:
        for node in range(len(usable)):
            usable[node] &= is_other_flavor(st, node)
    if over == PASSES:
        return PASSED
    return FITS if over == WITHIN else BLOCKED


@part
def choose_allowed(st, j):
    """Choose allowed nodes for job `j` to start now; False if it does not fit them."""
    if not may_fit(st, j):
        return False
    if is_searched(st, j):
        return choose_together(st, j, st.state_node_now, True)
    if list_room(st, j) < job_width(st, j):
        return False
    choose_nodes(st, j, job_width(st, j))
    return True


@part
def choose_unplanned(st, now, j):
    """Choose nodes for job `j` to start now, whatever is planned for others; False for none."""
    fits = False
    i = open_rigid(st, j, NONE) if FLAVORS else 0
    while i != NONE and not fits:
        allow_usable(st, j, False)
        if WINDOWS:
            drop_closed(st, j, now, now + limit_s(st, j))
        fits = choose_allowed(st, j)
        i = open_rigid(st, j, i) if FLAVORS else NONE
    if FLAVORS:
        open_all(st)
    return fits


@part
def may_start(st, now, j):
    """Tell whether job `j` may start now on nodes that are not reserved; if not, it can't."""
    fits = False
    i = open_rigid(st, j, NONE) if FLAVORS else 0
    while i != NONE and not fits:
        fits = _may_start_open(st, now, j)
        i = open_rigid(st, j, i) if FLAVORS else NONE
    if FLAVORS:
        open_all(st)
    return fits


@part
def _may_start_open(st, now, j):
    if not may_fit(st, j):
        return False
    begin_search(st)
    allow_unreserved(st, j, now, now, now + limit_s(st, j))
    if is_searched(st, j):
        return may_fit_alone(st, j)  # it may fit fewer nodes where it does not fit more
    return list_room(st, j) >= job_width(st, j)


@part
def plan_job(st, now, j, may_wait):
    """Choose nodes for job `j`; return its planned start, NEVER for none, and if it was tried."""
    if not FLAVORS:
        return _plan_open(st, now, j, may_wait)
    best, earliest, was_tried = NONE, NEVER, False
    i = open_rigid(st, j, NONE)
    while i != NONE and earliest != now:
        start, is_tried = _plan_open(st, now, j, may_wait)
        was_tried |= is_tried
        if start == now or (start != NEVER and (best == NONE or start < earliest)):
            best, earliest = i, start
        i = open_rigid(st, j, i)
    if best != NONE and earliest != now:
        i = open_rigid(st, j, NONE)
        while i != best:
            i = open_rigid(st, j, i)
        _plan_open(st, now, j, may_wait)
    open_all(st)
    return earliest, was_tried


@part
def _plan_open(st, now, j, may_wait):
    """Choose open nodes for job `j`, as `plan_job`; to start now, those that complete no job."""
    start, was_tried = _plan(st, now, j, may_wait)
    if start == now:
        if not is_searched(st, j):
            avoid_completing(st, j)
        if over_with_nodes(st, j) != WITHIN:
            start = NEVER
    return start, was_tried


@part
def _plan(st, now, j, may_wait):
    """Choose open nodes for job `j`, among all, as `plan_job`."""
    limit = limit_s(st, j)
    later, was_tried = now, False
    if st.state_i[HARD_CAPS] and not is_within_cap(st, j):
        return NEVER, was_tried
    several = is_searched(st, j)
    if PREEMPTS:
        list_gone(st, j)
    begin_ends(st, j)
    begin_search(st)
    while True:
        begin = later
        later = allow_unreserved(st, j, now, begin, max(begin, now) + limit)
        may_retry = later > 0 and may_wait
        if not (was_tried and may_retry) and not st.state_node_allowed.any():
            if may_retry:
                continue
            return NEVER, was_tried
        was_tried = True
        if may_retry and not may_start_by(st, j, later):
            continue
        start, n_ended = _look_for_start(st, now, j, may_wait)
        if start == NEVER:
            if may_retry:
                continue
            return NEVER, was_tried
        start = max(start, begin)
        if PREEMPTS and st.state_replan[BY_PREEMPTING] and begin <= now:
            if not several:
                choose_after(st, j, n_ended)
            if not is_completing(st):
                note_preemptor(st, j)
        if start == now:
            if not several:
                choose_after(st, j, n_ended)
            if not is_completing(st):
                return now, was_tried
            start = now + 1
            later = 0
        if not may_wait:
            return NEVER, was_tried
        if 0 < later < start:
            continue
        if start > now + st.p_replan[WINDOW]:
            return NEVER, was_tried
        if not several:
            choose_after(st, j, n_ended)
        if not is_reserved(st, start, start + limit):
            return start, was_tried
        later = start


@inlined
def _look_for_start(st, now, j, may_wait):
    """Return when job `j` could start, as running jobs end, and how many of them end first."""
    st.state_replan[BY_PREEMPTING] = 0
    if is_searched(st, j):
        return expected_together(st, now, j, may_wait), 0
    return expected_start(st, now, j, may_wait)
