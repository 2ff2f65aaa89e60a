"""What Tian et al., SoCC 2019, report of the whole Alibaba trace of 2018, by section and key.

Shown beside a workload of that trace only.
"""

from __future__ import annotations

from functools import cache

from sim.describe.dataset import Dataset
from sim.published import numbers

TRACE = "alibaba2018"
"""``meta["name"]`` of the workloads that the numbers are shown beside."""


def beside(data: Dataset) -> dict[tuple[str, str], float]:
    """Return the paper's numbers to show beside a dataset: all, or none."""
    if data.workload is None or data.workload.meta.get("name") != TRACE:
        return {}
    return _numbers()


@cache
def _numbers() -> dict[tuple[str, str], float]:
    paper = numbers("alibaba")
    found = {(section, key): v for section, of in paper["trace"].items() for key, v in of.items()}
    for kind in ("jobs", "stages", "tasks"):
        part = found["overview", f"{kind}_with"] / found["overview", kind]
        found["dependencies", f"any_{kind}"] = part
    for key, value in paper["durations"].items():
        of, _, what = key.partition("_")
        for metric in ("duration", "span"):
            found["variability", f"{of}_{metric}_{what}"] = value
    return found
