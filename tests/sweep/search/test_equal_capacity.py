from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweep.search import equal_capacity
from tests.sweep import frames
from tests.sweep.small import Command

CAPACITIES = np.array([0.4, 0.6, 0.8, 1.0])


def config(**others: Any) -> dict[str, Any]:
    return {"baseline": "fifo", "swept": [], "metrics": [], "goal": None, **others}


def test_where_a_policy_does_as_well() -> None:
    """A power of capacity is a line on log scales: interpolation is exact."""
    own = np.tile(300.0 / CAPACITIES**2, (6, 1))
    theirs = np.full(6, 800.0)
    at, low, high = equal_capacity.matching_capacity(CAPACITIES, own, theirs, "jct_mean_s")
    assert at == pytest.approx(math.sqrt(300 / 800))
    assert (low, high) == (pytest.approx(at), pytest.approx(at))


def test_outside_of_what_was_swept() -> None:
    own = np.tile(300.0 / CAPACITIES**2, (6, 1))
    assert (
        equal_capacity.matching_capacity(CAPACITIES, own, np.full(6, 1e5), "jct_mean_s")[0]
        == -math.inf
    )
    assert (
        equal_capacity.matching_capacity(CAPACITIES, own, np.full(6, 10.0), "jct_mean_s")[0]
        == math.inf
    )


def test_fractions_and_what_is_better_higher() -> None:
    own = np.tile(CAPACITIES / 2, (6, 1))
    assert equal_capacity.matching_capacity(CAPACITIES, own, np.full(6, 0.4), "value_attained")[
        0
    ] == pytest.approx(0.8)
    missed = np.tile(1 - CAPACITIES, (6, 1))
    assert equal_capacity.matching_capacity(
        CAPACITIES, missed, np.full(6, 0.2), "deadlines_missed"
    )[0] == pytest.approx(0.8)


def test_few_seeds_have_no_interval() -> None:
    own = np.tile(300.0 / CAPACITIES**2, (4, 1))
    assert all(
        map(
            math.isnan,
            equal_capacity.matching_capacity(CAPACITIES, own, np.full(4, 800.0), "jct_mean_s")[1:],
        )
    )


def test_the_interval_holds_what_is_true_about_as_often_as_it_says() -> None:
    """Seeds slow both policies alike, so that pairs tell more than means would."""
    true, n_in, width, n = math.sqrt(0.375), 0, 0.0, 200
    for number in range(n):
        rng = np.random.default_rng(number)
        luck = np.exp(0.5 * rng.normal(size=(10, 1)))
        noise = np.exp(0.03 * rng.normal(size=(10, 5)))
        both = luck * noise
        own = both[:, :4] * 300.0 / CAPACITIES**2
        _, low, high = equal_capacity.matching_capacity(
            CAPACITIES, own, 800.0 * both[:, 4], "jct_mean_s"
        )
        n_in += low <= true <= high
        width += (high - low) / n
    assert 0.85 * n <= n_in
    assert width < 0.1  # the luck of a seed alone would make it ten times as wide


def test_a_curve_that_is_not_monotone_is_made_so() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 7)).cumsum(axis=1)
    fitted = equal_capacity._rising(rows)
    for row, fit in zip(rows, fitted, strict=True):
        assert fit == pytest.approx(_pooled(row))


def _pooled(row: np.ndarray) -> list[float]:  # type: ignore[type-arg]
    """Pool neighbours that fall, until none does."""
    blocks = [[float(value)] for value in row]
    at = 0
    while at < len(blocks) - 1:
        if np.mean(blocks[at]) > np.mean(blocks[at + 1]):
            blocks[at] += blocks.pop(at + 1)
            at = max(0, at - 1)
        else:
            at += 1
    return [float(np.mean(block)) for block in blocks for _ in block]


def test_the_table_of_a_sweep() -> None:
    cells = frames.frame(capacities=(0.4, 0.6, 0.8, 1.0), seeds=range(6))
    found = equal_capacity.table(cells, config())
    assert found is not None
    rows = {(row["policy"], row["metric"]): row for row in found.to_pylist()}
    assert set(rows) == {
        (p, m) for p in ("sjf", "las", "srpt") for m in equal_capacity.DEFAULT_METRICS[:2]
    }
    for policy, expected in (("sjf", 1.2), ("las", 1.6), ("srpt", 1.0)):
        row = rows[policy, "jct_mean_s"]
        assert row["capacity"] == pytest.approx(math.sqrt(expected / 3), rel=0.03)
        assert row["low"] <= row["capacity"] <= row["high"]
        assert (row["at"], row["seeds"]) == (1.0, 6)
    section = equal_capacity.build(found, config())
    assert section.sentences[0].startswith("sjf matches fifo's mean JCT at capacity 1 with 0.6")
    assert section.sentences[0].endswith("of the cluster.")
    # the same bits whatever the order of the rows
    shuffled = cells.take(pa.array(np.random.default_rng(0).permutation(cells.num_rows)))
    again = equal_capacity.table(shuffled, config())
    assert again is not None
    others = {(row["policy"], row["metric"]): row for row in again.to_pylist()}
    assert {key: row["low"] for key, row in others.items()} == {
        k: r["low"] for k, r in rows.items()
    }


def test_the_largest_capacity_stands_for_1_and_is_said() -> None:
    found = equal_capacity.table(frames.frame(capacities=(0.5, 0.8), seeds=range(6)), config())
    assert found is not None
    assert {row["at"] for row in found.to_pylist()} == {0.8}
    section = equal_capacity.build(found, config())
    assert "fifo was not run at capacity 1; its largest capacity, 0.8, is used." in section.notes
    low = [row for row in found.to_pylist() if row["policy"] == "srpt"]
    assert {row["capacity"] for row in low} == {-math.inf}
    assert ("srpt", "<0.5", "<0.5") in section.tables[0].rows


def test_there_is_none() -> None:
    cells = frames.frame(seeds=range(6))
    assert equal_capacity.table(cells, config(baseline=None)) is None
    assert equal_capacity.table(frames.frame(capacities=(1.0,)), config()) is None
    assert equal_capacity.table(cells, config(goal={"metric": "jct_mean_s"})) is None


def test_it_is_said_after_a_sweep(fake: Command) -> None:
    ran = fake("policy=fifo,srpt,sjf", "capacity=0.25,0.5,1", "baseline=fifo", "seed=range(0,5)")
    assert "Smallest capacity that matches fifo" in ran.out
    assert pq.read_table(ran.folder / "equal_capacity.parquet").num_rows
    assert 'id="equal-capacity"' in (ran.folder / "report.html").read_text()
    assert "Smallest capacity that matches fifo" in (ran.folder / "report.md").read_text()
    alone = fake("policy=fifo,sjf", "capacity=1", "baseline=fifo")
    assert not (alone.folder / "equal_capacity.parquet").exists()
