"""First screen of a report: what it says of sweeps of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sweep.report import first_screen
from sweep.report.section import Section
from sweep.stats.summary import summarise
from sweep.stats.verdict import verdicts
from tests.sweep import frames

CONFIG: Mapping[str, Any] = {
    "swept": [],
    "baseline": "fifo",
    "trace": {"alibaba2018": {"format": "alibaba2018", "path": "/data/batch_task.csv",
                              "transforms": {"rescale": {"load": 0.9}}}},
    "cluster": {"alibaba2018": {"outages": {"mtbf_s": 1.0}, "launch_s": None}},
    "fixed": ["paths.results=x", "cluster.count=10"],
}  # fmt: skip
PROVENANCE = {"inputs": [{"trace": "alibaba2018", "n_jobs": 1000, "n_tasks": 5000, "digest": "a"}]}


def parts(
    cells: pa.Table, *sections: Section, config: Mapping[str, Any] = CONFIG, **more: Any
) -> dict[str, str]:
    summary = summarise(cells, baseline=config["baseline"])
    sweep = first_screen.Sweep(
        summary, verdicts(cells, config), config, PROVENANCE, sections, **more
    )
    return {title: " ".join(lines) for title, lines in first_screen.build(sweep).items()}


def test_one_policy_is_best_at_every_capacity() -> None:
    screen = parts(frames.frame(seeds=range(6)), remarks={"alibaba2018": "The log says 3 % less."})
    assert list(screen) == ["Question", "Answer", "How sure", "What it costs", "What was assumed"]
    assert screen["Question"] == (
        "Which scheduling policy, fifo, sjf, las or srpt, gives the jobs of alibaba2018 the lowest "
        "mean JCT (mean job completion time) at capacity 0.5, 0.75 or 1?"
    )
    assert screen["Answer"].startswith("srpt has the lowest mean JCT at all 3 capacities: ")
    assert "times shorter than fifo's [" in screen["Answer"]
    assert "With the best, the median job takes 4" in screen["Answer"]
    assert screen["How sure"].startswith("6 seeds: brackets and ± are 95 % intervals over them")
    assert "every other is significantly worse" in screen["How sure"]
    assert screen["How sure"].endswith("The log says 3 % less.")
    assert "More capacity: srpt's mean JCT is 3," in screen["What it costs"]
    assert "72 simulated runs" in screen["What it costs"]
    assumed = screen["What was assumed"]
    assert "1,000 jobs, 5,000 tasks, read from batch_task.csv (alibaba2018)" in assumed
    assert "changed by rescale" in assumed
    assert "with outages of machines, without slow periods" in assumed
    assert assumed.endswith("Set for this sweep: cluster.count=10.")


def test_a_fraction_of_a_machine_is_explained() -> None:
    cells = frames.frame(capacities=[0.5])
    n = cells.num_rows

    def screen(machines: float, *, pool: bool = False) -> dict[str, str]:
        sized = cells.append_column("n_machines", pa.array([machines] * n))
        counted = sized.append_column("is_counted", pa.array([True] * n))
        return parts(counted.append_column("is_pool", pa.array([pool] * n)))

    shown = screen(8.5)
    assert shown["Question"].endswith("(mean job completion time) on 8.5 machines?")
    assert (
        "A fraction of a machine is one smaller machine: the last of 8.5 has 50 % of each resource."
    ) in shown["What was assumed"]
    assert "fraction" not in screen(8.0)["What was assumed"]
    assert "fraction" not in screen(8.5, pool=True)["What was assumed"]


def test_the_best_differs_or_nothing_does() -> None:
    cells = frames.frame(seeds=range(6), policies=["fifo", "las", "srpt"], capacities=[0.5, 1.0])
    values = cells.column("jct_mean_s").to_pylist()
    rows = cells.select(["policy", "capacity", "seed"]).to_pylist()
    swapped = [
        v / 10 if row["policy"] == "las" and row["capacity"] == 1.0 else v
        for row, v in zip(rows, values, strict=True)
    ]
    place = cells.column_names.index("jct_mean_s")
    screen = parts(cells.set_column(place, "jct_mean_s", pa.array(swapped)))
    assert "in 1 of 2 comparisons: at capacity 0.5" in screen["Answer"]
    assert "Elsewhere the best is las (1)." in screen["Answer"]
    noise = np.random.default_rng(0).normal(1000.0, 100.0, len(rows))
    screen = parts(cells.set_column(place, "jct_mean_s", pa.array(noise)))
    assert "In mean JCT none of the 3 policies is told from the best" in screen["Answer"]
    assert "at either of 2 capacities" in screen["Answer"]
    assert "Not told apart: " in screen["How sure"]
    screen = parts(cells.set_column(place, "jct_mean_s", pa.array([5.0] * len(rows))))
    assert screen["Answer"].startswith("The 3 policies have the same mean JCT at both capacities.")


def test_one_seed_one_capacity_and_failures() -> None:
    cells = frames.frame(seeds=[0], capacities=[0.7], failed=[("las", 0.7, 0)])
    screen = parts(cells)
    assert screen["Answer"].startswith("srpt has the lowest mean JCT, 3.")
    assert "1 of 4 cells failed and are left out." in screen["How sure"]
    assert "One seed: no interval and no test (3 seeds are needed)." in screen["How sure"]
    alone = parts(frames.frame(seeds=[0], policies=["fifo"]), config={**CONFIG, "baseline": None})
    assert alone["Question"].startswith("What mean JCT (mean job completion time) does fifo give")
    assert alone["Answer"].startswith("fifo has a mean JCT of ")
    every = frames.frame(failed=[(p, c, s) for p in frames.POLICIES for c in (0.5, 0.75, 1.0)
                                 for s in range(3)])  # fmt: skip
    assert parts(every)["Answer"] == "No cell has a result that could be judged."


def test_a_search_answers_for_itself() -> None:
    lines = tuple(f"policy {n} needs {n} machines." for n in range(7))
    section = Section("targets", "Smallest cluster", lines, is_answer=True,
                      question="What is the smallest cluster for {jobs}?")  # fmt: skip
    screen = parts(frames.frame(), section)
    assert screen["Question"] == "What is the smallest cluster for the jobs of alibaba2018?"
    assert screen["Answer"].startswith(" ".join(lines[:5]))
    assert screen["Answer"].endswith("2 more are below.")
    assert "More capacity" not in screen["What it costs"]


def test_costs_are_said_where_machines_have_a_price() -> None:
    cells = frames.frame(capacities=[0.5, 1.0])
    n = [10.0 * capacity for capacity in cells.column("capacity").to_pylist()]
    priced = cells.append_column("n_machines", pa.array(n)).append_column(
        "cost_month", pa.array([730.0 * machines for machines in n])
    )
    costs = parts(priced)["What it costs"]
    assert costs.startswith("5 machines cost 3,650 a month and 10 machines cost 7,300 a month.")
    assert "No price is given" not in costs


def test_an_oracle_is_named_for_each_trace() -> None:
    cells = frames.frame(seeds=range(6), capacities=[0.5, 1.0], traces=["logged", "drawn", "third"])
    oracle = frames.with_knowledge(cells, fifo="nothing", sjf="nothing", las="nothing", srpt="true")
    sure = parts(oracle)["How sure"]
    assert sure.count("Not counted, as nobody can run it") == 1
    (line,) = [line for line in sure.split(". ") if line.startswith("Not counted")]
    assert line.count("logged") == line.count("drawn") == 1
    assert "third" not in line
    assert line.count("srpt") == 2
    assert "; and in 1 more trace." in sure
    assert "Not counted" not in parts(cells)["How sure"]
