"""Record of jobs, associations and the tree of accounts, for the kernels of priorities."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import JIT
from sim.base.record import record

# w_setting
WEIGHT_AGE, MAX_AGE, WEIGHT_FAIR_SHARE, PERIOD, DECAY = range(5)
N_SETTINGS = 5

# state_f: time of the last calculation, s; the last period that decayed usage, s, and its factor;
# time of the next calculation that an order needs, s; time before which a job has started that
# counts as started, s: inf, except while deferred ends are processed: then their time
AT, LAST_PERIOD, LAST_FACTOR, NEXT, SEEN = range(5)

# state_i
(
    FAIR_TREE,  # setting: Fair Tree, not the classic factor
    RIGID,  # setting: each job is one stage and a gang of all its tasks, and nothing can fail
    N_PRESENT,
    N_QUEUE,
    N_CALCULATED,  # number of the last calculation; the first is number 0, at 0 s
    IS_STALE,  # keys of waiting jobs were calculated since the last call
    LAGS,  # setting: tasks start later than they are placed, and a job's start may be forgotten
) = range(7)

FIELDS: tuple[tuple[str, str, str], ...] = (
    ("w_setting", "f8", "5"),
    # jobs
    ("w_start", "f8", "J"),  # s, NaN before it: a live view
    ("w_done_work", "f8", "J"),  # task seconds: a live view
    ("w_association", "i4", "J"),
    ("w_cpus", "f8", "J"),  # of a gang, or of a task of another job
    ("w_is_gang", "i1", "J"),
    ("w_tier_key", "f8", "J"),  # smallest first, and above any priority
    ("w_constant", "f8", "J,3"),  # size, partition and QOS, each times its weight
    ("state_since", "f8", "J"),  # from which on its age counts: it came, and was eligible, s
    ("state_key", "f8", "J"),  # as last calculated, smallest first
    ("state_counted", "f8", "J"),  # task seconds of jobs that are no gangs, which usage has
    ("state_present", "i4", "J"),  # jobs that wait or run, and some that ended, as submitted
    ("state_queue", "i4", "J"),  # jobs that wait, and some that did; if rigid, in order
    ("state_listed", "i4", "J"),  # some jobs, and what each added to usage, CPU seconds
    ("state_added", "f8", "J"),
    ("state_gone", "i1", "J"),  # has ended
    ("out_key", "f8", "J"),  # the plan's keys
    ("out_changed", "i4", "J"),  # the jobs whose key is another now
    # associations, each a leaf of the tree of accounts, and its nodes
    ("w_share", "f8", "N"),  # of its level
    ("w_parent", "i8", "N"),
    ("w_level_node", "i8", "M"),  # all nodes but the root, the deepest first
    ("w_path", "i8", "A,D"),  # nodes from below the root to the association; -1 after its own
    ("w_depth", "i8", "A"),
    ("w_root_share", "f8", "A"),  # of all shares
    ("state_usage", "f8", "A"),  # CPU seconds
    ("state_sum", "f8", "A"),  # 0 between uses
    ("state_factor", "f8", "A"),  # of fair share; NaN for one that is not known (classic)
    ("state_above", "f8", "A"),  # effective usage of its account (classic)
    ("state_rank", "i4", "A"),  # associations, the best first (Fair Tree)
    ("state_first", "i4", "A"),  # first job that waits (classic)
    ("state_node_usage", "f8", "N"),  # CPU seconds
    ("state_node_level", "f8", "N"),  # level fair share, or part of all usage (classic)
    # registers
    ("state_weighted", "f8", "5"),  # factors of a job, each times its weight
    ("state_f", "f8", "5"),
    ("state_i", "i8", "7"),
)

NAMES = tuple(name for name, _, _ in FIELDS)
_TYPES = tuple((name, code, dims.count(",") + 1) for name, code, dims in FIELDS)
State = namedtuple("State", NAMES)  # type: ignore[misc]  # the fields are listed once, above
_pack = record("PriorityState", _TYPES, ("w_",)) if JIT else None


def make(
    inputs: Mapping[str, NDArray[Any]], n_jobs: int = 0
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the record that the kernels take, and its arrays by name.

    Arrays that are not in `inputs` are zeros; those of the tree are (`Shares.arrays`).
    """
    n_associations, depth = inputs["w_path"].shape
    extents = {"J": n_jobs, "A": n_associations, "D": depth, "N": len(inputs["w_parent"])}
    arrays = {}
    for name, code, dims in FIELDS:
        shape = tuple(extents[d] if d in extents else int(d) for d in dims.split(",") if d != "M")
        values = inputs[name] if name in inputs else np.zeros(shape)
        arrays[name] = np.ascontiguousarray(values, dtype=np.dtype(code))
    arrays["state_rank"][:] = np.arange(n_associations)
    arrays["state_f"][SEEN] = np.inf
    return (_pack(arrays.values()) if _pack else State(**arrays)), arrays
