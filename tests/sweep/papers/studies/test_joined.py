"""The studies of the policy that joins the five systems: fields, marks, rule, parts taken away."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sweep.papers import matrix as tables
from sweep.papers.studies import joined
from sweep.papers.studies.joined import OURS, WITHOUT
from sweep.report.findings import Finding
from tests.sweep.papers.study_runs import InMemorySweep

SEEDS = range(6)
NOISE = (0.00, 0.01, -0.01, 0.005, 0.0, -0.005)


def cells(trace: str, capacity: float, **policies: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {"trace": trace, "capacity": capacity, "seed": seed, "policy": name.replace("__", "/")}
        | {"is_oracle": name == "srpt"}
        | {metric: value * (1 + NOISE[seed]) for metric, value in metrics.items()}
        for name, metrics in policies.items()
        for seed in SEEDS
    ]


def results(study: Any, rows: list[dict[str, Any]]) -> dict[tuple[str, str], Finding]:
    finished = InMemorySweep(rows, {}, None)  # type: ignore[arg-type]
    return {(f.figure, f.quantity): f for f in study(finished)}


ROWS = [
    *cells(
        "a", 0.4,
        fifo={"jct_mean_s": 100.0, "jct_p99_s": 900.0, "value_attained": 0.5},
        bayes={"jct_mean_s": 50.0, "jct_p99_s": 400.0, "value_attained": 0.6},
        srpt={"jct_mean_s": 20.0, "jct_p99_s": 300.0, "value_attained": 0.9},
        wserpt={"jct_mean_s": 45.0, "jct_p99_s": 500.0, "value_attained": 0.58},
    ),
    *cells("b", 0.4, fifo={"jct_mean_s": 10.0}, bayes={"jct_mean_s": 10.0}),
]  # fmt: skip


def test_fields_have_the_best_that_can_be_run_and_ours_marked():
    findings = results(joined.matrix, ROWS)
    jct = "capacity 0.4 · mean JCT, s"
    assert findings[jct, "a · bayes"].ours == pytest.approx(50.0)  # srpt knows the truth
    assert findings[jct, "a · wserpt ▲"].ours == pytest.approx(45.0)
    assert findings["capacity 0.4 · p99 of JCT, s", "a · wserpt ▼"].ours == pytest.approx(500.0)
    worse = findings["where wserpt is worse", "a at 0.4, p99 of JCT, s over bayes's"]
    assert worse.ours == pytest.approx(1.25)
    points = findings["where wserpt is worse", "a at 0.4, value, % less bayes's"]
    assert points.ours == pytest.approx(-2.0)
    ratio = findings["capacity 0.4 · mean JCT, s", "a · ratio"]
    assert ratio.ours == pytest.approx(0.9)
    title = "number of workloads and capacities in which wserpt is"
    counts = [
        [findings[f"{title} · {text}", objective].ours for text in
         ("better than the best other", "not told apart", "worse")]
        for objective in ("mean JCT, s", "value, %")
    ]  # fmt: skip
    assert counts == [[1, 0, 0], [0, 0, 1]]
    assert not any(quantity.startswith("b ·") for _, quantity in findings)  # nothing differs there


def test_without_ours_the_best_is_shown_alone():
    findings = results(joined.matrix, [row for row in ROWS if row["policy"] != OURS])
    assert ("capacity 0.4 · mean JCT, s", "a · bayes") in findings
    assert not any("wserpt" in text for names in findings for text in names)


def test_the_table_has_a_field_a_workload_and_objective():
    finished = InMemorySweep(ROWS, {}, None)  # type: ignore[arg-type]
    text = tables.to_markdown(list(joined.matrix(finished)))
    counts, _, text = text.partition("## Capacity 0.4")
    assert "| p99 of JCT, s | 0 | 0 | 1 |" in counts
    lines = text.splitlines()
    assert lines[2] == "|  | mean JCT, s | p99 of JCT, s | value, % |"
    row = next(line for line in lines if line.startswith("| a |"))
    assert row.split("|")[2].strip().startswith("bayes 50.0 ±0.3")
    assert "<br>wserpt ▲ 45.0 ±" in row


def test_the_rule_is_held_row_by_row():
    rows = [
        *ROWS[: 4 * len(SEEDS)],
        *cells("d", 0.6, fifo={"jct_mean_s": 9.0, "jct_p99_s": 9.0, "deadlines_missed": 0.5},
               jockey_arbiter={"jct_mean_s": 4.0, "jct_p99_s": 9.0, "deadlines_missed": 0.1},
               wserpt={"jct_mean_s": 5.0, "jct_p99_s": 9.0, "deadlines_missed": 0.11}),
    ]  # fmt: skip
    findings = results(joined.judged, rows)
    assert findings["a, 0.4", "mean JCT over bayes's"].is_met
    assert findings["a, 0.4", "mean JCT over bayes's, upper end"].at_most == 1.05
    assert not findings["a, 0.4", "p99 over bayes's"].is_met
    assert not findings["a, 0.4", "value, % less bayes's"].is_met
    assert findings["d, 0.6", "deadlines missed, % less jockey_arbiter's"].is_met
    assert not findings["d, 0.6", "mean JCT over jockey_arbiter's"].is_met
    assert all(finding.expected for finding in findings.values())


def test_the_way_to_the_truth_is_measured_on_slearns_workloads():
    policies = {"slearn": 60.0, "bayes": 50.0, "srpt": 20.0, "fifo": 99.0, OURS: 38.0}
    rows = cells("slearn_2sigma", 0.6, **{n: {"jct_mean_s": x} for n, x in policies.items()})
    title = "way from the best learner to the truth, of the mean JCT"
    way = results(joined.judged, rows)[title, "slearn_2sigma, 0.6"]
    assert way.ours == pytest.approx(12 / 30)
    assert way.low <= way.ours <= way.high
    assert not way.is_met


@pytest.mark.parametrize(("capacity", "limit"), [(0.4, math.inf), (0.8, 0.0)])
def test_everything_must_be_won_against_each_policy_at_once(capacity, limit):
    other = {"jct_mean_s": 9.0, "value_attained": 0.5, "deadlines_missed": 0.5}
    ours = {"jct_mean_s": 8.0, "value_attained": 0.6, "deadlines_missed": 0.5}
    rows = cells("everything", capacity, fifo=other, las=other, wserpt=ours)
    findings = results(joined.judged, rows)
    title = f"everything, {capacity:g}"
    assert findings[title, "mean JCT, s: policies not beaten"].ours == 0
    equal = findings[title, "deadlines missed, %: policies not beaten (fifo, las)"]
    assert (equal.ours, equal.at_most) == (2, limit)


def test_parts_are_compared_with_the_whole():
    rows = cells("a", 0.6, wserpt={"jct_mean_s": 10.0}, fifo={"jct_mean_s": 99.0},
                 wserpt_without__history={"jct_mean_s": 12.0},
                 wserpt_without__worth={"jct_mean_s": 10.0})  # fmt: skip
    findings = results(joined.removal, rows)
    title = "mean JCT, s without a part, over that of the whole"
    assert findings[f"{title} · history", "a, 0.6 · ▼"].ours == pytest.approx(1.2)
    assert findings[f"{title} · worth", "a, 0.6"].ours == pytest.approx(1.0)
    assert len(findings) == 2
    assert WITHOUT == "wserpt_without/"
