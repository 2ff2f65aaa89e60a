"""Handing a sweep's folder to tracking, and what to do when the server is down."""

from __future__ import annotations

import hashlib
import json

from sweep import locks
from sweep.folder import SweepFolder
from sweep.journal import Journal
from sweep.settings import Settings


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
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def log(folder: SweepFolder, settings: Settings) -> None:
    """Log a sweep to where the settings say; nothing if they say nowhere.

    Raises
    ------
    sweep.tracking.TrackingDown
        If that can't be reached.
    """
    uri = uri_of(settings)
    if uri is None:
        return
    from sweep import tracking

    cells, config = folder.cells(), folder.config()
    rows = cells.select(["key", "config"]).to_pylist()
    # two sweeps that make one sqlite database at the same time would break it
    with locks.exclusive(settings.results / "journal" / "mlflow.lock"):
        tracking.track(
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
        )


def _times(folder: SweepFolder) -> dict[str, tuple[float, float]]:
    """When each cell began and ended, s since 1970, as far as the journal knows."""
    events = Journal(folder.results, folder.sweep).events()
    return {
        event["key"]: (event["time"] - event["seconds"], event["time"])
        for event in events
        if event["event"] == "cell"
    }
