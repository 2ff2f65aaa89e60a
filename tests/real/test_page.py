"""Page of real schedulers: rendered from its table, thresholds by the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

import policies
from benchmarks.real import page
from benchmarks.real.slurm import backtests


def backtest(run: str, policy: str, **changed: Any) -> dict[str, Any]:
    """Return a backtest that holds every threshold."""
    row = {
        "run": run, "policy": policy, "is_named": True, "is_nearest": True,
        "wait_mean_recorded_s": 100.0, "wait_mean_s": 101.0, "waited": 50, "low": 90.0,
        "high": 110.0, "error": 0.01, "mae": 0.1, "waited_within_10pct": 0.9,
        "pairs_in_order": 1.0, "in_range": 0.99, "mae_between_runs": 0.1,
    }  # fmt: skip
    return row | changed


@pytest.mark.parametrize(
    ("run", "changed", "failing"),
    [
        ("kth2-builtin-basic-1", {}, []),
        ("kth2-builtin-basic-1", {"error": -0.011}, ["error of the mean"]),
        ("kth2-builtin-basic-1", {"pairs_in_order": 0.9999}, ["pairs in order"]),
        ("kth2-backfill-basic-1", {"error": 0.031}, ["error of the mean"]),
        ("kth2-backfill-basic-1", {"waited_within_10pct": 0.79}, ["within 10 %"]),
        ("kth2-backfill_short-basic-1", {"error": 0.5}, []),
        ("seconds1-backfill-basic-1", {"error": 0.5}, []),
        ("seconds1-backfill-basic-1", {"high": 99.0}, ["recorded mean in 95 % of the draws"]),
        ("seconds1-backfill-basic-1", {"in_range": 0.94}, ["jobs in the ensemble's range"]),
        ("seconds1-backfill-basic-1", {"mae": 0.13}, ["job, over two draws'"]),
        ("seconds1-backfill-basic-1", {"is_nearest": False}, ["nearest"]),
    ],
)
def test_a_threshold_holds_by_the_rule(
    run: str, changed: dict[str, Any], failing: list[str]
) -> None:
    table = {"noise": [], "backtests": [backtest(run, "slurm", **changed)]}
    lines = page.render(table).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [cell[2] for cell in cells if cell[-2:-1] == ["**no**"]] == failing


@pytest.mark.parametrize("group", ["kth1-backfill_short-basic", "kth1-builtin-multifactor"])
def test_policies_are_those_that_the_settings_name(group: str) -> None:
    settings = json.loads((page.RUNS / "runs.json").read_text())["settings"][group]
    built = {
        name: policies.build(**options) for name, options in backtests.candidates(settings).items()
    }
    assert set(backtests.named(settings)) < set(built)
    if settings["priority"] == "basic":
        slurm = built["slurm"]
        assert (slurm.interval_s, slurm.resolution_s, slurm.depth) == (1, 1, 1000)
        assert built["easy_all"].reservations == 1000
    else:
        first = built["fifo"]
        assert type(first).__name__ == "Multifactor"
        assert (first.weight_age, first.weight_fair_share) == (0, 0)
        assert first.partitions == {"p": 1, "express": 2}
        assert built["builtin"] == built["slurm"].__class__(
            backfill=False, **backtests.priority_options(settings)
        )


def test_errors_of_both_signs_do_not_cancel() -> None:
    runs = [
        backtest(f"kth2-builtin-basic-{i}", "slurm", error=e) for i, e in enumerate((0.02, -0.02))
    ]
    assert "| Slurm FIFO | error of the mean | 1 % | 2.0 % | **no** |" in page.render(
        {"noise": [], "backtests": runs}
    )


def test_judges_are_told_from_runs_for_development() -> None:
    rows = [backtest("kth2-builtin-basic-1", "slurm"), backtest("kth1-builtin-basic-1", "slurm")]
    text = page.render({"noise": [], "backtests": rows})
    assert text.index("## Judged: kth2") < text.index("## Developed on: kth1")


def test_the_page_is_rendered_from_its_table() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(page.read_table()), (
        "it is outdated; render it anew with `python -m benchmarks.real.page`"
    )
