"""MLflow runs of a sweep: a parent run, and a child run a cell or a setting."""

from __future__ import annotations

import getpass
import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.masking import mask
from sim.base.text import label
from sweep.stats.cell_columns import AXES, KNOWS
from sweep.store.folder import SweepFolder
from sweep.store.tags import FILE as TAGS
from sweep.track.capacity_steps import PERCENT
from sweep.track.connection import RunStore, is_http
from sweep.track.run_data import (
    CURVE,
    HIGH,
    LOW,
    MAX_METRICS,
    MAX_TAG,
    ChildRun,
    Point,
    describe_curve,
    digest_of_files,
    identity,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

KIND, SWEEP, CELL, STEP = "kind", "sweep_id", "cell_key", "capacity_step"
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
CONFIG, TRACEBACK = "config.yaml", "traceback.txt"
FILES, MEANS, VERDICT = "files_sha256", "means_sha256", "verdict"
# Without it MLflow's UI treats an experiment as one on language models, and hides its runs.
_MODEL_TRAINING = {"mlflow.experimentKind": "custom_model_development"}
VIEW = "sweeps"
"""Name of the view of an experiment's runs that shows verdicts: ``?viewStateShareKey=sweeps``."""

VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
_COLUMNS = (
    *("attributes.`Created`", "attributes.`Description`"),
    *("params.`policy`", "params.`trace`", "params.`capacity`"),
    *("metrics.`jct_mean_s`", "metrics.`value_attained`", "metrics.`deadlines_missed`"),
    *("metrics.`gap_lb_p50`", "params.`knows`", "params.`seeds`"),
)
_FILTER = "tags.kind != 'cell' and tags.kind != 'policy'"
"""Runs of the view: sweeps, and the curves of their policies; without it there are the cells."""
_SECTION = "capacity"
_CHARTED = {
    "jct_mean_s": "mean JCT (s)",
    "deadlines_missed": "deadlines missed",
    "value_attained": "value attained",
    "gap_lb_p50": "gap to the lower bound, median",
}
"""Metrics of the charts of curves, with their titles."""


def _chart(metric: str, title: str) -> dict[str, Any]:
    """Configure a chart of curves: a line a policy, and the ends of its interval."""
    return {
        **{"uuid": metric, "type": "LINE", "metricSectionId": _SECTION, "deleted": False},
        **{"isGenerated": False, "displayName": f"{title}, by capacity (%)", "metricKey": metric},
        **{
            "selectedMetricKeys": [metric, f"{LOW}/{metric}", f"{HIGH}/{metric}"],
            "xAxisKey": "step",
        },
        **{"runsCountToCompare": 20, "lineSmoothness": 0, "scaleType": "linear"},
        **{"xAxisScaleType": "linear", "range": {}, "selectedXAxisMetricKey": ""},
        **{"yAxisKey": "metric", "yAxisExpressions": [], "ignoreOutliers": False},
        **{"useGlobalXaxisKey": True, "useGlobalLineSmoothing": True},
    }


_VIEW = json.dumps(
    {
        **{"selectedColumns": _COLUMNS, "orderByKey": "attributes.start_time", "orderByAsc": False},
        **{"searchFilter": _FILTER, "startTime": "ALL", "lifecycleFilter": "Active"},
        **{"datasetsFilter": [], "modelVersionFilter": "All Runs", "groupBy": None},
        **{"runsExpanded": {}, "runsPinned": [], "runsHidden": [], "groupsExpanded": {}},
        **{"useGroupedValuesInCharts": True, "hideEmptyCharts": True},
        "compareRunCharts": [_chart(metric, title) for metric, title in _CHARTED.items()],
        "compareRunSections": [
            {"uuid": name, "name": title, "display": is_open, "isReordered": True}
            for name, title, is_open in (
                (_SECTION, "By capacity", True),
                ("Model metrics", "Model metrics", True),
                (LOW, LOW, False),  # MLflow finds the section of a metric by its name
                (HIGH, HIGH, False),
            )
        ],
    }
)
PAGE = 1000
_INHERITED = ("mlflow.user", "mlflow.source.name", "mlflow.source.type", "mlflow.source.git.commit")


def find_children(
    store: RunStore, experiment_id: str, sweep_id: str, names: Iterable[str]
) -> dict[tuple[str, ...], list[Run]]:
    """Find the child runs of a sweep by `ChildRun.identity`; duplicates are accidents."""
    children: dict[tuple[str, ...], list[Run]] = {}
    for run in search(
        store, experiment_id, f"tags.{SWEEP} = '{sweep_id}' and tags.{KIND} != 'sweep'"
    ):
        tags = run.data.tags
        params = {name: tags[name] for name in names if name in tags}
        children.setdefault(identity(tags[KIND], tags.get(CELL, ""), params), []).append(run)
    return children


def search(store: RunStore, experiment_id: str, query: str) -> list[Run]:
    """Return all active runs that match a query, oldest first."""
    runs: list[Run] = []
    token = None
    while True:
        page = store.client.search_runs(
            [experiment_id],
            query,
            max_results=PAGE,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token:
            return runs


def is_up_to_date(store: RunStore, row: ChildRun, runs: Sequence[Run] | None) -> bool:
    """Tell whether the logged run matches its cell; changed metrics are logged immediately.

    A metric can change though the cell's key does not: when the baseline's cell, which had failed,
    is done.
    """
    if not runs or len(runs) > 1 or runs[0].info.status != row.run_status:
        return False
    run = runs[0]
    if any(run.data.tags.get(name) != text for name, text in row.error.items()):
        return False
    if row.points and run.data.tags.get(STEP, PERCENT) != row.steps.unit:
        return False
    logged = run.data.metrics
    changed = {
        name: value
        for name, value in row.metrics.items()
        if name not in logged or not math.isclose(logged[name], value, rel_tol=1e-12)
    }
    if changed:
        if row.points:
            return False  # all its points are logged again
        points = [(name, 0, value) for name, value in changed.items()]
        _log_batch(store, run, points, {}, time.time())
    return True


def log_child(
    store: RunStore,
    parent: Run,
    row: ChildRun,
    settings: Mapping[str, str],
    config: str,
    times_s: tuple[float, float],
) -> None:
    """Log a run of a cell, a setting or a curve; a curve stands beside the sweep's run.

    It is marked finished last: an interrupted one is logged again.
    """
    began_s, ended_s = times_s
    axes = {name: row.params[name] for name in AXES if name in row.params}
    swept = {name: value for name, value in row.params.items() if name not in AXES}
    knows = {KNOWS: row.knows} if row.knows else {}
    tags = {
        **({} if row.kind == CURVE else {PARENT: parent.info.run_id}),
        KIND: row.kind,
        SWEEP: parent.data.tags[SWEEP],
        CELL: row.key,
        **({STEP: row.steps.unit} if row.points else {}),
        "status": "failed" if row.is_failed else "done",
        **knows,
        **axes,
        **{name: value[:MAX_TAG] for name, value in swept.items()},
        **row.error,
        **{name: parent.data.tags[name] for name in _INHERITED if name in parent.data.tags},
    }
    if row.is_failed:
        tags[NOTE] = _failure(row)
    elif note := describe_curve(row):
        tags[NOTE] = note
    client = store.client
    run = client.create_run(
        parent.info.experiment_id, start_time=round(began_s * 1000), tags=tags, run_name=row.name
    )
    store.put_text(run, CONFIG, config)
    if row.traceback:
        store.put_text(run, TRACEBACK, row.traceback)
    points = row.points or [(name, 0, value) for name, value in row.metrics.items()]
    params = {**settings, **row.params, **knows, "sweep": parent.data.tags[SWEEP]}
    _log_batch(store, run, points, params, ended_s)
    client.set_terminated(run.info.run_id, row.run_status, end_time=round(ended_s * 1000))


def _log_batch(
    store: RunStore, run: Run, points: Iterable[Point], params: Mapping[str, str], at_s: float
) -> None:
    from mlflow.entities import Metric, Param

    now_ms = round(at_s * 1000)
    logged = [Metric(name, value, now_ms, step) for name, step, value in points]
    named = [Param(name, value) for name, value in params.items()]
    first = logged[: MAX_METRICS - len(named)]
    store.client.log_batch(run.info.run_id, metrics=first, params=named)
    for begin in range(len(first), len(logged), MAX_METRICS):
        store.client.log_batch(run.info.run_id, metrics=logged[begin : begin + MAX_METRICS])


def _failure(row: ChildRun) -> str:
    """Describe a failure in Markdown for the top of the run's page."""
    words = [row.error[name] for name in ("error_type", "error_message") if name in row.error]
    lines = [f"**{': '.join(words)}**", f"    {row.reproduce}"]
    return "\n\n".join(lines)[:MAX_TAG]


def artifact_files(folder: Path) -> list[Path]:
    """List the files of a sweep's folder that become artifacts, by name.

    All but hidden ones and a reader's tags.
    """
    if not folder.is_dir():
        return []
    paths = (p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    return sorted(path for path in paths if path.name != TAGS)


def find_experiment(store: RunStore, name: str, folder: Path) -> str:
    """Return the id of the experiment, creating it if missing.

    A server chooses the location of its artifacts; otherwise it is
    ``<results>/mlflow-artifacts``.
    """
    from mlflow.exceptions import MlflowException

    experiment = store.client.get_experiment_by_name(name)
    if experiment is None:
        location = None
        if not is_http(store.uri):
            location = (folder.resolve().parent.parent / "mlflow-artifacts").as_uri()
        try:
            tags = {**_MODEL_TRAINING, VIEW_TAG: _VIEW}
            return str(store.client.create_experiment(name, location, tags=tags))
        except MlflowException:  # another sweep may have created it meanwhile
            experiment = store.client.get_experiment_by_name(name)
            if experiment is None:
                raise
    if experiment.lifecycle_stage != "active":
        raise MlflowException(
            f"the experiment {name!r} was deleted in MLflow; restore it, or choose another with "
            "tracking.experiment=NAME"
        )
    if experiment.tags.get(VIEW_TAG) != _VIEW:
        store.client.set_experiment_tag(experiment.experiment_id, VIEW_TAG, _VIEW)
    return str(experiment.experiment_id)


def find_parent(
    store: RunStore,
    experiment_id: str,
    sweep_id: str,
    params: Mapping[str, str],
    baseline: str | None,
    provenance: Mapping[str, Any],
) -> tuple[Run, bool]:
    """Return the sweep's parent run, created if missing, and whether it is new."""
    from mlflow.entities import Param

    query = f"tags.{SWEEP} = '{sweep_id}' and tags.{KIND} = 'sweep'"
    runs = search(store, experiment_id, query)
    if runs:
        return runs[0], False
    tags = {SWEEP: sweep_id, KIND: "sweep", **_origin(provenance)}
    run = store.client.create_run(experiment_id, tags=tags, run_name=sweep_id)
    if baseline:
        params = {**params, "baseline": baseline}
    store.client.log_batch(
        run.info.run_id, params=[Param(name, value[:MAX_TAG]) for name, value in params.items()]
    )
    return run, True


def finish_parent(
    store: RunStore,
    run: Run,
    n_cells: int,
    n_failed: int,
    folder: Path,
    headline: Sequence[Point],
    renamed: Mapping[str, str],
    question: str = "",
) -> None:
    """Store the sweep's files as artifacts, if they changed, and mark the run as ended.

    `headline` (`sweep.track.run_data.headline`) is logged as a whole if it changed. The description
    begins with the `question` in the asker's words, and lists `renamed` metrics, whose names MLflow
    does not accept.
    """
    from mlflow.entities import Metric, RunTag

    status = "FAILED" if n_failed else "FINISHED"
    files = artifact_files(folder)
    state = digest_of_files(files)
    if run.data.tags.get(FILES) != state:
        for path in files:
            store.put_file(run, path)
    now_ms = round(time.time() * 1000)
    counts = {"cells": float(n_cells), "cells_failed": float(n_failed)}
    metrics = [
        Metric(name, value, now_ms, 0)
        for name, value in counts.items()
        if run.data.metrics.get(name) != value
    ]
    means = hashlib.sha256(repr(headline).encode()).hexdigest()
    if run.data.tags.get(MEANS) != means:
        metrics += [Metric(name, value, now_ms, step) for name, step, value in headline]
    verdict = _verdict(folder)
    note = "\n".join(
        [
            question,
            "",
            *(f"- {sentence}" for sentence in verdict),
            "",
            _counts(n_cells, n_failed, folder),
        ]
        + [f"- the metric '{label(name)}' is `{new}` here" for name, new in renamed.items()]
    ).strip()[:MAX_TAG]
    tags = [RunTag(FILES, state), RunTag(MEANS, means), RunTag(NOTE, note)]
    if verdict:  # the list of runs can show a tag as a column, but not the description
        tags.append(RunTag(VERDICT, " ".join(verdict)))
    store.client.log_batch(run.info.run_id, metrics=metrics, tags=tags)
    # with a clock that was set back, it would end before it began
    ended_ms = max(now_ms, run.info.start_time or 0)
    store.client.set_terminated(run.info.run_id, status, end_time=ended_ms)


def _origin(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of origin that MLflow shows: user, command, commit."""
    tags = {"mlflow.source.type": "LOCAL"}
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user id, in a container
        tags["mlflow.user"] = "unknown"
    if provenance.get("command"):
        tags["mlflow.source.name"] = mask(str(provenance["command"]))[:MAX_TAG]
    git = provenance.get("git")
    if isinstance(git, Mapping) and git.get("commit"):
        tags["mlflow.source.git.commit"] = str(git["commit"])
    return tags


def _verdict(folder: Path) -> list[str]:
    """Return the losses of the logs and the sentences of the verdict, as many as a tag can hold."""
    sweep = SweepFolder(folder)
    losses = [str(log["sentence"]) for log in sweep.logs_read() if log.get("sentence")]
    sentences = [*losses, *sweep.sentences()]
    ends = itertools.accumulate(len(sentence) + 3 for sentence in sentences)
    n_kept = sum(end <= MAX_TAG - 200 for end in ends)
    n_left = len(sentences) - n_kept
    return [*sentences[:n_kept], *([f"And {n_left} more."] if n_left else [])]


def _counts(n_cells: int, n_failed: int, folder: Path) -> str:
    """Describe the number of cells and the report, for the top of the run's page."""
    failed = f", {n_failed} failed" if n_failed else ""
    files = {path.name for path in artifact_files(folder)}
    report = "; plots and tables: `report.html` among the artifacts" * ("report.html" in files)
    return f"{n_cells} cells{failed}{report}."
