"""Verdicts against statistics computed by hand with SciPy, and what they say."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sweep.stats.verdict import Verdict, verdicts
from tests.sweep import frames

FIFO = [812.0, 790.0, 840.0, 801.0, 825.0, 777.0]
LAS = [520.0, 481.0, 540.0, 470.0, 533.0, 466.0]
SRPT = [271.0, 250.0, 290.0, 262.0, 280.0, 251.0]
SJF = [272.0, 249.0, 294.0, 260.0, 283.0, 250.0]


def cells(values: dict[str, list[float]], metric: str = "jct_mean_s", **more: Any) -> pa.Table:
    """Make the table of a sweep of one trace and capacity; `more` are further columns."""
    rows = [
        {"policy": policy, "trace": "t", "capacity": 0.7, "seed": seed, "status": "done"}
        | {metric: value}
        | {name: of[policy] if isinstance(of, dict) else of for name, of in more.items()}
        for policy, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]
    return pa.Table.from_pylist(rows)


def judged(table: pa.Table, baseline: str | None = "fifo", metric: str | None = None) -> Verdict:
    config = {"swept": [], "baseline": baseline, "metrics": [], "verdict": {"metric": metric}}
    (one,) = verdicts(table, config)
    return one


ALL = {"fifo": FIFO, "las": LAS, "srpt": SRPT, "sjf": SJF}


def test_the_verdict_is_what_scipy_says() -> None:
    one = judged(cells(ALL, gap_lb_p50={"fifo": 2.0, "las": 1.0, "srpt": 0.037, "sjf": 0.04}))
    # the best mean, and whom Student's paired test on logarithms does not tell from it (Holm)
    assert np.mean(SRPT) < np.mean(SJF) < np.mean(LAS) < np.mean(FIFO)
    p = {
        name: stats.ttest_rel(np.log(values), np.log(SRPT)).pvalue
        for name, values in ALL.items()
        if name != "srpt"
    }
    assert max(3 * p["fifo"], 2 * p["las"]) < 0.05 < p["sjf"]
    assert one.best == ("srpt", "sjf")
    mean = stats.ttest_1samp(SRPT, 0.0).confidence_interval()
    assert one.value == pytest.approx(np.mean(SRPT))
    assert one.interval == pytest.approx((mean.low, mean.high))
    logs = np.log(FIFO) - np.log(SRPT)
    ends = stats.ttest_1samp(logs, 0.0).confidence_interval()
    assert one.against_baseline == pytest.approx(stats.gmean(np.array(FIFO) / np.array(SRPT)))
    assert one.against_interval == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    assert (one.gap_lb_p50, one.n_seeds, one.metric) == (0.037, 6, "jct_mean_s")
    assert one.sentence == (
        "t at 0.7: srpt and sjf, 3.02× [2.92, 3.13] sooner than fifo in mean JCT (las 1.61×); half "
        "of the jobs within 3.7 % of the bound; about 72 seeds would tell srpt from sjf."
    )


def test_fractions_are_compared_by_their_difference() -> None:
    missed = {"fifo": [0.31, 0.28, 0.35, 0.30], "jockey": [0.02, 0.01, 0.04, 0.02]}
    one = judged(cells(missed, "deadlines_missed", jct_mean_s={"fifo": 1.0, "jockey": 2.0}))
    assert one.metric == "deadlines_missed"
    difference = np.array(missed["jockey"]) - np.array(missed["fifo"])
    ends = stats.ttest_1samp(difference, 0.0).confidence_interval()
    assert one.against_baseline == pytest.approx(difference.mean())
    assert one.against_interval == pytest.approx((ends.low, ends.high))
    assert one.sentence.startswith(
        "t at 0.7: jockey, deadlines missed 2.3 % ±2.0, -28.7 pp [-31.5, -26.0] against fifo"
    )


@pytest.mark.parametrize(
    ("columns", "asked", "expected"),
    [
        (["jct_mean_s", "value_attained", "deadlines_missed"], None, "deadlines_missed"),
        (["jct_mean_s", "value_attained"], None, "value_attained"),
        (["jct_p99_s", "jct_mean_s"], None, "jct_mean_s"),
        (["jct_p99_s", "jct_mean_s"], "jct_p99_s", "jct_p99_s"),
        (["makespan_s"], None, "makespan_s"),
    ],
)
def test_what_it_speaks_of(columns: list[str], asked: str | None, expected: str) -> None:
    first, *others = columns
    more = {key: {"fifo": 0.5, "srpt": 0.4} for key in others}
    table = cells({"fifo": [0.5, 0.6], "srpt": [0.4, 0.5]}, first, **more)
    table = table.append_column("nothing", pa.array([math.nan] * 4))
    assert judged(table, metric=asked).metric == expected


def test_without_a_metric_that_has_a_direction_there_is_no_verdict() -> None:
    config = {"swept": [], "baseline": None, "metrics": []}
    assert verdicts(cells({"fifo": [1.0]}, "queue_length"), config) == []
    assert verdicts(frames.frame(failed=[("las", 0.5, 1)]).slice(0, 0), config) == []


def test_exact_ties_are_the_best_together_whatever_the_number_of_seeds() -> None:
    for n in (1, 2, 6):
        one = judged(cells({"fifo": FIFO[:n], "srpt": SRPT[:n], "sjf": SRPT[:n]}))
        assert one.best == ("srpt", "sjf")
        assert "srpt and sjf (exactly tied), " in one.sentence
        assert [s.is_tied for s in one.standings] == [False, True, True]


def test_the_best_of_many_that_tie_are_all_named() -> None:
    values = {f"p{at}": SRPT for at in range(6)} | {"fifo": FIFO}
    assert judged(cells(values)).sentence.startswith(
        "t at 0.7: p0, p1, p2 and 3 more (exactly tied), 3.02"
    )


def test_little_is_said_of_few_seeds() -> None:
    one = judged(cells({"fifo": FIFO[:1], "srpt": SRPT[:1]}))
    assert one.interval is None
    assert one.against_interval is None
    assert (
        one.sentence == "t at 0.7: srpt, 3.00× sooner than fifo in mean JCT; one seed: not tested."
    )
    two = judged(cells({"fifo": FIFO[:2], "srpt": SRPT[:2]}))
    assert two.best == ("srpt",)
    assert two.sentence.endswith("; 2 seeds: not tested, 3 are.")


def test_nothing_is_to_be_tested_where_no_seed_changes_anything() -> None:
    table = cells({"fifo": FIFO[:1], "srpt": SRPT[:1]})
    config = {"swept": [], "baseline": "fifo", "metrics": [], "is_fixed": True}
    (one,) = verdicts(table, config)
    assert one.sentence == "t at 0.7: srpt, 3.00× sooner than fifo in mean JCT."
    several = judged(cells({"fifo": FIFO[:1] * 10, "srpt": [1 / 3] * 10}))
    assert several.sentence == "t at 0.7: srpt, 2,436× sooner than fifo in mean JCT."
    assert several.interval == (several.value, several.value)


def test_it_says_how_many_seeds_would_tell() -> None:
    one = judged(cells({"fifo": SRPT, "sjf": SJF}))
    assert one.best == ("fifo", "sjf")
    assert (one.against_baseline, one.against_interval) == (1.0, None)
    assert "no test tells the 2 policies apart; best mean fifo, mean JCT 267.3" in one.sentence
    logs = np.log(SJF) - np.log(SRPT)
    effect = logs.mean() / logs.std(ddof=1)
    n = next(n for n in range(7, 999) if 2 * stats.t.sf(effect * math.sqrt(n), n - 1) <= 0.05)
    assert one.sentence.endswith(f"; about {n} seeds would tell fifo from sjf.")


def test_nothing_to_schedule_is_said_with_a_capacity_to_try() -> None:
    table = cells({"fifo": FIFO, "srpt": FIFO}, wait_mean_s=0.0, utilization=0.085)
    assert judged(table).sentence == (
        "t at 0.7: no job waited, so no two policies differ in mean JCT (807.5 ±24.2 s); "
        "try capacity=0.07."
    )
    same = judged(cells({"fifo": FIFO, "srpt": FIFO}, wait_mean_s=3.0, utilization=0.9))
    assert "t at 0.7: no two policies differ in mean JCT" in same.sentence
    assert "try capacity=0.35" in same.sentence
    moved = judged(cells({"fifo": FIFO, "srpt": SRPT}, wait_mean_s=0.0))
    assert moved.sentence.endswith("; no job waited: try capacity=0.35.")


def test_a_policy_alone_and_no_baseline() -> None:
    assert judged(cells({"srpt": SRPT}), None).sentence == (
        "t at 0.7: srpt alone, mean JCT 267.3 ±16.8 s."
    )
    one = judged(cells(ALL), None)
    assert (one.baseline, one.against_baseline, one.against_interval) == (None, None, None)


def test_the_size_of_the_cluster_is_said_where_it_is_known() -> None:
    known = cells({"fifo": FIFO[:2]}, n_machines=41, offered_load=0.8)
    one = judged(known)
    assert one.sentence.startswith("t at 0.7 (41 machines): ")
    assert one.as_json()["n_machines"] == 41
    assert one.as_json()["arrival_scale"] is None
    pool = known.append_column("is_pool", pa.array([True, True])).set_column(
        known.column_names.index("n_machines"), "n_machines", pa.array([1, 1200])
    )
    assert judged(pool).sentence.startswith("t at 0.7 (1 to 1,200 slots): ")
    cut = cells({"fifo": FIFO[:2]}, n_machines=22.5)
    assert judged(cut).sentence.startswith("t at 0.7 (22.50 machines): ")


def test_a_gap_of_rounding_is_none() -> None:
    gaps = {"fifo": 2.0, "las": 1.0, "srpt": 1e-9, "sjf": 0.04}
    assert "half of the jobs at the bound" in judged(cells(ALL, gap_lb_p50=gaps)).sentence


def test_it_says_where_the_others_stand() -> None:
    alone = judged(cells({"fifo": FIFO, "las": LAS, "srpt": SRPT}), None)
    assert "srpt, mean JCT 267.3 ±16.8 s (las 501.7 s, fifo 807.5 s)" in alone.sentence
    many = {f"p{at}": [value * (1 + at) for value in SRPT] for at in range(7)}
    found = judged(cells({**many, "fifo": FIFO})).sentence
    assert "in mean JCT (p1 1.51×, p2 1.01×, 3 more down to p6 0.43×)." in found
    four = {name: many[name] for name in ("p0", "p1", "p2", "p3", "p4")}
    found = judged(cells({**four, "fifo": FIFO})).sentence
    assert "(p1 1.51×, p2 1.01×, p3 0.76×, p4 0.60×)" in found


def test_a_number_of_machines_that_was_asked_for_stands_for_the_capacity() -> None:
    asked = cells({"fifo": FIFO[:2], "srpt": SRPT[:2]}, n_machines=20, is_counted=True)
    assert judged(asked).sentence.startswith("t on 20 machines: srpt, ")
    sized = cells({"fifo": FIFO[:2]}, n_machines=20, is_counted=False)
    assert judged(sized).sentence.startswith("t at 0.7 (20 machines): ")


def test_failed_cells_leave_their_pairs_out() -> None:
    table = cells({"fifo": FIFO, "srpt": SRPT, "las": LAS})
    status = ["failed" if s in (2, 7) else "done" for s in range(table.num_rows)]
    one = judged(table.set_column(4, "status", pa.array(status)))
    kept = [at for at in range(6) if at not in (1, 2)]
    ratios = np.array(FIFO)[kept] / np.array(SRPT)[kept]
    assert one.against_baseline == pytest.approx(stats.gmean(ratios))
    assert one.n_seeds == 5


def test_the_order_of_rows_changes_nothing() -> None:
    table = frames.frame(seeds=range(6))
    config = {"swept": [], "baseline": "fifo", "metrics": []}
    order = np.random.default_rng(0).permutation(table.num_rows)
    first, mixed = (
        sorted(json.dumps(one.as_json()) for one in verdicts(of, config))
        for of in (table, table.take(order))
    )
    assert first == mixed


def test_several_traces_and_settings_have_a_verdict_each() -> None:
    extra = [{"cluster.load": 0.7}, {"cluster.load": 0.9}]
    table = frames.frame(extra=extra, traces=["a", "b"], capacities=[0.5, 1.0])
    config = {"swept": ["cluster.load"], "baseline": "fifo", "metrics": []}
    made = verdicts(table, config)
    assert len(made) == 8
    assert made[0].sentence.startswith("a, cluster.load=0.7 at 0.5: ")
    assert made[0].as_json()["settings"] == {"cluster.load": "0.7"}
