"""Transform lengthen: losses added to every task."""

import pytest

import sim
from sim.transforms import lengthen


@pytest.mark.parametrize("durations", [[[1.0, 3.0], [5.0]], [[2.0, 2.0], [5.0]]])
def test_every_task_is_longer_by_a_factor_and_seconds(durations):
    stages = [{"durations_s": d, "demand": {"cpu": 1}} for d in durations]
    workload = sim.Workload.from_jobs([{"submit_s": 0, "stages": stages}])
    longer = lengthen(workload, seconds=2.0, factor=1.5)
    expected = [1.5 * s + 2 for d in durations for s in d]
    assert longer.columns.task_duration.tolist() == expected
    again = lengthen(longer, seconds=1.0)
    assert again.columns.task_duration.tolist() == [s + 1 for s in expected]
    assert len(again.meta["transforms"]) == 2
    assert lengthen(workload).columns.task_duration.tolist() == [s for d in durations for s in d]


def test_nothing_is_shortened():
    workload = sim.Workload.from_jobs([{"submit_s": 0, "stages": [{"durations_s": [1.0]}]}])
    for wrong in ({"factor": 0.9}, {"seconds": -1.0}):
        with pytest.raises(sim.InputError, match="must be a number"):
            lengthen(workload, **wrong)


def test_durations_of_stages_are_lengthened_too():
    workload = sim.synthesize("hard_dags", jobs=2, dag="fig2")
    assert workload.stage_duration_s is not None
    longer = lengthen(workload, seconds=2.0, factor=1.5)
    expected = (1.5 * workload.columns.task_duration + 2).tolist()
    assert longer.columns.task_duration.tolist() == expected
