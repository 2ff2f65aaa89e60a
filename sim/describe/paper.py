"""What Tian et al., SoCC 2019, report of the whole Alibaba trace of 2018, by section and key.

Shown beside a workload of that trace only. Recurrence (§6) is left out: the shares depend on how
much of a trace is there.
"""

from __future__ import annotations

from sim.describe.dataset import Dataset

TRACE = "alibaba2018"
"""``meta["name"]`` of the workloads that the numbers are shown beside."""

_DURATIONS = {
    "pair_{}_equal": 0.3444,
    "pair_{}_over_5": 0.2077,
    "pair_{}_over_10": 0.1283,
    "set_{}_equal": 0.1457,
}

PAPER: dict[tuple[str, str], float] = {
    ("overview", "jobs"): 4_201_014,
    ("overview", "jobs_without"): 830_258,
    ("overview", "jobs_with"): 3_370_756,
    ("overview", "jobs_whole"): 2_872_634,
    ("overview", "jobs_over_2"): 2_055_299,
    ("overview", "stages"): 14_295_731,
    ("overview", "stages_with"): 12_207_703,
    ("overview", "tasks"): 1_351_255_775,
    ("overview", "tasks_with"): 1_310_672_556,
    ("overview", "edges"): 9_449_272,
    ("dependencies", "any_jobs"): 3_370_756 / 4_201_014,
    ("dependencies", "any_stages"): 12_207_703 / 14_295_731,
    ("dependencies", "any_tasks"): 1_310_672_556 / 1_351_255_775,
    ("dependencies", "over_2_jobs"): 0.4892,
    ("dependencies", "over_2_cpu"): 0.7705,
    ("dependencies", "over_2_mem"): 0.8020,
    ("hourly", "all_jobs_running"): 7.63,
    ("hourly", "all_cpu_hours"): 10.67,
    ("hourly", "all_mem_hours"): 12.92,
    ("hourly", "over_2_jobs_running"): 3.18,
    ("hourly", "over_2_cpu_hours"): 18.94,
    ("hourly", "over_2_mem_hours"): 19.93,
    ("shapes", "scatter"): 0.3603,
    ("shapes", "gather"): 0.7854,
    ("shapes", "overlap_1"): 0.1155,
    ("shapes", "overlap_2"): 0.1155,
    ("shapes", "coverage_1"): 0.8168,
    ("shapes", "coverage_2"): 0.8168,
    ("structure", "out_degree_at_most_3"): 0.99,
    ("structure", "out_degree_at_most_9"): 0.999,
    ("structure", "width_slope"): 0.491,
    ("structure", "length_size_mean"): 7.68,
    ("structure", "length_size_sd"): 4.57,
    **{
        ("variability", key.format(metric)): value
        for key, value in _DURATIONS.items()
        for metric in ("duration", "span")
    },
    ("variability", "pair_tasks_equal"): 0.4667,
    ("variability", "pair_tasks_over_5"): 0.2646,
    ("variability", "pair_tasks_over_10"): 0.1337,
    ("variability", "pair_demand_cpu_equal"): 0.9987,
    ("variability", "pair_demand_mem_equal"): 0.3473,
    ("variability", "pair_demand_mem_below_2"): 0.9761,
    ("variability", "pair_demand_mem_max"): 16,
    ("variability", "pair_used_cpu_within_5_percent"): 0.0959,
    ("variability", "pair_used_cpu_p90"): 6.93,
    ("variability", "pair_used_mem_within_5_percent"): 0.1978,
    ("variability", "pair_used_mem_p90"): 17.78,
    ("variability", "pair_used_mem_max"): 703.85,
    ("variability", "set_tasks_equal"): 0.43,
    ("variability", "set_demand_cpu_equal"): 0.9999,
    ("variability", "set_demand_mem_equal"): 0.4043,
    ("variability", "set_demand_mem_below_2"): 0.9996,
    ("variability", "set_demand_mem_max"): 5.17,
    ("variability", "set_used_cpu_within_5_percent"): 0.0482,
    ("variability", "set_used_cpu_p90"): 3.86,
    ("variability", "set_used_mem_within_5_percent"): 0.1463,
    ("variability", "set_used_mem_p90"): 5.48,
    ("levels", "one_level"): 0.9654,
}


def beside(data: Dataset) -> dict[tuple[str, str], float]:
    """Return the paper's numbers to show beside a dataset: all, or none."""
    if data.workload is None or data.workload.meta.get("name") != TRACE:
        return {}
    return PAPER
