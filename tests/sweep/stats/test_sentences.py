"""Sentences over random cells, against a slow reading of the same cells.

The cells are of the kinds over which sentences went wrong: some missing, ties, equal policies, jobs
that fail, one seed, infinities, one capacity, oracles alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sim.base.errors import InputError
from sweep.questions.search import equal_capacity
from sweep.report import first_screen
from sweep.stats import contrasts, done_jobs
from sweep.stats.cell_columns import table_options
from sweep.stats.metric_format import p_text
from sweep.stats.pairwise import pairwise
from sweep.stats.summary import summarise
from sweep.stats.verdict import Verdict, verdicts
from tests.sweep.stats.reading import Reading, corrected, read

WORLDS = 25
METRICS = ("jct_mean_s", "value_attained", "wait_mean_s")
POLICIES = ("fifo", "srpt", "las", "drf", "sjf")


def draw(rng: np.random.Generator) -> tuple[pa.Table, dict[str, Any]]:
    """Draw the cells of a sweep and its configuration."""
    policies = list(rng.permutation(POLICIES)[: rng.integers(1, 6)])
    capacities = sorted(rng.choice([0.5, 0.8, 1.0, 1.34, 1.67], rng.integers(1, 4), replace=False))
    n_seeds = int(rng.choice([1, 2, 3, 5, 10]))
    metric = str(rng.choice(METRICS))
    factor = {p: float(rng.choice([1.0, 1.0, 1.01, 1.1, 2.0])) for p in policies}
    p_missing = rng.choice([0.0, 0.0, 0.1, 0.4, 0.8])
    noise = float(rng.choice([0.0, 0.01, 0.5]))
    oracles = set(policies) if rng.random() < 0.1 else {p for p in policies if rng.random() < 0.2}
    rows = []
    for capacity in capacities:
        for seed in range(n_seeds):
            size = float(rng.lognormal(0.0, 1.0))
            for policy in policies:
                value = 100 * size * factor[policy] / capacity * math.exp(noise * rng.normal())
                if metric == "value_attained":
                    value = min(1.0, value / 500)
                if rng.random() < 0.03:
                    value = math.inf if metric != "value_attained" else 0.0
                if metric == "wait_mean_s" and rng.random() < 0.1:
                    value = 0.0
                is_missing = bool(rng.random() < p_missing)
                rows.append(
                    {
                        "policy": str(policy), "trace": "t", "capacity": float(capacity),
                        "seed": seed, "status": "failed" if is_missing else "done",
                        metric: math.nan if is_missing else value,
                        "is_oracle": policy in oracles, "knows": "nothing",
                        "key": f"{policy}-{capacity}-{seed}",
                    }
                )  # fmt: skip
    baseline = str(rng.choice(policies)) if rng.random() < 0.8 else None
    config = {"swept": [], "baseline": baseline, "metrics": [], "verdict": {"metric": metric}}
    return pa.Table.from_pylist(rows), config


def worlds(number: int) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    rng = np.random.default_rng([54, number])
    for _ in range(WORLDS):
        yield draw(rng)


def by_place(cells: pa.Table, config: dict[str, Any]) -> Iterator[tuple[Verdict, Reading]]:
    metric = config["verdict"]["metric"]
    for verdict in verdicts(cells, config):
        yield verdict, read(cells.to_pylist(), metric, verdict.capacity, config["baseline"])


@pytest.mark.parametrize("number", range(20))
def test_verdicts_say_what_the_cells_bear(number: int) -> None:
    for cells, config in worlds(number):
        for verdict, reading in by_place(cells, config):
            check_numbers(verdict, reading)
            check_best(verdict, reading)
            check_words(verdict, reading)


def check_numbers(verdict: Verdict, reading: Reading) -> None:
    assert verdict.n_seeds == len(reading.seeds)
    first = reading.values(verdict.best[0])
    mean = float(np.mean(first))
    assert verdict.value == (pytest.approx(mean) if math.isfinite(mean) else None)
    assert {s.policy for s in verdict.standings if not s.is_oracle or reading.all_oracles} == set(
        reading.ranked
    )
    assert set(verdict.scope.unranked) == set(reading.unranked)


def check_best(verdict: Verdict, reading: Reading) -> None:
    """No policy beats the first, and each that is left out is worse by a test, or exactly."""
    first = verdict.best[0]
    p = dict(zip(reading.ranked, reading.holm(first), strict=True))
    for policy in reading.ranked:
        gain = reading.gain(policy, first)
        if math.isnan(gain):
            continue
        assert gain <= 1e-9, (policy, first, gain)
        if policy not in verdict.best:
            assert gain < 0
        elif policy != first and reading.n_seeds >= 3:
            assert not p[policy] <= 0.05 or gain == pytest.approx(0, abs=1e-9)


RATIO = re.compile(r"([\d,.]+) times (shorter|longer|lower|higher) than (\w+)'s")
PERCENT = re.compile(r"([\d.]+) % (shorter|longer|lower|higher) than (\w+)'s")
POINTS = re.compile(r"([\d.]+) percentage points (lower|higher) than (\w+)'s")


def check_words(verdict: Verdict, reading: Reading) -> None:
    claim, first = verdict.words.claim, verdict.best[0]
    sentence = f"{claim}{verdict.words.behind}"
    assert verdict.sentence.partition(": ")[2].startswith(claim)
    if re.search(r"all .*policies.* have the same", sentence):
        assert reading.all_equal()
        return
    is_lower = reading.is_lower_better
    if match := re.search(r"has the (lowest|highest)|(?:is|have) the (lowest|highest)", claim):
        assert ("lowest" in match[0]) == is_lower
        means = {policy: float(np.mean(reading.values(policy))) for policy in reading.ranked}
        best = min(means.values()) if is_lower else max(means.values())
        if "geometric" in claim:
            assert means[first] != best
        elif all(map(math.isfinite, means.values())):
            assert means[first] == pytest.approx(best, rel=1e-11)
    if re.search("not told|none told", claim):
        assert len(verdict.best) > 1
        assert all(policy in claim or len(verdict.best) > 3 for policy in verdict.best) or (
            {*verdict.best} == {*reading.ranked}
        )
    for pattern, amount in ((RATIO, "ratio"), (PERCENT, "percent"), (POINTS, "points")):
        if match := pattern.search(claim):
            check_lead(match, amount, reading, first)
            check_correction(claim, reading, first)
    if reading.n_seeds < reading.n_planned:
        assert f"on {reading.n_seeds} of {reading.n_planned} seeds" in verdict.sentence
    for policy in reading.unranked:
        if len(reading.unranked) <= 3:
            assert policy in verdict.sentence.partition("not ranked: ")[2]


def check_correction(claim: str, reading: Reading, first: str) -> None:
    """Check that Holm's correction is named where the interval alone would tell the two apart."""
    if reading.baseline not in reading.ranked or reading.n_seeds < 3:
        assert "Holm" not in claim
        return
    raw = reading.p(reading.baseline, first)
    adjusted = reading.holm(first)
    p = adjusted[reading.ranked.index(reading.baseline)]
    n_tests = sum(not math.isnan(value) for value in adjusted)
    assert ("Holm" in claim) == (raw <= 0.05 < p)
    if "Holm" in claim:
        assert f"after Holm's correction over {n_tests} comparisons" in claim
        assert float(claim.partition("(p = ")[2].split()[0]) == pytest.approx(p, abs=0.0051)


def check_lead(match: re.Match[str], amount: str, reading: Reading, first: str) -> None:
    number, direction, baseline = float(match[1].replace(",", "")), match[2], match[3]
    assert baseline == reading.baseline
    is_down = direction in ("shorter", "lower")
    if baseline in reading.ranked:
        assert is_down == reading.is_lower_better, "the best can't be worse than the baseline"
    else:  # an oracle
        assert "of the policies that can be run" in match.string
    ours, theirs = reading.statistic(first), reading.statistic(baseline)
    if amount == "points":
        expected, step = 100 * abs(ours - theirs), 0.051
    else:
        expected = max(ours, theirs) / min(ours, theirs)
        step = 0.0051 * max(1.0, expected)
        if amount == "percent":
            expected = 100 * (1 - 1 / expected if is_down else expected - 1)
            step = 0.051
    assert number == pytest.approx(expected, abs=step)


@pytest.mark.parametrize("number", range(20, 30))
def test_the_first_screen_repeats_its_verdicts(number: int) -> None:
    """An answer names the best of a verdict, with its lead, and says over what it is."""
    for cells, config in worlds(number):
        judged = verdicts(cells, config)
        summary = summarise(cells, **table_options(config))
        parts = first_screen.build(first_screen.Sweep(summary, judged, config, {"inputs": []}))
        text = " ".join(parts["Answer"])
        if len(judged) == 1:
            assert f"{judged[0].words.claim}{judged[0].words.behind}" in text
        for scope in [v.words.scope for v in judged if v.words.scope][:1]:
            assert scope in text or f"{scope[:1].upper()}{scope[1:]}" in text
        if len(judged) > 1:
            check_aggregate(parts["Answer"][0], judged)
        check_more_capacity(parts.get("What it costs", []), judged)


def check_aggregate(sentence: str, judged: list[Verdict]) -> None:
    decided = [verdict for verdict in judged if verdict.is_decided]
    if match := re.match(r"(\w+) has the (?:lowest|highest|best) ", sentence):
        won = [verdict for verdict in decided if match[1] in verdict.best]
        if counts := re.search(r"in (\d+) of (\d+) comparisons", sentence):
            assert (int(counts[1]), int(counts[2])) == (len(won), len(judged))
        else:
            assert len(won) == len(judged)
        for verdict in won:
            assert verdict.best == (match[1],) or "or none that differs" in sentence
    elif "have the same" in sentence:
        assert all(standing.is_tied for v in judged for standing in v.runnable)
    elif sentence.startswith("No significant difference") or "is told from the best" in sentence:
        assert not decided
    elif match := re.match(r"(\w+) has a ", sentence):
        assert {s.policy for v in judged for s in v.runnable} == {match[1]}
    elif sentence != "No cell has a result that could be judged.":
        raise AssertionError(sentence)


def check_more_capacity(lines: list[str], judged: list[Verdict]) -> None:
    for line in lines:
        if not line.startswith("More capacity"):
            continue
        name = line.partition(": ")[2].partition("'s ")[0]
        first, last = (v.standing(name) for v in (judged[0], judged[-1]))
        assert first is not None
        assert last is not None
        assert first.by_seed.keys() & last.by_seed.keys()


@pytest.mark.parametrize("number", range(50, 60))
def test_a_pair_is_compared_on_the_seeds_that_both_have(number: int) -> None:
    n_checked = 0
    for cells, config in worlds(number):
        policies = sorted({*cells["policy"].to_pylist()})
        pair = (policies[0], policies[-1])
        readings = [r for r in pair_readings(cells.to_pylist(), config, *pair) if r.seeds]
        if not readings:
            with pytest.raises(InputError, match="no seed in common"):
                pairwise(cells, config, *pair)
            continue
        sentences = pairwise(cells, config, *pair)
        p = corrected([reading.p(*pair) for reading in readings])
        for sentence, reading, p_holm in zip(sentences, readings, p, strict=True):
            check_pair(sentence, reading, *pair, p_holm)
            n_checked += 1
    assert n_checked > WORLDS


def pair_readings(
    rows: list[dict[str, Any]], config: dict[str, Any], policy: str, other: str
) -> Iterator[Reading]:
    metric = config["verdict"]["metric"]
    for capacity in sorted({row["capacity"] for row in rows}):
        values = {
            name: {
                row["seed"]: row[metric]
                for row in rows
                if (row["policy"], row["capacity"]) == (name, capacity) and row["status"] == "done"
            }
            for name in (policy, other)
        }
        seeds = sorted(values[policy].keys() & values[other].keys())
        yield Reading(values, [policy, other], [], seeds, 0, other, metric, all_oracles=False)


def check_pair(sentence: str, reading: Reading, policy: str, other: str, p: float) -> None:
    ours, theirs = reading.statistic(policy), reading.statistic(other)
    assert re.search(rf"\b{reading.n_seeds} (?:of \d+ )?seed", sentence)
    if reading.all_equal() or policy == other:
        assert "have the same" in sentence or "∞" in sentence
        return
    if not all(map(math.isfinite, reading.values(policy) + reading.values(other))):
        assert "'s is " in sentence
        return
    assert ("not told apart" in sentence) == (p > 0.05)
    if "too few" in sentence:
        assert reading.n_seeds < 3
    if reading.n_seeds >= 3 and not math.isnan(p):
        assert p_text(p) in sentence
    for pattern in (RATIO, PERCENT, POINTS):
        if match := pattern.search(sentence):
            assert (match[2] in ("shorter", "lower")) == (ours < theirs)
            assert match[3] == other
    if match := RATIO.search(sentence):
        expected = max(ours, theirs) / min(ours, theirs)
        assert float(match[1].replace(",", "")) == pytest.approx(expected, rel=0.006)


@pytest.mark.parametrize("number", range(30, 40))
def test_equal_capacity_says_what_the_cells_bear(number: int) -> None:
    for cells, config in worlds(number):
        metric = config["verdict"]["metric"]
        config = config | {"metrics": [metric]}
        matches = equal_capacity.table(cells, config)
        if matches is None:
            continue
        rows = cells.to_pylist()
        for row in matches.to_pylist():
            check_match(row, rows, metric, config["baseline"])


def check_match(
    row: dict[str, Any], rows: list[dict[str, Any]], metric: str, baseline: str
) -> None:
    sentence = equal_capacity._sentence(row, baseline)
    sign = 1.0 if metric == "value_attained" else -1.0

    def by_seed(policy: str, capacity: float) -> dict[int, float]:
        return {
            r["seed"]: r[metric]
            for r in rows
            if (r["policy"], r["capacity"]) == (policy, capacity) and not math.isnan(r[metric])
        }

    capacities = sorted({r["capacity"] for r in rows})
    ours = [by_seed(row["policy"], c) for c in capacities]
    ours = [values for values in ours if values]
    base = by_seed(baseline, row["at"])
    seeds = sorted(set(base).intersection(*ours))
    assert row["seeds"] == len(seeds)
    if math.isnan(row["capacity"]):
        values = [mapping[seed] for mapping in (*ours, base) for seed in seeds]
        is_infinite = not all(map(math.isfinite, values))
        assert 2 * len(seeds) < len({r["seed"] for r in rows}) or is_infinite
        assert "is not compared" in sentence
        return
    means = [sign * float(np.mean([values[seed] for seed in seeds])) for values in ours]
    target = sign * float(np.mean([base[seed] for seed in seeds]))
    if "does not match" in sentence:
        assert means[-1] < target
    elif "is better than" in sentence:
        assert means[0] > target or max(means) > target
        assert not all(mean == pytest.approx(target, rel=1e-12) for mean in means)
    else:
        assert row["least"] <= row["capacity"] * (1 + 1e-12)
        assert row["capacity"] <= row["most"] * (1 + 1e-12)
    assert ("on the" in sentence) == (len(seeds) < row["seeds_planned"])


@pytest.mark.parametrize("number", range(40, 50))
def test_comparisons_are_of_the_pairs_that_both_have(number: int) -> None:
    for cells, config in worlds(number):
        if config["baseline"] is None:
            continue
        compared = contrasts.compare(
            cells, swept=[], baseline=config["baseline"], chosen=[config["verdict"]["metric"]]
        )
        for row in [] if compared is None else compared.to_pylist():
            a, b = (
                {
                    r["seed"]: r[row["metric"]]
                    for r in cells.to_pylist()
                    if (r["policy"], r["capacity"]) == (policy, row["capacity"])
                    and not math.isnan(r[row["metric"]])
                }
                for policy in (row["policy"], config["baseline"])
            )
            seeds = sorted(a.keys() & b.keys())
            x, y = np.array([[values[s] for s in seeds] for values in (a, b)])
            if row["statistic"] == "difference":
                with np.errstate(invalid="ignore"):
                    expected = float(np.nanmean(x - y))
            else:
                is_zero = (x == 0) & (y == 0)
                ratios = np.where(is_zero, 1.0, y) / np.where(is_zero, 1.0, x)
                expected = float(stats.gmean(ratios))
                expected = expected if row["metric"] != "value_attained" else 1 / expected
            assert row["estimate"] == pytest.approx(expected)
            assert row["same_jobs"]


def jobs(durations: list[float], failed: list[bool]) -> pa.Table:
    n = len(durations)
    finish = [math.nan if bad else d for d, bad in zip(durations, failed, strict=True)]
    return pa.table(
        {"submit_s": [0.0] * n, "start_s": [0.0] * n, "finish_s": finish, "failed": failed}
    )


@pytest.mark.parametrize("number", range(20))
def test_survivors_do_not_win(number: int) -> None:
    """Each mean is over the jobs done under every policy that finishes half of them."""
    rng = np.random.default_rng([545, number])
    policies, n_seeds, n_jobs = ["fifo", "srpt", "las"], int(rng.integers(1, 6)), 20
    tables, rows = {}, []
    for seed in range(n_seeds):
        for policy in policies:
            failed = rng.random(n_jobs) < rng.choice([0.0, 0.2, 0.7])
            durations = rng.lognormal(3, 1, n_jobs)
            key = f"{policy}{seed}"
            tables[key] = jobs(durations.tolist(), failed.tolist())
            done = durations[~failed]
            rows.append(
                {
                    "policy": policy, "trace": "t", "capacity": 1.0, "seed": seed, "key": key,
                    "status": "done", "jct_mean_s": float(done.mean()),
                    "jct_p90_s": float(np.percentile(done, 90)),
                    "jobs_failed": float(failed.mean()),
                }
            )  # fmt: skip
    cells = pa.Table.from_pylist(rows)
    table = done_jobs.table(cells, [], "fifo", tables.get)
    compared = done_jobs.compared(cells, table).to_pylist()
    any_failed = any(row["jobs_failed"] for row in rows)
    assert (table is not None) == any_failed
    for seed in range(n_seeds):
        finish = {p: tables[f"{p}{seed}"]["finish_s"].to_numpy() for p in policies}
        narrowing = [p for p in policies if np.isfinite(finish[p]).mean() > 0.5]
        common = [
            job for job in range(n_jobs) if all(math.isfinite(finish[p][job]) for p in narrowing)
        ]
        if all(np.isfinite(values).all() for values in finish.values()):
            continue
        for row in compared:
            if row["seed"] != seed:
                continue
            values = finish[row["policy"]][common] if narrowing else np.empty(0)
            expected = float(np.mean(values)) if len(values) else math.nan
            assert row["jct_mean_s"] == pytest.approx(expected, nan_ok=True)
            if math.isfinite(expected):
                assert row["jct_p90_s"] == pytest.approx(float(np.percentile(values, 90)))
    config = {"swept": [], "baseline": "fifo", "metrics": [], "verdict": {"metric": "jct_mean_s"}}
    for verdict, reading in by_place(done_jobs.compared(cells, table), config):
        check_numbers(verdict, reading)
        check_best(verdict, reading)
        check_words(verdict, reading)
        ranked = [row for row in rows if row["policy"] in reading.ranked]
        failing = {row["policy"] for row in ranked if row["jobs_failed"] and
                   row["seed"] in reading.seeds}  # fmt: skip
        assert dict(verdict.scope.failing).keys() == failing
        assert ("jobs done under every policy" in verdict.sentence) == bool(failing)
