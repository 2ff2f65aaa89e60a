"""What jobs turned out to be worth."""

from __future__ import annotations

import numpy as np
import pytest

from sim.lineage.worth import COLUMNS, Past


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.random(n) * 100)
    finish = submit + rng.random(n) * 5
    pairs = [(u, d) for d in range(n) for u in range(d) if finish[u] <= submit[d]]
    up, down = np.array([pairs[i] for i in rng.permutation(len(pairs))[: 2 * n]]).T
    taken = rng.integers(0, n, 30)
    return Past(
        submit, finish, rng.integers(1, 9, n) * 1.0, up, down, taken,
        finish[taken] + rng.random(30) * 20, rng.integers(1, 5, 30),
    )  # fmt: skip


def one_by_one(past, column, omega, hops=10**6):
    """Walk every path from every job, up to a number of hops, as the formula has it."""
    n_inputs = np.bincount(past.down, minlength=len(column))
    into = [past.down[past.up == j] for j in range(len(column))]

    def walk(source, job, weight, left):
        total = 0.0
        for d in into[job] if left else ():
            share = weight / n_inputs[d]
            if past.submit_s[d] <= past.finish_s[source] + omega:
                total += share * column[d]
            total += walk(source, d, share, left - 1)
        return total

    return np.array([column[j] + walk(j, j, 1.0, hops) for j in range(len(column))])


@pytest.mark.parametrize("seed", range(4))
def test_worth_is_the_sum_over_all_paths(seed):
    past = drawn(seed)
    value = np.zeros(40)
    np.add.at(value, past.taken, past.n)
    got = past.columns(omega_s=30.0)
    assert tuple(got) == COLUMNS
    assert got["value"].tolist() == value.tolist()
    assert got["compute_s"] is past.compute_s
    assert got["agg_value"] == pytest.approx(one_by_one(past, value, 30.0))
    assert got["agg_compute_s"] == pytest.approx(one_by_one(past, past.compute_s, 30.0))
    near = past.columns(omega_s=30.0, rounds=1)["agg_value"]
    assert near == pytest.approx(one_by_one(past, value, 30.0, hops=2))
    assert past.columns(omega_s=30.0, rounds=0)["agg_value"].tolist() == value.tolist()


def test_what_was_not_seen_to_its_end_is_not_known():
    past = drawn(7)
    rows, known = past.until(60.0)
    assert (past.finish_s[rows] < 60).all()
    assert len(rows) == (past.finish_s < 60).sum()
    assert known.times_s.max() < 60
    got = known.columns(60.0, omega_s=30.0)
    assert np.array_equal(np.isfinite(got["agg_value"]), known.finish_s + 30 <= 60)
    assert np.isfinite(got["value"]).all()
    kept = np.isfinite(got["agg_value"])
    inside = np.isin(past.up, rows) & np.isin(past.down, rows)
    assert len(known.up) == inside.sum() > 0
    expected = one_by_one(known, got["value"], 30.0)
    assert got["agg_value"][kept] == pytest.approx(expected[kept])
