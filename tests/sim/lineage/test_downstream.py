"""Counting what is downstream by bits, against Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.lineage.dependencies import plain_edges
from sim.lineage.downstream import count_downstream
from sim.lineage.functions import N_DOWNSTREAM
from sim.lineage.multi_hop import multi_hop
from tests.sim.lineage.dags import dags, windows


@given(dags(), st.data())
@settings(max_examples=60, deadline=None)
def test_it_counts_what_algorithm_1_does(edges, data):
    within = data.draw(st.one_of(st.none(), windows(edges.n_jobs)))
    want = multi_hop(edges, N_DOWNSTREAM, within=within)
    assert np.array_equal(count_downstream(edges, within), want, equal_nan=True)


@pytest.mark.parametrize("n", [62, 63, 200])
def test_more_sources_than_a_pass_serves(n):
    chain = plain_edges(n, range(n - 1), range(1, n))
    assert count_downstream(chain).tolist() == list(range(n - 1, -1, -1))
