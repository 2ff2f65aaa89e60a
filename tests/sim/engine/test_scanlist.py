"""The sorted list of waiting stages, against a Python list that is sorted anew."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sim.base.jit import JIT
from sim.engine.kernels import scanlist
from sim.engine.kernels.scanlist import scan_insert, scan_remove
from sim.engine.kernels.state import N_HOLES, N_I, N_SCAN

N_STAGES, N_QUEUES = 300, 3


def empty(rng):
    return SimpleNamespace(
        state_i=np.zeros(N_I, np.int64),
        w_stage_job=np.arange(N_STAGES, dtype=np.int32) // 2,
        state_job_rank=rng.integers(0, 4, N_STAGES).astype(float),
        w_job_tier=rng.integers(0, 2, N_STAGES).astype(np.int32),
        p_stage_key=rng.integers(0, 3, N_STAGES).astype(float),
        state_scan=np.full(N_STAGES, -1, np.int32),
        state_scan_position=np.full(N_STAGES, -1, np.int32),
        state_scan_queue=np.zeros(N_STAGES, np.int32),
        state_scan_rank=np.zeros(N_STAGES),
        state_scan_key=np.zeros(N_STAGES),
    )


@pytest.mark.skipif(JIT, reason="Python can't call a part of a kernel")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tiers", [False, True])
def test_waiting_stages_are_in_order_whatever_enters_and_leaves(seed, tiers, monkeypatch):
    monkeypatch.setattr(scanlist, "TIERS", tiers)
    rng = np.random.default_rng(seed)
    st, queue, n_closed, is_growing = empty(rng), {}, 0, True
    for _ in range(2500):
        if len(queue) in (20, N_STAGES - 10):  # it grows and shrinks by turns
            is_growing = len(queue) == 20
        absent = [g for g in range(N_STAGES) if g not in queue]
        if not queue or rng.random() < (0.95 if is_growing else 0.05):
            g, before = int(rng.choice(absent)), int(st.state_i[N_HOLES])
            queue[g] = int(rng.integers(N_QUEUES))
            scan_insert(st, queue[g], g)
            n_closed += before > 1 and int(st.state_i[N_HOLES]) == 0
        else:
            g = int(rng.choice(list(queue)))
            del queue[g]
            scan_remove(st, g)
        listed = [int(g) for g in st.state_scan[: st.state_i[N_SCAN]] if g >= 0]

        def order(g):
            j = st.w_stage_job[g]
            tier = int(st.w_job_tier[j]) if tiers else 0
            return (queue[g], tier, st.state_job_rank[j], st.p_stage_key[g], g)

        assert listed == sorted(queue, key=order)
        assert all(st.state_scan[st.state_scan_position[g]] == g for g in queue)
        assert st.state_i[N_HOLES] == st.state_i[N_SCAN] - len(queue)
    assert n_closed, "holes were never closed"
