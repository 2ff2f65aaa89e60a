"""Tiresias: starts, ends and stops worked out by hand."""

from __future__ import annotations

import pytest

import policies
import sim
from tests.policies.test_peers import FIFO, gang, gpus, mean_jct_s, same_in_both, times


def tiresias(*thresholds_gpu_s, **options):
    return policies.build("tiresias", thresholds_gpu_s=[*thresholds_gpu_s], **options)


def test_queues_by_hand():
    """One machine of 4 GPUs; a job leaves the first queue after 40 GPU s.

    a, a gang of two workers of 2 GPUs, has had 4 · 10 = 40 GPU s at 10: it stops as a whole, and b
    starts, on 4 GPUs. At 15 b ends with 20 GPU s; c, on 1 GPU, comes before a. It has had 30 GPU s
    when it ends at 45, where 1 GPU for 30 s would have been beyond a's 10 s of time. Then a has 20
    of 30 s left.
    """
    jobs = [gang("a", 0, 2, 2, 30.0), gang("b", 2, 1, 4, 5.0), gang("c", 3, 1, 1, 30.0)]
    machine = gpus((1, "v100", 4, 8))
    policy = tiresias(40.0)
    assert times(jobs, machine, policy) == {"a": (0, 65), "b": (10, 15), "c": (15, 45)}
    stops = sim.simulate(sim.Workload.from_jobs(jobs), machine, policy).stops.to_pydict()
    assert (stops["job_id"], stops["stop_s"]) == (["a", "a"], [10, 10])
    assert times(jobs, machine, FIFO) == {"a": (0, 30), "b": (30, 35), "c": (35, 65)}


def test_jobs_move_down_queue_by_queue():
    """Two GPUs; jobs of both leave the first queue after 5 s of run, and the second after 15 s.

    a has been in the second queue since 5 when b comes at 7 and stops it. At 12 b is in the second
    queue, too, where nobody stops anybody; at 22 it is in the third, and a stops it. From 30 on a
    is in the third queue as well; it ends at 35, after 7 and 13 s, and b, with 5 s left, at 40.
    """
    jobs = [gang("a", 0, 2, 1, 20.0), gang("b", 7, 1, 2, 20.0)]
    policy = tiresias(10.0, 30.0)
    workload, machine = sim.Workload.from_jobs(jobs), gpus((1, "v100", 2, 8))
    assert times(jobs, machine, policy) == {"a": (0, 35), "b": (7, 40)}
    stops = sim.simulate(workload, machine, policy).stops.to_pydict()
    assert (stops["job_id"], stops["stop_s"]) == (["a", "a", "b"], [7, 7, 22])


@pytest.mark.parametrize(
    ("knob", "span"), [(0.0, (0, 50)), (3.0, (0, 50)), (2.0, (0, 40)), (1.7, (0, 40))]
)
def test_a_job_that_has_waited_for_long_goes_first_again(knob, span):
    """One GPU; a moves down at 10, and waits for jobs of 5 s, of which there is always another.

    It has run for 10 s: with a knob of 2 it is promoted at 30, when the fourth ends, and comes
    before the others, as it started first. With 1.7 it is at 27, and stops nobody of its queue;
    with 3 at 40, when all have ended.
    """
    short = [gang(f"s{t}", t, 1, 1, 5.0) for t in (8, 12, 17, 22, 27, 32)]
    policy = tiresias(10.0, promote_knob=knob)
    ran = times([gang("a", 0, 1, 1, 20.0), *short], gpus((1, "v100", 1, 8)), policy)
    assert ran["a"] == span
    assert ran["s22"] == (25, 30)
    assert ran["s27"] == ((30, 35) if span[1] == 50 else (40, 45))


def test_a_promoted_job_stops_a_lower_one_and_is_served_anew():
    """One GPU. a moves down at 10, b, which starts then, at 20, and goes on beside a's queue.

    a has run for 10 s and waits from 10 on: with a knob of 2 it stops b at 30. It moves down again
    after 10 s, at 40, where b stops nobody: a ends at 50, and b, which has had 20 of 30 s, at 60.
    """
    jobs = [gang("a", 0, 1, 1, 30.0), gang("b", 5, 1, 1, 30.0)]
    machine = gpus((1, "v100", 1, 8))
    policy = tiresias(10.0, promote_knob=2.0)
    assert times(jobs, machine, policy) == {"a": (0, 50), "b": (10, 60)}
    stops = sim.simulate(sim.Workload.from_jobs(jobs), machine, policy).stops.to_pydict()
    assert (stops["job_id"], stops["stop_s"]) == (["a", "b"], [10, 30])
    assert times(jobs, machine, tiresias(10.0)) == {"a": (0, 60), "b": (10, 40)}


def test_a_second_promotion_counts_from_the_first():
    """As before, and at 41 the first of the short jobs stops a, which has run for 11 s since 30.

    So a is due at 63, and starts at 66, when the fifth of them ends; it ends at 75. b, stopped at
    30 after 20 s, is due at 70, and has the last 10 s before the sixth.
    """
    short = [gang(f"s{t}", t, 1, 1, 5.0) for t in (41, 42, 43, 44, 45)]
    late = [gang(f"s{t}", t, 1, 1, 5.0) for t in (46, 47)]
    jobs = [gang("a", 0, 1, 1, 30.0), gang("b", 5, 1, 1, 30.0), *short, *late]
    ran = times(jobs, gpus((1, "v100", 1, 8)), tiresias(10.0, promote_knob=2.0))
    assert (ran["a"], ran["b"]) == ((0, 75), (10, 85))
    assert [ran[f"s{t}"][0] for t in (41, 42, 43, 44, 45, 46, 47)] == [41, 46, 51, 56, 61, 85, 90]


@pytest.mark.long
@pytest.mark.parametrize("per_worker", [1, 2, 4])
def test_kernel_and_naive_simulator_agree(per_worker):
    policy = tiresias(7200.0, 144_000.0, promote_knob=2.0)
    assert same_in_both(policy, per_worker) > 10


@pytest.mark.long
@pytest.mark.slow
def test_mean_jct_is_shorter_than_with_fifo():
    """Tiresias, §5: without any duration, against FIFO that passes over what does not fit."""
    cluster = gpus((9, "v100", 4, 20))
    ours = mean_jct_s(tiresias(2 * 3600.0, 40 * 3600.0), cluster, every_s=2500.0)
    fifo = mean_jct_s(FIFO, cluster, every_s=2500.0)
    assert (ours < fifo).all()
    assert ours.mean() < 0.85 * fifo.mean()
