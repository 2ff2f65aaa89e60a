from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies import Policy
from sim import Cluster, Workload
from sim.base.errors import InputError
from sweep.grid import cluster_checks, cluster_size, clusters


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
    jobs = [
        {"submit_s": 5.0 * index, "queue": "ab"[index % 2], "stages": [stage]}
        for index in range(11)
    ]
    return Workload.from_jobs(jobs)


def test_sized_by_load_and_capacity(workload: Workload) -> None:
    # 40 s of work every 5 s, of which 380 s can be done in the first 50: 9.5 slots at a load of 0.8
    assert clusters.build_for(workload, config(), 1.0).facts["n_machines"] == 10
    assert clusters.build_for(workload, config(), 0.5).facts["n_machines"] == 5
    machines = config(shape={"cpu": 4})
    assert clusters.build_for(workload, machines, 1.0).facts["n_machines"] == pytest.approx(4.75)
    # with what can't be done by then 440 s: 11
    assert clusters.build_for(workload, config(tails=True), 1.0).facts["n_machines"] == 11
    assert clusters.build_for(workload, config(load=None), 1.0).facts["n_machines"] == 10
    assert (
        clusters.build_for(workload, config(load=None, usual_load=0.4), 1.0).facts["n_machines"]
        == 19
    )


def test_a_count_is_taken_as_it_is(workload: Workload) -> None:
    assert clusters.build_for(workload, config(count=20), 1.0).facts["n_machines"] == 20
    assert clusters.build_for(workload, config(count=20), 0.33).facts["n_machines"] == 7
    assert clusters.build_for(workload, config(count=20), 0.001).facts["n_machines"] == 1


def test_arrivals_are_stretched_only_where_a_count_is_asked_to_have_a_load(
    workload: Workload,
) -> None:
    assert not cluster_size.stretches(config())
    assert not cluster_size.stretches(config(count=5, load=None))
    assert cluster_size.stretches(config(count=5))
    assert cluster_size.stretched(workload, config(count=5, load=None)) is workload
    alone = clusters.build_for(workload, config(count=5, load=None), 1.0).facts
    assert alone["n_machines"] == 5
    assert alone["arrival_scale"] == 1.0
    assert alone["offered_load"] > 1

    stretched = cluster_size.stretched(workload, config(count=5))
    facts = clusters.build_for(stretched, config(count=5), 1.0).facts
    assert facts["offered_load"] == pytest.approx(0.8, abs=1e-5)
    submit, before = (w.columns.job_submit for w in (stretched, workload))
    assert facts["arrival_scale"] > 1.5
    np.testing.assert_allclose(submit, before * facts["arrival_scale"])
    by_all = cluster_size.stretched(workload, config(count=5, tails=True))
    assert max(by_all.mean_load(Cluster.slots(5)).values()) == pytest.approx(0.8)
    assert by_all.columns.job_submit[-1] == pytest.approx(50 * by_all.meta["arrival_scale"])
    half = clusters.build_for(stretched, config(count=5), 0.4).facts
    assert half["n_machines"] == 2
    assert half["offered_load"] == pytest.approx(2.0, rel=0.1)


def test_a_cluster_that_nobody_means_is_refused_at_once(workload: Workload) -> None:
    with pytest.raises(InputError, match=r"20,000,000,000 machines.*at most 10,000,000"):
        clusters.build_for(workload, config(shape={"cpu": 2}, count=20), 1e9)
    with pytest.raises(InputError, match="slots is too large; at most 1,000,000,000"):
        clusters.build_for(workload, config(), 1e9)


def test_a_run_without_the_memory_for_it_is_refused_at_once(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.base.memory.available_bytes", lambda: 2e8)
    with pytest.raises(InputError, match=r"44 tasks on 2,000,000 machines would take about 0.4 GB"):
        clusters.build_for(workload, config(shape={"cpu": 2}, count=2_000_000), 1.0)
    clusters.build_for(workload, config(shape={"cpu": 2}, count=1000), 1.0)


def test_queues_are_the_clusters(workload: Workload) -> None:
    queues = {"mode": "hard", "shares": {"a": 0.5, "b": 0.5}}
    cluster = clusters.build_for(workload, config(shape={"cpu": 4}, queues=queues), 1.0).cluster
    assert cluster.n_machines == 5
    assert cluster.queue_mode == "hard"
    assert cluster.queue_share == {"a": 0.5, "b": 0.5}


def test_the_trace_may_say_the_shares(workload: Workload) -> None:
    options = config(queues={"mode": "hard", "shares": "trace"})
    cluster_checks.check(options)
    with pytest.raises(InputError, match="the trace has no shares"):
        clusters.build_for(workload, options, 1.0)
    stated = {"queue_share": {"a": 0.7, "b": 0.3}}
    tables = {name: getattr(workload, name) for name in ("jobs", "stages", "tasks")}
    built = clusters.build_for(Workload.from_tables(**tables, meta=stated), options, 1.0)
    assert built.cluster.queue_share == {"a": 0.7, "b": 0.3}
    with pytest.raises(InputError, match="or 'trace' or null, not 'tracy'"):
        cluster_checks.check(config(queues={"mode": "hard", "shares": "tracy"}))


def test_what_is_fungible_is_part_of_the_cluster(workload: Workload) -> None:
    shape = {"cpu": 4, "disk": 2}
    built = clusters.build_for(workload, config(shape=shape, fungible=["disk"]), 1.0)
    assert built.cluster.fungible == ("disk",)
    assert clusters.build_for(workload, config(shape=shape), 1.0).cluster.fungible == ()
    with pytest.raises(InputError, match=r"cluster\.fungible 'dsk'; did you mean 'disk'"):
        cluster_checks.check(config(shape=shape, fungible=["dsk"]))
    with pytest.raises(InputError, match=r"cluster\.fungible must be a list"):
        cluster_checks.check(config(shape=shape, fungible="disk"))
    with pytest.raises(InputError, match=r"cluster\.fungible 'disk'"):
        cluster_checks.check(config(fungible=["disk"]))


def test_a_job_that_does_not_fit_is_named(workload: Workload) -> None:
    with pytest.raises(InputError, match="job"):
        clusters.build_for(workload, config(shape={"cpu": 1}), 1.0)
    queues = {"mode": "hard", "shares": {"a": 0.99, "b": 0.01}}
    with pytest.raises(InputError, match=r"at capacity 0\.5 the cluster is .*: job"):
        clusters.build_for(workload, config(queues=queues), 0.5)


def test_faults_are_drawn_from_the_seed(workload: Workload) -> None:
    options = config(
        shape={"cpu": 4},
        outages={"mtbf_s": 50.0, "repair_s": 9.0, "until_s": 300},
        slowdowns={"every_s": 50, "last_s": 9.0, "speed": [0.5, 0.75], "until_s": 300},
    )
    cluster_checks.check(options)
    bare = clusters.build_for(workload, options, 1.0).cluster
    first, same, other = (clusters.with_faults(bare, options, seed) for seed in (1, 1, 2))
    assert first.outages.down_s.tolist() == same.outages.down_s.tolist()
    assert first.outages.down_s.tolist() != other.outages.down_s.tolist()
    assert first.slowdowns.begin_s.tolist() == same.slowdowns.begin_s.tolist()
    assert first.slowdowns.speed.tolist() != other.slowdowns.speed.tolist()
    labelled = [
        {"slowdowns": {**options["slowdowns"], "label": label}} for label in ("A", "A", "B", None)
    ]
    begins = [
        clusters.with_faults(bare, config, 1).slowdowns.begin_s.tolist() for config in labelled
    ]
    assert begins[0] == begins[1] != begins[2]
    assert begins[3] == first.slowdowns.begin_s.tolist()
    constant = {"slowdowns": {**options["slowdowns"], "speed": 0.25}}
    assert set(clusters.with_faults(bare, constant, 1).slowdowns.speed.tolist()) == {0.25}
    assert clusters.with_faults(bare, config(outages=None), 1) is bare


def test_machines_may_be_reserved(workload: Workload) -> None:
    rows = [{"name": "course", "machine": 1, "from_s": 5.0, "until_s": 9.0}]
    built = clusters.build_for(
        workload, config(shape={"cpu": 4}, count=3, reservations=rows), 1.0
    ).cluster
    assert built.reservations.names == ("course",)
    with pytest.raises(InputError, match=r"cluster\.reservations\[0\]\.name must be"):
        cluster_checks.check(config(reservations=[{"machine": 1, "from_s": 5.0}]))
    with pytest.raises(InputError, match=r"cluster\.reservations must be"):
        cluster_checks.check(config(reservations=3))


def test_outages_may_be_listed_or_be_known_beforehand() -> None:
    bare = Cluster.machines(3, cpu=1)
    rows = [{"machine": [0, 2], "from_s": 5.0, "until_s": 9.0, "known": True}]
    first, other = (clusters.with_faults(bare, config(outages=rows), seed) for seed in (1, 2))
    assert first.outages.machine.tolist() == other.outages.machine.tolist() == [0, 2]
    assert first.outages.is_known.all()
    drawn = {"mtbf_s": 50.0, "repair_s": 9.0, "until_s": 300, "drain": True}
    drains = clusters.with_faults(bare, config(outages=drawn), 1).outages
    assert drains.is_drain.all()
    assert not drains.is_known.any()


def test_launch_lags_are_drawn_from_the_seed(workload: Workload) -> None:
    bare = clusters.build_for(workload, config(shape={"cpu": 4}), 1.0).cluster
    lags: tuple[tuple[Any, list[float]], ...] = (
        (0.5, [0.5]),
        ({"low": 0.5, "high": 1.5}, [0.5, 1.5]),
        ([0.25, 2], [0.25, 2.0]),
    )
    for launch_s, values_s in lags:
        options = config(launch_s=launch_s)
        cluster_checks.check(options)
        first, same, other = (clusters.with_faults(bare, options, s).launch for s in (1, 1, 2))
        assert first.values_s.tolist() == values_s
        assert first.key.tolist() == same.key.tolist() != other.key.tolist()
    assert clusters.with_faults(bare, config(launch_s=0), 1) is bare
    assert clusters.with_faults(bare, config(launch_s=None), 1) is bare
    assert clusters.with_faults(bare, config(stage_lag_s=None), 1) is bare
    assert clusters.with_faults(bare, config(stage_lag_s=0.5), 1).stage_lag_s == 0.5
    assert clusters.with_faults(bare, config(enforce_limits=False), 1) is bare
    assert clusters.with_faults(bare, config(enforce_limits=True), 1).enforce_limits
    assert clusters.with_faults(bare, config(unmet_dependencies="wait"), 1) is bare
    failing = clusters.with_faults(bare, config(unmet_dependencies="fail"), 1)
    assert failing.unmet_dependencies == "fail"
    with pytest.raises(InputError, match=r"cluster\.unmet_dependencies"):
        cluster_checks.check(config(unmet_dependencies="drop"))


def test_a_policy_with_a_lag_of_its_own_gets_no_launch_lags() -> None:
    class Lagging(Policy):
        has_own_lag = True

    bare = Cluster.slots(2)
    assert clusters.with_faults(bare, config(launch_s=[1.0]), 1, Lagging()) is bare
    assert clusters.with_faults(bare, config(launch_s=[1.0]), 1, Policy()).launch


@pytest.mark.parametrize(
    ("launch_s", "text"),
    [
        (-1, r"cluster\.launch_s must be a number of at least 0, not -1"),
        ("late", r"cluster\.launch_s must be a number"),
        ({"low": 1}, r"cluster\.launch_s must be .* \{low: 0\.5, high: 1\.5\}"),
        ({"low": 2, "high": 1}, r"cluster\.launch_s: low 2 is above high 1"),
        ([], r"cluster\.launch_s must be .* a list"),
    ],
)
def test_launch_lags_that_can_not_be_are_refused(launch_s: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        cluster_checks.check(config(launch_s=launch_s))


@pytest.mark.parametrize("lag", [-1, "late", True])
def test_stage_lags_that_can_not_be_are_refused(lag: Any) -> None:
    with pytest.raises(InputError, match=r"cluster\.stage_lag_s"):
        cluster_checks.check(config(stage_lag_s=lag))


def test_rules_of_partitions_go_by_kinds_of_machines(workload: Workload) -> None:
    kinds = [{"cpu": 4, "partitions": ["batch*", "debug"]}]
    rules = {"debug": {"tier": 2, "max_time_s": 600}}
    built = clusters.build_for(
        workload, config(shape=kinds, count=5, partitions=rules, unadmitted="error"), 1.0
    ).cluster
    assert built.rules["debug"].tier == 2
    assert built.unadmitted == "error"
    cluster_checks.check(config(shape=kinds, count=5, partitions=rules))
    for changes, text in (
        ({"partitions": {"debg": {}}}, "did you mean 'debug'"),
        ({"partitions": [1]}, r"cluster\.partitions must be"),
        ({"unadmitted": "drop"}, r"cluster\.unadmitted must be"),
        ({"shape": "slots", "partitions": rules}, "unknown partition 'debug'"),
    ):
        with pytest.raises(InputError, match=text):
            cluster_checks.check(config(**{"shape": kinds, "count": 5} | changes))


def test_machines_are_in_domains_at_each_capacity(workload: Workload) -> None:
    topology = {"levels": {"rack": {"size": 2, "factor": 1.5}}, "preferred": None}
    shape = {"cpu": 4}
    for capacity, domains in ((1.0, [0, 0, 1, 1]), (0.75, [0, 0, 1])):
        built = clusters.build_for(
            workload, config(shape=shape, count=4, topology=topology), capacity
        ).cluster
        assert built.topology.domain.tolist() == [domains]
    for changed, text in (
        ({"levels": {}}, r"cluster\.topology must be like"),
        ({"levels": {"rack": {"size": 0}}}, r"cluster\.topology\.levels\.rack\.size must be"),
        ({"prefered": "rack"}, "did you mean 'preferred'"),
        ({"preferred": "rak"}, "did you mean 'rack'"),
    ):
        with pytest.raises(InputError, match=text):
            cluster_checks.check(config(shape=shape, count=4, topology=topology | changed))
    with pytest.raises(InputError, match="slots have no places"):
        clusters.build_for(workload, config(shape="slots", count=4, topology=topology), 1.0)


@pytest.mark.parametrize("enforce", [1, "yes", 0.5])
def test_limits_are_enforced_or_not(enforce: Any) -> None:
    with pytest.raises(InputError, match=r"cluster\.enforce_limits"):
        cluster_checks.check(config(enforce_limits=enforce))


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        (
            {"outages": 3},
            r"cluster\.outages has the keys mtbf_s, repair_s, until_s, known, drain, or",
        ),
        ({"outages": [{"machine": 0}]}, r"cluster\.outages\[0\] names no from_s"),
        (
            {"outages": {"mtbf_s": 3, "repair_s": 1, "until_s": 9, "known": 1}},
            r"cluster\.outages\.known must be true or false",
        ),
        ({"outages": {"mtbf": 3}}, "mtbf_s"),
        ({"outages": {"mtbf_s": 3, "repair_s": 0, "until_s": 9}}, r"repair_s must be .* not 0"),
        (
            {"slowdowns": {"every_s": 1, "last_s": 1, "speed": [2, 1], "until_s": 1}},
            "the lower bound comes first",
        ),
        ({"slowdowns": {"every_s": 1, "last_s": 1, "speed": [1], "until_s": 1}}, r"\[low, high\]"),
        (
            {"slowdowns": {"every_s": 1, "last_s": 1, "speed": 1, "until_s": 1, "label": 3}},
            r"slowdowns\.label must be",
        ),
        ({"slowdowns": {"every_s": 1}}, "last_s must be a number above 0, not None"),
    ],
)
def test_faults_that_can_not_be_drawn_are_refused(faults: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        cluster_checks.check(config(**faults))


KINDS = [
    {"class": "T4", "count": 6, "cpu": 8, "devices": {"gpu": 2}},
    {"count": 2, "cpu": 16},
]


def test_kinds_of_machines_keep_their_shares_at_each_capacity(workload: Workload) -> None:
    mixed = config(shape=KINDS, count=1, load=None)
    cluster_checks.check(mixed)
    built = clusters.build_for(workload, mixed, 0.5)
    assert built.facts["n_machines"] == 4
    cluster = built.cluster
    assert cluster.capacity.tolist() == [[8, 2]] * 3 + [[16, 0]]
    assert (cluster.devices, cluster.classes) == ("gpu", ("T4", ""))
    twice = clusters.build_for(workload, {**mixed, "count": 2}, 0.5)
    assert twice.facts["n_machines"] == 8


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"count": None}, "machines that differ need a cluster.count"),
        ({"shape": [{"count": 1}]}, "has no resource"),
        ({"fungible": ["gpu"]}, "unknown fungible resource 'gpu'"),
    ],
)
def test_kinds_that_are_none_are_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        cluster_checks.check(config(**{"shape": KINDS, "count": 1, "load": None, **changes}))


def test_caps_are_the_clusters(workload: Workload) -> None:
    limits = [{"of": "running_jobs", "by": ["user"], "at_most": 2}]
    options = config(limits=limits, accounts={"a": "root"})
    cluster_checks.check(options)
    cluster = clusters.build_for(workload, options, 1.0).cluster
    assert cluster.limits[0].number_of(["anyone"]) == 2
    assert cluster.accounts == {"a": "root"}
    with pytest.raises(InputError, match="did you mean 'at_most'"):
        cluster_checks.check(config(limits=[{"of": "cpu", "at_mos": 2}]))
    with pytest.raises(InputError, match=r"cluster\.limits must be a list"):
        cluster_checks.check(config(limits={"of": "cpu", "at_most": 2}))
