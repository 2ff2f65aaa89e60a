"""Carbon-aware provisioning: thresholds and starts worked out by hand from the formula."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.carbon import HORIZON_S, carbon_cap, thresholds

DIRTY, FAIR, CLEAN = 320.0, 140.0, 70.0
POWER = {"idle_w": 0, "busy_w": 1000}


def test_thresholds_by_hand():
    # one unit: (1 + 1/α) (1 - 1/α) = 1 - 100 / 400, so α = 2, and the threshold is U / α
    assert thresholds(100.0, 400.0, 1) == pytest.approx([200.0])
    # two: with α = 2, (1 + 1/4)^2 (1 - 1/2) = 25/32 = 1 - 70/320; then U (1 - 1/2 · 5/4)
    assert thresholds(CLEAN, DIRTY, 2) == pytest.approx([160.0, 120.0])
    assert thresholds(50.0, 50.0, 3).tolist() == [50.0] * 3
    many = thresholds(CLEAN, DIRTY, 1000)
    assert (np.diff(many) < 0).all()
    assert many[-1] > CLEAN


def cluster(n=4, **power):
    rows = [[0, DIRTY], [100, FAIR], [200, CLEAN]]
    spec = {**POWER, "carbon_g_per_kwh": rows, "repeat_s": 300, **power}
    return sim.Cluster.slots(n).with_power(spec)


def caps(cluster, last_s=0.0, **options):
    cap = carbon_cap(cluster, options, last_s)
    return [(0.0, cap.at_most), *cap.changes]


def test_caps_follow_the_intensity():
    # 2 of 4 slots always, a third at and below 160, the fourth at and below 120 g/kWh
    assert caps(cluster(), share=0.5)[:5] == [(0, 2), (100, 3), (200, 4), (300, 2), (400, 3)]
    later = caps(cluster(offset_s=150), share=0.5)
    assert later[:4] == [(0, 3), (50, 4), (150, 2), (250, 3)]
    assert 9_990 < len(later) < 10_010
    assert later[-1][1] == 4  # from then on all may be used
    assert caps(cluster(), share=0.1)[0] == (0, 1)  # at least one


def test_bounds_are_those_of_the_time_to_come():
    # once: at 100 the greatest is 140 itself, so that only 2 slots are used; at 200 all is clean
    once = {"share": 0.5}
    assert caps(cluster(repeat_s=None), **once) == [(0, 2), (200, 4)]
    # within 50 s nothing changes, and what does not change is clean
    assert caps(cluster(repeat_s=None), horizon_s=50, **once) == [(0, 4)]
    assert caps(cluster(repeat_s=None), bounds=[CLEAN, DIRTY], **once) == [
        (0, 2),
        (100, 3),
        (200, 4),
    ]
    assert HORIZON_S == 48 * 3600


def test_a_policy_starts_less_while_electricity_is_dirty():
    """Eight jobs of 60 s at 50 s on the clock, on 4 slots of 1 kW each.

    Two start at 0, two at 60; at 100 a third slot may be used, by the fifth; at 120 two start, and
    at 160 the last.
    """
    jobs = [{"submit_s": 50.0, "stages": [{"durations_s": [60.0]}]} for _ in range(8)]
    workload = sim.Workload.from_jobs(jobs)
    policy = policies.build("fifo", carbon={"share": 0.5})
    result = sim.simulate(workload, cluster(), policy)
    starts = result.job_start - 50
    assert starts.tolist() == [0, 0, 60, 60, 100, 120, 120, 160]
    dirty_s, clean_s = 2 * 60 + 2 * 40, 20  # 200 to 220; the rest of 480 at 140
    grams = (dirty_s * DIRTY + (480 - dirty_s - clean_s) * FAIR + clean_s * CLEAN) / 3600
    assert result.metrics["carbon_kg"] == pytest.approx(grams / 1000)
    without = sim.simulate(workload, cluster(), policies.build("fifo"))
    assert (without.job_start - 50).tolist() == [0] * 4 + [60] * 4
    assert without.metrics["carbon_kg"] > result.metrics["carbon_kg"]


def test_devices_are_counted_where_machines_have_some():
    machines = sim.Cluster.mixed([{"class": "x", "count": 2, "devices": {"gpu": 8}, "cpu": 64}])
    spec = {**POWER, "carbon_g_per_kwh": [[0, DIRTY], [100, CLEAN]]}
    cap = carbon_cap(machines.with_power(spec), {"share": 0.25}, 0.0)
    assert (cap.counted, cap.at_most, cap.changes) == ("gpu", 4.0, ((100.0, 16.0),))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shares": 0.5}, "'shares'"),
        ({"share": 1.0}, "below 1"),
        ({"share": "a"}, "policy.carbon.share"),
        ({"bounds": [3, 2]}, "lower first"),
        ({"bounds": 3}, "lower first"),
        ({"horizon_s": 0}, "horizon_s"),
    ],
)
def test_wrong_options_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        carbon_cap(cluster(), options, 0.0)
    with pytest.raises(InputError, match="carbon_g_per_kwh"):
        carbon_cap(sim.Cluster.slots(1), {}, 0.0)
