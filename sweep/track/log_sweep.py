"""Log a sweep to MLflow, or what is missing of it there; its results never depend on that."""

from __future__ import annotations

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
from sweep.grid.config_tree import abbreviated, to_yaml
from sweep.grid.request import Settings
from sweep.stats.arrange import arrange
from sweep.store import lease
from sweep.store.folder import SweepFolder
from sweep.store.index import as_keys
from sweep.store.journal import Journal
from sweep.track import rows as to_log
from sweep.track.connection import RunStore, connected, known_run, remember, tracking_uri
from sweep.track.rows import ChildRun, Granularity, digest
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
class Tracked:
    """What `track` did: child runs logged now, those that were there, where the sweep is."""

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
) -> Tracked:
    """Log a sweep's cells as child runs of one parent run; what is there stays as it is.

    The parent run's description is the verdict, its metrics are the means of each policy. A child
    run holds the parameters that vary in the sweep, the metrics, tags to filter on
    (``policy``, ``trace``, ``capacity``, ``seed``, ``status``, ``sweep_id``, ``cell_key``, and
    every swept parameter) and the cell's configuration as ``config.yaml``; that of a failed cell
    is marked FAILED and holds the traceback. A run whose cell has another outcome now (it failed,
    or was cut off), or that was logged at another granularity, is deleted and logged anew.

    `configs` gives the configurations of cells by their rows, ascending; `times`, a row a cell,
    says when each began and ended, s since 1970, NaN where that is not known.
    """
    them = arrange(cells, swept, None)
    means = to_log.over_seeds(them, None if granularity == "policy" else to_log.MOST_METRICS)
    children = to_log.child_rows(granularity, them, means)
    params, headline = to_log.parameter_values(them), to_log.headline(means)
    n_cells = len(them.failed), int(them.failed.sum())
    state = digest(children, [params, headline, n_cells], artifact_files(folder), granularity)
    known = known_run(folder, uri, experiment, state)
    if known:
        return Tracked(0, len(children), *known)
    with (
        connected(uri, f"python -m sweep track {shlex.quote(str(folder))}") as client,
        tempfile.TemporaryDirectory(prefix="sweep-mlflow-") as scratch,
    ):
        place = RunStore(client, uri, Path(scratch))
        experiment_id = find_experiment(place, experiment, folder)
        parent, is_new = find_parent(
            place, experiment_id, folder.name, params, baseline, provenance
        )
        present = {} if is_new else find_children(place, experiment_id, folder.name, params)
        wanted = {row.identity for row in children}
        missing = [
            row for row in children if not is_up_to_date(place, row, present.get(row.identity))
        ]
        anew = {row.identity for row in missing}
        for identity, runs in present.items():
            for old in runs if identity in anew or identity not in wanted else ():
                client.delete_run(old.info.run_id)
        compared = to_log.varying(children)
        found = configs([int(row.rows[0]) for row in missing])
        for done, (row, config) in enumerate(zip(missing, found, strict=True), start=1):
            if row.kind != "cell":
                config = {**config, "seed": abbreviated(np.unique(them.seed[row.rows]).tolist())}
            text = to_yaml(mask_tree(config))
            log_child(place, parent, row, compared, text, _times_of(row, times))
            if on_progress:
                on_progress(done, len(missing))
        renamed = {n: new for n, new in to_log.metric_names(them.metrics).items() if n != new}
        finish_parent(place, parent, *n_cells, folder, headline, renamed)
    run = (experiment_id, str(parent.info.run_id))
    remember(folder, uri, experiment, state, run)
    return Tracked(len(missing), len(children) - len(missing), *run)


def log(
    folder: SweepFolder, settings: Settings, note: Callable[[str], object] = lambda _: None
) -> None:
    """Log a sweep to where the settings say; nothing if they say nowhere."""
    uri = tracking_uri(settings)
    if uri is None:
        return
    config = folder.config()
    long = ["config"] if folder.failed().any() else ["config", "reproduce"]
    cells = folder.cells([name for name in folder.schema().names if name not in long])
    asked = _asked(settings, config)
    granularity = to_log.choose_granularity(asked, cells, config["swept"])
    if asked is None and granularity != "cell":
        note(
            f"MLflow gets {_WORDS[granularity]}, as its UI slows past {to_log.MOST_CELLS} runs; "
            "tracking.granularity=cell logs every cell"
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
            on_progress=_saying(note),
        )


def _asked(settings: Settings, config: Mapping[str, Any]) -> str | None:
    """Return of what a run is to be, if that is settled: a search's are of its settings."""
    is_search = "space" in (config.get("goal") or {})
    return settings.tracking.get("granularity") or ("policy" if is_search else None)


def _saying(note: Callable[[str], object]) -> Callable[[int, int], None]:
    """Say from time to time how many runs are logged."""
    last = time.monotonic()

    def on_progress(n_done: int, n_runs: int) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            note(f"{n_done} of {n_runs} runs logged to MLflow")

    return on_progress


def _times(folder: SweepFolder, n_cells: int) -> F8:
    """When each cell began and ended, s since 1970, as far as the journal knows."""
    known, times = bytearray(), array("d")
    for event in Journal(folder.results, folder.sweep).events():
        if event["event"] == "cell" and event.keys() >= {"key", "seconds"}:
            known += bytes.fromhex(event["key"])
            times.extend((event["time"] - event["seconds"], event["time"]))
    found = np.full((n_cells, 2), math.nan)
    if known:
        keys = (part["key"].to_pylist() for part in folder.parts(columns=["key"]))
        own = as_keys(b"".join(bytes.fromhex("".join(part)) for part in keys))
        order = np.argsort(as_keys(known), kind="stable")
        ran = as_keys(known)[order]
        at = np.searchsorted(ran, own, side="right") - 1  # of those that ran again the last
        there = (at >= 0) & (ran[at] == own)
        found[there] = np.reshape(times, (-1, 2))[order[at[there]]]
    return found


def _configs(folder: SweepFolder, rows: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    """Give the configurations of some rows, which ascend."""
    begin, end, part = 0, 0, pa.table({})
    parts = folder.parts(columns=["config"])
    for at in rows:
        while at >= end:
            part = next(parts)
            begin, end = end, end + part.num_rows
        yield json.loads(part["config"][at - begin].as_py())


def _times_of(row: ChildRun, times: F8 | None) -> tuple[float, float]:
    known = None if times is None else times[row.rows]
    if known is None or np.isnan(known).all():
        return time.time(), time.time()
    return float(np.nanmin(known[:, 0])), float(np.nanmax(known[:, 1]))
