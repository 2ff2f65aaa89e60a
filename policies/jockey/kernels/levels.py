"""Times at which runs first reach levels of progress (`policies.jockey.indicators`)."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from sim.base.jit import jit


@jit
def weighted_levels(finish_s, order, weight, need, out_s):
    """Set the time at which the ended tasks first weigh as much as each level needs, (R, K) s.

    `finish_s` (R, T) are ends of tasks, s, and `order` (R, T) their order. `weight` (T,) is that of
    each task; all together weigh 1. `need` (K,) ascends. `out_s` (R, K) is overwritten.
    """
    last = len(weight) - 1
    for run in range(len(order)):
        finish, ended, out = finish_s[run], order[run], out_s[run]
        total, k = 0.0, 0
        for i in range(len(weight)):
            task = ended[i]
            total = total + weight[task] if i < last else 1.0
            while k < len(need) and need[k] <= total:
                out[k] = finish[task]
                k += 1


@jit
def stage_levels(finish_s, order, stage, need, out_s):
    """Set the time at which the last stage has as many ended tasks as each level needs, (R, K) s.

    `finish_s` (R, T) are ends of tasks, s, and `order` (R, T) their order. `stage` (T,) is that of
    each task, `need` (S, K) ascends by level. `out_s` (R, K) is overwritten, with 0 where no task
    must end.
    """
    n_stages, n_levels = need.shape
    n_ended, reached = np.empty(n_stages, np.int64), np.empty(n_stages, np.int64)
    for run in range(len(order)):
        finish, ended, out = finish_s[run], order[run], out_s[run]
        out[:] = 0.0
        n_ended[:] = reached[:] = 0
        for i in range(len(stage)):
            task = ended[i]
            g = stage[task]
            n_ended[g] += 1
            while reached[g] < n_levels and need[g, reached[g]] <= n_ended[g]:
                if need[g, reached[g]] > 0:
                    out[reached[g]] = finish[task]
                reached[g] += 1
