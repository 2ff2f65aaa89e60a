from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from sweep.questions.search.threshold_search import (
    ThresholdResult,
    ThresholdSearch,
    mean_and_half,
    seed_steps,
    spread,
)

Metric = Callable[[int, int], float]


def run_search(
    metric: Metric, low: int, high: int, bound: float, n_seeds: int = 30, n_first: int = 9
) -> tuple[ThresholdResult, ThresholdSearch]:
    search = ThresholdSearch(
        low, high, bound, True, seed_steps(n_seeds), lambda n: max(1, n // 100), n_first
    )
    while probes := search.next_probes():
        for n, k in probes:
            search.record(n, [metric(n, seed) for seed in range(k)])
    return search.result(), search


def brute_force(metric: Callable[[int], float], low: int, high: int, bound: float) -> int | None:
    """Try every number of machines."""
    return next((n for n in range(low, high + 1) if metric(n) <= bound), None)


@pytest.mark.parametrize("number", range(50))
def test_against_a_brute_force_grid(number: int) -> None:
    """Search 50 metrics that fall with the number of machines, some with a little noise."""
    rng = np.random.default_rng(number)
    low = int(rng.integers(1, 20))
    high = low + int(rng.integers(1, 300))
    knee, power, spread = rng.uniform(1, 80), rng.uniform(0.5, 3.0), rng.uniform(0, 0.004)
    spread = 0.0 if number % 2 else spread
    noise = rng.normal(size=30)

    def exact(n: int) -> float:
        return float(100.0 * (1.0 + (knee / n) ** power))

    bound = exact(int(rng.integers(max(1, low - 5), int(high * 1.1) + 2))) * (
        1 + rng.uniform(0, 0.01)
    )
    true = brute_force(exact, low, high, bound)
    result, search = run_search(
        lambda n, seed: exact(n) * (1 + spread * noise[seed]), low, high, bound
    )
    assert (result.low or 0) < (true or high + 1) <= (result.high or high + 1)
    if result.threshold is not None:
        assert (result.low or 0) < result.threshold <= (result.high or high)
    if result.is_sure:
        assert result.threshold == result.high == result.safe
        if result.status == "met":
            assert result.high is not None
            assert result.high - (result.low or 0) <= max(1, result.high // 100)
        else:
            assert {"never": None, "always": low}[result.status] == true
    assert len(search.probes) < 9 + 4 * np.log2(high)
    if not spread:
        assert result.is_sure
        assert not result.rises
        assert all(len(probe.values) == 5 for probe in search.probes.values())


@pytest.mark.parametrize("number", range(30))
def test_a_bursty_metric_against_a_brute_force_grid(number: int) -> None:
    """Some numbers of machines are worse than smaller ones, as bursts meet them differently."""
    rng = np.random.default_rng(number)
    low, high = int(rng.integers(1, 30)), int(rng.integers(100, 300))
    exact = 1000.0 / np.arange(1, high + 1)
    for _ in range(int(rng.integers(1, 4))):
        start = int(rng.integers(low, high))
        exact[start : int(start * rng.uniform(1.13, 1.6)) + 1] *= rng.uniform(1.1, 4.0)
    bound = float(rng.choice(exact[low - 1 :])) * 1.001
    result, search = run_search(lambda n, _: float(exact[n - 1]), low, high, bound, n_first=129)
    meets = [n for n in range(low, high + 1) if exact[n - 1] <= bound]
    if result.threshold is None:
        assert (result.status, result.low, result.high) == ("never", high, None)
        # a dip that is missed is narrower than the gap between neighbours
        assert not meets or widest(meets) <= 1.12
        return
    assert result.threshold == result.high
    assert exact[result.threshold - 1] <= bound
    assert result.threshold == low or exact[result.threshold - 2] > bound or result.threshold >= 200
    missed = [n for n in range(result.threshold, high + 1) if n not in meets]
    assert (result.status == "always") == (result.threshold == low and result.safe == low)
    below = [n for n in meets if n < result.threshold]
    assert not below or widest(below) <= 1.12
    if result.safe is None:
        assert high in missed
        return
    assert all(probe.is_met for n, probe in search.probes.items() if n >= result.safe)
    assert (
        result.safe == result.threshold
        or max(n for n in missed if n in search.probes) < result.safe
    )
    unseen = [n for n in missed if n >= result.safe]
    assert not unseen or widest(unseen) <= 1.12


def widest(numbers: list[int]) -> float:
    """Return the largest ratio of ends among runs of neighbours, one beyond at each side."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return max((run[-1]) / run[0] for run in runs)


def test_a_dip_is_found_in_any_range() -> None:
    """A log with bursts: 40 machines meet the target, 45 to 65 do not; both ends are reported."""

    def metric(n: int, _: int) -> float:
        return 9578.0 if 45 <= n <= 65 else 174_000.0 / n

    for low, high in ((6, 160), (6, 40), (24, 52), (20, 240), (10, 80), (1, 400)):
        result, _ = run_search(metric, low, high, 6000.0, 1, n_first=33)
        assert (result.status, result.threshold, result.low) == ("met", 29, 28)
        assert result.safe == (29 if high < 45 else None if high < 66 else 66)
        assert bool(result.rises) == (high >= 45)


def test_the_first_probes_are_spread_by_ratio() -> None:
    assert spread(5, 5, 33) == [5]
    assert spread(5, 9, 33) == [5, 6, 7, 8, 9]
    assert spread(6, 160, 5) == [6, 14, 31, 70, 160]
    assert len(spread(6, 160, 9)) == 9
    assert set(spread(6, 160, 5)) < set(spread(6, 160, 33))
    many = spread(30, 800, 33)
    assert len(many) == 33
    ratios = [more / less for less, more in itertools.pairwise(many)]
    assert max(ratios) < 1.14
    # no more than `CLOSE` allows
    assert spread(100, 112, 33) == [100, 112]
    assert len(spread(100, 500, 33)) == 17


def test_without_enough_seeds_the_mean_decides_and_the_interval_remains() -> None:
    noise = np.random.default_rng(3).normal(size=10)
    search = ThresholdSearch(5, 60, 600.0, True, seed_steps(10), lambda _: 1, 9)
    while probes := search.next_probes():
        for n, k in probes:
            search.record(n, [600 * 30.5 / n * (1 + 0.3 * float(noise[seed])) for seed in range(k)])
    result = search.result()
    assert (result.status, result.is_sure) == ("met", False)
    means = {n: 600 * 30.5 / n * (1 + 0.3 * float(noise.mean())) for n in range(5, 61)}
    assert result.threshold == result.safe == min(n for n, mean in means.items() if mean <= 600)
    assert result.low is not None
    assert result.high is not None
    assert result.low < result.threshold < result.high


def test_failures_miss_the_target_without_certainty() -> None:
    search = ThresholdSearch(5, 60, 20.0, True, (1,), lambda _: 1, 9)
    while probes := search.next_probes():
        for n, _ in probes:
            if n < 20:
                search.record_miss(n, "failed", is_sure=False)
            else:
                search.record(n, [1.0])
    result = search.result()
    assert (result.status, result.threshold, result.low, result.is_sure) == ("met", 20, None, False)
    none = ThresholdSearch(5, 60, 20.0, True, (1,), lambda _: 1, 5)
    for n, _ in none.next_probes():
        none.record_miss(n, "failed", is_sure=False)
    assert not none.next_probes()
    assert (none.result().status, none.result().is_sure) == ("never", False)


def test_noisy_searches_are_rarely_wrong() -> None:
    """Of 200 searches, each of about ten decisions at 5 %, few results miss the true number."""
    n_wrong = 0
    for number in range(200):
        rng = np.random.default_rng(1000 + number)
        noise = rng.normal(size=(101, 30))
        bound = 100.0 * (1 + 30.0 / (rng.integers(10, 90) + 0.5))

        def metric(n: int, seed: int, noise: np.ndarray = noise) -> float:  # type: ignore[type-arg]
            return float(100.0 * (1 + 30.0 / n) * (1 + 0.05 * noise[n, seed]))

        result, _ = run_search(metric, 5, 100, bound)
        true = brute_force(lambda n: 100.0 * (1 + 30.0 / n), 5, 100, bound)
        assert true is not None
        above = result.high is None or true <= result.high
        n_wrong += not (above and true > (result.low or 0))
    assert n_wrong <= 20


def test_a_metric_that_is_not_monotone_is_reported() -> None:
    def metric(n: int, _: int) -> float:
        return 1000.0 / n + (40.0 if 40 <= n < 70 else 0.0)

    result, _ = run_search(metric, 5, 100, 30.0)
    assert (result.status, result.threshold) == ("met", 34)
    assert result.rises
    rises, _ = run_search(lambda n, _: float(n), 5, 100, 30.0)
    assert (rises.status, rises.threshold) == ("met", 5)
    flat, _ = run_search(lambda n, _: 10.0, 5, 100, 30.0)
    assert (flat.status, flat.threshold, flat.rises) == ("always", 5, ())


def test_one_number_in_the_range() -> None:
    assert run_search(lambda n, _: 1.0, 3, 3, 2.0)[0].status == "always"
    assert run_search(lambda n, _: 3.0, 3, 3, 2.0)[0].status == "never"


def test_infinite_values_miss_the_target() -> None:
    result, _ = run_search(lambda n, _: float("inf") if n < 20 else 1.0, 5, 100, 30.0)
    assert (result.status, result.threshold) == ("met", 20)


def test_seed_steps() -> None:
    assert seed_steps(30) == (5, 10, 20, 30)
    assert seed_steps(5) == (5,)
    assert seed_steps(3) == (3,)
    assert seed_steps(1) == (1,)


def test_students_interval() -> None:
    mean, half = mean_and_half([1.0, 2.0, 3.0, 4.0, 5.0], 0.95)
    assert (mean, half) == (3.0, pytest.approx(2.776445 * 2.5**0.5 / 5**0.5, rel=1e-6))
    assert mean_and_half([7.0], 0.95) == (7.0, 0.0)
    assert mean_and_half([7.0, 7.0], 0.95) == (7.0, 0.0)


@pytest.mark.parametrize("missing", [(), (324,), (325,), (324, 325), (330,), (*range(324, 330),)])
def test_neighbours_of_an_answer_are_probed(missing: tuple[int, ...]) -> None:
    """Numbers just above the least that meets the target, and what lies above those that miss."""
    search = ThresholdSearch(100, 1000, 10.0, True, (1,), lambda _: 1, 9)
    tried: list[int] = []
    while probes := search.next_probes():
        for n, _ in probes:
            tried.append(n)
            search.record(n, [5.0 if n >= 323 and n not in missing else 20.0])
    result = search.result()
    met = [n for n in tried if n >= 323 and n not in missing]
    assert result.threshold == min(met)
    assert {min(met) + 1, min(met) + 2} <= set(tried)
    last = max((n for n in tried if n not in met), default=0)
    assert result.safe == min(n for n in met if n > last)
    assert len(tried) == len(set(tried)) < 30
