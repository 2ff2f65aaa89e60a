"""DAGs of other domains: builds of large code bases, and requests to internet services.

Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), §9, evaluates its scheduler on
both. It publishes the kinds of tasks, and that these differ in run time and resources; the numbers
are assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from policies.dagps.synth.drawn_dag import Dag, to_workload
from sim.base import maths
from sim.base.errors import InputError, unknown
from sim.base.parameters import Count, NotNegative, Whole, checked
from sim.base.random import Stream, stream
from sim.workload.workload import Workload

RESOURCES = ("cpu", "mem", "disk", "net")
Range = tuple[float, float]
Kind = tuple[float, float, Range, Range, Range, Range]
"""Kind of a stage's tasks: median duration in s, its sigma, and the range of each demand."""


class DagBuilder:
    """Builder of a DAG: stages are added one by one, each drawn from its kind."""

    def __init__(self, rng: Stream) -> None:
        self._rng = rng
        self._names: list[str] = []
        self._numbers: list[tuple[int, float, float, list[float]]] = []
        self._edges: list[tuple[int, int, bool]] = []

    def stage(
        self,
        name: str,
        n_tasks: int,
        kind: Kind,
        barrier: Iterable[int] = (),
        one_to_one: Iterable[int] = (),
    ) -> int:
        """Add a stage with its dependencies on earlier ones; return its number."""
        median, sigma, *amounts = kind
        spread = sigma * self._rng.normal()
        demand = [float(self._rng.uniform(*amount)) for amount in amounts]
        n = len(self._names)
        self._names.append(name)
        self._numbers.append((n_tasks, median, spread, demand))
        self._edges += [(p, n, False) for p in barrier] + [(p, n, True) for p in one_to_one]
        return n

    def dag(self) -> Dag:
        """Return the added stages as a DAG."""
        edges = np.array(sorted(self._edges), np.int64).reshape(-1, 3)
        return Dag(
            tuple(self._names), np.array([n for n, *_ in self._numbers], np.int64),
            np.array([s for _, s, *_ in self._numbers])
            * maths.exp([z for *_, z, _ in self._numbers]),
            np.array([d for *_, d in self._numbers]).reshape(-1, len(RESOURCES)),
            edges[:, 0].copy(), edges[:, 1].copy(), edges[:, 2].astype(bool),
        )  # fmt: skip


LIBRARIES_P50, LIBRARIES_SIGMA, MAX_LIBRARIES = 10.0, 0.8, 120
FILES_P50, FILES_SIGMA, MAX_FILES = 8.0, 1.0, 300
TESTS_P50, TESTS_SIGMA, MAX_TESTS = 5.0, 1.0, 200
GENERATED, TESTED, ANALYSED = 0.2, 0.6, 0.5

# median s, sigma, then ranges of cpu, mem, disk, net as fractions of a machine
GENERATE = (4.0, 0.7, (0.1, 0.2), (0.05, 0.2), (0.05, 0.2), (0.0, 0.05))
COMPILE = (5.0, 0.7, (0.12, 0.13), (0.03, 0.15), (0.02, 0.1), (0.0, 0.02))
ANALYSE = (8.0, 0.7, (0.2, 0.3), (0.1, 0.3), (0.02, 0.05), (0.0, 0.02))
LINK = (9.0, 0.9, (0.12, 0.3), (0.2, 0.7), (0.2, 0.6), (0.0, 0.05))
TEST = (15.0, 1.1, (0.05, 0.5), (0.05, 0.4), (0.0, 0.3), (0.0, 0.4))
PACKAGE = (12.0, 0.6, (0.1, 0.2), (0.1, 0.3), (0.4, 0.8), (0.2, 0.6))


def draw_build(rng: Stream) -> Dag:
    """Draw one build of libraries: compilation, code analysis, linking, tests, packaging.

    A library is linked after all of its compilation and after up to three earlier libraries.
    """
    dag = DagBuilder(rng)
    links: list[int] = []
    ends: list[int] = []
    for i in range(_count(rng, LIBRARIES_P50, LIBRARIES_SIGMA, MAX_LIBRARIES)):
        files = _count(rng, FILES_P50, FILES_SIGMA, MAX_FILES)
        generated = []
        if rng.random() < GENERATED:
            generated = [dag.stage(f"generate{i}", 1, GENERATE)]
        compiled = dag.stage(f"compile{i}", files, COMPILE, barrier=generated)
        if rng.random() < ANALYSED:
            ends.append(dag.stage(f"analyse{i}", files, ANALYSE, one_to_one=[compiled]))
        n_used = min(len(links), int(rng.integers(0, 4)))
        used = rng.choice(links, n_used, replace=False).tolist() if n_used else []
        links.append(dag.stage(f"link{i}", 1, LINK, barrier=[compiled, *used]))
        ends.append(links[-1])
        if rng.random() < TESTED:
            tests = _count(rng, TESTS_P50, TESTS_SIGMA, MAX_TESTS)
            ends.append(dag.stage(f"test{i}", tests, TEST, barrier=[links[-1]]))
    dag.stage("package", 1, PACKAGE, barrier=ends)
    return dag.dag()


def _count(rng: Stream, median: float, sigma: float, n_max: int) -> int:
    return int(np.clip(np.rint(median * maths.exp(sigma * rng.normal())), 1, n_max))


VERTICALS = ("web", "images", "videos", "news", "maps", "shops", "books", "answers")
MIN_VERTICALS = 2
SHARDS_P50, SHARDS_SIGMA, MAX_SHARDS = 12.0, 0.9, 400
MAX_RESULTS = 20
FETCHED, ADVERTISED = 0.4, 0.5

FRONT = (0.003, 0.4, (0.02, 0.05), (0.01, 0.03), (0.0, 0.01), (0.05, 0.1))
SPELL = (0.008, 0.5, (0.1, 0.3), (0.05, 0.2), (0.0, 0.02), (0.01, 0.02))
LOOK_UP = (0.02, 0.7, (0.03, 0.1), (0.1, 0.5), (0.1, 0.6), (0.01, 0.05))
RANK = (0.015, 0.7, (0.15, 0.6), (0.02, 0.1), (0.0, 0.02), (0.01, 0.05))
GATHER = (0.006, 0.5, (0.05, 0.15), (0.02, 0.1), (0.0, 0.01), (0.2, 0.6))
FETCH = (0.03, 0.8, (0.02, 0.08), (0.03, 0.1), (0.1, 0.5), (0.1, 0.5))
ADVERTISE = (0.03, 0.5, (0.2, 0.6), (0.05, 0.2), (0.0, 0.05), (0.05, 0.2))
BLEND = (0.01, 0.5, (0.1, 0.4), (0.05, 0.2), (0.0, 0.02), (0.05, 0.2))
RENDER = (0.012, 0.5, (0.1, 0.3), (0.02, 0.1), (0.0, 0.02), (0.1, 0.4))


def draw_request(rng: Stream) -> Dag:
    """Draw one request: a workflow of dependent RPCs on one pool of servers.

    As in the paper's example, a search query: spelling is checked before the index is looked up,
    and verticals (web, images, videos, ...) are looked up and ranked in parallel, then blended.
    """
    dag = DagBuilder(rng)
    front = dag.stage("front", 1, FRONT)
    spelled = dag.stage("spell", 1, SPELL, barrier=[front])
    ends = []
    n_verticals = int(rng.integers(MIN_VERTICALS, len(VERTICALS) + 1))
    for name in VERTICALS[:n_verticals]:
        shards = np.rint(SHARDS_P50 * maths.exp(SHARDS_SIGMA * rng.normal()))
        n = int(np.clip(shards, 1, MAX_SHARDS))
        looked_up = dag.stage(f"look up {name}", n, LOOK_UP, barrier=[spelled])
        ranked = dag.stage(f"rank {name}", n, RANK, one_to_one=[looked_up])
        last = dag.stage(f"gather {name}", 1, GATHER, barrier=[ranked])
        if rng.random() < FETCHED:
            results = int(rng.integers(1, MAX_RESULTS + 1))
            last = dag.stage(f"fetch {name}", results, FETCH, barrier=[last])
        ends.append(last)
    if rng.random() < ADVERTISED:
        ends.append(dag.stage("advertise", 1, ADVERTISE, barrier=[front]))
    blended = dag.stage("blend", 1, BLEND, barrier=ends)
    dag.stage("render", 1, RENDER, barrier=[blended])
    return dag.dag()


DOMAINS = {"build": draw_build, "request": draw_request}
INTERVAL_S = {"build": 60.0, "request": 0.02}
QUANTUM = 1e-4


@checked
def synthesize(
    jobs: Count = 200, seed: Whole = 0, domain: str = "build", interval_s: NotNegative | None = None
) -> Workload:
    """Synthesize builds or requests; every job is a separate program.

    All tasks of a stage are equal; code analysis and ranking wait one-to-one, the rest at barriers.
    The first `k` jobs are the same for every `jobs`.

    Parameters
    ----------
    jobs : int
        Number of jobs, at least 1.
    seed : int
        Seed of all draws.
    domain : {"build", "request"}
        DAGs of `draw_build` or `draw_request`.
    interval_s : float, optional
        Mean time between submissions, s (Poisson); by default a minute between builds and 20 ms
        between requests.

    Returns
    -------
    Workload
        Demands for ``cpu``, ``mem``, ``disk`` and ``net`` are fractions of a machine that has 1 of
        each.

    Raises
    ------
    InputError
        On an unknown domain or a number out of its range.
    """
    if domain not in DOMAINS:
        raise InputError(unknown("domain", domain, DOMAINS), rule="unknown domain")
    mean_s = INTERVAL_S[domain] if interval_s is None else interval_s

    def rng(*purpose: str | int) -> Stream:
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
