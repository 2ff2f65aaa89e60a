import numpy as np
import pytest

import sim
from sim.workload import columns
from sim.workload.columns import stage_durations
from sim.workload.inflow import SLOT, stage_start_s


def chain(submit_s, rng, like=False):
    lasts = [[5.0] * 3] * 3 if like else [rng.exponential(5.0, 3).tolist() for _ in range(3)]
    demands = [{"cpu": float(rng.integers(1, 5)), "mem": float(rng.integers(1, 9))} for _ in lasts]
    parents = [[], ["a"], ["a", "b"]]
    stages = [
        {"name": name, "durations_s": last, "demand": demand, "parents": parent}
        for name, last, demand, parent in zip("abc", lasts, demands, parents, strict=True)
    ]
    return {"submit_s": submit_s, "stages": stages}


def some(seed, like=False):
    rng = np.random.default_rng(seed)
    return sim.Workload.from_jobs([chain(float(t), rng, like) for t in range(0, 40, 2)])


def naive(w, until_s):
    """Sum the work task by task."""
    c, end = w.columns, {}
    done = dict.fromkeys((*w.resources, SLOT), 0.0)
    for stage in range(len(c.stage_job)):  # parents come first here
        parents = [
            p for p in range(stage) if stage in c.edge_child[c.edge0[p] : c.edge0[p + 1]].tolist()
        ]
        start = max([end[p] for p in parents], default=c.job_submit[c.stage_job[stage]])
        last = c.task_duration[c.stage_task0[stage] : c.stage_task0[stage + 1]]
        end[stage] = start + last.max()
        ran = float(np.clip(until_s - start, 0.0, last).sum())
        done[SLOT] += ran
        for r, name in enumerate(w.resources):
            done[name] += ran * c.stage_demand_f[stage, r]
    return done


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_work_that_can_be_done_against_a_naive_sum(seed, like, monkeypatch):
    monkeypatch.setattr(columns, "CHUNK", 7)
    w = some(seed, like)
    actual = w.inflow
    assert actual.resources == (*w.resources, SLOT)
    assert actual.time_s[0] == 0
    assert actual.time_s[-1] == 38
    for step in (0, 1, 17, 500, 999, 1000):
        expected = naive(w, w.columns.job_submit[0] + actual.time_s[step])
        for name, work in zip(actual.resources, actual.work, strict=True):
            assert work[step] == pytest.approx(expected[name], rel=1e-9, abs=1e-9)


def test_both_representations_of_durations_give_the_same_inflow():
    w = some(0, like=True)
    expanded = sim.Workload.from_tables(
        w.jobs, w.stages, w.tasks, w.stage_edges, meta={"quantum": w.meta["quantum"]}
    )
    assert w.stage_duration_s is None or expanded.stage_duration_s is None
    assert w.inflow.work.tobytes() == expanded.inflow.work.tobytes()


def test_a_stage_starts_when_its_parents_have_ended():
    w = some(1)
    c = w.columns
    start = stage_start_s(w, stage_durations(w)[1])
    last = c.stage_max_s.reshape(-1, 3)
    a, b, last_of_all = start.reshape(-1, 3).T
    assert not a.any()
    np.testing.assert_allclose(b, last[:, 0])
    np.testing.assert_allclose(last_of_all, last[:, 0] + last[:, 1])


def test_of_jobs_of_one_instant_all_work_counts_within_the_longest_path():
    stages = [{"name": "a", "durations_s": [5.0] * 8}]
    stages += [{"name": "b", "durations_s": [15.0], "parents": ["a"]}]
    actual = sim.Workload.from_jobs([{"submit_s": 7.0, "stages": stages}]).inflow
    assert actual.time_s.tolist() == [0, 20]
    assert actual.work[-1].tolist() == [0, 55]
    nothing = sim.Workload.from_jobs([{"submit_s": 7.0, "stages": [{"durations_s": [0.0]}]}])
    assert nothing.inflow.time_s.tolist() == [0, 1]
