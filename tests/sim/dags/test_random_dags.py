"""Random DAGs: their number, and equal probability."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from sim.base import maths
from sim.base.errors import InputError
from sim.dags import critical_path_length, edge_density, mean_by_size, uniform_dags
from sim.dags.random_dags import EXACT, _ways, count_by_outpoints
from sim.published import numbers
from tests.sim.dags.small import every_dag, job_of


def count_dags(n):
    """Count the labelled DAGs of `n` vertices, exactly: 1, 3, 25, 543, 29281, ..."""
    for fewer in range(1, n):
        count_by_outpoints(fewer)  # kept, so that the recursion below stays shallow
    return sum(count_by_outpoints(n))


def test_counts_are_the_published_ones():
    # Robinson; OEIS A003024
    known = [1, 3, 25, 543, 29281, 3781503, 1138779265, 783702329343]
    assert [count_dags(n) for n in range(1, 9)] == known
    assert count_dags(15) == 237725265553410354992180218286376719253505


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_counts_by_outpoints_are_those_of_all_dags(n):
    outpoints = Counter(n - len({c for _, c in edges}) for _, edges in every_dag(n))
    assert count_by_outpoints(n) == tuple(outpoints[k] for k in range(n + 1))


@pytest.mark.parametrize(("n", "draws"), [(2, 3_000), (3, 25_000), (4, 54_300)])
@pytest.mark.slow
def test_every_dag_is_equally_likely(n, draws):
    every = every_dag(n)
    graphs = uniform_dags(np.full(draws, n), seed=11)
    counts = Counter(tuple(job_of(graphs, j)[1]) for j in range(draws))
    observed = [counts.pop(tuple(edges), 0) for _, edges in every]
    assert not counts
    assert len(observed) == {2: 3, 3: 25, 4: 543}[n]
    assert chisquare(observed).pvalue > 0.01


@pytest.mark.slow
def test_outpoints_of_larger_dags_have_their_exact_shares():
    n, draws = 12, 40_000
    graphs = uniform_dags(np.full(draws, n), seed=4)
    outpoints = np.add.reduceat(graphs.n_parents == 0, graphs.job_stage0[:-1], dtype=np.int64)
    counts = count_by_outpoints(n)
    expected = np.array([float(Fraction(c * draws, sum(counts))) for c in counts])
    observed = np.bincount(outpoints, minlength=n + 1)
    observed, expected = _pooled(observed, expected)
    assert chisquare(observed, expected).pvalue > 0.01


@pytest.mark.slow
def test_sinks_are_like_outpoints():
    # turned round, a uniform DAG is uniform: layers are peeled from one end only
    graphs = uniform_dags(np.full(40_000, 9), seed=8)
    sinks = np.add.reduceat(graphs.n_children == 0, graphs.job_stage0[:-1], dtype=np.int64)
    counts = count_by_outpoints(9)
    expected = np.array([float(Fraction(c * 40_000, sum(counts))) for c in counts])
    observed, expected = _pooled(np.bincount(sinks, minlength=10), expected)
    assert chisquare(observed, expected).pvalue > 0.01


def _pooled(observed, expected):
    tail = int(np.flatnonzero(expected >= 10).max())
    return (
        np.append(observed[1:tail], observed[tail:].sum()),
        np.append(expected[1:tail], expected[tail:].sum()),
    )


def test_shares_have_converged_where_counting_ends():
    def shares(counts):
        return np.cumsum([Fraction(c, sum(counts)) for c in counts])

    far = EXACT + 20
    pairs = [(count_by_outpoints(EXACT), count_by_outpoints(far))]
    pairs += [(_ways(EXACT, k), _ways(far, k)) for k in (1, 2, 3, 6)]
    for counts, reference in pairs:
        difference = shares(counts) - shares(reference)[: len(counts)]
        assert max(map(abs, difference)) < 1e-20


def test_large_dags_have_half_of_all_edges_and_long_paths():
    graphs = uniform_dags(np.full(30, 200), seed=0)
    assert edge_density(graphs).mean() == pytest.approx(0.5, abs=0.02)
    lengths = critical_path_length(graphs)  # fails on a cycle
    assert lengths.min() > 100


def test_path_lengths_grow_as_in_the_paper():
    sizes = np.repeat(np.arange(6, 61), 20)
    lengths = critical_path_length(uniform_dags(sizes, seed=1))
    x, means, _ = mean_by_size(sizes, lengths)
    assert maths.slope(x, means) == pytest.approx(
        numbers("alibaba")["random"]["structure"]["length_slope"], abs=0.01
    )  # §4.2


def test_the_seed_and_the_sizes_before_decide():
    sizes = np.array([7, 1, 30, 4, 9])
    graphs = uniform_dags(sizes, seed=2)
    assert [job_of(graphs, j) for j in range(5)] == [
        job_of(uniform_dags(sizes, seed=2), j) for j in range(5)
    ]
    longer = uniform_dags(np.append(sizes, [8, 8]), seed=2)
    assert [job_of(longer, j) for j in range(5)] == [job_of(graphs, j) for j in range(5)]
    assert job_of(uniform_dags(sizes, seed=3), 2) != job_of(graphs, 2)


def test_a_dag_has_a_stage():
    with pytest.raises(InputError, match="at least 1 stage, not 0"):
        uniform_dags([3, 0], seed=0)
    assert uniform_dags([], seed=0).n_jobs == 0
    assert uniform_dags([1, 1], seed=0).n_edges == 0
