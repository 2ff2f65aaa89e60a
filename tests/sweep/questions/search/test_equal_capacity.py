from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sweep.questions.search import equal_capacity
from tests.sweep import frames
from tests.sweep.small import Command

CAPACITIES = np.array([0.4, 0.6, 0.8, 1.0])


def config(**fields: Any) -> dict[str, Any]:
    return {"baseline": "fifo", "swept": [], "metrics": [], "goal": None, **fields}


def test_interpolation_on_log_scales() -> None:
    """A power of capacity is a line on log scales: interpolation is exact."""
    policy_values = np.tile(300.0 / CAPACITIES**2, (6, 1))
    baseline_values = np.full(6, 800.0)
    index, low, high = equal_capacity.matching_capacity(
        CAPACITIES, policy_values, baseline_values, "jct_mean_s"
    )
    assert index == pytest.approx(math.sqrt(300 / 800))
    assert (low, high) == (pytest.approx(index), pytest.approx(index))


def test_outside_the_swept_range() -> None:
    policy_values = np.tile(300.0 / CAPACITIES**2, (6, 1))
    assert (
        equal_capacity.matching_capacity(CAPACITIES, policy_values, np.full(6, 1e5), "jct_mean_s")[
            0
        ]
        == -math.inf
    )
    assert (
        equal_capacity.matching_capacity(CAPACITIES, policy_values, np.full(6, 10.0), "jct_mean_s")[
            0
        ]
        == math.inf
    )


def test_fractions_and_metrics_where_higher_is_better() -> None:
    policy_values = np.tile(CAPACITIES / 2, (6, 1))
    assert equal_capacity.matching_capacity(
        CAPACITIES, policy_values, np.full(6, 0.4), "value_attained"
    )[0] == pytest.approx(0.8)
    missed = np.tile(1 - CAPACITIES, (6, 1))
    assert equal_capacity.matching_capacity(
        CAPACITIES, missed, np.full(6, 0.2), "deadlines_missed"
    )[0] == pytest.approx(0.8)


def test_few_seeds_have_no_interval() -> None:
    policy_values = np.tile(300.0 / CAPACITIES**2, (4, 1))
    assert all(
        map(
            math.isnan,
            equal_capacity.matching_capacity(
                CAPACITIES, policy_values, np.full(4, 800.0), "jct_mean_s"
            )[1:],
        )
    )


def test_coverage_of_the_interval() -> None:
    """Seeds slow both policies equally, so that pairs are more precise than means."""
    true, n_in, width, n = math.sqrt(0.375), 0, 0.0, 200
    for number in range(n):
        rng = np.random.default_rng(number)
        luck = np.exp(0.5 * rng.normal(size=(10, 1)))
        noise = np.exp(0.03 * rng.normal(size=(10, 5)))
        values = luck * noise
        policy_values = values[:, :4] * 300.0 / CAPACITIES**2
        _, low, high = equal_capacity.matching_capacity(
            CAPACITIES, policy_values, 800.0 * values[:, 4], "jct_mean_s"
        )
        n_in += low <= true <= high
        width += (high - low) / n
    assert 0.85 * n <= n_in
    assert width < 0.1  # the luck of a seed alone would make it ten times as wide


def test_isotonic_regression() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 7)).cumsum(axis=1)
    fitted = equal_capacity._rising(rows)
    for row, fit in zip(rows, fitted, strict=True):
        assert fit == pytest.approx(_pooled(row))


def _pooled(row: np.ndarray) -> list[float]:  # type: ignore[type-arg]
    """Pool adjacent violators until the values never fall."""
    blocks = [[float(value)] for value in row]
    index = 0
    while index < len(blocks) - 1:
        if np.mean(blocks[index]) > np.mean(blocks[index + 1]):
            blocks[index] += blocks.pop(index + 1)
            index = max(0, index - 1)
        else:
            index += 1
    return [float(np.mean(block)) for block in blocks for _ in block]


def test_the_table_of_a_sweep() -> None:
    cells = frames.frame(capacities=(0.4, 0.6, 0.8, 1.0), seeds=range(6))
    actual = equal_capacity.table(cells, config())
    assert actual is not None
    rows = {(row["policy"], row["metric"]): row for row in actual.to_pylist()}
    assert set(rows) == {
        (p, m) for p in ("sjf", "las", "srpt") for m in equal_capacity.DEFAULT_METRICS[:2]
    }
    for policy, expected in (("sjf", 1.2), ("las", 1.6), ("srpt", 1.0)):
        row = rows[policy, "jct_mean_s"]
        assert row["capacity"] == pytest.approx(math.sqrt(expected / 3), rel=0.03)
        assert row["low"] <= row["capacity"] <= row["high"]
        assert (row["at"], row["seeds"]) == (1.0, 6)
    section = equal_capacity.build(actual, config())
    assert section.sentences[0].startswith("sjf matches fifo's mean JCT at capacity 1 with 0.6")
    assert section.sentences[0].endswith("of the cluster.")
    # the same bits for any order of the rows
    shuffled = cells.take(pa.array(np.random.default_rng(0).permutation(cells.num_rows)))
    again = equal_capacity.table(shuffled, config())
    assert again is not None
    fields = {(row["policy"], row["metric"]): row for row in again.to_pylist()}
    assert {key: row["low"] for key, row in fields.items()} == {
        k: r["low"] for k, r in rows.items()
    }


def test_policies_outside_the_range_tried_share_a_sentence() -> None:
    cells = frames.frame(capacities=(0.9, 1.0), seeds=range(6))
    actual = equal_capacity.table(cells, config())
    assert actual is not None
    (sentence,) = equal_capacity.build(actual, config()).sentences
    assert sentence == (
        "sjf, las, srpt are better than fifo's mean JCT at capacity 1 with 0.9 of the cluster, "
        "the least tried."
    )


def test_the_largest_capacity_replaces_1_with_a_note() -> None:
    actual = equal_capacity.table(frames.frame(capacities=(0.5, 0.8), seeds=range(6)), config())
    assert actual is not None
    assert {row["at"] for row in actual.to_pylist()} == {0.8}
    section = equal_capacity.build(actual, config())
    assert "fifo was not run at capacity 1; its largest capacity, 0.8, is used." in section.notes
    low = [row for row in actual.to_pylist() if row["policy"] == "srpt"]
    assert {row["capacity"] for row in low} == {-math.inf}
    assert ("srpt", "≤0.5", "≤0.5") in section.tables[0].rows


def test_grids_without_a_table() -> None:
    cells = frames.frame(seeds=range(6))
    assert equal_capacity.table(cells, config(baseline=None)) is None
    assert equal_capacity.table(frames.frame(capacities=(1.0,)), config()) is None
    assert equal_capacity.table(cells, config(goal={"metric": "jct_mean_s"})) is None


def test_the_section_is_shown_after_a_sweep(fake: Command) -> None:
    ran = fake("policy=fifo,srpt,sjf", "capacity=0.25,0.5,1", "baseline=fifo", "seed=range(0,5)")
    assert "Smallest capacity that matches fifo" in ran.out
    assert pq.read_table(ran.folder / "equal_capacity.parquet").num_rows
    assert 'id="equal-capacity"' in (ran.folder / "report.html").read_text()
    assert "Smallest capacity that matches fifo" in (ran.folder / "report.md").read_text()
    alone = fake("policy=fifo,sjf", "capacity=1", "baseline=fifo")
    assert not (alone.folder / "equal_capacity.parquet").exists()
