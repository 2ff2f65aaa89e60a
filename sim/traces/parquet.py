"""Reader of a workload folder: Parquet files, as `Workload.write` writes them."""

from __future__ import annotations

import os

from sim.workload.workload import Workload


def read(path: str | os.PathLike[str]) -> Workload:
    """Read the folder `path`; see `sim.workload.folder.read`.

    Raises
    ------
    InputError
        If a file is missing or breaks a rule; the message names both.
    """
    return Workload.read(path)
