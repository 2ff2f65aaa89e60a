"""Remaining work of jobs over their worth, by which queues order them and packing weighs them."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.features import WORTH


@part
def remaining_over_worth(st, j):
    """Return the remaining work of job `j` and the work beyond it, over its worth."""
    if WORTH:
        return (st.state_job_remaining[j] + st.p_job_beyond[j]) / st.p_job_worth[j]
    return st.state_job_remaining[j]
