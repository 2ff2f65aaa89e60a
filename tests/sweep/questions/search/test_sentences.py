"""Sentences of targets, what-ifs, searches and backtests over random records of them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from sweep.questions.backtest import sentences as backtest_sentences
from sweep.questions.backtest.nearest import Ranking
from sweep.questions.search import restore_section, settings_section, target_section
from sweep.stats.inference import ALPHA, Paired

N = 200
GOAL = {"metric": "jct_p99_s", "bound": 600.0, "at_most": True}


def need(rng: np.random.Generator, policy: str) -> dict[str, Any]:
    status = str(rng.choice(["met", "met", "met", "never", "always"]))
    machines = None if status == "never" else float(rng.integers(1, 30))
    return {
        "policy": policy, "trace": "t", "settings": "", "status": status, "machines": machines,
        "machines_most": 60.0, "machines_low": None, "machines_high": machines, "unit": "slots",
        "value": float(rng.uniform(1, 600)), "is_sure": True, "seeds": 5, "is_oracle": False,
        "note": "",
    }  # fmt: skip


@pytest.mark.parametrize("number", range(N))
def test_a_need_is_the_ratio_of_the_numbers_beside_it(number: int) -> None:
    rng = np.random.default_rng([54, number])
    rows = [need(rng, policy) for policy in ("fifo", "srpt", "las")[: rng.integers(1, 4)]]
    baseline = str(rng.choice(["fifo", "srpt", "none"]))
    by_policy = {row["policy"]: row for row in rows}
    for sentence in target_section._sentences(rows, baseline, GOAL):
        policy = sentence.partition(" ")[0]
        row = by_policy[policy]
        if "misses the target" in sentence:
            assert row["status"] == "never"
            assert "60 slots" in sentence
        if match := re.search(
            r"needs (\d+) slots, ([\d.]+) times as many as (\w+), which needs (\d+)", sentence
        ):
            ours, ratio, other, theirs = int(match[1]), float(match[2]), match[3], int(match[4])
            assert (ours, theirs) == (row["machines"], by_policy[other]["machines"])
            assert ratio == pytest.approx(ours / theirs, abs=0.0051)
        elif match := re.search(r"needs (\d+) slots, as many as (\w+)", sentence):
            assert int(match[1]) == row["machines"] == by_policy[match[2]]["machines"]
        elif match := re.search(r"needs (at most )?(\d+) slots", sentence):
            assert int(match[2]) == row["machines"]
            assert bool(match[1]) == (row["status"] == "always")


@pytest.mark.parametrize("number", range(N))
def test_a_what_if_quotes_both_values_and_their_seeds(number: int) -> None:
    rng = np.random.default_rng([55, number])
    planned = int(rng.integers(1, 11))
    seeds = int(rng.integers(math.ceil(planned / 2), planned + 1))
    today, row = (
        {
            "metric": "wait_p95_s", "what_if": name, "value": float(rng.uniform(0, 1e5)),
            "half": 0.0, "machines": 10.0, "restored_by": float(rng.integers(1, 40)),
            "restored_low": None, "restored_high": None, "unit": "slots", "status": "met",
            "restored_cost_month": None, "seeds": seeds, "seeds_planned": planned,
            "jobs_failed": float(rng.choice([0.0, 0.25])),
        }
        for name in ("", "load=2")
    )  # fmt: skip
    sentence = restore_section._sentence(row, today)
    match = re.search(
        r"wait ([\d,.]+) s \(today ([\d,.]+) s\); (\d+) slots restore it "
        r"\((?:(\d+) (more|fewer)|as many as today)\)",
        sentence,
    )
    assert match is not None
    values = [float(match[k].replace(",", "")) for k in (1, 2)]
    assert values == pytest.approx([row["value"], today["value"]], rel=1e-3, abs=0.5)
    more = int(match[4] or 0) * {"more": 1, "fewer": -1, None: 0}[match[5]]
    assert int(match[3]) == 10 + more == row["restored_by"]
    assert (f"on the {seeds} of {planned} seeds" in sentence) == (seeds < planned)
    assert ("of the jobs done" in sentence) == bool(row["jobs_failed"] or today["jobs_failed"])


@pytest.mark.parametrize("number", range(N))
def test_a_setting_is_best_only_by_a_test(number: int) -> None:
    rng = np.random.default_rng([56, number])
    metric = str(rng.choice(["jct_mean_s", "value_attained", "deadlines_missed"]))
    none = 1.0 if metric == "jct_mean_s" else 0.0
    gain = float(rng.choice([0.0, 1e-15, 0.02, -0.02, 0.3]))
    estimate, p = none + gain, float(rng.choice([math.nan, 0.001, 0.2]))
    half = 0.0 if math.isnan(p) else abs(gain) / 2 if p < ALPHA else 2 * abs(gain)
    few = bool(rng.random() < 0.2)
    ends = (math.nan, math.nan) if few else (estimate - half, estimate + half)
    tested = {
        "metric": metric, "mean": 1.0, "gain": estimate, "estimate": estimate, "low": ends[0],
        "high": ends[1], "p": p, "p_holm": p, "pairs": 10,
    }  # fmt: skip
    rows = [
        {"role": role, "values": [{"parameter": "m", "value": value}], "metrics": [row], "seeds": 5}
        for role, value, row in (
            ("default", "1", {**tested, "pairs": 0}), ("best", "2", tested),
        )
    ]  # fmt: skip
    (sentence,) = settings_section._sentences(rows, [metric])
    is_up = metric != "deadlines_missed"
    is_exact = half == 0.0 and not few
    is_told = abs(gain) > 1e-12 and not few and (is_exact or p <= ALPHA)
    assert ("is best" in sentence) == (is_told and (gain > 0) == is_up)
    assert ("makes a difference" in sentence) == (abs(gain) <= 1e-12)
    assert ("may be chance" in sentence) == (abs(gain) > 1e-12 and not is_told)
    assert "on 10 seeds" in sentence


@pytest.mark.parametrize("number", range(N))
def test_the_nearest_policy_is_told_only_from_those_that_a_test_tells(number: int) -> None:
    rng = np.random.default_rng([57, number])
    n = int(rng.integers(1, 5))
    labels = ["fifo", "easy", "las", "drf"][:n]
    best = int(rng.integers(n))
    p = [math.nan if k == best else float(rng.choice([math.nan, 0.01, 0.5])) for k in range(n)]
    tests = tuple(Paired(0.0, 0.0, 0.0, value, 5, "t") for value in p)
    ranking = Ranking(best, (0.0,) * n, (0.0,) * n, tests, tuple(p))
    sentence = backtest_sentences.nearest_sentence(labels, ranking)
    assert sentence.startswith(f"nearest: {labels[best]}")
    separate = re.search(r"(?:tests tell it from|told from) ([^;]*)", sentence)
    not_told = re.search(r"no test tells it from ([^;]*)", sentence)
    for k, label in enumerate(labels):
        if k != best:
            is_told = separate is not None and label in separate[1]
            assert is_told == (p[k] <= ALPHA)
            assert is_told != (not_told is not None and label in not_told[1])
