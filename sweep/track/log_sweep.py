"""Log a sweep, or the parts of it that are missing, to MLflow; results never depend on it."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.masking import mask_tree
from sweep.execution.progress import LINE_EVERY_S
from sweep.grid import plugins
from sweep.grid.config_tree import abbreviated, to_yaml
from sweep.grid.overrides import QUESTION
from sweep.grid.request import Settings
from sweep.stats.arrange import arrange
from sweep.store import lease
from sweep.store.folder import SweepFolder
from sweep.store.index import as_keys
from sweep.store.journal import Journal
from sweep.track import run_data
from sweep.track.capacity_steps import capacity_steps
from sweep.track.connection import RunStore, connected, known_run, remember, tracking_uri
from sweep.track.run_data import CURVE, ChildRun, Granularity, digest
from sweep.track.runs import (
    artifact_files,
    find_children,
    find_experiment,
    find_parent,
    finish_parent,
    is_up_to_date,
    log_child,
)

_WORDS = {
    "policy": "a run for all seeds of each policy, trace and capacity",
    "sweep": "one run for the whole sweep",
}


@dataclass(frozen=True)
class LogResult:
    """Result of `track`: child runs logged now, those present before, ids of the sweep's run."""

    n_logged: int
    n_present: int
    experiment_id: str
    run_id: str


def track(
    folder: Path,
    cells: pa.Table,
    config: Mapping[str, Any],
    provenance: Mapping[str, Any],
    configs: Callable[[Sequence[int]], Iterable[Mapping[str, Any]]],
    uri: str,
    experiment: str,
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    times: F8 | None = None,
    granularity: Granularity = "cell",
    on_progress: Callable[[int, int], None] | None = None,
) -> LogResult:
    """Log a sweep's cells as child runs of one parent run; present runs stay as they are.

    The parent run's description is the question in the asker's words, if there is one, and the
    verdict. Beside it is a run of kind ``curve`` for each policy and trace, whose metrics have the
    capacity as their step, in per cent (`sweep.track.capacity_steps`): MLflow's charts draw a line
    a policy. If these would be too many, the parent has the means of each policy. A child run has
    the cell's labels and every setting of the command line as parameters, the metrics, tags to
    filter on (``policy``, ``trace``, ``capacity``, ``seed``, ``status``, ``sweep_id``,
    ``cell_key``, and every swept parameter) and the cell's configuration as ``config.yaml``; the
    run of a failed cell is marked FAILED and has the traceback. A run whose cell has another
    outcome now (it failed, or was cut off), or that was logged at another granularity, is deleted
    and logged again.

    `configs` returns the configurations of cells by their rows, ascending; `times`, a row a cell,
    has the begin and end of each, s since 1970, NaN where unknown.
    """
    arranged = arrange(cells, swept, None)
    means = run_data.over_seeds(arranged, None if granularity == "policy" else run_data.MAX_METRICS)
    children = run_data.child_rows(granularity, arranged, means)
    steps = capacity_steps(np.unique(arranged.capacity).tolist())
    verdict = SweepFolder(folder).verdict()
    judged = {str(entry.get("trace")): str(entry.get("metric")) for entry in verdict}
    curves = [] if granularity == "sweep" else run_data.curves(means, steps, judged)
    curves = curves if len(curves) <= run_data.MAX_CURVES else []
    params = run_data.parameter_values(arranged)
    settings = run_data.settings_given(config.get("words", ()), params)
    headline = [] if curves else run_data.headline(means, steps)
    headline += run_data.added_points(SweepFolder(folder))
    question = str(config.get(QUESTION) or "")
    n_cells = len(arranged.failed), int(arranged.failed.sum())
    state = digest(
        [*children, *curves],
        [params, settings, headline, n_cells, *filter(None, [question])],
        artifact_files(folder),
        granularity,
    )
    logged_run = known_run(folder, uri, experiment, state)
    if logged_run:
        return LogResult(0, len(children), *logged_run)
    with (
        connected(uri, f"python -m sweep track {shlex.quote(str(folder))}") as client,
        tempfile.TemporaryDirectory(prefix="sweep-mlflow-") as scratch,
    ):
        store = RunStore(client, uri, Path(scratch))
        experiment_id = find_experiment(store, experiment, folder)
        parent, is_new = find_parent(
            store, experiment_id, folder.name, {**params, **settings}, baseline, provenance
        )
        present = {} if is_new else find_children(store, experiment_id, folder.name, params)
        runs_wanted = [*children, *curves]
        identities = {row.identity for row in runs_wanted}
        missing = [
            row for row in runs_wanted if not is_up_to_date(store, row, present.get(row.identity))
        ]
        relogged = {row.identity for row in missing}
        for identity, runs in present.items():
            for old in runs if identity in relogged or identity not in identities else ():
                client.delete_run(old.info.run_id)
        configurations = itertools.chain(
            *(  # of cells, and again of curves, as `configs` takes rows in ascending order
                configs([int(row.rows[0]) for row in missing if (row.kind == CURVE) is is_curve])
                for is_curve in (False, True)
            )
        )
        for done, (row, config) in enumerate(zip(missing, configurations, strict=True), start=1):
            shared = settings
            if row.kind != "cell":
                seeds = np.unique(arranged.seed[row.rows]).tolist()
                config = {**config, "seed": abbreviated(seeds)}
                shared = {**settings, "seeds": str(len(seeds))}
            text = to_yaml(mask_tree(config))
            log_child(store, parent, row, shared, text, _run_times(row, times))
            if on_progress:
                on_progress(done, len(missing))
        renamed = {n: new for n, new in run_data.metric_names(arranged.metrics).items() if n != new}
        finish_parent(store, parent, *n_cells, folder, headline, renamed, question)
    run = (experiment_id, str(parent.info.run_id))
    remember(folder, uri, experiment, state, run)
    n_logged = sum(row.kind != CURVE for row in missing)
    return LogResult(n_logged, len(children) - n_logged, *run)


def log(
    folder: SweepFolder, settings: Settings, note: Callable[[str], object] = lambda _: None
) -> None:
    """Log a sweep to the tracking store of the settings, if they name one."""
    uri = tracking_uri(settings)
    if uri is None:
        return
    config = folder.config()
    skipped = ["config"] if folder.failed().any() else ["config", "reproduce"]
    cells = folder.cells([name for name in folder.schema().names if name not in skipped])
    requested = _requested_granularity(settings, config)
    granularity = run_data.choose_granularity(requested, cells, config["swept"])
    if requested is None and granularity != "cell":
        note(
            f"MLflow gets {_WORDS[granularity]}, as its UI slows down above {run_data.MAX_CELLS} "
            "runs; tracking.granularity=cell logs every cell"
        )
    # two sweeps that make one sqlite database at the same time would break it
    with lease.exclusive(settings.results / "journal" / "mlflow.lock"):
        track(
            folder.path,
            cells,
            config,
            folder.provenance(),
            partial(_configs, folder),
            uri,
            str(settings.tracking["experiment"]),
            swept=config["swept"],
            baseline=config["baseline"],
            times=_times(folder, len(cells)),
            granularity=granularity,
            on_progress=_progress_notes(note),
        )


def _requested_granularity(settings: Settings, config: Mapping[str, Any]) -> str | None:
    """Return the configured granularity, else the one that a plug-in asks for."""
    from_plug_ins = plugins.results(plugins.SECTIONS, "granularity", config)
    return settings.tracking.get("granularity") or next(filter(None, from_plug_ins), None)


def _progress_notes(note: Callable[[str], object]) -> Callable[[int, int], None]:
    """Return a callback that reports the number of logged runs from time to time."""
    last = time.monotonic()

    def on_progress(n_done: int, n_runs: int) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            note(f"{n_done} of {n_runs} runs logged to MLflow")

    return on_progress


def _times(folder: SweepFolder, n_cells: int) -> F8:
    """Read the begin and end of each cell from the journal, s since 1970; NaN if unknown."""
    journal_keys, journal_times = bytearray(), array("d")
    for event in Journal(folder.results, folder.sweep).events():
        if event["event"] == "cell" and event.keys() >= {"key", "seconds"}:
            journal_keys += bytes.fromhex(event["key"])
            journal_times.extend((event["time"] - event["seconds"], event["time"]))
    times = np.full((n_cells, 2), math.nan)
    if journal_keys:
        keys = (part["key"].to_pylist() for part in folder.parts(columns=["key"]))
        cell_keys = as_keys(b"".join(bytes.fromhex("".join(part)) for part in keys))
        order = np.argsort(as_keys(journal_keys), kind="stable")
        sorted_keys = as_keys(journal_keys)[order]
        matches = (
            np.searchsorted(sorted_keys, cell_keys, side="right") - 1
        )  # of those that ran again the last
        is_match = (matches >= 0) & (sorted_keys[matches] == cell_keys)
        times[is_match] = np.reshape(journal_times, (-1, 2))[order[matches[is_match]]]
    return times


def _configs(folder: SweepFolder, rows: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    """Yield the configurations of some rows, in ascending order."""
    begin, end, part = 0, 0, pa.table({})
    parts = folder.parts(columns=["config"])
    for row in rows:
        while row >= end:
            part = next(parts)
            begin, end = end, end + part.num_rows
        yield json.loads(part["config"][row - begin].as_py())


def _run_times(row: ChildRun, times: F8 | None) -> tuple[float, float]:
    cell_times = None if times is None else times[row.rows]
    if cell_times is None or np.isnan(cell_times).all():
        return time.time(), time.time()
    return float(np.nanmin(cell_times[:, 0])), float(np.nanmax(cell_times[:, 1]))
