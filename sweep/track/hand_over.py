"""Handing a sweep's folder to tracking, and what to do when the server is down."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

from sweep.grid.settings import Settings
from sweep.run.progress import LINE_EVERY_S
from sweep.store import locks
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal

_WORDS = {
    "policy": "a run for all seeds of each policy, trace and capacity",
    "sweep": "one run for the whole sweep",
}


def uri_of(settings: Settings) -> str | None:
    """Tracking URI: as configured, or sqlite in the results folder; None for no tracking."""
    if settings.tracking["kind"] == "none":
        return None
    uri = settings.tracking.get("uri")
    return str(uri) if uri else f"sqlite:///{settings.results / 'mlflow.db'}"


def target_of(settings: Settings) -> str | None:
    """Name where the settings track to, without the secrets that a URI may hold."""
    uri = uri_of(settings)
    if uri is None:
        return None
    text = f"{uri}\n{settings.tracking['experiment']}"
    granularity = settings.tracking.get("granularity")
    return hashlib.sha256(text.encode()).hexdigest()[:16] + (f"-{granularity}" * bool(granularity))


def is_logged(settings: Settings, logged: object) -> bool:
    """Tell whether what was logged to a target, if to any, is all that the settings ask for."""
    target = target_of(settings)
    return target is None or (isinstance(logged, str) and logged.startswith(target))


def log(
    folder: SweepFolder, settings: Settings, note: Callable[[str], object] = lambda _: None
) -> None:
    """Log a sweep to where the settings say; nothing if they say nowhere."""
    uri = uri_of(settings)
    if uri is None:
        return
    from sweep import track
    from sweep.track.granularity import MOST_CELLS

    asked = settings.tracking.get("granularity")
    cells, config = folder.cells(), folder.config()
    rows = cells.select(["key", "config"]).to_pylist()
    granularity = track.choose(asked, cells, config["swept"])
    if asked is None and granularity != "cell":
        note(
            f"MLflow gets {_WORDS[granularity]}, as its UI slows past {MOST_CELLS} runs; "
            "tracking.granularity=cell logs every cell"
        )
    # two sweeps that make one sqlite database at the same time would break it
    with locks.exclusive(settings.results / "journal" / "mlflow.lock"):
        track.track(
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
