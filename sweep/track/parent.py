"""The parent run of a sweep, and the experiment it stands in."""

from __future__ import annotations

import getpass
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.masking import mask
from sweep.track.children import KIND, NOTE, SWEEP, search
from sweep.track.connection import Place, is_http
from sweep.track.rows import MAX_TAG, Row, digest_of_files

if TYPE_CHECKING:
    from mlflow.entities import Run

FILES = "files_sha256"
# Without it MLflow's UI takes an experiment for one on language models, and hides its runs.
_MODEL_TRAINING = {"mlflow.experimentKind": "custom_model_development"}


def files_of(folder: Path) -> list[Path]:
    """Files of a sweep's folder that become artifacts: all but hidden ones, by name."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))


def find_experiment(place: Place, name: str, folder: Path) -> str:
    """Give the id of the experiment, creating it when missing.

    A server decides itself where its artifacts lie; otherwise they lie in
    ``<results>/mlflow-artifacts``.
    """
    from mlflow.exceptions import MlflowException

    found = place.client.get_experiment_by_name(name)
    if found is None:
        location = None
        if not is_http(place.uri):
            location = (folder.resolve().parent.parent / "mlflow-artifacts").as_uri()
        try:
            return str(place.client.create_experiment(name, location, tags=_MODEL_TRAINING))
        except MlflowException:  # another sweep may have been faster
            found = place.client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise MlflowException(f"the experiment {name!r} was deleted; restore it, or name another")
    return str(found.experiment_id)


def find_parent(
    place: Place,
    experiment_id: str,
    sweep_id: str,
    rows: Sequence[Row],
    baseline: str | None,
    provenance: Mapping[str, Any],
) -> tuple[Run, bool]:
    """Give the sweep's run, and whether it had to be created."""
    from mlflow.entities import Param

    query = f"tags.{SWEEP} = '{sweep_id}' and tags.{KIND} = 'sweep'"
    found = search(place, experiment_id, query)
    if found:
        return found[0], False
    tags = {SWEEP: sweep_id, KIND: "sweep", **_origin(provenance)}
    run = place.client.create_run(experiment_id, tags=tags, run_name=sweep_id)
    names = dict.fromkeys(name for row in rows for name in row.params)
    params = {
        name: ",".join(dict.fromkeys(row.params[name] for row in rows if name in row.params))
        for name in names
    }
    if baseline:
        params["baseline"] = baseline
    place.client.log_batch(
        run.info.run_id, params=[Param(name, value[:MAX_TAG]) for name, value in params.items()]
    )
    return run, True


def finish_parent(
    place: Place, run: Run, rows: Sequence[Row], folder: Path, headline: Mapping[str, float]
) -> None:
    """Store the sweep's files as artifacts, if they changed, and mark the run as ended."""
    from mlflow.entities import Metric, RunTag

    n_failed = sum(row.is_failed for row in rows)
    status = "FAILED" if n_failed else "FINISHED"
    files = files_of(folder)
    state = digest_of_files(files)
    if run.data.tags.get(FILES) != state:
        for path in files:
            place.put_file(run, path)
    now_ms = round(time.time() * 1000)
    counts = {"cells": float(len(rows)), "cells_failed": float(n_failed)}
    place.client.log_batch(
        run.info.run_id,
        metrics=[
            Metric(name, value, now_ms, 0)
            for name, value in (counts | dict(headline)).items()
            if run.data.metrics.get(name) != value
        ],
        tags=[RunTag(FILES, state), RunTag(NOTE, _note(rows, n_failed, folder))],
    )
    # a clock that was set back would have it end before it began
    ended_ms = max(now_ms, run.info.start_time or 0)
    place.client.set_terminated(run.info.run_id, status, end_time=ended_ms)


def _origin(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Give the tags by which MLflow shows who ran what, from which commit."""
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


def _note(rows: Sequence[Row], n_failed: int, folder: Path) -> str:
    """Describe the sweep, as Markdown, for the head of the run's page."""
    failed = f", {n_failed} failed" if n_failed else ""
    files = {path.name for path in files_of(folder)}
    where = "; plots and tables: `report.html` among the artifacts" * ("report.html" in files)
    return f"{len(rows)} cells{failed}{where}."
