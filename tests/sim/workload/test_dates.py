"""Dates and times of submission."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sim
from sim.base.errors import InputError

STAGES = [{"durations_s": [1.0]}]


def workload(*dates: Any) -> sim.Workload:
    return sim.Workload.from_jobs([{"submit_s": date, "stages": STAGES} for date in dates])


@pytest.mark.parametrize(
    "dates",
    [
        (datetime(2026, 3, 1, 9, 30), datetime(2026, 3, 1, 9, 30, 0, 500_000)),
        (np.datetime64("2026-03-01T09:30"), np.datetime64("2026-03-01T09:30:00.5")),
        (pd.Timestamp("2026-03-01 09:30"), pd.Timestamp("2026-03-01 09:30:00.5")),
    ],
)
def test_dates_become_seconds_since_the_first(dates: tuple[Any, Any]) -> None:
    dated = workload(dates[1], dates[0])
    assert dated.columns.job_submit.tolist() == [0.0, 0.5]
    assert dated.jobs["job_id"].to_pylist() == ["job-1", "job-0"]
    assert dated.meta["zero"] == "2026-03-01T09:30:00+00:00 (no time zone given: taken as UTC)"


def test_time_zones_are_heeded() -> None:
    east = timezone(timedelta(hours=2))
    dated = workload(
        datetime(2026, 3, 1, 11, 30, tzinfo=east), datetime(2026, 3, 1, 10, tzinfo=UTC)
    )
    assert dated.columns.job_submit.tolist() == [0.0, 1800.0]
    assert dated.meta["zero"] == "2026-03-01T11:30:00+02:00"


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ((datetime(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)), "has no time zone but others"),
        ((datetime(2026, 3, 1), 5.0), "5.0 is no date and time; other jobs have one"),
        ((datetime(2026, 3, 1), pd.NaT), "NaT is no date and time"),
    ],
)
def test_mixtures_are_refused(dates: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload(*dates)


def test_seconds_have_no_zero() -> None:
    assert "zero" not in workload(5.0).meta
