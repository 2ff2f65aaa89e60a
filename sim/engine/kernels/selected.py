"""Classes of machines on which the policy lets jobs run, and machines that are closed to jobs.

The policy may change ``p_job_runs_on`` in any callback. A job that may run nowhere waits in no
queue. Stages of one kind are of one job where the policy does that (`sim.engine.layout.windows`).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.features import RUNS_ON, WINDOWS
from sim.engine.kernels.windows import is_closed_now, is_reserved


@part
def may_run_on(st, j, machine):
    """Tell whether the policy lets job `j` run on `machine` now."""
    return st.p_job_runs_on[j] >> st.c_mach_kind[machine] & 1 > 0


@part
def is_shut(st, j, machine):
    """Tell whether the policy, or a window, closes `machine` to what of job `j` would start now."""
    if RUNS_ON and not may_run_on(st, j, machine):
        return True
    return WINDOWS and is_closed_now(st, j, machine)


@part
def is_kept_off(st, j, machine):
    """Tell whether the policy, or a reservation of now, keeps job `j` off `machine`."""
    if RUNS_ON and not may_run_on(st, j, machine):
        return True
    return WINDOWS and is_reserved(st, j, machine)
