"""Jockey's policies on small worlds: deadlines, tokens, and refused inputs."""

import numpy as np
import pyarrow.compute as pc
import pytest

import policies
import sim
from policies.jockey import model
from policies.jockey.policy import Jockey
from sim.base import disk_cache
from sim.base.errors import InputError
from tests.policies.jockey.worlds import trained, world

ADAPTIVE = ["jockey", "jockey_amdahl", "jockey_online", "jockey_arbiter"]
ALL = [*ADAPTIVE, "jockey_static", "max_allocation"]


def slo(workload):
    return np.flatnonzero(np.isfinite(workload.columns.job_deadline))


def latency(result):
    rows = slo(result.workload)
    return (result.job_finish - result.job_submit)[rows]


def run(name, workload, slots=60, **params):
    return sim.simulate(
        workload, sim.Cluster.slots(slots), policies.build(name, **params), record="tasks"
    )


def tokens(result, job):
    """Return the guaranteed tokens of a job over time."""
    return result.limits.filter(pc.field("job") == int(job))["tokens"].to_pylist()


def used(result, at_s):
    """Count the running tasks of jobs with a deadline at an instant."""
    job = result.workload.columns.stage_job[
        np.repeat(np.arange(result.workload.n_stages), np.diff(result.workload.columns.stage_task0))
    ]
    has_deadline = np.isin(job, slo(result.workload))
    return int(((result.task_start <= at_s) & (at_s < result.task_finish) & has_deadline).sum())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", range(3))
def test_deadlines_are_met_beside_a_background(name, seed):
    workload = world(1500.0, seed=seed, n_background=60)
    assert (latency(run(name, workload)) <= 1500.0).all()


def test_a_job_gets_no_more_than_it_needs():
    rush, leisure = (latency(run("jockey", world(d, n_background=60)))[0] for d in (900.0, 2400.0))
    assert rush <= 900
    assert 1500 <= leisure <= 2400
    assert latency(run("max_allocation", world(2400.0, n_background=60)))[0] < 700


def test_only_with_adaptation_a_slower_run_gets_more():
    """Twice the work of the training run: late without adaptation, hardly with."""
    late = world(3600.0, factor=2.0, n_background=60)
    static, adapted = run("jockey_static", late), run("jockey", late)
    assert latency(static)[0] > 1.08 * 3600
    assert latency(adapted)[0] < 1.06 * 3600
    assert len(set(tokens(static, slo(late)[0]))) == 1
    assert max(tokens(adapted, slo(late)[0])) > 1.5 * tokens(adapted, slo(late)[0])[0]


def test_without_adaptation_there_is_slack_and_no_dead_zone():
    """§5.2; with the dead zone of the others it begins with their tokens."""
    workload = world(900.0)
    first = [
        tokens(run(name, workload, **params), 0)[0]
        for name, params in (
            ("jockey", {}),
            ("jockey", {"dead_zone_s": 0.0}),
            ("jockey_static", {}),
            ("jockey_static", {"dead_zone_s": 180.0}),
        )
    ]
    assert first[2] == first[1] < first[0] == first[3]


def test_progress_may_count_waiting_in_training_or_not():
    """Filters wait longest: after the maps, progress is lower if waiting counts."""
    columns, done = world().columns, np.array([[1.0, 0.0, 0.0]])
    by_waits = [
        policies.build("jockey", waits=waits, runs=5).predict_progress(
            columns, 0, done, np.array([20])
        )
        for waits in (True, False)
    ]
    waited, not_waited = (float(predicted["totalworkWithQ"][0][0]) for predicted in by_waits)
    plain = [float(predicted["totalwork"][0][0]) for predicted in by_waits]
    assert waited < 0.8 * not_waited
    assert plain[0] == plain[1]


def test_without_the_gate_a_job_gets_more_sooner():
    late = world(3600.0, factor=2.0, n_background=60)
    gated, shifted = (run("jockey", late, gate=gate) for gate in (True, False))
    assert tokens(gated, slo(late)[0])[0] == tokens(shifted, slo(late)[0])[0]
    assert latency(shifted)[0] < latency(gated)[0]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_deadline_that_changes_changes_the_tokens(name):
    change = {"new_deadline_at_s": 300.0}
    stays = latency(run(name, world(1800.0, n_background=60)))[0]
    sooner = latency(run(name, world(1800.0, n_background=60, new_deadline_s=900.0, **change)))[0]
    later = latency(run(name, world(1800.0, n_background=60, new_deadline_s=5400.0, **change)))[0]
    assert sooner <= 900.0 < stays <= 1800.0 < later <= 5400.0


def test_max_allocation_gives_all_and_no_more():
    result = run("max_allocation", world(1800.0, n_background=60), max_tokens=30)
    assert [used(result, t) for t in (110.0, 200.0, 300.0)] == [30, 30, 30]
    assert tokens(result, slo(result.workload)[0]) == [30]


@pytest.mark.parametrize("name", ["jockey", "max_allocation"])
def test_spare_tokens_may_be_left_to_others(name):
    workload = world(1800.0)
    result = run(name, workload, max_tokens=25, spare=False)
    assert max(used(result, time_s) for time_s in result.task_start) == max(tokens(result, 0))
    beyond = run(name, workload, max_tokens=25)
    assert used(beyond, 110.0) == 60
    assert latency(beyond)[0] < latency(result)[0] <= 1800.0


def test_raw_allocations_are_reported(monkeypatch):
    raw_by_event = []
    real = Jockey.react

    def react(self, memory, batch, world, plan):
        real(self, memory, batch, world, plan)
        raw_by_event.append(self.raw_allocations(memory))

    monkeypatch.setattr(Jockey, "react", react)
    result = run("jockey", world(1800.0), spare=False)
    assert raw_by_event[0] == {0: tokens(result, 0)[0]}
    assert all(0 <= raw <= 100 for raw_by_job in raw_by_event for raw in raw_by_job.values())


def test_without_deadlines_jobs_share_alike():
    """Two jobs at one instant, of long and of short tasks: each gets half of the slots."""
    rows = [
        {"submit_s": 0.0, "stages": [{"durations_s": [length] * n}]}
        for length, n in ((8.0, 40), (1.0, 400))
    ]
    result = run("jockey", sim.Workload.from_jobs(rows), slots=10)
    first = result.task_start < 8.0
    assert first[:40].sum() == 5
    assert first[40:].sum() == 5 * 8


def test_results_do_not_depend_on_earlier_simulations():
    workload = world(1500.0, n_background=20)
    once = run("jockey", workload)
    from_memory = run("jockey", workload)  # its model known by now
    model._MODELS.clear()
    from_disk = run("jockey", workload)
    model._MODELS.clear()
    with disk_cache.disabled():
        uncached = run("jockey", workload)
    for other in (from_memory, from_disk, uncached):
        np.testing.assert_array_equal(once.task_finish, other.task_finish)


def test_models_are_made_once_and_the_oldest_go(monkeypatch, tmp_path):
    simulated = []
    monkeypatch.setattr(model, "_MAX_MODELS", 2)
    monkeypatch.setattr(model, "_MODELS", type(model._MODELS)())
    real = model.resample
    monkeypatch.setattr(model, "resample", lambda p, n: simulated.append(p.digest) or real(p, n))
    monkeypatch.setattr(disk_cache, "cache_dir", lambda: tmp_path)

    def run_all():
        for seed in (0, 0, 1, 0, 2, 0, 1):
            run("jockey", world(3000.0, seed=seed), runs=5, allocations=3)

    with disk_cache.disabled():
        run_all()
    assert len(simulated) == 4  # of seed 0, 1, 2, and of 1 again
    for _ in range(2):
        model._MODELS.clear()
        run_all()
    assert len(simulated) == 4 + 3


@pytest.mark.parametrize("name", ALL)
def test_zero_tokens_are_refused(name):
    with pytest.raises(InputError, match="max_tokens must be a whole number"):
        policies.build(name, max_tokens=0)


@pytest.mark.parametrize(
    "params",
    [
        {"period_s": 0.0},
        {"slack": 0.0},
        {"hysteresis": 0.0},
        {"hysteresis": 1.1},
        {"dead_zone_s": -1.0},
        {"quantile": 0.0},
        {"runs": 0},
        {"allocations": 1},
        {"utility": ((0.0, 1.0), (1.0, 2.0))},
        {"indicator": "total"},
        {"slack": float("nan")},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(params):
    with pytest.raises(InputError):
        policies.build("jockey", **params)


@pytest.mark.parametrize("name", ["jockey", "jockey_static", "jockey_amdahl"])
def test_error_for_an_infeasible_deadline_names_the_shortest(name):
    workload = world(100.0)
    with pytest.raises(InputError, match=r"deadline of 100 s, but .* it takes (\d+)") as error:
        run(name, workload)
    words = str(error.value)
    shortest = float(words.split("it takes ")[1].split(" s")[0])
    assert 150 < shortest < 900
    assert latency(run(name, workload, infeasible="run"))[0] < 1000  # all tokens, and late
    run(name, world(shortest + 1.0))


@pytest.mark.parametrize("name", ["jockey", "jockey_static", "jockey_amdahl"])
def test_a_deadline_without_training_is_refused(name):
    with pytest.raises(InputError, match=r"template 'b'\) has a deadline but no training records"):
        run(name, world(template="b"))


def test_a_profile_that_lacks_a_stage_is_refused():
    records = trained()
    keep = records["stage"] != 2
    partial = {k: np.asarray(v)[keep] for k, v in records.items()}
    with pytest.raises(InputError, match=r"lack 1 of its 3 stages \(2\)"):
        run("jockey", world().with_training(partial))


def test_a_job_whose_every_task_failed_in_training_is_taken_to_fail_again():
    records = trained()
    records["n_failed"] = np.full(len(records["run"]), 3, "i4")
    workload = world(6000.0)
    calm = run("jockey", workload)
    wary = run("jockey", workload.with_training(records))
    assert tokens(wary, 0)[0] > 1.5 * tokens(calm, 0)[0]
    assert latency(wary)[0] <= 6000.0


def test_only_jobs_that_fit_are_accepted():
    """Each of three jobs needs almost half of the slots."""
    workload = world(900.0, n_jobs=3, n_background=60)
    every = run("jockey", workload, slots=64)
    fitting = run("jockey", workload, slots=64, admission="fitting", spare=False)
    assert (latency(fitting)[:2] <= 900.0).all()
    firsts = [[tokens(result, job)[0] for job in slo(workload)] for result in (every, fitting)]
    assert firsts == [[30, 30, 30], [30, 30, 0]]
    assert latency(fitting)[2] > latency(every)[2]


@pytest.mark.parametrize("indicator", ["totalwork", "vertexfrac", "cp", "minstage", "minstage-inf"])
def test_every_indicator_meets_the_deadline(indicator):
    workload = world(1500.0, n_background=40)
    assert latency(run("jockey", workload, indicator=indicator))[0] <= 1500.0


def test_a_longer_period_updates_less_often(monkeypatch):
    times_s = []
    real = Jockey.allocate
    monkeypatch.setattr(Jockey, "allocate", lambda *a: times_s.append(a[3]) or real(*a))
    run("jockey", world(1500.0), period_s=300.0)
    assert times_s[0] == 100.0
    np.testing.assert_allclose(np.diff(times_s), 300.0)
    times_s.clear()
    run("jockey_static", world(1500.0))
    assert times_s == [100.0]


def test_lowering_evicts_no_task():
    """A deadline is postponed at 160 s: tasks beyond the tokens continue to run."""
    change = {"new_deadline_s": 6000.0, "new_deadline_at_s": 60.0}
    workload = world(900.0, n_background=60, **change)
    result = run("jockey", workload, hysteresis=1.0)
    before, after = used(result, 159.0), used(result, 160.0)
    assert before >= 20
    assert after >= before - 2  # a task or two may end at that very instant
    assert tokens(result, slo(workload)[0])[-1] < before / 3


def test_a_guaranteed_task_takes_the_room_of_a_spare_one_at_once():
    """All slots are taken by long tasks of a job without a deadline when the other comes."""
    spare = {"submit_s": 0.0, "stages": [{"durations_s": [1e4] * 60}]}
    guaranteed = {
        "submit_s": 100.0,
        "template": "a",
        "deadline_s": 1800.0,
        "stages": [{"durations_s": [60.0] * 20}],
    }
    records = {
        "template": ["a"] * 20,
        "run": [0] * 20,
        "stage": [0] * 20,
        "task": range(20),
        "ready_s": [0.0] * 20,
        "start_s": [0.0] * 20,
        "finish_s": [60.0] * 20,
    }
    workload = sim.Workload.from_jobs([spare, guaranteed]).with_training(records)
    result = run("max_allocation", workload, max_tokens=10)
    assert latency(result)[0] == 120.0
    shared = run("fair", workload)
    assert latency(shared)[0] > 1e4 - 100
