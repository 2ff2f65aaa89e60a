"""The study of the matrix of GPU clusters, on numbers made up."""

from __future__ import annotations

from policies.baselines.study.figures import CLAIMS, matrix, page
from sweep.report.findings import FinishedSweep

JCT = {"fifo": 100.0, "tiresias": 50.0, "gittins": 60.0, "las": 100.0, "max_min_kinds": 99.0}


def cells(trace="training_metered", noise=0.01):
    """Return cells of three seeds; of `max_min_kinds` the ratio to `las` is not told from 1."""
    rows = []
    for policy, jct_s in JCT.items():
        for seed in range(3):
            odd = (-1) ** seed * (0.2 if policy == "max_min_kinds" else noise * (seed + 1))
            row = {"trace": trace, "capacity": 0.8, "policy": policy, "seed": seed}
            rows.append(row | {"jct_mean_s": jct_s * (1 + odd), "goodput": 50.0 / jct_s})
    return rows


def findings(rows):
    return list(matrix(FinishedSweep(rows, {}, None)))


def test_orders_hold_or_not_by_their_interval():
    text = page(findings(cells()), {})
    assert "Of 3 published orders, each at a capacity, 1 hold, 1 do not, and 1 are not" in text
    lines = [line for line in text.splitlines() if " before " in line]
    assert [line.rpartition(", ")[2] for line in lines] == [
        "holds |",  # tiresias before fifo
        "does not hold |",  # gittins before tiresias, 1.2
        "not told apart |",
    ]
    assert "0.5 (" in lines[0]
    assert "1.2 (" in lines[1]


def test_an_order_is_checked_on_its_own_workload():
    orders = [f.figure.split(" · ") for f in findings(cells()) if f.figure.startswith("claim")]
    assert {parts[3] for parts in orders} == {"training_metered"}
    assert len(orders) < len(CLAIMS)
    assert not [f for f in findings(cells("another")) if f.figure.startswith("claim")]


def test_the_best_and_those_level_with_it_are_marked():
    marked = [f.quantity for f in findings(cells(noise=0.0)) if f.figure == "mean JCT"]
    assert marked[:3] == [
        "training_metered · 0.8 · fifo",
        "training_metered · 0.8 · tiresias · ▲",
        "training_metered · 0.8 · gittins",
    ]
    more = [f.quantity for f in findings(cells()) if f.figure == "goodput"]
    assert more[1].endswith("tiresias · ▲")  # of goodput the greatest


def test_a_metric_that_no_cell_has_has_no_table():
    text = page(findings(cells()), {})
    assert "## Mean JCT over `fifo`'s" in text
    assert "energy" not in text.lower()
