"""Plots of a backtest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sweep.questions.backtest.plots import MAX_JOBS, RECORDED, BacktestJobs, draw_plots


def jobs_of(n: int, labels: tuple[str, ...] = ("a", "b"), factor: float = 2.0) -> BacktestJobs:
    """Build `n` jobs that waited 10 s each, and twice that under the policies."""
    submit_s = np.arange(n) * 5.0
    parts = [
        pa.table(
            {
                "policy": [label] * n,
                "submit_s": submit_s,
                "recorded_start_s": submit_s + 10.0,
                "tasks": np.arange(n) % 9 + 1,
                "start_s": submit_s + 10.0 * factor,
                "low_start_s": submit_s + 10.0,
                "high_start_s": submit_s + 30.0,
                "first_start_s": submit_s + 10.0,
            }
        )
        for label in labels
    ]
    return BacktestJobs.from_table(pa.concat_tables(parts))


def test_a_plot_each_and_one_of_jobs_for_each_policy() -> None:
    jobs = jobs_of(400)
    over_time, queue, width, nearest, other = draw_plots(jobs, "b", 1.0)
    recorded, a, b = over_time.figure["data"]
    assert (recorded["name"], recorded["meta"]) == ("recorded", RECORDED)
    assert set(recorded["y"]) == {10.0}
    assert set(a["y"]) == set(b["y"]) == {20.0}
    # a job arrives every 5 s and waits for 10 s: two wait, in the log and in the first run
    assert queue.figure["data"][0]["y"] == queue.figure["data"][1]["y"]
    assert np.median(queue.figure["data"][0]["y"]) == pytest.approx(2.0, abs=0.01)
    assert width.figure["layout"]["xaxis"]["ticktext"] == [
        "1<br>(45)", "2<br>(45)", "3–4<br>(90)", "5–8<br>(176)", "9–16<br>(44)",
    ]  # fmt: skip
    assert (nearest.caption, other.caption) == ("Wait job by job: b", "Wait job by job: a")
    points = nearest.figure["data"][1]
    assert set(points["x"]) == {10.0}
    assert set(points["error_y"]["array"]) == set(points["error_y"]["arrayminus"]) == {10.0}


def test_many_jobs_are_thinned_and_far_policies_have_a_logarithmic_scale() -> None:
    plots = draw_plots(jobs_of(5000, ("a",), 50.0), "a", 1.0)
    assert len(plots[-1].figure["data"][1]["x"]) == MAX_JOBS
    assert "600 of the 5,000 jobs" in plots[-1].note
    assert plots[0].figure["layout"]["yaxis"]["type"] == "log"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_logs(n: int) -> None:
    assert len(draw_plots(jobs_of(n, ("a",)), "a", 1.0)) == (4 if n else 0)
