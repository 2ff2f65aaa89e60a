"""The evaluator `due` against values computed by hand."""

from __future__ import annotations

import sim
from policies.base import Policy
from policies.jockey.control import set_up_queues
from policies.knows import Knows
from sim.engine.recording import FirstComeFirstServed
from sim.evaluators import evaluate


class OneOfTheTwo(Policy):
    """The last job has tokens of its own, the others run on spare ones."""

    knows = Knows(deadlines="declared")

    def prepare(self, world, plan):
        set_up_queues(world, plan, True)
        plan.set_jobs(2, run_limit=1)


def test_a_row_for_each_job_with_a_deadline():
    job = {
        "stages": [
            {"name": "a", "durations_s": [2.0, 3.0]},
            {"durations_s": [4.0], "parents": ["a"]},
        ]
    }
    changing = {"new_deadline_s": 9.0, "new_deadline_at_s": 7.0}
    w = sim.Workload.from_jobs(
        [
            {"submit_s": 0.0, **job},
            {"submit_s": 1.0, "deadline_s": 20.0, **job},
            {"submit_s": 2.0, "deadline_s": 20.0, **changing, **job},
        ]
    )
    metrics, table = evaluate(
        "due", sim.simulate, w, sim.Cluster.slots(6), FirstComeFirstServed(), 0
    )
    assert table.to_pydict() == {
        "submit_s": [1.0, 2.0],
        "finish_s": [8.0, 9.0],
        "deadline_s": [20.0, 9.0],
        "work_s": [9.0, 9.0],
        "shortest_s": [7.0, 7.0],
        "tokens": [6, 6],
        "guaranteed": [True, True],
    }
    assert metrics["deadlines_missed"] == 0.0
    _, table = evaluate("due", sim.simulate, w, sim.Cluster.slots(6), OneOfTheTwo(), 0)
    assert table["guaranteed"].to_pylist() == [False, True]
