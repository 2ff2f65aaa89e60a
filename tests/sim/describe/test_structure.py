"""Scatter and gather, structure and levels, of DAGs drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sim import dags
from sim.describe import Dataset, structure
from tests.sim.describe.workloads import (
    CHAIN,
    DIAMOND,
    GATHER,
    LARGE,
    SCATTER,
    by_key,
    dataset,
    job,
)


def test_scatter_and_gather_are_shares_of_jobs_of_more_than_two_stages():
    kinds = [CHAIN, SCATTER, GATHER, GATHER, DIAMOND, {"a": "", "b": "a"}, {"a": ""}]
    measures = by_key(structure.shapes(dataset(*(job(0.0, kind) for kind in kinds))))
    assert measures["jobs"] == 5
    assert measures["scatter"] == pytest.approx(2 / 5)
    assert measures["gather"] == pytest.approx(3 / 5)
    assert measures["both"] == pytest.approx(1 / 5)
    assert measures["neither"] == pytest.approx(1 / 5)
    # the diamond, without stages of two parents: pruning d leaves a, b, c; pruning a leaves b, c, d
    assert measures["overlap_prose"] == measures["overlap_both"] == pytest.approx(2 / 4)
    assert measures["coverage_prose"] == measures["coverage_both"] == 1.0
    # as printed nothing is pruned
    assert measures["overlap"] == measures["coverage"] == 1.0
    assert measures["overlap_isolated"] == measures["coverage_isolated"] == 1.0


def test_chains_inside_a_job_are_erased_only_as_printed():
    # a diamond with a tail, which the gather component loses as printed
    tailed = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "d"}
    measures = by_key(structure.shapes(dataset(job(0.0, tailed))))
    assert measures["overlap"] == pytest.approx(4 / 5)
    assert measures["overlap_isolated"] == 1.0


def test_without_such_jobs_there_is_nothing_to_measure():
    measures = by_key(structure.shapes(dataset(job(0.0, {"a": ""}))))
    assert measures["jobs"] == 0
    assert np.isnan([measures[key] for key in ("scatter", "gather", "overlap")]).all()


def test_structure_of_a_large_job():
    data = dataset(job(0.0, LARGE), job(1.0, DIAMOND))
    shape = structure.measure_shape(data.large)
    assert shape.n_stages.tolist() == [6]
    assert shape.density.tolist() == [7 / 15]
    assert shape.chain_ratio.tolist() == [3 / 6]  # b, c, d
    assert shape.width.tolist() == [3]
    assert shape.length.tolist() == [4]
    measures = by_key(structure.structure(data.large, shape))
    assert measures["jobs"] == 1
    assert measures["density_p50"] == pytest.approx(7 / 15)
    assert measures["out_degree_max"] == 3
    assert measures["out_degree_mean"] == pytest.approx(7 / 6)
    assert measures["in_degree_at_most_3"] == 1.0
    assert measures["width_mean"] == 3
    assert np.isnan(measures["width_slope"])


def test_slopes_over_sizes_means_and_over_jobs():
    def fan(n):
        names = [chr(97 + i) for i in range(n)]
        return dict.fromkeys(names[:-1], "") | {names[-1]: names[:-1]}

    def line(n):
        names = [chr(97 + i) for i in range(n)]
        return {name: names[i - 1] if i else "" for i, name in enumerate(names)}

    data = dataset(job(0.0, fan(6)), job(1.0, fan(6)), job(2.0, line(6)), job(3.0, fan(8)))
    shape = structure.measure_shape(data.large)
    measures = by_key(structure.structure(data.large, shape))
    assert shape.width.tolist() == [5, 5, 1, 7]
    assert measures["width_slope"] == pytest.approx((7 - 11 / 3) / 2)
    assert measures["width_size_mean"] == pytest.approx((7 + 11 / 3) / 2)
    assert measures["length_mean"] == pytest.approx((2 + 2 + 6 + 2) / 4)
    assert structure.by_size(shape).to_pydict() == {
        "n_stages": [6, 8],
        "n_jobs": [3, 1],
        "width": [11 / 3, 7.0],
        "length": [10 / 3, 2.0],
    }


def test_degrees_hold_the_share_of_stages_with_at_least_so_many():
    table = structure.degrees(dataset(job(0.0, LARGE)).large).to_pylist()
    at_least = {(r["direction"], r["degree"]): (r["n"], r["at_least"]) for r in table}
    assert at_least["in", 0] == (1, 1.0)
    assert at_least["in", 1] == (4, pytest.approx(5 / 6))
    assert at_least["in", 3] == (1, pytest.approx(1 / 6))
    assert at_least["out", 1] == (4, pytest.approx(5 / 6))
    assert at_least["out", 3] == (1, pytest.approx(1 / 6))


def test_levels_are_counted_by_the_length_of_the_critical_path():
    skip = {"a": "", "b": "a", "c": "b", "d": ["c", "a"]}
    measures, table = structure.levels(dataset(job(0.0, skip), job(1.0, CHAIN), job(2.0, SCATTER)))
    values = by_key(measures)
    assert values["edges"] == 8
    assert values["one_level"] == pytest.approx(7 / 8)
    assert values["mean_span"] == pytest.approx(10 / 8)
    assert values["large_edges"] == 0
    rows = {(r["length"], r["level"]): (r["n_jobs"], r["n"], r["share"]) for r in table.to_pylist()}
    assert rows == {
        (2, 1): (1, 1, pytest.approx(1 / 3)),
        (2, 2): (1, 2, pytest.approx(2 / 3)),
        **{(3, level): (1, 1, pytest.approx(1 / 3)) for level in (1, 2, 3)},
        **{(4, level): (1, 1, 0.25) for level in (1, 2, 3, 4)},
    }


def test_measures_of_no_large_job_at_all_are_nan():
    empty = dags.Graphs.from_edges(
        np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
    )
    shape = structure.measure_shape(empty)
    measures = by_key(structure.structure(empty, shape))
    assert measures["jobs"] == 0
    assert np.isnan([value for key, value in measures.items() if key != "jobs"]).all()
    assert structure.by_size(shape).num_rows == 0
    assert np.isnan(structure.quantiles(shape)["value"].to_numpy()).all()
    assert structure.levels(Dataset("none", empty))[1].num_rows == 0
