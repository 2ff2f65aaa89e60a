"""Peers of GPU clusters: examples by hand, and who beats whom as in their publications."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from tests.policies.peers import SensitiveFirst
from tests.policies.small import job
from tests.sim.engine.test_kernel import assert_same

pytestmark = pytest.mark.long

FIFO = policies.build("fifo", fit="skip")
PACKING = ("fifo", "best_fit", "gpu_packing", "dot_product", "fgd")
SEEDS = range(4)


def gang(name, submit_s, n, gpu, seconds, *, cpu=1.0, **speed):
    """Build a job of `n` workers of `gpu` GPUs each, which start together."""
    spec = job(name, submit_s, [seconds] * n, {"cpu": cpu, "gpu": gpu}, min_tasks=n * (n > 1))
    spec["stages"][0]["speed"] = speed
    return spec


def gpus(*kinds):
    """Build a cluster from (count, class, GPUs, CPUs)."""
    keys = ("count", "class", "devices", "cpu")
    return sim.Cluster.mixed(
        [dict(zip(keys, (n, name, {"gpu": g}, cpu), strict=True)) for n, name, g, cpu in kinds]
    )


def times(jobs, cluster, policy):
    table = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policy).jobs.to_pydict()
    columns = (table["job_id"], table["start_s"], table["finish_s"])
    return {name: (start, end) for name, start, end in zip(*columns, strict=True)}


def mean_jct_s(policy, cluster, **options):
    """Return the mean JCT of 300 jobs of the generator `training`, by seed."""
    means = []
    for seed in SEEDS:
        workload = sim.synthesize("training", jobs=300, seed=seed, fast=0.0, **options)
        means.append(sim.simulate(workload, cluster, policy).metrics["jct_mean_s"])
    return np.array(means)


@pytest.mark.parametrize("per_worker", [1, 2, 4])
def test_kernel_and_naive_simulator_agree(per_worker):
    assert same_in_both(SensitiveFirst(), per_worker) == 0


def same_in_both(policy, per_worker):
    """Check a run of gangs against the naive simulator; return the number of its stops."""
    options = {"jobs": 40, "every_s": 4000.0, "fast": 0.0, "per_worker": per_worker}
    workload = sim.synthesize("training", seed=per_worker, **options)
    cluster = gpus(*[(1, name, 4, 20) for name in ("k80", "p100", "v100")])
    run, _ = assert_same(workload, cluster, policy)
    return len(run.stops)


def test_the_job_that_loses_most_on_slow_gpus_gets_the_fast_ones():
    """Two gangs of two workers of a GPU, 10 s on V100s; on K80s a is half as fast, b a tenth.

    By speeds alone a takes the V100s, as it came first, and b takes 100 s: 1 + 0.1 of throughput,
    against 0.5 + 1 with the order, too. First fit gives the first job the first machine, K80s.
    """
    jobs = [gang("a", 0, 2, 1, 10.0, k80=0.5), gang("b", 0, 2, 1, 10.0, k80=0.1)]
    cluster = gpus((1, "k80", 2, 8), (1, "v100", 2, 8))
    assert times(jobs, cluster, SensitiveFirst()) == {"a": (0, 20), "b": (0, 10)}
    assert times(jobs, cluster, SensitiveFirst(by_speed=False)) == {"a": (0, 10), "b": (0, 100)}
    assert times(jobs[::-1], cluster, FIFO) == {"b": (0, 100), "a": (0, 10)}


@pytest.mark.slow
def test_looking_at_speeds_shortens_mean_jct():
    """Gavel, §7: heterogeneity-aware policies against agnostic ones, on 36 GPUs of each model.

    Machines of the three models take turns, so that the first with room is of any model.
    """
    cluster = gpus(*[(1, name, 4, 20) for _ in range(9) for name in ("k80", "p100", "v100")])
    agnostic = mean_jct_s(FIFO, cluster, every_s=800.0)
    placed = mean_jct_s(SensitiveFirst(by_speed=False), cluster, every_s=800.0)
    ordered = mean_jct_s(SensitiveFirst(), cluster, every_s=800.0)
    assert (placed < agnostic).all()
    assert (ordered < agnostic).all()
    assert ordered.mean() < 0.85 * agnostic.mean()


@pytest.mark.parametrize("name", PACKING)
def test_fgd_keeps_whole_machines_for_gangs_that_come(name):
    """Two machines of 2 GPUs. x leaves the first at 5; z keeps a GPU of the second until 100.

    At 6 a gang of two halves of a GPU comes. First fit begins a new machine, where y, which needs
    2 GPUs of one, waits until 56. The others take the GPU beside z, and y starts at 7.
    """
    jobs = [
        gang("x", 0, 1, 2, 5.0),
        gang("z", 0, 1, 1, 100.0),
        gang("g", 6, 2, 0.5, 50.0),
        gang("y", 7, 1, 2, 10.0),
    ]
    span_s = times(jobs, gpus((2, "v100", 2, 8)), policies.build(name, fit="skip"))
    assert span_s["g"] == (6, 56)
    assert span_s["y"] == ((56, 66) if name == "fifo" else (7, 17))


@pytest.mark.slow
def test_fgd_leaves_the_fewest_gpus_unallocated():
    """Weng et al., §6: jobs that never end ask for 1.2 times the GPUs; here 3 in 10 are gangs.

    Machines have 2, 4 or 8 GPUs, and 8 to 52 CPUs for each, as kinds of theirs have: GPUs are lost
    where CPUs run out, and in parts. The mix of jobs is made up here.
    """
    kinds = [(10, "", 2, 104), (3, "", 2, 16), (2, "", 4, 32), (14, "", 8, 96)]
    cluster, n_gpus = gpus(*kinds), sum(n * g for n, _, g, _ in kinds)
    unallocated = dict.fromkeys(PACKING, 0.0)
    for seed in range(6):
        workload = _never_ending(seed, 1.2 * n_gpus)
        columns = workload.columns
        gpus_of_job = (
            columns.stage_demand_f[:, columns.resources.index("gpu")] * columns.stage_n_tasks
        )
        for name in PACKING:
            run = sim.simulate(workload, cluster, policies.build(name, fit="skip"))
            unallocated[name] += n_gpus - gpus_of_job[run.job_start < 1e6].sum()
    assert min(unallocated, key=lambda name: unallocated[name]) == "fgd"
    assert unallocated["fgd"] < 0.6 * unallocated["best_fit"]
    assert unallocated["fgd"] < 0.6 * unallocated["dot_product"]


CPUS = {0.0: (8, 16, 32), 1.0: (4, 8, 12), 2.0: (8, 16, 24), 4.0: (16, 32), 8.0: (64, 88)}


def _never_ending(seed, n_gpus):
    """Draw jobs, one a second, until they ask for so many GPUs."""
    rng, jobs, requested = np.random.default_rng(seed), [], 0.0
    sizes, shares = [0, 0.3, 0.5, 0.7, 1, 2, 4, 8], [0.13, 0.12, 0.14, 0.12, 0.35, 0.05, 0.04, 0.05]
    while requested < n_gpus:
        gpu = float(rng.choice(sizes, p=shares))
        workers = int(rng.choice([2, 4])) if rng.random() < 0.3 and gpu < 8 else 1
        cpu = float(rng.choice(CPUS.get(gpu, (4, 8))))
        jobs.append(gang(f"j{len(jobs)}", len(jobs), workers, gpu, 1e6, cpu=cpu))
        requested += workers * gpu
    return sim.Workload.from_jobs(jobs)
