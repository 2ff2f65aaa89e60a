"""Rates of elastic jobs: that of their one unit of work follows all of their places."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.components import component_of
from sim.engine.kernels.elastic import is_elastic, pace_of, width_of
from sim.engine.kernels.faults.rates import (
    expect_end,
    rate_on,
    rates_changed,
    remaining_s,
    set_rate,
)
from sim.engine.kernels.state import N_TOUCHED


@part
def _unit_rate(st, j):
    """Return the rate of elastic job `j`: its pace, at the least rate of its places."""
    g = st.w_job_stage0[j]
    entry = st.w_slot0[component_of(st, g)]
    rate = rate_on(st, g, st.state_slot_machine[st.state_job_unit[j]])
    for i in range(entry, entry + width_of(st, j) - 1):
        rate = min(rate, rate_on(st, g, st.state_held_machine[i]))
    return rate * pace_of(st, j)


@part
def go_on_later(st, j, time):
    """Let elastic job `j`, whose places have changed, stand still until `time`, and go on."""
    slot = st.state_job_unit[j]
    st.state_slot_left[slot] = remaining_s(st, slot)
    st.state_slot_since[slot] = max(st.state_slot_since[slot], time)
    st.state_slot_rate[slot] = _unit_rate(st, j)
    expect_end(st, slot)


@part
def update_rates_by_places(st):
    """After a placement: set the rates of machines and tasks, those of units by all their places.

    For `sim.engine.kernels.faults.rates.update_rates`, in runs with elastic jobs.
    """
    changes = False
    for i in range(st.state_i[N_TOUCHED]):
        machine = st.state_touched[i]
        st.state_mach_touched[machine] = 0
        if rates_changed(st, machine):
            changes = True
    st.state_i[N_TOUCHED] = 0
    if not changes:
        return
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            g = st.state_slot_stage[slot]
            j = st.w_stage_job[g]
            rate = _unit_rate(st, j) if is_elastic(st, j) else rate_on(st, g, machine)
            set_rate(st, slot, rate)
            slot = st.state_slot_next[slot]
