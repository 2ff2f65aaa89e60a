"""Builds and requests: described kinds of tasks and edges, reproducibility."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.dagps.synth.other_domains import DOMAINS

KINDS = {
    "build": {"generate", "compile", "analyse", "link", "test", "package"},
    "request": {"front", "spell", "look up", "rank", "gather", "fetch", "advertise", "blend",
                "render"},
}  # fmt: skip


def kind(name: str) -> str:
    bare = name.rstrip("0123456789")
    return "look up" if bare.startswith("look up") else bare.split(" ")[0]


@pytest.mark.parametrize("domain", DOMAINS)
def test_stages_are_of_the_kinds_described_and_all_lead_to_the_last(domain):
    w = sim.synthesize("other_domains", jobs=60, seed=1, domain=domain)
    names = np.array(w.stages["name"].to_pylist())
    assert {kind(n) for n in names} == KINDS[domain]
    c = w.columns
    last = c.job_stage0[1:] - 1
    leaves = np.flatnonzero(np.diff(c.edge0) == 0)
    assert leaves.tolist() == last.tolist()
    assert (np.diff(c.stage_task0)[last] == 1).all()
    assert (c.stage_demand_f <= 1).all()


@pytest.mark.parametrize(("domain", "paired"), [("build", "analyse"), ("request", "rank")])
def test_one_to_one_edges_are_as_described(domain, paired):
    w = sim.synthesize("other_domains", jobs=60, seed=1, domain=domain)
    c = w.columns
    names = w.stages["name"].to_pylist()
    n = np.diff(c.stage_task0)
    parent = np.repeat(np.arange(len(n)), np.diff(c.edge0))
    for p, s, k in zip(parent, c.edge_child, c.edge_kind, strict=True):
        assert (kind(names[s]) == paired) == (k == 1)
        assert k == 0 or n[p] == n[s]


def test_a_link_waits_for_its_compilation_and_a_test_for_its_link():
    w = sim.synthesize("other_domains", jobs=20, seed=4)
    names = w.stages["name"].to_pylist()
    parents: dict[int, set[str]] = {}
    for edge in w.stage_edges.to_pylist():
        parents.setdefault(edge["child"], set()).add(names[edge["parent"]])
    for s, name in enumerate(names):
        number = name.removeprefix(kind(name))
        if kind(name) == "link":
            libraries = parents[s] - {f"compile{number}"}
            assert f"compile{number}" in parents[s]
            assert {kind(o) for o in libraries} <= {"link"}
            assert len(libraries) <= 3
        elif kind(name) == "test":
            assert parents[s] == {f"link{number}"}


@pytest.mark.parametrize("domain", DOMAINS)
def test_same_seed_same_bytes_and_fewer_jobs_are_the_first(domain):
    w = sim.synthesize("other_domains", jobs=12, seed=5, domain=domain)
    assert sim.synthesize("other_domains", jobs=12, seed=5, domain=domain).digest == w.digest
    assert sim.synthesize("other_domains", jobs=12, seed=6, domain=domain).digest != w.digest
    few = sim.synthesize("other_domains", jobs=4, seed=5, domain=domain)
    assert w.take(np.arange(4)).stages.equals(few.stages)


@pytest.mark.parametrize("domain", DOMAINS)
def test_they_run(domain):
    w = sim.synthesize("other_domains", jobs=5, seed=0, domain=domain)
    cluster = sim.Cluster.machines(4, cpu=1, mem=1, disk=1, net=1)
    run = sim.simulate(w, cluster, policies.build("critical_path"))
    bound = sim.lower_bound(w, cluster)["tight_lb"].to_numpy()
    assert (run.job_finish - w.columns.job_submit >= bound * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domain": "biulds"}, "unknown domain 'biulds'.*build"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"interval_s": -1}, "interval_s must be a number"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(sim.InputError, match=message):
        sim.synthesize("other_domains", **{"jobs": 1, **options})
