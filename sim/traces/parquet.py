"""A workload that was written before: a folder of Parquet files, as `Workload.write` leaves it."""

from __future__ import annotations

import os

from sim.workload.workload import Workload


def read(path: str | os.PathLike[str]) -> Workload:
    """Read the folder `path`; see `sim.workload.folder.read`.

    Raises
    ------
    InputError
        Naming the file and the rule it breaks.
    """
    return Workload.read(path)
