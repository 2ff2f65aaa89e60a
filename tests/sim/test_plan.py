"""The public names of plans."""

import sim.engine.plan
import sim.plan


def test_a_policy_of_a_package_can_set_whatever_a_plan_has():
    """All names of the vocabulary, but learning and planning, which belong to systems here.

    Nor the state in which a run begins, which no policy sets, and what makes and fills its view.
    """
    own = {"Learning", "Replan", "Depth", "State", "Ended", "seen_by"}
    assert set(sim.engine.plan.__all__) - own == set(sim.plan.__all__)
