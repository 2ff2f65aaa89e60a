"""The policies of docs/your_own_policy.md order jobs as the page says; test_pages runs it."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import policies
import policies.registry
import sim
from sim.check import invariants
from sim.check.worlds import CLUSTERS, crowd
from sim.plan import Event

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "your_own_policy.md").read_text()
FILES = dict(re.findall(r"`(mine/[\w/]+\.\w+)`:\n\n```\w+\n(.*?)```", TEXT, re.DOTALL))


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """Write the files of the page into a folder of its own."""
    folder = tmp_path_factory.mktemp("docs")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "mine"


@pytest.fixture
def registered(mine, monkeypatch):
    """Build the page's policies from its YAML, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(mine))
    monkeypatch.setattr(policies.registry, "_REGISTRY", dict(policies.registry._REGISTRY))
    for module in ("edf", "learned"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield lambda name, **params: policies.build(
        **{**yaml.safe_load((mine / "policy" / f"{name}.yaml").read_text()), **params}
    )
    for module in ("edf", "learned"):
        sys.modules.pop(module, None)


def test_page_shows_the_files_it_speaks_of():
    assert sorted(FILES) == [
        "mine/edf.py",
        "mine/learned.py",
        "mine/policy/edf.yaml",
        "mine/policy/learned.yaml",
        "mine/try.py",
    ]


def test_first_policy_takes_about_twenty_lines():
    assert len(FILES["mine/edf.py"].splitlines()) <= 21


def test_earliest_deadline_goes_first(registered):
    rows = [("a", None), ("b", 50.0), ("c", 7000.0), ("d", 20.0)]
    jobs = [
        {"job_id": n, "submit_s": 0.0, "deadline_s": d, "stages": [{"durations_s": [1.0]}]}
        for n, d in rows
    ]
    w = sim.Workload.from_jobs(jobs)
    first = sim.simulate(w, sim.Cluster.slots(1), registered("edf"))
    assert np.argsort(first.job_start).tolist() == [3, 1, 0, 2]
    strict = sim.simulate(w, sim.Cluster.slots(1), registered("edf", due_s=1e4))
    assert np.argsort(strict.job_start).tolist() == [3, 1, 2, 0]


def test_page_has_every_event():
    named = re.findall(r"`([A-Z_]+)`", TEXT.partition("| event | when |")[2].partition("\n\n")[0])
    assert sorted(named) == sorted(event.name for event in Event)


def test_arrays_of_the_page_are_there_and_as_long_as_it_says():
    table = TEXT.partition("## Arrays that a policy may read")[2].partition("## The plan")[0]
    c = crowd(0).columns
    sizes = {"J": len(c.job_submit), "G": len(c.stage_job), "T": len(c.task_duration)}
    sizes |= {"E": len(c.edge_child)} | {f"{k} + 1": n + 1 for k, n in sizes.items()}
    rows = re.findall(r"^\| (`.*`) \| ([JGTE](?: \+ 1)?) \|", table, re.MULTILINE)
    assert len(rows) == 13
    for names, length in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert len(getattr(c, name)) == sizes[length], name
    views = re.findall(r"`(\w+)`", table.rpartition("`world.view` counts")[2])
    seen = {}

    class Looks(policies.Policy):
        def prepare(self, world, plan):
            seen.update(world.view)

    sim.simulate(crowd(0), sim.Cluster.slots(16), Looks())
    assert set(views) <= set(seen)


def test_learned_sizes_count(registered):
    def job(user, submit_s, size):
        stages = [{"durations_s": [size]}]
        return {"user": user, "submit_s": submit_s, "stages": stages}

    jobs = [job("big", 0.0, 500.0), job("small", 1.0, 1.0), job("big", 600.0, 50.0)]
    jobs += [job("big", 610.0, 500.0), job("small", 611.0, 1.0)]
    r = sim.simulate(sim.Workload.from_jobs(jobs), sim.Cluster.slots(1), registered("learned"))
    assert np.argsort(r.job_start).tolist() == [0, 1, 2, 4, 3]


@pytest.mark.parametrize("name", ["edf", "learned"])
def test_policies_of_the_page_pass_the_suite(registered, name):
    for cluster in CLUSTERS.values():
        result = sim.simulate(crowd(0), cluster, registered(name), record="tasks")
        invariants.check(result, "strict")
