from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sweep.search.bisect import Answer, Hunt, looks, mean_and_half

Metric = Callable[[int, int], float]


def hunt(
    metric: Metric, low: int, high: int, bound: float, n_seeds: int = 30
) -> tuple[Answer, Hunt]:
    found = Hunt(low, high, bound, True, looks(n_seeds), lambda n: max(1, n // 100))
    while wanted := found.wants():
        for n, k in wanted:
            found.tell(n, [metric(n, seed) for seed in range(k)])
    return found.answer(), found


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
    if answer.status == "met":
        assert true is not None
        assert (answer.low or 0) < true <= (answer.high or 0)
        assert answer.at == answer.high
        if not spread:
            assert answer.is_sure
        if answer.is_sure:
            assert answer.high - (answer.low or 0) <= max(1, answer.high // 100)  # type: ignore[operator]
    elif answer.status == "unsure":
        assert spread
        assert true is None or true > (answer.low or 0)
    else:
        assert {"never": None, "always": low}[answer.status] == true
    assert len(found.probes) < 5 + 2 * np.log2(high)
    if not spread:
        assert not answer.worse
        assert all(len(probe.values) == 5 for probe in found.probes.values())


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
    assert (answer.status, answer.at) == ("met", 34)
    assert answer.worse
    rises, _ = hunt(lambda n, _: float(n), 5, 100, 30.0)
    assert (rises.status, rises.at) == ("met", 5)
    flat, _ = hunt(lambda n, _: 10.0, 5, 100, 30.0)
    assert (flat.status, flat.at, flat.worse) == ("always", 5, ())


def test_one_number_in_the_range() -> None:
    assert hunt(lambda n, _: 1.0, 3, 3, 2.0)[0].status == "always"
    assert hunt(lambda n, _: 3.0, 3, 3, 2.0)[0].status == "never"


def test_infinite_is_missed() -> None:
    answer, _ = hunt(lambda n, _: float("inf") if n < 20 else 1.0, 5, 100, 30.0)
    assert (answer.status, answer.at) == ("met", 20)


def test_when_one_looks() -> None:
    assert looks(30) == (5, 10, 20, 30)
    assert looks(5) == (5,)
    assert looks(3) == (3,)
    assert looks(1) == (1,)


def test_students_interval() -> None:
    mean, half = mean_and_half([1.0, 2.0, 3.0, 4.0, 5.0], 0.95)
    assert (mean, half) == (3.0, pytest.approx(2.776445 * 2.5**0.5 / 5**0.5, rel=1e-6))
    assert mean_and_half([7.0], 0.95) == (7.0, 0.0)
    assert mean_and_half([7.0, 7.0], 0.95) == (7.0, 0.0)
