"""A short soak test; ``python -m benchmarks.soak`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import Soak
from tests.e2e.machines import Site

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_a_sweep_outlives_kills_of_all_kinds(cluster: Site, packages: Path, tmp_path: Path) -> None:
    soak = Soak(
        cluster,
        tmp_path,
        n_cells=200,
        seed=1,
        every_s=0.7,
        limit_s=600.0,
        environment={"PYTHONPATH": str(packages)},
    )
    soak.run()
    assert soak.killed.total() > 0
