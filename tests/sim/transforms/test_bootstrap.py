"""Draws of a log: blocks stay whole, and every job is equally likely."""

import numpy as np
import pytest

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
