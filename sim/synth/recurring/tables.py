"""What a workload of recurring jobs is drawn from, as `python -m sim fit` writes it: JSON.

Jobs are told apart by how many tasks they have and in which queue of NSDI 2022, §5.2.1, their size
belongs: a stratum has its share of the jobs, how large and how wide they are, and how often the
programs that they are runs of had run before.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.files import write_text

FORMAT = "recurring tables 2"
"""First entry of the file."""
WIDE = 3
"""From how many tasks on a job is wide (NSDI 2022, §5.2.1)."""
BOUNDS_S = (1e3, 1e4, 1e5, 1e6)
"""Where the queues of the paper end, summed task durations of a job, s."""
HEAVY = 0.7
"""The heaviest jobs are the largest that have this share of all work, as few as can be."""
NEAR_TURNS = 5
"""Two of them are together if the one comes at most this many jobs after the other."""
CLASSES = ("new", "once", "often")
"""Programs that never ran in the history, that ran once, and more often."""


@dataclass(frozen=True)
class Stratum:
    """Jobs that are all thin or all wide, of one queue."""

    thin: bool
    large: bool  # whether a job's tasks add up to the first of `BOUNDS_S` or more
    jobs: float  # share of the jobs
    # quantiles of a job's summed task durations, s, at the probabilities (i + 0.5) / n
    work_s: tuple[float, ...]
    widths: tuple[tuple[int, float], ...]  # number of tasks, and its weight
    # for each of `CLASSES` the share of the stratum's jobs, then programs and runs of the past,
    # for each job of the workload
    runs: tuple[tuple[float, float, float], ...]
    # median and 90th percentile over jobs of variation over space: who varies more than whom
    over_space: tuple[float, float]


@dataclass(frozen=True)
class Tables:
    """All that is drawn from."""

    strata: tuple[Stratum, ...]
    gone: tuple[float, float]  # programs that only the history has, and their runs, for each job
    # users for each job, and the share of the variance of programs' mean task durations, as
    # logarithms, that is between users; the same of what is requested
    users: tuple[float, float]
    requests: tuple[float, float]
    # share of the jobs whose program has become faster since the history, and the mean of the
    # logarithm by which it has (exponential, at most 100-fold)
    stale: tuple[float, float]
    # of the heaviest jobs (`HEAVY`) the share that another comes close to (`NEAR_TURNS`), the share
    # of their work that these have, and groups of such for each of them
    together: tuple[float, float, float]
    # of the heaviest jobs, by work, the mean logarithm of the mean task duration of their user's
    # history over their own; None where no user is known
    unlike_user: float | None
    # share of the runs with an input much larger than usual: the rarer, the higher a variation
    # over time can be
    large: float
    # median and 90th percentile over jobs of variation over time and over space
    # (`sim.describe.slearn`); mean, median and 90th percentile of the load in windows
    over_time: tuple[float, float]
    over_space: tuple[float, float]
    load: tuple[float, float, float]
    history_days: int  # length of the history, and of the window that `over_time` is measured in
    provenance: dict[str, Any]


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to a file, a line an entry, whole or not at all."""
    parts = [f'"format": {json.dumps(FORMAT)}']
    for name, value in asdict(tables).items():
        if name == "strata":
            rows = ",\n".join(
                "  {" + ",\n   ".join(f'"{k}": {json.dumps(v)}' for k, v in each.items()) + "}"
                for each in value
            )
            parts.append(f'"strata": [\n{rows}\n ]')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    write_text(Path(path), "{" + ",\n ".join(parts) + "}\n")


def read_tables(path: str | os.PathLike[str]) -> Tables:
    """Read what `write_tables` wrote."""
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"can't be read as tables: {error}", file=path) from error
    wanted = {field.name for field in fields(Tables)} | {"format"}
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or set(raw) != wanted:
        raise InputError(
            f"must be tables of the form {FORMAT!r}; make them by "
            "`python -m sim fit WORKLOAD FILE --generator recurring`",
            file=path,
        )
    try:
        strata = tuple(Stratum(**_tupled(each)) for each in raw.pop("strata"))
        del raw["format"]
        tables = Tables(strata=strata, **{"provenance": raw.pop("provenance"), **_tupled(raw)})
        _check(tables)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"its tables are wrong: {error}", file=path) from error
    return tables


def _check(tables: Tables) -> None:
    for at, each in enumerate(tables.strata):
        ordered = all(0 < a <= b for a, b in zip(each.work_s, each.work_s[1:], strict=False))
        low = 1.0 if each.thin else float(WIDE)
        if not (each.jobs > 0 and each.work_s and ordered and len(each.runs) == len(CLASSES)):
            raise ValueError(f"stratum {at} must have a share, rising work_s and three runs")
        if not each.widths or min(width for width, _ in each.widths) < low:
            raise ValueError(f"stratum {at} must have widths of at least {low:g}")
    if not tables.strata or not 0 < tables.over_time[0] < tables.over_time[1]:
        raise ValueError("there must be strata, and over_time must be two rising numbers")


def _tupled(raw: dict[str, Any]) -> dict[str, Any]:
    def of(value: Any) -> Any:
        return tuple(of(each) for each in value) if isinstance(value, list) else value

    return {key: of(value) for key, value in raw.items()}


def heaviest(work_s: F8) -> I8:
    """Return the rows of the heaviest jobs, the largest first."""
    order = np.argsort(-work_s, kind="stable")
    upto = np.cumsum(work_s[order])
    return order[: int(np.searchsorted(upto, HEAVY * upto[-1])) + 1]


def quantiles_at(logs: F8, share: F8) -> F8:
    """Return quantiles given at the probabilities (i + 0.5) / n, at others."""
    place = np.clip(share * len(logs) - 0.5, 0, len(logs) - 1)
    low = np.minimum(place.astype(np.int64), max(len(logs) - 2, 0))
    high = np.minimum(low + 1, len(logs) - 1)
    found: F8 = logs[low] + (place - low) * (logs[high] - logs[low])
    return found
