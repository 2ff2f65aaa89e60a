"""Domains of gangs: the slots in each, the next one to look into, and factors of what crosses them.

Machines of a level are in domains (`sim.cluster.topology`). A search for a gang's room looks at
machines whose ``state_mach_within`` is 1 alone (`sim.engine.kernels.rigid.room`).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.components import is_heterogeneous
from sim.engine.kernels.features import TOPOLOGY


@part
def is_searched(st, j):
    """Tell whether all slots of gang `j` find room together: unequal ones, or those of a domain."""
    return is_heterogeneous(st, j) or (TOPOLOGY and st.w_job_narrowest[j] >= 0)


@part
def next_domain(st, n_slots):
    """Return the domain with the least slots, at least `n_slots`; -1 for none. It is taken out."""
    best = -1
    for domain in range(len(st.state_domain_slots)):
        slots = st.state_domain_slots[domain]
        if slots >= n_slots and (best < 0 or slots < st.state_domain_slots[best]):
            best = domain
    if best >= 0:
        st.state_domain_slots[best] = -1
    return best


@part
def largest_domain(st):
    """Return the domain with the most slots, -1 if none has any left."""
    best = -1
    for domain in range(len(st.state_domain_slots)):
        slots = st.state_domain_slots[domain]
        if slots > 0 and (best < 0 or slots > st.state_domain_slots[best]):
            best = domain
    return best


@part
def look_into(st, level, domain):
    """Let a search look at the machines of a domain, too."""
    for machine in range(len(st.state_mach_within)):
        if st.c_domain[level, machine] == domain:
            st.state_mach_within[machine] = 1


@part
def note_crossing(st, j, machine, first, end):
    """Note the factor of gang `j`: of the widest level that it crosses.

    One of its slots is on `machine`, the others are those of the entries [first, end).
    """
    st.state_job_crossing[j] = 1.0
    for level in range(len(st.c_crossing)):
        home = st.c_domain[level, machine]
        for i in range(first, end):
            if st.c_domain[level, st.state_held_machine[i]] != home:
                st.state_job_crossing[j] = st.c_crossing[level]
                return
