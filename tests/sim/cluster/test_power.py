"""Power, series and changes of machines: what is parsed, and refused with a way out."""

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.changes import with_changes
from sim.cluster.faults import Outages
from sim.cluster.power import Power, Series, read_series
from sim.metrics.power import by_machine, resource_of

TWO_KINDS = [
    {"count": 2, "class": "a", "cpu": 8},
    {"count": 1, "class": "b", "cpu": 4, "devices": {"gpu": 2}},
]


def test_an_integral_is_that_of_the_steps():
    series = Series(np.array([0.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0]), 6.0, 1.0)
    # from 1 s on, each second: 3, then 1 until 5 s, 4, and again 3, 3, ...
    seconds = [3, 1, 1, 1, 4, 3, 3, 1, 1, 1, 4]
    assert np.diff(series.integral(np.arange(12.0))).tolist() == seconds
    assert np.diff(series.integral(np.array([0.5, 1.5]))).tolist() == [0.5 * 3 + 0.5 * 1]


def test_a_series_without_repetition_holds_its_last_number():
    series = Series(np.array([0.0, 2.0]), np.array([3.0, 1.0]))
    assert np.diff(series.integral(np.array([1.0, 2.0, 100.0]))).tolist() == [3.0, 98.0]


def test_tables_are_by_class():
    cluster = sim.Cluster.mixed(TWO_KINDS)
    power = Power.parse({"idle_w": {"b": 50, "*": 10}, "busy_w": 90})
    assert by_machine(power.idle_w, cluster).tolist() == [10, 10, 50]
    assert by_machine(power.busy_w, sim.Cluster.slots(3)).tolist() == [270]
    by_cpu = Power.parse({"idle_w": 1, "busy_w": 1, "of": "cpu"})
    # by GPUs where there are some
    assert [cluster.resources[r] for r in resource_of(power, cluster)] == ["cpu", "cpu", "gpu"]
    assert not resource_of(by_cpu, cluster).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"idle": 1}, "did you mean 'idle_w'"),
        ({"idle_w": None}, "power has no 'idle_w'"),
        ({"busy_w": 5}, "draw 5 W when busy and 10 W when idle"),
        ({"busy_w": {"a": 5, "*": 20}}, "class 'a' draw 5 W"),
        ({"busy_w": {"z": 50}, "idle_w": 0}, "class in power 'z'"),
        ({"busy_w": {"a": 50}}, "power.busy_w has no number for machines of class 'b'"),
        ({"of": "gpus"}, "resource in power.of 'gpus'; did you mean 'gpu'"),
        ({"price_per_kwh": [[5, 1]]}, r"price_per_kwh\[0\]: 5 s; times begin at 0"),
        ({"price_per_kwh": [[0, 1], [0, 2]]}, r"price_per_kwh\[1\]"),
        ({"price_per_kwh": [[0, 1], [50, 2]], "repeat_s": 50}, "begins again after repeat_s=50"),
        ({"price_per_kwh": [[0, -1]]}, r"price_per_kwh\[0\]"),
        ({"price_per_kwh": [0, 1]}, "rows of"),
    ],
)
def test_invalid_power_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        sim.Cluster.mixed(TWO_KINDS).with_power({"idle_w": 10, "busy_w": 20} | change)


def test_a_file_of_a_series_is_read_and_its_faults_have_lines(tmp_path):
    path = tmp_path / "grid.csv"
    path.write_text("time_s,g\n0,400\n3600,120.5\n")
    assert read_series(path) == [[0.0, 400.0], [3600.0, 120.5]]
    path.write_text("time_s,g\n0,400\n3600,many\n")
    with pytest.raises(InputError, match=r"grid\.csv, line 3"):
        read_series(path)
    with pytest.raises(InputError, match="No such file"):
        read_series(tmp_path / "none.csv")


def test_machines_come_and_go():
    cluster = with_changes(
        sim.Cluster.mixed(TWO_KINDS),
        [
            {"at_s": 10, "machines": -1, "class": "a"},
            {"at_s": 20, "machines": 2, "class": "a", "known": True},
            {"at_s": 30, "machines": -1, "class": "b"},
        ],
    )
    outages = cluster.outages
    rows = zip(*(c.tolist() for c in outages.columns), outages.is_known.tolist(), strict=True)
    # the one that went comes back, and a further one is like it
    assert sorted(rows) == [(1, 10, 20, False), (2, 30, np.inf, False), (3, 0, 20, True)]
    assert cluster.machine_class.tolist() == [0, 0, 1, 0]
    assert cluster.capacity[3].tolist() == cluster.capacity[0].tolist()


def test_a_job_on_a_machine_that_goes_starts_again():
    workload = sim.Workload.from_jobs([{"submit_s": 0, "stages": [{"durations_s": [10, 10]}]}])
    spot = with_changes(sim.Cluster.machines(2, cpu=1), [{"at_s": 4, "machines": -1}])
    result = sim.simulate(workload, spot, policies.build("fifo"))
    assert result.tasks["finish_s"].to_pylist() == [10.0, 20.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"at_s": 1, "machines": -3}], "takes 3 machines, and 2 are in the cluster"),
        ([{"at_s": 1, "machines": 0}], "machines is 0"),
        ([{"at_s": 1}], "names no machines"),
        ([{"at_s": 1, "machines": 1, "class": "z"}], "no classes; leave class out"),
        ([{"at_s": 2, "machines": 1}, {"at_s": 1, "machines": 1}], r"changes\[1\].at_s is 1"),
        ([{"at_s": 2, "machine": 1}], "did you mean 'machines'"),
    ],
)
def test_invalid_changes_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        with_changes(sim.Cluster.machines(2, cpu=1), rows)


def test_slots_of_a_pool_do_not_come_and_go():
    with pytest.raises(InputError, match="machines of one slot each"):
        with_changes(sim.Cluster.slots(2), [{"at_s": 1, "machines": 1}])


def test_outages_that_overlap_absences_are_joined():
    changed = with_changes(sim.Cluster.machines(2, cpu=1), [{"at_s": 5, "machines": -1}])
    drawn = Outages.from_columns([1, 0, 1], [2, 3, 9], [6, 4, 10])
    joined = changed.outages.joined(drawn)
    assert [c.tolist() for c in joined.columns] == [[0, 1], [3, 2], [4, np.inf]]
