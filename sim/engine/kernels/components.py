"""Components of gangs: sets of like slots, of which a heterogeneous gang has several.

Component c has ``w_slot_size[c]`` slots that take ``w_slot[c]`` each, from entry ``w_slot0[c]`` on.
Where no gang has several, that of job j is c = j.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import COMPONENTS


@inlined
def first_component(st, j):
    """Return the first component of gang job `j`."""
    return st.w_job_component0[j] if COMPONENTS else j


@inlined
def end_component(st, j):
    """Return the component after the last of gang job `j`."""
    return st.w_job_component0[j + 1] if COMPONENTS else j + 1


@part
def is_heterogeneous(st, j):
    """Tell whether job `j` is a gang of several components."""
    if not COMPONENTS:
        return False
    return st.w_job_component0[j + 1] - st.w_job_component0[j] > 1


@inlined
def component_of(st, g):
    """Return the component in whose slots tasks of stage `g` run."""
    return st.w_stage_component[g] if COMPONENTS else st.w_stage_job[g]


@inlined
def idle_slots(st, j, c):
    """Return the number of idle slots of component `c` of job `j`, -1 if it was not admitted."""
    return st.state_component_idle[c] if COMPONENTS else st.state_job_idle_held[j]


@inlined
def add_idle(st, j, c, n):
    """Add `n` to the idle slots of component `c` of job `j`."""
    st.state_job_idle_held[j] += n
    if COMPONENTS:
        st.state_component_idle[c] += n
