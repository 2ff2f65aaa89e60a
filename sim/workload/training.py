"""What is known of earlier runs of the jobs' templates, task by task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import I4
from sim.workload.tables import names, values


@dataclass(frozen=True)
class Training:
    """The recorded tasks of earlier runs, K rows by template, run, stage and task."""

    # the workload's jobs, and its table ``training`` (`sim.workload.schema.TRAINING`)
    jobs: pa.Table
    table: pa.Table

    def __len__(self) -> int:
        """How many tasks are recorded."""
        return int(self.table.num_rows)

    @cached_property
    def template(self) -> I4:
        """Template of each row, (K,): index into the workload's `template_names`; -1 for others."""
        index = {name: i for i, name in enumerate(names(self.jobs, "template"))}
        lookup = np.array([index.get(n, -1) for n in names(self.table, "template")], np.int32)
        found = lookup[values(self.table, "template")] if len(lookup) else np.zeros(0, np.int32)
        found.setflags(write=False)
        return found

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of numbers, (K,), read-only; see `sim.workload.schema.TRAINING`."""
        return values(self.table, name)
