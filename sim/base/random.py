"""Random streams, counter-based, one for each (seed, purpose), and the posterior of a mean."""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from sim.base import maths
from sim.base.arrays import F8, I8

Shape = int | tuple[int, ...]
Size = Shape | None
_CHUNK = 64


class Stream:
    """Random draws with the same bits on every machine.

    Philox's bits are the same (Salmon et al., SC 2011), and so are the draws that NumPy computes
    from them in whole numbers: `random`, `integers`, `permutation`, `bytes`. NumPy's other
    distributions use functions of the C library; here they are drawn by inversion or rejection
    (Devroye, *Non-Uniform Random Variate Generation*, 1986) over `sim.base.maths`. Arguments are
    those of NumPy's `Generator`.
    """

    def __init__(self, key: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        exact = np.random.Generator(np.random.Philox(key=key))
        self.random = exact.random
        self.integers = exact.integers
        self.permutation = exact.permutation
        self.bytes = exact.bytes
        self._choice = exact.choice

    @overload
    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float: ...
    @overload
    def uniform(self, low: float = ..., high: float = ..., size: Shape = ...) -> F8: ...
    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Any:
        """Draw uniformly from `low` to `high`."""
        return low + (high - low) * self.random(size)

    @overload
    def normal(self, mean: float = 0.0, deviation: float = 1.0, size: None = None) -> float: ...
    @overload
    def normal(self, mean: float = ..., deviation: float = ..., size: Shape = ...) -> F8: ...
    def normal(self, mean: float = 0.0, deviation: float = 1.0, size: Size = None) -> Any:
        """Draw from a normal distribution, by its quantile."""
        return mean + deviation * self.standard_normal(size)

    @overload
    def standard_normal(self, size: None = None) -> float: ...
    @overload
    def standard_normal(self, size: Shape = ...) -> F8: ...
    def standard_normal(self, size: Size = None) -> Any:
        """Draw from the standard normal distribution, by its quantile."""
        if size is None:
            return maths.normal_quantile((int(self.random() * 2.0**52) + 0.5) * 2.0**-52)
        within = (np.floor(self.random(size) * 2.0**52) + 0.5) * 2.0**-52  # never 0 nor 1
        return maths.normal_quantile(within)

    @overload
    def exponential(self, mean: float = 1.0, size: None = None) -> float: ...
    @overload
    def exponential(self, mean: float = ..., size: Shape = ...) -> F8: ...
    def exponential(self, mean: float = 1.0, size: Size = None) -> Any:
        """Draw from an exponential distribution, by its quantile."""
        return mean * (0.0 - maths.log(1.0 - self.random(size)))

    def geometric(self, p: ArrayLike, size: Size = None) -> Any:
        """Draw the number of trials up to the first success of probability `p`, by inversion."""
        size = np.shape(p) or None if size is None else size
        failed = maths.log(1.0 - self.random(size)) / maths.log1p(-np.asarray(p, np.float64))
        trials = np.minimum(np.floor(failed), 2.0**62).astype(np.int64) + 1
        return trials if size is not None else int(trials)

    def beta(self, a: int, b: int, size: int) -> F8:
        """Draw from a beta distribution of whole parameters, as an order statistic."""
        uniform: F8 = np.sort(self.random((size, a + b - 1)), axis=1)
        return uniform[:, a - 1]

    def poisson(self, mean: float) -> int:
        """Draw the number of events of a Poisson process, by the gaps between them."""
        n, time = 0, 0.0
        while True:
            times = time + np.cumsum(self.exponential(1.0, _CHUNK))
            n += int(np.searchsorted(times, mean))
            if times[-1] >= mean:
                return n
            time = float(times[-1])

    def choice(
        self, a: Any, size: Size = None, replace: bool = True, p: ArrayLike | None = None
    ) -> Any:
        """Draw from `a`, or from range(a); probabilities `p` need replacement."""
        if p is None:
            return self._choice(a, size, replace)
        if not replace:
            raise ValueError("probabilities p need replace=True")
        cumulative = np.cumsum(np.asarray(p, dtype=np.float64))
        index = np.searchsorted(cumulative, self.random(size) * cumulative[-1], side="right")
        return index if np.ndim(a) == 0 else np.asarray(a)[index]

    def multinomial(self, n: int, p: ArrayLike) -> I8:
        """Draw the counts of outcomes of probabilities `p` in `n` trials."""
        probabilities = np.asarray(p, dtype=np.float64)
        outcomes = self.choice(len(probabilities), n, p=probabilities)
        return np.bincount(outcomes, minlength=len(probabilities))


def stream(seed: int, *purpose: str | int) -> Stream:
    """Return the Philox stream of (seed, purpose).

    The same arguments give the same numbers on every machine, in every process; different
    purposes give independent streams, so that drawing more for one never shifts another.
    """
    return Stream(np.frombuffer(_digest(seed, purpose)[:16], dtype=np.uint64))


def key_words(seed: int, *purpose: str | int) -> I8:
    """Return two words of 32 bits, the key of a kernel's own draws for (seed, purpose)."""
    return np.frombuffer(_digest(seed, purpose)[:8], dtype="<u4").astype(np.int64)


def _digest(seed: int, purpose: tuple[str | int, ...]) -> bytes:
    text = "\x1f".join([str(int(seed)), *map(str, purpose)])
    return hashlib.sha256(text.encode()).digest()


def fixed_permutation(n: int, i: int) -> I8:
    """Return the `i`-th of a fixed sequence of random permutations of 0 to n - 1, (n,)."""
    return stream(0, "fixed permutation", i).permutation(n)


class Normal(NamedTuple):
    """A normal distribution; its variance is inf if nothing is known."""

    mean: float
    variance: float


def posterior(prior: Normal, n: int, mean: float, variance: float) -> Normal:
    """Update a normal prior of a mean by `n` samples (Jajoo et al., NSDI 2022, §4.1.2)."""
    if n == 0 or prior.variance == 0 or math.isinf(variance):
        return prior
    if variance == 0:
        return Normal(mean, 0.0)
    if math.isinf(prior.variance):
        return Normal(mean, variance / n)
    weight, prior_weight = n / variance, 1 / prior.variance
    total = weight + prior_weight
    return Normal((weight * mean + prior_weight * prior.mean) / total, 1 / total)
