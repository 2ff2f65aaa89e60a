"""Log a sweep to MLflow, or what is missing of it there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sweep.as_yaml import to_yaml
from sweep.masking import mask_tree
from sweep.tracking import memo
from sweep.tracking.children import find_children, is_up_to_date, log_child
from sweep.tracking.connection import Place, connected
from sweep.tracking.parent import files_of, find_experiment, find_parent, finish_parent
from sweep.tracking.rows import digest, rows_of


@dataclass(frozen=True)
class Tracked:
    """What `track` did: cells logged now, cells that were there, and where the sweep is."""

    n_logged: int
    n_present: int
    experiment_id: str
    run_id: str


def track(
    folder: Path,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    cell_configs: Mapping[str, Mapping[str, Any]],
    uri: str,
    experiment: str,
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    times: Mapping[str, tuple[float, float]] | None = None,
    final: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> Tracked:
    """Log a sweep's cells, each a child run of one parent run; what is there stays as it is.

    A child run holds the swept parameters, the metrics, tags to filter on (``policy``, ``trace``,
    ``capacity``, ``seed``, ``status``, ``sweep_id``, ``cell_key``) and the cell's configuration as
    ``config.yaml``; that of a failed cell is marked FAILED and holds the traceback. A run whose
    cell has another outcome now (it failed, or was cut off) is deleted and logged anew.

    Parameters
    ----------
    folder : Path
        ``<results>/sweeps/<sweep id>``; the table and the report in it become artifacts of the
        parent run.
    cells : pyarrow.Table
        One row a cell, as in ``cells.parquet``; a column ``error_traceback`` may hold tracebacks.
    provenance : mapping
        Of the sweep; its ``command`` and ``git`` become tags.
    cell_configs : mapping of str to mapping
        Each cell's resolved configuration, by cell key; secrets in it are masked.
    uri : str
        Tracking URI: ``sqlite:////absolute/path/mlflow.db``, ``http://host:port``, ...
    experiment : str
        Name of the MLflow experiment; created when missing.
    swept : sequence of str
        Columns of `cells` swept besides policy, trace, capacity and seed.
    baseline : str, optional
        Policy that speed-ups are quoted against.
    times : mapping of str to (float, float), optional
        When each cell began and ended, in seconds since 1970, by cell key.
    final : bool
        False while cells are still to come: the parent run stays RUNNING.
    on_progress : callable, optional
        Called with the number of cells logged and to log.

    Returns
    -------
    Tracked

    Raises
    ------
    TrackingDown
        MLflow is not reachable or refused; what was logged before stays, and the same call goes
        on from there.
    """
    rows = rows_of(cells, swept)
    state = digest(rows, files_of(folder))
    known = memo.is_logged(folder, uri, experiment, state) if final else None
    if known:
        return Tracked(0, len(rows), *known)
    with (
        connected(uri, f"python -m sweep track {folder}") as client,
        tempfile.TemporaryDirectory(prefix="sweep-mlflow-") as scratch,
    ):
        place = Place(client, uri, Path(scratch))
        experiment_id = find_experiment(place, experiment, folder)
        parent, is_new = find_parent(place, experiment_id, folder.name, rows, baseline, provenance)
        present = {} if is_new else find_children(place, experiment_id, folder.name)
        missing = [row for row in rows if not is_up_to_date(place, row, present.get(row.identity))]
        for done, row in enumerate(missing, start=1):
            for old in present.get(row.identity, ()):
                client.delete_run(old.info.run_id)
            began, ended = (times or {}).get(row.key, (time.time(), time.time()))
            config_text = to_yaml(mask_tree(cell_configs.get(row.key, {})))
            log_child(place, parent, row, config_text, began, ended)
            if on_progress:
                on_progress(done, len(missing))
        if final:
            finish_parent(place, parent, rows, folder)
    found = (experiment_id, str(parent.info.run_id))
    if final:
        memo.write(folder, uri, experiment, state, found)
    return Tracked(len(missing), len(rows) - len(missing), *found)
