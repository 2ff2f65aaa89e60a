from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from sweep.search.threshold_search import (
    ThresholdResult,
    ThresholdSearch,
    mean_and_half,
    seed_steps,
    spread,
)

Metric = Callable[[int, int], float]


def hunt(
    metric: Metric, low: int, high: int, bound: float, n_seeds: int = 30, n_first: int = 9
) -> tuple[ThresholdResult, ThresholdSearch]:
    found = ThresholdSearch(
        low, high, bound, True, seed_steps(n_seeds), lambda n: max(1, n // 100), n_first
    )
    while wanted := found.next_probes():
        for n, k in wanted:
            found.record(n, [metric(n, seed) for seed in range(k)])
    return found.result(), found


def brute_force(metric: Callable[[int], float], low: int, high: int, bound: float) -> int | None:
    """Try every number of machines."""
    return next((n for n in range(low, high + 1) if metric(n) <= bound), None)


@pytest.mark.parametrize("number", range(50))
def test_against_a_brute_force_grid(number: int) -> None:
    """Of 50 metrics that fall with the number of machines, some without noise, some with little."""
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
    answer, found = hunt(lambda n, seed: exact(n) * (1 + spread * noise[seed]), low, high, bound)
    assert (answer.low or 0) < (true or high + 1) <= (answer.high or high + 1)
    if answer.threshold is not None:
        assert (answer.low or 0) < answer.threshold <= (answer.high or high)
    if answer.is_sure:
        assert answer.threshold == answer.high == answer.safe
        if answer.status == "met":
            assert answer.high is not None
            assert answer.high - (answer.low or 0) <= max(1, answer.high // 100)
        else:
            assert {"never": None, "always": low}[answer.status] == true
    assert len(found.probes) < 9 + 4 * np.log2(high)
    if not spread:
        assert answer.is_sure
        assert not answer.rises
        assert all(len(probe.values) == 5 for probe in found.probes.values())


@pytest.mark.parametrize("number", range(30))
def test_of_a_bursty_metric_against_a_brute_force_grid(number: int) -> None:
    """Some numbers of machines are worse than fewer, as bursts fall otherwise upon them."""
    rng = np.random.default_rng(number)
    low, high = int(rng.integers(1, 30)), int(rng.integers(100, 300))
    exact = 1000.0 / np.arange(1, high + 1)
    for _ in range(int(rng.integers(1, 4))):
        start = int(rng.integers(low, high))
        exact[start : int(start * rng.uniform(1.13, 1.6)) + 1] *= rng.uniform(1.1, 4.0)
    bound = float(rng.choice(exact[low - 1 :])) * 1.001
    answer, found = hunt(lambda n, _: float(exact[n - 1]), low, high, bound, n_first=129)
    meets = [n for n in range(low, high + 1) if exact[n - 1] <= bound]
    if answer.threshold is None:
        assert (answer.status, answer.low, answer.high) == ("never", high, None)
        # what is not seen is narrower than what neighbours are apart
        assert not meets or widest(meets) <= 1.12
        return
    assert answer.threshold == answer.high
    assert exact[answer.threshold - 1] <= bound
    assert answer.threshold == low or exact[answer.threshold - 2] > bound or answer.threshold >= 200
    missed = [n for n in range(answer.threshold, high + 1) if n not in meets]
    assert (answer.status == "always") == (answer.threshold == low and answer.safe == low)
    below = [n for n in meets if n < answer.threshold]
    assert not below or widest(below) <= 1.12
    if answer.safe is None:
        assert high in missed
        return
    assert all(probe.is_met for n, probe in found.probes.items() if n >= answer.safe)
    assert (
        answer.safe == answer.threshold or max(n for n in missed if n in found.probes) < answer.safe
    )
    unseen = [n for n in missed if n >= answer.safe]
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


def test_a_dip_is_found_whatever_the_range() -> None:
    """Of a log with bursts: 40 machines do, 45 to 65 do not; both ends are said."""

    def metric(n: int, _: int) -> float:
        return 9578.0 if 45 <= n <= 65 else 174_000.0 / n

    for low, high in ((6, 160), (6, 40), (24, 52), (20, 240), (10, 80), (1, 400)):
        answer, _ = hunt(metric, low, high, 6000.0, 1, n_first=33)
        assert (answer.status, answer.threshold, answer.low) == ("met", 29, 28)
        assert answer.safe == (29 if high < 45 else None if high < 66 else 66)
        assert bool(answer.rises) == (high >= 45)


def test_the_first_looks_are_spread_by_ratio() -> None:
    assert spread(5, 5, 33) == [5]
    assert spread(5, 9, 33) == [5, 6, 7, 8, 9]
    assert spread(6, 160, 5) == [6, 14, 31, 70, 160]
    assert len(spread(6, 160, 9)) == 9
    assert set(spread(6, 160, 5)) < set(spread(6, 160, 33))
    many = spread(30, 800, 33)
    assert len(many) == 33
    ratios = [more / less for less, more in itertools.pairwise(many)]
    assert max(ratios) < 1.14
    # no more than are near each other
    assert spread(100, 112, 33) == [100, 112]
    assert len(spread(100, 500, 33)) == 17


def test_where_seeds_run_out_the_mean_says_and_the_interval_is_left() -> None:
    noise = np.random.default_rng(3).normal(size=10)
    found = ThresholdSearch(5, 60, 600.0, True, seed_steps(10), lambda _: 1, 9)
    while wanted := found.next_probes():
        for n, k in wanted:
            found.record(n, [600 * 30.5 / n * (1 + 0.3 * float(noise[seed])) for seed in range(k)])
    answer = found.result()
    assert (answer.status, answer.is_sure) == ("met", False)
    means = {n: 600 * 30.5 / n * (1 + 0.3 * float(noise.mean())) for n in range(5, 61)}
    assert answer.threshold == answer.safe == min(n for n, mean in means.items() if mean <= 600)
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low < answer.threshold < answer.high


def test_what_fails_is_missed_but_not_surely() -> None:
    found = ThresholdSearch(5, 60, 20.0, True, (1,), lambda _: 1, 9)
    while wanted := found.next_probes():
        for n, _ in wanted:
            if n < 20:
                found.record_miss(n, "failed", is_sure=False)
            else:
                found.record(n, [1.0])
    answer = found.result()
    assert (answer.status, answer.threshold, answer.low, answer.is_sure) == ("met", 20, None, False)
    none = ThresholdSearch(5, 60, 20.0, True, (1,), lambda _: 1, 5)
    for n, _ in none.next_probes():
        none.record_miss(n, "failed", is_sure=False)
    assert not none.next_probes()
    assert (none.result().status, none.result().is_sure) == ("never", False)


def test_it_is_rarely_wrong_where_seeds_differ() -> None:
    """Of 200 hunts, each of some ten decisions at 5 %, few answers miss the true number."""
    n_wrong = 0
    for number in range(200):
        rng = np.random.default_rng(1000 + number)
        noise = rng.normal(size=(101, 30))
        bound = 100.0 * (1 + 30.0 / (rng.integers(10, 90) + 0.5))

        def metric(n: int, seed: int, noise: np.ndarray = noise) -> float:  # type: ignore[type-arg]
            return float(100.0 * (1 + 30.0 / n) * (1 + 0.05 * noise[n, seed]))

        answer, _ = hunt(metric, 5, 100, bound)
        true = brute_force(lambda n: 100.0 * (1 + 30.0 / n), 5, 100, bound)
        assert true is not None
        above = answer.high is None or true <= answer.high
        n_wrong += not (above and true > (answer.low or 0))
    assert n_wrong <= 20


def test_what_is_not_monotone_is_seen_and_the_least_found() -> None:
    def metric(n: int, _: int) -> float:
        return 1000.0 / n + (40.0 if 40 <= n < 70 else 0.0)

    answer, _ = hunt(metric, 5, 100, 30.0)
    assert (answer.status, answer.threshold) == ("met", 34)
    assert answer.rises
    rises, _ = hunt(lambda n, _: float(n), 5, 100, 30.0)
    assert (rises.status, rises.threshold) == ("met", 5)
    flat, _ = hunt(lambda n, _: 10.0, 5, 100, 30.0)
    assert (flat.status, flat.threshold, flat.rises) == ("always", 5, ())


def test_one_number_in_the_range() -> None:
    assert hunt(lambda n, _: 1.0, 3, 3, 2.0)[0].status == "always"
    assert hunt(lambda n, _: 3.0, 3, 3, 2.0)[0].status == "never"


def test_infinite_is_missed() -> None:
    answer, _ = hunt(lambda n, _: float("inf") if n < 20 else 1.0, 5, 100, 30.0)
    assert (answer.status, answer.threshold) == ("met", 20)


def test_when_one_looks() -> None:
    assert seed_steps(30) == (5, 10, 20, 30)
    assert seed_steps(5) == (5,)
    assert seed_steps(3) == (3,)
    assert seed_steps(1) == (1,)


def test_students_interval() -> None:
    mean, half = mean_and_half([1.0, 2.0, 3.0, 4.0, 5.0], 0.95)
    assert (mean, half) == (3.0, pytest.approx(2.776445 * 2.5**0.5 / 5**0.5, rel=1e-6))
    assert mean_and_half([7.0], 0.95) == (7.0, 0.0)
    assert mean_and_half([7.0, 7.0], 0.95) == (7.0, 0.0)
