"""Refuse JSON where a table is expected, and say which reader takes it."""

from __future__ import annotations

import os
import re

from sim.base.errors import InputError

_READERS = (
    (r'"Event"\s*:\s*"(Spark|org\.apache\.spark)', "Spark's event log: trace=spark_eventlog"),
    (r'"eventType"|"eventTime"|openlineage', "OpenLineage: python -m sim lineage FILE"),
    (r'"workflow"|"schemaVersion"', "WfCommons: trace=wfcommons"),
    (r"argoproj\.io", "Argo's workflows: trace=argo"),
    (r'"kind"\s*:|"apiVersion"', "objects of Kubernetes: trace=kubernetes"),
    (r'"task_id"|"required_resources"', "Ray's tasks: trace=ray"),
    (r'"job_id".*"(association|tres|allocation_nodes)"|"slurm', "Slurm's accounting: trace=sacct"),
)
"""Texts at the beginning of a file, and what reads it."""
_OTHER = (
    "JSON of no kind that is read here: write it as CSV with a row a job, such as by "
    "pandas.read_json(...).to_csv(...)"
)


def refuse_json(path: str | os.PathLike[str], line: str) -> None:
    """Raise an InputError if the first line of a file is JSON."""
    if not re.match(r"\s*(\{\s*(\"|\}|$)|\[\s*(\{|\[|\"|\]|\d|$))", line):
        return
    kind = next((text for pattern, text in _READERS if re.search(pattern, line)), _OTHER)
    raise InputError(f"the file is JSON, no table; {kind}", file=path, line=1, rule="not a table")
