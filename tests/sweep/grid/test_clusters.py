from __future__ import annotations

from typing import Any

import pytest

from sim import Workload
from sim.base.errors import InputError
from sweep.grid import clusters


def config(**changes: Any) -> dict[str, Any]:
    return {
        "shape": "slots",
        "count": None,
        "load": 0.8,
        "queues": {"mode": "global", "shares": None},
        **changes,
    }


@pytest.fixture
def workload() -> Workload:
    stage = {"durations_s": [10.0] * 4, "demand": {"cpu": 2.0}}
    jobs = [{"submit_s": 5.0 * at, "queue": "ab"[at % 2], "stages": [stage]} for at in range(11)]
    return Workload.from_jobs(jobs)


def test_sized_by_load_and_capacity(workload: Workload) -> None:
    # 11 jobs × 40 s of work over 50 s: 8.8 slots busy, 11 slots at a load of 0.8
    assert clusters.size(workload, config(), 1.0)["count"] == 11
    assert clusters.size(workload, config(), 0.5)["count"] == 6
    machines = config(shape={"cpu": 4})
    assert clusters.size(workload, machines, 1.0)["count"] == pytest.approx(5.5)


def test_a_count_is_taken_as_it_is(workload: Workload) -> None:
    assert clusters.size(workload, config(count=20), 1.0)["count"] == 20
    assert clusters.size(workload, config(count=20), 0.33)["count"] == 7
    assert clusters.size(workload, config(count=20), 0.001)["count"] == 1


def test_arrivals_are_stretched_only_to_a_fixed_count() -> None:
    assert clusters.stretch(config()) is None
    assert clusters.stretch(config(count=5, load=None)) is None
    fixed = clusters.stretch(config(count=5))
    assert fixed is not None
    assert fixed.total[0] == 5


def test_builds_what_it_sized(workload: Workload) -> None:
    queues = {"mode": "hard", "shares": {"a": 0.5, "b": 0.5}}
    sized = clusters.size(workload, config(shape={"cpu": 4}, queues=queues), 1.0)
    cluster = clusters.build(sized)
    assert cluster.n_machines == 6
    assert cluster.queue_mode == "hard"
    assert cluster.queue_share == {"a": 0.5, "b": 0.5}


def test_the_trace_may_say_the_shares(workload: Workload) -> None:
    asked = config(queues={"mode": "hard", "shares": "trace"})
    clusters.check(asked)
    with pytest.raises(InputError, match="the trace states no shares"):
        clusters.size(workload, asked, 1.0)
    stated = {"queue_share": {"a": 0.7, "b": 0.3}}
    tables = {name: getattr(workload, name) for name in ("jobs", "stages", "tasks")}
    sized = clusters.size(Workload.from_tables(**tables, meta=stated), asked, 1.0)
    assert clusters.build(sized).queue_share == {"a": 0.7, "b": 0.3}
    with pytest.raises(InputError, match="or 'trace' or null, not 'tracy'"):
        clusters.check(config(queues={"mode": "hard", "shares": "tracy"}))


def test_what_is_fungible_is_part_of_the_cluster(workload: Workload) -> None:
    shape = {"cpu": 4, "disk": 2}
    sized = clusters.size(workload, config(shape=shape, fungible=["disk"]), 1.0)
    assert clusters.build(sized).fungible == ("disk",)
    assert clusters.build({**sized, "fungible": []}).fungible == ()
    with pytest.raises(InputError, match=r"cluster\.fungible 'dsk'; did you mean 'disk'"):
        clusters.check(config(shape=shape, fungible=["dsk"]))
    with pytest.raises(InputError, match=r"cluster\.fungible must be a list"):
        clusters.check(config(shape=shape, fungible="disk"))
    with pytest.raises(InputError, match=r"cluster\.fungible 'disk'"):
        clusters.check(config(fungible=["disk"]))


def test_a_job_that_does_not_fit_is_named(workload: Workload) -> None:
    with pytest.raises(InputError, match="job"):
        clusters.size(workload, config(shape={"cpu": 1}), 1.0)
    queues = {"mode": "hard", "shares": {"a": 0.99, "b": 0.01}}
    with pytest.raises(InputError, match=r"at capacity 0\.5 the cluster is .*: job"):
        clusters.size(workload, config(queues=queues), 0.5)


def test_a_cluster_needs_a_size() -> None:
    with pytest.raises(InputError, match=r"cluster\.load or cluster\.count"):
        clusters.check(config(load=None))


def test_faults_are_drawn_from_the_seed(workload: Workload) -> None:
    asked = config(
        shape={"cpu": 4},
        outages={"mtbf_s": 50.0, "repair_s": 9.0, "until_s": 300},
        slowdowns={"every_s": 50, "last_s": 9.0, "speed": [0.5, 0.75], "until_s": 300},
    )
    clusters.check(asked)
    sized = clusters.size(workload, asked, 1.0)
    one, same, other = (clusters.build(sized, seed) for seed in (1, 1, 2))
    assert one.outages.down_s.tolist() == same.outages.down_s.tolist()
    assert one.outages.down_s.tolist() != other.outages.down_s.tolist()
    assert one.slowdowns.begin_s.tolist() == same.slowdowns.begin_s.tolist()
    assert one.slowdowns.speed.tolist() != other.slowdowns.speed.tolist()
    constant = {**sized, "slowdowns": {**sized["slowdowns"], "speed": 0.25}}
    assert set(clusters.build(constant, 1).slowdowns.speed.tolist()) == {0.25}
    assert "outages" not in clusters.size(workload, config(outages=None), 1.0)


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ({"outages": 3}, r"cluster\.outages has the keys mtbf_s, repair_s, until_s, or is null"),
        ({"outages": {"mtbf": 3}}, "mtbf_s"),
        ({"outages": {"mtbf_s": 3, "repair_s": 0, "until_s": 9}}, r"repair_s must be .* not 0"),
        ({"slowdowns": {"every_s": 1, "last_s": 1, "speed": [2, 1], "until_s": 1}}, "turn them"),
        ({"slowdowns": {"every_s": 1, "last_s": 1, "speed": [1], "until_s": 1}}, r"\[low, high\]"),
        ({"slowdowns": {"every_s": 1}}, "last_s must be a number above 0, not None"),
    ],
)
def test_faults_that_can_not_be_drawn_are_refused(faults: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        clusters.check(config(**faults))
