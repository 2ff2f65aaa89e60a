"""Summaries of all sweeps for a list: time, cells, state, tags, verdict."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sweep.store import checksums, sweep_list, tags
from sweep.store.cache import Cache
from sweep.store.folder import CELLS, VERDICT, DamagedError, SweepFolder
from sweep.store.journal import Journal
from sweep.store.lease import EXPIRES_S, Holder
from sweep.store.stale import stale_cells, stale_words
from sweep.store.sweep_list import SweepEntry

RUNNING, STOPPED, FINISHED, FAILED = "running", "stopped", "finished", "failed"
IsAlive = Callable[[str, Holder], bool]
"""Tells whether the holder of a sweep's lease runs, from the sweep's id and one look."""


@dataclass(frozen=True)
class SweepSummary:
    """Summary of one sweep.

    Attributes
    ----------
    sweep : str
        Its id.
    time_s : float
        When it was last started or requested, s since 1970.
    is_finished : bool
        True if it has a folder with results; it may run again.
    n_cells, n_done, n_failed : int
        Its cells; those that were done before it stopped, or are by now; those that failed.
    phase : str
        `RUNNING`, `STOPPED`, `FINISHED`, or `FAILED`: finished with failed cells, or damaged.
    state : str
        Its state in words; empty for a finished sweep without failed and stale cells.
    sentences : list of str
        Its verdict.
    n_bytes : int
        Size of its folder.
    tags : list of str
        Words of its reader.
    question : str
        Question in the asker's words; empty if there is none.
    """

    sweep: str
    time_s: float
    is_finished: bool
    n_cells: int
    n_done: int
    n_failed: int
    phase: str
    state: str
    sentences: list[str] = field(default_factory=list)
    n_bytes: int = 0
    tags: list[str] = field(default_factory=list)
    question: str = ""


def summarize(results: Path, is_alive: IsAlive | None = None) -> list[SweepSummary]:
    """List the sweeps of a results folder, the latest started or requested first.

    `is_alive` judges holders on other machines; by default their heartbeat is awaited.
    """
    entries = reversed(sweep_list.sweeps(results))
    cache = functools.cache(lambda: Cache(results))
    return [summarize_one(results, entry, is_alive, cache) for entry in entries]


def summarize_one(
    results: Path,
    entry: SweepEntry,
    is_alive: IsAlive | None,
    cache: Callable[[], Cache],
) -> SweepSummary:
    """Summarize one sweep; `cache` opens the cache of the results, for sweeps that changed."""
    folder = SweepFolder.for_sweep(results, entry.sweep)
    journal = Journal(results, entry.sweep)
    counts = journal.tally()
    holder = None if counts.has_ended or not counts.n_cells else journal.lease().holder()
    is_running = holder is not None and holder.is_alive is not False
    if holder is not None and holder.is_alive is None:
        is_running = is_alive(entry.sweep, holder) if is_alive else journal.is_running()
    n_cells, n_failed = counts.n_cells, counts.n_failed
    sentences: list[str] = []
    n_done = n_cells - counts.n_todo + counts.n_came
    phase, state = STOPPED, f"stopped after {n_done:,} of {n_cells:,} cells"
    if is_running and holder is not None:
        phase, state = RUNNING, _running_state(n_done, n_cells, n_failed, holder)
    elif entry.is_finished:
        try:
            n_cells, n_failed, sentences, stale = _finished(folder, cache)
            n_done = n_cells
            phase = FAILED if n_failed else FINISHED
            state = "; ".join(filter(None, [f"{n_failed:,} failed" * bool(n_failed), stale]))
        except DamagedError:
            n_cells = n_done = n_failed = 0
            phase, state = FAILED, f"damaged: `python -m sweep report {entry.sweep}` rewrites it"
    elif counts.has_ended:
        state = "its folder is missing"
    return SweepSummary(
        entry.sweep,
        entry.requested_s,
        entry.is_finished,
        n_cells,
        n_done,
        n_failed,
        phase,
        state,
        sentences,
        _folder_bytes(folder.path),
        tags.read(results, entry.sweep),
        counts.question,
    )


Finished = tuple[int, int, list[str], str]
"""Cells, failed cells, verdict, and the cells that are stale in words."""
_FINISHED: dict[Path, tuple[object, Finished]] = {}
"""Contents of folders, and the versions of the files that they came from."""


def _finished(folder: SweepFolder, cache: Callable[[], Cache]) -> Finished:
    """Read what a folder has; only once as long as its files stay the same."""
    version = [_version(folder.path / name) for name in (CELLS, VERDICT, checksums.NAME)]
    known_version, known = _FINISHED.get(folder.path, (None, (0, 0, [], "")))
    if known_version == version:
        return known
    failed = folder.failed()
    stale = stale_words(stale_cells(folder, cache()))
    known = len(failed), int(failed.sum()), folder.sentences(), stale
    _FINISHED[folder.path] = version, known
    return known


def _version(path: Path) -> tuple[int, int, int] | None:
    with contextlib.suppress(OSError):
        stat = path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return None


def _running_state(n_done: int, n_cells: int, n_failed: int, holder: Holder) -> str:
    """Describe a running sweep, such as ``18 of 20 cells, 2 min left``."""
    left_s, activity, number = (holder.status.get(k) for k in ("left_s", "activity", "round"))
    parts = [f"{n_done:,} of {n_cells:,} cells"]
    if isinstance(number, int) and number > 1:
        parts[0] += f" of round {number}"
    if n_failed:
        parts.append(f"{n_failed:,} failed")
    if isinstance(left_s, int | float) and n_done < n_cells:
        parts.append(f"{duration_text(left_s)} left")
    elif isinstance(activity, str) and activity:
        parts.append(activity)
    return ", ".join(parts)


class Heartbeats:
    """Judge of holders on other machines from look to look, without waiting for any."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[bytes, float]] = {}

    def is_alive(self, sweep: str, holder: Holder) -> bool:
        """Tell whether the heartbeat changed within the time after which a lease expires."""
        now_s = time.monotonic()
        content, since_s = self._seen.get(sweep, (b"", now_s))
        if content != holder.content:
            since_s = now_s
        self._seen[sweep] = holder.content, since_s
        return now_s - since_s < EXPIRES_S


def duration_text(seconds: float) -> str:
    """Write a duration for people, such as ``40 s``, ``2 min`` or ``1 h 20 min``."""
    if seconds < 59.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h" + f" {rest} min" * bool(rest)


def time_text(time_s: float) -> str:
    """Write a time for people in this machine's zone, such as ``2026-11-26 04:36 UTC+01:00``."""
    local = time.localtime(time_s)
    minutes = (local.tm_gmtoff or 0) // 60
    offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return time.strftime("%Y-%m-%d %H:%M UTC", local) + offset * bool(minutes)


def size_text(n_bytes: float) -> str:
    """Write a size for people, such as ``1.3 MB``."""
    units = ["B", "kB", "MB", "GB", "TB"]
    while n_bytes >= 999.5 and len(units) > 1:
        n_bytes /= 1000
        units.pop(0)
    return f"{n_bytes:.3g} {units[0]}"


def _folder_bytes(folder: Path) -> int:
    sizes = []
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):  # another process may replace it
            sizes.append(path.stat().st_size)
    return sum(sizes)
