"""Attribution of failed cells to nodes and policies."""

from __future__ import annotations

from sweep.execution.on_ray.failures import FailureTracker
from sweep.store.cell import CellResult


def failed(key: str, node: str, kind: str = "OSError") -> CellResult:
    error = {"stage": "simulate", "type": kind, "message": f"at {key}", "traceback": ""}
    return CellResult(key, error=error, node=node)  # type: ignore[arg-type]


def test_a_node_that_fails_what_others_do_is_over_after_three() -> None:
    strikes = FailureTracker()
    for index in range(3):
        assert strikes.pop_bad_nodes() == {}
        assert strikes.must_retry(failed(f"c{index}", "bad"), "fifo", True)
        assert strikes.failed_node(f"c{index}") == "bad"
        assert not strikes.must_retry(CellResult(f"c{index}", node="good"), "fifo", True)
    assert strikes.pop_bad_nodes() == {"bad": "OSError: at c2"}
    assert strikes.pop_bad_nodes() == {}


def test_what_fails_on_two_nodes_alike_is_the_policys_and_not_tried_twice_again() -> None:
    strikes = FailureTracker()
    assert strikes.must_retry(failed("c0", "a"), "fifo", True)
    assert not strikes.must_retry(failed("c0", "b"), "fifo", True)
    assert not strikes.must_retry(failed("c1", "a"), "fifo", True)
    assert strikes.must_retry(failed("c2", "a"), "sjf", True)
    assert strikes.must_retry(failed("c3", "a", "ValueError"), "fifo", True)
    assert strikes.pop_bad_nodes() == {}


def test_where_there_is_one_node_nothing_is_tried_twice() -> None:
    strikes = FailureTracker()
    assert not strikes.must_retry(failed("c0", "a"), "fifo", False)
    assert not strikes.must_retry(failed("c0", ""), "fifo", True)
    # the other node has gone meanwhile
    assert strikes.must_retry(failed("c1", "a"), "fifo", True)
    assert not strikes.must_retry(failed("c1", "a"), "fifo", True)
    assert strikes.must_retry(failed("c2", "a"), "fifo", True)
