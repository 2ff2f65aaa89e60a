"""A real log: KTH's SP2, 100 processors, eleven months."""

from __future__ import annotations

import policies
import sim


def test_the_order_that_is_expected(shared_traces):
    log = sim.read_trace("swf", shared_traces / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    c = log.columns
    assert (c.job_min_tasks == c.job_n_tasks).all()
    assert (c.job_requested >= c.stage_max_s).all()
    slowdown = [
        sim.simulate(log, sim.Cluster.slots(100), policy).metrics["bounded_slowdown_mean"]
        for policy in (
            policies.build("fifo"),
            policies.build("conservative"),
            policies.build("easy"),
            policies.build("easy", order="sjf"),
        )
    ]
    assert slowdown == sorted(slowdown, reverse=True)
    assert slowdown[0] > 10 * slowdown[1]
    assert 80 < slowdown[2] < 95  # 92.58 is published of all of the log's jobs
