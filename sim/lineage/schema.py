"""The written schema of the two logs that a lineage profile is made from.

This is the one place where their columns are named. Both may have more columns than these; what is
extra is not read. Times are seconds from any zero that the two logs share; a Parquet column may
hold timestamps instead (they become seconds since 1970). Names may be whole numbers.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from sim.workload.schema import CATEGORY, REQUIRED, Column

OPERATIONS_NAMES: Final = ("read", "write", "download")
"""What a file may meet: a job reads it or writes it, a person takes it out."""

READ, WRITE, DOWNLOAD = range(len(OPERATIONS_NAMES))
"""Codes of the operations in memory."""

OUTCOMES: Final = ("done", "failed", "missing_input")
"""How a job ended; ``missing_input`` is a failure because a file was not there."""

OPERATIONS: Final = (
    Column("time_s", pa.float64(), "s", "when it happened", REQUIRED),
    Column("job", CATEGORY, "jobs.job_id", "which job did it; empty for a download", ""),
    Column("operation", CATEGORY, "/".join(OPERATIONS_NAMES), "what was done", REQUIRED),
    Column("file", CATEGORY, "name", "to which file", REQUIRED),
    Column("n", pa.int32(), "count", "how many times at once, of downloads", 1),
)
"""The provenance log: a row an operation on a file."""

JOBS: Final = (
    Column("job_id", pa.string(), "name", "unique name of this run", REQUIRED),
    Column("template_name", CATEGORY, "name", "what its submitter calls the program", REQUIRED),
    Column("signature", CATEGORY, "text", "source text, or a signature of it", ""),
    Column("user", CATEGORY, "name", "who submitted it", ""),
    Column("queue", CATEGORY, "path", "its queue, parents first, parts separated by /", ""),
    Column("organisation", CATEGORY, "name", "who owns it; default: the queue's first part", ""),
    Column("priority", pa.float64(), "number", "more is sooner, within a queue", 0.0),
    Column("submit_s", pa.float64(), "s", "when it was submitted", REQUIRED),
    Column("start_s", pa.float64(), "s", "when it started; default: submit_s", None, True),
    Column("finish_s", pa.float64(), "s", "when it ended, well or not", REQUIRED),
    Column("requested", pa.float64(), "units", "resources held while it ran", 1.0),
    Column(
        "compute_s",
        pa.float64(),
        "unit s",
        "resource-time used; default: requested × (finish_s − start_s)",
        None,
        True,
    ),
    Column("outcome", CATEGORY, "/".join(OUTCOMES), "how it ended", "done"),
)
"""The job log: a row a run of a program."""

TABLES: Final = {"operations": OPERATIONS, "jobs": JOBS}
