"""Slow periods: everything runs at a speed that changes at times known beforehand."""

from sim.base.jit import inlined, part
from sim.engine.kernels.state import AT_SPEED, NOW


@inlined
def speed_now(st):
    """Go on to the speed of the present instant."""
    i = st.state_i[AT_SPEED]
    while i + 1 < len(st.c_speed) and st.c_speed_time[i + 1] <= st.state_f[NOW]:
        i += 1
    st.state_i[AT_SPEED] = i


@part
def end_of(st, work):
    """Return when `work` seconds at full speed, begun now, are done."""
    i, time = st.state_i[AT_SPEED], st.state_f[NOW]
    while i + 1 < len(st.c_speed):
        until = st.c_speed_time[i + 1]
        end = time + work / st.c_speed[i]
        if end <= until:
            return end
        work -= (until - time) * st.c_speed[i]
        time = until
        i += 1
    return time + max(work, 0.0) / st.c_speed[i]


@part
def done_since(st, since):
    """Return the seconds at full speed that fit between `since` and now."""
    i, now = st.state_i[AT_SPEED], st.state_f[NOW]
    done = 0.0
    while i > 0 and st.c_speed_time[i] > since:
        done += (now - st.c_speed_time[i]) * st.c_speed[i]
        now = st.c_speed_time[i]
        i -= 1
    return done + (now - since) * st.c_speed[i]
