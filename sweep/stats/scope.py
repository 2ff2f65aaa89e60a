"""Seeds and jobs over which the numbers of a comparison are taken, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweep.stats.arrange import ArrangedCells, CapacityGroup
from sweep.stats.cell_columns import JOBS_SHARE
from sweep.stats.common import Common
from sweep.stats.done_jobs import FAILED, MIN_DONE, is_of_done_jobs

MAX_NAMES = 3


@dataclass(frozen=True)
class Lack:
    """A policy that has no value on some of the seeds."""

    policy: str
    n_seeds: int  # on which it has a value
    is_ranked: bool  # False: with too few of them to be compared


@dataclass(frozen=True)
class Scope:
    """Seeds and jobs of a comparison; all of its numbers are of the same."""

    n_seeds: int = 0  # on which all ranked policies have a value
    n_all: int = 0  # seeds that were planned
    lacking: tuple[Lack, ...] = ()
    failing: tuple[tuple[str, float], ...] = ()  # ranked policies and their shares of failed jobs
    is_of_done: bool = True  # the numbers are of jobs that are done
    mostly_fails: bool = False  # every ranked policy fails half of the jobs or more
    # share of the jobs that are done under every policy, of which the numbers are; None: each
    # number is of the jobs done under its policy
    jobs_share: float | None = None

    @property
    def unranked(self) -> tuple[str, ...]:
        """Policies that are not compared."""
        return tuple(lack.policy for lack in self.lacking if not lack.is_ranked)

    def words(self) -> list[str]:
        """Write what a reader must know beside the numbers; empty where all are of everything."""
        return [*self._seeds(), *self._not_ranked(), *self._jobs()]

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``verdict.json``."""
        return {
            "seeds": self.n_seeds,
            "seeds_planned": self.n_all,
            "seeds_of": {lack.policy: lack.n_seeds for lack in self.lacking},
            "not_ranked": list(self.unranked),
            "jobs_failed": dict(self.failing),
            "jobs_share": self.jobs_share,
        }

    def _seeds(self) -> list[str]:
        if self.n_seeds == self.n_all:
            return []
        partly = [f"{lack.policy} has {lack.n_seeds}" for lack in self.lacking if lack.is_ranked]
        return [f"on {self.n_seeds} of {self.n_all} seeds{_because(partly)}"]

    def _not_ranked(self) -> list[str]:
        lacking = [lack for lack in self.lacking if not lack.is_ranked]
        texts = [
            f"{lack.policy} has results on {lack.n_seeds} of {self.n_all} seeds"
            if lack.n_seeds
            else f"{lack.policy} has no result"
            for lack in lacking[:MAX_NAMES]
        ]
        if len(lacking) > MAX_NAMES:
            texts.append(f"{len(lacking) - MAX_NAMES} more")
        return [f"not ranked: {', '.join(texts)}"] if texts else []

    def _jobs(self) -> list[str]:
        if not self.failing:
            return []
        texts = [f"{_percent(share)} fail under {name}" for name, share in self.failing[:MAX_NAMES]]
        more = len(self.failing) - MAX_NAMES
        shares = ", ".join([*texts, *([f"and others under {more} more"] if more > 0 else [])])
        if not self.is_of_done:
            return [f"of the jobs {shares}"]
        if self.jobs_share is None:
            return [f"of the jobs done under each policy, which are not the same: {shares}"]
        return [f"over the {_percent(self.jobs_share)} of jobs done under every policy ({shares})"]


def scope_of(arranged: ArrangedCells, group: CapacityGroup, metric: str, common: Common) -> Scope:
    """Describe the seeds and jobs of a metric's values on their common ground."""
    columns = list(arranged.columns.values())
    is_aside = not all(columns[column].is_oracle for column in common.ranked)
    present = ~np.isnan(group.by_seed(arranged, metric))
    has_any = present.any(axis=1)
    lacking = [
        Lack(columns[column].label, int(present[:, column].sum()), column in common.ranked)
        for column in np.unique(arranged.column_index[group.rows]).tolist()
        if not (is_aside and columns[column].is_oracle)
        and (column not in common.ranked or not present[has_any, column].all())
    ]
    failing, done_share = _failed_jobs(arranged, group, metric, common)
    is_most = [share >= 1 - MIN_DONE for _, share in failing]
    mostly_fails = len(is_most) == len(common.ranked) and all(is_most)
    return Scope(
        len(common.seeds),
        group.n_seeds,
        tuple(lacking),
        failing,
        is_of_done_jobs(metric),
        mostly_fails,
        done_share,
    )


def _failed_jobs(
    arranged: ArrangedCells, group: CapacityGroup, metric: str, common: Common
) -> tuple[tuple[tuple[str, float], ...], float | None]:
    """Return the policies that fail jobs with their shares, and the share of common jobs."""
    if metric == FAILED or FAILED not in arranged.metrics:
        return (), None
    labels = [column.label for column in arranged.columns.values()]
    ranked = list(common.ranked)
    failed = np.nan_to_num(common.rows(group.by_seed(arranged, FAILED))[:, ranked])
    failing = tuple(
        (labels[column], float(shares.mean()))
        for column, shares in zip(ranked, failed.T, strict=True)
        if shares.any()
    )
    if not failing or not is_of_done_jobs(metric) or JOBS_SHARE not in arranged.cells.column_names:
        return failing, None
    shares = common.rows(group.by_seed(arranged, JOBS_SHARE))[:, ranked]
    shares[~failed.any(axis=1)] = 1.0  # a seed on which no job failed has all of them
    return failing, None if np.isnan(shares).any() else float(shares.mean())


def _because(partly: Sequence[str]) -> str:
    shown = list(partly[:MAX_NAMES])
    if len(partly) > MAX_NAMES:
        shown.append(f"{len(partly) - MAX_NAMES} more")
    return f" ({', '.join(shown)})" if partly else ""


def _percent(share: float) -> str:
    text = f"{100 * share:.1f}"
    return f"{text if float(text) or not share else f'{100 * share:.2g}'} %"
