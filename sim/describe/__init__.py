"""Characterisation of workloads, as Tian et al., SoCC 2019, §3 to §7.1, characterise Alibaba's.

`describe` turns a workload and its comparators into a `Description`: numbers by section, and
tables. `write_page` writes them and one HTML page. `Description.paper` holds the paper's numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.lazy import importer

if TYPE_CHECKING:
    from sim.describe.dataset import Dataset
    from sim.describe.page import write_page
    from sim.describe.run import describe
    from sim.describe.statistics import Description

_MODULES = {
    "Dataset": "sim.describe.dataset",
    "Description": "sim.describe.statistics",
    "describe": "sim.describe.run",
    "write_page": "sim.describe.page",
}

__all__ = [
    "Dataset",
    "Description",
    "describe",
    "write_page",
]

__getattr__ = importer(__name__, _MODULES)
