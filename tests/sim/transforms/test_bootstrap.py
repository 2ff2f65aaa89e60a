"""Draws of a log: blocks stay whole, and every job is equally likely."""

import numpy as np
import pytest

import policies
import sim
from sim import transforms
from sim.base.errors import InputError

HOUR = 3600.0


def log(rng, hours=24, per_hour=5):
    times = np.sort(rng.random(hours * per_hour)) * hours * HOUR
    return sim.Workload.from_jobs(
        {
            "job_id": f"j{k}",
            "submit_s": float(t - times[0]),
            "user": f"u{k % 9}",
            "stages": [{"durations_s": [float(1 + k)]}],
        }
        for k, t in enumerate(times)
    )


WORKLOAD = log(np.random.default_rng(0))
SUBMIT = dict(
    zip(WORKLOAD.jobs["job_id"].to_pylist(), WORKLOAD.jobs["submit_s"].to_pylist(), strict=True)
)


def originals(drawn):
    return [name.partition("+")[0] for name in drawn.jobs["job_id"].to_pylist()]


def test_blocks_are_contiguous_and_keep_times_within():
    drawn = transforms.apply(WORKLOAD, "bootstrap", by="hour", seed=3)
    assert drawn.meta["transforms"][-1] == {"bootstrap": "hour", "blocks": 24, "seed": 3}
    old = np.array([SUBMIT[name] for name in originals(drawn)])
    new = drawn.jobs["submit_s"].to_numpy()
    assert (np.diff(new) >= 0).all()
    block = old // HOUR
    shift = np.round(new - old, 6)
    for k in np.unique(block):  # a copy of a block moves as a whole, as often as it was drawn
        _, counts = np.unique(shift[block == k], return_counts=True)
        assert set(counts) == {sum(t // HOUR == k for t in SUBMIT.values())}
    assert len(set(drawn.jobs["job_id"].to_pylist())) == drawn.n_jobs
    longest = drawn.columns.task_duration[:3].tolist()
    assert longest == [1.0 + int(name[1:]) for name in originals(drawn)[:3]]


def test_users_are_drawn_with_all_their_jobs():
    drawn = transforms.apply(WORKLOAD, "bootstrap", by="user", seed=1)
    users = np.array([int(name[1:]) % 9 for name in originals(drawn)])
    counts = np.bincount(users, minlength=9)
    size = np.bincount(np.arange(WORKLOAD.n_jobs) % 9)
    assert (counts % size == 0).all()
    assert (counts // size).sum() == 9
    assert drawn.jobs["submit_s"].to_pylist() == [SUBMIT[name] for name in originals(drawn)]


def test_every_job_is_equally_likely():
    total = np.zeros(WORKLOAD.n_jobs)
    for seed in range(300):
        names = originals(transforms.apply(WORKLOAD, "bootstrap", by="hour", seed=seed))
        total += np.bincount([int(name[1:]) for name in names], minlength=len(total))
    assert total.mean() / 300 == pytest.approx(1, abs=0.01)
    assert np.abs(total / 300 - 1).max() < 5 / np.sqrt(300)


def test_too_few_blocks_are_refused():
    with pytest.raises(InputError, match=r"1 days, of 23\.\d hours.*at least 8.*seeds_block"):
        transforms.apply(WORKLOAD, "bootstrap", by="day")
    few = WORKLOAD.slice_time(0, 3 * HOUR)
    with pytest.raises(InputError, match="the log has 3 hours"):
        transforms.apply(few, "bootstrap")


def chains(spacing_s=600.0, length=3, hours=24):
    """Jobs a, b, c of a DAG that begins each hour, `spacing_s` apart; a user a DAG."""
    jobs = []
    for hour in range(hours):
        for k in range(length):
            before = {"afterok": [f"{hour}.{k - 1}"]} if k else {}
            jobs.append(
                {
                    "job_id": f"{hour}.{k}",
                    "submit_s": hour * HOUR + k * spacing_s,
                    "user": f"u{hour}",
                    "after": before,
                    "stages": [{"durations_s": [5.0]}],
                }
            )
    return sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))


@pytest.mark.parametrize(
    ("by", "spacing_s"), [("hour", 600.0), ("hour", 1.4 * HOUR), ("user", 600.0)]
)
def test_jobs_that_depend_on_each_other_are_drawn_as_a_whole(by, spacing_s):
    workload = chains(spacing_s)
    drawn = transforms.apply(workload, "bootstrap", by=by, seed=2)
    names, submit_s = originals(drawn), drawn.jobs["submit_s"].to_numpy()
    edges = drawn.job_edges.to_pydict()
    up, down = (np.array(edges[key]) for key in ("upstream", "downstream"))
    assert drawn.n_jobs % 3 == 0
    assert drawn.n_jobs / 3 * 2 == len(up) == len({*zip(up.tolist(), down.tolist(), strict=True)})
    assert (np.diff(submit_s) >= 0).all()
    assert submit_s[down] - submit_s[up] == pytest.approx(spacing_s)
    for u, d in zip(up.tolist(), down.tolist(), strict=True):
        (hour, k), (same, following) = names[u].split("."), names[d].split(".")
        assert (same, int(following)) == (hour, int(k) + 1)
    assert max(names.count(name) for name in names) > 1
    assert set(edges["kind"]) == {"afterok"}


def test_the_draws_run(tmp_path):
    drawn = transforms.apply(chains(), "bootstrap", seed=5)
    drawn.write(tmp_path / "w")
    jobs = sim.simulate(
        sim.Workload.read(tmp_path / "w"), sim.Cluster.slots(1), policies.build("fifo")
    ).jobs
    assert set(jobs["outcome"].to_pylist()) == {"done"}


def test_a_log_of_one_component_is_refused():
    chain = chains(HOUR, length=24, hours=1)
    with pytest.raises(InputError, match=r"100 % of the jobs depend on each other.*at most 12.5 %"):
        transforms.apply(chain, "bootstrap", by="hour")
    with pytest.raises(InputError, match=r"100 % of the jobs.*over more than 12.5 % of the log"):
        transforms.apply(chains(3 * HOUR), "bootstrap", by="hour")
    jobs = [
        {"job_id": f"{k}", "submit_s": 1.0 * k, "user": f"u{k}", "stages": [{"durations_s": [5.0]}]}
        for k in range(20)
    ]
    jobs[5]["after"] = {"afterok": ["4"]}
    with pytest.raises(InputError, match="jobs of several users depend on each other"):
        transforms.apply(sim.Workload.from_jobs(jobs), "bootstrap", by="user")
