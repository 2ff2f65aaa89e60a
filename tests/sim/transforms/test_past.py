"""A trace cut into a history and a workload."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms
from sim.describe.slearn import load_statistics, window_loads
from sim.transforms import history_and_trace


def trace(n: int = 40, **others) -> sim.Workload:
    """Jobs of three users, one every 10 s; job 7 is wider than the others."""
    return sim.Workload.from_jobs(
        [
            {
                "job_id": f"j{at}",
                "submit_s": 10.0 * at,
                "user": f"u{at % 3}" if at % 3 else "",
                "application": f"a{at // 10}",
                "stages": [{"durations_s": [1.0 + at] * (9 if at % 20 == 7 else 2)}],
                **others,
            }
            for at in range(n)
        ]
    )


def test_jobs_come_from_the_second_half_and_their_past_from_the_first():
    w = history_and_trace(trace(), jobs=5, seed=1, slots=2, widest=8)
    assert w.n_jobs == 5
    assert w.jobs["submit_s"].to_pylist()[0] == 0.0
    drawn = [int(name[1:]) for name in w.jobs["job_id"].to_pylist()]
    assert min(drawn) >= 20
    assert 27 not in drawn
    users = set(w.jobs["user"].to_pylist()) - {""}
    wanted = [at for at in range(20) if at % 3 and f"u{at % 3}" in users and at != 7]
    first_s = 10.0 * drawn[0]
    assert w.history["submit_s"].to_pylist() == [10.0 * at - first_s for at in wanted]
    assert w.history["finish_s"].to_pylist() == [11.0 * at + 1 - first_s for at in wanted]
    assert w.history["mean_task_s"].to_pylist() == [1.0 + at for at in wanted]
    assert set(w.history["n_tasks"].to_pylist()) == {2}
    assert w.history["user"].to_pylist() == [f"u{at % 3}" for at in wanted]


def test_load_is_as_wanted_and_order_is_kept():
    w = history_and_trace(trace(200), jobs=50, seed=2, slots=3, load=0.7)
    assert max(w.mean_load(sim.Cluster.slots(3)).values()) == pytest.approx(0.7)
    drawn = [int(name[1:]) for name in w.jobs["job_id"].to_pylist()]
    assert drawn == sorted(drawn)
    noted = w.meta["transforms"][-1]
    assert noted["load"] == [0.7, pytest.approx(0.7)]
    figures = load_statistics(window_loads(w.columns.job_submit, w.columns.job_work, 3))
    assert {key: noted[key] for key in figures} == figures
    assert noted["too wide"] == 0


def test_every_job_is_as_likely_as_any_other():
    counts = np.zeros(40)
    for seed in range(200):
        w = history_and_trace(trace(), jobs=5, seed=seed, widest=20)
        counts[[int(name[1:]) for name in w.jobs["job_id"].to_pylist()]] += 1
    assert (counts[:20] == 0).all()
    assert counts[20:].sum() == 1000
    assert counts[20:].min() >= 25  # 50 on average, standard deviation 6


def test_all_jobs_are_compressed_alike():
    jobs = [
        {"submit_s": 1.0 * at, "stages": [{"durations_s": [float(i) for i in range(at + 1)]}]}
        for at in range(60)
    ]
    plain = sim.Workload.from_jobs(jobs)
    w = history_and_trace(plain, jobs=30, slots=10, wide="compress", source_slots=30, widest=18)
    n = np.array([int(name[4:]) + 1 for name in w.jobs["job_id"].to_pylist()])
    assert w.stages["n_tasks"].to_pylist() == np.minimum(np.ceil(n / 3), 18).tolist()
    for row, most in enumerate(n):
        first = w.stage_task0[row]
        mine = w.columns.task_duration[first : w.stage_task0[row + 1]]
        assert set(mine) <= set(range(most))
        assert len(set(mine)) == len(mine)


def test_when_jobs_ended_in_the_trace_is_told_of_the_past_alone():
    plain = trace()
    ended = plain.jobs.append_column("recorded_finish_s", [[20.0 * at for at in range(40)]])
    w = sim.Workload.from_tables(jobs=ended, stages=plain.stages, tasks=plain.tasks)
    cut = history_and_trace(w, jobs=20, slots=2)
    assert "recorded_finish_s" not in cut.jobs.column_names
    past = cut.history
    lasted = past["finish_s"].to_numpy() - past["submit_s"].to_numpy()
    first_s = 10.0 * int(cut.jobs["job_id"].to_pylist()[0][1:])
    np.testing.assert_allclose(lasted, past["submit_s"].to_numpy() + first_s)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "a whole number of at least 1"),
        ({"jobs": 30}, "give jobs=20 or less"),
        ({"load": 0.0}, "must be a number above 0"),
        ({"wide": "cut"}, "'drop' or 'compress'"),
        ({"wide": "compress"}, "slots of the trace's cluster"),
    ],
    ids=["none", "many", "load", "wide", "compress"],
)
def test_what_makes_no_sense_is_an_error(options, words):
    with pytest.raises(sim.InputError, match=words):
        history_and_trace(trace(), **{"jobs": 5, **options})


def test_a_trace_that_was_cut_is_not_cut_again():
    once = history_and_trace(trace(), jobs=10)
    with pytest.raises(sim.InputError, match="has a history already"):
        history_and_trace(once, jobs=2)


def test_the_real_trace_at_the_papers_size(shared_traces):
    plain = sim.read_trace("google2011", shared_traces / "google2011")
    w = transforms.apply(plain, "history_and_trace")
    assert w.n_jobs == 1250
    assert w.stages["n_tasks"].to_numpy().max() <= 150
    noted = w.meta["transforms"][-1]
    assert noted["load_average"] == pytest.approx(1.0, abs=0.1)
    assert noted["too wide"] == 347
    assert 3000 < w.history.num_rows < 6000
    assert (w.history["submit_s"].to_numpy() < 0).all()
