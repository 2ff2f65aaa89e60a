"""The sample of Alibaba's trace, and TPC queries: what is known of them from elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sim
from sim.describe import Dataset, describe
from sim.describe.run import random_comparator


@pytest.fixture(scope="module")
def sample(shared_traces):
    path = shared_traces / "alibaba2018" / "batch_task_6600_jobs.csv.gz"
    return Dataset.from_workload("sample", sim.read_trace("alibaba2018", path, unfinished="keep"))


@pytest.fixture(scope="module")
def description(sample, shared_traces):
    tpc = sim.read_trace("tpc", shared_traces / "dags" / "tpch_17_queries.txt")
    return describe(sample, [random_comparator(sample), Dataset.from_workload("tpch", tpc)])


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("overview", "jobs", 6_600),
        ("overview", "stages", 25_196),
        ("overview", "edges", 19_859),
        ("input", "not_whole", 5),
        ("input", "noticed: job naming a parent it does not have", 5),
        ("input", "edges dropped: parent is not in the job", 13),
        ("input", "filled: end is 0: 0.5 s", 37),
        ("structure", "jobs", 1_278),
        ("shapes", "jobs", 2_978),
    ],
)
def test_counts(description, section, key, value):
    assert description.value(section, key) == value


@pytest.mark.parametrize(
    ("section", "key", "value", "tolerance"),
    [
        ("shapes", "scatter", 0.347, 0.0005),
        ("shapes", "gather", 0.788, 0.0005),
        ("structure", "out_degree_at_most_3", 0.99, 0.003),  # the paper's, from here on
        ("structure", "out_degree_at_most_9", 0.999, 0.0005),
        ("structure", "length_size_mean", 7.68, 0.3),
        ("variability", "pair_demand_cpu_equal", 0.9987, 0.001),
        ("variability", "pair_demand_mem_equal", 0.3473, 0.02),
        ("variability", "pair_demand_mem_below_2", 0.9761, 0.01),
        ("variability", "set_demand_mem_below_2", 0.9996, 0.005),
        ("variability", "pair_duration_over_5", 0.2077, 0.025),
        ("variability", "pair_duration_over_10", 0.1283, 0.02),
        ("levels", "one_level", 0.9654, 0.007),
    ],
)
def test_what_is_known_of_the_trace_shows_in_the_sample(
    description, section, key, value, tolerance
):
    assert description.value(section, key) == pytest.approx(value, abs=tolerance)


def test_random_dags_are_as_the_paper_finds_them(description):
    assert description.value("structure", "length_slope", "random") == pytest.approx(
        0.764, abs=0.03
    )
    assert description.value("structure", "out_degree_at_most_3", "random") == pytest.approx(
        1 - 0.359, abs=0.06
    )
    assert description.value("levels", "one_level", "random") == pytest.approx(0.2992, abs=0.06)


def test_no_tpch_query_has_a_stage_of_two_children(description):
    assert description.value("shapes", "gather", "tpch") == 1.0
    assert description.value("shapes", "jobs", "tpch") == 16
    assert description.value("structure", "out_degree_max", "tpch") == 1


def test_pairs_against_plain_loops(sample, description, shared_traces):
    frame = pd.read_csv(shared_traces / "alibaba2018" / "batch_task_6600_jobs.csv.gz")
    large = frame.groupby("job_name").filter(lambda rows: len(rows) >= 6)
    apart, n_zero = [], 0
    for _, rows in large.groupby("job_name"):
        numbers = {}
        for row in rows.itertuples():
            number, *parents = row.task_name[1:].replace("Stg", "").rstrip("_").split("_")
            numbers[int(number)] = (row, [int(p) for p in parents])
        lost = any(p not in numbers for _, parents in numbers.values() for p in parents)
        if lost:
            continue
        for row, parents in numbers.values():
            for parent in set(parents):
                above = numbers[parent][0]
                spans = [r.end_time - r.start_time for r in (above, row)]
                if 0 in spans or 0 in (above.end_time, row.end_time):
                    n_zero += 1
                else:
                    ratio = row.mean_inst_dur / above.mean_inst_dur
                    apart.append(max(ratio, 1 / ratio))
    apart = np.array(apart)
    assert description.value("variability", "pair_duration_n") == len(apart)
    assert description.value("variability", "pair_duration_left_out") == n_zero
    assert description.value("variability", "pair_duration_over_5") == (apart > 5).mean()
    assert description.value("variability", "pair_duration_max") == pytest.approx(apart.max())


def test_submissions_by_hour_against_the_file(sample, description, shared_traces):
    frame = pd.read_csv(shared_traces / "alibaba2018" / "batch_task_6600_jobs.csv.gz")
    started = frame[frame.start_time > 0].groupby("job_name").start_time.min()
    expected = (started // 3600).value_counts().sort_index()
    table = description.tables["hourly"].to_pandas()
    table = table[(table.dataset == "sample") & (table.population == "all")].set_index("hour")
    result = table.jobs_submitted[table.jobs_submitted > 0]
    assert result.to_dict() == expected.to_dict()
