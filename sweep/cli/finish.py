"""After the last cell: the table, the report, tracking, and what to say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.masking import mask_tree
from sweep.cli import say
from sweep.grid.settings import Settings
from sweep.papers import studies
from sweep.report import findings
from sweep.report.findings import Finished
from sweep.run import rows
from sweep.run.plan import Prepared
from sweep.store import provenance
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal
from sweep.track import hand_over

if TYPE_CHECKING:
    import pyarrow as pa


def sweep(
    prepared: Prepared,
    folder: SweepFolder,
    journal: Journal,
    cached: Sequence[bool],
    errors: Mapping[str, CellError],
) -> int:
    """Write the sweep's folder, track it, and print its table."""
    request = prepared.grid.request
    cells = rows.table(
        prepared.grid, prepared.planned, prepared.metrics, errors, cached, prepared.cache
    )
    config = config_of(prepared)
    names = {one.input: one.cell.labels["trace"] for one in prepared.planned}
    inputs = [{"trace": name, **prepared.inputs.describe(key)} for key, name in names.items()]
    words = [*request.words, *(f"--config-dir={folder}" for folder in request.options.user_dirs)]
    about, diff = provenance.collect(words, request.axes["seed"], inputs)
    found = study(cells, config, prepared.cache)
    folder.write(cells, config, about, diff, found, prepared.cache)
    target = track(folder, request.settings)
    journal.append("end", failed=len(errors), tracked=target)
    say.result(folder, cells, config, request.settings)
    return 1 if errors else 0


def again(prepared: Prepared, folder: SweepFolder, journal: Journal) -> None:
    """Answer a sweep that is over and of which every cell is cached: only statuses change."""
    settings = prepared.grid.request.settings
    cells = rows.with_status(folder.cells(), "cached")
    folder.write_cells(cells)
    ends = [event for event in journal.events() if event["event"] == "end"]
    if not hand_over.is_logged(settings, ends[-1].get("tracked")):
        journal.append("end", failed=0, tracked=track(folder, settings))
    say.note(f"every cell is cached: all {cells.num_rows} were computed before")
    say.result(folder, cells, folder.config(), settings)


def study(cells: pa.Table, config: Mapping[str, Any], cache: Cache) -> pa.Table | None:
    """Let the experiment's study look at the cells; None if there is none, or it can't.

    A study that fails, as it may on other cells than its experiment has, takes nothing else with
    it: what went wrong is said.
    """
    chosen = config["study"]
    if chosen is None:
        return None
    rows = [row for row in cells.to_pylist() if row["status"] != "failed"]
    try:
        found = studies.find(chosen["name"], Finished(rows, config, cache))
    except Exception as error:
        say.note(f"study {chosen['name']} found nothing: {type(error).__name__}: {error}")
        return None
    return findings.to_table(found)


def config_of(prepared: Prepared) -> dict[str, Any]:
    """Write down what was asked for and what it resolved to, for ``config.yaml``."""
    request = prepared.grid.request
    options: dict[str, dict[str, Any]] = {"policy": {}, "trace": {}, "cluster": {}, "measure": {}}
    for one in prepared.planned:
        options["policy"].setdefault(one.cell.labels["policy"], one.cell.policy)
        options["trace"].setdefault(one.cell.labels["trace"], one.cell.trace)
        options["cluster"].setdefault(one.cell.labels["trace"], one.cell.cluster)
        options["measure"].setdefault(one.cell.measure["name"], one.cell.measure)
    config: dict[str, Any] = mask_tree(
        {
            "sweep": prepared.sweep,
            "experiment": request.experiment,
            "study": request.study,
            "words": list(request.words),
            "config_dirs": [str(folder) for folder in request.options.user_dirs],
            "axes": {key: list(values) for key, values in request.axes.items()},
            "swept": list(prepared.grid.swept),
            "fixed": [one.text for one in request.fixed],
            "baseline": request.baseline,
            "metrics": list(request.metrics),
            **options,
        }
    )
    if request.precision is not None:
        wanted = dataclasses.asdict(request.precision)
        config["seeds"] = {"asked": wanted, "found": dict(request.seeds or {})}
    return config


def track(folder: SweepFolder, settings: Settings) -> str | None:
    """Log a sweep to where its settings say."""
    target = hand_over.target_of(settings)
    if target is None:
        return None
    from sweep.track import TrackingDown

    try:
        hand_over.log(folder, settings, say.note)
    except TrackingDown as down:
        say.note(str(down))
        return None
    return target
