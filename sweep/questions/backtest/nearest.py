"""The policy that is nearest to a log, and the tests that tell it from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8
from sweep.questions.backtest.findings import Audit
from sweep.questions.backtest.likelihood import compare_policies, log_likelihood
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.stats import inference
from sweep.stats.inference import Paired


@dataclass(frozen=True)
class Ranking:
    """Policies by the likelihood of the recorded starts under their runs."""

    best: int  # index of the nearest policy
    log_likelihood: tuple[float, ...]  # mean over jobs, by policy, nats
    behind: tuple[float, ...]  # by how much it is below the best's, nats a job
    tests: tuple[Paired, ...]  # of the best against each policy; see `compare_policies`
    p_holm: tuple[float, ...]  # adjusted for the number of tests; NaN for the best itself

    @property
    def distinguished(self) -> tuple[int, ...]:
        """Policies that a test tells from the best."""
        return tuple(k for k, p in enumerate(self.p_holm) if p <= inference.ALPHA)

    @property
    def undistinguished(self) -> tuple[int, ...]:
        """Policies that no test tells from the best."""
        return tuple(
            k for k in range(len(self.p_holm)) if k not in (self.best, *self.distinguished)
        )


def rank(log: LoggedJobs, starts_s: Sequence[F8], findings: Audit) -> Ranking:
    """Rank policies by the likelihood of the recorded starts under their runs.

    Parameters
    ----------
    log : LoggedJobs
        The log's N jobs.
    starts_s : sequence of (R, N) float64
        Starts in R runs of each policy, s.
    findings : Audit
        Its resolution and median lag set the smallest bandwidth of the densities.
    """
    floor_s = bandwidth_floor_s(findings)
    by_policy = [log_likelihood(log.start_s, start_s, floor_s) for start_s in starts_s]
    means = [float(values.mean()) for values in by_policy]
    best = int(np.argmax(means))
    tests = tuple(compare_policies(by_policy[best], values) for values in by_policy)
    p = np.array([np.nan if k == best else test.p for k, test in enumerate(tests)])
    behind = tuple(means[best] - mean for mean in means)
    return Ranking(best, tuple(means), behind, tests, tuple(inference.holm(p).tolist()))


def bandwidth_floor_s(findings: Audit) -> float:
    """Return the smallest bandwidth that a log allows, s: its resolution or median lag."""
    lag_s = findings.lag_median_s if np.isfinite(findings.lag_median_s) else 0.0
    return max(findings.resolution_s, lag_s, 1e-3)
