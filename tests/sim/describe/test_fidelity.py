"""The fidelity test finds the properties in which drawn workloads differ, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import sim
from sim.describe import Dataset, describe
from sim.describe.fidelity import MAX_RATIO, fidelity, ks
from sim.describe.page import page, text_lines
from sim.workload.halves import second_half

N = 6000


def drawn(
    seed: int,
    *,
    slower: float = 1.0,
    tied: float = 0.8,
    burst: int = 1,
    again: float = 0.7,
    runs: int = 1,
    correlated: float = 0.7,
):
    """Draw jobs whose width and duration go together, in bursts, of programs that come back."""
    rng = np.random.default_rng(seed)
    old = np.repeat(rng.integers(0, 40, N // runs), runs)
    program_s = np.random.default_rng(7).normal(size=40)[old]
    common = correlated * program_s + (1 - correlated**2) ** 0.5 * rng.normal(size=N)
    width = np.exp(tied * common + (1 - tied**2) ** 0.5 * rng.normal(size=N) + 1)
    duration = np.exp(common + 4) * slower
    submit_s = np.repeat(np.cumsum(rng.exponential(30.0 * burst, N // burst)), burst)
    template = np.where(rng.random(N) < again, old, 100 + np.arange(N))
    return Dataset.from_workload(
        f"of {seed}",
        sim.Workload.from_tables(
            jobs={"job_id": [f"{seed}-{i}" for i in range(N)], "submit_s": submit_s,
                  "template": [f"t{t}" for t in template]},
            stages={"job": np.arange(N), "n_tasks": np.ceil(width).astype(np.int32),
                    "duration_s": duration, "demand_cpu": np.ones(N)},
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def real() -> Dataset:
    return drawn(100)


def differing(real, other):
    return {v.label for v in fidelity(real, other) if not v.is_similar}


def test_halves_are_halves(real):
    cuts = [second_half(real.workload, split) for split in range(3)]
    for cut in cuts:
        assert cut.mean() == pytest.approx(0.5, abs=0.03)
    assert (cuts[0] == cuts[1]).mean() == pytest.approx(0.5, abs=0.03)


def test_samples_of_one_distribution_are_similar(real):
    half = real.workload.take(~second_half(real.workload))
    assert differing(real, Dataset.from_workload("first half", half)) == set()
    new = drawn(102).workload  # at the rate of a half too
    assert len(differing(real, Dataset.from_workload("new", new.take(second_half(new))))) <= 1


@pytest.mark.parametrize(
    ("change", "different", "similar"),
    [
        ({"slower": 1.5}, {"duration of a stage", "work of a job", "critical path of a job"},
         {"width of a job", "width and mean duration"}),
        ({"tied": 0.0}, {"width and mean duration", "width and critical path"},
         {"duration of a stage"}),
        ({"burst": 5}, {"dispersion in 1 min", "dispersion in 1 h"}, {"work of a job"}),
        ({"again": 0.2}, {"jobs whose program appeared before", "jobs of the busiest program"},
         {"work of a job"}),
        ({"runs": 5}, {"jobs of the same program as the previous job"}, {"work of a job"}),
        ({"correlated": 0.0}, {"mean duration and that of the program's previous job"},
         {"jobs whose program appeared before"}),
    ],
)  # fmt: skip
def test_changed_properties_differ(real, change, different, similar):
    other = differing(real, drawn(101, **change))
    assert different <= other
    assert not similar & other


def test_the_distance_of_distributions_is_that_of_scipy():
    rng = np.random.default_rng(100)
    x, y = rng.integers(0, 20, 300).astype(float), rng.integers(0, 25, 200).astype(float)
    assert ks(x, y) == pytest.approx(stats.ks_2samp(x, y).statistic)


def test_a_description_has_a_section_of_it(real):
    small = Dataset.from_workload("real", real.workload.take(np.arange(400)))
    other = Dataset.from_workload("made", drawn(101, slower=3.0).workload.take(np.arange(200)))
    description = describe(small, [other], half=True)
    text = "\n".join(text_lines(description))
    assert text.startswith("Fidelity: made compared with the second half of real")
    (row,) = [line for line in text.splitlines() if "duration of a stage" in line]
    assert row.endswith("differs")
    table = description.tables["fidelity"].to_pylist()
    (v,) = [r for r in table if r["label"] == "duration of a stage"]
    assert v["distance"] > MAX_RATIO * v["halves"]
    assert not v["alike"]
    assert "differs" in page(description)
