"""The studies of the policy that joins the five systems, and their pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from policies.wserpt.study import joined, joined_pages, parts_page
from policies.wserpt.study.objectives import BY_METRIC, MEAN, OBJECTIVES, OURS, WITHOUT, marks
from sim.base.errors import InputError
from sweep.grid.options import Options
from sweep.questions.papers import losses
from sweep.questions.papers.losses import Losses
from sweep.report.findings import Finding
from sweep.stats import Paired
from tests.sweep.questions.papers.study_runs import InMemorySweep

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


def listed(study: Any, rows: list[dict[str, Any]]) -> list[Finding]:
    return list(study(InMemorySweep(rows, {}, None)))  # type: ignore[arg-type]


def results(study: Any, rows: list[dict[str, Any]]) -> dict[tuple[str, str], Finding]:
    return {(f.figure, f.quantity): f for f in listed(study, rows)}


ROWS = [
    *cells(
        "a", 0.4,
        fifo={"jct_mean_s": 100.0, "jct_p99_s": 900.0, "value_attained": 0.5},
        bayes={"jct_mean_s": 50.0, "jct_p99_s": 400.0, "value_attained": 0.6},
        srpt={"jct_mean_s": 20.0, "jct_p99_s": 300.0, "value_attained": 0.9},
        wserpt={"jct_mean_s": 45.0, "jct_p99_s": 500.0, "value_attained": 0.58},
    ),
    *cells("b", 0.4, fifo={"jct_mean_s": 10.0}, bayes={"jct_mean_s": 10.0}),
    *cells("c", 0.6, fifo={"jct_mean_s": 10.0, "jct_mean_lb_s": 4.0},
           wserpt={"jct_mean_s": 10.2, "jct_mean_lb_s": 4.0}),
]  # fmt: skip
WHY = {"a": {"p99 of JCT": {"why": "Large jobs wait.", "experiment": "wserpt/guard"}}}


def test_fields_have_the_best_that_can_be_run_and_ours_beside_it():
    findings = results(joined.matrix, ROWS)
    jct = "capacity 0.4 · mean JCT, s"
    assert findings[jct, "a · bayes"].ours == pytest.approx(50.0)  # srpt knows the truth
    assert findings[jct, "a · wserpt"].ours == pytest.approx(45.0)
    assert findings[jct, "a · ratio · ▲"].ours == pytest.approx(0.9)
    assert findings["capacity 0.4 · p99 of JCT, s", "a · ratio · ▼"].ours == pytest.approx(1.25)
    assert findings["capacity 0.4 · value, %", "a · difference · ▼"].ours == pytest.approx(-2.0)
    assert findings["capacity 0.6 · mean JCT, s", "c · ratio · ="].ours == pytest.approx(1.02)
    assert findings["capacity 0.6 · mean JCT, s", "c · bound"].ours == pytest.approx(4.0)
    assert not any(quantity.startswith("b ·") for _, quantity in findings)  # nothing differs there


def test_what_does_not_hold_after_the_correction_is_marked_as_such():
    pairs = [
        Paired(1.2, 1.06, 1.4, 0.03, 6, "student"),
        Paired(1.2, 1.06, 1.4, 0.01, 6, "student"),
        Paired(0.9, 0.5, 1.6, 0.9, 6, "student"),
        Paired(1.02, 1.01, 1.03, 1e-9, 6, "student"),
        Paired(1.3, math.nan, math.nan, math.nan, 1, "few"),
    ]
    jct = BY_METRIC[MEAN]
    assert marks(pairs, [jct] * 5) == ["▽", "▼", "", "=", ""]
    assert marks(pairs, [jct] * 5, tolerant=False) == ["▽", "▼", "", "▼", ""]


def test_without_ours_the_best_is_shown_alone():
    findings = listed(joined.matrix, [row for row in ROWS if row["policy"] != OURS])
    page = joined_pages.matrix(findings, Losses()).replace("\xa0", " ")
    assert page.startswith("## Capacity 0.4\n")
    assert "| a | bayes 50.0 ±0.4" in page
    assert "wserpt" not in page


def test_the_page_of_the_matrix_begins_with_the_outcome_and_the_capacity_of_interest():
    page = joined_pages.matrix(listed(joined.matrix, ROWS), Losses(WHY)).replace("\xa0", " ")
    begin, at06, lost, at04 = page.split("## ")
    assert begin.startswith(
        "**Of 4 fields (a workload, a capacity, an objective), `wserpt` is better than the best "
        "other policy that can be run in 1 (▲ 1, △ 0), level in 1, not told apart in 0 and worse "
        "in 2 (▼ 2, ▽ 0).** Of its 2 losses by workload and objective, 1 are not explained."
    )
    assert "| mean JCT | 1 | 1 | 0 | 0 |" in begin
    assert at06.splitlines()[0] == "Capacity 0.6"
    field = "**1.02** = (1.02 to 1.02)<br>fifo 10.0 ±0.1<br>wserpt 10.2 ±0.1<br>bound 4.00 ±0.03"
    assert f"| c | {field} |" in at06
    assert lost.splitlines()[0] == "Where wserpt loses, and why"
    rows = [line for line in lost.splitlines() if line.startswith("| a")]
    assert rows == [
        "| a | p99 of JCT | **1.25** ▼ (1.25 to 1.25) beside bayes at 0.4 | Large jobs wait. "
        "([wserpt/guard](wserpt-guard.md)) |",
        "| a | value | **−2.0** ▼ (−2.0 to −2.0) beside bayes at 0.4 | *not explained* |",
    ]
    assert at04.splitlines()[2] == "| workload | mean JCT, s | p99 of JCT, s | value, % |"


RULED = [
    *ROWS[: 4 * len(SEEDS)],
    *cells("d", 0.6, fifo={"jct_mean_s": 9.0, "jct_p99_s": 9.0, "deadlines_missed": 0.5},
           jockey_arbiter={"jct_mean_s": 4.0, "jct_p99_s": 9.0, "deadlines_missed": 0.1},
           wserpt={"jct_mean_s": 5.0, "jct_p99_s": 9.0, "deadlines_missed": 0.11}),
]  # fmt: skip


def test_the_rule_is_held_row_by_row():
    findings = results(joined.judged, RULED)
    assert findings["a, 0.4", "mean JCT over the best's · bayes"].is_met
    assert findings["a, 0.4", "mean JCT over the best's, upper end · bayes"].at_most == 1.05
    assert not findings["a, 0.4", f"{joined.TO_TAIL} · bayes"].is_met
    assert not findings["a, 0.4", "value less the best's, points · bayes"].is_met
    assert findings["d, 0.6", f"{joined.TO_MISSED} · jockey_arbiter"].is_met
    assert not findings["d, 0.6", "mean JCT over jockey_arbiter's · jockey_arbiter"].is_met
    assert all(finding.expected for finding in findings.values())


def test_the_page_of_the_judgement_counts_and_names_what_is_missed():
    page = joined_pages.judged(listed(joined.judged, RULED), Losses(WHY)).replace("\xa0", " ")
    begin, missed, *rules = page.split("## ")
    assert begin.startswith("**4 of 9 thresholds of the rule are met.**")
    assert "| mean JCT over the best's | ≤ 1.02 | 1 of 2 |" in begin
    why = "Large jobs wait. ([wserpt/guard](wserpt-guard.md))"
    row = f"| a | {joined.TO_TAIL} | at 0.4: 1.250 (1.250 to 1.250), bayes | {why} |"
    assert row in missed
    assert "| *not explained* |" in missed
    assert rules[0].startswith("Mean JCT over the best's, ≤ 1.02")
    assert "| a | 0.900 (0.900 to 0.900)<br>bayes |  |" in rules[0]
    assert "".join(rules).count("**not met:**") == 5


def test_the_way_to_the_truth_is_measured_on_slearns_workloads():
    policies = {"slearn": 60.0, "bayes": 50.0, "srpt": 20.0, "fifo": 99.0, OURS: 38.0}
    rows = cells("slearn_2sigma", 0.6, **{
        n: {"jct_mean_s": x, "jct_mean_lb_s": 12.0} for n, x in policies.items()
    })  # fmt: skip
    findings = results(joined.judged, rows)
    way = findings["slearn_2sigma, 0.6", f"{joined.WAY} · bayes"]
    assert way.ours == pytest.approx(12 / 30)
    assert way.low <= way.ours <= way.high
    assert not way.is_met
    page = joined_pages.judged(list(findings.values()), Losses()).replace("\xa0", " ")
    row = next(line for line in page.splitlines() if "bayes 50.0" in line)
    assert "| 38.0 ±0.3 | 20.0 ±0.1 | 12.0 ±0.1 | 0.40 (" in row


@pytest.mark.parametrize(("capacity", "limit"), [(0.4, math.inf), (0.8, 0.0)])
def test_everything_must_be_won_against_each_policy_at_once(capacity, limit):
    other = {"jct_mean_s": 9.0, "value_attained": 0.5, "deadlines_missed": 0.5}
    ours = {"jct_mean_s": 8.0, "value_attained": 0.6, "deadlines_missed": 0.5}
    rows = cells("everything", capacity, fifo=other, las=other, wserpt=ours)
    findings = results(joined.judged, rows)
    title = f"everything, {capacity:g}"
    assert findings[title, "policies not beaten in mean JCT"].ours == 0
    equal = findings[title, "policies not beaten in deadlines missed · fifo, las"]
    assert (equal.ours, equal.at_most) == (2, limit)
    assert "## Policies not beaten in" in joined_pages.judged(list(findings.values()), Losses())


PARTS = cells(
    "a", 0.6, wserpt={"jct_mean_s": 10.0, "value_attained": 0.8}, fifo={"jct_mean_s": 99.0},
    wserpt_without__history={"jct_mean_s": 12.0, "value_attained": 0.75},
    wserpt_without__path={"jct_mean_s": 9.5, "value_attained": 0.8},
    wserpt_without__ageing={"jct_mean_s": 10.0, "value_attained": 0.8},
)  # fmt: skip


def test_what_a_part_brings_is_what_is_worse_without_it():
    findings = results(joined.removal, PARTS)
    assert findings["mean JCT, % · history", "a, 0.6 · ▲"].ours == pytest.approx(20.0)
    assert findings["mean JCT, % · path", "a, 0.6 · ▼"].ours == pytest.approx(-5.0)
    assert findings["mean JCT, % · ageing", "a, 0.6 · ="].ours == 0.0
    value = findings["value, points · history", "a, 0.6 · ▲"]
    assert value.ours == pytest.approx(5.0)
    assert 0.0 < value.low < 5.0 < value.high
    assert len(findings) == 6
    assert WITHOUT == "wserpt_without/"


def test_the_page_of_the_parts_says_where_each_pays():
    page = parts_page.removal(listed(joined.removal, PARTS), Losses()).replace("\xa0", " ")
    assert page.startswith(
        "**Of 3 parts these pay on some workload: history; these cost on some: path; "
        "these make no difference that can be told: ageing.**"
    )
    assert "| past runs of a program | SLearn | a +20 % | a +5.0 |" in page
    assert "| a | **+20.0** ▲<br>(+20.0 to +20.0) | **−5.0** ▼<br>(−5.0 to −5.0) |  |" in page


def test_the_guard_is_compared_with_none():
    rows = [
        {**row, "policy.ageing": ageing, "jct_p99_s": row["jct_mean_s"] * tail}
        for trace, tails in (("a", (4.0, 3.8, 3.0)), ("b", (4.0, 4.0, 3.9)))
        for ageing, mean, tail in zip((0.0, 0.1, 1.0), (10.0, 10.1, 11.0), tails, strict=True)
        for row in cells(trace, 0.6, wserpt={"jct_mean_s": mean})
    ]
    findings = listed(joined.guard, rows)
    values = {(f.figure, f.quantity): f.ours for f in findings if f.quantity}
    assert values["mean JCT · 0.1", "a"] == pytest.approx(1.0)
    assert values["p99 of JCT · 1.0", "a"] == pytest.approx(100 * (1.1 * 3.0 / 4.0 - 1))
    assert values["mean JCT · 1.0", joined.ALL] == pytest.approx(10.0)
    curve = [(f.x, f.ours) for f in findings if f.curve == "a"]
    assert curve[0] == (0.0, 0.0)
    assert len(curve) == 3
    page = parts_page.guard([f for f in findings if f.quantity], Losses()).replace("\xa0", " ")
    assert page.startswith("**Over 2 workloads the p99 of JCT is least with `ageing` 1.0: −5.9 % (")
    assert "| a | mean +1.0 (+1.0 to +1.0)<br>p99 −4.1 (" in page


def test_of_many_workloads_the_largest_gains_are_named():
    rows = [
        row
        for k, name in enumerate("abcdef")
        for row in cells(name, 0.6, wserpt={"jct_mean_s": 10.0},
                         wserpt_without__path={"jct_mean_s": 11.0 + k if k < 5 else 9.0})
    ]  # fmt: skip
    text = parts_page.front(listed(joined.removal, rows)).replace("\xa0", " ")
    assert "| DAGPS | e +50 %, d +40 %, c +30 %, 2 more at least +10 %, f −10 % |" in text


def test_the_docs_have_the_table_of_the_page():
    root = Path(__file__).parents[4]
    page = (root / "results/reproductions/wserpt-parts.md").read_text(encoding="utf-8")
    text = (root / "docs/what_did_we_find.md").read_text(encoding="utf-8")
    lines = [*text.splitlines(), ""]
    begin = next(i for i, line in enumerate(lines) if line.startswith("| idea | from |"))
    table = "\n".join(lines[begin : lines.index("", begin)])
    assert f"\n\n{table}\n\n" in page


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"a": "b"}, "losses.a: give a reason for each objective"),
        ({"a": {"p99 of JCT": "so"}}, "losses.a.p99 of JCT: give why and experiment"),
        ({"a": {"p99 of JCT": {"why": "so", "by": "x"}}}, "by"),
        (3, "by workload and objective"),
    ],
)
def test_reasons_of_losses_are_checked(config, message):
    with pytest.raises(InputError, match=message):
        losses.check(config)


def test_losses_may_be_those_of_another_experiment():
    studies = {"grand": {"losses": WHY}, "judged": {"losses": "grand"}, "none": {}}
    assert Losses.read("judged", studies).why("some/a", "p99 of JCT")["why"] == "Large jobs wait."
    assert Losses.read("none", studies).text("a", "p99 of JCT") == "*not explained*"
    assert Losses({"a": {"x": {"why": "So."}}}).text("a", "x") == "So. (not tested)"


def test_reasons_of_the_bundled_experiments_name_what_there_is():
    options = Options.from_folders([])
    contents = {name: options.plain("experiment", name) for name in options.names("experiment")}
    objectives = {*(objective.name for objective in OBJECTIVES), *joined.RULES}
    for name, content in contents.items():
        reasons = (content.get("study") or {}).get("losses") or {}
        if isinstance(reasons, str):
            assert contents[reasons]["study"]["losses"], f"{name}: {reasons} has no losses"
            continue
        for workload, by_objective in reasons.items():
            assert workload in content["axes"]["trace"], f"{name}: no trace {workload}"
            for objective, reason in by_objective.items():
                assert objective in objectives, f"{name}: no objective {objective}"
                assert reason.get("experiment", name) in contents


def test_a_tuned_policy_has_its_plain_name_and_its_defaults_are_named_as_such():
    rows = cells(
        "a", 0.4,
        bayes={"jct_mean_s": 50.0}, tuned__bayes={"jct_mean_s": 40.0}, srpt={"jct_mean_s": 20.0},
        tuned__slearn={"jct_mean_s": 44.0}, wserpt={"jct_mean_s": 45.0},
    )  # fmt: skip
    findings = results(joined.judged, rows)
    assert findings["a, 0.4", "mean JCT over the best's · bayes"].ours == pytest.approx(45 / 40)
    rows = [row for row in rows if row["policy"] != "tuned/bayes"]
    findings = results(joined.judged, rows)
    assert findings["a, 0.4", "mean JCT over the best's · slearn"].ours == pytest.approx(45 / 44)
    both = joined._by_name({"bayes": [], "tuned/bayes": [], "tuned/slearn": []})
    assert list(both) == ["bayes by default", "bayes", "slearn"]
