"""Labels and units of metrics, from their names alone."""

from __future__ import annotations

import pytest

from sim.metrics import ALONE_METRICS, METRICS, STREAM_METRICS
from sweep.stats.metric_format import style


@pytest.mark.parametrize(
    ("name", "label", "kind"),
    [
        ("jain_60s", "Jain's index, 60 s windows", "index"),
        ("jct_p95_s", "p95 JCT", "seconds"),
        ("jct_p50_s", "median JCT", "seconds"),
        ("slowdown_p99", "p99 slowdown", "ratio"),
        ("gap_lb_p0", "p0 gap to the lower bound", "percent"),
        ("gap_tight_lb_p100", "p100 gap to the tighter bound", "percent"),
        ("prediction_error_p90", "p90 prediction error", "percent"),
        ("utilization_fpga", "utilization of fpga", "percent"),
    ],
)
def test_a_name_of_a_family_has_its_label(name: str, label: str, kind: str) -> None:
    assert (style(name).label, style(name).kind) == (label, kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("jain_users", "number"),
        ("jain_s", "seconds"),
        ("jain_0s", "number"),
        ("jain_1_0s", "number"),
        ("jain_٣s", "number"),  # a digit, but not of ours
        ("my_jain_60s", "number"),
        ("jct_p101_s", "seconds"),
        ("jct_p999_s", "seconds"),
        ("jct_pilots_s", "seconds"),
        ("jct_p99_seconds", "number"),
        ("slowdown_p1000", "number"),
        ("slowdown_p07", "number"),
        ("slowdown_pilots", "number"),
        ("gap_lb_p50_s", "seconds"),
        ("gap_lb_p", "number"),
        ("gap_tight_lb_p101", "number"),
        ("prediction_error_p٩", "number"),
        ("utilization_", "number"),
        ("utilizations", "number"),
        ("makespan", "number"),
        ("value_attained_batch", "number"),
        ("jobs_failed_ever", "number"),
        ("queue_wait_s", "seconds"),
        ("jobs_per_s", "number"),  # a rate, not a time
        ("jain_jobs_per_s", "number"),
    ],
)
def test_an_unknown_name_is_its_label(name: str, kind: str) -> None:
    shown = style(name)
    assert (shown.label, shown.kind, shown.family) == (name.replace("_", " "), kind, "Other")
    assert (shown.better, shown.meaning) == (None, "")


@pytest.mark.parametrize("name", [*METRICS, *ALONE_METRICS, *STREAM_METRICS])
def test_a_unit_follows_from_the_metric(name: str) -> None:
    unit = {**METRICS, **ALONE_METRICS, **STREAM_METRICS}[name].unit
    assert (style(name).kind == "seconds") == (unit == "s")
