"""Kinds of JSON that platforms write, told by their first fields, and what takes them."""

from __future__ import annotations

import re
from typing import Final

_PAGE: Final = "docs/from_your_data_platform.md has the way"
_KINDS: Final = (
    (r'"Event"\s*:\s*"(Spark|org\.apache\.spark)', "Spark's event log: trace=spark_eventlog"),
    (r'"eventType"|"eventTime"|openlineage', "OpenLineage: python -m sim lineage FILE"),
    (r"argoproj\.io", "Argo's workflows: trace=argo"),
    (r'"dag_id"|"dag_run_id"', f"runs of Airflow: {_PAGE}"),
    (r'"dbt_schema_version"|"dbt_version"', f"results of dbt: {_PAGE}"),
    (r'"workflow"|"schemaVersion"', "WfCommons: trace=wfcommons"),
    (r'"kind"\s*:|"apiVersion"', "objects of Kubernetes: trace=kubernetes"),
    (r'"inEdges"|"latestRun"|"(startedAt|nominalStartTime)"', f"runs or jobs of Marquez: {_PAGE}"),
    (r'"task_id"|"required_resources"', "Ray's tasks: trace=ray"),
    (r'"job_id".*"(association|tres|allocation_nodes)"|"slurm', "Slurm's accounting: trace=sacct"),
)
"""Texts at the beginning of a file, and what takes it."""


def kind_of_json(text: str) -> str | None:
    """Return the kind of a text of JSON, and what takes it; None if it is not known."""
    return next((kind for pattern, kind in _KINDS if re.search(pattern, text)), None)
