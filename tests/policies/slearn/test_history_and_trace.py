"""Transform that cuts a trace into a history and a workload."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.slearn.task_variation import load_statistics, window_loads
from sim import transforms
from sim.transforms import history_and_trace


def trace(n: int = 40, **columns) -> sim.Workload:
    """Return jobs of three users, one every 10 s; jobs 7 and 27 are wider than the others."""
    return sim.Workload.from_jobs(
        [
            {
                "job_id": f"j{i}",
                "submit_s": 10.0 * i,
                "user": f"u{i % 3}" if i % 3 else "",
                "application": f"a{i // 10}",
                "stages": [{"durations_s": [1.0 + i] * (9 if i % 20 == 7 else 2)}],
                **columns,
            }
            for i in range(n)
        ]
    )


def test_jobs_are_of_the_second_half_and_history_of_the_first():
    w = history_and_trace(trace(), jobs=5, seed=1, slots=2, widest=8)
    assert w.n_jobs == 5
    assert w.jobs["submit_s"].to_pylist()[0] == 0.0
    drawn = [int(name[1:]) for name in w.jobs["job_id"].to_pylist()]
    assert min(drawn) >= 20
    assert 27 not in drawn
    users = set(w.jobs["user"].to_pylist()) - {""}
    expected = [i for i in range(20) if i % 3 and f"u{i % 3}" in users and i != 7]
    first_s = 10.0 * drawn[0]
    assert w.history["submit_s"].to_pylist() == [10.0 * i - first_s for i in expected]
    assert w.history["finish_s"].to_pylist() == [11.0 * i + 1 - first_s for i in expected]
    assert w.history["mean_task_s"].to_pylist() == [1.0 + i for i in expected]
    assert set(w.history["n_tasks"].to_pylist()) == {2}
    assert w.history["user"].to_pylist() == [f"u{i % 3}" for i in expected]


def test_load_is_reached_and_order_preserved():
    w = history_and_trace(trace(200), jobs=50, seed=2, slots=3, load=0.7)
    assert max(w.mean_load(sim.Cluster.slots(3)).values()) == pytest.approx(0.7)
    drawn = [int(name[1:]) for name in w.jobs["job_id"].to_pylist()]
    assert drawn == sorted(drawn)
    noted = w.meta["transforms"][-1]
    assert noted["load"] == [0.7, pytest.approx(0.7)]
    figures = load_statistics(window_loads(w.columns.job_submit, w.columns.job_work, 3))
    assert {key: noted[key] for key in figures} == figures
    assert noted["too wide"] == 0


def test_all_jobs_of_the_second_half_are_equally_likely():
    counts = np.zeros(40)
    for seed in range(200):
        w = history_and_trace(trace(), jobs=5, seed=seed, widest=20)
        counts[[int(name[1:]) for name in w.jobs["job_id"].to_pylist()]] += 1
    assert (counts[:20] == 0).all()
    assert counts[20:].sum() == 1000
    assert counts[20:].min() >= 25  # 50 on average, standard deviation 6


def test_all_jobs_are_compressed_by_the_same_ratio():
    jobs = [
        {"submit_s": 1.0 * i, "stages": [{"durations_s": [float(i) for i in range(i + 1)]}]}
        for i in range(60)
    ]
    plain = sim.Workload.from_jobs(jobs)
    w = history_and_trace(plain, jobs=30, slots=10, wide="compress", source_slots=30, widest=18)
    n = np.array([int(name[4:]) + 1 for name in w.jobs["job_id"].to_pylist()])
    assert w.stages["n_tasks"].to_pylist() == np.minimum(np.ceil(n / 3), 18).tolist()
    for row, n_before in enumerate(n):
        first = w.stage_task0[row]
        kept_s = w.columns.task_duration[first : w.stage_task0[row + 1]]
        assert set(kept_s) <= set(range(n_before))
        assert len(set(kept_s)) == len(kept_s)


def test_recorded_ends_are_used_for_the_history_only():
    plain = trace()
    ended = plain.jobs.append_column("recorded_finish_s", [[20.0 * i for i in range(40)]])
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
def test_invalid_options_are_errors(options, words):
    with pytest.raises(sim.InputError, match=words):
        history_and_trace(trace(), **{"jobs": 5, **options})


def test_a_trace_with_a_history_is_refused():
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
