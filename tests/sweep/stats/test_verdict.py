"""Verdicts against statistics computed by hand with SciPy, and their sentences."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sweep.stats.arrange import arrange
from sweep.stats.done_jobs import is_of_done_jobs
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
        | {name: v[policy] if isinstance(v, dict) else v for name, v in more.items()}
        for policy, policy_values in values.items()
        for seed, value in enumerate(policy_values)
    ]
    return pa.Table.from_pylist(rows)


def judged(table: pa.Table, baseline: str | None = "fifo", metric: str | None = None) -> Verdict:
    config = {"swept": [], "baseline": baseline, "metrics": [], "verdict": {"metric": metric}}
    (verdict,) = verdicts(table, config)
    return verdict


ALL = {"fifo": FIFO, "las": LAS, "srpt": SRPT, "sjf": SJF}


def test_the_verdict_agrees_with_scipy() -> None:
    verdict = judged(cells(ALL, gap_lb_p50={"fifo": 2.0, "las": 1.0, "srpt": 0.037, "sjf": 0.04}))
    # the best mean, and those not different by Student's paired test on logarithms (Holm)
    assert np.mean(SRPT) < np.mean(SJF) < np.mean(LAS) < np.mean(FIFO)
    p = {
        name: stats.ttest_rel(np.log(values), np.log(SRPT)).pvalue
        for name, values in ALL.items()
        if name != "srpt"
    }
    assert max(3 * p["fifo"], 2 * p["las"]) < 0.05 < p["sjf"]
    assert verdict.best == ("srpt", "sjf")
    mean = stats.ttest_1samp(SRPT, 0.0).confidence_interval()
    assert verdict.value == pytest.approx(np.mean(SRPT))
    step = (mean.high - np.mean(SRPT)) / np.mean(SRPT)  # of the logarithm of the mean
    assert verdict.interval == pytest.approx(np.mean(SRPT) * np.exp([-step, step]))
    logs = np.log(FIFO) - np.log(SRPT)
    ends = stats.ttest_1samp(logs, 0.0).confidence_interval()
    assert verdict.against_baseline == pytest.approx(stats.gmean(np.array(FIFO) / np.array(SRPT)))
    assert verdict.against_interval == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    assert (verdict.gap_lb_p50, verdict.n_seeds, verdict.metric) == (0.037, 6, "jct_mean_s")
    assert verdict.sentence == (
        "t at capacity 0.7: srpt and sjf have the lowest mean JCT (not told apart), "
        "srpt's is 3.02 times shorter than fifo's [2.92, 3.13] (next: las 1.61×); the median job "
        "takes 3.7 % longer than its lower bound; about 72 seeds would be needed to tell srpt from "
        "sjf."
    )


def test_fractions_are_compared_by_their_difference() -> None:
    missed = {"fifo": [0.31, 0.28, 0.35, 0.30], "jockey": [0.02, 0.01, 0.04, 0.02]}
    verdict = judged(cells(missed, "deadlines_missed", jct_mean_s={"fifo": 1.0, "jockey": 2.0}))
    assert verdict.metric == "deadlines_missed"
    difference = np.array(missed["jockey"]) - np.array(missed["fifo"])
    ends = stats.ttest_1samp(difference, 0.0).confidence_interval()
    assert verdict.against_baseline == pytest.approx(difference.mean())
    assert verdict.against_interval == pytest.approx((ends.low, ends.high))
    assert verdict.sentence.startswith(
        "t at capacity 0.7: jockey has the lowest share of deadlines missed, 2.3 % [0.92, 5.4], "
        "28.7 percentage points lower than fifo's [26.0, 31.5]"
    )


@pytest.mark.parametrize(
    ("columns", "requested", "expected"),
    [
        (["jct_mean_s", "value_attained", "deadlines_missed"], None, "deadlines_missed"),
        (["jct_mean_s", "value_attained"], None, "value_attained"),
        (["jct_p99_s", "jct_mean_s"], None, "jct_mean_s"),
        (["jct_p99_s", "jct_mean_s"], "jct_p99_s", "jct_p99_s"),
        (["makespan_s"], None, "makespan_s"),
    ],
)
def test_the_metric_follows_from_the_workload(
    columns: list[str], requested: str | None, expected: str
) -> None:
    first, *rest = columns
    more = {key: {"fifo": 0.5, "srpt": 0.4} for key in rest}
    table = cells({"fifo": [0.5, 0.6], "srpt": [0.4, 0.5]}, first, **more)
    table = table.append_column("nothing", pa.array([math.nan] * 4))
    assert judged(table, metric=requested).metric == expected


def test_without_a_metric_that_has_a_direction_there_is_no_verdict() -> None:
    config = {"swept": [], "baseline": None, "metrics": []}
    assert verdicts(cells({"fifo": [1.0]}, "queue_length"), config) == []
    assert verdicts(frames.frame(failed=[("las", 0.5, 1)]).slice(0, 0), config) == []


def test_exact_ties_are_the_best_together_with_any_number_of_seeds() -> None:
    for n in (1, 2, 6):
        verdict = judged(cells({"fifo": FIFO[:n], "srpt": SRPT[:n], "sjf": SRPT[:n]}))
        assert verdict.best == ("srpt", "sjf")
        assert "srpt and sjf have the lowest mean JCT (exactly equal), " in verdict.sentence
        assert [s.is_tied for s in verdict.standings] == [False, True, True]


def test_the_best_of_many_that_tie_are_all_named() -> None:
    values = {f"p{i}": SRPT for i in range(6)} | {"fifo": FIFO}
    assert judged(cells(values)).sentence.startswith(
        "t at capacity 0.7: p0, p1, p2 and 3 more have the lowest mean JCT (exactly equal), 3.02"
    )


def test_few_seeds_have_no_test() -> None:
    verdict = judged(cells({"fifo": FIFO[:1], "srpt": SRPT[:1]}))
    assert verdict.interval is None
    assert verdict.against_interval is None
    assert verdict.sentence == (
        "t at capacity 0.7: srpt has the lowest mean JCT, 3.00 times shorter than fifo's; "
        "one seed is too few for a significance test (3 are needed)."
    )
    two = judged(cells({"fifo": FIFO[:2], "srpt": SRPT[:2]}))
    assert two.best == ("srpt",)
    assert two.sentence.endswith("; 2 seeds are too few for a significance test (3 are needed).")


def test_there_is_nothing_to_test_where_no_seed_changes_anything() -> None:
    table = cells({"fifo": FIFO[:1], "srpt": SRPT[:1]})
    config = {"swept": [], "baseline": "fifo", "metrics": [], "is_fixed": True}
    (verdict,) = verdicts(table, config)
    lowest = "t at capacity 0.7: srpt has the lowest mean JCT"
    assert verdict.sentence == f"{lowest}, 3.00 times shorter than fifo's."
    several = judged(cells({"fifo": FIFO[:1] * 10, "srpt": [1 / 3] * 10}))
    assert several.sentence == f"{lowest}, 2,436 times shorter than fifo's."
    assert several.interval == (several.value, several.value)


def test_it_says_how_many_seeds_would_show_a_difference() -> None:
    verdict = judged(cells({"fifo": SRPT, "sjf": SJF}))
    assert verdict.best == ("fifo", "sjf")
    assert (verdict.against_baseline, verdict.against_interval) == (1.0, None)
    assert (
        "no significant difference in mean JCT between the 2 policies; fifo has the lowest, 267.3"
    ) in verdict.sentence
    logs = np.log(SJF) - np.log(SRPT)
    effect = logs.mean() / logs.std(ddof=1)
    n = next(n for n in range(7, 999) if 2 * stats.t.sf(effect * math.sqrt(n), n - 1) <= 0.05)
    assert verdict.sentence.endswith(f"; about {n} seeds would be needed to tell fifo from sjf.")


def test_if_no_job_waited_it_names_a_capacity_to_try() -> None:
    table = cells({"fifo": FIFO, "srpt": FIFO}, wait_mean_s=0.0, utilization=0.085)
    assert judged(table).sentence == (
        "t at capacity 0.7: no job waited, so all policies have the same mean JCT "
        "(807.5 ±24.2 s); try capacity=0.07."
    )
    same = judged(cells({"fifo": FIFO, "srpt": FIFO}, wait_mean_s=3.0, utilization=0.9))
    assert "t at capacity 0.7: all policies have the same mean JCT" in same.sentence
    assert "try capacity=0.35" in same.sentence
    moved = judged(cells({"fifo": FIFO, "srpt": SRPT}, wait_mean_s=0.0))
    assert moved.sentence.endswith("; no job waited: try capacity=0.35.")


def test_a_policy_alone_and_no_baseline() -> None:
    assert judged(cells({"srpt": SRPT}), None).sentence == (
        "t at capacity 0.7: srpt is the only policy, with a mean JCT of 267.3 ±16.8 s."
    )
    verdict = judged(cells(ALL), None)
    assert (verdict.baseline, verdict.against_baseline, verdict.against_interval) == (
        None,
        None,
        None,
    )


def test_the_size_of_the_cluster_is_said_where_it_is_known() -> None:
    known = cells({"fifo": FIFO[:2]}, n_machines=41, offered_load=0.8)
    verdict = judged(known)
    assert verdict.sentence.startswith("t at capacity 0.7 (41 machines): ")
    assert verdict.as_json()["n_machines"] == 41
    assert verdict.as_json()["arrival_scale"] is None
    pool = known.append_column("is_pool", pa.array([True, True])).set_column(
        known.column_names.index("n_machines"), "n_machines", pa.array([1, 1200])
    )
    assert judged(pool).sentence.startswith("t at capacity 0.7 (1 to 1,200 slots): ")
    for n, size in ((22.5, "22.5 machines"), (0.125, "0.12 machines"), (9.001, "9 machines")):
        cut = cells({"fifo": FIFO[:2]}, n_machines=n)
        assert judged(cut).sentence.startswith(f"t at capacity 0.7 ({size}): ")
    place = known.column_names.index("n_machines")
    for ends, size in (
        ([8.25, 8.5], "8.25 to 8.5"),
        ([0.5, 9.5], "0.5 to 9.5"),
        ([7.6, 9.1], "8 to 9"),
    ):
        several = known.set_column(place, "n_machines", pa.array(ends))
        assert judged(several).sentence.startswith(f"t at capacity 0.7 ({size} machines): ")


def test_the_gap_to_the_lower_bound_is_a_share_or_a_multiple() -> None:
    words = {
        1e-9: "takes no longer than",
        0.04: "takes 4.0 % longer than",
        3.161: "takes 4.2 times",
    }
    for gap, expected in words.items():
        gaps = {"fifo": 2.0, "las": 1.0, "srpt": gap, "sjf": 0.04}
        sentence = judged(cells(ALL, gap_lb_p50=gaps)).sentence
        assert f"; the median job {expected} its lower bound" in sentence


def test_it_gives_the_results_of_the_other_policies() -> None:
    alone = judged(cells({"fifo": FIFO, "las": LAS, "srpt": SRPT}), None)
    assert (
        "srpt has the lowest mean JCT, 267.3 ±16.8 s (next: las 501.7 s, fifo 807.5 s)"
    ) in alone.sentence
    many = {f"p{i}": [value * (1 + i) for value in SRPT] for i in range(7)}
    sentence = judged(cells({**many, "fifo": FIFO})).sentence
    assert (
        "than fifo's [2.92, 3.13] (next: p1 1.51×, p2 1.01×, 3 more down to p6 0.43×)." in sentence
    )
    four = {name: many[name] for name in ("p0", "p1", "p2", "p3", "p4")}
    sentence = judged(cells({**four, "fifo": FIFO})).sentence
    assert "(next: p1 1.51×, p2 1.01×, p3 0.76×, p4 0.60×)" in sentence


def test_a_small_lead_is_a_percentage() -> None:
    ratios = np.array([1.003, 1.005, 1.004, 1.006, 1.002, 1.004])
    table = cells({"fifo": list(np.array(SRPT) * ratios), "srpt": SRPT, "las": LAS})
    verdict = judged(table)
    ends = stats.ttest_1samp(np.log(ratios), 0.0).confidence_interval()
    low, high = (100 * (1 - math.exp(-end)) for end in ends)
    assert verdict.best == ("srpt",)
    assert (
        f"srpt has the lowest mean JCT, 0.4 % shorter than fifo's [{low:.1f}, {high:.1f}] "
        "(next: las 0.54×)" in verdict.sentence
    )
    tiny = judged(cells({"fifo": [270.06], "srpt": [270.0]}))
    assert "srpt has the lowest mean JCT, 0.022 % shorter than fifo's;" in tiny.sentence
    higher = judged(cells({"fifo": [0.50], "srpt": [0.51]}, "tasks_local"))
    assert "srpt has the highest tasks local" in higher.sentence


def test_behind_a_baseline_that_is_best_the_others_are_described_in_words() -> None:
    values = {"fifo": SRPT, "sjf": [1.1 * v for v in SRPT], "las": [1.03 * v for v in SRPT]}
    sentence = judged(cells(values)).sentence
    assert sentence.startswith("t at capacity 0.7: fifo (the baseline) has the lowest mean JCT, ")
    assert "(next: las 3.0 % longer, sjf 1.10 times longer)" in sentence


def test_a_configured_number_of_machines_replaces_the_capacity() -> None:
    counted = cells({"fifo": FIFO[:2], "srpt": SRPT[:2]}, n_machines=20, is_counted=True)
    assert judged(counted).sentence.startswith("t on 20 machines: srpt has ")
    sized = cells({"fifo": FIFO[:2]}, n_machines=20, is_counted=False)
    assert judged(sized).sentence.startswith("t at capacity 0.7 (20 machines): ")


def test_failed_cells_leave_their_pairs_out() -> None:
    table = cells({"fifo": FIFO, "srpt": SRPT, "las": LAS})
    status = ["failed" if s in (2, 7) else "done" for s in range(table.num_rows)]
    verdict = judged(table.set_column(4, "status", pa.array(status)))
    paired = [seed for seed in range(6) if seed not in (1, 2)]
    ratios = np.array(FIFO)[paired] / np.array(SRPT)[paired]
    assert verdict.against_baseline == pytest.approx(stats.gmean(ratios))
    assert verdict.n_seeds == 4
    assert "on 4 of 6 seeds (fifo has 5, srpt has 5)" in verdict.sentence


def test_the_order_of_rows_changes_nothing() -> None:
    table = frames.frame(seeds=range(6))
    config = {"swept": [], "baseline": "fifo", "metrics": []}
    order = np.random.default_rng(0).permutation(table.num_rows)
    first, mixed = (
        sorted(json.dumps(verdict.as_json()) for verdict in verdicts(rows, config))
        for rows in (table, table.take(order))
    )
    assert first == mixed


def test_several_traces_and_settings_have_a_verdict_each() -> None:
    extra = [{"cluster.load": 0.7}, {"cluster.load": 0.9}]
    table = frames.frame(extra=extra, traces=["a", "b"], capacities=[0.5, 1.0])
    config = {"swept": ["cluster.load"], "baseline": "fifo", "metrics": []}
    actual = verdicts(table, config)
    assert len(actual) == 8
    assert actual[0].sentence.startswith("a, cluster.load=0.7 at capacity 0.5: ")
    assert actual[0].as_json()["settings"] == {"cluster.load": "0.7"}


KNOWS = {"fifo": "nothing", "las": "nothing", "srpt": "true", "sjf": "true"}


def oracles(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {"knows": KNOWS, "is_oracle": {name: name in names for name in ALL}}


def test_an_oracle_is_never_the_best_but_shown_beside_it() -> None:
    verdict = judged(cells(ALL, **oracles(("srpt", "sjf"))))
    assert verdict.best == ("las",)
    assert [oracle.policy for oracle in verdict.oracles] == ["srpt", "sjf"]
    first = verdict.oracles[0]
    assert first.against_best.estimate == pytest.approx(stats.gmean(np.array(LAS) / np.array(SRPT)))
    assert first.is_distinct
    assert [s.policy for s in verdict.standings if s.is_best] == ["las"]
    assert [s.policy for s in verdict.standings if s.is_oracle] == ["srpt", "sjf"]
    assert verdict.sentence == (
        "t at capacity 0.7: las has the lowest mean JCT, 1.61 times shorter than fifo's "
        "[1.54, 1.68]; srpt, which knows all durations, would be 1.88 times shorter still "
        "[1.82, 1.93]."
    )
    entry = json.loads(json.dumps(verdict.as_json()))
    assert entry["best"] == ["las"]
    assert entry["oracles"][0]["policy"] == "srpt"
    assert entry["oracles"][0]["knows"] == "true"
    assert entry["oracles"][0]["against_best"] == pytest.approx(first.against_best.estimate)


def test_an_oracle_that_gains_nothing_is_said_to_gain_nothing() -> None:
    close_means = {"fifo": FIFO, "las": SJF, "srpt": SRPT}
    about = {"knows": KNOWS, "is_oracle": {"fifo": False, "las": False, "srpt": True}}
    verdict = judged(cells(close_means, **about))
    assert not verdict.oracles[0].is_distinct
    assert "srpt, which knows all durations, would be no better" in verdict.sentence


def test_the_best_oracle_stands_only_where_no_policy_can_be_run() -> None:
    verdict = judged(cells({"srpt": SRPT, "sjf": SJF}, **oracles(("srpt", "sjf"))), None)
    assert verdict.best[0] == "srpt"
    assert verdict.oracles == ()
    assert "no policy here can be run" in verdict.sentence


def test_a_single_policy_that_can_be_run_is_said_to_be_the_only_one() -> None:
    verdict = judged(cells({"fifo": FIFO, "srpt": SRPT}, **oracles(("srpt",))))
    assert verdict.best == ("fifo",)
    assert "fifo (the baseline) is the only policy that can be run" in verdict.sentence
    assert "would be 3.02 times shorter still" in verdict.sentence


def test_a_column_about_knowledge_is_no_metric() -> None:
    table = cells(ALL, **oracles(("srpt", "sjf")))
    arranged = arrange(table, [], "fifo")
    assert arranged.metrics == ["jct_mean_s"]
    assert [column.knows for column in arranged.columns.values()] == list(KNOWS.values())


def test_a_bootstrap_has_a_quantile_in_place_of_an_interval_of_the_mean() -> None:
    draws = [100.0, 700.0, 300.0, 200.0, 600.0, 500.0, 400.0, 900.0, 800.0, 5000.0]
    alone = judged(cells({"fifo": draws}, is_bootstrap=True), None)
    assert "a mean JCT of 950.0 s (at most 900.0 s in 9 of 10 draws)" in alone.sentence
    four = judged(cells({"fifo": [0.4, 0.1, 0.2, 0.3]}, "value_attained", is_bootstrap=True), None)
    assert "of 25.0 % (at least 20.0 % in 3 of 4 draws)" in four.sentence
    two = judged(cells({"fifo": [1.0, 3.0]}, is_bootstrap=True), None)
    assert "draws" not in two.sentence


def test_where_most_jobs_fail_that_is_said_first() -> None:
    """Nothing is said of times that there are not, and so much of those that there are."""

    def sentence_of(failed: float, jct_s: float | None, policies: tuple[str, ...]) -> str:
        cells = frames.frame(seeds=[0], capacities=[1.0], policies=policies)
        n = cells.num_rows
        times = {name: jct_s for name in cells.column_names if is_of_done_jobs(name)}
        for name, value in {**times, "jobs_failed": failed, "utilization": 0.2}.items():
            column = pa.array([value] * n, pa.float64())
            place = cells.column_names.index(name)
            cells = cells.set_column(place, name, column)
        (verdict,) = verdicts(cells, {"swept": [], "baseline": None})
        assert verdict.words.claim.startswith("most jobs fail") == (failed >= 0.5)
        return verdict.sentence.partition(": ")[2]

    both = ("fifo", "las")
    both_fail = sentence_of(0.81, None, both)
    assert both_fail.startswith("most jobs fail, so nothing is said of times; ")
    assert "of the jobs 81.0 % fail under fifo, 81.0 % fail under las" in both_fail
    assert "try capacity" not in both_fail
    alone = sentence_of(0.81, 40.0, ("fifo",))
    assert alone.startswith("most jobs fail; ")
    assert "nothing is said" not in alone
    assert "most jobs" not in sentence_of(0.49, 40.0, both)
