"""Log a sweep to MLflow, or what is missing of it there; its results never depend on that."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.base.masking import mask_tree
from sweep.execution.notes import LINE_EVERY_S
from sweep.grid.config_tree import to_yaml
from sweep.grid.request import Settings
from sweep.store import lease
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal
from sweep.track import rows as to_log
from sweep.track.connection import Place, connected, known_run, remember, uri_of
from sweep.track.rows import Granularity, Row, digest, rows_of
from sweep.track.runs import (
    files_of,
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
    cell_configs: Mapping[str, Mapping[str, Any]],
    uri: str,
    experiment: str,
    *,
    swept: Sequence[str] = (),
    baseline: str | None = None,
    times: Mapping[str, tuple[float, float]] | None = None,
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
    """
    rows = rows_of(cells, swept)
    children = to_log.at(granularity, rows)
    state = digest(rows, files_of(folder), granularity)
    known = known_run(folder, uri, experiment, state)
    if known:
        return Tracked(0, len(children), *known)
    with (
        connected(uri, f"python -m sweep track {folder}") as client,
        tempfile.TemporaryDirectory(prefix="sweep-mlflow-") as scratch,
    ):
        place = Place(client, uri, Path(scratch))
        experiment_id = find_experiment(place, experiment, folder)
        parent, is_new = find_parent(place, experiment_id, folder.name, rows, baseline, provenance)
        names = dict.fromkeys(name for row in rows for name in row.params)
        present = {} if is_new else find_children(place, experiment_id, folder.name, names)
        wanted = {row.identity for row in children}
        missing = [
            row for row in children if not is_up_to_date(place, row, present.get(row.identity))
        ]
        anew = {row.identity for row in missing}
        for identity, runs in present.items():
            for old in runs if identity in anew or identity not in wanted else ():
                client.delete_run(old.info.run_id)
        compared = to_log.varying(children)
        for done, row in enumerate(missing, start=1):
            text = to_yaml(mask_tree(_config_of(row, cell_configs)))
            log_child(place, parent, row, compared, text, _times_of(row, times or {}))
            if on_progress:
                on_progress(done, len(missing))
        finish_parent(place, parent, rows, folder, to_log.headline(rows))
    run = (experiment_id, str(parent.info.run_id))
    remember(folder, uri, experiment, state, run)
    return Tracked(len(missing), len(children) - len(missing), *run)


def log(
    folder: SweepFolder, settings: Settings, note: Callable[[str], object] = lambda _: None
) -> None:
    """Log a sweep to where the settings say; nothing if they say nowhere."""
    uri = uri_of(settings)
    if uri is None:
        return
    cells, config = folder.cells(), folder.config()
    asked = _asked(settings, config)
    rows = cells.select(["key", "config"]).to_pylist()
    granularity = to_log.choose(asked, cells, config["swept"])
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
            {row["key"]: json.loads(row["config"]) for row in rows},
            uri,
            str(settings.tracking["experiment"]),
            swept=config["swept"],
            baseline=config["baseline"],
            times=_times(folder),
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


def _times(folder: SweepFolder) -> dict[str, tuple[float, float]]:
    """When each cell began and ended, s since 1970, as far as the journal knows."""
    events = Journal(folder.results, folder.sweep).events()
    return {
        event["key"]: (event["time"] - event["seconds"], event["time"])
        for event in events
        if event["event"] == "cell" and event.keys() >= {"key", "seconds"}
    }


def _config_of(row: Row, configs: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Give the configuration of a row's cell; of several, which differ in the seed, all seeds."""
    config = configs.get(row.members[0], {})
    if len(row.members) == 1:
        return config
    seeds = {configs[key].get("seed") for key in row.members if key in configs}
    return {**config, "seed": sorted(seed for seed in seeds if seed is not None)}


def _times_of(row: Row, times: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    known = [times[key] for key in row.members if key in times]
    if not known:
        return time.time(), time.time()
    return min(began for began, _ in known), max(ended for _, ended in known)
