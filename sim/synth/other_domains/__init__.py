"""DAGs of other domains: builds of large code bases, and requests to internet services.

Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), §9, tries its scheduler on both,
and publishes of them what kinds of tasks there are; `builds` and `requests` say what is assumed.
"""

from __future__ import annotations

import numpy as np

from sim.base.errors import InputError, unknown
from sim.base.random import stream
from sim.synth._dag import check_number, check_whole, to_workload
from sim.synth.other_domains.builds import draw_build
from sim.synth.other_domains.recipe import RESOURCES
from sim.synth.other_domains.requests import draw_request
from sim.workload.workload import Workload

DOMAINS = {"build": draw_build, "request": draw_request}
INTERVAL_S = {"build": 60.0, "request": 0.02}
QUANTUM = 1e-4


def synthesize(
    jobs: int = 200, seed: int = 0, domain: str = "build", interval_s: float | None = None
) -> Workload:
    """Synthesize builds or requests; every job is a program of its own.

    All tasks of a stage are alike; code analysis and ranking wait one-to-one, the rest at barriers.
    The first `k` jobs are the same whatever `jobs` is.

    Parameters
    ----------
    jobs : int
        How many, at least 1.
    seed : int
        Seed of all draws.
    domain : {"build", "request"}
        `sim.synth.other_domains.builds` or `sim.synth.other_domains.requests`.
    interval_s : float, optional
        Mean time between submissions, s (Poisson); left out, a minute between builds and 20 ms
        between requests.

    Returns
    -------
    Workload
        Demands for ``cpu``, ``mem``, ``disk`` and ``net`` are parts of a machine that has 1 of
        each.

    Raises
    ------
    InputError
        On an unknown domain or a number out of its range.
    """
    check_whole("jobs", jobs, 1)
    check_whole("seed", seed, 0)
    if domain not in DOMAINS:
        raise InputError(unknown("domain", domain, DOMAINS), rule="unknown domain")
    mean_s = INTERVAL_S[domain] if interval_s is None else interval_s
    check_number("interval_s", mean_s, 0.0)

    def rng(*purpose: str | int) -> np.random.Generator:
        return stream(seed, "synth", "other_domains", domain, *purpose)

    between = rng("arrivals").exponential(mean_s, jobs)
    between[0] = 0.0
    names = [f"{domain}-{job:06d}" for job in range(jobs)]
    return to_workload(
        [DOMAINS[domain](rng("job", job)) for job in range(jobs)],
        job_id=names,
        template=names,
        submit_s=np.cumsum(between),
        resources=RESOURCES,
        quantum=QUANTUM,
        meta={
            "name": f"synth-{domain}",
            "synth": {
                "generator": "other_domains",
                "domain": domain,
                "jobs": int(jobs),
                "seed": int(seed),
                "interval_s": float(mean_s),
                "source": "Grandl et al., MSR-TR-2016-19, §9",
            },
        },
    )
