"""The facade of a run: how it is shown."""

from __future__ import annotations

import policies
import sim


def test_workload_and_result_are_shown_in_a_line() -> None:
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [2.0, 4.0]}]}, {"submit_s": 1.0}]
    jobs[1]["stages"] = [{"durations_s": [1.0]}]
    workload = sim.Workload.from_jobs(jobs)
    assert repr(workload) == "<Workload jobs: 2 jobs, 2 stages, 3 tasks; cpu>"
    result = sim.simulate(workload, sim.Cluster.slots(3), policies.build("fifo"), seed=4)
    assert repr(result) == "<Result fifo() on 3 slots, seed 4: 2 jobs; mean JCT 2.5 s>"
