"""Linear aggregates in one pass, against sums over every path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.errors import InputError
from sim.lineage.dependencies import plain_edges
from sim.lineage.fast import aggregate, bounds
from sim.lineage.graph import Window, share_of_inputs
from tests.sim.lineage.dags import dags, paths, windows


def by_paths(edges, value, within=None):
    """The paper's formula (§4.5.1), path by path."""
    total = value.astype(float)
    for (u, d), ways in paths(edges, share_of_inputs(edges)).items():
        if within is None or within.submit_s[d] <= within.cut_s[u]:
            total[u] += sum(np.prod(way) for way in ways) * value[d]
    return total if within is None else np.where(within.valid, total, np.nan)


@given(dags(), st.data())
@settings(max_examples=60, deadline=None)
def test_without_a_window_it_is_the_sum_over_paths(edges, data):
    n = edges.n_jobs
    value = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    assert np.allclose(aggregate(edges, value), by_paths(edges, value), rtol=1e-12)


@given(dags(), st.data())
@settings(max_examples=100, deadline=None)
def test_with_a_window_it_is_exact_however_coarse_the_cuts(edges, data):
    n = edges.n_jobs
    value = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    within = data.draw(windows(n))
    want = by_paths(edges, value, within)
    per_cut = data.draw(st.sampled_from([1, 2, 3, 5, 100]))
    got = aggregate(edges, value, within=within, jobs_per_cut=per_cut)
    assert np.allclose(got, want, rtol=1e-12, equal_nan=True)
    # the same bits, whichever way each job was settled
    finest = aggregate(edges, value, within=within, jobs_per_cut=1)
    assert np.array_equal(got, finest, equal_nan=True)
    enclosed = bounds(edges, value, within, jobs_per_cut=per_cut)
    ok = within.valid
    assert (enclosed.low[ok] <= got[ok]).all()
    assert (got[ok] <= enclosed.high[ok]).all()
    assert np.isnan(enclosed.low[~ok]).all()


def test_bounds_of_a_coarse_cut_are_apart_where_it_matters():
    edges = plain_edges(4, [0, 1], [2, 3])
    within = Window(
        np.array([0.0, 1.0, 10.0, 12.0]), np.array([10.0, 11.0, 20.0, 22.0]), np.ones(4, bool)
    )
    value = np.array([0.0, 0.0, 1.0, 1.0])
    enclosed = bounds(edges, value, within, jobs_per_cut=4)
    assert enclosed.low.tolist() == [1, 0, 1, 1]
    assert enclosed.high.tolist() == [1, 1, 1, 1]
    assert aggregate(edges, value, within=within, jobs_per_cut=4).tolist() == [1, 0, 1, 1]


def test_what_is_wrong_is_said():
    edges = plain_edges(2, [0], [1])
    with pytest.raises(InputError, match="every value must be finite and at least 0"):
        aggregate(edges, np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="weights for 1 edges"):
        aggregate(edges, np.ones(2), wt_fn=lambda e: np.ones(3))
    with pytest.raises(InputError, match="cycle"):
        aggregate(plain_edges(2, [0, 1], [1, 0]), np.ones(2))
