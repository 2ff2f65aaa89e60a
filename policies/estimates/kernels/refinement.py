"""Refinement of expected durations: the loop over unfinished stages at each event.

The means are those of `policies.estimates.stage_profiles`: levels of groups, from the closest on.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from sim.base.jit import JIT, inlined, jit, part
from sim.base.record import record

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_stage_job", "i4", 1),  # [G]
    ("w_job_stage0", "i8", 1),  # [J+1]
    ("w_size", "i8", 1),  # [G] tasks
    ("w_group", "i8", 2),  # [L, G] group of each stage at each level, -1 for none
    ("w_constants", "f8", 1),  # GUESS, PRIOR_TASKS
    ("w_expected_s", "f8", 1),  # [G] as the plan has it
    ("w_stage_left", "i4", 1),  # [G] unfinished tasks
    ("w_stage_done_work", "f8", 1),  # [G] of finished tasks, s
    ("w_job_left", "i4", 1),  # [J]
    ("w_job_started", "i4", 1),  # [J]
    ("state_mean", "f8", 1),  # [C] of each group, s; NaN for none
    ("state_work", "f8", 1),  # [C] s
    ("state_tasks", "f8", 1),  # [C]
    ("state_runs", "i8", 1),  # [C] finished stages, of groups of the first level
    ("state_i", "i8", 1),  # registers
    ("state_live", "i4", 1),  # [G] unfinished stages of the jobs that have arrived, ascending
    ("state_seen_left", "i4", 1),  # [J] when the job was last refined
    ("state_seen_started", "i4", 1),  # [J]
    ("out_jobs", "i4", 1),  # [J] the jobs to read anew
    ("out_stages", "i4", 1),  # [G] the stages whose expected duration changes
    ("out_expected_s", "f8", 1),  # [G] to that
)

GUESS, PRIOR_TASKS = 0, 1
"""Constants: the duration before any stage has finished, s; the weight of earlier runs (tasks)."""

N_LIVE, N_JOBS, N_STAGES, N_REFINED, ALL = range(5)
"""Registers: lengths of the lists; refined jobs; 1 to return all of these, changed or not."""

Learnt = namedtuple("Learnt", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("LearntStages", FIELDS, ("w_",)) if JIT else None


def make(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Pack arrays, by field, into the record that the kernel takes."""
    return _pack(arrays[name] for name, _, _ in FIELDS) if _pack else Learnt(**arrays)


@jit
def refine(st, rows):
    """Learn from the finished stages; refine jobs. Return how many are to be read anew.

    `rows` are those of a batch of events: jobs that arrive are refined, and all unfinished ones if
    there is a timer, -1. A job is to be read anew if it arrives, or if what is expected of it or
    the number of its tasks that have started or ended has changed since it was.
    """
    _learn(st)
    st.state_i[N_JOBS] = st.state_i[N_STAGES] = st.state_i[N_REFINED] = 0
    is_timer = False
    for i in range(len(rows)):
        if rows[i] < 0:
            is_timer = True
        else:
            _enter(st, rows[i])
    if not is_timer:
        for i in range(len(rows)):
            _refine_job(st, st.w_job_stage0[rows[i]], st.w_job_stage0[rows[i] + 1])
        return st.state_i[N_JOBS]
    i, n_live = 0, st.state_i[N_LIVE]
    while i < n_live:
        i = _refine_live(st, i, n_live)
    return st.state_i[N_JOBS]


@inlined
def _learn(st):
    n_live = 0
    for i in range(st.state_i[N_LIVE]):
        g = st.state_live[i]
        if st.w_stage_left[g] > 0:
            st.state_live[n_live] = g
            n_live += 1
            continue
        for level in range(len(st.w_group)):
            group = st.w_group[level, g]
            if group >= 0:
                st.state_work[group] += st.w_stage_done_work[g]
                st.state_tasks[group] += st.w_size[g]
                st.state_mean[group] = st.state_work[group] / st.state_tasks[group]
        st.state_runs[st.w_group[0, g]] += 1
    st.state_i[N_LIVE] = n_live


@inlined
def _enter(st, j):
    """Add the stages of job `j`, which arrives; it is read anew whatever is expected."""
    st.state_seen_left[j] = -1
    live, n = st.state_live, st.state_i[N_LIVE]
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        i = n
        while i > 0 and live[i - 1] > g:
            live[i] = live[i - 1]
            i -= 1
        live[i] = g
        n += 1
    st.state_i[N_LIVE] = n


@inlined
def _refine_live(st, i, n_live):
    """Refine the job of entry `i` of the unfinished stages; return its first entry behind it."""
    j = st.w_stage_job[st.state_live[i]]
    is_changed = _has_moved(st, j)
    while i < n_live and st.w_stage_job[st.state_live[i]] == j:
        is_changed |= _refine_stage(st, st.state_live[i])
        i += 1
    _list_job(st, j, is_changed)
    return i


@inlined
def _refine_job(st, g0, g1):
    """Refine the job of the stages from `g0` to `g1`, which has arrived."""
    j = st.w_stage_job[g0]
    is_changed = _has_moved(st, j)
    for g in range(g0, g1):
        _refine_stage(st, g)
    _list_job(st, j, is_changed)


@part
def _has_moved(st, j):
    """Tell whether a task of job `j` has started or ended since its last refinement."""
    is_still = st.state_seen_left[j] == st.w_job_left[j]
    is_still &= st.state_seen_started[j] == st.w_job_started[j]
    st.state_seen_left[j] = st.w_job_left[j]
    st.state_seen_started[j] = st.w_job_started[j]
    return not is_still


@part
def _list_job(st, j, is_changed):
    st.state_i[N_REFINED] += 1
    if is_changed or st.state_i[ALL]:
        st.out_jobs[st.state_i[N_JOBS]] = j
        st.state_i[N_JOBS] += 1


@part
def _refine_stage(st, g):
    """Refine the expected duration of the tasks of stage `g`; tell whether it changes."""
    prior_s = st.w_constants[GUESS]
    for level in range(len(st.w_group)):
        group = st.w_group[level, g]
        if group >= 0 and st.state_mean[group] == st.state_mean[group]:  # not NaN
            prior_s = st.state_mean[group]
            break
    n_prior = st.w_constants[PRIOR_TASKS]
    work_s = prior_s * n_prior + st.w_stage_done_work[g]
    expected_s = work_s / (n_prior + (st.w_size[g] - st.w_stage_left[g]))
    if expected_s == st.w_expected_s[g]:
        return False
    n = st.state_i[N_STAGES]
    st.out_stages[n] = g
    st.out_expected_s[n] = expected_s
    st.state_i[N_STAGES] = n + 1
    return True
